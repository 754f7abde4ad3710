use super::commits::BATCH_CYCLES;
use super::*;
use crate::{CommitRecord, CommitSink, CycleClass, HartId, InstId, Redirect, TeaEvents};

fn commit(cycle: u64) -> Commit {
    Commit {
        inst: InstId(0),
        decode: cycle.saturating_sub(8),
        dispatch: cycle.saturating_sub(6),
        commit: cycle,
        redirect: Redirect::None,
        first_of_row: false,
        class: CycleClass::LoadL2,
        tea: TeaEvents::ST_L1,
    }
}

/// Stages come run by run; batches end between them.
#[test]
fn stages_stay_with_their_records() {
    let (mut recorder, stream) = recording(HartId(0), 0, 32);
    let stages = |n: u64| Stages { fetch: n as u32 + 20, issue: n as u32 % 3, complete: n as u32 };
    for first in (0..40_000u64).step_by(32) {
        let run: Vec<Stages> = (first..first + 32).map(stages).collect();
        recorder.stages(&run);
        (first..first + 32).for_each(|n| recorder.commit(&commit(n + 10)));
    }
    recorder.finish().unwrap();
    let batches: Vec<Batch> = stream.collect();
    assert!(batches.len() > 2);
    let found: Vec<Stages> = batches.iter().flat_map(|b| b.stages.clone()).collect();
    assert!(found.iter().copied().eq((0..40_000).map(stages)));
    assert!(batches.iter().all(|b| b.stages.len() == b.records.len()));
}

#[test]
fn a_record_keeps_what_it_was_given() {
    let (mut recorder, mut stream) = recording(HartId(3), 100, 1);
    recorder.commit(&commit(110));
    assert_eq!(recorder.finish(), Ok(Seq(1)));
    let batch = stream.next().unwrap();
    assert_eq!((batch.hart, batch.start_cycle, batch.first_seq), (HartId(3), 100, Seq(0)));
    let record = batch.records[0];
    assert_eq!((record.commit_delta, record.residence(), record.decode_lead()), (10, 6, 2));
    assert_eq!((record.dispatch(110), record.decode(110)), (104, 102));
    assert_eq!((record.class(), record.tea()), (CycleClass::LoadL2, TeaEvents::ST_L1));
    assert_eq!(batch.events, [(1, Event::End)]);
    assert_eq!(stream.next(), None);
}

#[test]
fn batches_follow_each_other_and_never_split_a_group() {
    let (mut recorder, mut stream) = recording(HartId(0), 0, 2);
    let total = 3 * BATCH_RECORDS as u64 + 100;
    let producer = std::thread::spawn(move || {
        for n in 0..total {
            recorder.commit(&commit(10 + n / 3));
        }
        recorder.finish()
    });
    let (mut seq, mut cycle) = (0, 0);
    while let Some(batch) = stream.next() {
        assert_eq!((batch.first_seq, batch.start_cycle), (Seq(seq), cycle));
        assert!(batch.records.first().is_none_or(|record| record.commit_delta > 0));
        seq += batch.records.len() as u64;
        cycle = batch.end_cycle().unwrap();
        stream.recycle(batch);
    }
    assert_eq!((seq, cycle), (total, 10 + (total - 1) / 3));
    assert_eq!(producer.join().unwrap(), Ok(Seq(total)));
}

#[test]
fn a_requested_flush_waits_for_the_end_of_the_group() {
    let (mut recorder, stream) = recording(HartId(0), 0, 4);
    recorder.commit(&commit(10));
    recorder.flush();
    recorder.commit(&commit(10));
    recorder.commit(&commit(11));
    recorder.finish().unwrap();
    assert_eq!(stream.map(|batch| batch.records.len()).collect::<Vec<_>>(), [2, 1]);
}

#[test]
fn idle_time_moves_the_stream_on() {
    let (mut recorder, mut stream) = recording(HartId(0), 0, 4);
    recorder.commit(&commit(10));
    recorder.event(10, Event::Idle { cycles: 1 << 20 });
    recorder.event(10, Event::Idle { cycles: 0 });
    recorder.commit(&commit(15 + (1 << 20)));
    recorder.finish().unwrap();
    let batch = stream.next().unwrap();
    assert_eq!(batch.records[1].commit_delta, 5);
    assert_eq!(batch.events, [(1, Event::Idle { cycles: 1 << 20 }), (2, Event::End)]);
}

#[test]
fn a_stall_beyond_32_bits_ends_the_recording_and_says_so() {
    let (mut recorder, mut stream) = recording(HartId(0), 0, 4);
    recorder.commit(&commit(10));
    recorder.commit(&commit(10 + u64::from(u32::MAX)));
    recorder.commit(&commit(11 + 2 * u64::from(u32::MAX)));
    let error = RecordError::LongStall { seq: Seq(2), cycles: 1 + u64::from(u32::MAX) };
    assert_eq!(recorder.error(), Some(&error));
    recorder.commit(&commit(u64::MAX));
    recorder.event(0, Event::Region(true));
    assert_eq!(recorder.finish(), Err(error));
    let batch = stream.next().unwrap();
    assert_eq!(batch.records.len(), 2);
    assert_eq!(batch.events, [(2, Event::End)]);
    assert_eq!(stream.next(), None);
}

#[test]
fn a_commit_in_the_past_ends_the_recording() {
    let mut trap = commit(10);
    trap.redirect = Redirect::Exception;
    for (first, second) in [(commit(10), 9), (trap, 10)] {
        let (mut recorder, _stream) = recording(HartId(0), 0, 4);
        recorder.commit(&first);
        recorder.commit(&commit(second));
        let error = RecordError::BackInTime { seq: Seq(1), commit: second, reached: 10 };
        assert_eq!(recorder.finish(), Err(error));
    }
}

#[test]
fn without_a_reader_the_run_goes_on() {
    let (mut recorder, stream) = recording(HartId(0), 0, 1);
    drop(stream);
    for n in 0..2 * BATCH_RECORDS as u64 {
        recorder.commit(&commit(10 + n));
    }
    assert_eq!(recorder.finish(), Err(RecordError::ReaderGone { seq: Seq(0) }));
}

#[test]
fn a_dropped_recorder_delivers_what_it_has() {
    let (mut recorder, mut stream) = recording(HartId(0), 0, 1);
    recorder.commit(&commit(10));
    drop(recorder);
    let batch = stream.next().unwrap();
    assert_eq!((batch.records.len(), batch.events.len()), (1, 0));
}

#[test]
fn a_hart_that_sleeps_does_not_hold_its_records_back() {
    let (mut recorder, stream) = recording(HartId(0), 0, 4);
    recorder.commit(&commit(10));
    recorder.event(10, Event::Idle { cycles: BATCH_CYCLES });
    recorder.commit(&commit(BATCH_CYCLES + 20));
    recorder.finish().unwrap();
    assert_eq!(stream.map(|batch| batch.records.len()).collect::<Vec<_>>(), [1, 1]);
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(64))]

    /// Runs that begin within a group, fill a batch, end with a trap, or come when the batch was to end.
    #[test]
    fn commits_at_once_are_those_one_by_one(
        runs in proptest::collection::vec(
            (proptest::collection::vec(0..4u64, 1..128), 0..8u8, 0..8u8),
            40..80,
        ),
        // Long runs, which fill at least two batches that no flush cuts short.
        long in proptest::collection::vec(
            (proptest::collection::vec(0..4u64, 110..128), 0..8u8, 1..8u8),
            40..45,
        ),
    ) {
        let (mut at_once, stream) = recording(HartId(0), 0, 256);
        let (mut one_by_one, expected) = recording(HartId(0), 0, 256);
        let (mut cycle, mut group) = (0, false);
        for (deltas, trap, flush) in runs.into_iter().chain(long) {
            let from = cycle;
            let mut run = Vec::new();
            for (n, delta) in deltas.iter().enumerate() {
                // Most instructions share a cycle with the one before.
                let delta = delta.saturating_sub(2).max(u64::from(!group));
                cycle += delta;
                group = !(trap == 0 && n + 1 == deltas.len());
                let mut commit = commit(cycle);
                if !group {
                    commit.redirect = Redirect::Exception;
                }
                one_by_one.commit(&commit);
                run.push(CommitRecord::new(
                    commit.inst, delta as u32, commit.commit - commit.dispatch,
                    commit.dispatch - commit.decode, commit.redirect, commit.first_of_row, commit.class, commit.tea,
                ));
            }
            at_once.commits(from, &run, cycle);
            if flush == 0 {
                at_once.flush();
                one_by_one.flush();
            }
        }
        let recent = |recorder: &Recorder| format!("{:?}", recorder.recent().collect::<Vec<_>>());
        proptest::prop_assert_eq!(recent(&at_once), recent(&one_by_one));
        proptest::prop_assert_eq!(at_once.finish(), one_by_one.finish());
        let batches: Vec<Batch> = stream.collect();
        proptest::prop_assert!(batches.len() > 2);
        let full = batches.iter().filter(|batch| batch.records.len() >= BATCH_RECORDS);
        proptest::prop_assert!(full.count() >= 2);
        proptest::prop_assert_eq!(batches, expected.collect::<Vec<_>>());
    }
}
