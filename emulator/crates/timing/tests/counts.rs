//! What is counted by following commits, beside what one finds by looking at every cycle of random programs.

use std::collections::HashMap;

use crate::random::program;
use commit_trace::{Commit, CommitSink, CycleClass, Event, Redirect, StaticInfo, TeaEvents};
use devices::{Bus, Clock};
use isa::{InstClass, PerfEvent, Selection, TimingModel};
use machine::{Hart, Limit, RunExit};
use timing::{Core, Preset};

/// Keeps everything.
#[derive(Default)]
struct Records {
    commits: Vec<Commit>,
    /// Cycles asleep: from after the first to the second.
    sleeps: Vec<(u64, u64)>,
    classes: Vec<InstClass>,
}

impl CommitSink for Records {
    fn commit(&mut self, commit: &Commit) {
        self.commits.push(*commit);
    }

    fn define(&mut self, static_info: &StaticInfo) {
        self.classes.push(isa::decode(static_info.raw).class);
    }

    fn event(&mut self, cycle: u64, event: Event) {
        if let Event::Idle { cycles } = event {
            self.sleeps.push((cycle, cycle + cycles));
        }
    }
}

/// A condition that a counter is set to.
fn condition(event: PerfEvent, threshold: u64, invert: bool, edge: bool) -> Selection {
    let bits = threshold << 32 | u64::from(invert) << 40 | u64::from(edge) << 41;
    let selection = Selection::new(u64::from(event.selector()) | bits);
    assert!(selection.condition().is_some(), "{event:?}");
    selection
}

/// Runs a program with these counters, while all else is followed, too.
fn run(seed: u64, preset: &Preset, selections: &[Selection]) -> Core<Records> {
    let mut bus = Bus::new(16 << 20, 1, Clock::new(1_600_000_000, 10_000_000)).unwrap();
    let mut hart = Hart::new(0);
    program(seed, &mut bus, &mut hart);
    let mut core = Core::new(preset, Records::default());
    core.count_all();
    for (counter, &selection) in selections.iter().enumerate() {
        core.select(counter, selection);
    }
    let exit = hart.run(&mut bus, &mut core, Limit::instructions(20_000));
    assert_eq!(exit, RunExit::Limit);
    core
}

/// How often events occur, in the cycles in which the core is awake.
struct Cycles {
    awake: Vec<u64>,
    events: HashMap<u64, Vec<(PerfEvent, u32)>>,
}

impl Cycles {
    /// Returns the cycles from 1 to before `end` in which the core is awake, without events.
    fn before(end: u64, records: &Records) -> Self {
        let mut awake = Vec::new();
        let mut from = 1;
        for &(asleep, woken) in &records.sleeps {
            awake.extend(from..(asleep + 1).min(end));
            from = woken + 1;
        }
        awake.extend(from..end);
        Self { awake, events: HashMap::new() }
    }

    fn occurs(&mut self, cycle: u64, event: PerfEvent, times: u32) {
        self.events.entry(cycle).or_default().push((event, times));
    }

    /// Returns the cycles that a selection's condition counts.
    fn counted(&self, selection: Selection) -> u64 {
        let condition = selection.condition().unwrap();
        let wanted: Vec<_> = selection.events().collect();
        let (mut total, mut before) = (0, false);
        for &cycle in &self.awake {
            let times = |&(event, times)| if wanted.contains(&event) { times } else { 0 };
            let value: u32 =
                self.events.get(&cycle).map_or(0, |events| events.iter().map(times).sum());
            let met = (value >= u32::from(condition.threshold)) != condition.invert;
            total += u64::from(met && !(condition.edge && before));
            before = met;
        }
        total
    }
}

fn class_of(records: &Records, commit: &Commit) -> InstClass {
    records.classes[commit.inst.0 as usize]
}

fn is_load(class: InstClass) -> bool {
    matches!(class, InstClass::Load | InstClass::FpLoad)
}

const STALLS: [PerfEvent; 9] = [
    PerfEvent::StalledAlu,
    PerfEvent::StalledL1,
    PerfEvent::StalledL2,
    PerfEvent::StalledLlc,
    PerfEvent::StalledDram,
    PerfEvent::StalledStore,
    PerfEvent::StalledDivider,
    PerfEvent::StalledSerialize,
    PerfEvent::StalledDevice,
];

/// What the ROB's head does in each cycle.
fn at_commit(records: &Records) -> Cycles {
    // More could leave in the last cycle.
    let end = records.commits.last().unwrap().commit;
    let mut cycles = Cycles::before(end, records);
    for commit in &records.commits {
        let mut occurs = |event| cycles.occurs(commit.commit, event, 1);
        if commit.redirect.is_trap() {
            continue;
        }
        occurs(PerfEvent::Instructions);
        if commit.redirect == Redirect::Mispredict {
            occurs(PerfEvent::BranchMisses);
        }
        if class_of(records, commit) == InstClass::Store {
            occurs(PerfEvent::Store);
        }
        if is_load(class_of(records, commit)) && commit.class == CycleClass::LoadDram {
            occurs(PerfEvent::RetiredLoadDram);
        }
        if commit.tea.contains(TeaEvents::ST_L1) {
            occurs(PerfEvent::RetiredL1dMiss);
        }
    }
    // The oldest instruction of a cycle is the first that leaves in it, or later.
    let mut next = records.commits.iter().peekable();
    for cycle in cycles.awake.clone() {
        while next.peek().is_some_and(|commit| commit.commit < cycle) {
            next.next();
        }
        let head = next.peek().unwrap();
        if head.commit > cycle && head.dispatch <= cycle {
            cycles.occurs(cycle, PerfEvent::CyclesStalled, 1);
            cycles.occurs(cycle, STALLS[head.class as usize], 1);
        }
    }
    cycles
}

/// How many instructions are in the ROB in each cycle, up to where the last enters it.
fn in_rob(records: &Records) -> Cycles {
    let end = records.commits.last().unwrap().dispatch;
    let mut cycles = Cycles::before(end, records);
    for commit in &records.commits {
        for cycle in commit.dispatch..=commit.commit {
            cycles.occurs(cycle, PerfEvent::RobOccupancy, 1);
            if is_load(class_of(records, commit)) {
                cycles.occurs(cycle, PerfEvent::LoadQueueOccupancy, 1);
            }
        }
    }
    cycles
}

/// What decode does in each cycle, before that of the last group.
fn at_decode(records: &Records, width: u32, rob_rows: usize) -> Cycles {
    use PerfEvent as E;
    let commits = &records.commits;
    let firsts: Vec<usize> = (0..commits.len()).filter(|&n| commits[n].first_of_row).collect();
    let end = commits[*firsts.last().unwrap()].decode;
    let mut cycles = Cycles::before(end, records);
    let bad = |redirect: Redirect, tea: TeaEvents| match redirect {
        Redirect::None => None,
        Redirect::Mispredict => Some(E::SlotsMispredict),
        Redirect::Flush => Some(E::SlotsFlush),
        Redirect::Exception if tea.contains(TeaEvents::FL_MO) => Some(E::SlotsOrder),
        Redirect::Exception | Redirect::Interrupt => Some(E::SlotsTrap),
    };
    let awake = cycles.awake.clone();
    let late = |tea: TeaEvents| match tea {
        tea if tea.contains(TeaEvents::DR_TLB) => E::SlotsItlb,
        tea if tea.contains(TeaEvents::DR_L1) => E::SlotsIcache,
        _ => E::SlotsResteer,
    };
    for cycle in 1..commits[0].decode {
        cycles.occurs(cycle, late(commits[0].tea), width);
        cycles.occurs(cycle, E::SlotsFrontend, width);
    }
    for pair in firsts.windows(2) {
        let (group, next) = (&commits[pair[0]..pair[1]], &commits[pair[1]]);
        let last = group.last().unwrap();
        let retired = group.iter().filter(|c| !c.redirect.is_trap()).count() as u32;
        let bad = bad(last.redirect, last.tea);
        let decode = group[0].decode;
        let mut slots = |cycle, event, times| {
            cycles.occurs(cycle, event, times);
            let parent = match event {
                E::SlotsMispredict | E::SlotsFlush | E::SlotsOrder | E::SlotsTrap => {
                    E::SlotsBadSpeculation
                }
                E::SlotsResteer | E::SlotsIcache | E::SlotsItlb | E::SlotsFetchBandwidth => {
                    E::SlotsFrontend
                }
                _ => return,
            };
            cycles.occurs(cycle, parent, times);
        };
        slots(decode, E::Decoded, group.len() as u32);
        slots(decode, E::SlotsRetiring, retired);
        slots(decode, bad.unwrap_or(E::SlotsFetchBandwidth), width - retired);
        let mut wrong = 0;
        let near = pair[0].saturating_sub(1000);
        let rows: Vec<(u64, u64)> = firsts
            .windows(2)
            .filter(|row| row[0] >= near && row[0] <= pair[0])
            .map(|row| (commits[row[0]].decode, commits[row[1] - 1].commit))
            .collect();
        let from = awake.partition_point(|&cycle| cycle <= decode);
        let to = awake.partition_point(|&cycle| cycle < next.decode);
        for &cycle in &awake[from..to] {
            // Behind a serialising instruction decode waits until that is gone; on a wrong path, when the ROB is full.
            let on_wrong_path = match bad {
                Some(E::SlotsMispredict) => cycle + 5 < next.decode,
                Some(_) => cycle <= last.commit,
                None => false,
            };
            let rows = rows.iter().filter(|&&(decode, leaves)| decode < cycle && leaves >= cycle);
            if on_wrong_path && (bad == Some(E::SlotsFlush) || rows.count() + wrong >= rob_rows) {
                slots(cycle, E::SlotsBackend, width);
                continue;
            }
            wrong += usize::from(on_wrong_path);
            // The ROB has an instruction from the cycle after its dispatch on.
            match bad {
                Some(bad) => slots(cycle, bad, width),
                None if cycle + 1 < last.dispatch => slots(cycle, E::SlotsBackend, width),
                None => slots(cycle, late(next.tea), width),
            }
        }
    }
    cycles
}

#[test]
fn conditions_hold_in_the_cycles_in_which_one_sees_them_hold() {
    use PerfEvent as E;
    let of_commit = [
        condition(E::Instructions, 1, false, false),
        condition(E::Instructions, 2, false, false),
        condition(E::Instructions, 4, false, true),
        condition(E::Instructions, 1, true, false),
        condition(E::Instructions, 1, true, true),
        condition(E::BranchMisses, 1, false, true),
        condition(E::Store, 2, false, false),
        condition(E::RetiredLoadDram, 1, false, false),
        condition(E::RetiredL1dMiss, 1, true, false),
        condition(E::CyclesStalled, 1, false, true),
        condition(E::StalledAlu, 1, false, true),
        condition(E::StalledDram, 1, true, false),
    ];
    let of_rob = [
        condition(E::RobOccupancy, 1, false, false),
        condition(E::RobOccupancy, 20, false, false),
        condition(E::RobOccupancy, 30, false, true),
        condition(E::LoadQueueOccupancy, 4, true, false),
    ];
    let of_decode = [
        condition(E::Decoded, 1, true, false),
        condition(E::Decoded, 3, false, true),
        condition(E::SlotsRetiring, 2, false, false),
        condition(E::SlotsFrontend, 3, false, false),
        condition(E::SlotsBackend, 1, false, true),
        condition(E::SlotsBadSpeculation, 1, false, false),
        condition(E::SlotsFetchBandwidth, 1, false, false),
        condition(E::SlotsResteer, 2, false, true),
    ];
    let selections = [&of_commit[..], &of_rob, &of_decode].concat();
    let mut nothing = selections.clone();
    for seed in 0..6 {
        let preset = Preset::load(["boom-4w", "mega-boom"][seed as usize % 2]).unwrap();
        let core = run(seed, &preset, &selections);
        let records = core.sink();
        let width = preset.decode.width;
        let cycles = [
            (&of_commit[..], at_commit(records)),
            (&of_rob, in_rob(records)),
            (&of_decode, at_decode(records, width, (preset.rob.entries / width) as usize)),
        ];
        let expected = cycles
            .iter()
            .flat_map(|(selections, cycles)| selections.iter().map(|&s| cycles.counted(s)));
        for (counter, expected) in expected.enumerate() {
            let selection = selections[counter];
            let what: Vec<_> = selection.events().collect();
            let found = core.selected(counter);
            assert_eq!(found, expected, "{seed}: {what:?}, {selection:?}");
            if found != 0 {
                nothing.retain(|&other| other != selection);
            }
        }
    }
    assert!(nothing.is_empty(), "never: {nothing:?}");
}

#[test]
fn totals_add_up() {
    use PerfEvent as E;
    for seed in 0..24 {
        let preset = Preset::load(["boom-4w", "rtl-mega"][seed as usize % 2]).unwrap();
        let core = run(seed, &preset, &[]);
        let count = |event: PerfEvent| core.count(event);
        let sum = |events: &[PerfEvent]| events.iter().map(|&event| count(event)).sum::<u64>();
        let stats = core.stats();
        assert_eq!(sum(&STALLS), stats.cycles_stalled, "{seed}");
        assert_eq!(count(E::SlotsRetiring), stats.instructions, "{seed}");
        let traps = stats.exceptions + stats.interrupts + stats.order_failures;
        assert_eq!(count(E::Decoded), stats.instructions + traps, "{seed}");
        assert_eq!(core.sink().commits.len() as u64, count(E::Decoded));
        let levels = [E::SlotsRetiring, E::SlotsFrontend, E::SlotsBackend, E::SlotsBadSpeculation];
        assert_eq!(sum(&levels), count(E::Slots), "{seed}");
        let parts: [(PerfEvent, &[PerfEvent]); 6] = [
            (E::SlotsFrontend, &[E::SlotsFetchLatency, E::SlotsFetchBandwidth]),
            (E::SlotsFetchLatency, &[E::SlotsIcache, E::SlotsItlb, E::SlotsResteer]),
            (E::SlotsBadSpeculation, &[E::SlotsMispredict, E::SlotsMachineClear]),
            (E::SlotsMachineClear, &[E::SlotsFlush, E::SlotsOrder, E::SlotsTrap]),
            (E::SlotsBackend, &[E::SlotsMemory, E::SlotsCore]),
            (
                E::SlotsMemory,
                &[
                    E::SlotsMemoryL1,
                    E::SlotsMemoryL2,
                    E::SlotsMemoryLlc,
                    E::SlotsMemoryDram,
                    E::SlotsMemoryStore,
                    E::SlotsMemoryDevice,
                ],
            ),
        ];
        for (whole, parts) in parts {
            assert_eq!(sum(parts), count(whole), "{seed}: {whole:?}");
        }
        // Every slot of every cycle in which the core was awake, up to its last decode; of the group that is open,
        // those that are taken.
        let last = core.sink().commits.iter().rposition(|commit| commit.first_of_row).unwrap();
        let (open, decode) = (core.sink().commits[last..].iter(), core.sink().commits[last].decode);
        let asleep: u64 = core.sink().sleeps.iter().map(|(from, to)| to - from).sum();
        let retired = open.filter(|commit| !commit.redirect.is_trap()).count() as u64;
        let slots = (decode - 1 - asleep) * u64::from(preset.decode.width) + retired;
        assert_eq!(count(E::Slots), slots, "{seed}");
    }
}
