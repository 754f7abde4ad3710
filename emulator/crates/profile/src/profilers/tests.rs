//! Each policy on streams small enough to follow by hand.

use commit_trace::{
    Batch, Class, CommitRecord, CycleClass, Event, InstId, Redirect, StaticInfo, TeaEvents,
};

use crate::{Evaluation, Evaluator, ProcessId, Profiler, Region, Sampler, Schedule};

/// One instruction: (decode, dispatch, commit, redirect).
type TimedInst = (u64, u64, u64, Redirect);

use Redirect::{Exception, Flush, Mispredict, None as No};

fn batch(rows: &[TimedInst]) -> Batch {
    let mut before = 0;
    let records = rows.iter().enumerate().map(|(n, (decode, dispatch, commit, redirect))| {
        let delta = (commit - before) as u32;
        before = *commit;
        let (residence, lead) = (commit - dispatch, dispatch - decode);
        let (class, tea) = (CycleClass::Alu, TeaEvents::default());
        CommitRecord::new(InstId(n as u32), delta, residence, lead, *redirect, true, class, tea)
    });
    let records = records.collect();
    let static_info = (0..rows.len() as u32).map(|id| StaticInfo {
        id: InstId(id),
        space: 0,
        pc: 0,
        raw: 0,
        len: 4,
        privilege: 0,
        class: Class::Int,
        target: None,
    });
    Batch { static_info: static_info.collect(), records, ..Batch::default() }
}

fn evaluate(profiler: Profiler, schedule: Schedule, batch: &Batch) -> Evaluation {
    let mut evaluator = Evaluator::new(&[Sampler::new(profiler, schedule)], Region::Whole);
    evaluator.batch(batch).unwrap();
    evaluator.finish()
}

/// Where a single trigger in `cycle` goes: units per instruction, as shares of the sample in 840ths.
fn sampled(profiler: Profiler, rows: &[TimedInst], cycle: u64) -> Vec<(u32, u64)> {
    let schedule = Schedule { offset: cycle, ..Schedule::every(1 << 40) };
    let evaluation = evaluate(profiler, schedule, &batch(rows));
    let profile = &evaluation.samplers[0].profile;
    profile.iter().map(|(_, inst, units)| (inst.0, units / cycle)).collect()
}

/// After figure 4 of the paper. 0 to 3 commit together; 4 is a load that stalls, 5 and 6 commit with
/// it; 7 is a mispredicted branch; 8, of the right path, enters the ROB late; 9 commits with it; 10
/// arrives after an instruction cache miss.
const FIGURE: &[TimedInst] = &[
    (2, 4, 10, No),
    (2, 4, 10, No),
    (2, 4, 10, No),
    (2, 4, 10, No),
    (3, 5, 50, No),
    (3, 5, 50, No),
    (3, 5, 50, No),
    (4, 6, 51, Mispredict),
    (55, 57, 62, No),
    (55, 57, 62, No),
    (90, 92, 97, No),
];

const ALL: u64 = 840;

#[test]
fn tip_in_each_state() {
    use Profiler::{Tip, TipIlp};
    let quarter = ALL / 4;
    // Drained (before anything arrives), Stalled, Computing.
    assert_eq!(sampled(Tip, FIGURE, 2), [(0, ALL)]);
    assert_eq!(sampled(Tip, FIGURE, 7), [(0, ALL)]);
    assert_eq!(sampled(Tip, FIGURE, 10), [(0, quarter), (1, quarter), (2, quarter), (3, quarter)]);
    assert_eq!(sampled(TipIlp, FIGURE, 10), [(0, ALL)]);
    // Stalled on the load; Flushed: the branch; Stalled on 8; Drained: 10, which arrives next.
    for profiler in [Tip, TipIlp] {
        assert_eq!(sampled(profiler, FIGURE, 30), [(4, ALL)]);
        assert_eq!(sampled(profiler, FIGURE, 54), [(7, ALL)]);
        assert_eq!(sampled(profiler, FIGURE, 60), [(8, ALL)]);
        assert_eq!(sampled(profiler, FIGURE, 70), [(10, ALL)]);
    }
}

#[test]
fn nci_takes_the_next_commit_and_lci_the_last() {
    use Profiler::{Lci, Nci, NciIlp};
    assert_eq!(sampled(Nci, FIGURE, 30), [(4, ALL)]);
    assert_eq!(sampled(Nci, FIGURE, 50), [(4, ALL)]);
    assert_eq!(sampled(NciIlp, FIGURE, 30), [(4, ALL / 3), (5, ALL / 3), (6, ALL / 3)]);
    // After the branch: the first of the right path, though the branch is at fault.
    assert_eq!(sampled(Nci, FIGURE, 54), [(8, ALL)]);
    assert_eq!(sampled(NciIlp, FIGURE, 54), [(8, ALL / 2), (9, ALL / 2)]);

    assert_eq!(sampled(Lci, FIGURE, 30), [(3, ALL)]);
    assert_eq!(sampled(Lci, FIGURE, 50), [(3, ALL)]);
    assert_eq!(sampled(Lci, FIGURE, 51), [(6, ALL)]);
    assert_eq!(sampled(Lci, FIGURE, 54), [(7, ALL)]);
    assert_eq!(sampled(Lci, FIGURE, 5), []);
}

#[test]
fn dispatch_tags_at_the_tail() {
    use Profiler::{Dispatch, DispatchOp};
    // The load is tagged as it is dispatched, in the cycle before the ROB holds it; the cycles of
    // its stall go elsewhere.
    assert_eq!(sampled(Dispatch, FIGURE, 1), [(0, ALL)]);
    assert_eq!(sampled(Dispatch, FIGURE, 4), [(4, ALL)]);
    assert_eq!(sampled(Dispatch, FIGURE, 5), [(7, ALL)]);
    assert_eq!(sampled(DispatchOp, FIGURE, 4), [(4, ALL)]);
    // Behind the branch the wrong path dispatches, and is squashed with its tags.
    assert_eq!(sampled(Dispatch, FIGURE, 30), []);
    assert_eq!(sampled(DispatchOp, FIGURE, 30), []);
    // After the redirect nothing dispatches until the right path does.
    assert_eq!(sampled(Dispatch, FIGURE, 54), [(8, ALL)]);
    assert_eq!(sampled(Dispatch, FIGURE, 70), [(10, ALL)]);
    // Nothing shows where the group ends that the last instruction may be part of.
    assert_eq!(sampled(DispatchOp, FIGURE, 70), []);
}

#[test]
fn dispatch_op_takes_turns() {
    let mut rows = Vec::new();
    for group in 0..40 {
        rows.extend([(10 * group, 10 * group + 2, 10 * group + 9, No); 4]);
    }
    let evaluation = evaluate(Profiler::DispatchOp, Schedule::every(40), &batch(&rows));
    let profile = &evaluation.samplers[0].profile;
    let slots: Vec<u32> = profile.iter().map(|(_, inst, _)| inst.0 % 4).collect();
    assert_eq!(slots, [0, 1, 2, 3, 0, 1, 2, 3, 0]);
}

#[test]
fn a_tagged_row_that_traps_is_dropped() {
    let rows = [(2, 4, 10, No), (3, 5, 20, Exception), (30, 32, 40, No), (30, 32, 40, No)];
    // Tagged itself; tagged behind it, on what the exception squashes; after it.
    for profiler in [Profiler::Dispatch, Profiler::DispatchOp] {
        assert_eq!(sampled(profiler, &rows, 4), []);
        assert_eq!(sampled(profiler, &rows, 15), []);
    }
    assert_eq!(sampled(Profiler::Dispatch, &rows, 21), [(2, ALL)]);
    // NCI and TIP at the trap: the handler's first instruction, and the one that trapped.
    assert_eq!(sampled(Profiler::Nci, &rows, 20), [(2, ALL)]);
    assert_eq!(sampled(Profiler::Tip, &rows, 20), [(1, ALL)]);
    assert_eq!(sampled(Profiler::Tip, &rows, 25), [(1, ALL)]);
}

#[test]
fn nothing_is_squashed_behind_a_serialising_instruction() {
    let mut stream = batch(&[(2, 4, 10, Flush), (15, 17, 22, No)]);
    let class = CycleClass::Serialize;
    stream.records[0] =
        CommitRecord::new(InstId(0), 10, 6, 2, Flush, true, class, TeaEvents::default());
    let schedule = Schedule { offset: 7, ..Schedule::every(1 << 40) };
    let evaluation = evaluate(Profiler::Dispatch, schedule, &stream);
    assert_eq!(evaluation.samplers[0].profile.weight(ProcessId(0), InstId(1)), 7 * ALL);
}

#[test]
fn software_skids_past_what_is_decoded() {
    // The load at the head is to blame; all that is decoded commits first.
    assert_eq!(sampled(Profiler::Software, FIGURE, 30), [(8, ALL)]);
    assert_eq!(sampled(Profiler::Software, FIGURE, 3), [(4, ALL)]);
    assert_eq!(sampled(Profiler::Software, FIGURE, 56), [(10, ALL)]);
    assert_eq!(sampled(Profiler::Software, FIGURE, 95), []);
}

#[test]
fn a_sample_weighs_the_cycles_since_the_last_one() {
    // Triggers at 30, 60, 90; LCI always finds a sample.
    let evaluation = evaluate(Profiler::Lci, Schedule::every(30), &batch(FIGURE));
    let result = &evaluation.samplers[0];
    let units: Vec<_> = result.profile.iter().map(|(_, inst, units)| (inst.0, units)).collect();
    assert_eq!(units, [(3, 30 * ALL), (7, 30 * ALL), (9, 30 * ALL)]);
    assert_eq!((result.samples, result.tail_cycles), (3, 7));
}

#[test]
fn triggers_while_a_sample_is_pending_add_their_cycles_to_it() {
    // NCI, triggers every 10: those at 20, 30, 40 wait with that of 50 for the commit in 50.
    let evaluation = evaluate(Profiler::Nci, Schedule::every(10), &batch(FIGURE));
    let result = &evaluation.samplers[0];
    assert_eq!(result.profile.weight(ProcessId(0), InstId(0)), 10 * ALL);
    assert_eq!(result.profile.weight(ProcessId(0), InstId(4)), 40 * ALL);
    assert_eq!(result.profile.weight(ProcessId(0), InstId(8)), 10 * ALL);
    assert_eq!(result.profile.weight(ProcessId(0), InstId(10)), 30 * ALL);
    assert_eq!((result.samples, result.tail_cycles), (4, 7));
}

#[test]
fn a_dropped_sample_leaves_its_cycles_to_the_next() {
    // Dispatch: 30 is squashed, 60 and 90 find instruction 10.
    let evaluation = evaluate(Profiler::Dispatch, Schedule::every(30), &batch(FIGURE));
    let result = &evaluation.samplers[0];
    assert_eq!(result.profile.weight(ProcessId(0), InstId(10)), 90 * ALL);
    assert_eq!((result.samples, result.dropped, result.tail_cycles), (1, 1, 7));
}

#[test]
fn sleep_is_not_profiled() {
    let mut stream = batch(&[(2, 4, 10, Flush), (15, 17, 22, No)]);
    stream.events = vec![(1, Event::Idle { cycles: 1_000_000 })];
    let evaluation = evaluate(Profiler::Tip, Schedule::every(1), &stream);
    assert_eq!((evaluation.cycles, evaluation.idle), (1_000_022, 1_000_000));
    assert_eq!(evaluation.oracle.total(), 22 * ALL);
    assert_eq!(evaluation.samplers[0].profile, evaluation.oracle);
}
