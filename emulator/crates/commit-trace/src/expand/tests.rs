//! Golden tests: a small stream in every format. Beside each, where the order of its fields is published.

mod hostile;
mod tokens;

use std::collections::HashSet;
use std::io::Cursor;

use super::*;
use crate::synthetic::{SyntheticCore, batches_of};
use crate::{
    Batch, Class, Commit, CommitSink, CycleClass, InstId, Position, Redirect, Seq, StageCycles,
    Stages, TeaEvents, TraceEnd, TraceError, TraceWriter, recording,
};

/// Two instructions of a row, a mispredicted branch, a CSR write, a trap, sleep, and one more.
pub(super) fn small(staged: bool) -> Vec<Batch> {
    // Instruction, fetch, decode, dispatch, issue, complete, commit, why redirected, first of its row.
    type Line = (u32, u64, u64, u64, u64, u64, u64, Redirect, bool);
    let lines: [Line; 6] = [
        (0, 0, 5, 7, 7, 10, 10, Redirect::None, true),
        (1, 0, 5, 7, 8, 12, 12, Redirect::None, false),
        (2, 0, 6, 8, 9, 11, 13, Redirect::Mispredict, true),
        (3, 15, 20, 22, 22, 26, 26, Redirect::Flush, true),
        (4, 26, 31, 33, 0, 34, 34, Redirect::Exception, true),
        (0, 37, 42, 44, 44, 47, 47, Redirect::None, true),
    ];
    let (mut recorder, stream) = recording(HartId(0), 0, 4);
    for (id, class) in [Class::Int, Class::Load, Class::Branch, Class::System, Class::System]
        .into_iter()
        .enumerate()
    {
        recorder.define(&StaticInfo {
            id: InstId(id as u32),
            space: 2,
            pc: 0x1_0000 + 4 * id as u64,
            raw: 0x13,
            len: 4,
            privilege: 0,
            class,
            target: None,
        });
    }
    for (inst, fetch, decode, dispatch, issue, complete, commit, redirect, first_of_row) in lines {
        if staged {
            let cycles = StageCycles { fetch, issue: (issue != 0).then_some(issue), complete };
            recorder.stages(&[Stages::new(&cycles, commit)]);
        }
        if commit == 47 {
            recorder.event(34, Event::Idle { cycles: 2 });
        }
        recorder.commit(&Commit {
            inst: InstId(inst),
            decode,
            dispatch,
            commit,
            redirect,
            first_of_row,
            class: CycleClass::Alu,
            tea: match redirect {
                Redirect::Mispredict => TeaEvents::FL_MB | TeaEvents::ST_L1,
                _ => TeaEvents::default(),
            },
        });
    }
    recorder.finish().unwrap();
    stream.collect()
}

pub(super) fn file(batches: &[Batch]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = TraceWriter::new(&mut bytes, "test".into(), "{}").unwrap();
    for batch in batches {
        writer.batch(batch).unwrap();
    }
    writer.finish().unwrap();
    bytes
}

pub(super) fn open(bytes: &[u8]) -> TraceReader<Cursor<&[u8]>> {
    TraceReader::new(Cursor::new(bytes), "test".into()).unwrap()
}

/// What stands for disassembly: it has what some format must quote.
fn text(static_info: &StaticInfo) -> String {
    format!("op{} a0, a1", static_info.id.0)
}

fn csv(bytes: &[u8], range: &Range) -> (String, Result<ControlFlow<()>, WalkError>) {
    let mut out = Vec::new();
    let read = expand(&mut open(bytes), HartId(0), range, &mut Csv::new(&mut out, &text));
    (String::from_utf8(out).unwrap(), read)
}

/// RFC 4180; the columns are README.md's.
#[test]
fn golden_csv() {
    let (found, read) = csv(&file(&small(true)), &Range::ALL);
    assert!(read.unwrap().is_continue());
    let expected = "\
record,fetch,decode,dispatch,issue,complete,commit,space,privilege,pc,raw,class,wait,redirect,first_of_row,tea,instruction
0,0,5,7,7,10,10,2,0,0x10000,0x13,Int,Alu,None,true,,\"op0 a0, a1\"
1,0,5,7,8,12,12,2,0,0x10004,0x13,Load,Alu,None,false,,\"op1 a0, a1\"
2,0,6,8,9,11,13,2,0,0x10008,0x13,Branch,Alu,Mispredict,true,FL-MB|ST-L1,\"op2 a0, a1\"
3,15,20,22,22,26,26,2,0,0x1000c,0x13,System,Alu,Flush,true,,\"op3 a0, a1\"
4,26,31,33,,34,34,2,0,0x10010,0x13,System,Alu,Exception,true,,\"op4 a0, a1\"
5,37,42,44,44,47,47,2,0,0x10000,0x13,Int,Alu,None,true,,\"op0 a0, a1\"
";
    assert_eq!(found, expected);
    let (found, _) = csv(&file(&small(false)), &Range::ALL);
    assert_eq!(
        found.lines().nth(2),
        Some("1,,5,7,,,12,2,0,0x10004,0x13,Load,Alu,None,false,,\"op1 a0, a1\"")
    );
}

/// gem5, `src/cpu/o3/dyn_inst.cc`: fetch:tick:pc:micro-pc:number:text;
/// decode, rename, dispatch, issue, complete:tick; retire:tick:store:tick.
#[test]
fn golden_o3pipeview() {
    let range = Range { from: Position::Record(Seq(3)), to: Some(Position::Record(Seq(5))) };
    let mut out = Vec::new();
    let bytes = file(&small(true));
    let mut sink = O3PipeView::new(&mut out, &text);
    let read = expand(&mut open(&bytes), HartId(0), &range, &mut sink).unwrap();
    assert!(read.is_break());
    let expected = "\
O3PipeView:fetch:15000:0x0001000c:0:3:op3 a0, a1
O3PipeView:decode:20000
O3PipeView:rename:20000
O3PipeView:dispatch:21000
O3PipeView:issue:22000
O3PipeView:complete:26000
O3PipeView:retire:26000:store:0
O3PipeView:fetch:26000:0x00010010:0:4:op4 a0, a1
O3PipeView:decode:31000
O3PipeView:rename:31000
O3PipeView:dispatch:32000
O3PipeView:issue:32000
O3PipeView:complete:34000
O3PipeView:retire:0:store:0
";
    assert_eq!(String::from_utf8(out).unwrap(), expected);

    // Without stages, nothing looks squashed that is not.
    let mut out = Vec::new();
    let bytes = file(&small(false));
    let mut sink = O3PipeView::new(&mut out, &text);
    let _ = expand(&mut open(&bytes), HartId(0), &Range::ALL, &mut sink).unwrap();
    let out = String::from_utf8(out).unwrap();
    let zeros = out.lines().filter(|line| line.split(':').nth(2) == Some("0"));
    assert_eq!(zeros.count(), 1, "the trap's retirement: {out}");
}

/// Each instruction reads register 5 twice, and all but the third one write it.
fn registers(static_info: &StaticInfo) -> Registers {
    Registers { sources: [5, 0, 5], destination: if static_info.id.0 == 2 { 0 } else { 5 } }
}

fn konata(batches: &[Batch], range: &Range) -> String {
    let mut out = Vec::new();
    let bytes = file(batches);
    let mut sink = Konata::new(&mut out, &text, &registers).unwrap();
    let _ = expand(&mut open(&bytes), HartId(0), range, &mut sink).unwrap();
    String::from_utf8(out).unwrap()
}

/// Konata, `docs/kanata-log-format.md`: I id number thread; L id type text; S and E id lane stage; R id
/// retirement type; W consumer producer type; C= cycle; C cycles.
#[test]
fn golden_konata() {
    let range = Range { from: Position::Record(Seq(1)), to: Some(Position::Record(Seq(3))) };
    let expected = "\
Kanata\t0004
C=\t0
I\t0\t1\t0
L\t0\t0\t10004: op1 a0, a1
L\t0\t1\trecord 1, space 2, privilege 0, waited for Alu, redirect None
S\t0\t0\tF
I\t1\t2\t0
L\t1\t0\t10008: op2 a0, a1
L\t1\t1\trecord 2, space 2, privilege 0, waited for Alu, redirect Mispredict, TEA FL-MB|ST-L1
S\t1\t0\tF
C\t5
E\t0\t0\tF
S\t0\t0\tDc
C\t1
E\t0\t0\tDc
S\t0\t0\tDs
E\t1\t0\tF
S\t1\t0\tDc
C\t1
E\t1\t0\tDc
S\t1\t0\tDs
C\t1
E\t0\t0\tDs
S\t0\t0\tX
C\t1
W\t1\t0\t0
E\t1\t0\tDs
S\t1\t0\tX
C\t2
E\t1\t0\tX
S\t1\t0\tCm
C\t1
E\t0\t0\tX
S\t0\t0\tCm
C\t1
E\t0\t0\tCm
R\t0\t0\t0
C\t1
E\t1\t0\tCm
R\t1\t1\t0
";
    assert_eq!(konata(&small(true), &range), expected);
    let plain = konata(&small(false), &Range::ALL);
    // Instruction 2 writes nothing, and 4 traps.
    let dependences: Vec<&str> = plain.lines().filter(|line| line.starts_with("W\t")).collect();
    let expected = ["W\t1\t0\t0", "W\t2\t1\t0", "W\t3\t1\t0", "W\t4\t3\t0", "W\t5\t3\t0"];
    assert_eq!(dependences, expected);
    for stage in ["\tDc", "\tDs", "\tCm"] {
        assert!(plain.contains(stage), "{plain}");
    }
    assert!(!plain.contains("\tF\n") && !plain.contains("\tX\n"), "{plain}");
    assert!(
        plain.contains("R\t4\t4\t1\n") && plain.contains("R\t5\t4\t0\n"),
        "a trap is flushed: {plain}"
    );
}

/// A log must not go back in time, whatever the stream; every instruction begins, and ends once.
#[test]
fn konata_goes_forward() {
    let words: Vec<u32> = (0..5000u32).map(|n| n.wrapping_mul(2_654_435_761)).collect();
    let log = konata(&batches_of(SyntheticCore::new(4), &words), &Range::ALL);
    let count = |command: &str| log.lines().filter(|l| l.starts_with(command)).count();
    assert_eq!((count("I\t"), count("R\t")), (5000, 5000));
    assert_eq!(count("S\t"), count("E\t"));
    // A consumer has begun and is not retired; its producer has begun.
    let (mut begun, mut retired) = (HashSet::new(), HashSet::new());
    for line in log.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        match fields[..] {
            ["I", id, ..] => assert!(begun.insert(id), "{line}"),
            ["R", id, ..] => assert!(retired.insert(id), "{line}"),
            ["W", consumer, producer, "0"] => {
                assert!(begun.contains(consumer) && begun.contains(producer), "{line}");
                assert!(!retired.contains(consumer) && producer != consumer, "{line}");
            }
            _ => {}
        }
    }
    assert!(count("W\t") > 1000, "{} dependences", count("W\t"));
    assert!(
        log.lines().filter_map(|l| l.strip_prefix("C\t")).all(|n| n.parse::<u64>().unwrap() > 0)
    );
}

/// A trace of several chunks.
fn long() -> Vec<Batch> {
    let words: Vec<u32> = (0..700_000u32).map(|n| n.wrapping_mul(2_654_435_761) >> 3).collect();
    batches_of(SyntheticCore::by_rows(4), &words)
}

#[test]
fn parts_are_what_the_whole_says() {
    let bytes = file(&long());
    assert!(open(&bytes).chunks().len() > 2);
    let (all, _) = csv(&bytes, &Range::ALL);
    let commit = |line: &str| line.split(',').nth(6).unwrap().parse::<u64>().unwrap();
    let rows: Vec<&str> = all.lines().skip(1).collect();
    let middle = commit(rows[600_000]);
    let parts = [
        (Position::Record(Seq(600_000)), Position::Record(Seq(600_100))),
        (Position::Cycle(middle), Position::Cycle(middle + 500)),
        (Position::Cycle(middle), Position::Record(Seq(600_100))),
    ];
    for (from, to) in parts {
        let (found, read) = csv(&bytes, &Range { from, to: Some(to) });
        assert!(read.unwrap().is_break());
        let inside = |(n, line): &(usize, &&str)| {
            let at = |place: Position| place.reached(Seq(*n as u64), commit(line));
            at(from) && !at(to)
        };
        let expected: Vec<&str> = rows.iter().enumerate().filter(inside).map(|(_, l)| *l).collect();
        assert!(expected.len() > 50);
        assert!(found.lines().skip(1).eq(expected), "{from:?} {to:?}");
    }
    let beyond = Range { from: Position::Record(Seq(1 << 40)), to: None };
    let (_, read) = csv(&bytes, &beyond);
    assert!(matches!(read, Err(WalkError::Trace(TraceError::OutOfRange { .. }))));
}

#[test]
fn a_cut_or_damaged_trace_is_expanded_up_to_there() {
    let bytes = file(&long());
    let (all, _) = csv(&bytes, &Range::ALL);
    let second = open(&bytes).chunks()[1];
    let at = second.offset as usize + 5000;

    let (found, read) = csv(&bytes[..at], &Range::ALL);
    assert!(read.unwrap().is_continue());
    assert_eq!(open(&bytes[..at]).end(), TraceEnd::Cut { offset: second.offset });
    assert_eq!(found.lines().count() as u64, second.first_seq.0 + 1);
    assert!(all.starts_with(&found));

    let mut damaged = bytes.clone();
    damaged[at] ^= 4;
    let (found, read) = csv(&damaged, &Range::ALL);
    let Err(WalkError::Trace(TraceError::Damaged { offset, .. })) = read else {
        panic!("{read:?}")
    };
    assert_eq!(offset, second.offset);
    assert_eq!(found.lines().count() as u64, second.first_seq.0 + 1);
}
