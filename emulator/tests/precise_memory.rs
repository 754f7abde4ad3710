//! Precise samples of counters that go to memory without an interrupt each, in the guest.

use crate::common::precise::{compile, disassemble, hex, in_guest};
use crate::common::scratch;

#[test]
fn precise_samples_go_to_memory_without_an_interrupt_each() {
    let dir = scratch("precise-memory");
    compile(&dir, "branches");
    let read = in_guest(
        &dir,
        "branches",
        2,
        "irqs() { grep -h riscv-pmu /proc/interrupts; }\n\
         irqs > before.txt\n\
         perf record -q -e branch-misses:upp -c 97 --intr-regs=ra -b -o misses.data ./branches > branches.txt\n\
         perf record -q -e branch-misses/period=97/upp -e instructions/period=10007/upp -e cycles/period=5003/upp -o several.data ./branches > branches.txt\n\
         irqs > after.txt\n\
         perf record -q -a -m 4M -e instructions:pp -c 1009 -o all.data ./branches > branches.txt\n\
         perf stat -x, -e branch-misses:u,instructions:u,cycles:u -o stat.txt ./branches > branches.txt\n\
         perf script -i misses.data -F ip,sym,iregs,brstack --no-inline > misses.txt\n\
         perf script -i several.data -F ip,event > several.txt\n\
         perf script -i all.data -F cpu,ip > all.txt\n\
         perf report -i all.data --stdio --stats > all-stats.txt\n",
    );
    // The counters raised not one interrupt on any hart.
    assert_eq!(read("before.txt"), read("after.txt"));

    // Each is at a transfer of control, with what its moment alone has: who called, and how it came there.
    let program = disassemble(&dir.join("branches"));
    let text = read("misses.txt");
    let mut in_leaf = 0;
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ip = hex(words[0]);
        let name = program.get(&ip).unwrap_or_else(|| panic!("{line}"));
        let transfers = name.starts_with('b') || name.starts_with('j') || name == "ret";
        assert!(transfers, "{line}: {name}");
        if words[1] != "leaf" {
            continue;
        }
        in_leaf += 1;
        let ra = words.iter().find_map(|word| word.strip_prefix("ra:"));
        let ra = hex(ra.expect("a register"));
        // Two instructions before it returns to, `jal leaf` is.
        let called = program.get(&(ra - 4)).or(program.get(&(ra - 2)));
        assert!(called.is_some_and(|name| name.starts_with("jal")), "{line}");
        // The youngest transfer is the branch itself if it was taken, and else the call.
        let youngest = words.iter().find(|word| word.contains("/P/") || word.contains("/M/"));
        let mut ends = youngest.expect("a branch stack").split('/').map(hex_or_zero);
        let (from, to) = (ends.next().unwrap(), ends.next().unwrap());
        let call = from == ra - 4 || from == ra - 2;
        assert!(from == ip || call && to <= ip && ip - to < 64, "{line}");
    }
    let lines = text.lines().count();
    assert!(in_leaf * 10 > lines * 6, "{in_leaf} of {lines}");

    // Each of several events has as many samples as it had periods.
    let several = read("several.txt");
    let stat = read("stat.txt");
    // perf stat counted another run of the program, which mispredicts and waits a little more, or less.
    let events =
        [("branch-misses", 97, 0.15), ("instructions", 10007, 0.01), ("cycles", 5003, 0.1)];
    for (event, period, differs) in events {
        let sampled = several.lines().filter(|line| line.contains(event)).count() as f64;
        let counted = stat.lines().find(|line| line.contains(event)).unwrap();
        let counted: f64 = counted.split(',').next().unwrap().parse().unwrap();
        let ratio = sampled * f64::from(period) / counted;
        assert!((ratio - 1.0).abs() < differs, "{event}: {sampled} of {counted}");
    }

    // The whole machine is sampled, kernel and all, more often than an interrupt for each sample would let it get on.
    let all = read("all.txt");
    for cpu in ["[000]", "[001]"] {
        assert!(all.lines().any(|line| line.contains(cpu)), "{cpu}");
    }
    let in_kernel = all.lines().filter(|line| line.contains("ffffffff8")).count();
    assert!(in_kernel > 100 && all.lines().count() - in_kernel > 1000, "{in_kernel}");
    let stats = read("all-stats.txt");
    assert!(!stats.contains("LOST") && !stats.contains("THROTTLE"), "{stats}");
}

#[test]
fn a_precise_event_that_is_read_too_often_is_throttled_and_goes_on() {
    let dir = scratch("precise-throttled");
    compile(&dir, "throttled");
    let read = in_guest(
        &dir,
        "throttled",
        1,
        "./throttled > free.txt\n\
         echo 1000 > /proc/sys/kernel/perf_event_max_sample_rate\n\
         ./throttled > throttled.txt\n\
         dmesg > dmesg.txt\n",
    );
    let counts = |name: &str| {
        let text = read(name);
        let mut counts = text.split_whitespace().map(|word| word.parse::<f64>());
        let mut next = || counts.next().unwrap_or_else(|| panic!("{text}")).expect(&text);
        (next(), next())
    };
    // The plain counter has more by what it counted before the other one was opened.
    let (precise, plain) = counts("free.txt");
    assert!(precise <= plain && precise > 0.99 * plain, "{precise} of {plain}");
    let (precise, plain) = counts("throttled.txt");
    // Throttled, until the next tick.
    assert!(precise < plain && precise > 0.0, "{precise} of {plain}");
    let dmesg = read("dmesg.txt");
    assert!(!dmesg.contains("WARNING") && !dmesg.contains("BUG"), "{dmesg}");
}

fn hex_or_zero(word: &str) -> u64 {
    match word.starts_with("0x") {
        true => hex(word),
        false => 0,
    }
}
