//! The messages, one method each.

mod attributes;
pub(super) mod content;
mod extended;
mod names;
mod open;

use std::rc::Rc;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::node::Node;
use super::wire::{Reader, Writer, opcode};
use super::{Call, Result};

const MAJOR: u32 = 7;
const MINOR: u32 = 38;

/// Features of a session.
mod feature {
    pub(crate) const ASYNC_READ: u32 = 1;
    pub(crate) const ATOMIC_O_TRUNC: u32 = 1 << 3;
    pub(crate) const BIG_WRITES: u32 = 1 << 5;
    pub(crate) const ASYNC_DIO: u32 = 1 << 15;
    pub(crate) const PARALLEL_DIROPS: u32 = 1 << 18;
    pub(crate) const MAX_PAGES: u32 = 1 << 22;
    /// The server drops set-user-ID bits of files that are written: the guest need not ask for capabilities before each
    /// write.
    pub(crate) const HANDLE_KILLPRIV_V2: u32 = 1 << 28;
}

impl Call<'_> {
    /// Carries out a request that has no answer. False: it is another one.
    pub(super) fn forgets(&mut self, r: &mut Reader<'_>) -> bool {
        match self.header.opcode {
            opcode::FORGET => {
                if let Ok(lookups) = r.u64() {
                    self.forget(self.header.node, lookups);
                }
            }
            opcode::BATCH_FORGET => {
                let count = r.u32().and_then(|count| Ok((count, r.u32()?)));
                for _ in 0..count.map_or(0, |(count, _)| count) {
                    let (Ok(node), Ok(lookups)) = (r.u64(), r.u64()) else {
                        break;
                    };
                    self.forget(node, lookups);
                }
            }
            // Requests are carried out at once: when this one comes, the other's answer is on its way.
            opcode::INTERRUPT => {}
            _ => return false,
        }
        true
    }

    fn forget(&mut self, node: u64, lookups: u64) {
        if let Some(gone) = self.server.folder.forget(node, lookups) {
            self.server.attributes.forget(gone);
        }
    }

    /// Carries out a request. `ENOSYS` tells the guest not to ask again: what a `close` flushes has been written, and
    /// permissions are its own to check.
    pub(super) fn dispatch(&mut self, r: &mut Reader<'_>, w: &mut Writer) -> Result {
        match self.header.opcode {
            opcode::INIT => self.init(r, w),
            opcode::DESTROY => {
                self.server.end_session();
                Ok(())
            }
            opcode::LOOKUP => self.lookup(r, w),
            opcode::GETATTR => self.getattr(w),
            opcode::STATX => self.statx(w),
            opcode::READLINK => self.readlink(w),
            opcode::OPEN => self.open(r, w),
            opcode::READ => self.read(r, w),
            opcode::RELEASE | opcode::RELEASEDIR => {
                let handle = r.u64()?;
                self.server.handles.remove(handle)
            }
            opcode::OPENDIR => self.opendir(w),
            opcode::READDIR => self.readdir(r, w),
            opcode::STATFS => self.statfs(w),
            opcode::FSYNC => self.fsync(r),
            // Every change has reached the host's kernel, which survives the guest's.
            opcode::FSYNCDIR | opcode::SYNCFS => Ok(()),
            opcode::LSEEK => self.lseek(r, w),
            opcode::GETXATTR => self.getxattr(r, w),
            opcode::LISTXATTR => self.listxattr(r, w),
            opcode::IOCTL => Err(Errno::NOTTY),
            code if !changes(code) => Err(Errno::NOSYS),
            _ if self.server.read_only => Err(Errno::ROFS),
            opcode::CREATE => self.create(r, w),
            opcode::TMPFILE => self.tmpfile(r, w),
            opcode::WRITE => self.write(r, w),
            opcode::FALLOCATE => self.fallocate(r),
            opcode::COPY_FILE_RANGE => self.copy_file_range(r, w),
            opcode::SETATTR => self.setattr(r, w),
            opcode::MKDIR => self.mkdir(r, w),
            opcode::MKNOD => self.mknod(r, w),
            opcode::SYMLINK => self.symlink(r, w),
            opcode::LINK => self.link(r, w),
            opcode::UNLINK => self.unlink(r, false),
            opcode::RMDIR => self.unlink(r, true),
            opcode::RENAME => self.rename(r, false),
            opcode::RENAME2 => self.rename(r, true),
            opcode::SETXATTR => self.setxattr(r),
            opcode::REMOVEXATTR => self.removexattr(r),
            _ => Err(Errno::NOSYS),
        }
    }

    /// Starts a session: everything of the one before is given up.
    fn init(&mut self, r: &mut Reader<'_>, w: &mut Writer) -> Result {
        const WRITE_MAX: u32 = 1 << 20;
        const PAGES_MAX: u16 = 256;
        const IN_BACKGROUND: u16 = 64;
        let (major, minor, readahead, offered) = (r.u32()?, r.u32()?, r.u32()?, r.u32()?);
        if major < MAJOR || major == MAJOR && minor < 31 {
            // Before Linux 5.4, which has the first driver of this device.
            return Err(Errno::PROTO);
        }
        self.server.end_session();
        w.u32(MAJOR);
        w.u32(MINOR);
        let wanted = feature::ASYNC_READ
            | feature::ATOMIC_O_TRUNC
            | feature::BIG_WRITES
            | feature::ASYNC_DIO
            | feature::PARALLEL_DIROPS
            | feature::MAX_PAGES
            | feature::HANDLE_KILLPRIV_V2;
        w.u32(readahead);
        w.u32(offered & wanted);
        w.u16(IN_BACKGROUND);
        w.u16(IN_BACKGROUND / 4 * 3);
        w.u32(WRITE_MAX);
        w.u32(1); // nanoseconds in times
        w.u16(PAGES_MAX);
        w.u16(0); // alignment of mappings (DAX)
        [0; 8].into_iter().for_each(|n| w.u32(n));
        Ok(())
    }

    /// Returns the file that the request is about.
    fn node(&self) -> Result<Rc<Node>> {
        self.server.folder.node(self.header.node)
    }

    /// Returns the folder that the request is about; an error if it is another kind of file.
    fn folder(&self) -> Result<Rc<Node>> {
        let node = self.node()?;
        match node.kind {
            FileType::Directory => Ok(node),
            _ => Err(Errno::NOTDIR),
        }
    }
}

/// Returns whether a request changes something; a read-only folder refuses it then.
fn changes(code: u32) -> bool {
    use opcode::*;
    [
        CREATE,
        TMPFILE,
        WRITE,
        FALLOCATE,
        COPY_FILE_RANGE,
        SETATTR,
        MKDIR,
        MKNOD,
        SYMLINK,
        LINK,
        UNLINK,
        RMDIR,
        RENAME,
        RENAME2,
        SETXATTR,
        REMOVEXATTR,
    ]
    .contains(&code)
}
