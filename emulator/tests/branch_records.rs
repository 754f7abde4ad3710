//! Control transfer records (Smctr, Ssctr) of a program in user and supervisor mode, against the trace of the same run.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use crate::common::{UNTIMED_PERF_REPORTS, assemble, repo, run_spec, scratch, succeed, tipsim};

/// Records that the program has room for, more than it makes.
const DEPTH: usize = 256;

/// The program. Machine mode opens all memory, has user and supervisor mode recorded (CSRs as numbers), and starts a
/// supervisor. User mode has a nest of loops with calls, a jump whose target changes, and a branch that nobody foresees; it
/// calls the supervisor, which ends it by a call to machine mode, where the records are printed, youngest first.
const PROGRAM: &str = concat!(include_str!("branch_records/modes.S"), include_str!("common/hex.S"));

/// Instead of both modes: a supervisor that has its own loops recorded, but neither what it did before nor what it does while a
/// breakpoint has frozen the records.
const FROZEN: &str = include_str!("branch_records/frozen.S");

const VALID: u64 = 1;
const MISPREDICTED: u64 = 1;
const CYCLES_VALID: u64 = 1 << 15;

/// A record of the trace.
#[derive(Debug)]
struct TraceRecord {
    commit: u64,
    privilege: u64,
    pc: u64,
    redirect: String,
    replayed: bool,
    instruction: String,
}

/// All records of the trace of hart 0.
fn trace(dir: &Path) -> Vec<TraceRecord> {
    let csv = dir.join("trace.csv");
    let mut expand = tipsim();
    expand.args(["trace", "expand", "--format", "csv"]);
    expand.arg(dir.join("out/trace.tip")).arg("-o").arg(&csv);
    succeed(&mut expand);
    let text = std::fs::read_to_string(csv).unwrap();
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let column = |name| names.iter().position(|&n| n == name).unwrap();
    let [commit, privilege, pc, redirect, tea, instruction] =
        ["commit", "privilege", "pc", "redirect", "tea", "instruction"].map(column);
    assert_eq!(instruction, names.len() - 1);
    let row = |line: &str| {
        let field: Vec<&str> = line.splitn(names.len(), ',').collect();
        TraceRecord {
            commit: field[commit].parse().unwrap(),
            privilege: field[privilege].parse().unwrap(),
            pc: u64::from_str_radix(&field[pc][2..], 16).unwrap(),
            redirect: field[redirect].to_owned(),
            replayed: field[tea].contains("FL-MO"),
            instruction: field[instruction].trim_matches('"').to_owned(),
        }
    };
    lines.map(row).collect()
}

/// `ctrdata.TYPE` of an instruction by its disassembly; `None` if it goes on to the next.
fn kind(row: &TraceRecord, next: &TraceRecord) -> Option<u64> {
    if row.redirect == "Exception" {
        return (!row.replayed).then_some(1);
    }
    let mut words = row.instruction.split([' ', '\t', ',']);
    let (name, register) = (words.next().unwrap(), words.next());
    Some(match name {
        "sret" | "mret" => 3,
        "beq" | "bne" | "beqz" | "bnez" | "bgez" => match next.pc == row.pc + 4 {
            true => return None,
            false => 5,
        },
        "j" => 11,
        "jal" => 9,
        "ret" => 13,
        "jr" if register == Some("t0") => 13,
        "jr" => 10,
        "jalr" => 8,
        _ => return None,
    })
}

/// Records (source, target, data) that a program makes, by its trace, oldest first; where `records(privilege)`.
fn expected(rows: &[TraceRecord], records: impl Fn(u64) -> bool) -> Vec<[u64; 3]> {
    let mut made: Vec<[u64; 3]> = Vec::new();
    let (mut cycles, mut before) = (0, rows[0].commit);
    for (row, next) in rows.iter().zip(&rows[1..]) {
        if records(row.privilege) {
            cycles += row.commit - before;
        }
        before = row.commit;
        let (on, on_next) = (records(row.privilege), records(next.privilege));
        let Some(kind) = kind(row, next) else {
            continue;
        };
        let (source, target) = match kind {
            1 if !on_next => continue,
            _ if !on && (kind != 1 || !on_next) => continue,
            _ => (if on { row.pc } else { 0 }, if on_next { next.pc } else { 0 }),
        };
        let missed = u64::from(row.redirect == "Mispredict");
        let valid = if made.is_empty() { 0 } else { CYCLES_VALID };
        assert!(cycles < 4096);
        made.push([source | VALID, target | (missed * MISPREDICTED), cycles << 16 | valid | kind]);
        cycles = 0;
    }
    made
}

/// The records that a run printed, oldest first, and its trace.
fn run(name: &str, source: &str, harts: usize, threads: &str) -> (Vec<[u64; 3]>, Vec<TraceRecord>) {
    let dir = scratch(&format!("branch-records-{name}-{harts}-{threads}"));
    let elf = assemble(&dir, "program", source);
    let mut spec = String::new();
    writeln!(spec, "[guest]\nfirmware = \"{}\"\nharts = {harts}", elf.display()).unwrap();
    writeln!(spec, "[run]\nthreads = \"{threads}\"\n[record]\ntrace = true").unwrap();
    let path = dir.join("spec.toml");
    std::fs::write(&path, spec).unwrap();
    let mut command = tipsim();
    command.arg("run").arg(&path).arg("--out").arg(dir.join("out"));
    succeed(&mut command);
    let console = std::fs::read_to_string(dir.join("out/console.log")).unwrap();
    let words = |line: &str| {
        let word = |word| u64::from_str_radix(word, 16).unwrap();
        let words: Vec<u64> = line.split_whitespace().map(word).collect();
        <[u64; 3]>::try_from(words).unwrap()
    };
    let mut printed: Vec<[u64; 3]> = console.lines().map(words).collect();
    assert_eq!(printed.len(), DEPTH);
    let valid = printed.iter().position(|record| record[0] & VALID == 0).unwrap();
    assert!(printed[valid..].iter().all(|record| *record == [0; 3]));
    printed.truncate(valid);
    printed.reverse();
    (printed, trace(&dir))
}

#[test]
fn records_are_those_of_the_trace() {
    for (harts, threads) in [(1, "one"), (1, "two"), (2, "auto")] {
        // (mctrctl, which privileges): both modes; one alone.
        for (control, first, last) in [(3, 0, 1), (1, 0, 0), (2, 1, 1)] {
            let source = PROGRAM.replace("CONTROL", &control.to_string());
            let (found, rows) = run("modes", &source, harts, threads);
            let expected = expected(&rows, |privilege| (first..=last).contains(&privilege));
            assert!(found.len() > 3, "{}", found.len());
            assert!(control != 1 || found.iter().any(|r| r[1] & MISPREDICTED != 0));
            assert_eq!(found, expected, "{control} {harts} {threads}");
        }
    }
}

#[test]
fn what_passed_while_nothing_was_recorded_is_not_recorded_later() {
    let mut source = PROGRAM
        .replace("CONTROL", "0")
        .replace("li t0, 1 << 8\n  csrw medeleg", "li t0, 1 << 3\n  csrw medeleg");
    let (start, end) = (source.find("supervisor:\n"), source.find(".align 2\nprint:"));
    source.replace_range(start.unwrap()..end.unwrap(), FROZEN);
    for threads in ["one", "two"] {
        let (found, _) = run("frozen", &source, 1, threads);
        let kinds: Vec<u64> = found.iter().map(|record| record[2] & 15).collect();
        assert_eq!(kinds, [5, 5, 5, 5, 3, 5, 5, 5], "{threads}: {found:x?}");
        let from = |n: usize| found[n][0];
        assert!((0..4).all(|n| from(n) == from(0)) && (5..8).all(|n| from(n) == from(5)));
        // The breakpoint is behind the first loop, and the second loop behind the breakpoint.
        assert_eq!((found[4][1], from(5)), (from(0) - VALID + 8, from(0) + 16));
    }
}

/// The transfers of a round of `branch_records/nest.S`, from label to label, and perf's name of their kind.
const ROUND: &[(&str, &str, &str)] = &[
    ("b_inner", "inner", "COND"),
    ("b_inner", "inner", "COND"),
    ("j_call", "first", "CALL"),
    ("j_indirect", "second", "IND_CALL"),
    ("j_third", "third", "CALL"),
    ("r_third", "third_back", "RET"),
    ("r_second", "back", "RET"),
    ("r_first", "after", "RET"),
    ("j_jump", "over", "IND"),
    ("b_outer", "outer", "COND"),
];

/// Compiles the nest; its labels by address.
fn nest(dir: &Path) -> HashMap<u64, String> {
    let program = dir.join("nest");
    let mut gcc = Command::new("riscv64-linux-gnu-gcc");
    gcc.args(["-nostdlib", "-static", "-no-pie", "-DROUNDS=60000", "-o"]);
    gcc.arg(&program).arg(repo().join("emulator/tests/branch_records/nest.S"));
    assert!(gcc.status().unwrap().success());
    let symbols = Command::new("riscv64-linux-gnu-nm").arg(program).output().unwrap();
    let text = String::from_utf8(symbols.stdout).unwrap();
    let symbol = |line: &str| {
        let mut words = line.split(' ');
        let address = u64::from_str_radix(words.next()?, 16).ok()?;
        Some((address, words.nth(1)?.to_owned()))
    };
    text.lines().filter_map(symbol).collect()
}

/// Runs a command with the nest in the guest under the timing core; its files.
fn in_guest(dir: &Path, command: &str) {
    let spec = format!(
        "[run]\nboot = \"functional\"\nthreads = \"one\"\nregion = \"command\"\nmax_cycles = 4000000000\nfiles = ['nest']\n\
         command = '''{UNTIMED_PERF_REPORTS}{command}'''\n[record]\ntrace = false\nprofilers = false\n"
    );
    succeed(&mut run_spec(dir, &spec));
}

/// A stack of `perf script -F brstack`, youngest first: (from, to, mispredicted, cycles, kind).
fn stack(line: &str) -> Vec<(u64, u64, bool, u64, String)> {
    let hex = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).unwrap();
    let entry = |word: &str| {
        let fields: Vec<&str> = word.split('/').collect();
        assert!(["M", "P"].contains(&fields[2]), "{word}");
        let kind = fields.get(6).copied().unwrap_or_default();
        (
            hex(fields[0]),
            hex(fields[1]),
            fields[2] == "M",
            fields[5].parse().unwrap(),
            kind.to_owned(),
        )
    };
    line.split_whitespace().filter(|word| word.starts_with("0x")).map(entry).collect()
}

#[test]
fn a_branch_stack_is_the_programs_own_path() {
    let dir = scratch("branch-records-perf");
    let labels = nest(&dir);
    in_guest(
        &dir,
        "perf record -q -j any,u,save_type -e cycles:u -c 20011 -o any.data ./nest\n\
         perf script -i any.data -F brstack > any.txt\n\
         perf record -q -j any_call,u -e cycles:u -c 20011 -o calls.data ./nest\n\
         perf script -i calls.data -F brstack > calls.txt\n\
         perf record -q --call-graph lbr -e cycles:u -c 20011 -o lbr.data ./nest\n\
         perf script -i lbr.data -F ip,sym > lbr.txt\n\
         perf record -q -b -a -e cycles -c 200003 -o all.data ./nest\n\
         perf report -i all.data --stdio --sort symbol_from,symbol_to,mispredict,cycles > report.txt\n\
         perf annotate -i any.data --stdio -s _start > annotate.txt\n",
    );
    let read = |name: &str| std::fs::read_to_string(dir.join("out/files").join(name)).unwrap();
    let name = |address: u64| labels.get(&address).map_or("", String::as_str);
    let (mut samples, mut cycles_of_division) = (0, 0);
    for line in read("any.txt").lines() {
        let stack = stack(line);
        let (from, to, ..) = stack[0];
        let at = ROUND.iter().rposition(|&(f, t, _)| (f, t) == (name(from), name(to)));
        let mut at =
            at.unwrap_or_else(|| panic!("{from:#x} {to:#x} is no transfer of the program"));
        // The inner loop's first turn looks as its second.
        if at == 1 && name(stack[1].0) == "b_outer" {
            at = 0;
        }
        for (n, (from, to, _, cycles, kind)) in stack.iter().enumerate() {
            let expected = ROUND[(at + 8 * ROUND.len() - n) % ROUND.len()];
            assert_eq!((name(*from), name(*to), kind.as_str()), expected, "{n} of {line}");
            if expected.0 == "r_third" {
                cycles_of_division += cycles;
            }
        }
        assert!(stack.len() == 32 || samples == 0, "{}: {line}", stack.len());
        samples += 1;
    }
    assert!(samples > 100, "{samples} samples");
    // Two divisions that wait for each other.
    assert!(cycles_of_division / (3 * samples) > 10);

    let calls = read("calls.txt");
    let calls: Vec<_> = calls.lines().flat_map(stack).collect();
    assert!(calls.len() > 1000 && calls.iter().all(|call| name(call.0).starts_with("j_")));

    // The leaf's callers, without frame pointers: where each was called.
    let lbr = read("lbr.txt");
    let hex =
        |line: &str| u64::from_str_radix(line.split_whitespace().next().unwrap(), 16).unwrap();
    let chains: Vec<Vec<&str>> = lbr
        .split("\n\n")
        .map(|chain| {
            chain.lines().filter(|line| !line.is_empty()).map(|line| name(hex(line))).collect()
        })
        .collect();
    let of_leaf = |chain: &&Vec<&str>| chain.len() > 1 && chain[1] == "j_third";
    let of_leaf: Vec<_> = chains.iter().filter(of_leaf).collect();
    assert!(of_leaf.len() > 20, "{lbr}");
    assert!(of_leaf.iter().all(|chain| chain[1..] == ["j_third", "j_indirect", "j_call"]), "{lbr}");

    let report = read("report.txt");
    for word in ["third", "second", "Source Symbol", "Target Symbol"] {
        assert!(report.contains(word), "no {word} in {report}");
    }
    // Each of the nest's own jumps, with how often it was foreseen.
    let foreseen = |line: &&str| line.contains("(p:");
    assert!(read("annotate.txt").lines().filter(foreseen).count() >= 4);
}
