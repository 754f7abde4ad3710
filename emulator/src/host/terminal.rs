//! The host's terminal: what is said on it, and how it is the guest's console (raw mode, and Ctrl-A x to leave).

use std::fmt::{Arguments, Display};
use std::fs::File;
use std::io::{Error, ErrorKind, IsTerminal as _, Read, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::{Duration, Instant};

use devices::Input;
use report::{printable, printable_json, printable_lines};
use rustix::fs::{FileType, fstat};
use rustix::termios::{OptionalActions, Termios, isatty, tcgetattr, tcsetattr};

use crate::failure::cannot_write;
use crate::host::signals::SessionEnd;

/// What the terminal was before this process put it into raw mode; `None`: it did not, or put it back. One for the whole
/// process, since signals and panics restore it, too.
static TERMIOS_BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// Bytes of input that may wait for the guest before no more are read: a script can be endless.
const MAX_WAITING: usize = 1 << 20;
/// Between two looks at whether the guest has taken some.
const POLL: Duration = Duration::from_millis(10);

/// Raw mode while it lives, and input for the guest's console.
pub(crate) struct Terminal {
    ended: Arc<AtomicBool>,
}

/// Status of a program that the shell says a broken pipe ended (128 + SIGPIPE).
const BROKEN_PIPE: i32 = 141;

/// Prints a text to standard output. What a terminal would obey is replaced: names in it come from the guest and from files.
pub(crate) fn say(text: Arguments<'_>) {
    say_exactly(&printable_lines(&text.to_string()));
}

/// Prints JSON to standard output. Its value is exact; what a terminal would obey is an escape.
pub(crate) fn say_json(json: &str) {
    say_exactly(&printable_json(json));
}

/// Prints what other programs read to standard output. If nobody reads it any more there is nothing left to do: whatever is kept was
/// written before it is printed.
pub(crate) fn say_exactly(text: &str) {
    let mut out = std::io::stdout().lock();
    // The last line may have no end.
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    if let Err(error) = written {
        end_without_output(&error);
    }
}

/// Ends the program because its standard output takes no more.
pub(crate) fn end_without_output(error: &Error) -> ! {
    let status = match error.kind() {
        ErrorKind::BrokenPipe => BROKEN_PIPE,
        _ => crate::failure::report(&cannot_print(error)).into(),
    };
    std::process::exit(status)
}

/// The host cannot write to standard output, for instance because the disk of the file that it leads to is full. Exit status 1.
pub(crate) fn cannot_print(error: impl Display) -> anyhow::Error {
    anyhow::anyhow!("standard output: cannot write: {error}")
}

/// Returns the outcome of writing all of an output to a file, or to standard output without one. A reader that has seen
/// enough (`| head`) is no error.
pub(crate) fn written(output: Option<&Path>, result: std::io::Result<()>) -> anyhow::Result<()> {
    match (result, output) {
        (Err(error), Some(path)) => Err(cannot_write(path, error)),
        (Err(error), None) if error.kind() != ErrorKind::BrokenPipe => Err(cannot_print(error)),
        _ => Ok(()),
    }
}

/// Prints a text to standard error, as [`say`] does. Nobody may read that.
pub(crate) fn warn(text: Arguments<'_>) {
    let text = text.to_string();
    let _ = std::io::stderr().write_all(printable_lines(&text).as_bytes());
}

/// Writes a line anew on a terminal: in place of up to `width` characters of the line before.
pub(crate) fn rewrite_line(width: usize, line: Arguments<'_>) {
    let line = line.to_string();
    let _ = write!(std::io::stderr(), "\r{:width$}\r{}", "", printable(&line));
}

/// How much is done, on a terminal.
pub(crate) struct ProgressLine {
    /// What is counted.
    things: &'static str,
    all: usize,
    shown: Instant,
    /// Characters of the line that is shown.
    width: usize,
    is_terminal: bool,
}

impl ProgressLine {
    /// Begins to count `all` things.
    pub(crate) fn new(things: &'static str, all: usize) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        Self { things, all, shown: Instant::now(), width: 0, is_terminal }
    }

    /// Shows that so many are done, twice a second.
    pub(crate) fn show(&mut self, done: usize) {
        if self.is_terminal && self.shown.elapsed().as_secs_f64() > 0.5 {
            self.shown = Instant::now();
            let line = format!("{done} of {} {}", self.all, self.things);
            rewrite_line(std::mem::replace(&mut self.width, line.len()), format_args!("{line}"));
        }
    }

    /// Takes the line away.
    pub(crate) fn end(&self) {
        if self.width > 0 {
            rewrite_line(self.width, format_args!(""));
        }
    }
}

const ESCAPE: u8 = 1; // Ctrl-A

impl Terminal {
    /// Puts standard input into raw mode if it is a terminal, and feeds `input` from it, on a thread of its own unless all of
    /// it is there at once. Ctrl-A x asks `leave`; Ctrl-A Ctrl-A sends one Ctrl-A.
    pub(crate) fn open(input: Input, leave: SessionEnd) -> Self {
        let raw = make_raw();
        let ended = Arc::new(AtomicBool::new(false));
        if raw {
            restore_after_panics();
        }
        let at_end = Arc::clone(&ended);
        let feed = move || {
            read(&input, &leave, raw);
            at_end.store(true, Ordering::Release);
        };
        // Input that is there at once is given at once, so that a session is the same each time.
        match is_there_at_once() {
            true => feed(),
            false => drop(std::thread::spawn(feed)),
        }
        Self { ended }
    }

    /// Returns whether nothing more will be typed: standard input has ended, and the guest's console has it all.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        restore();
        *before() = None;
    }
}

/// Standard input is a file or `/dev/null`, short enough that all of it may wait.
fn is_there_at_once() -> bool {
    let Ok(stat) = fstat(rustix::stdio::stdin()) else {
        return true;
    };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => stat.st_size as u64 <= MAX_WAITING as u64,
        FileType::CharacterDevice => {
            let null = File::open("/dev/null").and_then(|null| Ok(fstat(null.as_fd())?.st_rdev));
            null.is_ok_and(|null| null == stat.st_rdev)
        }
        _ => false,
    }
}

/// Puts standard input into raw mode, if it is a terminal.
fn make_raw() -> bool {
    let stdin = rustix::stdio::stdin();
    *before() = isatty(stdin).then(|| tcgetattr(stdin).ok()).flatten();
    set_raw()
}

/// Puts the terminal into raw mode, if it is known what it was before.
fn set_raw() -> bool {
    let Some(mut raw) = before().clone() else {
        return false;
    };
    raw.make_raw();
    // The guest prints bare newlines only after its own tty has added carriage returns, so output needs no processing; a failed
    // switch leaves a usable, line-wise terminal.
    let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &raw);
    true
}

/// Makes the terminal what it was before raw mode, if this process put it into that. In the background it is left to who has it
/// now: the shell, or another job.
pub(crate) fn restore() {
    if let Some(saved) = &*before()
        && !is_in_background()
    {
        let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, saved);
    }
}

/// Puts the terminal into raw mode again after [`restore`], when this process goes on and is not in the background.
pub(crate) fn resume() {
    if !is_in_background() {
        set_raw();
    }
}

/// Returns whether the terminal controls this session, and another process group has it.
fn is_in_background() -> bool {
    // SAFETY: both only ask; of what does not control the session there is no group (-1).
    let (has, own) = unsafe { (libc::tcgetpgrp(libc::STDIN_FILENO), libc::getpgrp()) };
    has >= 0 && has != own
}

fn before() -> std::sync::MutexGuard<'static, Option<Termios>> {
    // The state of the terminal is valid even if a thread panicked while it held the lock.
    TERMIOS_BEFORE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A panic's message is printed on a terminal that can show it.
fn restore_after_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            restore();
            report(info);
        }));
    });
}

fn read(input: &Input, leave: &SessionEnd, raw: bool) {
    let mut escaped = false;
    for byte in std::io::stdin().lock().bytes() {
        let Ok(byte) = byte else { break };
        if raw && !escaped && byte == ESCAPE {
            escaped = true;
            continue;
        }
        if escaped && byte == b'x' {
            leave.ask();
            return;
        }
        escaped = false;
        while input.len() >= MAX_WAITING && !leave.is_asked() {
            std::thread::sleep(POLL);
        }
        input.push(&[byte]);
    }
}
