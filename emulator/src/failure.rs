//! Exit statuses: 2 for bad input, 1 for a failed run.

use std::fmt::Display;
use std::path::Path;

/// The user's input is at fault: a file, a field, an argument. Exit status 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BadInput(pub String);

/// Bad input in a file.
pub fn bad_input(path: &Path, error: impl Display) -> BadInput {
    BadInput(format!("{}: {error}", path.display()))
}

/// Prints an error as one line and gives the exit status.
pub fn report(error: &anyhow::Error) -> u8 {
    let line = format!("{error:#}").replace('\n', " ");
    eprintln!("tipsim: {line}");
    if error.chain().any(|e| e.is::<BadInput>()) {
        2
    } else {
        1
    }
}
