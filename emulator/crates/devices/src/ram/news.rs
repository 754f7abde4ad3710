//! A log of events of pages that harts must react to: code was overwritten, or stores to a page must take the slow path.
//! Each event is logged once. Every hart reads the log at its own pace, at the latest before its next instruction.

/// Maximum number of news in the log; when it is full, all of them are dropped. A hart that has not read dropped news
/// drops all its decoded code.
const MAX_NEWS: usize = 4096;

/// Number of the last news that [`Log::add`] looks at: a loop stores to a few pages in turn.
const RECENT_NEWS: u64 = 4;

/// What happened to a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Bytes of a page with code were written.
    Overwritten {
        /// The first of them, counted from the page's start.
        from: u16,
        /// The first after them.
        to: u16,
    },
    /// From now on, stores to the page must take the slow path: a hart decoded code in it, or has a reservation there.
    Noticed,
}

/// An event of the page with number `page` (`pa >> 12`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct News {
    /// The page's number.
    pub page: u64,
    /// What happened.
    pub event: Event,
    /// The hart that caused the event and need not react; `None`: a device, a debugger, a loader.
    pub by: Option<usize>,
}

impl News {
    /// Makes it tell another event, too, if that is of the same kind, page and origin; else it changes nothing.
    fn tells(&mut self, other: &Self) -> bool {
        if (self.page, self.by) != (other.page, other.by) {
            return false;
        }
        match (&mut self.event, other.event) {
            (Event::Noticed, Event::Noticed) => true,
            (Event::Overwritten { from, to }, Event::Overwritten { from: f, to: t }) => {
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
    news: Vec<News>,
    /// Number of news dropped since reset.
    dropped: u64,
    /// Value of [`Self::end`] when a hart last read the log.
    read: u64,
}

impl Log {
    /// Number of news logged since reset.
    #[inline]
    pub fn end(&self) -> u64 {
        self.dropped + self.news.len() as u64
    }

    /// Logs an event, unless one of the last that no hart has read yet can tell it, too.
    pub fn add(&mut self, news: News) {
        let unread = (self.end() - self.read).min(RECENT_NEWS);
        let mut last = self.news.iter_mut().rev().take(unread as usize);
        if last.any(|known| known.tells(&news)) {
            return;
        }
        if self.news.len() == MAX_NEWS {
            self.drop_all();
        }
        self.news.push(news);
    }

    /// Makes every hart miss news, so that it drops all its decoded code.
    pub fn add_everything(&mut self) {
        self.drop_all();
        self.dropped += 1;
    }

    /// The news after the first `heard`; `None` if some of them were dropped.
    pub fn since(&mut self, heard: u64) -> Option<&[News]> {
        self.read = self.end();
        let first = heard.checked_sub(self.dropped)?;
        self.news.get(first as usize..)
    }

    fn drop_all(&mut self) {
        self.dropped = self.end();
        self.news.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overwritten(page: u64) -> News {
        bytes(page, 0, 4096)
    }

    fn bytes(page: u64, from: u16, to: u16) -> News {
        News { page, event: Event::Overwritten { from, to }, by: None }
    }

    #[test]
    fn stores_to_a_few_pages_are_one_news_each_until_somebody_reads() {
        let mut log = Log::default();
        for n in 0..1000 {
            log.add(bytes(n % 3, 8 * (n % 100) as u16, 8 * (n % 100) as u16 + 8));
        }
        let all = [0, 1, 2].map(|page| bytes(page, 0, 800));
        assert_eq!(log.since(0), Some(&all[..]));
        let other = News { by: Some(1), ..bytes(0, 0, 8) };
        log.add(other);
        log.add(bytes(0, 16, 24));
        assert_eq!(log.since(3), Some(&[other, bytes(0, 16, 24)][..]));
    }

    #[test]
    fn every_reader_hears_everything() {
        let mut log = Log::default();
        log.add(overwritten(1));
        log.add(overwritten(1));
        assert_eq!(log.since(0), Some(&[overwritten(1)][..]));
        // The first one has read it: the second time is news to it.
        log.add(overwritten(1));
        assert_eq!(log.since(1), Some(&[overwritten(1)][..]));
        assert_eq!(log.since(0), Some(&[overwritten(1); 2][..]));
        assert_eq!(log.since(2), Some(&[][..]));
    }

    #[test]
    fn who_missed_some_knows() {
        let mut log = Log::default();
        for page in 0..MAX_NEWS as u64 {
            log.add(overwritten(page));
        }
        assert_eq!(log.since(0).map(<[_]>::len), Some(MAX_NEWS));
        log.add(overwritten(7));
        assert_eq!(log.since(MAX_NEWS as u64), Some(&[overwritten(7)][..]));
        assert_eq!(log.since(MAX_NEWS as u64 - 1), None);
        let heard = log.end();
        log.add_everything();
        assert_eq!(log.since(heard), None);
        assert_eq!(log.since(log.end()), Some(&[][..]));
    }
}
