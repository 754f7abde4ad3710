//! The folder that host and guest share while the run lasts, and what the guest leaves in it.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};

use crate::failure::{bad_input, cannot_write};
use crate::run_folder::remove_tree;

/// The shared folder: it stays among the results, with what the guest left.
pub(super) struct Share {
    /// Path of the shared folder on the host.
    pub path: PathBuf,
}

impl Share {
    /// Puts the host's files where the guest's command finds them.
    pub(super) fn give(&self, files: &[PathBuf]) -> anyhow::Result<()> {
        // A folder that the user gives may have the results in it.
        let results = self.path.parent().unwrap_or(&self.path);
        for file in files {
            let name = file
                .file_name()
                .ok_or_else(|| bad_input(file, "expected a file or folder with a name"))?;
            let to = self.path.join(name);
            if std::fs::symlink_metadata(&to).is_ok() {
                let error = "run.files: expected files of different names, found two of this name";
                return Err(bad_input(file, error).into());
            }
            copy(file, &to, &|folder| is_same(folder, results))?;
        }
        Ok(())
    }

    /// Says when files in it (the empty name: the folder itself) were last changed, in Unix time, as far as they exist.
    pub(super) fn made_at(&self, names: &[&str], seconds: u64) -> anyhow::Result<()> {
        let time = UNIX_EPOCH + Duration::from_secs(seconds);
        for path in names.iter().map(|name| self.path.join(name)) {
            if path.exists() {
                set_modified(&path, time).map_err(|e| cannot_write(&path, e))?;
            }
        }
        Ok(())
    }

    /// Gives everything in it the permissions that its kind has. The host's umask, and what its user allows others, are not the guest's to
    /// see; and a copy of a program is not set-user-ID.
    pub(super) fn fix_modes(&self) -> anyhow::Result<()> {
        fix_modes(&self.path).map_err(|e| cannot_write(&self.path, e))
    }

    /// Takes the host's files out of it again.
    pub(super) fn take_back(&self, files: &[PathBuf]) {
        for name in files.iter().filter_map(|file| file.file_name()) {
            let path = self.path.join(name);
            // The guest may have removed or replaced it.
            let _ = remove_tree(&path);
        }
    }
}

/// Returns whether two paths lead to the same folder.
fn is_same(one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| {
        let found = std::fs::symlink_metadata(path).ok()?;
        Some((found.dev(), found.ino()))
    };
    identity(one).is_some_and(|own| identity(other) == Some(own))
}

/// Copies a file, a link or a whole folder, with the times of their last change: the guest sees those. What cannot be read
/// and what cannot be written are told apart.
fn copy(from: &Path, to: &Path, is_left_out: &impl Fn(&Path) -> bool) -> anyhow::Result<()> {
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
        // Whatever the host's umask, files can be put into it.
        std::fs::set_permissions(to, Permissions::from_mode(0o755)).map_err(write)?;
        for entry in std::fs::read_dir(from).map_err(read)? {
            let entry = entry.map_err(read)?;
            if !is_left_out(&entry.path()) {
                copy(&entry.path(), &to.join(entry.file_name()), is_left_out)?;
            }
        }
    } else {
        let expected = "expected a file, a folder or a link, found something else";
        return Err(bad_input(from, expected).into());
    }
    set_modified(to, metadata.modified().map_err(read)?).map_err(write)
}

/// Makes folders and programs `rwxr-xr-x`, and other files `rw-r--r--`, as most hosts do. What a link leads to stays as it is.
fn fix_modes(path: &Path) -> std::io::Result<()> {
    let metadata = std::fs::symlink_metadata(path)?;
    let mode = match metadata.permissions().mode() & 0o111 {
        _ if metadata.is_symlink() => return Ok(()),
        0 if metadata.is_file() => 0o644,
        _ => 0o755,
    };
    std::fs::set_permissions(path, Permissions::from_mode(mode))?;
    if metadata.is_dir() {
        for entry in std::fs::read_dir(path)? {
            fix_modes(&entry?.path())?;
        }
    }
    Ok(())
}

/// Sets when a file, folder or link was last changed.
fn set_modified(path: &Path, time: SystemTime) -> std::io::Result<()> {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let time = Timespec { tv_sec: since.as_secs() as _, tv_nsec: since.subsec_nanos().into() };
    let times = Timestamps { last_access: time, last_modification: time };
    utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_the_results_are_in_is_given_without_them() {
        let given = tempfile::tempdir().unwrap();
        let results = given.path().join("out/run.partial");
        let share = Share { path: results.join("files") };
        std::fs::create_dir_all(&share.path).unwrap();
        std::fs::write(given.path().join("program"), "text").unwrap();
        share.give(&[given.path().to_owned()]).unwrap();
        let copy = share.path.join(given.path().file_name().unwrap());
        assert_eq!(std::fs::read(copy.join("program")).unwrap(), b"text");
        assert_eq!(std::fs::read_dir(copy.join("out")).unwrap().count(), 0);
    }

    #[test]
    fn modes_are_those_of_their_kinds() {
        let outer = tempfile::tempdir().unwrap();
        let given = outer.path().join("given");
        std::fs::create_dir(&given).unwrap();
        let made = |name: &str, mode| {
            std::fs::write(given.join(name), name).unwrap();
            std::fs::set_permissions(given.join(name), Permissions::from_mode(mode)).unwrap();
        };
        made("private", 0o600);
        made("program", 0o6700);
        made("open", 0o666);
        std::os::unix::fs::symlink("private", given.join("link")).unwrap();
        std::fs::set_permissions(&given, Permissions::from_mode(0o2700)).unwrap();
        let share = Share { path: outer.path().join("files") };
        std::fs::create_dir(&share.path).unwrap();
        share.give(&[given]).unwrap();
        share.fix_modes().unwrap();
        let mode = |name: &str| {
            let metadata = std::fs::symlink_metadata(share.path.join(name)).unwrap();
            metadata.permissions().mode()
        };
        assert_eq!(mode(""), 0o040_755);
        assert_eq!(mode("given"), 0o040_755);
        assert_eq!(mode("given/private"), 0o100_644);
        assert_eq!(mode("given/program"), 0o100_755);
        assert_eq!(mode("given/open"), 0o100_644);
        assert_eq!(mode("given/link"), 0o120_777);
    }
}
