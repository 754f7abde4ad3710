//! Who ran.

use arrow_array::ArrayRef;
use arrow_schema::ArrowError;
use commit_trace::Event;
use profile::GuestContext;

use crate::builders::{DictionaryBuilder, TakeArray};

/// What the guest's kernel said of the thread that runs, and the columns `pid`, `tid` and `process` that name it.
#[derive(Default)]
pub(crate) struct Context {
    guest: GuestContext,
    pid: Option<u32>,
    tid: u32,
    pids: Vec<Option<u32>>,
    tids: Vec<u32>,
    processes: DictionaryBuilder,
    /// Key of the name of the process that runs, once a row has had it.
    name: Option<usize>,
}

impl Context {
    pub(crate) fn event(&mut self, cycle: u64, event: &Event) {
        let Event::SideBand { kind, bytes } = event else {
            return;
        };
        self.guest.record(cycle, *kind, bytes);
        self.pid = self.guest.processes()[self.guest.current().0 as usize].pid;
        let threads = self.guest.threads();
        self.tid = threads.get(self.guest.thread().0 as usize).map_or(0, |thread| thread.tid);
        // Another process may run now, or the process may have another name.
        self.name = None;
    }

    /// Adds a row for the thread that runs.
    pub(crate) fn push(&mut self) {
        self.pids.push(self.pid);
        self.tids.push(self.tid);
        let name = self.name.unwrap_or_else(|| {
            let process = &self.guest.processes()[self.guest.current().0 as usize];
            self.processes.define(process.name.clone())
        });
        self.name = Some(name);
        self.processes.push(name);
    }

    /// Returns the columns `pid`, `tid` and `process`, which are empty from then on.
    pub(crate) fn columns(&mut self) -> Result<[ArrayRef; 3], ArrowError> {
        self.name = None;
        Ok([self.pids.rows(), self.tids.rows(), self.processes.finish()?])
    }
}
