//! What a user sees while a run goes on.

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use simulation::TAIL_BYTES;

use crate::failure::{bad_input, cannot_write};
use crate::host::terminal::rewrite_line;

/// Where a console is shown beside its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConsoleEcho {
    /// The console is shown nowhere else.
    Nowhere,
    /// On standard error.
    StandardError,
    /// On standard output.
    StandardOutput,
}

/// The guest's console: a file, and the terminal if asked for.
#[derive(Clone)]
pub(crate) struct Console {
    file: Arc<File>,
    path: PathBuf,
    echo: ConsoleEcho,
    /// Why something could not be written, for later: whoever writes to a console does not ask.
    failed: Arc<OnceLock<String>>,
}

impl Console {
    /// Writes to an empty file that was created at this path.
    pub(crate) fn new(file: File, path: &Path, echo: ConsoleEcho) -> Self {
        Self { file: Arc::new(file), path: path.to_owned(), echo, failed: Arc::default() }
    }

    /// Writes what an earlier run printed, before this one goes on.
    pub(crate) fn restore(&mut self, printed: &[u8]) -> anyhow::Result<()> {
        self.write_all(printed).map_err(|e| cannot_write(&self.path, e))
    }

    /// Bytes so far.
    pub(crate) fn size(&self) -> u64 {
        self.file.metadata().map_or(0, |file| file.len())
    }

    /// Returns why the console's file is not whole, if it is not.
    pub(crate) fn failure(&self) -> Option<anyhow::Error> {
        self.failed.get().map(|why| cannot_write(&self.path, why))
    }

    /// The end of it, as text.
    pub(crate) fn tail(&self) -> String {
        let mut tail = vec![0; self.size().min(TAIL_BYTES) as usize];
        let at = self.size() - tail.len() as u64;
        let read = File::open(&self.path).and_then(|file| file.read_exact_at(&mut tail, at));
        read.map_or_else(|_| String::new(), |()| String::from_utf8_lossy(&tail).into_owned())
    }

    /// Returns what was printed from a place in bytes on.
    pub(crate) fn printed_from(&self, at: u64) -> Vec<u8> {
        let mut printed = vec![0; self.size().saturating_sub(at) as usize];
        let read = File::open(&self.path).and_then(|file| file.read_exact_at(&mut printed, at));
        read.map_or_else(|_| Vec::new(), |()| printed)
    }

    /// Everything so far.
    pub(crate) fn printed(&self) -> anyhow::Result<Vec<u8>> {
        Ok(std::fs::read(&self.path).map_err(|e| bad_input(&self.path, e))?)
    }
}

impl Write for Console {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if let Err(e) = (&*self.file).write_all(bytes) {
            let _ = self.failed.set(e.to_string());
            return Err(e);
        }
        match self.echo {
            ConsoleEcho::Nowhere => {}
            ConsoleEcho::StandardError => std::io::stderr().write_all(bytes)?,
            ConsoleEcho::StandardOutput => std::io::stdout().write_all(bytes)?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        (&*self.file).flush()
    }
}

/// One line that is written anew, on a terminal only.
pub(super) struct Progress {
    start: Instant,
    shown: Instant,
    terminal: bool,
    /// Instructions that an earlier run had executed.
    restored: u64,
}

impl Progress {
    /// Progress of a run that starts now, after so many instructions of an earlier one.
    pub(super) fn new(start: Instant, restored: u64) -> Self {
        Self { start, shown: start, terminal: std::io::stderr().is_terminal(), restored }
    }

    /// Shows where the run is, at most five times a second.
    pub(super) fn show(&mut self, cycles: u64, instructions: u64) {
        if !self.terminal || self.shown.elapsed() < Duration::from_millis(200) {
            return;
        }
        self.shown = Instant::now();
        let seconds = self.start.elapsed().as_secs_f64();
        let own = instructions.saturating_sub(self.restored);
        let [own, instructions, cycles] =
            [own, instructions, cycles].map(|count| count as f64 / 1e6);
        let mips = own / seconds;
        let line = format_args!(
            "{seconds:6.1} s  {instructions:9.1} M instructions  {cycles:9.1} M cycles  {mips:5.1} MIPS "
        );
        rewrite_line(0, line);
    }

    /// Clears the line.
    pub(super) fn end(&self) {
        if self.terminal {
            rewrite_line(70, format_args!(""));
        }
    }
}
