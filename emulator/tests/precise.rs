//! perf's precise samples in the guest: memory profiles, contended lines, precise events, against what the programs do.

use std::collections::{HashMap, HashSet};

use crate::common::precise::{compile, disassemble, hex, in_guest};
use crate::common::scratch;
use guest_samples::{Sample, SampleFile};

#[test]
fn a_chase_of_pointers_is_seen_as_it_is() {
    let dir = scratch("precise-chase");
    compile(&dir, "chase");
    let read = in_guest(
        &dir,
        "chase",
        1,
        "perf mem -t load record -q -o mem.data -- -c 997 ./chase > chase.txt\n\
         perf script -i mem.data -F ip,sym,addr,data_src,weight > mem.txt\n\
         perf mem -t load report -i mem.data --stdio --sort=mem,sym > report.txt\n",
    );
    let chase = read("chase.txt");
    let words: Vec<&str> = chase.split_whitespace().collect();
    let (start, bytes, cycles) = (hex(words[0]), hex(words[1]), words[2].parse::<f64>().unwrap());
    let mut weights = Vec::new();
    let text = read("mem.txt");
    for line in text.lines().filter(|line| line.contains(" chase")) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let address = hex(fields[0]);
        assert!((start..start + bytes).contains(&address), "{line}");
        let beyond = ["L2 hit", "L3 hit", "RAM hit", "LFB"];
        assert!(line.contains("LOAD") && beyond.iter().any(|level| line.contains(level)), "{line}");
        // What follows the data source in words: its weight.
        let weight = line.rsplit("BLK").next().and_then(|rest| rest.split_whitespace().nth(1));
        let weight = weight.and_then(|weight| weight.parse::<f64>().ok());
        weights.push(weight.unwrap_or_else(|| panic!("{line}")));
    }
    assert!(weights.len() > 50, "{} samples:\n{text}", weights.len());
    let mean = weights.iter().sum::<f64>() / weights.len() as f64;
    // A load that waits for the one before: what one takes is what the loop takes, less what its translation takes.
    assert!((0.8..=1.0).contains(&(mean / cycles)), "{mean} of {cycles} cycles");
    let report = read("report.txt");
    assert!(
        report.contains("chase") && (report.contains("L3 hit") || report.contains("RAM hit")),
        "{report}"
    );
}

#[test]
fn a_line_that_two_harts_share_falsely_is_found() {
    let dir = scratch("precise-sharing");
    compile(&dir, "sharing");
    let read = in_guest(
        &dir,
        "sharing",
        2,
        "perf c2c record -q -o c2c.data -- -c 199 ./sharing > sharing.txt\n\
         perf c2c report -i c2c.data --stdio > c2c.txt\n",
    );
    let line = hex(read("sharing.txt").split_whitespace().next().unwrap());
    let report = read("c2c.txt");
    let table = report.split("Shared Data Cache Line Table").nth(1).expect(&report);
    let first = table
        .lines()
        .find(|row| row.trim_start().starts_with("0 "))
        .unwrap_or_else(|| panic!("no line:\n{report}"));
    let address = first.split_whitespace().nth(1).unwrap();
    assert_eq!(hex(address), line, "{report}");
    // The table has both words of the line, at their offsets, with both harts.
    let lines = report.split("Shared Cache Line Distribution Pareto").nth(1).unwrap();
    let is_there = |offset: &str| lines.split_whitespace().any(|word| word == offset);
    assert!(is_there("0x0") && is_there("0x8"), "{lines}");
}

/// The share of samples at each instruction.
fn shares(samples: &[Sample]) -> HashMap<u64, f64> {
    let mut shares = HashMap::new();
    for sample in samples {
        *shares.entry(sample.ip.unwrap()).or_default() += 1.0 / samples.len() as f64;
    }
    shares
}

/// Numbers that a line of `perf script` has, whatever their columns' widths.
fn script_fields(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

#[test]
fn aux_data_are_the_samples_that_the_kernel_makes() {
    let dir = scratch("precise-aux");
    compile(&dir, "chase");
    let read = in_guest(
        &dir,
        "chase",
        1,
        "perf record -q -e pdis/loads/u -c 499 -d -W --phys-data -o samples.data ./chase > chase.txt\n\
         perf record -q -e pdis/loads,aux=1,pa=1/u -c 499 -o aux.data ./chase > chase.txt\n\
         perf script -i aux.data --ns -F tid,cpu,time,ip,addr,phys_addr,data_src,weight,ins_lat,retire_lat > aux.txt\n\
         perf mem -t load report -i aux.data --stdio --sort=mem,sym > report.txt\n\
         perf script -i aux.data --itrace=i4990i -F period > thin.txt\n",
    );
    let file = |name: &str| SampleFile::read(&dir.join("out/files").join(name)).unwrap();
    let (kernel, aux) = (file("samples.data"), file("aux.data"));
    assert_eq!((aux.aux_gaps, aux.malformed, aux.lost), (0, 0, 0));
    let ratio = aux.samples.len() as f64 / kernel.samples.len() as f64;
    assert!(aux.samples.len() > 100 && (0.98..1.02).contains(&ratio));
    // Program and period are the same: the profiles differ by how far the program was when sampling began.
    let (expected, found) = (shares(&kernel.samples), shares(&aux.samples));
    let share = |ip| found.get(ip).copied().unwrap_or(0.0);
    let common: f64 = expected.iter().map(|(ip, n)| n.min(share(ip))).sum();
    assert!(common > 0.9, "{common}: {expected:x?} {found:x?}");
    let chase = read("chase.txt");
    let words: Vec<&str> = chase.split_whitespace().collect();
    let data = hex(words[0])..hex(words[0]) + hex(words[1]);
    let program = disassemble(&dir.join("chase"));
    let mean = |samples: &[Sample]| {
        let in_data = |s: &&Sample| s.addr.is_some_and(|address| data.contains(&address));
        let weights: Vec<u64> = samples.iter().filter(in_data).map(|s| s.weight.unwrap()).collect();
        assert!(weights.len() * 2 > samples.len());
        weights.iter().sum::<u64>() as f64 / weights.len() as f64
    };
    let ratio = mean(&aux.samples) / mean(&kernel.samples);
    assert!((0.9..1.1).contains(&ratio), "{ratio}");
    let mut last = 0;
    for sample in &aux.samples {
        let name = program[&sample.ip.unwrap()].trim_start_matches("c.");
        let loads = ["ld", "lw", "lh", "lb", "lr.", "fld", "flw", "flh", "amo"];
        let loads = loads.iter().any(|start| name.starts_with(start));
        assert!(sample.is_exact && sample.is_user && loads, "{name}");
        assert_eq!(sample.pid, sample.tid);
        assert!(sample.phys_addr.unwrap() >= 0x8000_0000);
        assert!(sample.time.unwrap() >= last, "in the order of time");
        last = sample.time.unwrap();
    }

    // perf reads the same of each sample as we do.
    let text = read("aux.txt");
    assert_eq!(text.lines().count(), aux.samples.len());
    for (line, sample) in text.lines().zip(&aux.samples) {
        let fields = script_fields(line);
        let numbers = |value: Option<u64>| format!("{:x}", value.unwrap());
        let time = sample.time.unwrap();
        let seconds = format!("{}.{:09}:", time / 1_000_000_000, time % 1_000_000_000);
        let source = sample.data_src.unwrap().0;
        assert_eq!(fields[0], sample.tid.unwrap().to_string(), "{line}");
        assert_eq!(fields[1], format!("[{:03}]", sample.cpu.unwrap()), "{line}");
        assert_eq!(fields[2], seconds, "{line}");
        assert_eq!(fields[3], numbers(sample.addr), "{line}");
        assert_eq!(fields[4], numbers(Some(source)), "{line}");
        for number in [
            sample.weight.unwrap().to_string(),
            numbers(sample.ip),
            numbers(sample.phys_addr),
            sample.ins_lat.unwrap().to_string(),
            sample.retire_lat.unwrap().to_string(),
        ] {
            assert!(fields[5..].contains(&number.as_str()), "{number} in {line}");
        }
    }
    let report = read("report.txt");
    assert!(report.contains("chase") && report.contains("L3 hit"), "{report}");
    let thin = read("thin.txt");
    assert!(thin.lines().all(|line| line.trim() == "4990"), "{thin}");
    assert_eq!(thin.lines().count(), aux.samples.len() / 10);
}

#[test]
fn aux_data_of_two_harts_with_short_periods() {
    let dir = scratch("precise-aux-harts");
    compile(&dir, "sharing");
    let read = in_guest(
        &dir,
        "sharing",
        2,
        "perf record -q -e pdis/mem-ldst,aux=1,pa=1/ -c 199 -o c2c.data ./sharing > sharing.txt\n\
         perf c2c report -i c2c.data --stdio > c2c.txt\n\
         perf record -q -a -m ,4M -e pdis/instructions,aux=1/ -c 128 -o all.data ./sharing > sharing.txt 2> all.txt\n\
         perf record -q -a -m ,16K -e pdis/instructions,aux=1/ -c 16 -o full.data ./sharing > sharing.txt 2> full.txt\n\
         perf report -i full.data --stdio > /dev/null 2> lost.txt\n",
    );
    let file = |name: &str| SampleFile::read(&dir.join("out/files").join(name)).unwrap();
    let line = hex(read("sharing.txt").split_whitespace().next().unwrap());
    let c2c = file("c2c.data");
    // Each hart's thread has its own word of the line.
    for word in 0..2u64 {
        let of_word = c2c.samples.iter().filter(|s| s.addr == Some(line + 8 * word));
        let threads: HashSet<_> = of_word.clone().map(|s| (s.cpu, s.tid)).collect();
        assert!(of_word.count() > 10 && threads.len() == 1, "{threads:?}");
        assert_eq!(threads.iter().next().unwrap().0, Some(word as u32));
    }
    let hitm = c2c.samples.iter().any(|s| s.data_src.unwrap().is_hitm());
    let table = read("c2c.txt");
    assert!(hitm && table.contains(&format!("{line:#x}")), "{table}");

    // All tasks, and each instruction of the two threads' loops in about its number. (Without -m the area is full now and then at
    // this period, before perf has read it.)
    let all = file("all.data");
    assert_eq!((all.aux_gaps, all.malformed), (0, 0), "{}", read("all.txt"));
    let harts: HashSet<_> = all.samples.iter().map(|s| s.cpu).collect();
    let tasks: HashSet<_> = all.samples.iter().map(|s| s.tid).collect();
    assert!(harts.len() == 2 && tasks.len() > 3, "{tasks:?}");
    assert!(!tasks.contains(&Some(u32::MAX)), "tasks that end are known");
    let named = |name: &str| {
        let pids = all.commands.iter().filter(|(_, command)| *command == name);
        let pids: HashSet<u32> = pids.map(|(pid, _)| *pid).collect();
        let samples = all.samples.iter();
        samples.filter(|s| s.is_user && pids.contains(&s.pid.unwrap())).count()
    };
    // 2 threads * 4000 turns * more than 40 * 3 instructions.
    assert!(named("sharing") > 8000 * 120 / 128, "{}", named("sharing"));

    // There are more records than perf can write: it says that some are lost, and ends.
    let full = file("full.data");
    // perf has more records than two areas hold: it goes on when one has been read.
    let records = full.samples.len();
    assert!(full.aux_gaps > 0 && records > 2 * (16 << 10) / 64, "{records}");
    let lost = read("lost.txt");
    assert!(lost.contains("AUX data lost") || lost.contains("had gaps"), "{lost}");
}

#[test]
fn precise_events_have_no_skid() {
    let dir = scratch("precise-events");
    compile(&dir, "branches");
    let read = in_guest(
        &dir,
        "branches",
        1,
        "perf record -q -e branch-misses:upp -c 97 -g -o branches.data ./branches > branches.txt\n\
         perf script -i branches.data -F ip,sym --no-inline > misses.txt\n\
         perf record -q -e branch-misses:u -c 97 -o skid.data ./branches > branches.txt\n\
         perf script -i skid.data -F ip > skid.txt\n\
         perf record -q -e r829:upp -c 31 -o loads.data ./branches > branches.txt\n\
         perf script -i loads.data -F ip > loads.txt\n",
    );
    let program = disassemble(&dir.join("branches"));
    let transfers = |ip: u64| {
        let name = program.get(&ip).unwrap_or_else(|| panic!("{ip:#x} is no instruction"));
        name.starts_with('b') || ["j", "jr", "jal", "jalr", "ret"].contains(&name.as_str())
    };
    // Stacks are apart by empty lines; the sampled instruction is the first.
    let text = read("misses.txt");
    let stacks: Vec<Vec<&str>> = text
        .split("\n\n")
        .map(|stack| stack.lines().filter(|line| !line.trim().is_empty()).collect())
        .filter(|stack: &Vec<&str>| !stack.is_empty())
        .collect();
    assert!(stacks.len() > 200, "{} samples", stacks.len());
    let ip = |line: &str| hex(line.split_whitespace().next().unwrap());
    let mut in_leaf = 0;
    for stack in &stacks {
        assert!(transfers(ip(stack[0])), "{stack:?}");
        in_leaf += usize::from(stack[0].ends_with(" leaf"));
    }
    assert!(in_leaf * 10 > stacks.len() * 6, "{in_leaf} of {}", stacks.len());
    // The callers of `leaf`, 3 to 1.
    let called = |name: &str| {
        stacks
            .iter()
            .filter(|s| s[0].ends_with(" leaf") && s.get(1).is_some_and(|c| c.ends_with(name)))
            .count()
    };
    let (often, seldom) = (called(" often"), called(" seldom"));
    assert!(often > 2 * seldom && seldom * 5 > often, "{often} and {seldom}");

    // Without precision, most samples are elsewhere than where the precise ones are.
    let mut sampled: HashMap<u64, usize> = HashMap::new();
    stacks.iter().for_each(|stack| *sampled.entry(ip(stack[0])).or_default() += 1);
    let (hot, times) = sampled.iter().max_by_key(|(_, times)| **times).unwrap();
    assert!(*times * 10 > stacks.len() * 6, "{sampled:x?}");
    let skid = read("skid.txt");
    let exact = skid.lines().filter(|line| ip(line) == *hot).count();
    assert!(exact * 2 < skid.lines().count(), "{exact} of {}", skid.lines().count());

    // INST.RET.L1D_MISS: loads and atomics, without the reads of page-table walks.
    let loads = read("loads.txt");
    assert!(loads.lines().count() > 3);
    for line in loads.lines() {
        let name = program.get(&ip(line)).unwrap_or_else(|| panic!("{line}"));
        assert!(
            name.starts_with('l')
                || name.starts_with("c.l")
                || name.starts_with("amo")
                || name.starts_with("fl"),
            "{line} {name}"
        );
    }
}
