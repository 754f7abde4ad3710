//! Which processes have not run for a while: what is counted of them is kept in few bytes, until they run again.

use crate::ProcessId;

/// Cycles that make a while: longer than the time slices of a few processes that take turns.
const WHILE: u64 = 1 << 24;

/// So many of them may keep what they have as it is: to pack it takes a while, and again at each time that they run in between.
const KEPT: usize = 64;

/// Follows who runs.
#[derive(Debug)]
pub(crate) struct Cooling {
    /// Cycles that make a while.
    length: u64,
    kept: usize,
    /// Cycle in which each process stopped to run; `None` before it ran, and once it was noticed not to run.
    stopped: Vec<Option<u64>>,
    /// The next look.
    next: u64,
}

impl Default for Cooling {
    fn default() -> Self {
        Self::after(WHILE, KEPT)
    }
}

impl Cooling {
    /// With so many cycles for a while, and so many processes that need not cool.
    pub(crate) fn after(length: u64, kept: usize) -> Self {
        Self {
            length,
            kept,
            stopped: Vec::new(),
            next: 0,
        }
    }

    /// A process stops to run.
    pub(crate) fn stop(&mut self, process: ProcessId, cycle: u64) {
        let index = process.0 as usize;
        if self.stopped.len() <= index {
            self.stopped.resize(index + 1, None);
        }
        self.stopped[index] = Some(cycle);
    }

    /// Now and then, those that have newly not run for a while, once they are too many.
    pub(crate) fn look(&mut self, running: ProcessId, cycle: u64) -> Option<Vec<ProcessId>> {
        if cycle < self.next {
            return None;
        }
        self.next = cycle + self.length;
        let rests = |(process, stopped): &(ProcessId, &mut Option<u64>)| {
            let since = stopped.filter(|_| *process != running);
            since.is_some_and(|since| since + self.length <= cycle)
        };
        let cold: Vec<_> = { (0..).map(ProcessId).zip(&mut self.stopped) }
            .filter(rests)
            .collect();
        if cold.len() <= self.kept {
            return Some(Vec::new());
        }
        let cool = |(process, stopped): (ProcessId, &mut Option<u64>)| {
            *stopped = None;
            process
        };
        Some(cold.into_iter().map(cool).collect())
    }

    /// True if a process that does not run has not for a while.
    pub(crate) fn is_cold(&self, process: ProcessId) -> bool {
        let stopped = self.stopped.get(process.0 as usize);
        stopped.is_some_and(Option::is_none)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_cool_once_they_do_not_run() {
        let mut cooling = Cooling::after(WHILE, 0);
        let [one, two] = [1, 2].map(ProcessId);
        cooling.stop(one, 10);
        assert_eq!(cooling.look(two, 20), Some(vec![]));
        assert_eq!(cooling.look(two, WHILE), None);
        cooling.stop(two, WHILE);
        cooling.stop(one, WHILE + 5);
        assert_eq!(cooling.look(one, 2 * WHILE + 20), Some(vec![two]));
        assert_eq!([one, two].map(|it| cooling.is_cold(it)), [false, true]);
        assert_eq!(cooling.look(two, 3 * WHILE + 20), Some(vec![one]));
        assert_eq!([one, two].map(|it| cooling.is_cold(it)), [true, true]);
        cooling.stop(two, 3 * WHILE + 30);
        assert!(!cooling.is_cold(two));
    }

    #[test]
    fn a_few_processes_need_not_cool() {
        let mut cooling = Cooling::after(10, 2);
        (1..=3).for_each(|process| cooling.stop(ProcessId(process), process.into()));
        assert_eq!(cooling.look(ProcessId(9), 12), Some(vec![]));
        assert_eq!(cooling.look(ProcessId(3), 22), Some(vec![]));
        let all = (1..=3).map(ProcessId).collect();
        assert_eq!(cooling.look(ProcessId(9), 32), Some(all));
    }
}
