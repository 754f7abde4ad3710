//! The progress of a task that takes long: one line that is written anew, on a terminal only.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use crate::host::terminal::rewrite_line;

/// The progress of a task: how much of all its work is done.
pub(crate) struct Percent {
    what: &'static str,
    all: u64,
    done: u64,
    shown: Instant,
    terminal: bool,
}

impl Percent {
    /// Returns the progress of a task that has not begun.
    pub(crate) fn new(what: &'static str, all: u64) -> Self {
        Self {
            what,
            all: all.max(1),
            done: 0,
            shown: Instant::now(),
            terminal: std::io::stderr().is_terminal(),
        }
    }

    /// Adds `done` to the work that is done, and shows the progress if the last time is a while ago.
    pub(crate) fn add(&mut self, done: u64) {
        self.done += done;
        if self.terminal && self.shown.elapsed() > Duration::from_millis(200) {
            self.shown = Instant::now();
            let percent = 100.0 * self.done.min(self.all) as f64 / self.all as f64;
            rewrite_line(0, format_args!("{}: {percent:.0} % ", self.what));
        }
    }

    /// Shows what comes next, which does not tell its progress.
    pub(crate) fn then(&self, what: &str) {
        if self.terminal {
            rewrite_line(60, format_args!("{what} ..."));
        }
    }
}

/// Clears the line.
impl Drop for Percent {
    fn drop(&mut self) {
        if self.terminal {
            rewrite_line(60, format_args!(""));
        }
    }
}
