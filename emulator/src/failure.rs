//! Exit statuses: 2 for bad input, 1 for a failed run.

use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use simulation::SimulationError;

/// Images of programs, kernels and disks in memory that are read at most, in bytes.
pub(crate) const MAX_IMAGE_BYTES: u64 = 4 << 30;

/// The user's input is at fault: a file, a field, an argument. Exit status 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct BadInput(pub String);

/// Bad input in a file.
pub(crate) fn bad_input(path: &Path, error: impl Display) -> BadInput {
    BadInput(format!("{}: {error}", path.display()))
}

/// Returns the name that is most like a misspelt one, if one is alike by `least` (Jaro and Winkler, 0 to 1).
pub(crate) fn nearest<'a>(
    name: &str,
    names: impl Iterator<Item = &'a str>,
    least: f64,
) -> Option<&'a str> {
    let all = names.map(|known| (strsim::jaro_winkler(known, name), known));
    let best = all.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 > least).then_some(best.1)
}

/// Reads a file that the user named, of at most `most` bytes: a device may have no end.
pub(crate) fn read_at_most(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::other(format!("expected at most {most} bytes, found more")));
    }
    Ok(bytes)
}

/// The host cannot write a file, for instance because its disk is full. Exit status 1.
pub(crate) fn cannot_write(path: &Path, error: impl Display) -> anyhow::Error {
    anyhow::anyhow!("{}: cannot write: {error}", path.display())
}

/// Writes a file that is there only when it is whole: half a file neither looks like a result nor takes the last room of a
/// full disk.
pub(crate) fn write_whole(path: &Path, content: impl AsRef<[u8]>) -> anyhow::Result<()> {
    whole(path, |file| file.write_all(content.as_ref())).map_err(|e| cannot_write(path, e))
}

/// Returns whether another file can take the place of the one at `path`: not that of a device or a pipe, such as `/dev/null`.
pub(crate) fn is_replaceable(path: &Path) -> bool {
    std::fs::metadata(path).map_or(true, |found| found.is_file())
}

/// Lets `write` write a file that is there only when it is whole. A device or a pipe takes the content as it comes.
pub(crate) fn whole(
    path: &Path,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    if !is_replaceable(path) {
        return OpenOptions::new().write(true).open(path).and_then(|mut file| write(&mut file));
    }
    // The file that a link leads to is written, not the link.
    let path = &path.canonicalize().unwrap_or_else(|_| path.to_owned());
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
pub(crate) fn report(error: &anyhow::Error) -> u8 {
    let line = format!("{error:#}").replace('\n', " ");
    eprintln!("tipsim: {line}");
    let is_bad_input = error.chain().any(|e| {
        let simulation = e.downcast_ref::<SimulationError>();
        e.is::<BadInput>() || simulation.is_some_and(SimulationError::is_bad_input)
    });
    if is_bad_input { 2 } else { 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_file_stays_what_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let [device, link, file] = ["device", "link", "file"].map(|name| dir.path().join(name));
        std::os::unix::fs::symlink("/dev/null", &device).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write_whole(&device, "lost").unwrap();
        assert!(device.is_symlink() && !is_replaceable(&device) && !is_replaceable(dir.path()));
        assert!(write_whole(dir.path(), "").is_err());
        std::fs::write(&file, "old").unwrap();
        write_whole(&link, "new").unwrap();
        assert!(link.is_symlink());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 3);
    }
}
