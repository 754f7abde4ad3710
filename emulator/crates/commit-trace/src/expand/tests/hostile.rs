//! Streams that no core made: an error or nonsense, never a panic or a hang.

use proptest::prelude::*;

use super::*;
use crate::CommitRecord;

fn any_record() -> impl Strategy<Value = CommitRecord> {
    let word = || prop_oneof![4 => 0..4u32, 1 => any::<u32>()];
    (word(), word(), word(), any::<u32>()).prop_map(|(inst, delta, lead, flags)| {
        CommitRecord::from_packed(InstId(inst), delta, lead, flags)
    })
}

fn any_stages() -> impl Strategy<Value = Stages> {
    any::<(u32, u32, u32)>().prop_map(|(fetch, issue, complete)| Stages { fetch, issue, complete })
}

proptest! {
    #[test]
    fn hostile_streams_never_panic(
        lines in prop::collection::vec((any_record(), any_stages()), 0..60),
        idle in prop::collection::vec((0..60u32, any::<u64>()), 0..3),
        start_cycle in prop_oneof![0..9u64, any::<u64>()],
        first_seq in prop_oneof![Just(0), any::<u64>()],
        from in any::<Option<u64>>(),
        record in any::<bool>(),
    ) {
        let mut static_info = small(false).remove(0).static_info;
        static_info.truncate(4);
        let (records, stages) = lines.into_iter().unzip();
        let mut events: Vec<_> = idle
            .into_iter()
            .map(|(at, cycles)| (at, Event::Idle { cycles }))
            .collect();
        events.sort_by_key(|(at, _)| *at);
        let batch = Batch {
            start_cycle,
            first_seq: Seq(first_seq),
            static_info,
            records,
            stages,
            events,
            ..Batch::default()
        };
        // Cycles that overflow are refused by the writer.
        let mut writer = TraceWriter::new(Vec::new(), "test".into(), "{}").unwrap();
        prop_assume!(writer.batch(&batch).is_ok());
        let bytes = file(&[batch]);

        let place = |n: u64| if record { Position::Record(Seq(n)) } else { Position::Cycle(n) };
        let range = Range {
            from: from.map_or(Position::START, place),
            to: None,
        };
        let _ = csv(&bytes, &range);
        let mut sink = O3PipeView::new(Vec::new(), &text);
        let _ = expand(&mut open(&bytes), HartId(0), &range, &mut sink);
        let mut sink = Konata::new(Vec::new(), &text, &registers).unwrap();
        let _ = expand(&mut open(&bytes), HartId(0), &range, &mut sink);
        // One token per cycle is no hang, but there can be many.
        let first = from.unwrap_or(0).max(start_cycle);
        let range = Range {
            from: Position::Cycle(first),
            to: Some(Position::Cycle(first.saturating_add(2000))),
        };
        let mut out = Vec::new();
        let shape = RobShape::new(8, 4).unwrap();
        let _ = Token512::new(&mut out, shape, range).expand(&mut open(&bytes), HartId(0));
        prop_assert!(out.len() <= 2000 * TOKEN_BYTES);
    }
}
