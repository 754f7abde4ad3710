//! Counts of every event in each privilege: what the guest's counter shows of a region beside the host's own count, on one
//! hart by one and by two threads of the host, on two harts, and after a checkpoint in the region's middle.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Output;

use isa::PerfEvent;

use crate::common::{assemble, json, scratch, stderr, stdout, tipsim};

/// Bits of `mhpmevent`: not in machine, supervisor, user mode.
const MINH: u64 = 1 << 62;
const SINH: u64 = 1 << 61;
const UINH: u64 = 1 << 60;
/// Filters that count in all modes, and in one mode alone: machine, supervisor, user.
const FILTERS: [u64; 4] = [0, SINH | UINH, MINH | UINH, MINH | SINH];
const COUNTERS: usize = 29;

/// Assembles the program with its counters set to `selectors`, and with `turns` turns in each mode.
fn program(dir: &Path, turns: u32, selectors: &[u64]) -> PathBuf {
    let mut all = selectors.to_vec();
    all.resize(COUNTERS, 0);
    let list: Vec<String> = all.iter().map(u64::to_string).collect();
    let source =
        include_str!("matrix.S").replace(".dword SELECTORS", &format!(".dword {}", list.join(",")));
    let source = source.replace("li s0, TURNS", &format!("li s0, {turns}"));
    assemble(dir, "matrix", &source)
}

/// Returns what the counters showed.
fn shown(output: &Output) -> Vec<u64> {
    let text = stdout(output);
    let values = text.lines().map(|line| u64::from_str_radix(line, 16));
    values.collect::<Result<_, _>>().unwrap_or_else(|e| panic!("{e}: {text}{}", stderr(output)))
}

/// Runs the program, and returns what its counters showed and what the host counted of the region.
fn beside_the_host(elf: &Path, with: &[&str]) -> (Vec<u64>, HashMap<String, u64>) {
    let file = elf.with_extension("json");
    let mut exec = tipsim();
    exec.args(["exec", "--mode", "timing"]).args(with);
    let output = exec.arg("--counters").arg(&file).arg(elf).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let counts = json(&file);
    assert_eq!(counts["region"], true);
    let host = counts["harts"][0].as_object().unwrap().iter();
    let host = host.map(|(name, count)| (name.clone(), count.as_u64().unwrap()));
    (shown(&output), host.collect())
}

/// Returns how much more the guest's counter may show than the host counted: what belongs to the instruction that lets the
/// counters go, of which they see the execution, to the mark behind it, and to the fetch of the instruction that stops them;
/// 0 for the events that are not listed.
fn most_beside(event: PerfEvent) -> u64 {
    use PerfEvent as E;
    match event {
        // Two instructions, the mark and the access to a CSR, which flushes; and the packet of the one that stops the counters.
        E::Instructions | E::SlotsRetiring | E::CyclesCommitting => 2,
        E::Decoded | E::DecodedInstructions => 2,
        E::IntAlu | E::Csr | E::Flushes | E::Redirects => 1,
        E::IssuedInt0 | E::IssuedInt1 | E::IntQueueOccupancy => 1,
        E::L1iReads | E::ItlbReads | E::FetchPackets => 1,
        // The access to a CSR waits until the machine is empty, then fetch begins anew.
        E::Cycles | E::ReferenceCycles => 18,
        E::CyclesStalled => 8,
        E::CyclesFlushed | E::StallsSerialize => 7,
        E::CyclesDrained => 1,
        E::StalledAlu | E::StalledSerialize => 4,
        E::RobOccupancy => 10,
        // Slots of decode in these cycles, four a cycle, are known with the next instruction that is decoded.
        E::Slots => 77,
        E::SlotsBackend | E::SlotsCore => 52,
        E::SlotsBadSpeculation | E::SlotsMachineClear | E::SlotsFlush => 23,
        E::SlotsCoreSerialize => 20,
        E::SlotsCoreExecution | E::SlotsCoreCommit => 16,
        _ => 0,
    }
}

#[test]
fn each_event_in_each_privilege_is_what_the_host_counts() {
    let dir = scratch("counters-matrix");
    let mut equal = PerfEvent::ALL.len() as u32;
    let mut occur = [0; 4];
    let mut never = Vec::new();
    // The third configuration has what is scarce or not there in the others.
    let few = "--harts 2 --set l1i.prefetch=true --set issue.int_width=5 --set l2.mshrs=2 --set rename.int_regs=48 --set rename.fp_regs=40";
    let configurations =
        ["--threads one", "--threads two", few].map(|with| with.split(' ').collect::<Vec<_>>());
    for events in PerfEvent::ALL.chunks(COUNTERS / FILTERS.len()) {
        let each = |event: &PerfEvent| FILTERS.map(|filter| filter | u64::from(event.selector()));
        let selectors: Vec<u64> = events.iter().flat_map(each).collect();
        let elf = program(&dir, 20, &selectors);
        let mut found = Vec::new();
        for with in &configurations {
            let (values, host) = beside_the_host(&elf, with);
            assert_eq!(values.len(), COUNTERS);
            for (event, values) in events.iter().zip(values.chunks(FILTERS.len())) {
                let name = event.row().name;
                let [all, machine, supervisor, user] = values.try_into().unwrap();
                assert_eq!(all, machine + supervisor + user, "{name}: {values:?}");
                let more = all.checked_sub(host[name]);
                let more = more.unwrap_or_else(|| panic!("{name}: {all} of {}", host[name]));
                let most = most_beside(*event);
                assert!(more <= most, "{name}: {all} of {}, {most} more", host[name]);
                equal -= u32::from(most != 0 && with == &configurations[0]);
            }
            found.push(values);
        }
        assert_eq!(found[0], found[1], "by one thread and by two");
        for (n, event) in events.iter().enumerate() {
            let total =
                |filter| found.iter().map(|values| values[FILTERS.len() * n + filter]).sum::<u64>();
            for (filter, occur) in occur.iter_mut().enumerate() {
                *occur += u32::from(total(filter) != 0);
            }
            if total(0) == 0 {
                never.push(event.row().name);
            }
        }
    }
    let all = PerfEvent::ALL.len();
    println!(
        "{equal} of {all} are equal; {occur:?} occur in all, in machine, supervisor, user mode; never: {never:?}"
    );
    // README.md of the emulator has these numbers.
    let unit = ["SAMPLES", "COLLISIONS", "FILTERED", "DROPPED"].map(|what| format!("PDIS.{what}"));
    assert_eq!((equal, &never[..1]), (203, &["MEM.L2.PENDING"][..]));
    assert_eq!(never[1..], unit, "no instruction is sampled");
    assert_eq!(occur, [231, 204, 225, 207]);
}

/// Bits of `mhpmevent`: a threshold of 1, and cycles in which the event occurs less often.
const ONCE: u64 = 1 << 32;
const INVERT: u64 = 1 << 40;

#[test]
fn conditions_of_a_privilege_are_of_its_own_cycles() {
    const WIDTH: u64 = 4;
    let dir = scratch("counters-conditions");
    for event in [PerfEvent::Instructions, PerfEvent::IntAlu, PerfEvent::Decoded] {
        let selectors: Vec<u64> = FILTERS[1..]
            .iter()
            .flat_map(|filter| {
                let own = filter | u64::from(event.selector());
                let thresholds = (1..=WIDTH).map(move |n| own | (n * ONCE));
                let cycles = filter | u64::from(PerfEvent::Cycles.selector());
                [own].into_iter().chain(thresholds).chain([own | ONCE | INVERT, cycles])
            })
            .collect();
        let elf = program(&dir, 100, &selectors);
        let (values, _) = beside_the_host(&elf, &["--threads", "one"]);
        let (name, each) = (event.row().name, WIDTH as usize + 3);
        // Counting begins and ends in machine mode, in the middle of a cycle.
        for (mode, edges) in [(0, 8), (1, 0), (2, 0)] {
            let own = &values[mode * each..][..each];
            let by_threshold: u64 = own[1..=WIDTH as usize].iter().sum();
            assert!(own[0] > 100, "{name}, mode {mode}: {own:?}");
            assert!(own[0].abs_diff(by_threshold) <= edges, "{name}, mode {mode}: {own:?}");
            // The other modes sleep, too, in cycles in which no condition is tested.
            if mode != 2 {
                continue;
            }
            let (met, not_met, cycles) = (own[1], own[each - 2], own[each - 1]);
            assert!((met + not_met).abs_diff(cycles) <= edges, "{name}, mode {mode}: {own:?}");
        }
    }
}

/// Limit of instructions for the run that is saved, of a program of a million. `tipsim boot` looks at its limit every
/// millisecond of the guest's time, which is after some 700,000.
const MIDDLE: u64 = 500_000;

/// Runs `tipsim boot` from reset or a checkpoint, up to a number of instructions if the machine is to be saved then.
fn boot(from: (&str, &Path), with: &[&str], save: Option<(u64, &Path)>) -> Output {
    let mut command = tipsim();
    command.args(["boot", "--mode", "timing"]).args(with);
    command.arg(from.0).arg(from.1);
    if let Some((until, file)) = save {
        command.args(["--max-insts", &until.to_string(), "--save"]).arg(file);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    output
}

#[test]
fn a_checkpoint_in_the_region_changes_no_count() {
    let dir = scratch("counters-checkpoint");
    let half = dir.join("half");
    for (n, events) in PerfEvent::ALL.chunks(COUNTERS).enumerate() {
        let selector = |(n, event): (usize, &PerfEvent)| {
            FILTERS[n % FILTERS.len()] | u64::from(event.selector())
        };
        let selectors: Vec<u64> = (n..).zip(events).map(selector).collect();
        let elf = program(&dir, 270, &selectors);
        for harts in ["1", "2"] {
            let from_reset = ["--harts", harts, "--threads", "one"];
            let whole = boot(("--firmware", &elf), &from_reset, None);
            let first = boot(("--firmware", &elf), &from_reset, Some((MIDDLE, &half)));
            assert_eq!(stdout(&first), "", "saved in the region");
            // Two threads take turns slowly on a host that is busy: once is enough.
            let threads = if n == 0 { "two" } else { "one" };
            let second = boot(("--restore", &half), &["--threads", threads], None);
            let [whole, second] = [whole, second].map(|output| shown(&output));
            assert_eq!(whole.len(), COUNTERS);
            for ((event, whole), second) in events.iter().zip(whole).zip(second) {
                assert_eq!(second, whole, "{} on {harts}", event.row().name);
            }
        }
    }
}
