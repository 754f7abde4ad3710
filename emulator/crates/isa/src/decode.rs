//! Decoding: the major opcode and funct3 select a bucket, whose few table rows are tried one by one.

use crate::DecodedInst;
use crate::table::ROWS;

/// Decodes one instruction: a 16-bit encoding in the low half of `raw` if its low two bits are
/// not both set, else a 32-bit one. Never fails: a reserved encoding gives [`crate::Op::Illegal`], with
/// the encoding in `raw` for `xtval`.
pub fn decode(raw: u32) -> DecodedInst {
    if raw & 3 != 3 {
        return crate::compressed::decode(raw as u16);
    }
    let illegal = DecodedInst::illegal(raw);
    let bucket = bucket_of(raw);
    let (start, end) = (ROWS_BY_BUCKET.start[bucket], ROWS_BY_BUCKET.start[bucket + 1]);
    for &number in &ROWS_BY_BUCKET.rows[start as usize..end as usize] {
        let row = &ROWS[number as usize];
        if row.encoding.matches(raw) {
            let mut inst = DecodedInst { op: row.op, class: row.class, ..illegal };
            let legal = row.operands.iter().all(|operand| operand.extract(&mut inst));
            return if legal { inst } else { illegal };
        }
    }
    illegal
}

/// Number of an encoding's bucket: opcode bits 6–2 (low) and funct3 (high).
const fn bucket_of(raw: u32) -> usize {
    ((raw >> 2) & 31 | (raw >> 12 & 7) << 5) as usize
}

/// 5 bits of opcode and 3 of funct3.
const BUCKETS: usize = 256;

/// Table rows by bucket: those of bucket `b` are `rows[start[b]..start[b + 1]]`, as indices of [`ROWS`].
struct Index<const N: usize> {
    start: [u16; BUCKETS + 1],
    rows: [u16; N],
}

static ROWS_BY_BUCKET: Index<{ index_length() }> = index();

/// True if some encoding of the row falls into the bucket.
const fn in_bucket(row: usize, bucket: usize) -> bool {
    let key = ((bucket & 31) << 2 | (bucket >> 5) << 12) as u32;
    let encoding = ROWS[row].encoding;
    (key ^ encoding.value) & encoding.mask & 0x707c == 0
}

/// Length of [`Index::rows`]: a row is in every bucket that its encodings fall into.
const fn index_length() -> usize {
    index::<{ BUCKETS * 8 }>().start[BUCKETS] as usize
}

const fn index<const N: usize>() -> Index<N> {
    let mut index = Index { start: [0; BUCKETS + 1], rows: [0; N] };
    let (mut bucket, mut count) = (0, 0);
    while bucket < BUCKETS {
        // Row 0 is `Illegal`.
        let mut row = 1;
        while row < ROWS.len() {
            if in_bucket(row, bucket) {
                index.rows[count] = row as u16;
                count += 1;
            }
            row += 1;
        }
        bucket += 1;
        index.start[bucket] = count as u16;
    }
    index
}
