//! Standard input of the guest's command: a file of the host, since a run is the same each time.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use rustix::fs::{FileType, fstat};

use crate::failure::{BadInput, bad_input, cannot_write, whole};

/// What is kept of tipsim's own standard input at most, in bytes: it lies on the host's disk twice while the run lasts.
const MAX_BYTES: u64 = 1 << 30;
/// Somebody who waits is told for what after so long.
const PATIENCE: Duration = Duration::from_secs(1);

/// Checks that a file can be a command's standard input.
pub fn check(path: &Path) -> Result<(), BadInput> {
    let metadata = std::fs::metadata(path).map_err(|e| bad_input(path, e))?;
    if !metadata.is_file() {
        return Err(bad_input(
            path,
            "expected a file for run.input, found something else",
        ));
    }
    File::open(path).map(drop).map_err(|e| bad_input(path, e))
}

/// Reads tipsim's own standard input to its end and keeps it in a file, if it is a file or a pipe with something in it: a
/// terminal has no end, and other devices have none or nothing. Returns whether there is a file now.
pub fn keep_standard_input(to: &Path) -> anyhow::Result<bool> {
    let stdin = io::stdin();
    let kind = fstat(stdin.as_fd()).map(|stat| FileType::from_raw_mode(stat.st_mode));
    if !matches!(kind, Ok(FileType::RegularFile | FileType::Fifo)) {
        return Ok(false);
    }
    let (done, waits) = mpsc::channel::<()>();
    std::thread::spawn(move || {
        if waits.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout) {
            eprintln!(
                "tipsim: reading standard input to its end, which the command gets (with < /dev/null: nothing)"
            );
        }
    });
    let mut stdin = stdin.lock();
    let mut first = [0];
    let count = stdin.read(&mut first);
    if count.map_err(|e| BadInput(format!("standard input: {e}")))? == 0 {
        return Ok(false);
    }
    let mut input = first.as_slice().chain(stdin).take(MAX_BYTES + 1);
    let mut bytes = 0;
    let written = whole(to, |file| {
        bytes = io::copy(&mut input, file)?;
        match bytes > MAX_BYTES {
            true => Err(io::ErrorKind::FileTooLarge.into()),
            false => Ok(()),
        }
    });
    drop(done);
    if bytes > MAX_BYTES {
        let error = format!("standard input: expected at most {MAX_BYTES} bytes, found more");
        return Err(BadInput(error).into());
    }
    written.map_err(|e| cannot_write(to, e))?;
    Ok(true)
}
