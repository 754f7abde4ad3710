//! How far something is that takes long: one line that is written anew, on a terminal only.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use crate::terminal::rewrite_line;

/// Of so much, so much is done.
pub struct Percent {
    what: &'static str,
    all: u64,
    done: u64,
    shown: Instant,
    terminal: bool,
}

impl Percent {
    /// Nothing yet.
    pub fn new(what: &'static str, all: u64) -> Self {
        Self {
            what,
            all: all.max(1),
            done: 0,
            shown: Instant::now(),
            terminal: std::io::stderr().is_terminal(),
        }
    }

    /// So much more is done.
    pub fn add(&mut self, done: u64) {
        self.done += done;
        if self.terminal && self.shown.elapsed() > Duration::from_millis(200) {
            self.shown = Instant::now();
            let percent = 100.0 * self.done.min(self.all) as f64 / self.all as f64;
            rewrite_line(0, format_args!("{}: {percent:.0} % ", self.what));
        }
    }

    /// What comes next does not say how far it is.
    pub fn then(&self, what: &str) {
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
