//! The published per-cycle token: what the ROB's head shows, 64 bytes every cycle.

mod layout;
mod rob;

use std::io::{self, Read, Seek};
use std::ops::ControlFlow;

use crate::walk::{Item, Position, Range, Retired, WalkError, walk};
use crate::{Event, HartId, TraceReader};

pub use layout::TOKEN_BYTES;
use layout::Token;
use rob::Rob;

/// The reorder buffer that the tokens show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RobShape {
    /// Entries of a row: instructions that dispatch and commit together.
    pub width: u16,
    /// Rows.
    pub rows: u16,
}

impl RobShape {
    /// A buffer of `entries` in rows of `width`; `None` if a token cannot show it: rows of 1 to 5, 16-bit entry numbers.
    pub fn new(entries: u64, width: u64) -> Option<Self> {
        let fits = (1..=layout::SLOTS as u64).contains(&width)
            && entries >= width
            && entries <= u64::from(u16::MAX);
        fits.then(|| Self { width: width as u16, rows: (entries / width) as u16 })
    }
}

/// Writes one token for every cycle of a range, those in which the hart sleeps included.
pub struct Token512<W> {
    out: W,
    range: Range,
    /// First cycle to write; `None` while it is not known.
    from: Option<u64>,
    /// The cycle after the last to write; `None` while it is not known.
    to: Option<u64>,
    /// Last cycle that was written or passed over.
    done: u64,
    rob: Rob,
}

impl<W: io::Write> Token512<W> {
    /// Writes the cycles of `range` to `out`, many small pieces. A record stands for the cycle in which it
    /// commits.
    pub fn new(out: W, shape: RobShape, range: Range) -> Self {
        let known = |at: Position| match at {
            Position::Cycle(cycle) => Some(cycle),
            Position::Record(_) => None,
        };
        Self {
            out,
            range,
            from: known(range.from),
            to: range.to.and_then(known),
            done: 0,
            rob: Rob::new(shape),
        }
    }

    /// Reads what the tokens need of `hart`'s stream, and writes them; up to the damage, if there is some.
    ///
    /// # Errors
    /// If the trace is damaged ([`walk()`](crate::walk())), the output cannot be written, a row has more than five instructions, or
    /// instructions of two rows commit in one cycle.
    pub fn expand<R: Read + Seek>(
        mut self,
        reader: &mut TraceReader<R>,
        hart: HartId,
    ) -> Result<ControlFlow<()>, WalkError> {
        let walked = walk(reader, hart, self.range.from, |item| self.item(&item));
        if !matches!(walked, Err(WalkError::Write(_))) {
            self.write_to(self.rob.committed())?;
            self.out.flush()?;
        }
        walked
    }

    fn item(&mut self, item: &Item<'_>) -> Result<ControlFlow<()>, WalkError> {
        match item {
            Item::Start(cycle) => {
                self.done = *cycle;
                self.rob.start(*cycle);
            }
            Item::Record(retired) => self.record(retired)?,
            Item::Event(cycle, Event::Idle { cycles }) => {
                self.write_to(*cycle)?;
                let end = cycle.saturating_add(*cycles);
                self.rob.start(end);
                self.asleep(end)?;
            }
            Item::Event(..) => {}
        }
        let over = self.to.is_some_and(|to| self.done.saturating_add(1) >= to);
        Ok(match over {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        })
    }

    fn record(&mut self, retired: &Retired<'_>) -> Result<(), WalkError> {
        let reached = |at: Position| at.reached(retired.seq, retired.commit.commit);
        let here = |known: Option<u64>, at: Option<Position>| {
            known.or_else(|| at.is_some_and(reached).then_some(retired.commit.commit))
        };
        self.from = here(self.from, Some(self.range.from));
        self.to = here(self.to, self.range.to);
        let dispatch = self.rob.push(retired)?;
        // Dispatch is in order: whatever follows enters the ROB in this cycle at the earliest. The token of the cycle
        // before shows that something is dispatched.
        Ok(self.write_to(dispatch.saturating_sub(2))?)
    }

    /// Writes the tokens up to `last`.
    fn write_to(&mut self, last: u64) -> io::Result<()> {
        while let Some(cycle) = self.next(last) {
            let token = self.rob.token(cycle);
            self.out.write_all(&token.bytes())?;
        }
        Ok(())
    }

    /// Writes the tokens of a sleeping hart up to `last`.
    fn asleep(&mut self, last: u64) -> io::Result<()> {
        while let Some(cycle) = self.next(last) {
            let token = Token { csr_stall: true, ..self.rob.token(cycle) };
            self.out.write_all(&token.bytes())?;
        }
        Ok(())
    }

    /// The next cycle to write, up to `last`.
    fn next(&mut self, last: u64) -> Option<u64> {
        let last = self.to.map_or(last, |to| last.min(to.saturating_sub(1)));
        let next = self.done.checked_add(1)?.max(self.from.unwrap_or(u64::MAX));
        if next > last {
            self.done = self.done.max(last);
            return None;
        }
        self.done = next;
        Some(next)
    }
}
