//! A log of events of pages that harts must react to: code was overwritten, or accesses to a page must take the slow path.
//! Each event is logged once. Every hart reads the log at its own pace, at the latest before its next instruction.

/// Maximum number of events in the log; when it is full, all of them are dropped. A hart that has not read dropped events
/// drops all its decoded code.
const MAX_EVENTS: usize = 4096;

/// Number of the last events that [`Log::add`] looks at: a loop stores to a few pages in turn.
const RECENT_EVENTS: u64 = 4;

/// What happened to a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageEventKind {
    /// Bytes of a page with code were written.
    Overwritten {
        /// The first of them, counted from the page's start.
        from: u16,
        /// The first after them.
        to: u16,
    },
    /// From now on, stores to the page must take the slow path: a hart decoded code in it, or has a reservation there.
    SlowStores,
    /// From now on, all accesses to the page must take the slow path: harts contend for a line in it.
    SlowAccesses,
}

/// An event of the page with number `page` (`pa >> 12`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageEvent {
    /// The page's number.
    pub page: u64,
    /// What happened.
    pub kind: PageEventKind,
    /// The hart that caused the event and need not react; `None`: a device, a debugger, a loader.
    pub by: Option<usize>,
}

impl PageEvent {
    /// Widens the event to cover another one and returns true, if that is of the same kind, page and origin; else changes
    /// nothing.
    fn merge(&mut self, other: &Self) -> bool {
        if (self.page, self.by) != (other.page, other.by) {
            return false;
        }
        match (&mut self.kind, other.kind) {
            (PageEventKind::SlowStores, PageEventKind::SlowStores)
            | (PageEventKind::SlowAccesses, PageEventKind::SlowAccesses) => true,
            (
                PageEventKind::Overwritten { from, to },
                PageEventKind::Overwritten { from: f, to: t },
            ) => {
                (*from, *to) = (f.min(*from), t.max(*to));
                true
            }
            _ => false,
        }
    }
}

/// The log.
#[derive(Default)]
pub(super) struct Log {
    events: Vec<PageEvent>,
    /// Number of events dropped since reset.
    dropped: u64,
    /// Value of [`Self::end`] when a hart last read the log.
    read: u64,
}

impl Log {
    /// Returns the number of events logged since reset.
    #[inline]
    pub(crate) fn end(&self) -> u64 {
        self.dropped + self.events.len() as u64
    }

    /// Logs an event, unless one of the last that no hart has read yet can be widened to cover it.
    pub(crate) fn add(&mut self, event: PageEvent) {
        let unread = (self.end() - self.read).min(RECENT_EVENTS);
        let mut last = self.events.iter_mut().rev().take(unread as usize);
        if last.any(|known| known.merge(&event)) {
            return;
        }
        if self.events.len() == MAX_EVENTS {
            self.drop_all();
        }
        self.events.push(event);
    }

    /// Makes every hart miss events, so that it drops all its decoded code.
    pub(crate) fn add_all_overwritten(&mut self) {
        self.drop_all();
        self.dropped += 1;
    }

    /// Returns the events after the first `seen`; `None` if some of them were dropped.
    pub(crate) fn since(&mut self, seen: u64) -> Option<&[PageEvent]> {
        self.read = self.end();
        let first = seen.checked_sub(self.dropped)?;
        self.events.get(first as usize..)
    }

    fn drop_all(&mut self) {
        self.dropped = self.end();
        self.events.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overwritten(page: u64) -> PageEvent {
        bytes(page, 0, 4096)
    }

    fn bytes(page: u64, from: u16, to: u16) -> PageEvent {
        PageEvent { page, kind: PageEventKind::Overwritten { from, to }, by: None }
    }

    #[test]
    fn stores_to_a_few_pages_are_one_event_each_until_somebody_reads() {
        let mut log = Log::default();
        for n in 0..1000 {
            log.add(bytes(n % 3, 8 * (n % 100) as u16, 8 * (n % 100) as u16 + 8));
        }
        let all = [0, 1, 2].map(|page| bytes(page, 0, 800));
        assert_eq!(log.since(0), Some(&all[..]));
        let other = PageEvent { by: Some(1), ..bytes(0, 0, 8) };
        log.add(other);
        log.add(bytes(0, 16, 24));
        assert_eq!(log.since(3), Some(&[other, bytes(0, 16, 24)][..]));
    }

    #[test]
    fn every_reader_sees_everything() {
        let mut log = Log::default();
        log.add(overwritten(1));
        log.add(overwritten(1));
        assert_eq!(log.since(0), Some(&[overwritten(1)][..]));
        // The first one has read it: the second time is another event.
        log.add(overwritten(1));
        assert_eq!(log.since(1), Some(&[overwritten(1)][..]));
        assert_eq!(log.since(0), Some(&[overwritten(1); 2][..]));
        assert_eq!(log.since(2), Some(&[][..]));
    }

    #[test]
    fn who_missed_some_knows() {
        let mut log = Log::default();
        for page in 0..MAX_EVENTS as u64 {
            log.add(overwritten(page));
        }
        assert_eq!(log.since(0).map(<[_]>::len), Some(MAX_EVENTS));
        log.add(overwritten(7));
        assert_eq!(log.since(MAX_EVENTS as u64), Some(&[overwritten(7)][..]));
        assert_eq!(log.since(MAX_EVENTS as u64 - 1), None);
        let seen = log.end();
        log.add_all_overwritten();
        assert_eq!(log.since(seen), None);
        assert_eq!(log.since(log.end()), Some(&[][..]));
    }
}
