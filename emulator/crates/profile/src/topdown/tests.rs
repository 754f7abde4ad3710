use commit_trace::{
    Batch, Commit, CommitSink, CycleClass, Event, HartId, InstId, Redirect, StaticInfo, TeaEvents,
    recording, synthetic,
};
use proptest::prelude::*;

use super::*;
use crate::over_time::WINDOWS_PER_BIN;
use crate::{Evaluation, Evaluator, Profile, Region, UNITS_PER_CYCLE};

fn evaluate(batches: &[Batch], width: u32, region: Region) -> Evaluation {
    let mut evaluator = Evaluator::new(&[], region).in_detail(width);
    batches.iter().for_each(|batch| evaluator.batch(batch).unwrap());
    evaluator.finish()
}

/// Slots of each process, from the instructions.
fn sums(top_down: &TopDown) -> Vec<Slots> {
    let sum = |process| {
        let insts = top_down.of(ProcessId(process));
        insts.fold(Slots::default(), |mut sum, (_, slot, count)| {
            sum[slot] += count;
            sum
        })
    };
    (0..top_down.by_process.len() as u32).map(sum).collect()
}

fn add(sum: &mut [u64; 7], part: [u64; 7]) {
    sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
}

fn check(evaluation: &Evaluation, width: u64) -> Result<(), TestCaseError> {
    let top_down = evaluation.top_down.as_ref().unwrap();
    let sums = sums(top_down);
    for (process, slots) in sums.iter().enumerate() {
        let units = evaluation.oracle.process_total(ProcessId(process as u32));
        prop_assert_eq!(slots.total() * UNITS_PER_CYCLE, width * units);
    }
    let retired: u64 = sums.iter().map(|slots| slots[Slot::Retiring]).sum();
    prop_assert_eq!(retired, evaluation.instructions);
    let mut over_time = vec![Slots::default(); sums.len()];
    let mut stacks = vec![[0; 7]; sums.len()];
    let mut end = 0;
    for window in &top_down.windows {
        prop_assert!(window.start >= end && window.end > window.start);
        end = window.end;
        let spent = || window.processes.iter().map(|(_, spent)| spent);
        let total: u64 = spent().map(|spent| spent.slots.total()).sum();
        prop_assert_eq!(total, width * window.cycles);
        let total: u64 = spent().flat_map(|spent| spent.cycles).sum();
        prop_assert_eq!(total, window.cycles);
        for (process, spent) in &window.processes {
            over_time[process.0 as usize] += spent.slots;
            add(&mut stacks[process.0 as usize], spent.cycles);
        }
    }
    prop_assert_eq!(over_time, sums);
    let mut expected = vec![[0; 7]; stacks.len()];
    for (process, inst, stack) in evaluation.stacks.iter() {
        let class = evaluation.static_info[inst.0 as usize].class;
        add(&mut expected[process.0 as usize], stack.categories(class));
    }
    let in_cycles = |units: [u64; 7]| units.map(|units| units / UNITS_PER_CYCLE);
    prop_assert_eq!(stacks, Vec::from_iter(expected.into_iter().map(in_cycles)));
    check_bins(evaluation)
}

/// Bins have the time of their windows by process, and add up to the Oracle where they keep all instructions apart.
fn check_bins(evaluation: &Evaluation) -> Result<(), TestCaseError> {
    let windows = &evaluation.top_down.as_ref().unwrap().windows;
    let groups: Vec<&[SlotWindow]> = windows.chunks(WINDOWS_PER_BIN).collect();
    prop_assert_eq!(groups.len(), evaluation.over_time.len());
    let mut sum = Profile::new(UNITS_PER_CYCLE);
    let mut others = 0;
    for (bin, group) in evaluation.over_time.iter().zip(groups) {
        prop_assert_eq!((bin.start, bin.end), (group[0].start, group[group.len() - 1].end));
        for time in &bin.processes {
            let of = group.iter().flat_map(|window| &window.processes);
            let of = of.filter(|(process, _)| *process == time.process);
            let cycles: u64 = of.flat_map(|(_, spent)| spent.cycles).sum();
            let kept: u64 = time.weights().map(|(_, units)| units).sum();
            prop_assert_eq!(kept + time.others, cycles * UNITS_PER_CYCLE);
            others += time.others;
            time.weights().for_each(|(inst, units)| sum.add(time.process, inst, units));
        }
        prop_assert!(bin.processes.is_sorted_by(|a, b| a.process < b.process));
    }
    prop_assert_eq!(sum.total() + others, evaluation.oracle.total());
    for (process, inst, units) in sum.iter() {
        prop_assert!(units <= evaluation.oracle.weight(process, inst));
    }
    Ok(())
}

proptest! {
    #[test]
    fn slots_are_width_times_cycles(
        words in prop::collection::vec(any::<u32>(), 1..600),
        width in 1usize..=8,
        marked in any::<bool>(),
        rows in any::<bool>(),
    ) {
        let core = if rows { synthetic::SyntheticCore::by_rows(width) } else { synthetic::SyntheticCore::new(width) };
        let region = if marked { Region::Marked } else { Region::Whole };
        let evaluation = evaluate(&synthetic::batches_of(core, &words), width as u32, region);
        check(&evaluation, width as u64)?;
    }
}

#[test]
fn a_long_run_has_at_most_twice_the_windows() {
    let words: Vec<u32> = (0..400_000u32).map(|n| n.wrapping_mul(0x9e37_79b9)).collect();
    let evaluation = evaluate(&synthetic::batches(&words, 4), 4, Region::Whole);
    check(&evaluation, 4).unwrap();
    let count = evaluation.top_down.unwrap().windows.len();
    assert!((100..=256).contains(&count), "{count} windows");
}

/// A recording of instructions in a row of code, numbered by position.
fn stream(commits: &[Commit]) -> Vec<Batch> {
    let (mut recorder, stream) = recording(HartId(0), 0, 4);
    for commit in commits {
        recorder.define(&StaticInfo {
            id: commit.inst,
            space: 2,
            pc: 0x1000 + 4 * u64::from(commit.inst.0),
            raw: 0x13,
            len: 4,
            privilege: 0,
            class: commit_trace::Class::Int,
            target: None,
        });
        recorder.commit(commit);
    }
    recorder.event(commits.last().unwrap().commit, Event::Privilege(0));
    recorder.finish().unwrap();
    stream.collect()
}

/// Decoded two cycles before the ROB holds it.
fn commit(inst: u32, dispatch: u64, cycle: u64, first_of_row: bool) -> Commit {
    Commit {
        inst: InstId(inst),
        decode: dispatch.saturating_sub(2),
        dispatch,
        commit: cycle,
        redirect: Redirect::None,
        first_of_row,
        class: CycleClass::Alu,
        tea: TeaEvents::default(),
    }
}

/// What each instruction's slots are, on a core of width 4.
fn slots(commits: &[Commit]) -> Vec<Vec<(Slot, u64)>> {
    let top_down = evaluate(&stream(commits), 4, Region::Whole).top_down.unwrap();
    Vec::from_iter(top_down.of(ProcessId(0)))
        .chunk_by(|(a, ..), (b, ..)| a == b)
        .map(|inst| inst.iter().map(|(_, slot, n)| (*slot, *n)).collect())
        .collect()
}

#[test]
fn each_rule_of_the_table() {
    use Slot::*;
    // Cycles 1 and 2 drained (I-cache), 3 stalled; 0 and 1 commit in 4, 2 of their row in 6 (a DRAM load).
    let found = slots(&[
        Commit { tea: TeaEvents::DR_L1, ..commit(0, 3, 4, true) },
        commit(1, 3, 4, false),
        Commit { class: CycleClass::LoadDram, ..commit(2, 3, 6, false) },
        // The next row is in the ROB: the rest of the row before was late, and is charged.
        commit(3, 4, 7, true),
        // A short row: the next was there.
        commit(4, 5, 8, true),
        // Not in the ROB in cycle 8: front end.
        Commit { redirect: Redirect::Mispredict, ..commit(5, 9, 10, true) },
        // Flushed in 11 and 12, and three slots of 10.
        commit(6, 13, 14, true),
    ]);
    assert_eq!(found[0], [(Retiring, 1), (FetchCache, 8), (Ports, 4)]);
    assert_eq!(found[1], [(Retiring, 1)]);
    assert_eq!(found[2], [(Retiring, 1), (Dram, 2 + 4 + 3)]);
    assert_eq!(found[3], [(Retiring, 1)]);
    assert_eq!(found[4], [(Retiring, 1), (FetchBandwidth, 3)]);
    assert_eq!(found[5], [(Retiring, 1), (Mispredict, 3 + 8), (FetchBandwidth, 3), (Ports, 4)]);
    assert_eq!(found[6], [(Retiring, 1), (FetchBandwidth, 3), (Ports, 4)]);
}

#[test]
fn what_dispatch_refuses_is_not_the_front_ends_fault() {
    use Slot::*;
    let store =
        |tea| Commit { decode: 2, class: CycleClass::Store, tea, ..commit(1, 10, 11, true) };
    // Decoded in 2, it could have been in the ROB in 4; it is from 10 on.
    let full = slots(&[commit(0, 1, 2, true), store(TeaEvents::DR_SQ)]);
    assert_eq!(full[1], [(Retiring, 1), (FetchOther, 4), (FetchBandwidth, 6), (Store, 24 + 4)]);
    let fence = Commit { class: CycleClass::Serialize, ..store(TeaEvents::default()) };
    assert_eq!(slots(&[commit(0, 1, 2, true), fence])[1][3], (Serialize, 24 + 4));
}

#[test]
fn a_trap_clears_the_machine() {
    use Slot::*;
    // The trap shares the cycle of an instruction of its row, and the handler enters after three cycles.
    let trap = Commit { redirect: Redirect::Exception, ..commit(1, 1, 2, false) };
    let found = slots(&[commit(0, 1, 2, true), trap, commit(2, 6, 7, true)]);
    assert_eq!(found[0], [(Retiring, 1), (Ports, 4)]);
    assert_eq!(found[1], [(MachineClear, 3 + 12)]);
}

#[test]
fn the_tree_is_one() {
    for (at, node) in NODES.iter().enumerate() {
        let mut one = Slots::default();
        (0..Slot::COUNT).for_each(|leaf| one.0[leaf] = 1 << leaf);
        assert_eq!(usize::from(node.level), node.path.split('.').count());
        let below: u64 =
            NODES.iter().filter(|n| n.parent() == Some(node.path)).map(|n| n.of(&one)).sum();
        assert!(below == 0 || below == node.of(&one), "{}", node.path);
        assert!(node.parent().is_none_or(|p| NODES[..at].iter().any(|n| n.path == p)));
    }
    let mut all = Slots::default();
    all.0.fill(1);
    let roots: u64 = NODES.iter().filter(|n| n.level == 1).map(|n| n.of(&all)).sum();
    assert_eq!(roots, all.total());
}
