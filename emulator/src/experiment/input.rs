//! Standard input of the guest's command: a file of the host, since a run is the same each time.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use rustix::fs::{FileType, fstat};

use crate::failure::{BadInput, bad_input};

/// The name that tipsim's own standard input is kept under, beside the spec of `tipsim profile`.
pub(crate) const MADE_INPUT: &str = "input";
/// What is read of tipsim's own standard input at most, in bytes.
const MAX_BYTES: u64 = 1 << 30;
/// Somebody who waits is told for what after so long.
const PATIENCE: Duration = Duration::from_secs(1);

/// Checks that a file can be a command's standard input.
pub(crate) fn check(path: &Path) -> Result<(), BadInput> {
    let metadata = std::fs::metadata(path).map_err(|e| bad_input(path, e))?;
    if !metadata.is_file() {
        return Err(bad_input(path, "expected a file for run.input, found something else"));
    }
    File::open(path).map(drop).map_err(|e| bad_input(path, e))
}

/// Reads tipsim's own standard input to its end, if it is a file or a pipe with something in it: a terminal has no end, and
/// other devices have none or nothing.
pub(crate) fn standard_input() -> anyhow::Result<Option<Vec<u8>>> {
    let stdin = io::stdin();
    let kind = fstat(stdin.as_fd()).map(|stat| FileType::from_raw_mode(stat.st_mode));
    if !matches!(kind, Ok(FileType::RegularFile | FileType::Fifo)) {
        return Ok(None);
    }
    let (done, waits) = mpsc::channel::<()>();
    std::thread::spawn(move || {
        if waits.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout) {
            eprintln!(
                "tipsim: reading standard input to its end, which the command gets (with < /dev/null: nothing)"
            );
        }
    });
    let mut input = Vec::new();
    let read = stdin.lock().take(MAX_BYTES + 1).read_to_end(&mut input);
    read.map_err(|e| BadInput(format!("standard input: {e}")))?;
    drop(done);
    if input.len() as u64 > MAX_BYTES {
        let error = format!("standard input: expected at most {MAX_BYTES} bytes, found more");
        return Err(BadInput(error).into());
    }
    Ok((!input.is_empty()).then_some(input))
}
