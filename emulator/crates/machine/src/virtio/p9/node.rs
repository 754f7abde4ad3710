//! Files of the host, each held by an `O_PATH` descriptor.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::rc::Rc;

use rustix::fs::{self, AtFlags, FileType, Mode, Stat};
use rustix::io::Errno;

use super::Result;
use super::wire::Qid;

/// A file, folder or link.
pub struct Node {
    pub(super) fd: OwnedFd,
    /// Identity for the guest.
    pub qid: Qid,
    /// Kind of file.
    pub kind: FileType,
    /// Where it was found. Stale once somebody else moves it.
    pub(super) place: RefCell<Option<(Rc<Node>, Vec<u8>)>>,
    pub(super) _descriptor: Descriptor,
}

/// Counts a descriptor in use.
pub struct Descriptor(
    #[expect(dead_code, reason = "its references are counted")] pub(super) Rc<()>,
);

/// Device and inode number on the host.
pub(super) type Inode = (u64, u64);

/// A file that is open for reading and writing, or a folder that is being listed.
pub enum Open {
    /// A regular file.
    File { file: File, _descriptor: Descriptor },
    /// Entries in order, as of the start of the listing.
    Folder(Vec<Entry>),
}

/// An entry of a listed folder.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Name.
    pub name: Vec<u8>,
    /// Identity.
    pub qid: Qid,
    /// `d_type` as getdents(2) has it.
    pub kind: u8,
}

impl Node {
    /// Attributes on the host.
    pub fn stat(&self) -> Result<Stat> {
        fs::fstat(&self.fd)
    }

    /// Target of a symbolic link.
    pub fn read_link(&self) -> Result<Vec<u8>> {
        if self.kind != FileType::Symlink {
            return Err(Errno::INVAL);
        }
        Ok(fs::readlinkat(&self.fd, "", Vec::new())?.into_bytes())
    }

    /// Sets the permission bits.
    pub fn set_permissions(&self, mode: u32) -> Result {
        if self.kind == FileType::Symlink {
            return Err(Errno::OPNOTSUPP);
        }
        fs::chmodat(
            fs::CWD,
            self.magic_link(),
            permissions(mode),
            AtFlags::empty(),
        )
    }

    /// The folder it was found in; none for the root.
    pub(super) fn parent(&self) -> Option<Rc<Node>> {
        self.place
            .borrow()
            .as_ref()
            .map(|(parent, _)| parent.clone())
    }

    /// A path to the very file that is held: for the calls that take no descriptor, or none of
    /// the `O_PATH` kind.
    pub(super) fn magic_link(&self) -> String {
        format!("/proc/self/fd/{}", self.fd.as_raw_fd())
    }
}

impl Drop for Node {
    /// One after another up the path: a guest can nest folders deeper than the stack.
    fn drop(&mut self) {
        let mut next = self.place.take();
        while let Some((parent, _)) = next {
            next = Rc::into_inner(parent).and_then(|node| node.place.take());
        }
    }
}

pub(super) fn inode(stat: &Stat) -> Inode {
    (stat.st_dev, stat.st_ino)
}

pub(super) fn os(name: &[u8]) -> &OsStr {
    OsStr::from_bytes(name)
}

/// Special bits are not the host's business: see [`super::attributes`].
pub(super) fn permissions(mode: u32) -> Mode {
    Mode::from_raw_mode(mode & 0o777)
}

pub(super) fn entry_kind(kind: FileType) -> u8 {
    (kind.as_raw_mode() >> 12) as u8
}
