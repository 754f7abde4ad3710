//! Exit statuses: 2 for bad input, 1 for a failed run.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The user's input is at fault: a file, a field, an argument. Exit status 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BadInput(pub String);

/// Bad input in a file.
pub fn bad_input(path: &Path, error: impl Display) -> BadInput {
    BadInput(format!("{}: {error}", path.display()))
}

/// The host cannot write a file, for instance because its disk is full. Exit status 1.
pub fn cannot_write(path: &Path, error: impl Display) -> anyhow::Error {
    anyhow::anyhow!("{}: cannot write: {error}", path.display())
}

/// Writes a file that is there when it is whole: a half one does not look like a result, nor take a full disk's last room.
pub fn write_whole(path: &Path, content: impl AsRef<[u8]>) -> anyhow::Result<()> {
    whole(path, |file| file.write_all(content.as_ref())).map_err(|e| cannot_write(path, e))
}

/// The same of what `write` writes.
pub fn whole(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".partial");
    let partial = PathBuf::from(name);
    let written = File::create(&partial)
        .and_then(|mut file| write(&mut file))
        .and_then(|()| std::fs::rename(&partial, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&partial);
    }
    written
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
