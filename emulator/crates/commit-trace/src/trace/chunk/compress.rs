//! Columns as zstd frames, a piece at a time.

use std::io::Result;

use zstd::stream::raw::{Encoder, InBuffer, Operation, OutBuffer};
use zstd::zstd_safe::compress_bound;

/// zstd's fastest level: the columns are mostly zeros by now, higher ones gain a few percent.
const LEVEL: i32 = 1;

/// Bytes that are compressed at once: a whole column takes up to a millisecond, in which others may wait.
const PIECE: usize = 32 << 10;

/// Makes frames, one after the other.
pub(in crate::trace) struct Compressor(Encoder<'static>);

impl Compressor {
    pub(in crate::trace) fn new() -> Result<Self> {
        Self::with_level(LEVEL)
    }

    pub(in crate::trace) fn with_level(level: i32) -> Result<Self> {
        Ok(Self(Encoder::new(level)?))
    }

    /// Appends another piece of a column's frame to `out`; `done` bytes of the column are in it. Returns true if the frame is
    /// whole.
    pub(in crate::trace) fn piece(
        &mut self,
        column: &[u8],
        done: &mut usize,
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        let Self(encoder) = self;
        if *done == 0 {
            encoder.reinit()?;
            encoder.set_pledged_src_size(Some(column.len() as u64))?;
        }
        let rest = &column[*done..];
        let piece = &rest[..rest.len().min(PIECE)];
        *done += piece.len();
        let is_whole = *done == column.len();
        out.reserve(compress_bound(piece.len()));
        let mut input = InBuffer::around(piece);
        while input.pos() < piece.len() {
            run(out, |output| encoder.run(&mut input, output))?;
        }
        // What has gone in is compressed now, not when there is enough for one of zstd's blocks.
        while 0
            != run(out, |output| match is_whole {
                true => encoder.finish(output, true),
                false => encoder.flush(output),
            })?
        {}
        Ok(is_whole)
    }
}

/// Has what is written appended to `out`.
fn run(
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut OutBuffer<'_, Vec<u8>>) -> Result<usize>,
) -> Result<usize> {
    out.reserve(1 << 10);
    let end = out.len();
    write(&mut OutBuffer::around_pos(out, end))
}
