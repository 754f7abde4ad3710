//! The folder that host and guest share while the run lasts, and what the guest leaves in it.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};

use crate::failure::{bad_input, cannot_write};

/// The shared folder: it stays among the results, with what the guest left.
pub struct Share {
    /// Where it is.
    pub path: PathBuf,
}

impl Share {
    /// Puts the host's files where the guest's command finds them.
    pub fn give(&self, files: &[PathBuf]) -> anyhow::Result<()> {
        for file in files {
            let name = file
                .file_name()
                .ok_or_else(|| bad_input(file, "expected a file or folder with a name"))?;
            copy(file, &self.path.join(name))?;
        }
        Ok(())
    }

    /// Says when files in it (the empty name: the folder itself) were last changed, in Unix time, as far as they exist.
    pub fn made_at(&self, names: &[&str], seconds: u64) -> anyhow::Result<()> {
        let time = UNIX_EPOCH + Duration::from_secs(seconds);
        for path in names.iter().map(|name| self.path.join(name)) {
            if path.exists() {
                set_modified(&path, time).map_err(|e| cannot_write(&path, e))?;
            }
        }
        Ok(())
    }

    /// Takes the host's files out of it again.
    pub fn take_back(&self, files: &[PathBuf]) {
        for name in files.iter().filter_map(|file| file.file_name()) {
            let path = self.path.join(name);
            // The guest may have removed or replaced it.
            let _ = std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir_all(&path));
        }
    }
}

/// Copies a file, a link or a whole folder, with the times of their last change: the guest sees those. What cannot be read
/// and what cannot be written are told apart.
fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    let read = |e| bad_input(from, e);
    let write = |e| cannot_write(to, e);
    let metadata = std::fs::symlink_metadata(from).map_err(read)?;
    let kind = metadata.file_type();
    if kind.is_symlink() {
        let target = std::fs::read_link(from).map_err(read)?;
        std::os::unix::fs::symlink(target, to).map_err(write)?;
    } else if kind.is_file() {
        std::fs::File::open(from).map_err(read)?;
        std::fs::copy(from, to).map_err(write)?;
    } else if kind.is_dir() {
        std::fs::create_dir(to).map_err(write)?;
        for entry in std::fs::read_dir(from).map_err(read)? {
            let entry = entry.map_err(read)?;
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
    } else {
        let expected = "expected a file, a folder or a link, found something else";
        return Err(bad_input(from, expected).into());
    }
    set_modified(to, metadata.modified().map_err(read)?).map_err(write)
}

/// Sets when a file, folder or link was last changed.
fn set_modified(path: &Path, time: SystemTime) -> std::io::Result<()> {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let time = Timespec {
        tv_sec: since.as_secs() as _,
        tv_nsec: since.subsec_nanos().into(),
    };
    let times = Timestamps {
        last_access: time,
        last_modification: time,
    };
    utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(())
}
