use proptest::prelude::*;

use super::*;
use crate::{Class, CycleClass, InstId, TeaEvents, synthetic};

/// Spans as (state, start, cycles, instructions).
#[derive(Default)]
struct Collected {
    spans: Vec<(State, u64, u64, Vec<u32>)>,
    traps: Vec<(u64, u32)>,
    events: Vec<(u64, Event)>,
}

impl SpanSink for Collected {
    fn span(&mut self, span: &Span<'_>) {
        let insts = span.records.iter().map(|record| record.inst.0).collect();
        self.spans.push((span.state, span.start, span.cycles, insts));
    }
    fn trap(&mut self, commit: u64, record: &CommitRecord) {
        self.traps.push((commit, record.inst.0));
    }
    fn event(&mut self, cycle: u64, event: &Event) {
        self.events.push((cycle, event.clone()));
    }
}

/// A record: instruction, commit delta, residence, redirect.
fn record(inst: u32, delta: u32, residence: u64, redirect: Redirect) -> CommitRecord {
    let class = CycleClass::Alu;
    CommitRecord::new(
        InstId(inst),
        delta,
        residence,
        1,
        redirect,
        true,
        class,
        TeaEvents::default(),
    )
}

fn batch(records: Vec<CommitRecord>) -> Batch {
    let static_info = (0..10)
        .map(|id| StaticInfo {
            id: InstId(id),
            space: 0,
            pc: u64::from(id) * 4,
            raw: 0,
            len: 4,
            privilege: 0,
            class: Class::Int,
            target: None,
        })
        .collect();
    Batch { start_cycle: 100, static_info, records, ..Batch::default() }
}

fn collect(batch: &Batch) -> Collected {
    let mut collected = Collected::default();
    SpanBuilder::new().batch(batch, &mut collected).unwrap();
    collected
}

fn refused(batch: &Batch) -> StreamError {
    SpanBuilder::new().batch(batch, &mut Collected::default()).unwrap_err()
}

use Redirect::{Exception, Flush, Interrupt, Mispredict, None as No};
use State::{Computing, Drained, Flushed, Idle, Stalled};

#[test]
fn instructions_that_commit_together_are_one_computing_span() {
    let records = [(0, 1), (1, 0), (2, 0), (3, 1), (4, 1)];
    let spans = collect(&batch(records.map(|(i, delta)| record(i, delta, 9, No)).into())).spans;
    let expected = [
        (Computing, 101, 1, vec![0, 1, 2]),
        (Computing, 102, 1, vec![3]),
        (Computing, 103, 1, vec![4]),
    ];
    assert_eq!(spans, expected);
}

#[test]
fn a_load_that_misses_stalls_at_the_head() {
    // The load waits 40 cycles; the instruction behind it has long been in the ROB.
    let spans = collect(&batch(vec![record(0, 1, 5, No), record(1, 40, 45, No)])).spans;
    let expected =
        [(Computing, 101, 1, vec![0]), (Stalled, 102, 39, vec![1]), (Computing, 141, 1, vec![1])];
    assert_eq!(spans, expected);
}

#[test]
fn an_instruction_cache_miss_drains_and_is_charged_to_the_next_instruction() {
    let spans = collect(&batch(vec![record(0, 1, 5, No), record(1, 30, 5, No)])).spans;
    // Commits at 131, entered the ROB at 126.
    let expected = [
        (Computing, 101, 1, vec![0]),
        (Drained, 102, 24, vec![1]),
        (Stalled, 126, 5, vec![1]),
        (Computing, 131, 1, vec![1]),
    ];
    assert_eq!(spans, expected);
}

#[test]
fn empty_cycles_after_a_mispredict_or_a_flush_belong_to_it() {
    for redirect in [Mispredict, Flush] {
        let spans = collect(&batch(vec![record(0, 1, 5, redirect), record(1, 12, 5, No)])).spans;
        let expected = [
            (Computing, 101, 1, vec![0]),
            (Flushed, 102, 6, vec![0]),
            (Stalled, 108, 5, vec![1]),
            (Computing, 113, 1, vec![1]),
        ];
        assert_eq!(spans, expected);
    }
}

#[test]
fn only_the_youngest_of_a_group_decides_why_the_rob_is_empty() {
    let records = vec![record(0, 1, 5, Mispredict), record(1, 0, 5, No), record(2, 8, 5, No)];
    let spans = collect(&batch(records)).spans;
    assert_eq!(spans[1], (Drained, 102, 2, vec![2]));
}

#[test]
fn a_trap_takes_its_own_cycle_and_the_empty_ones_after_it() {
    for redirect in [Exception, Interrupt] {
        let records = vec![record(0, 1, 5, No), record(1, 4, 9, redirect), record(2, 12, 5, No)];
        let collected = collect(&batch(records));
        let expected = [
            (Computing, 101, 1, vec![0]),
            (Stalled, 102, 3, vec![1]),
            (Flushed, 105, 1, vec![1]),
            (Flushed, 106, 6, vec![1]),
            (Stalled, 112, 5, vec![2]),
            (Computing, 117, 1, vec![2]),
        ];
        assert_eq!(collected.spans, expected);
        assert_eq!(collected.traps, [(105, 1)]);
    }
}

#[test]
fn a_trap_may_share_the_cycle_of_older_commits() {
    let records = vec![record(0, 1, 5, No), record(1, 0, 5, Exception), record(2, 9, 2, No)];
    let collected = collect(&batch(records));
    let expected = [
        (Computing, 101, 1, vec![0]),
        (Flushed, 102, 6, vec![1]),
        (Stalled, 108, 2, vec![2]),
        (Computing, 110, 1, vec![2]),
    ];
    assert_eq!(collected.spans, expected);
    assert_eq!(collected.traps, [(101, 1)]);
}

#[test]
fn sleeping_is_idle_and_the_refill_after_it_is_the_flush_of_wfi() {
    let mut batch = batch(vec![record(0, 1, 5, Flush), record(1, 10, 4, No)]);
    batch.events = vec![(1, Event::Idle { cycles: 1 << 40 }), (1, Event::Privilege(1))];
    let collected = collect(&batch);
    let wake = 101 + (1 << 40);
    let expected = [
        (Computing, 101, 1, vec![0]),
        (Idle, 102, 1 << 40, vec![]),
        (Flushed, wake + 1, 5, vec![0]),
        (Stalled, wake + 6, 4, vec![1]),
        (Computing, wake + 10, 1, vec![1]),
    ];
    assert_eq!(collected.spans, expected);
    assert_eq!(collected.events, [(wake, Event::Privilege(1))]);
}

#[test]
fn a_residence_that_saturated_still_means_stalled() {
    let long = 1 << 30;
    let spans = collect(&batch(vec![record(0, 1, 5, No), record(1, long, 1 << 30, No)])).spans;
    assert_eq!(spans[1], (Stalled, 102, u64::from(long) - 1, vec![1]));
}

#[test]
fn events_in_a_group_come_after_its_cycle() {
    let mut batch = batch(vec![record(0, 1, 5, No), record(1, 0, 5, No), record(2, 1, 5, No)]);
    batch.events = vec![(1, Event::Region(true)), (3, Event::End)];
    assert_eq!(collect(&batch).events, [(101, Event::Region(true)), (102, Event::End)]);
}

#[test]
fn what_no_commit_stage_can_produce_is_refused() {
    let seq = Seq(0);
    assert_eq!(refused(&batch(vec![record(0, 0, 5, No)])), StreamError::NoCycle { seq });
    let after_trap = vec![record(0, 1, 5, Exception), record(1, 0, 5, No)];
    assert_eq!(refused(&batch(after_trap)), StreamError::NoCycle { seq: Seq(1) });
    let wide = (0..9).map(|i| record(i, u32::from(i == 0), 5, No)).collect();
    assert_eq!(refused(&batch(wide)), StreamError::WideGroup { seq, width: 9 });
    let undefined = StreamError::UndefinedInst { inst: 10, seq };
    assert_eq!(refused(&batch(vec![record(10, 1, 5, No)])), undefined);

    let mut asleep = batch(vec![record(0, 1, 5, No), record(1, 0, 5, No)]);
    asleep.events = vec![(1, Event::Idle { cycles: 3 })];
    assert_eq!(refused(&asleep), StreamError::BadEvent { seq: Seq(1) });
    asleep.events = vec![(3, Event::End)];
    assert_eq!(refused(&asleep), StreamError::BadEvent { seq });
    asleep.events = vec![(0, Event::Idle { cycles: u64::MAX })];
    assert_eq!(refused(&asleep), StreamError::CycleOverflow { seq });
    asleep.static_info.remove(3);
    asleep.events.clear();
    assert_eq!(refused(&asleep), StreamError::StaticInfoOutOfOrder { expected: 3, found: 4 });
}

#[test]
fn a_stream_whose_first_batch_breaks_off_ends_where_it_began() {
    let mut spans = SpanBuilder::new();
    let broken = batch(vec![record(0, 1, 5, Exception), record(1, 0, 5, No)]);
    let result = spans.batch(&broken, &mut Collected::default());
    assert_eq!(result, Err(StreamError::NoCycle { seq: Seq(1) }));
    assert_eq!(spans.cycle(), broken.start_cycle);
}

#[test]
fn a_gap_between_batches_is_refused() {
    let mut spans = SpanBuilder::new();
    spans.batch(&batch(vec![record(0, 1, 5, No)]), &mut Collected::default()).unwrap();
    let mut later = Batch { start_cycle: 101, first_seq: Seq(2), ..Batch::default() };
    let expected = StreamError::Gap { expected: Seq(1), found: Seq(2), cycle: 101 };
    assert_eq!(spans.batch(&later, &mut Collected::default()), Err(expected));
    later.first_seq = Seq(1);
    assert_eq!(spans.batch(&later, &mut Collected::default()), Ok(()));
}

proptest! {
    #[test]
    fn every_cycle_is_in_exactly_one_span(
        words in prop::collection::vec(any::<u32>(), 0..400),
        width in 1..=8usize,
    ) {
        let batches = synthetic::batches(&words, width);
        let mut spans = SpanBuilder::new();
        let mut collected = Collected::default();
        for batch in &batches {
            spans.batch(batch, &mut collected).unwrap();
        }
        let mut next = 1;
        let mut committed = collected.traps.len();
        for (state, start, cycles, insts) in collected.spans {
            prop_assert_eq!(start, next);
            prop_assert!(cycles > 0);
            next = start + cycles;
            match state {
                Computing => {
                    prop_assert!(cycles == 1 && (1..=width).contains(&insts.len()));
                    committed += insts.len();
                }
                Idle => prop_assert!(insts.is_empty()),
                _ => prop_assert_eq!(insts.len(), 1),
            }
        }
        prop_assert_eq!(committed, words.len());
        prop_assert_eq!(next - 1, spans.cycle());
        prop_assert_eq!(batches.last().and_then(Batch::end_cycle), Some(spans.cycle()));
    }
}
