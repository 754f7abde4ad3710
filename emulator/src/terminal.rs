//! The host's terminal: what is said on it, and how it is the guest's console (raw mode, and Ctrl-A x to leave).

use std::fmt::{Arguments, Display};
use std::io::{Error, ErrorKind, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use devices::Input;
use report::{printable, printable_json, printable_lines};
use rustix::termios::{OptionalActions, Termios, isatty, tcgetattr, tcsetattr};

use crate::failure::cannot_write;

/// Raw mode while it lives.
#[derive(Debug)]
pub struct Terminal {
    saved: Option<Termios>,
}

/// Status of a program that the shell says a broken pipe ended (128 + SIGPIPE).
const BROKEN_PIPE: i32 = 141;

/// Prints a text to standard output. What a terminal would obey is replaced: names in it come from the guest and from files.
pub fn say(text: Arguments<'_>) {
    say_exactly(&printable_lines(&text.to_string()));
}

/// Prints JSON to standard output. Its value is exact; what a terminal would obey is an escape.
pub fn say_json(json: &str) {
    say_exactly(&printable_json(json));
}

/// Prints what other programs read to standard output. If nobody reads it any more there is nothing left to do: whatever is kept was
/// written before it is printed.
pub fn say_exactly(text: &str) {
    let mut out = std::io::stdout().lock();
    // The last line may have no end.
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    if let Err(error) = written {
        end_without_output(&error);
    }
}

/// Ends the program because its standard output takes no more.
pub fn end_without_output(error: &Error) -> ! {
    let status = match error.kind() {
        ErrorKind::BrokenPipe => BROKEN_PIPE,
        _ => crate::failure::report(&cannot_print(error)).into(),
    };
    std::process::exit(status)
}

/// The host cannot write to standard output, for instance because the disk of the file that it leads to is full. Exit status 1.
pub fn cannot_print(error: impl Display) -> anyhow::Error {
    anyhow::anyhow!("standard output: cannot write: {error}")
}

/// What became of writing all of an output to a file, or to standard output without one. A reader that has seen enough (`| head`) is
/// no error.
pub fn written(output: Option<&Path>, result: std::io::Result<()>) -> anyhow::Result<()> {
    match (result, output) {
        (Err(error), Some(path)) => Err(cannot_write(path, error)),
        (Err(error), None) if error.kind() != ErrorKind::BrokenPipe => Err(cannot_print(error)),
        _ => Ok(()),
    }
}

/// Prints a text to standard error, as [`say`] does. Nobody may read that.
pub fn warn(text: Arguments<'_>) {
    let text = text.to_string();
    let _ = std::io::stderr().write_all(printable_lines(&text).as_bytes());
}

/// Writes a line anew on a terminal: in place of up to `width` characters of the line before.
pub fn rewrite_line(width: usize, line: Arguments<'_>) {
    let line = line.to_string();
    let _ = write!(std::io::stderr(), "\r{:width$}\r{}", "", printable(&line));
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
