//! The example of a user's own profiler, run on a trace.

#[path = "../examples/hottest.rs"]
#[allow(dead_code, reason = "its main")]
mod hottest;

use commit_trace::{
    Class, Commit, CommitSink, CycleClass, Event, HartId, InstId, Redirect, StaticInfo, TeaEvents,
    TraceWriter, recording,
};

#[test]
fn finds_the_hottest_instruction() {
    let (mut recorder, stream) = recording(HartId(0), 0, 64);
    for id in 0..2 {
        recorder.define(&StaticInfo {
            id: InstId(id),
            space: 0,
            pc: 0x1000 + 4 * u64::from(id),
            raw: 0x13,
            len: 4,
            privilege: 3,
            class: Class::Int,
            target: None,
        });
    }
    // The first instruction takes 101 cycles, the second 303; then the hart sleeps.
    for n in 0..1000 {
        let commit = 404 * (n / 2) + [101, 404][n as usize % 2];
        recorder.commit(&Commit {
            inst: InstId(n as u32 % 2),
            decode: commit - 2,
            dispatch: commit - 1,
            commit,
            redirect: Redirect::None,
            first_of_row: true,
            class: CycleClass::Alu,
            tea: TeaEvents::default(),
        });
    }
    recorder.event(0, Event::Idle { cycles: 1_000_000 });
    recorder.finish().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.tip");
    let mut writer = TraceWriter::create(&path, "{}").unwrap();
    for batch in stream {
        writer.batch(&batch).unwrap();
    }
    writer.finish().unwrap();

    let rows = hottest::profile(&path).unwrap();
    let pcs: Vec<u64> = rows.iter().map(|(_, pc)| *pc).collect();
    assert_eq!(pcs, [0x1004, 0x1000]);
    let samples: u64 = rows.iter().map(|(samples, _)| samples).sum();
    assert_eq!(samples, 202);
}

#[test]
fn the_example_is_short() {
    assert!(include_str!("../examples/hottest.rs").lines().count() < 50);
}
