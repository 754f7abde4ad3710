//! Inactive processes: those that have not run for some time, or ended. What is counted of them is packed, until they run
//! again.

use crate::ProcessId;

/// Cycles without running after which a process is inactive: longer than the time slices of a few processes that take turns.
const INACTIVE_AFTER: u64 = 1 << 24;

/// Cycles without running after which a process that ended is inactive: fewer, as it runs no more. They are also the interval
/// at which ended processes are looked for.
const ENDED_INACTIVE_AFTER: u64 = 1 << 20;

/// Number of inactive processes that stay unpacked: packing costs time, and costs it again whenever one of them runs in
/// between.
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
    /// Processes that ended and were not noticed yet.
    ended: Vec<ProcessId>,
    /// Cycle of the next look at `ended`.
    next_ended: u64,
}

impl Default for InactiveProcesses {
    fn default() -> Self {
        Self::after(INACTIVE_AFTER, MAX_UNPACKED)
    }
}

impl InactiveProcesses {
    /// A process is inactive after `length` cycles; `kept` of them stay unpacked.
    pub(crate) fn after(length: u64, kept: usize) -> Self {
        Self { length, kept, stopped: Vec::new(), next: 0, ended: Vec::new(), next_ended: 0 }
    }

    /// A process stops to run.
    pub(crate) fn stop(&mut self, process: ProcessId, cycle: u64) {
        let index = process.0 as usize;
        if self.stopped.len() <= index {
            self.stopped.resize(index + 1, None);
        }
        self.stopped[index] = Some(cycle);
    }

    /// A process ended. It may still run for a while, as the kernel frees its resources.
    pub(crate) fn end(&mut self, process: ProcessId) {
        self.ended.push(process);
    }

    /// Returns the processes that are newly inactive: all that ended, and the others once they are more than stay unpacked.
    /// Searches every `length` cycles.
    pub(crate) fn look(&mut self, running: ProcessId, cycle: u64) -> Option<Vec<ProcessId>> {
        let mut ended = self.look_at_ended(running, cycle);
        match self.search(running, cycle) {
            Some(others) => ended.extend(others),
            None if ended.is_empty() => return None,
            None => {}
        }
        Some(ended)
    }

    fn look_at_ended(&mut self, running: ProcessId, cycle: u64) -> Vec<ProcessId> {
        if self.ended.is_empty() || cycle < self.next_ended {
            return Vec::new();
        }
        let after = ENDED_INACTIVE_AFTER.min(self.length);
        self.next_ended = cycle + after;
        let mut cold = Vec::new();
        self.ended.retain(|process| {
            if *process == running {
                return true;
            }
            // A process that never ran on this hart, or was noticed meanwhile, has not stopped in any cycle.
            let Some(since) = self.stopped.get_mut(process.0 as usize) else {
                return false;
            };
            let rests = since.is_some_and(|since| since + after <= cycle);
            if rests {
                *since = None;
                cold.push(*process);
            }
            since.is_some()
        });
        cold
    }

    fn search(&mut self, running: ProcessId, cycle: u64) -> Option<Vec<ProcessId>> {
        if cycle < self.next {
            return None;
        }
        self.next = cycle + self.length;
        let rests = |(process, stopped): &(ProcessId, &mut Option<u64>)| {
            let since = stopped.filter(|_| *process != running);
            since.is_some_and(|since| since + self.length <= cycle)
        };
        let cold: Vec<_> = (0..).map(ProcessId).zip(&mut self.stopped).filter(rests).collect();
        if cold.len() <= self.kept {
            return Some(Vec::new());
        }
        let give_out = |(process, stopped): (ProcessId, &mut Option<u64>)| {
            *stopped = None;
            process
        };
        Some(cold.into_iter().map(give_out).collect())
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
    fn processes_that_ended_cool_at_once() {
        let mut inactive = InactiveProcesses::default();
        let [one, two, elsewhere] = [1, 2, 9].map(ProcessId);
        assert_eq!(inactive.look(one, 1), Some(vec![]));
        inactive.end(one);
        inactive.end(elsewhere);
        assert_eq!(inactive.look(one, 2), None, "it still runs");
        inactive.stop(one, 100);
        assert_eq!(inactive.look(two, ENDED_INACTIVE_AFTER + 99), None);
        assert_eq!(inactive.look(two, 3 * ENDED_INACTIVE_AFTER), Some(vec![one]));
        assert!(inactive.is_cold(one) && !inactive.is_cold(elsewhere));
        assert_eq!(inactive.look(two, 5 * ENDED_INACTIVE_AFTER), None);
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
