//! Tokens. The order of the fields is that of layout.rs.

use proptest::prelude::*;

use super::*;

fn tokens(
    bytes: &[u8],
    range: Range,
) -> (Vec<[u8; TOKEN_BYTES]>, Result<ControlFlow<()>, WalkError>) {
    let shape = RobShape::new(8, 4).unwrap();
    let mut out = Vec::new();
    let read = Token512::new(&mut out, shape, range).expand(&mut open(bytes), HartId(0));
    let (tokens, rest) = out.as_chunks();
    assert!(rest.is_empty());
    (tokens.to_vec(), read)
}

/// One line per token: cycle, state bits 7 to 0, counts, head, tail, slots.
fn readable(tokens: &[[u8; TOKEN_BYTES]]) -> String {
    let line = |t: &[u8; TOKEN_BYTES]| {
        let number = |at: usize| u16::from_le_bytes([t[at], t[at + 1]]);
        assert_eq!(t[..8], t[8..16], "both counters");
        assert_eq!(number(18), number(20), "head and point of no return");
        let slots = t[24..].as_chunks::<8>().0.iter().map(|slot| {
            let pc = u64::from_le_bytes(*slot) >> 8;
            match slot[0] {
                0 => String::new(),
                flags => format!(" {flags:04b}:{pc:x}"),
            }
        });
        format!(
            "{} {:08b} {:02x} {} {}{}\n",
            u16::from_le_bytes([t[0], t[1]]),
            t[16],
            t[17],
            number(18),
            number(22),
            slots.collect::<String>()
        )
    };
    tokens.iter().map(line).collect()
}

#[test]
fn golden_tokens() {
    let (found, read) = tokens(&file(&small(false)), Range::ALL);
    assert!(read.unwrap().is_continue());
    // Rows of 4, 2 of them. State: CSR stall, exception, rolling back, dispatching, empty, ready, valid, committing.
    let expected = "\
1 00001100 00 0 0
2 00001100 00 0 0
3 00001100 00 0 0
4 00001100 00 0 0
5 00001100 00 0 0
6 00011100 00 0 0
7 00010110 20 0 4 0010:10000 0010:10004
8 00000010 20 0 0 0010:10000 0010:10004
9 00000010 20 0 0 0010:10000 0010:10004
10 00000011 21 0 0 0011:10000 0010:10004
11 00000010 10 0 0 0010:10004
12 00000011 11 0 0 0011:10004
13 00000111 11 4 0 0111:10008
14 00001100 00 0 0
15 00001100 00 0 0
16 00001100 00 0 0
17 00001100 00 0 0
18 00001100 00 0 0
19 00001100 00 0 0
20 00001100 00 0 0
21 00011100 00 0 0
22 00000110 10 0 4 1010:1000c
23 00000110 10 0 4 1010:1000c
24 00000110 10 0 4 1010:1000c
25 00000110 10 0 4 1010:1000c
26 00000111 11 0 4 1011:1000c
27 00001100 00 4 4
28 00001100 00 4 4
29 00001100 00 4 4
30 00001100 00 4 4
31 00001100 00 4 4
32 00011100 00 4 4
33 00000110 10 4 0 0010:10010
34 01000110 10 4 0 0010:10010
35 10001100 00 0 0
36 10001100 00 0 0
37 00001100 00 0 0
38 00001100 00 0 0
39 00001100 00 0 0
40 00001100 00 0 0
41 00001100 00 0 0
42 00001100 00 0 0
43 00011100 00 0 0
44 00000110 10 0 4 0010:10000
45 00000110 10 0 4 0010:10000
46 00000110 10 0 4 0010:10000
47 00000111 11 0 4 0011:10000
";
    assert_eq!(readable(&found), expected);
    // One of them byte by byte.
    let mut bytes = [0; TOKEN_BYTES];
    (bytes[0], bytes[8], bytes[16], bytes[17]) = (10, 10, 0b11, 0x21);
    bytes[24..28].copy_from_slice(&[0b11, 0, 0, 1]);
    bytes[32..36].copy_from_slice(&[0b10, 4, 0, 1]);
    assert_eq!(found[9], bytes);
}

#[test]
fn a_part_is_a_part_of_the_tokens() {
    let bytes = file(&small(false));
    let (all, _) = tokens(&bytes, Range::ALL);
    let record = |seq| Position::Record(Seq(seq));
    for (from, to, cycles) in [
        (Position::Cycle(9), Some(Position::Cycle(40)), 9..40),
        (record(2), Some(record(4)), 13..34),
        (Position::Cycle(30), None, 30..48),
        (Position::Cycle(35), Some(Position::Cycle(36)), 35..36),
        (record(1), Some(Position::Cycle(12)), 12..12),
    ] {
        let (found, read) = tokens(&bytes, Range { from, to });
        assert_eq!(read.unwrap().is_break(), to.is_some());
        let expected: &[_] = &all[cycles.start - 1..cycles.end - 1];
        assert_eq!(readable(&found), readable(expected), "{from:?} {to:?}");
    }
}

#[test]
fn rows_that_a_token_cannot_show_are_refused() {
    assert_eq!(RobShape::new(64, 8), None);
    assert_eq!(RobShape::new(64, 0), None);
    assert_eq!(RobShape::new(1 << 16, 4), None);
    let mut batches = small(false);
    // The branch beside the load, and of another row.
    batches[0].records[2].commit_delta = 0;
    let (_, read) = tokens(&file(&batches), Range::ALL);
    assert!(matches!(read, Err(WalkError::Unsayable { seq: Seq(2), .. })), "{read:?}");
}

#[test]
fn a_cut_trace_gives_the_tokens_up_to_there() {
    let bytes = file(&long());
    let second = open(&bytes).chunks()[1];
    let (found, read) = tokens(&bytes[..second.offset as usize + 777], Range::ALL);
    assert!(read.unwrap().is_continue());
    assert_eq!(found.len() as u64, second.start_cycle);
}

proptest! {
    /// Whatever the stream, tokens are one per cycle or it is refused.
    #[test]
    fn any_stream_is_shown_or_refused(words in prop::collection::vec(any::<u32>(), 1..200), width in 1..=8usize) {
        let words: Vec<u32> = words.iter().map(|word| word & 0xffff_0fff).collect();
        let batches = batches_of(SyntheticCore::new(width), &words);
        let (found, read) = tokens(&file(&batches), Range::ALL);
        match read {
            Ok(_) => prop_assert_eq!(Some(found.len() as u64), batches.last().unwrap().end_cycle()),
            Err(error) => {
                let refused = matches!(error, WalkError::Unsayable { .. });
                prop_assert!(refused, "{}", error);
            }
        }
    }
}
