//! Which processes have not run for a while: what is counted of them is kept in few bytes, until they run again.

use crate::ProcessId;

/// Cycles that make a while: longer than the time slices of a few processes that take turns.
const WHILE: u64 = 1 << 24;

/// Follows who runs.
#[derive(Debug)]
pub(crate) struct Cooling {
    /// Cycles that make a while.
    length: u64,
    /// Cycle in which each process stopped to run; `None` before it ran, and once it was noticed not to run.
    stopped: Vec<Option<u64>>,
    /// The next look.
    next: u64,
}

impl Default for Cooling {
    fn default() -> Self {
        Self::after(WHILE)
    }
}

impl Cooling {
    /// With so many cycles for a while.
    pub(crate) fn after(length: u64) -> Self {
        Self {
            length,
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

    /// Now and then, those that have newly not run for a while.
    pub(crate) fn look(&mut self, running: ProcessId, cycle: u64) -> Option<Vec<ProcessId>> {
        if cycle < self.next {
            return None;
        }
        self.next = cycle + self.length;
        let mut cold = Vec::new();
        for (process, stopped) in (0..).map(ProcessId).zip(&mut self.stopped) {
            if process != running && stopped.is_some_and(|stopped| stopped + self.length <= cycle) {
                *stopped = None;
                cold.push(process);
            }
        }
        Some(cold)
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
        let mut cooling = Cooling::default();
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
}
