//! Excerpts, as the timing core tells them.

use commit_trace::{CommitRecord, Detail, Event};

use crate::{CoreDescription, Excerpt, Excerpts, InstTimes};

/// Cycles between the first excerpts. Enough for runs of some ten thousand instructions to have one.
const FIRST_INTERVAL: u64 = 20_000;
/// Excerpts that are kept. When there are so many, every other one is forgotten, and the interval doubles.
const MOST: usize = 128;

/// Takes excerpts of one hart's stream in regular intervals: as many of a long region as of a short one, and the same ones each
/// time.
#[derive(Debug)]
pub struct Collector {
    excerpts: Excerpts,
    interval: u64,
    /// The excerpt that is under way: it has begun, and not ended.
    current: Option<Excerpt>,
}

impl Collector {
    /// Returns a collector for a hart with this core.
    pub fn new(core: CoreDescription) -> Self {
        let CoreDescription { widths, delays } = core;
        Self {
            excerpts: Excerpts { widths, delays, list: Vec::new() },
            interval: FIRST_INTERVAL,
            current: None,
        }
    }

    /// Returns the cycle from which on the next excerpt is wanted, if the one before ended in `cycle` or the region began then.
    pub fn next(&self, cycle: u64) -> u64 {
        cycle.saturating_add(self.interval)
    }

    /// Begins an excerpt.
    pub fn begin(&mut self) {
        self.current = Some(Excerpt::default());
    }

    /// Adds instructions that left the ROB, the first counted from cycle `from`, to the excerpt that is under way, if one is.
    pub fn commits(&mut self, from: u64, records: &[CommitRecord], details: &[Detail]) {
        let Some(excerpt) = &mut self.current else {
            return;
        };
        if excerpt.rows.is_empty() {
            excerpt.from = from;
        }
        let mut cycle = from;
        for (record, detail) in records.iter().zip(details) {
            cycle += u64::from(record.commit_delta);
            excerpt.rows.push(InstTimes::new(record, cycle, detail));
        }
    }

    /// Ends the excerpt.
    pub fn end(&mut self) {
        let excerpt = self.current.take();
        let some = excerpt.filter(|excerpt| !excerpt.rows.is_empty());
        self.excerpts.list.extend(some);
        if self.excerpts.list.len() == MOST {
            let mut number = 0;
            self.excerpts.list.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.interval *= 2;
        }
    }

    /// Drops all excerpts when the region of interest begins anew: nothing before belongs to it.
    pub fn event(&mut self, event: &Event) {
        if *event == Event::RegionAnew {
            self.current = None;
            self.excerpts.list.clear();
            self.interval = FIRST_INTERVAL;
        }
    }

    /// Returns all excerpts.
    pub fn finish(mut self) -> Excerpts {
        self.end();
        self.excerpts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_of_what_was_before_the_region() {
        let mut collector = Collector::new(CoreDescription::default());
        for open in [false, true] {
            collector.begin();
            collector.commits(9, &[CommitRecord::default()], &[Detail::default()]);
            if !open {
                collector.end();
            }
        }
        collector.event(&Event::RegionAnew);
        collector.end();
        collector.event(&Event::Region(false));
        assert!(collector.finish().list.is_empty());
    }

    #[test]
    fn a_long_region_has_as_many_excerpts_as_a_short_one() {
        let mut collector = Collector::new(CoreDescription::default());
        let (mut cycle, mut taken) = (0, 0);
        while cycle < 5_000_000_000 {
            cycle = collector.next(cycle);
            collector.begin();
            let mut record = CommitRecord::default();
            record.commit_delta = 1;
            collector.commits(cycle, &[record], &[Detail::default()]);
            collector.end();
            taken += 1;
        }
        let list = collector.finish().list;
        assert!((MOST / 2..MOST).contains(&list.len()), "{}", list.len());
        assert!(taken < 16 * MOST, "{taken}");
        let gaps: Vec<u64> = list.windows(2).map(|two| two[1].from - two[0].from).collect();
        assert!(gaps.iter().max().unwrap() <= &(2 * gaps.iter().min().unwrap()), "{gaps:?}");
    }
}
