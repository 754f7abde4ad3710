//! What the host attaches to a hart, and what it wants of it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::{HostCalls, Onlooker, debug, stuck};

/// Ties of a hart to its host: a debugger, calls of the host, an onlooker, orders when a run shall end. They outlast a reset.
pub(crate) struct Attachments {
    /// Value of [`Progress::count`](super::arch::Progress::count) from which on the onlooker looks next, in timed runs.
    pub look_at: u64,
    /// Breakpoints, watchpoints and single steps.
    pub debug: debug::Debug,
    /// True if runs end at region triggers.
    pub stop_at_regions: bool,
    /// Exceptions that may repeat themselves without end.
    pub exceptions: stuck::Exceptions,
    /// Number of times that the hart entered user mode since it was made.
    pub user_entries: u64,
    /// Carries out the calls of programs that know RISC-V semihosting; without it, they are breakpoints.
    pub host_calls: Option<Rc<RefCell<dyn HostCalls>>>,
    /// Looks at the guest in timed runs.
    pub onlooker: Option<Box<dyn Onlooker>>,
    /// Tag of the guest's program, which the TIP unit's registers set; read after every access to a device register.
    pub guest_tag: Rc<Cell<u64>>,
}

// Everything else is how the hart was set up.
snapshot::snapshot!(Attachments { guest_tag } keeps {
    look_at,
    debug,
    stop_at_regions,
    exceptions,
    user_entries,
    host_calls,
    onlooker
});

impl Default for Attachments {
    /// Returns a hart's ties when it is made: none.
    fn default() -> Self {
        Self {
            look_at: u64::MAX,
            debug: debug::Debug::default(),
            stop_at_regions: false,
            exceptions: stuck::Exceptions::default(),
            user_entries: 0,
            host_calls: None,
            onlooker: None,
            guest_tag: Rc::default(),
        }
    }
}

impl Attachments {
    /// Sets who looks at the guest in timed runs; it looks before the next instruction.
    pub(crate) fn set_onlooker(&mut self, onlooker: Option<Box<dyn Onlooker>>) {
        self.look_at = if onlooker.is_some() { 0 } else { u64::MAX };
        self.onlooker = onlooker;
    }

    /// Keeps the ties of a hart that is reset: its instructions count from 0 again.
    pub(crate) fn renew(&mut self, old: Self) {
        *self = old;
        let onlooker = self.onlooker.take();
        self.set_onlooker(onlooker);
    }
}
