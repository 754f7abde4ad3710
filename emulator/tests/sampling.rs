//! Sampled instructions (Smpdis/Sspdis) of a supervisor's program, against the trace of the same run.

mod common;

use std::collections::HashSet;
use std::path::Path;

use common::{assemble, scratch, succeed, tipsim};

/// A supervisor that has its own loop sampled; machine mode prints the records.
const MEMORY: &str = include_str!("sampling/memory.S");

const CHAIN: u64 = 0x8100_0000;
const STRIDE: u64 = 4160;
/// Instructions of a turn of the loop that access memory: two loads, a store, and an atomic.
const ACCESSES: usize = 4;

/// `spdisctl`.
const RAND: u64 = 1 << 57;
const CYC: u64 = 1 << 58;
const FETCH: u64 = 1 << 59;
/// `pdishdrev`.
const ADR2V: u64 = 1 << 33;
const FLUSHED: u64 = 1 << 34;
const TRANSFER: u64 = 4;
const MISPRED: u64 = 1 << 55;
const NO_PC: u64 = 1 << 57;

/// A record of the trace.
#[derive(Debug)]
struct Row {
    decode: u64,
    dispatch: u64,
    commit: u64,
    pc: u64,
    class: String,
    wait: String,
    redirect: String,
}

/// How the unit is set up.
#[derive(Clone, Copy, Default)]
struct Setup {
    control: u64,
    period: u64,
    mask: u64,
    matches: u64,
    filter: u64,
}

/// What was printed, and the supervisor's records of the trace while the unit was on.
fn run(name: &str, setup: Setup, threads: &str) -> (Vec<[u64; 6]>, Vec<Row>) {
    let dir = scratch(&format!("sampling-{name}-{threads}"));
    let initial = (1 << 32) - setup.period;
    let source = [
        ("CONTROL |", format!("{} |", setup.control)),
        (", MASK", format!(", {}", setup.mask)),
        (", MATCH", format!(", {}", setup.matches)),
        (", FILTER", format!(", {}", setup.filter)),
        (", COUNTER", format!(", {}", initial << 32 | initial)),
    ];
    let source = source.iter().fold(MEMORY.to_owned(), |source, (from, to)| {
        source.replace(from, to)
    });
    let elf = assemble(&dir, "program", &source);
    let spec = format!(
        "[guest]\nfirmware = \"{}\"\n[run]\nthreads = \"{threads}\"\n[record]\ntrace = true\n",
        elf.display()
    );
    let path = dir.join("spec.toml");
    std::fs::write(&path, spec).unwrap();
    let mut command = tipsim();
    command.arg("run").arg(&path);
    succeed(command.arg("--out").arg(dir.join("out")));
    let console = std::fs::read_to_string(dir.join("out/console.log")).unwrap();
    let words = |line: &str| {
        let word = |word| u64::from_str_radix(word, 16).unwrap();
        let words: Vec<u64> = line.split_whitespace().map(word).collect();
        <[u64; 6]>::try_from(words).unwrap()
    };
    (console.lines().map(words).collect(), trace(&dir))
}

fn trace(dir: &Path) -> Vec<Row> {
    let csv = dir.join("trace.csv");
    let mut expand = tipsim();
    expand.args(["trace", "expand", "--format", "csv"]);
    succeed(expand.arg(dir.join("out/trace.tip")).arg("-o").arg(&csv));
    let text = std::fs::read_to_string(csv).unwrap();
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let row = |line: &str| {
        let field: Vec<&str> = line.splitn(names.len(), ',').collect();
        let named = |name: &str| field[names.iter().position(|&n| n == name).unwrap()];
        let number = |name: &str| named(name).parse::<u64>().unwrap();
        let row = Row {
            decode: number("decode"),
            dispatch: number("dispatch"),
            commit: number("commit"),
            pc: u64::from_str_radix(&named("pc")[2..], 16).unwrap(),
            class: named("class").to_owned(),
            wait: named("wait").to_owned(),
            redirect: named("redirect").to_owned(),
        };
        let on_off = named("instruction").contains("csrw 1472,")
            || named("instruction").contains("csrwi 1472,")
            || named("instruction").contains("0x5c0");
        (row, named("privilege") == "1" && on_off)
    };
    let mut rows: Vec<(Row, bool)> = lines.map(row).collect();
    let switches: Vec<usize> = (0..rows.len()).filter(|&n| rows[n].1).collect();
    assert_eq!(switches.len(), 2, "it is switched on and off");
    rows.truncate(switches[1]);
    rows.drain(..=switches[0]);
    rows.into_iter().map(|(row, _)| row).collect()
}

fn accesses(row: &Row) -> bool {
    ["Load", "Store", "Atomic"].contains(&row.class.as_str()) && !row.redirect.starts_with("Exc")
}

/// Those of the trace that are selected: every so many of those that count, unless one is active.
fn selected<'a>(rows: &'a [Row], period: usize, counts: impl Fn(&Row) -> bool) -> Vec<&'a Row> {
    let mut active = 0;
    let nth = rows.iter().filter(|row| counts(row)).skip(period - 1);
    nth.step_by(period)
        .filter(|row| {
            let free = row.decode >= active;
            active = if free { row.commit } else { active };
            free
        })
        .collect()
}

#[test]
fn every_so_many_loads_and_stores_are_recorded_as_they_fared() {
    for threads in ["one", "two"] {
        for period in [7, 37, 1000] {
            let setup = Setup {
                control: 3,
                period,
                ..Setup::default()
            };
            let (found, rows) = run(&format!("accesses-{period}"), setup, threads);
            let counts = |row: &Row| ["Load", "Store", "Atomic"].contains(&row.class.as_str());
            let expected = selected(&rows, period as usize, counts);
            assert!(found.len() > 6 && found.len() == expected.len());
            let mut sources = HashSet::new();
            for (record, row) in found.iter().zip(expected) {
                let [header, pc, time, latencies, va, pa] = *record;
                assert_eq!(pc, row.pc);
                let kind = ["", "Load", "Store", "Atomic"][(header & 3) as usize];
                assert_eq!(kind, row.class);
                assert_eq!(latencies & 0xfff, row.commit - row.decode);
                // The ROB holds it from the cycle after its dispatch.
                assert_eq!(latencies >> 12 & 0xfff, row.dispatch - 1 - row.decode);
                assert!(time > 0 && header & ADR2V != 0 && pa == va >> 2);
                let source = header >> 46 & 15;
                sources.insert(source);
                let allowed: &[u64] = match row.wait.as_str() {
                    "LoadL1" | "Store" => &[1, 2, 3, 4, 5, 6],
                    "LoadL2" => &[3, 4],
                    "LoadLlc" => &[3, 5],
                    "LoadDram" => &[3, 6],
                    _ => &[1],
                };
                assert!(allowed.contains(&source), "{source} of {row:?}");
                if va >= CHAIN {
                    assert_eq!((va - CHAIN) % STRIDE, 0);
                }
            }
            assert!(sources.len() > 1 || period == 1000, "{sources:?}");
        }
    }
}

#[test]
fn the_chain_is_walked_link_by_link() {
    // The first access of each turn is the chain's.
    let setup = Setup {
        control: 3,
        period: ACCESSES as u64 * 25,
        ..Setup::default()
    };
    let initial = Setup {
        period: setup.period,
        ..setup
    };
    let (found, _) = run("chain", initial, "auto");
    // The last access of each 25th turn: always the same instruction.
    assert!(found.len() > 70);
    assert!(found.iter().all(|record| record[1] == found[0][1]));
    let (found, _) = run(
        "links",
        Setup {
            control: 1,
            period: 3 * 50 + 1,
            ..setup
        },
        "auto",
    );
    let links: Vec<u64> = found
        .iter()
        .filter(|r| r[4] >= CHAIN)
        .map(|r| (r[4] - CHAIN) / STRIDE)
        .collect();
    assert!(
        links.len() > 10 && links.windows(2).all(|pair| pair[0] < pair[1]),
        "{links:?}"
    );
}

#[test]
fn filters_let_through_what_they_say() {
    // Mispredicted control transfers.
    let mispredicted = Setup {
        control: 4,
        period: 3,
        mask: MISPRED,
        matches: MISPRED,
        ..Setup::default()
    };
    let (found, rows) = run("mispredicted", mispredicted, "auto");
    let transfers = selected(&rows, 3, |row| row.class == "Branch");
    let missed: Vec<u64> = { transfers.iter() }
        .filter(|row| row.redirect == "Mispredict")
        .map(|row| row.pc)
        .collect();
    assert!(missed.len() > 50);
    let pcs: Vec<u64> = found.iter().map(|record| record[1]).collect();
    assert_eq!(pcs, missed);
    assert!(
        found
            .iter()
            .all(|r| r[0] & 7 == TRANSFER && r[0] & MISPRED != 0)
    );

    // Loads that take at least 40 cycles, and those that do not.
    for (filter, long) in [(40, true), (40 | 1 << 12, false)] {
        let setup = Setup {
            control: 1,
            period: 5,
            filter,
            ..Setup::default()
        };
        let (found, rows) = run(&format!("latency-{long}"), setup, "auto");
        let expected = selected(&rows, 5, |row| row.class == "Load" || row.class == "Atomic");
        let expected = expected
            .iter()
            .filter(|row| (row.commit - row.decode >= 40) == long);
        assert_eq!(found.len(), expected.count());
        assert!(!found.is_empty());
    }
}

#[test]
fn instructions_of_wrong_paths_are_recorded_with_who_flushed_them() {
    let setup = Setup {
        control: 0,
        period: 61,
        ..Setup::default()
    };
    let (found, rows) = run("wrong-paths", setup, "auto");
    let missed: HashSet<u64> = { rows.iter() }
        .filter(|row| row.redirect == "Mispredict")
        .map(|row| row.pc)
        .collect();
    let flushed: Vec<_> = found.iter().filter(|r| r[0] & FLUSHED != 0).collect();
    assert!(flushed.len() > 10 && flushed.len() < found.len());
    for record in flushed {
        assert_eq!((record[0] & NO_PC != 0, record[1]), (true, 0));
        assert!(missed.contains(&record[4]), "{record:x?}");
    }
}

#[test]
fn intervals_are_random_if_asked_for_and_of_cycles() {
    let setup = |control| Setup {
        control: 3 | control,
        period: 300,
        ..Setup::default()
    };
    let (fixed, rows) = run("fixed", setup(0), "auto");
    let (random, _) = run("random", setup(RAND), "auto");
    let sites = |found: &[[u64; 6]]| found.iter().map(|r| r[1]).collect::<HashSet<_>>().len();
    // 300 is a multiple of the accesses of a turn.
    assert_eq!((sites(&fixed), sites(&random)), (1, ACCESSES));
    let (least, most) = (fixed.len() * 8 / 10, fixed.len() * 12 / 10);
    assert!((least..=most).contains(&random.len()));

    let (cycles, _) = run("cycles", setup(CYC), "auto");
    let took = rows.last().unwrap().commit - rows[0].commit;
    let expected = took / 300;
    let found = cycles.len() as u64;
    assert!(
        found <= expected && found > expected * 7 / 10,
        "{found} of {expected}"
    );
}

#[test]
fn fetches_are_sampled() {
    let setup = Setup {
        control: FETCH,
        period: 11,
        ..Setup::default()
    };
    let (found, rows) = run("fetches", setup, "auto");
    let pcs: HashSet<u64> = rows.iter().map(|row| row.pc).collect();
    assert!(found.len() > 100);
    for [header, pc, _, latencies, _, pa] in found {
        assert_eq!(header & 7, 5);
        assert!(pcs.contains(&pc) && pa == (pc & !63) >> 2, "{pc:x} {pa:x}");
        assert!(latencies & 0xfff >= 4, "F0 to F4");
    }
}
