//! Which process and thread run, as the guest's side-band records tell.

mod wire;

use std::collections::HashMap;
use std::ops::Range;

use crate::waits::{SchedulerEvent, Transition};
use crate::{Mapping, Process, ProcessId, Thread, ThreadId};

use wire::{SideBand, parse};

/// Follows the side-band records of one hart's stream. Records that do not parse are counted and
/// otherwise ignored: the guest cannot disturb the host.
#[derive(Clone, Debug)]
pub struct GuestContext {
    processes: Vec<Process>,
    /// The living process of each of the kernel's process ids.
    living: HashMap<u32, ProcessId>,
    current: ProcessId,
    threads: Vec<Thread>,
    /// The living thread of each of the kernel's thread ids.
    living_threads: HashMap<u32, ThreadId>,
    thread: ThreadId,
    forked: Option<Forked>,
    kernel_text: Option<Range<u64>>,
    /// If it is asked for.
    scheduled: Option<Vec<SchedulerEvent>>,
    malformed: u64,
}

/// A task that the kernel announced as new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Forked {
    /// The kernel's thread id of the parent.
    pub parent: u32,
    /// The kernel's thread id of the new task.
    pub tid: u32,
    /// The new task is a thread of the same process.
    pub is_thread: bool,
}

impl Default for GuestContext {
    fn default() -> Self {
        Self::new()
    }
}

impl GuestContext {
    /// Everything is "boot" until the first context switch is reported.
    pub fn new() -> Self {
        let boot = Process {
            id: ProcessId::BOOT,
            pid: None,
            generation: 0,
            name: "boot".to_owned(),
            first_cycle: 0,
            end_cycle: None,
            mappings: Vec::new(),
        };
        Self {
            processes: vec![boot],
            living: HashMap::new(),
            current: ProcessId::BOOT,
            threads: vec![Thread::new(
                ThreadId(0),
                ProcessId::BOOT,
                0,
                0,
                "boot".to_owned(),
            )],
            living_threads: HashMap::new(),
            thread: ThreadId(0),
            forked: None,
            kernel_text: None,
            scheduled: None,
            malformed: 0,
        }
    }

    /// The process that runs.
    #[inline]
    pub fn current(&self) -> ProcessId {
        self.current
    }

    /// The thread that runs.
    #[inline]
    pub fn thread(&self) -> ThreadId {
        self.thread
    }

    /// All threads, by number.
    pub fn threads(&self) -> &[Thread] {
        &self.threads
    }

    /// Notes that the thread that runs had so many more cycles.
    pub(crate) fn ran(&mut self, cycles: u64) {
        self.threads[self.thread.0 as usize].cycles += cycles;
    }

    /// No thread has had any cycles yet.
    pub(crate) fn forget_cycles(&mut self) {
        self.threads.iter_mut().for_each(|thread| thread.cycles = 0);
    }

    /// The task that the last record announced.
    pub(crate) fn take_forked(&mut self) -> Option<Forked> {
        self.forked.take()
    }

    /// All entities, by number.
    pub fn processes(&self) -> &[Process] {
        &self.processes
    }

    /// Also keeps what the scheduler does.
    pub(crate) fn keep_scheduled(&mut self) {
        self.scheduled.get_or_insert_default();
    }

    /// What the scheduler did so far, in order, if it is kept.
    pub(crate) fn take_scheduled(&mut self) -> Vec<SchedulerEvent> {
        self.scheduled
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// All entities and their threads, by number.
    pub fn into_processes(self) -> (Vec<Process>, Vec<Thread>) {
        (self.processes, self.threads)
    }

    /// The addresses of the kernel's text, as the kernel told them.
    pub fn kernel_text(&self) -> Option<Range<u64>> {
        self.kernel_text.clone()
    }

    /// Records that did not parse.
    pub fn malformed(&self) -> u64 {
        self.malformed
    }

    /// Takes one side-band record ([`commit_trace::Event::SideBand`]) at `cycle`.
    pub fn record(&mut self, cycle: u64, kind: u8, bytes: &[u8]) {
        match parse(kind, bytes) {
            Some(SideBand::Switch {
                pid,
                tid,
                comm,
                left,
            }) => {
                if let Some((tid, left)) = left {
                    self.schedule(cycle, Transition::Leaves(tid, left));
                }
                let id = self.entity(cycle, pid, &comm);
                let process = &mut self.processes[id.0 as usize];
                // Kernel threads take their names after birth; a program's other threads may have
                // names of their own.
                if pid == tid && process.name != comm {
                    process.name.clone_from(&comm);
                }
                self.current = id;
                self.run(cycle, tid, id, comm);
            }
            Some(SideBand::Wake { tid, waker }) => {
                self.schedule(cycle, Transition::Wakes(tid, waker));
            }
            Some(SideBand::Exec { pid, comm }) => self.exec(cycle, pid, comm),
            Some(SideBand::Mmap { pid, mapping }) => {
                let id = self.entity(cycle, pid, "");
                self.processes[id.0 as usize].mappings.push(Mapping {
                    since: cycle,
                    ..mapping
                });
            }
            Some(SideBand::Exit { pid, tid }) => {
                // What is left of it still runs in the kernel, and may be switched to again: its
                // number stays its own until another process is born with it.
                if pid == tid
                    && let Some(id) = self.living.get(&pid)
                {
                    self.processes[id.0 as usize].end_cycle = Some(cycle);
                }
                if let Some(id) = self.living_threads.get(&tid) {
                    self.threads[id.0 as usize].end_cycle = Some(cycle);
                }
            }
            Some(SideBand::Fork {
                pid,
                tid,
                parent,
                parent_tid,
            }) => {
                self.living_threads.remove(&tid);
                // The others' streams have the record, too, with a time of their own.
                if self.threads[self.thread.0 as usize].tid == parent_tid {
                    self.schedule(cycle, Transition::Begins(tid));
                }
                self.forked = Some(Forked {
                    parent: parent_tid,
                    tid,
                    is_thread: pid == parent,
                });
                if pid != parent {
                    self.fork(cycle, pid, parent);
                }
            }
            // A process is named as its first thread is.
            Some(SideBand::Comm { pid, tid, comm }) => {
                if pid == tid {
                    let id = self.entity(cycle, pid, &comm);
                    self.processes[id.0 as usize].name.clone_from(&comm);
                }
                if let Some(id) = self.living_threads.get(&tid) {
                    self.threads[id.0 as usize].rename(cycle, comm);
                }
            }
            Some(SideBand::Kernel { text }) => self.kernel_text = Some(text),
            None => self.malformed += 1,
        }
    }

    /// The living entity of `pid`, made if the guest never announced it.
    fn entity(&mut self, cycle: u64, pid: u32, name: &str) -> ProcessId {
        match self.living.get(&pid) {
            Some(&id) => id,
            None => self.create(cycle, pid, 0, name.to_owned(), Vec::new()),
        }
    }

    /// A thread runs from now on.
    fn run(&mut self, cycle: u64, tid: u32, process: ProcessId, name: String) {
        self.thread = self.thread_of(cycle, tid, process, name);
        self.schedule(cycle, Transition::Runs(tid, self.thread));
    }

    fn schedule(&mut self, cycle: u64, change: Transition) {
        if let Some(scheduled) = &mut self.scheduled {
            scheduled.push(SchedulerEvent {
                cycle,
                hart: 0,
                change,
            });
        }
    }

    /// The living entity of a thread, which has this name from now on.
    fn thread_of(&mut self, cycle: u64, tid: u32, process: ProcessId, name: String) -> ThreadId {
        if let Some(&id) = self.living_threads.get(&tid)
            && let thread = &mut self.threads[id.0 as usize]
            && thread.process == process
        {
            thread.rename(cycle, name);
            return id;
        }
        let id = ThreadId(self.threads.len() as u32);
        self.threads
            .push(Thread::new(id, process, tid, cycle, name));
        if let Some(before) = self.living_threads.insert(tid, id) {
            self.threads[before.0 as usize]
                .end_cycle
                .get_or_insert(cycle);
        }
        id
    }

    fn create(
        &mut self,
        cycle: u64,
        pid: u32,
        generation: u32,
        name: String,
        mappings: Vec<Mapping>,
    ) -> ProcessId {
        let id = ProcessId(self.processes.len() as u32);
        self.processes.push(Process {
            id,
            pid: Some(pid),
            generation,
            name,
            first_cycle: cycle,
            end_cycle: None,
            mappings,
        });
        self.living.insert(pid, id);
        id
    }

    fn exec(&mut self, cycle: u64, pid: u32, comm: String) {
        let before = self.entity(cycle, pid, &comm);
        let process = &mut self.processes[before.0 as usize];
        process.end_cycle = Some(cycle);
        let generation = process.generation + 1;
        let after = self.create(cycle, pid, generation, comm.clone(), Vec::new());
        if self.current == before {
            self.current = after;
            self.run(cycle, pid, after, comm);
        }
    }

    /// A forked process starts as a copy of its parent: same name, same mappings.
    fn fork(&mut self, cycle: u64, pid: u32, parent: u32) {
        let (name, mappings) = match self.living.get(&parent) {
            Some(id) => {
                let process = &self.processes[id.0 as usize];
                (process.name.clone(), process.mappings.clone())
            }
            None => (String::new(), Vec::new()),
        };
        if let Some(old) = self.living.remove(&pid) {
            self.processes[old.0 as usize]
                .end_cycle
                .get_or_insert(cycle);
        }
        self.create(cycle, pid, 0, name, mappings);
    }
}

#[cfg(test)]
mod tests;
