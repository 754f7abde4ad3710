//! Inactive processes: those that have not run for some time. What is counted of them is packed, until they run again.

use crate::ProcessId;

/// A process is inactive once it has not run for so many cycles: longer than the time slices of a few processes that take turns.
const INACTIVE_AFTER: u64 = 1 << 24;

/// So many inactive processes stay unpacked: packing costs time, and again whenever one of them runs in between.
const MAX_UNPACKED: usize = 64;

/// Finds the processes that have become inactive. The evaluation tells it whenever a process stops to run.
#[derive(Debug)]
pub(crate) struct InactiveProcesses {
    /// Cycles without running that make a process inactive.
    length: u64,
    kept: usize,
    /// Cycle in which each process stopped to run; `None` before it ran, and once it was noticed not to run.
    stopped: Vec<Option<u64>>,
    /// Cycle of the next search.
    next: u64,
}

impl Default for InactiveProcesses {
    fn default() -> Self {
        Self::after(INACTIVE_AFTER, MAX_UNPACKED)
    }
}

impl InactiveProcesses {
    /// A process is inactive after `length` cycles; `kept` of them stay unpacked.
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

    /// The processes that are newly inactive, once more are than stay unpacked. Searches every `length` cycles.
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

    /// True if this process was given out as inactive and has not stopped since.
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
        let mut inactive = InactiveProcesses::after(INACTIVE_AFTER, 0);
        let [one, two] = [1, 2].map(ProcessId);
        inactive.stop(one, 10);
        assert_eq!(inactive.look(two, 20), Some(vec![]));
        assert_eq!(inactive.look(two, INACTIVE_AFTER), None);
        inactive.stop(two, INACTIVE_AFTER);
        inactive.stop(one, INACTIVE_AFTER + 5);
        assert_eq!(inactive.look(one, 2 * INACTIVE_AFTER + 20), Some(vec![two]));
        assert_eq!([one, two].map(|it| inactive.is_cold(it)), [false, true]);
        assert_eq!(inactive.look(two, 3 * INACTIVE_AFTER + 20), Some(vec![one]));
        assert_eq!([one, two].map(|it| inactive.is_cold(it)), [true, true]);
        inactive.stop(two, 3 * INACTIVE_AFTER + 30);
        assert!(!inactive.is_cold(two));
    }

    #[test]
    fn a_few_processes_need_not_cool() {
        let mut inactive = InactiveProcesses::after(10, 2);
        (1..=3).for_each(|process| inactive.stop(ProcessId(process), process.into()));
        assert_eq!(inactive.look(ProcessId(9), 12), Some(vec![]));
        assert_eq!(inactive.look(ProcessId(3), 22), Some(vec![]));
        let all = (1..=3).map(ProcessId).collect();
        assert_eq!(inactive.look(ProcessId(9), 32), Some(all));
    }
}
