//! Files of the host, each held by an `O_PATH` descriptor.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::rc::Rc;

use rustix::fs::{self, AtFlags, FileType, Mode, Stat, Timespec, Timestamps};
use rustix::io::Errno;

use super::Result;

/// A file, folder or link.
pub(crate) struct Node {
    pub(super) fd: OwnedFd,
    /// The file's number for the guest: from 1, in the order in which the guest first sees files.
    pub number: u64,
    /// Kind of file on the host.
    pub kind: FileType,
    pub(super) _descriptor: Descriptor,
}

/// Counts a descriptor in use.
pub(crate) struct Descriptor(
    #[expect(dead_code, reason = "its references are counted")] pub(super) Rc<()>,
);

/// Device and inode number on the host.
pub(super) type Inode = (u64, u64);

/// A file that is open for reading and writing, or a folder that is being listed.
pub(crate) enum Open {
    /// A regular file.
    File { file: File, _descriptor: Descriptor },
    /// Entries in order, as of the start of the listing.
    Folder(Vec<Entry>),
}

/// An entry of a listed folder.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// Name.
    pub name: Vec<u8>,
    /// Number of the file.
    pub number: u64,
    /// Kind of file on the host.
    pub kind: FileType,
}

impl Node {
    /// Attributes on the host.
    pub(crate) fn stat(&self) -> Result<Stat> {
        fs::fstat(&self.fd)
    }

    /// Target of a symbolic link.
    pub(crate) fn read_link(&self) -> Result<Vec<u8>> {
        if self.kind != FileType::Symlink {
            return Err(Errno::INVAL);
        }
        Ok(fs::readlinkat(&self.fd, "", Vec::new())?.into_bytes())
    }

    /// Sets the permission bits.
    pub(crate) fn set_permissions(&self, mode: u32) -> Result {
        if self.kind == FileType::Symlink {
            return Err(Errno::OPNOTSUPP);
        }
        let path = self.magic_link();
        fs::chmodat(fs::CWD, path, permissions(mode), AtFlags::empty())
    }

    /// Sets times of the host's file, in nanoseconds since 1970; `None` keeps the present one.
    pub(crate) fn set_times(&self, accessed: Option<u64>, modified: Option<u64>) -> Result {
        if self.kind == FileType::Symlink {
            return Err(Errno::OPNOTSUPP);
        }
        let time = |nanos: Option<u64>| match nanos {
            Some(nanos) => Timespec {
                tv_sec: (nanos / 1_000_000_000) as _,
                tv_nsec: (nanos % 1_000_000_000) as _,
            },
            None => Timespec { tv_sec: 0, tv_nsec: fs::UTIME_OMIT as _ },
        };
        let times = Timestamps { last_access: time(accessed), last_modification: time(modified) };
        fs::utimensat(fs::CWD, self.magic_link(), &times, AtFlags::empty())
    }

    /// A path to the very file that is held: for the calls that take no descriptor, or none of
    /// the `O_PATH` kind.
    pub(super) fn magic_link(&self) -> String {
        format!("/proc/self/fd/{}", self.fd.as_raw_fd())
    }
}

pub(super) fn inode(stat: &Stat) -> Inode {
    (stat.st_dev, stat.st_ino)
}

pub(super) fn os(name: &[u8]) -> &OsStr {
    OsStr::from_bytes(name)
}

/// The permission bits of a mode. The host's file does not get special bits: see [`super::attributes`].
pub(super) fn permissions(mode: u32) -> Mode {
    Mode::from_raw_mode(mode & 0o777)
}
