//! Tokens, read by somebody who knows nothing else, give the Oracle's profile.

use std::collections::BTreeMap;
use std::io::Cursor;

use commit_trace::expand::{RobShape, TOKEN_BYTES, Token512};
use commit_trace::synthetic::{SyntheticCore, batches_of};
use commit_trace::{Batch, HartId, Range, TraceReader, TraceWriter};
use profile::{Evaluator, Region, UNITS_PER_CYCLE};
use proptest::prelude::*;

/// Units by PC, and idle cycles.
#[derive(Debug, Default, PartialEq)]
struct Counts {
    units: BTreeMap<u64, u64>,
    idle: u64,
}

fn oracle(batches: &[Batch]) -> Counts {
    let mut evaluator = Evaluator::new(&[], Region::Whole);
    for batch in batches {
        evaluator.batch(batch).unwrap();
    }
    let evaluation = evaluator.finish();
    let mut counts = Counts { idle: evaluation.idle, ..Counts::default() };
    for (_, inst, units) in evaluation.oracle.iter().filter(|(.., units)| *units > 0) {
        *counts.units.entry(evaluation.static_info[inst.0 as usize].pc).or_default() += units;
    }
    counts
}

fn tokens(batches: &[Batch], width: u64) -> Vec<u8> {
    let mut file = Vec::new();
    let mut writer = TraceWriter::new(&mut file, "test".into(), "{}").unwrap();
    for batch in batches {
        writer.batch(batch).unwrap();
    }
    writer.finish().unwrap();
    let mut reader = TraceReader::new(Cursor::new(file), "test".into()).unwrap();
    let shape = RobShape::new(64 * width, width).unwrap();
    let mut out = Vec::new();
    let _ = Token512::new(&mut out, shape, Range::ALL).expand(&mut reader, HartId(0)).unwrap();
    out
}

/// The published rules, from the bytes of tokens alone.
fn read(tokens: &[u8]) -> Counts {
    let mut counts = Counts::default();
    let (mut oir, mut drained) = (None, 0);
    let (tokens, rest) = tokens.as_chunks::<TOKEN_BYTES>();
    assert!(rest.is_empty());
    for (n, token) in tokens.iter().enumerate() {
        assert_eq!(token[..8], (n as u64 + 1).to_le_bytes());
        let mut charge = |pc: u64, units: u64| *counts.units.entry(pc).or_default() += units;
        let slots: Vec<(u8, u64)> = token[24..]
            .as_chunks::<8>()
            .0
            .iter()
            .map(|slot| (slot[0], u64::from_le_bytes(*slot) >> 8))
            .collect();
        let valid: Vec<_> = slots.iter().filter(|slot| slot.0 & 2 != 0).collect();
        let committing: Vec<_> = slots.iter().filter(|slot| slot.0 & 1 != 0).collect();
        let state = token[16];
        assert_eq!(token[17], (committing.len() | valid.len() << 4) as u8);
        assert_eq!(state & 3, u8::from(!committing.is_empty()) | u8::from(!valid.is_empty()) << 1);
        assert_eq!(state & 8 != 0, valid.is_empty(), "empty");
        if state & 0x80 != 0 {
            counts.idle += 1;
            continue;
        }
        let Some(oldest) = valid.first() else {
            match oir {
                Some((pc, true)) => charge(pc, UNITS_PER_CYCLE),
                _ => drained += UNITS_PER_CYCLE,
            }
            continue;
        };
        if drained > 0 {
            charge(oldest.1, std::mem::take(&mut drained));
        }
        for slot in &committing {
            charge(slot.1, UNITS_PER_CYCLE / committing.len() as u64);
        }
        if let Some(youngest) = committing.last() {
            oir = Some((youngest.1, youngest.0 & 0b1100 != 0));
        } else {
            charge(oldest.1, UNITS_PER_CYCLE);
        }
        if state & 0x40 != 0 {
            let raises = valid.iter().find(|slot| slot.0 & 1 == 0).unwrap();
            oir = Some((raises.1, true));
        }
    }
    counts
}

proptest! {
    #[test]
    fn tokens_agree_with_the_oracle(words in prop::collection::vec(any::<u32>(), 1..400), width in 1..=5usize) {
        // Sleep up to 65536 cycles is the same a thousand times over.
        let words: Vec<u32> = words.iter().map(|word| match word >> 24 {
            255 => word & 0xffff_00ff,
            _ => *word,
        }).collect();
        let batches = batches_of(SyntheticCore::by_rows(width), &words);
        prop_assert_eq!(read(&tokens(&batches, width as u64)), oracle(&batches));
    }
}
