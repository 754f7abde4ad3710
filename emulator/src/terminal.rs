//! The host's terminal as the guest's console: raw mode, and Ctrl-A x to leave.

use std::fmt::Arguments;
use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use devices::Input;
use rustix::termios::{OptionalActions, Termios, isatty, tcgetattr, tcsetattr};

/// Raw mode while it lives.
#[derive(Debug)]
pub struct Terminal {
    saved: Option<Termios>,
}

/// Status of a program that the shell says a broken pipe ended (128 + SIGPIPE).
const BROKEN_PIPE: i32 = 141;

/// Prints to standard output. If nobody reads it any more there is nothing left to do: whatever is kept was
/// written before it is printed.
pub fn say(text: Arguments<'_>) {
    if let Err(error) = std::io::stdout().write_fmt(text) {
        if error.kind() != ErrorKind::BrokenPipe {
            eprintln!("tipsim: standard output: {error}");
        }
        std::process::exit(BROKEN_PIPE);
    }
}

const ESCAPE: u8 = 1; // Ctrl-A

impl Terminal {
    /// Puts standard input into raw mode if it is a terminal, and feeds `input` from it on a thread
    /// of its own. Ctrl-A x sets `leave`; Ctrl-A Ctrl-A sends one Ctrl-A.
    pub fn open(input: Input, leave: Arc<AtomicBool>) -> Self {
        let stdin = rustix::stdio::stdin();
        let saved = isatty(stdin).then(|| tcgetattr(stdin).ok()).flatten();
        if let Some(saved) = &saved {
            let mut raw = saved.clone();
            raw.make_raw();
            // The guest prints bare newlines only after its own tty has added carriage returns, so
            // output needs no processing; a failed switch leaves a usable, line-wise terminal.
            let _ = tcsetattr(stdin, OptionalActions::Now, &raw);
        }
        let raw = saved.is_some();
        std::thread::spawn(move || read(&input, &leave, raw));
        Self { saved }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if let Some(saved) = &self.saved {
            let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, saved);
        }
    }
}

fn read(input: &Input, leave: &AtomicBool, raw: bool) {
    let mut escaped = false;
    for byte in std::io::stdin().lock().bytes() {
        let Ok(byte) = byte else { break };
        if raw && !escaped && byte == ESCAPE {
            escaped = true;
            continue;
        }
        if escaped && byte == b'x' {
            leave.store(true, Ordering::Relaxed);
            return;
        }
        escaped = false;
        input.push(&[byte]);
    }
}
