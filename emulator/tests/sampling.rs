//! Sampled instructions (Smpdis/Sspdis) of a supervisor's program, and those to which overflows of its counters are due (Sspesa), against
//! the trace of the same run.

use std::collections::{HashMap, HashSet};

use crate::common::bare_metal::{TraceRecord, run_program};

/// A supervisor that has its own loop sampled; machine mode prints the records.
const MEMORY: &str = concat!(include_str!("sampling/memory.S"), include_str!("common/hex.S"));

/// The loop of [`MEMORY`] with a counter that overflows; machine mode prints to which instruction each overflow is due.
const OVERFLOW: &str = concat!(include_str!("sampling/overflow.S"), include_str!("common/hex.S"));

const CHAIN: u64 = 0x8100_0000;
const STRIDE: u64 = 4160;
/// Instructions of a turn of the loop that access memory: two loads, a store, and an atomic.
const ACCESSES: usize = 4;

/// `spdisctl`.
const HPM3: u64 = 1 << 3;
const RAND: u64 = 1 << 57;
const CYC: u64 = 1 << 58;
const FETCH: u64 = 1 << 59;
/// `pdishdrev`.
const ADR2V: u64 = 1 << 33;
const FLUSHED: u64 = 1 << 34;
const TRANSFER: u64 = 4;
const MISPRED: u64 = 1 << 55;
const NO_PC: u64 = 1 << 57;

/// How the unit is set up.
#[derive(Clone, Copy, Default)]
struct Setup {
    control: u64,
    period: u64,
    mask: u64,
    matches: u64,
    filter: u64,
}

/// Returns what was printed, and the supervisor's records of the trace while the unit was on.
fn run(name: &str, setup: Setup, threads: &str) -> (Vec<[u64; 6]>, Vec<TraceRecord>) {
    let initial = (1 << 32) - setup.period;
    let values = [
        ("CONTROL |", format!("{} |", setup.control)),
        (", MASK", format!(", {}", setup.mask)),
        (", MATCH", format!(", {}", setup.matches)),
        (", FILTER", format!(", {}", setup.filter)),
        (", COUNTER", format!(", {}", initial << 32 | initial)),
    ];
    let (found, mut rows) = run_program(&format!("sampling-{name}"), MEMORY, &values, threads);
    let switches: Vec<usize> = (0..rows.len())
        .filter(|&n| rows[n].supervisor && rows[n].instruction.contains("0x5c0"))
        .collect();
    assert_eq!(switches.len(), 2, "it is switched on and off");
    rows.truncate(switches[1]);
    rows.drain(..=switches[0]);
    (found, rows)
}

/// Returns the rows of the trace that are selected: of those that `counts` takes every `period`-th, unless one is active then.
fn selected(
    rows: &[TraceRecord],
    period: usize,
    counts: impl Fn(&TraceRecord) -> bool,
) -> Vec<&TraceRecord> {
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
            let setup = Setup { control: 3 | HPM3, period, ..Setup::default() };
            let (found, rows) = run(&format!("accesses-{period}"), setup, threads);
            let counts =
                |row: &TraceRecord| ["Load", "Store", "Atomic"].contains(&row.class.as_str());
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
                    "LoadPeer" => &[3, 7, 8, 10],
                    _ => &[1],
                };
                assert!(allowed.contains(&source), "{source} of {row:?}");
                assert_eq!(header & HPM3 != 0, row.tea.contains("ST-L1"));
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
    let setup = Setup { control: 3, period: ACCESSES as u64 * 25, ..Setup::default() };
    let initial = Setup { period: setup.period, ..setup };
    let (found, _) = run("chain", initial, "auto");
    // The last access of each 25th turn: always the same instruction.
    assert!(found.len() > 70);
    assert!(found.iter().all(|record| record[1] == found[0][1]));
    let (found, _) = run("links", Setup { control: 1, period: 3 * 50 + 1, ..setup }, "auto");
    let links: Vec<u64> =
        found.iter().filter(|r| r[4] >= CHAIN).map(|r| (r[4] - CHAIN) / STRIDE).collect();
    assert!(links.len() > 10 && links.windows(2).all(|pair| pair[0] < pair[1]), "{links:?}");
}

#[test]
fn filters_let_through_what_they_say() {
    // Mispredicted control transfers.
    let mispredicted =
        Setup { control: 4, period: 3, mask: MISPRED, matches: MISPRED, ..Setup::default() };
    let (found, rows) = run("mispredicted", mispredicted, "auto");
    let transfers = selected(&rows, 3, |row| row.class == "Branch");
    let missed: Vec<u64> =
        transfers.iter().filter(|row| row.redirect == "Mispredict").map(|row| row.pc).collect();
    assert!(missed.len() > 50);
    let pcs: Vec<u64> = found.iter().map(|record| record[1]).collect();
    assert_eq!(pcs, missed);
    assert!(found.iter().all(|r| r[0] & 7 == TRANSFER && r[0] & MISPRED != 0));

    // Loads that take at least 40 cycles, and those that do not.
    for (filter, long) in [(40, true), (40 | 1 << 12, false)] {
        let setup = Setup { control: 1, period: 5, filter, ..Setup::default() };
        let (found, rows) = run(&format!("latency-{long}"), setup, "auto");
        let expected = selected(&rows, 5, |row| row.class == "Load" || row.class == "Atomic");
        let expected = expected.iter().filter(|row| (row.commit - row.decode >= 40) == long);
        assert_eq!(found.len(), expected.count());
        assert!(!found.is_empty());
    }
}

#[test]
fn instructions_of_wrong_paths_are_recorded_with_who_flushed_them() {
    let setup = Setup { control: 0, period: 61, ..Setup::default() };
    let (found, rows) = run("wrong-paths", setup, "auto");
    let missed: HashSet<u64> =
        rows.iter().filter(|row| row.redirect == "Mispredict").map(|row| row.pc).collect();
    let flushed: Vec<_> = found.iter().filter(|r| r[0] & FLUSHED != 0).collect();
    assert!(flushed.len() > 10 && flushed.len() < found.len());
    for record in flushed {
        assert_eq!((record[0] & NO_PC != 0, record[1]), (true, 0));
        assert!(missed.contains(&record[4]), "{record:x?}");
    }
}

#[test]
fn intervals_are_random_if_asked_for_and_of_cycles() {
    let setup = |control| Setup { control: 3 | control, period: 300, ..Setup::default() };
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
    assert!(found <= expected && found > expected * 7 / 10, "{found} of {expected}");
}

#[test]
fn fetches_are_sampled_whether_completed_or_aborted() {
    let setup = Setup { control: FETCH, period: 11, ..Setup::default() };
    let (found, rows) = run("fetches", setup, "auto");
    let pcs: HashSet<u64> = rows.iter().map(|row| row.pc).collect();
    let missed: HashSet<u64> =
        rows.iter().filter(|row| row.redirect == "Mispredict").map(|row| row.pc).collect();
    let (aborted, completed): (Vec<_>, Vec<_>) = found
        .into_iter()
        .inspect(|record| assert_eq!(record[0] & 7, 5))
        .partition(|record| record[0] & FLUSHED != 0);
    assert!(completed.len() > 100 && aborted.len() > 10);
    for [header, pc, _, _, flusher, _] in aborted {
        assert_eq!((header & NO_PC != 0, pc), (true, 0));
        assert!(missed.contains(&flusher), "{flusher:x}");
    }
    for [_, pc, _, latencies, _, pa] in completed {
        assert!(pcs.contains(&pc) && pa == (pc & !63) >> 2, "{pc:x} {pa:x}");
        assert!(latencies & 0xfff >= 4, "F0 to F4");
    }
}

/// A record is of an instruction that incurs an event.
type Incurs = fn(&TraceRecord) -> bool;

/// Samples that the hart recorded in memory, eight words a line, and at last what the interrupt left; with the trace.
fn recorded(
    event: u64,
    first: u64,
    period: u64,
    threads: &str,
) -> (Vec<[u64; 8]>, Vec<TraceRecord>) {
    let values = [
        ("FIRST", first.to_string()),
        ("EVENT", event.to_string()),
        ("PERIOD", period.to_string()),
    ];
    let source = concat!(include_str!("sampling/recorded.S"), include_str!("common/hex.S"));
    run_program(&format!("recorded-{event}"), source, &values, threads)
}

#[test]
fn samples_of_counters_are_recorded_in_memory_until_there_is_no_room() {
    // Instructions, mispredictions, loads that missed in the L1, and cycles.
    let events: [(u64, u64, Option<Incurs>); 4] = [
        (2, 501, Some(|row| row.supervisor && row.redirect != "Interrupt")),
        (6, 17, Some(|row| row.redirect == "Mispredict")),
        (2089, 29, Some(|row| row.tea.contains("ST-L1"))),
        (1, 10007, None),
    ];
    let by_threads = ["one", "two"].map(|threads| {
        events.map(|(event, period, incurs)| {
            let first = period - 4;
            let (found, rows) = recorded(event, first, period, threads);
            judge_recorded(&found, &rows, event, (first, period), incurs);
            found
        })
    });
    assert_eq!(by_threads[0], by_threads[1]);
}

/// The words of a sample with those of registers and of 32 control transfer records.
const SAMPLE: usize = 8 + 32 + 32 * 3;

fn judge_recorded(
    found: &[[u64; 8]],
    rows: &[TraceRecord],
    event: u64,
    (first, period): (u64, u64),
    incurs: Option<Incurs>,
) {
    let (last, lines) = found.split_last().unwrap();
    let words = lines.as_flattened();
    assert_eq!(words.len() % SAMPLE, 0);
    assert_eq!(words.len() / SAMPLE, 65536 / (8 * SAMPLE));
    let first_of_loop = rows.iter().find(|row| row.supervisor && row.instruction.contains("s8,s8"));
    let first_of_loop = first_of_loop.unwrap().pc;
    let mut at = rows.iter().position(|row| row.supervisor).unwrap();
    let mut to_go = first;
    let mut before = 0;
    for sample in words.chunks_exact(SAMPLE) {
        let &[header, pc, time, _, address, _, info, periods] = sample.first_chunk().unwrap();
        let registers = &sample[8..40];
        let transfers = &sample[40..];
        assert_ne!(header & 8, 0, "HPM3");
        assert!(time >= before);
        before = time;
        // Counter 3, 17 units, of supervisor mode, with both groups, and precise.
        let exact = 1 << 62;
        assert_eq!(info & !exact, PRECISE | 1 << 19 | 1 << 18 | 1 << 16 | 17 << 8 | 3);
        assert_eq!(periods, 1);
        let Some(incurs) = incurs else {
            assert!(rows.iter().any(|row| row.supervisor && row.pc == pc));
            continue;
        };
        assert_ne!(info & exact, 0);
        let events = (at..rows.len()).filter(|&n| incurs(&rows[n]));
        let due = { events }.nth(to_go as usize - 1).unwrap();
        assert_eq!(pc, rows[due].pc, "{event}, record {due}");
        if event > 1000 {
            assert!(header >> 46 & 15 >= 3 && address >= CHAIN, "{header:x}");
        }
        // Registers and transfers are those right after it.
        assert_eq!(registers[0], rows[due + 1].pc);
        let turns = rows[..=due].iter().filter(|row| row.pc == first_of_loop);
        assert_eq!(registers[24], turns.count() as u64, "s8");
        let jumped = |n: &usize| {
            let next = rows[n + 1].pc;
            rows[*n].supervisor && next != rows[*n].pc + 4
        };
        if let Some(source) = (0..=due).rev().find(jumped) {
            let target = rows[source + 1].pc;
            assert_eq!(transfers[0], rows[source].pc | 1, "valid");
            assert_eq!(transfers[1] & !1, target);
        }
        at = due + 1;
        to_go = period;
    }
    // Without room for a record, the overflow raises an interrupt as ever, and the counter counts on from zero.
    let &[pc, data, mepc, count, ..] = last;
    assert_eq!(data, PRECISE | ENABLED | MEMORY_TOO | 3);
    if let Some(incurs) = incurs {
        let events = (at..rows.len()).filter(|&n| incurs(&rows[n]));
        let due = { events }.nth(period as usize - 1).unwrap();
        assert_eq!(pc, rows[due].pc);
        assert_eq!(mepc, rows[due + 1].pc);
        assert_eq!(count, 0);
    }
}

/// Returns what machine mode kept of each overflow (`shpmspc`, `shpmsdata`, header and address of the record, `mepc`), and
/// the trace.
fn overflows(
    event: u64,
    period: u64,
    step: u64,
    threads: &str,
) -> (Vec<[u64; 5]>, Vec<TraceRecord>) {
    let values = [
        ("SAMPLES", "400".to_owned()),
        ("EVENT", event.to_string()),
        ("PERIOD", period.to_string()),
        ("STEP", step.to_string()),
    ];
    run_program(&format!("overflow-{event}"), OVERFLOW, &values, threads)
}

const PRECISE: u64 = 1 << 63;
const ENABLED: u64 = 1 << 62;
const MEMORY_TOO: u64 = 1 << 61;

#[test]
fn an_overflow_is_due_to_the_instruction_that_incurs_the_event() {
    // Instructions, mispredictions, and loads that missed in the L1.
    let events: [(u64, u64, Incurs); 3] = [
        (2, 501, |row| !row.redirect.starts_with("Ex") && row.redirect != "Interrupt"),
        (6, 17, |row| row.redirect == "Mispredict"),
        (2089, 29, |row| row.tea.contains("ST-L1")),
    ];
    for threads in ["one", "two"] {
        for (event, period, incurs) in events {
            let (found, rows) = overflows(event, period, 0, threads);
            assert_eq!(found.len(), 400);
            // Events count from the first instruction of the supervisor on, and again from each return of the handler.
            let mut at = rows.iter().position(|row| row.supervisor).unwrap();
            for [pc, data, header, address, mepc] in found {
                assert_eq!(data, PRECISE | ENABLED | MEMORY_TOO | 3, "{event}");
                let mut events =
                    (at..rows.len()).filter(|&n| rows[n].supervisor && incurs(&rows[n]));
                let due = events.nth(period as usize - 1).unwrap();
                assert_eq!(pc, rows[due].pc, "{event}, record {due}");
                assert_ne!(header & 8, 0, "HPM3");
                // Ssplcofi: the interrupt comes before the next instruction.
                assert_eq!(mepc, rows[due + 1].pc, "{event}, record {due}");
                assert_eq!(rows[due + 1].redirect, "Interrupt");
                if event > 1000 {
                    assert!(header >> 46 & 15 >= 3 && address >= CHAIN, "{header:x}");
                }
                let handled = (due..rows.len()).find(|&n| !rows[n].supervisor).unwrap();
                let back = (handled..rows.len()).find(|&n| rows[n].supervisor);
                at = back.unwrap_or(rows.len());
            }
        }
    }
}

/// Cycles are sampled in proportion to the time that each instruction takes, as the Oracle charges it.
#[test]
fn an_overflow_of_cycles_is_time_proportional() {
    let (found, rows) = overflows(1, 1009, 1, "auto");
    let mut sampled: HashMap<u64, f64> = HashMap::new();
    for [pc, data, ..] in &found {
        assert_ne!(data & PRECISE, 0);
        *sampled.entry(*pc).or_default() += 1.0 / found.len() as f64;
    }
    // The Oracle: those that commit in a cycle share it; else the one at the head, or that emptied the ROB.
    let mut oracle: HashMap<u64, f64> = HashMap::new();
    let mut at = 0;
    while at < rows.len() {
        let commit = rows[at].commit;
        let end = (at..rows.len()).find(|&n| rows[n].commit != commit).unwrap_or(rows.len());
        if at > 0 && rows[at..end].iter().all(|row| row.supervisor) && rows[at - 1].supervisor {
            let before = &rows[at - 1];
            let gap = commit - before.commit - 1;
            let empty = rows[at].dispatch.saturating_sub(before.commit + 1).min(gap);
            let offender = match before.redirect.as_str() {
                "None" => rows[at].pc,
                _ => before.pc,
            };
            *oracle.entry(offender).or_default() += empty as f64;
            *oracle.entry(rows[at].pc).or_default() += (gap - empty) as f64;
            for row in &rows[at..end] {
                *oracle.entry(row.pc).or_default() += 1.0 / (end - at) as f64;
            }
        }
        at = end;
    }
    let total: f64 = oracle.values().sum();
    let share = |pc: &u64| oracle.get(pc).map_or(0.0, |cycles| cycles / total);
    let agrees: f64 = sampled.iter().map(|(pc, sampled)| sampled.min(share(pc))).sum();
    assert!(agrees > 0.93, "error {:.3} of {} samples", 1.0 - agrees, found.len());
    // Each address of a commit group is sampled, not one of them more than the others.
    let hot = |pc: &&u64| share(pc) > 0.01;
    let missing: Vec<_> =
        oracle.keys().filter(hot).filter(|pc| !sampled.contains_key(pc)).collect();
    assert!(missing.is_empty(), "{missing:x?}");
}
