//! Which process and thread run, as the guest's side-band records tell.

mod commands;
mod wire;

use std::collections::HashMap;
use std::ops::Range;

use crate::waits::{SchedulerEvent, SwitchOut, Transition};
use crate::{ContextId, Mapping, Process, ProcessId, Thread, ThreadId};

use commands::{Commands, EntryOf, add_mapping};
pub use wire::describe_side_band;
use wire::{SideBand, parse};

/// Follows the side-band records of one hart's stream. Records that do not parse are counted and
/// otherwise ignored: the guest cannot disturb the host.
#[derive(Clone, Debug)]
pub struct GuestContext {
    processes: Vec<Process>,
    /// The living process of each of the kernel's process ids.
    living: HashMap<u32, ProcessId>,
    current: ProcessId,
    /// The kernel's process id of the process that runs.
    pid: Option<u32>,
    threads: Vec<Thread>,
    /// The living thread of each of the kernel's thread ids.
    living_threads: HashMap<u32, ThreadId>,
    thread: ThreadId,
    /// The kernel's number of the thread that runs.
    tid: u32,
    commands: Commands,
    forked: Option<Forked>,
    /// The kernel's number of the thread that the last record told to be over.
    ended: Option<u32>,
    /// The process that the last record told to be over.
    ended_process: Option<ProcessId>,
    kernel_text: Option<Range<u64>>,
    /// What the scheduler did so far, if that is asked for.
    scheduled: Option<Vec<SchedulerEvent>>,
    /// The kernel's calling context as the running thread entered the kernel, for the next record.
    kernel_entry: Option<ContextId>,
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
            stands_for: None,
        };
        Self {
            processes: vec![boot],
            living: HashMap::new(),
            current: ProcessId::BOOT,
            pid: None,
            threads: vec![Thread::new(ThreadId(0), ProcessId::BOOT, 0, 0, "boot".to_owned())],
            living_threads: HashMap::new(),
            thread: ThreadId(0),
            tid: 0,
            commands: Commands::default(),
            forked: None,
            ended: None,
            ended_process: None,
            kernel_text: None,
            scheduled: None,
            kernel_entry: None,
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

    /// The kernel's number of the thread that runs.
    pub(crate) fn tid(&self) -> u32 {
        self.tid
    }

    /// All threads, by number.
    pub fn threads(&self) -> &[Thread] {
        &self.threads
    }

    /// Adds `cycles` to the cycles of the thread that runs.
    pub(crate) fn ran(&mut self, cycles: u64) {
        self.threads[self.thread.0 as usize].cycles += cycles;
    }

    /// Forgets the cycles that threads have had.
    pub(crate) fn forget_cycles(&mut self) {
        self.threads.iter_mut().for_each(|thread| thread.cycles = 0);
    }

    /// The task that the last record announced.
    pub(crate) fn take_forked(&mut self) -> Option<Forked> {
        self.forked.take()
    }

    /// The kernel's number of the thread that the last record told to be over.
    pub(crate) fn take_ended(&mut self) -> Option<u32> {
        self.ended.take()
    }

    /// The process that the last record told to be over.
    pub(crate) fn take_ended_process(&mut self) -> Option<ProcessId> {
        self.ended_process.take()
    }

    /// All entities, by number.
    pub fn processes(&self) -> &[Process] {
        &self.processes
    }

    /// Also keeps what the scheduler does.
    pub(crate) fn keep_scheduled(&mut self) {
        self.scheduled.get_or_insert_default();
    }

    /// Sets the kernel's calling context as the running thread entered the kernel, before the next record.
    pub(crate) fn set_kernel_entry(&mut self, entry: Option<ContextId>) {
        self.kernel_entry = entry;
    }

    /// What the scheduler did so far, in order, if it is kept.
    pub(crate) fn take_scheduled(&mut self) -> Vec<SchedulerEvent> {
        self.scheduled.as_mut().map(std::mem::take).unwrap_or_default()
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
        if kind >= crate::scripts::MIN_KIND {
            // The record is the simulator's own, and not of the guest.
            return;
        }
        match parse(kind, bytes) {
            Some(SideBand::Switch { pid, tid, comm, left }) => {
                if let Some((tid, left)) = left {
                    self.ended = (left == SwitchOut::Ended).then_some(tid);
                    self.schedule(cycle, Transition::Leaves(tid, left));
                }
                let mut id = self.entity(cycle, pid, &comm);
                // Kernel threads take their names after birth; a program's other threads may have
                // names of their own.
                if pid == tid {
                    id = self.name_process(cycle, pid, id, &comm);
                }
                (self.current, self.pid) = (id, Some(pid));
                self.run(cycle, tid, id, comm);
            }
            Some(SideBand::Wake { tid, waker }) => {
                self.schedule(cycle, Transition::Wakes(tid, waker));
            }
            Some(SideBand::Exec { pid, comm }) => self.exec(cycle, pid, comm),
            Some(SideBand::Mmap { pid, mapping }) => {
                let id = self.entity(cycle, pid, "");
                let process = &mut self.processes[id.0 as usize];
                let mapping = Mapping { since: cycle, ..mapping };
                match process.stands_for {
                    None => process.mappings.push(mapping),
                    Some(_) => add_mapping(&mut process.mappings, mapping),
                }
            }
            Some(SideBand::Exit { pid, tid }) => {
                // What is left of a process still runs in the kernel, and may be switched to again: the process
                // keeps its number until another process is born with it.
                if pid == tid
                    && let Some(&id) = self.living.get(&pid)
                {
                    self.end_process(cycle, id);
                }
                if let Some(&id) = self.living_threads.get(&tid) {
                    self.end_thread(cycle, id);
                }
            }
            Some(SideBand::Fork { pid, tid, parent, parent_tid }) => {
                self.living_threads.remove(&tid);
                // The streams of other harts have the record, too, each with a time of its own.
                if self.tid == parent_tid {
                    self.schedule(cycle, Transition::Begins(tid));
                }
                self.forked = Some(Forked { parent: parent_tid, tid, is_thread: pid == parent });
                if pid != parent {
                    self.fork(cycle, pid, parent);
                }
            }
            // A process is named as its first thread is.
            Some(SideBand::Comm { pid, tid, comm }) => {
                if pid == tid {
                    let id = self.entity(cycle, pid, &comm);
                    let named = self.name_process(cycle, pid, id, &comm);
                    if (self.current, self.pid) == (id, Some(pid)) {
                        self.current = named;
                    }
                }
                if let Some(id) = self.living_threads.get(&tid) {
                    let thread = &mut self.threads[id.0 as usize];
                    if self.processes[thread.process.0 as usize].stands_for.is_none() {
                        thread.rename(cycle, comm);
                    }
                }
            }
            Some(SideBand::Kernel { text }) => self.kernel_text = Some(text),
            None => self.malformed += 1,
        }
    }

    /// Returns the living entity of `pid`, and makes it if the guest never announced the process.
    fn entity(&mut self, cycle: u64, pid: u32, name: &str) -> ProcessId {
        match self.living.get(&pid) {
            Some(&id) => id,
            // Other harts may not hear of the process, and all have to agree on who has an entity of its own.
            None => self.add(EntryOf::Own, NewProcess::named(cycle, pid, name)),
        }
    }

    /// Gives a process its name. Returns the process's entity, which is another one if the one before stands for many.
    fn name_process(&mut self, cycle: u64, pid: u32, id: ProcessId, name: &str) -> ProcessId {
        let process = &mut self.processes[id.0 as usize];
        if process.name == name {
            return id;
        }
        let Some(others) = &mut process.stands_for else {
            name.clone_into(&mut process.name);
            return id;
        };
        *others = others.saturating_sub(1);
        self.create(NewProcess::named(cycle, pid, name))
    }

    /// Notes the end of a process that has an entity of its own.
    fn end_process(&mut self, cycle: u64, id: ProcessId) {
        let process = &mut self.processes[id.0 as usize];
        if process.stands_for.is_none() {
            process.end_cycle = Some(cycle);
            self.ended_process = Some(id);
        }
    }

    /// Notes the end of a thread of a process that has an entity of its own.
    fn end_thread(&mut self, cycle: u64, id: ThreadId) {
        let thread = &mut self.threads[id.0 as usize];
        if self.processes[thread.process.0 as usize].stands_for.is_none() {
            thread.end_cycle = Some(cycle);
        }
    }

    /// A thread runs from now on.
    fn run(&mut self, cycle: u64, tid: u32, process: ProcessId, name: String) {
        self.thread = self.thread_of(cycle, tid, process, name);
        self.tid = tid;
        self.schedule(cycle, Transition::Runs(tid, self.thread));
    }

    fn schedule(&mut self, cycle: u64, change: Transition) {
        if let Some(scheduled) = &mut self.scheduled {
            scheduled.push(SchedulerEvent {
                cycle,
                hart: 0,
                change,
                entry: match change {
                    Transition::Leaves(tid, _) | Transition::Wakes(_, Some(tid))
                        if tid == self.tid =>
                    {
                        self.kernel_entry
                    }
                    _ => None,
                },
            });
        }
    }

    /// Returns the living entity of a thread, which has this name from now on.
    fn thread_of(&mut self, cycle: u64, tid: u32, process: ProcessId, name: String) -> ThreadId {
        if let Some(&id) = self.living_threads.get(&tid)
            && self.processes[process.0 as usize].stands_for.is_none()
            && let thread = &mut self.threads[id.0 as usize]
            && thread.process == process
        {
            thread.rename(cycle, name);
            return id;
        }
        let threads = &mut self.threads;
        let mut new = |name: String| {
            let id = ThreadId(threads.len() as u32);
            threads.push(Thread::new(id, process, tid, cycle, name));
            id
        };
        let id = match self.processes[process.0 as usize].stands_for {
            None => new(name),
            Some(_) => self.commands.thread(process, &name, || new(name.clone())),
        };
        if let Some(before) = self.living_threads.insert(tid, id)
            && self.threads[before.0 as usize].end_cycle.is_none()
        {
            self.end_thread(cycle, before);
        }
        id
    }

    /// Makes the entity of a new process, or returns that of its command's further processes.
    fn create(&mut self, new: NewProcess) -> ProcessId {
        let entry = self.commands.entry_of(&new.name, self.processes.len());
        self.add(entry, new)
    }

    /// Makes an entity of its own for a process, or adds the process to the entity of its command's further processes.
    fn add(&mut self, entry: EntryOf, new: NewProcess) -> ProcessId {
        let NewProcess { cycle, pid, generation, name, mappings } = new;
        let next = ProcessId(self.processes.len() as u32);
        let mut new = Process {
            id: next,
            pid: Some(pid),
            generation,
            name,
            first_cycle: cycle,
            end_cycle: None,
            mappings: Vec::new(),
            stands_for: None,
        };
        let id = match entry {
            EntryOf::Others(id) => id,
            EntryOf::Own => next,
            EntryOf::NewOthers => {
                self.commands.set_others(&new.name, next);
                (new.pid, new.generation, new.stands_for) = (None, 0, Some(0));
                next
            }
        };
        if id == next {
            self.processes.push(new);
        }
        let process = &mut self.processes[id.0 as usize];
        match &mut process.stands_for {
            None => process.mappings = mappings,
            Some(others) => {
                *others += 1;
                let known = &mut process.mappings;
                mappings.into_iter().for_each(|mapping| add_mapping(known, mapping));
            }
        }
        self.living.insert(pid, id);
        id
    }

    fn exec(&mut self, cycle: u64, pid: u32, comm: String) {
        let before = self.entity(cycle, pid, &comm);
        self.end_process(cycle, before);
        let generation = self.processes[before.0 as usize].generation + 1;
        let after = self.create(NewProcess { generation, ..NewProcess::named(cycle, pid, &comm) });
        if (self.current, self.pid) == (before, Some(pid)) {
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
        if let Some(old) = self.living.remove(&pid)
            && self.processes[old.0 as usize].end_cycle.is_none()
        {
            self.end_process(cycle, old);
        }
        self.create(NewProcess { mappings, ..NewProcess::named(cycle, pid, &name) });
    }
}

/// What is known of a process as it begins to be told of.
struct NewProcess {
    cycle: u64,
    pid: u32,
    /// How many programs it has executed before.
    generation: u32,
    name: String,
    mappings: Vec<Mapping>,
}

impl NewProcess {
    /// Makes a process of this name that has executed no other program before, and has no mappings.
    fn named(cycle: u64, pid: u32, name: &str) -> Self {
        Self { cycle, pid, generation: 0, name: name.to_owned(), mappings: Vec::new() }
    }
}

#[cfg(test)]
mod tests;
