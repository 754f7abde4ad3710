//! The console of a bare-metal program.

use std::io::{IsTerminal as _, Read, Write};

/// The two ends of a program's console.
pub(crate) struct ProgramConsole {
    /// What the program reads.
    pub input: Box<dyn Read + Send>,
    /// Where it prints.
    pub output: Box<dyn Write + Send>,
    /// Whether the input is a terminal.
    pub has_terminal_input: bool,
    /// Whether the output is a terminal.
    pub has_terminal_output: bool,
}

impl ProgramConsole {
    /// Returns this process's standard input and output.
    pub(crate) fn standard() -> Self {
        Self {
            input: Box::new(std::io::stdin()),
            output: Box::new(std::io::stdout()),
            has_terminal_input: std::io::stdin().is_terminal(),
            has_terminal_output: std::io::stdout().is_terminal(),
        }
    }

    /// Returns a console that reads `input` and prints to `output`, neither of which is a terminal.
    pub(crate) fn of(input: Box<dyn Read + Send>, output: Box<dyn Write + Send>) -> Self {
        Self { input, output, has_terminal_input: false, has_terminal_output: false }
    }

    /// Prints. The console is best effort: a closed pipe must not change the run.
    pub(crate) fn print(&mut self, bytes: &[u8]) {
        let _ = self.output.write_all(bytes);
    }

    /// Waits for up to `most` bytes of input. Returns none at its end.
    pub(crate) fn input(&mut self, most: usize) -> Vec<u8> {
        let _ = self.output.flush();
        let mut bytes = vec![0; most];
        let count = self.input.read(&mut bytes).unwrap_or(0);
        bytes.truncate(count);
        bytes
    }
}
