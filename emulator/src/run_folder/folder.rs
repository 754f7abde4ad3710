//! A folder whose files may be an enemy's: nothing is reached through a link.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, openat, renameat, unlinkat};

/// What marks a file that is being written.
const PARTIAL: &str = ".partial";

/// An open folder. Names in it may have folders in front (`hart0/report.json`), none of which may be a link.
#[derive(Debug)]
pub(crate) struct Folder {
    fd: OwnedFd,
    path: PathBuf,
}

impl Folder {
    /// Opens a folder that the user names; it may be a link itself.
    ///
    /// # Errors
    /// If there is no such folder.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::open(path, flags, Mode::empty())?;
        Ok(Self { fd, path: path.to_owned() })
    }

    /// Returns another handle of the folder.
    ///
    /// # Errors
    /// If the process can open no more files.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { fd: self.fd.try_clone()?, path: self.path.clone() })
    }

    /// Returns the folder's path, for messages and for what is known to be no link.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a folder in it.
    ///
    /// # Errors
    /// If there is no such folder, or it is a link.
    pub(crate) fn sub(&self, name: &str) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = openat(self.fd.as_fd(), name, flags, Mode::empty())?;
        Ok(Self { fd, path: self.path.join(name) })
    }

    /// Opens a folder in it, which is made if there is none.
    ///
    /// # Errors
    /// If it cannot be made, or something else has its name.
    pub(crate) fn make(&self, name: &str) -> io::Result<Self> {
        match mkdirat(self.fd.as_fd(), name, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => self.sub(name),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a regular file of at most `most` bytes for reading.
    ///
    /// # Errors
    /// If there is none, if it is a link or anything else that is no regular file, and if it is larger.
    pub(crate) fn file(&self, name: &str, most: u64) -> io::Result<File> {
        if let Some((folder, name)) = name.split_once('/') {
            return self.sub(folder)?.file(name, most);
        }
        // A FIFO must not make the reader wait.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = openat(self.fd.as_fd(), name, flags, Mode::empty());
        let file = File::from(opened.map_err(|error| match error {
            rustix::io::Errno::LOOP => other("expected a regular file, found a link"),
            error => error.into(),
        })?);
        let found = file.metadata()?;
        if !found.is_file() {
            return Err(other("expected a regular file, found something else"));
        }
        if found.len() > most {
            let error = format!("expected at most {most} bytes, found {}", found.len());
            return Err(other(&error));
        }
        Ok(file)
    }

    /// Reads a regular file of at most `most` bytes.
    ///
    /// # Errors
    /// If there is none, if it is no regular file or a larger one, and if it cannot be read.
    pub(crate) fn read(&self, name: &str, most: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.file(name, most)?.take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Creates a file that is not there yet.
    ///
    /// # Errors
    /// If it cannot be created, or anything has its name.
    pub(crate) fn create(&self, name: &str) -> io::Result<File> {
        if let Some((folder, name)) = name.split_once('/') {
            return self.make(folder)?.create(name);
        }
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = openat(self.fd.as_fd(), name, flags, Mode::from_raw_mode(0o666))?;
        Ok(File::from(fd))
    }

    /// Writes a file that is there when it is whole, in place of what had its name: a file, or a link, which is not followed.
    ///
    /// # Errors
    /// If it cannot be written; then what was there before still is.
    pub(crate) fn replace(
        &self,
        name: &str,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> io::Result<()> {
        if let Some((folder, name)) = name.split_once('/') {
            return self.make(folder)?.replace(name, write);
        }
        let partial = format!("{name}{PARTIAL}");
        // Whatever a killed writer left, or somebody else has put there.
        self.remove(&partial)?;
        let written = self
            .create(&partial)
            .and_then(|mut file| write(&mut file))
            .and_then(|()| self.rename(&partial, name));
        if written.is_err() {
            let _ = self.remove(&partial);
        }
        written
    }

    /// Writes a whole file, as [`Self::replace`] does.
    ///
    /// # Errors
    /// If it cannot be written; then what was there before still is.
    pub(crate) fn write(&self, name: &str, content: &[u8]) -> io::Result<()> {
        self.replace(name, |file| file.write_all(content))
    }

    /// Gives something in it another name.
    ///
    /// # Errors
    /// If that fails, for instance because a folder that is not empty has the name.
    pub(crate) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(renameat(self.fd.as_fd(), from, self.fd.as_fd(), to)?)
    }

    /// Removes a file or a link, if it is there.
    ///
    /// # Errors
    /// If it cannot be removed, or is a folder.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        if let Some((folder, name)) = name.split_once('/') {
            return match self.sub(folder) {
                Ok(folder) => folder.remove(name),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                Err(error) => Err(error),
            };
        }
        match unlinkat(self.fd.as_fd(), name, AtFlags::empty()) {
            Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

fn other(error: &str) -> io::Error {
    io::Error::other(error)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn nothing_is_read_or_written_through_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let (inside, outside) = (dir.path().join("run"), dir.path().join("outside"));
        std::fs::create_dir(&inside).unwrap();
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(outside.join("victim"), "victim").unwrap();
        for name in ["report.txt", "report.txt.partial"] {
            symlink(outside.join("victim"), inside.join(name)).unwrap();
        }
        symlink(&outside, inside.join("hart0")).unwrap();
        let folder = Folder::open(&inside).unwrap();
        let error = folder.read("report.txt", 100).unwrap_err().to_string();
        assert_eq!(error, "expected a regular file, found a link");
        assert!(folder.read("hart0/victim", 100).is_err());
        assert!(folder.create("report.txt").is_err());
        folder.write("report.txt", b"new").unwrap();
        assert_eq!(folder.read("report.txt", 100).unwrap(), b"new");
        assert!(folder.write("hart0/victim", b"new").is_err());
        let victim = std::fs::read_to_string(outside.join("victim")).unwrap();
        assert_eq!(victim, "victim");
        assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1);
    }

    #[test]
    fn a_reader_neither_waits_nor_reads_more_than_it_may() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        let fifo = dir.path().join("fifo");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status();
        assert!(made.unwrap().success());
        symlink("/dev/zero", dir.path().join("zero")).unwrap();
        std::fs::create_dir(dir.path().join("folder")).unwrap();
        for name in ["fifo", "zero", "folder"] {
            let error = folder.read(name, 100).unwrap_err().to_string();
            assert!(error.starts_with("expected a regular file"), "{error}");
        }
        let sparse = folder.create("sparse").unwrap();
        sparse.set_len(40 << 30).unwrap();
        let error = folder.read("sparse", 1 << 20).unwrap_err().to_string();
        assert_eq!(error, "expected at most 1048576 bytes, found 42949672960");
        assert_eq!(folder.read("none", 1).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_failed_write_leaves_what_was_there() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        folder.write("a", b"old").unwrap();
        let full = folder.replace("a", |file| {
            file.write_all(b"ne")?;
            Err(io::Error::from(io::ErrorKind::StorageFull))
        });
        assert_eq!(full.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(folder.read("a", 100).unwrap(), b"old");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
