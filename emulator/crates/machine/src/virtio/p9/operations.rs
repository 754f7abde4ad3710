//! The messages, one method each.

mod change;
mod look;

use rustix::io::Errno;

use super::wire::{Reader, Writer, kind};
use super::{Call, MESSAGE_MAX, MESSAGE_MIN, Result};

const VERSION: &[u8] = b"9P2000.L";
/// "No user": the handle acts for root.
const NO_USER: u32 = u32::MAX;
const WALK_MAX: u16 = 16;

impl Call<'_> {
    /// Carries out a request.
    pub(super) fn dispatch(&mut self, kind: u8, r: &mut Reader<'_>, w: &mut Writer) -> Result {
        match kind {
            kind::VERSION => self.version(r, w),
            kind::ATTACH => self.attach(r, w),
            // Requests are carried out at once, and replies keep their order: when this one
            // arrives, the other has.
            kind::FLUSH => Ok(()),
            kind::WALK => self.walk(r, w),
            kind::CLUNK => self.clunk(r),
            kind::STATFS => self.statfs(r, w),
            kind::GETATTR => self.getattr(r, w),
            kind::READLINK => self.readlink(r, w),
            kind::LOPEN => self.lopen(r, w),
            kind::READ => self.read(r, w),
            kind::READDIR => self.readdir(r, w),
            kind::FSYNC => self.fsync(r),
            kind::LOCK => self.lock(r, w),
            kind::GETLOCK => self.getlock(r, w),
            // There are no extended attributes.
            kind::XATTRWALK | kind::XATTRCREATE => Err(Errno::OPNOTSUPP),
            _ if self.server.read_only => Err(Errno::ROFS),
            kind::LCREATE => self.lcreate(r, w),
            kind::WRITE => self.write(r, w),
            kind::SETATTR => self.setattr(r),
            kind::MKDIR => self.mkdir(r, w),
            kind::MKNOD => self.mknod(r, w),
            kind::SYMLINK => self.symlink(r, w),
            kind::LINK => self.link(r),
            kind::RENAME => self.rename(r),
            kind::RENAMEAT => self.renameat(r),
            kind::UNLINKAT => self.unlinkat(r),
            kind::REMOVE => self.remove(r),
            _ => Err(Errno::OPNOTSUPP),
        }
    }

    /// Starts a session: every handle of the one before is given up.
    fn version(&mut self, r: &mut Reader<'_>, w: &mut Writer) -> Result {
        let (size, version) = (r.u32()?, r.string()?);
        if size < MESSAGE_MIN {
            return Err(Errno::INVAL);
        }
        self.server.fids.clear();
        self.server.message_max = size.min(MESSAGE_MAX);
        w.u32(self.server.message_max);
        w.string(if version == VERSION {
            VERSION
        } else {
            b"unknown"
        });
        Ok(())
    }

    fn attach(&mut self, r: &mut Reader<'_>, w: &mut Writer) -> Result {
        let (fid, _afid, _user, folder) = (r.u32()?, r.u32()?, r.string()?, r.string()?);
        let uid = r.u32()?;
        if !matches!(folder, b"" | b"/") {
            return Err(Errno::NOENT);
        }
        let root = self.server.folder.root();
        w.qid(root.qid);
        let uid = if uid == NO_USER { 0 } else { uid };
        self.server.fids.insert(fid, None, root, uid)
    }

    /// Goes down a path. If only a part of it exists, the handle is not made.
    fn walk(&mut self, r: &mut Reader<'_>, w: &mut Writer) -> Result {
        let (from, to, count) = (r.u32()?, r.u32()?, r.u16()?);
        if count > WALK_MAX {
            return Err(Errno::INVAL);
        }
        let fid = self.server.fids.get(from)?;
        let (mut node, uid) = (fid.node.clone(), fid.uid);
        let mut qids = Vec::new();
        for _ in 0..count {
            match self.server.folder.find(&node, r.string()?) {
                Ok(found) => node = found,
                Err(error) if qids.is_empty() => return Err(error),
                Err(_) => break,
            }
            qids.push(node.qid);
        }
        if qids.len() == usize::from(count) {
            self.server.fids.insert(to, Some(from), node, uid)?;
        }
        w.u16(qids.len() as u16);
        qids.into_iter().for_each(|qid| w.qid(qid));
        Ok(())
    }

    fn clunk(&mut self, r: &mut Reader<'_>) -> Result {
        let fid = r.u32()?;
        self.server.fids.remove(fid).map(drop)
    }

    /// Locks always succeed: no other machine has the folder.
    fn lock(&mut self, r: &mut Reader<'_>, w: &mut Writer) -> Result {
        const SUCCESS: u8 = 0;
        let fid = r.u32()?;
        self.server.fids.get(fid)?;
        w.u8(SUCCESS);
        Ok(())
    }

    /// Nobody holds a lock.
    fn getlock(&mut self, r: &mut Reader<'_>, w: &mut Writer) -> Result {
        const UNLOCKED: u8 = 2;
        let (fid, _kind) = (r.u32()?, r.u8()?);
        let (start, length, process, client) = (r.u64()?, r.u64()?, r.u32()?, r.string()?);
        self.server.fids.get(fid)?;
        w.u8(UNLOCKED);
        w.u64(start);
        w.u64(length);
        w.u32(process);
        w.string(client);
        Ok(())
    }
}
