//! Which lines go from hart to hart often: accesses to them have to be in the order of simulated time, and others need not.
//!
//! Two accesses of different harts to a line *conflict* if one of them writes. A line is contended after a conflict if it holds a lock, as atomic
//! instructions access it, or a flag that another hart polls. Other lines, of data, are contended while conflicts follow each other closely. A line is
//! quiet again when harts have waited for their turn to access it many times, and no other hart has accessed it meanwhile.

use snapshot::{Archive, Snapshot};

const LINE_BITS: u32 = 6;
const PAGE_BITS: u32 = 12;
const LINES_OF_PAGE: usize = 1 << (PAGE_BITS - LINE_BITS);

/// Log2 of the cycles of an epoch.
const EPOCH_BITS: u32 = 9;
/// Epochs between two conflicts of a line of data, at most, if they make it contended. Epochs are kept modulo 256, and a line that had no conflict counts
/// as one that had it in epoch 0: conflicts may be taken for close that are not, which costs harts a few waits.
const CLOSE_EPOCHS: u8 = 4;
/// Epochs after the last conflict from which on a line of data is quiet.
const QUIET_EPOCHS: u8 = 32;

/// Who has accessed a line lately.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
enum Accessed {
    ByNobody,
    /// One hart alone has read the line.
    ReadByOne,
    /// One hart alone has accessed the line since that hart wrote it.
    WrittenByOne,
    /// Several harts have read the line.
    ReadBySeveral,
}

/// The state of a line.
///
/// | Bits | |
/// |---|---|
/// | 0 to 3 | the last hart |
/// | 4, 5 | [`Accessed`] |
/// | 6 | the line holds a lock or a flag |
/// | 7 | the line is contended |
/// | 8 to 15 | of a lock: how often harts have yet to wait for nothing before the line is quiet; of data: the epoch of the last conflict |
#[derive(Clone, Copy, PartialEq, Eq)]
struct LineState(u16);

const IS_LOCK: u16 = 1 << 6;
const IS_CONTENDED: u16 = 1 << 7;

/// What a hart does to a line.
#[derive(Clone, Copy)]
pub(super) struct LineAccess {
    pub hart: usize,
    pub writes: bool,
    /// The line holds a lock, as an atomic instruction accesses it, or a flag that another hart polls.
    pub is_lock: bool,
}

impl LineState {
    /// Returns whether a hart was the last to access the line.
    const fn is_last(self, hart: usize) -> bool {
        self.0 & 15 == hart as u16 & 15
    }

    const fn accessed(self) -> Accessed {
        match self.0 >> 4 & 3 {
            0 => Accessed::ByNobody,
            1 => Accessed::ReadByOne,
            2 => Accessed::WrittenByOne,
            _ => Accessed::ReadBySeveral,
        }
    }

    const fn is_lock(self) -> bool {
        self.0 & IS_LOCK != 0
    }

    const fn is_contended(self) -> bool {
        self.0 & IS_CONTENDED != 0
    }

    /// Returns bits 8 to 15: what they say depends on whether the line holds a lock.
    const fn rest(self) -> u8 {
        (self.0 >> 8) as u8
    }

    /// Returns whether the order of an access and those before it matters, since they are of different harts and some write.
    const fn conflicts(self, hart: usize, writes: bool) -> bool {
        match self.accessed() {
            Accessed::ByNobody => false,
            Accessed::ReadByOne => writes && !self.is_last(hart),
            Accessed::WrittenByOne => !self.is_last(hart),
            Accessed::ReadBySeveral => writes,
        }
    }

    /// Returns the state after an access in an epoch.
    fn after(self, LineAccess { hart, writes, is_lock }: LineAccess, epoch: u8) -> Self {
        let accessed = match (writes, self.accessed()) {
            (true, _) => Accessed::WrittenByOne,
            (false, Accessed::ByNobody) => Accessed::ReadByOne,
            (false, accessed) if self.is_last(hart) => accessed,
            (false, _) => Accessed::ReadBySeveral,
        };
        let was_lock = self.is_lock();
        let is_lock = was_lock || is_lock;
        let (contended, rest) = match (is_lock, self.conflicts(hart, writes)) {
            (true, true) => {
                let waits = if was_lock { self.rest() } else { 0 };
                (true, waits.saturating_mul(2).saturating_add(2))
            }
            (true, false) if !was_lock => (false, 0),
            (false, true) => {
                let is_close = epoch.wrapping_sub(self.rest()) <= CLOSE_EPOCHS;
                (self.is_contended() || is_close, epoch)
            }
            (_, false) => (self.is_contended(), self.rest()),
        };
        let flags = if is_lock { IS_LOCK } else { 0 } | if contended { IS_CONTENDED } else { 0 };
        Self(u16::from(rest) << 8 | flags | (accessed as u16) << 4 | hart as u16 & 15)
    }

    /// Returns the state of a contended line after a hart has waited for its turn to access the line.
    fn after_wait(self, hart: usize, writes: bool) -> Self {
        match (self.is_lock() && !self.conflicts(hart, writes), self.rest()) {
            (false, _) => self,
            (true, 0 | 1) => Self(self.0 & 0xff & !IS_CONTENDED),
            (true, _) => Self(self.0 - (1 << 8)),
        }
    }
}

/// The states of all lines of RAM; none if only one hart uses the RAM.
#[derive(Default)]
pub(super) struct Contention {
    lines: Vec<u16>,
    /// Number of contended lines, by page.
    contended: Vec<u8>,
    /// The present epoch.
    epoch: u8,
    /// Number of the line that each hart accessed last.
    last: Vec<usize>,
}

impl Contention {
    /// Begins to keep states of lines, if that has not begun.
    pub(super) fn begin(&mut self, pages: usize, harts: usize) {
        if self.lines.is_empty() {
            // All zeros, which the host keeps no memory for until they change.
            self.lines = vec![0; pages * LINES_OF_PAGE];
            self.contended = vec![0; pages];
        }
        self.last.resize(harts, 0);
    }

    /// Notes that simulated time has come to a cycle.
    pub(super) fn pass(&mut self, cycle: u64) {
        self.epoch = (cycle >> EPOCH_BITS) as u8;
    }

    /// Notes that a hart has accessed the line that holds a byte, given by its offset in RAM. Returns true if the line was quiet and is contended now.
    #[inline]
    pub(super) fn accessed(&mut self, at: usize, mut access: LineAccess) -> bool {
        let number = at >> LINE_BITS;
        let Some(line) = self.lines.get_mut(number) else { return false };
        let before = LineState(*line);
        if before.conflicts(access.hart, access.writes) {
            // A hart that polls accesses nothing else.
            let mut last = self.last.iter().enumerate();
            access.is_lock |= last.any(|(n, &last)| n != access.hart && last == number);
        }
        let after = before.after(access, self.epoch);
        *line = after.0;
        match (before.is_contended(), after.is_contended()) {
            (false, true) => self.contended[at >> PAGE_BITS] += 1,
            (true, false) => self.contended[at >> PAGE_BITS] -= 1,
            _ => {}
        }
        after.is_contended() && !before.is_contended()
    }

    /// Notes which byte a hart accessed last.
    #[inline]
    pub(super) fn accessed_last(&mut self, hart: usize, at: usize) {
        self.last[hart] = at >> LINE_BITS;
    }

    /// Returns whether the page that holds a byte has contended lines.
    #[inline]
    pub(super) fn has_contended(&self, at: usize) -> bool {
        self.contended.get(at >> PAGE_BITS).is_some_and(|&lines| lines != 0)
    }

    /// Returns whether a hart has to wait for its turn to access the line that holds a byte, if it is not its turn.
    pub(super) fn must_wait(&mut self, hart: usize, at: usize, writes: bool) -> bool {
        let number = at >> LINE_BITS;
        let Some(line) = self.lines.get(number).copied().map(LineState) else { return false };
        if !line.is_contended() {
            return false;
        }
        let conflicts = line.conflicts(hart, writes);
        if !line.is_lock() && !conflicts && self.epoch.wrapping_sub(line.rest()) >= QUIET_EPOCHS {
            self.lines[number] = line.0 & !IS_CONTENDED;
            self.contended[at >> PAGE_BITS] -= 1;
        }
        line.is_lock() || conflicts
    }

    /// Notes that a hart has to wait for its turn to access the line that holds a byte. A hart that polls the line says nothing by that of whether others
    /// will write to it.
    pub(super) fn waits(&mut self, hart: usize, at: usize, writes: bool) {
        if self.last.get(hart) == Some(&(at >> LINE_BITS)) {
            return;
        }
        let line = self.lines.get_mut(at >> LINE_BITS);
        let Some(line) = line.filter(|line| LineState(**line).is_contended()) else { return };
        let after = LineState(*line).after_wait(hart, writes);
        *line = after.0;
        if !after.is_contended() {
            self.contended[at >> PAGE_BITS] -= 1;
        }
    }
}

/// The states of a page's lines.
#[derive(Clone, Default)]
struct PageLines {
    page: u32,
    lines: Vec<u16>,
}

snapshot::snapshot!(PageLines { page, lines });

impl Contention {
    /// Saves the states of all lines of so many pages, or loads them.
    pub(super) fn snapshot(&mut self, archive: &mut Archive<'_>, pages: usize) -> snapshot::Result {
        let lines_by_page = self.lines.chunks(LINES_OF_PAGE).zip(0..);
        let touched = lines_by_page.filter(|(lines, _)| lines.iter().any(|&line| line != 0));
        let touched = touched.map(|(lines, page)| PageLines { page, lines: lines.to_vec() });
        let mut touched: Vec<_> = touched.collect();
        touched.snapshot(archive)?;
        self.last.snapshot(archive)?;
        if archive.is_loading() {
            let is_there = |saved: &PageLines| {
                (saved.page as usize) < pages && saved.lines.len() == LINES_OF_PAGE
            };
            let are_there = touched.iter().all(is_there);
            archive.check(are_there, || "lines of pages that are not there".to_owned())?;
            (self.lines, self.contended) = (Vec::new(), Vec::new());
            if !touched.is_empty() {
                self.begin(pages, self.last.len());
            }
            for PageLines { page, lines } in touched {
                let page = page as usize;
                let contended = lines.iter().filter(|&&line| LineState(line).is_contended());
                self.contended[page] = contended.count() as u8;
                self.lines[page * LINES_OF_PAGE..][..LINES_OF_PAGE].copy_from_slice(&lines);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: usize = 0x1000;
    const DATA: usize = 0x1040;

    fn contention() -> Contention {
        let mut contention = Contention::default();
        contention.begin(4, 3);
        contention
    }

    fn atomic(contention: &mut Contention, hart: usize) -> bool {
        contention.accessed(LOCK, LineAccess { hart, writes: true, is_lock: true })
    }

    fn access(contention: &mut Contention, hart: usize, at: usize, writes: bool) -> bool {
        contention.accessed(at, LineAccess { hart, writes, is_lock: false })
    }

    #[test]
    fn a_lock_is_contended_once_two_harts_have_taken_it() {
        let mut contention = contention();
        assert!(!atomic(&mut contention, 0) && !contention.has_contended(LOCK));
        assert!(!contention.must_wait(0, LOCK, true));
        assert!(atomic(&mut contention, 1) && contention.has_contended(LOCK));
        assert!(!atomic(&mut contention, 0), "it was contended before");
        assert!(contention.must_wait(0, LOCK, true), "its own release, too");
        assert!(!contention.has_contended(0) && !contention.has_contended(0x2000));
    }

    #[test]
    fn a_lock_that_one_hart_alone_takes_is_quiet_after_some_time() {
        let mut contention = contention();
        atomic(&mut contention, 0);
        atomic(&mut contention, 1);
        contention.accessed_last(1, LOCK);
        contention.waits(1, LOCK, true);
        contention.waits(1, LOCK, true);
        assert!(contention.must_wait(1, LOCK, true), "it polls");
        contention.accessed_last(1, DATA);
        let waits = |contention: &mut Contention| {
            let wait = |_: &usize| {
                contention.waits(1, LOCK, true);
                contention.must_wait(1, LOCK, true)
            };
            (1..).take_while(wait).count() + 1
        };
        assert_eq!(waits(&mut contention), 2);
        assert!(!contention.has_contended(LOCK));
        for _ in 0..10 {
            atomic(&mut contention, 0);
            atomic(&mut contention, 1);
        }
        assert_eq!(waits(&mut contention), 255, "often contended, long remembered");
    }

    #[test]
    fn what_all_only_read_is_quiet() {
        let mut contention = contention();
        assert!(!access(&mut contention, 0, DATA, true));
        for hart in [1, 2, 0, 1] {
            access(&mut contention, hart, DATA, false);
        }
        assert!(!contention.must_wait(2, DATA, false));
    }

    #[test]
    fn data_is_contended_while_conflicts_are_close() {
        let mut contention = contention();
        let (near, far) = (1 << EPOCH_BITS, u64::from(QUIET_EPOCHS) << EPOCH_BITS);
        contention.pass(20 * near);
        access(&mut contention, 0, DATA, true);
        contention.accessed_last(0, 0);
        assert!(!access(&mut contention, 1, DATA, true), "the first conflict");
        contention.accessed_last(1, 0);
        contention.pass(21 * near);
        assert!(access(&mut contention, 0, DATA, true), "soon after");
        assert!(!contention.must_wait(0, DATA, true), "its own data");
        assert!(contention.must_wait(1, DATA, true));
        contention.pass(21 * near + far);
        assert!(!contention.must_wait(0, DATA, true) && !contention.has_contended(DATA));
    }

    #[test]
    fn a_flag_that_another_hart_polls_is_contended() {
        let mut contention = contention();
        contention.pass(50 << EPOCH_BITS);
        access(&mut contention, 1, DATA, false);
        contention.accessed_last(1, DATA);
        assert!(access(&mut contention, 0, DATA, true));
        assert!(contention.must_wait(1, DATA, false));
    }

    #[test]
    fn a_saved_state_goes_on_as_it_was() {
        let mut saved = contention();
        atomic(&mut saved, 0);
        atomic(&mut saved, 1);
        saved.accessed_last(2, DATA);
        let mut saving = Archive::saving();
        saved.snapshot(&mut saving, 4).unwrap();
        let bytes = saving.into_bytes();
        let mut loaded = Contention::default();
        loaded.snapshot(&mut Archive::loading(&bytes), 4).unwrap();
        assert_eq!((&loaded.lines, &loaded.last), (&saved.lines, &saved.last));
        assert!(loaded.has_contended(LOCK) && loaded.must_wait(0, LOCK, true));
        assert!(Contention::default().snapshot(&mut Archive::loading(&bytes), 1).is_err());
    }
}
