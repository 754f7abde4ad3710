//! How a guest ends, or does nothing for ever, without saying so: its kernel panics, its firmware stops, or it only waits.

use std::fmt;

use crate::system::System;

/// What Linux prints of a panic, before its reason.
const PANIC: &str = "Kernel panic - not syncing";
/// Linux repeats the line at the end of the dump, so framed.
const PANIC_ENDS: &str = "---[ end ";
/// Linux's line of an orderly reset, power-off or halt.
const ORDERLY: &str = "reboot: ";

/// Instructions after a panic that came before any program, until the guest counts as dead: its kernel prints what there is
/// to say, and loops.
const MAX_INSTRUCTIONS_AFTER_PANIC: u64 = 10_000_000;

/// Lets Linux reset the machine at once when it panics, unless what follows on its command line says otherwise.
pub const PANIC_ARGUMENT: &str = "panic=-1 ";

/// Bytes of a console's end in which a panic is looked for.
pub const TAIL_BYTES: u64 = 1 << 16;

/// The reason of a kernel's panic, if a console ends with one. Any program can print such a line: this alone does not end a
/// run, it says why a guest has ended or why nothing runs.
pub fn kernel_panic(console: &str) -> Option<String> {
    let lines = console.lines().rev();
    let lines = lines.take_while(|line| !line.contains(ORDERLY));
    let reason = |line: &str| {
        let (before, reason) = line.split_once(PANIC)?;
        let reason = reason.trim_start_matches(':').trim();
        (!before.ends_with(PANIC_ENDS)).then(|| reason.to_owned())
    };
    { lines }.find_map(reason)
}

/// Why a guest will do nothing any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standstill {
    /// The guest's kernel panicked, for the reason that it gave.
    Panicked(String),
    /// No hart does anything, and the hart of this number stands at this address in machine mode.
    Halted(usize, u64),
    /// All harts sleep, and no device or timer will wake one.
    Asleep,
    /// The exceptions of the only hart repeat themselves without end; the text says which.
    Stuck(String),
    /// No program executed an instruction for this number of simulated seconds.
    Waits(u64),
    /// A bare-metal program waits for console input, which is at its end.
    NoInput,
}

impl fmt::Display for Standstill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Panicked(reason) => write!(f, "the guest's kernel panicked: {reason}"),
            Self::Halted(hart, pc) => write!(
                f,
                "the guest's firmware has stopped: hart {hart} stands in machine mode at {pc:#x}, and nothing can wake it"
            ),
            Self::Asleep => write!(f, "the guest sleeps and nothing can wake it"),
            Self::Stuck(text) => write!(f, "the guest gets nowhere: {text}"),
            Self::NoInput => {
                write!(f, "the program waits for console input, which is at its end")
            }
            Self::Waits(seconds) => write!(
                f,
                "the guest only waits: no program executed an instruction for {} of simulated time",
                duration(*seconds)
            ),
        }
    }
}

/// A duration in the largest unit that it is a whole number of, as in a run spec.
fn duration(seconds: u64) -> String {
    match seconds {
        _ if seconds.is_multiple_of(3600) => format!("{}h", seconds / 3600),
        _ if seconds.is_multiple_of(60) => format!("{}min", seconds / 60),
        _ => format!("{seconds}s"),
    }
}

/// Looks at a machine now and then, for whether it will do anything yet.
pub struct Watch {
    /// Simulated seconds that the guest may idle; 0: for ever.
    max_idle: u64,
    /// Whether no program has run since reset, as far as is known.
    only_kernel: bool,
    /// Number of times that harts had entered user mode by the last look; `idle_since` is the cycle since which that is so.
    user_entries: u64,
    idle_since: u64,
    /// Instructions when the panic was first seen.
    panicked_at: Option<u64>,
}

impl Watch {
    /// Begins to watch. `restored`: the machine goes on from a checkpoint, and programs may have run before.
    pub fn new(system: &System, max_idle: u64, restored: bool) -> Self {
        Self {
            max_idle,
            only_kernel: !restored,
            user_entries: 0,
            idle_since: system.harts.latest_cycle(),
            panicked_at: None,
        }
    }

    /// Says why the guest will do nothing any more, if that is so. `console` gives the end of what it printed.
    pub fn look(
        &mut self,
        system: &mut System,
        console: impl FnOnce() -> String,
    ) -> Option<Standstill> {
        if let Some((hart, pc)) = system.halted() {
            return Some(Standstill::Halted(hart, pc));
        }
        let now = system.harts.latest_cycle();
        if system.harts.user_entries() != Some(self.user_entries) {
            self.only_kernel = false;
            self.idle_since = now;
            self.user_entries = system.harts.user_entries().unwrap_or(u64::MAX);
            return None;
        }
        if self.only_kernel
            && let Some(reason) = kernel_panic(&console())
        {
            let instructions = system.harts.instructions();
            let since = *self.panicked_at.get_or_insert(instructions);
            if instructions - since >= MAX_INSTRUCTIONS_AFTER_PANIC {
                return Some(Standstill::Panicked(reason));
            }
        }
        let seconds = (now - self.idle_since) / system.board.bus.clock().clock_hz();
        (self.max_idle != 0 && seconds >= self.max_idle).then_some(Standstill::Waits(self.max_idle))
    }
}

/// Instructions without a command to the host after which a program that asked for input, which was at its end, counts as
/// waiting for it. One that only looks whether there is some goes on and writes, or asks again.
const MAX_SILENT_INSTRUCTIONS: u64 = 50_000_000;

/// Looks whether a program waits for console input that does not come.
#[derive(Debug, Default)]
pub struct InputWatch {
    /// Number of requests when the program last asked for input that is at its end, and the instructions at the first look after that.
    asked: Option<(u64, u64)>,
}

impl InputWatch {
    /// Returns the instructions until the next look.
    pub fn slice(&self, system: &System) -> u64 {
        system.board.bus.unanswered().map_or(u64::MAX, |_| MAX_SILENT_INSTRUCTIONS)
    }

    /// Returns whether the program does nothing any more but wait for input that does not come.
    pub fn look(&mut self, system: &System) -> bool {
        let instructions = system.harts.instructions();
        let Some(requests) = system.board.bus.unanswered() else {
            return false;
        };
        match self.asked {
            Some((known, since)) if known == requests => {
                instructions - since >= MAX_SILENT_INSTRUCTIONS
            }
            _ => {
                self.asked = Some((requests, instructions));
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_found_where_the_console_ends_with_one() {
        let panics = "[    0.05] VFS: Cannot open root device\n$ [    0.06] Kernel panic - not syncing: VFS: Unable to mount root fs\r\n\
            [    0.07] CPU: 0 UID: 0\n[    0.08] ---[ end Kernel panic - not syncing: VFS: Unable to mount root fs ]---\n";
        let reason = Some("VFS: Unable to mount root fs".to_owned());
        assert_eq!(kernel_panic(panics), reason);
        // A program printed it, and then the system went down in order.
        let orderly = format!("{panics}[    1.00] reboot: Restarting system\n");
        assert_eq!(kernel_panic(&orderly), None);
        assert_eq!(kernel_panic(&format!("{orderly}{panics}")), reason);
        assert_eq!(kernel_panic("all is well\n"), None);
    }

    #[test]
    fn durations_are_said_as_a_spec_has_them() {
        assert_eq!([7200, 600, 90, 3601].map(duration), ["2h", "10min", "90s", "3601s"]);
    }
}
