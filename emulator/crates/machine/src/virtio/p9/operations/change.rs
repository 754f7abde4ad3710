//! Messages that change the folder.

use std::os::unix::fs::FileExt;
use std::rc::Rc;

use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;

use super::look::{open_flags, opened};
use crate::virtio::p9::node::{Node, Open};
use crate::virtio::p9::wire::{Reader, Writer};
use crate::virtio::p9::{Call, Result};

const SPECIAL: u32 = 0o7000;

/// Which fields of a `setattr` count (Linux include/net/9p/9p.h).
mod valid {
    pub const MODE: u32 = 1;
    pub const UID: u32 = 1 << 1;
    pub const GID: u32 = 1 << 2;
    pub const SIZE: u32 = 1 << 3;
    pub const ACCESSED: u32 = 1 << 4;
    pub const MODIFIED: u32 = 1 << 5;
    /// The time is given; otherwise it is now.
    pub const ACCESSED_SET: u32 = 1 << 7;
    pub const MODIFIED_SET: u32 = 1 << 8;
}

impl Call<'_> {
    /// Creates a file and opens it: the folder's handle becomes the file's.
    pub(super) fn lcreate(&mut self, r: &mut Reader<'_>, w: &mut Writer) -> Result {
        const EXCLUSIVE: u32 = 0o200;
        let (number, name, flags, mode, gid) =
            (r.u32()?, r.string()?, r.u32()?, r.u32()?, r.u32()?);
        let fid = self.server.fids.get(number)?;
        let (parent, uid) = (fid.node.clone(), fid.uid);
        if fid.open.is_some() {
            return Err(Errno::BADF);
        }
        // Opened before its mode is set: that may forbid what the one who creates it may do.
        let created = self.server.folder.create(&parent, name, 0o600);
        let (node, new) = match created {
            Ok(node) => (self.created(&parent, node, (uid, gid), mode), true),
            Err(Errno::EXIST) if flags & EXCLUSIVE == 0 => {
                (self.server.folder.find(&parent, name)?, false)
            }
            Err(error) => return Err(error),
        };
        let open = self.server.folder.open_node(&node, open_flags(flags))?;
        if new {
            node.set_permissions(mode)?;
        }
        let fid = self.server.fids.get(number)?;
        (fid.node, fid.open) = (node.clone(), Some(open));
        opened(node.qid, w);
        Ok(())
    }

    pub(super) fn write(&mut self, r: &mut Reader<'_>, w: &mut Writer) -> Result {
        let (fid, offset, count) = (r.u32()?, r.u64()?, r.u32()?);
        let data = r.bytes(count as usize)?;
        let fid = self.server.fids.get(fid)?;
        let Some(Open::File { file, .. }) = &fid.open else {
            return Err(Errno::BADF);
        };
        file.write_all_at(data, offset)
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        self.server.attributes.touch(fid.node.qid.path, self.time);
        w.u32(count);
        Ok(())
    }

    pub(super) fn fsync(&mut self, r: &mut Reader<'_>) -> Result {
        let fid = r.u32()?;
        if let Some(Open::File { file, .. }) = &self.server.fids.get(fid)?.open {
            rustix::fs::fdatasync(file)?;
        }
        Ok(())
    }

    pub(super) fn setattr(&mut self, r: &mut Reader<'_>) -> Result {
        let (number, which, mode, uid, gid) = (r.u32()?, r.u32()?, r.u32()?, r.u32()?, r.u32()?);
        let size = r.u64()?;
        let mut time = || {
            Ok(r.u64()?
                .saturating_mul(1_000_000_000)
                .saturating_add(r.u64()?))
        };
        let (accessed, modified): (u64, u64) = (time()?, time()?);
        let node = self.server.fids.node(number)?;
        let set = |bit| which & bit != 0;
        if set(valid::MODE) {
            node.set_permissions(mode)?;
        }
        if set(valid::SIZE) {
            self.truncate(number, &node, size)?;
        }
        let now = self.time;
        let attribute = self.server.attributes.change(node.qid.path);
        attribute.changed = now;
        if set(valid::MODE) {
            attribute.special = mode & SPECIAL;
        }
        if set(valid::UID) {
            attribute.uid = uid;
        }
        if set(valid::GID) {
            attribute.gid = gid;
        }
        if set(valid::ACCESSED) {
            attribute.accessed = if set(valid::ACCESSED_SET) {
                accessed
            } else {
                now
            };
        }
        if set(valid::MODIFIED) {
            attribute.modified = if set(valid::MODIFIED_SET) {
                modified
            } else {
                now
            };
        } else if set(valid::SIZE) {
            attribute.modified = now;
        }
        Ok(())
    }

    pub(super) fn mkdir(&mut self, r: &mut Reader<'_>, w: &mut Writer) -> Result {
        let (parent, name, mode, gid) = (r.u32()?, r.string()?, r.u32()?, r.u32()?);
        let (parent, uid) = self.parent(parent)?;
        let node = self.server.folder.make_folder(&parent, name, mode)?;
        w.qid(self.created(&parent, node, (uid, gid), mode).qid);
        Ok(())
    }

    /// Regular files only: the host's user cannot make devices, and pipes and sockets would have
    /// to be the guest's.
    pub(super) fn mknod(&mut self, r: &mut Reader<'_>, w: &mut Writer) -> Result {
        let (parent, name, mode) = (r.u32()?, r.string()?, r.u32()?);
        let (_major, _minor, gid) = (r.u32()?, r.u32()?, r.u32()?);
        if FileType::from_raw_mode(mode) != FileType::RegularFile {
            return Err(Errno::PERM);
        }
        let (parent, uid) = self.parent(parent)?;
        let node = self.server.folder.create(&parent, name, mode)?;
        w.qid(self.created(&parent, node, (uid, gid), mode).qid);
        Ok(())
    }

    pub(super) fn symlink(&mut self, r: &mut Reader<'_>, w: &mut Writer) -> Result {
        let (parent, name, target, gid) = (r.u32()?, r.string()?, r.string()?, r.u32()?);
        let (parent, uid) = self.parent(parent)?;
        let node = self.server.folder.make_link(&parent, name, target)?;
        w.qid(self.created(&parent, node, (uid, gid), 0).qid);
        Ok(())
    }

    pub(super) fn link(&mut self, r: &mut Reader<'_>) -> Result {
        let (parent, fid, name) = (r.u32()?, r.u32()?, r.string()?);
        let node = self.server.fids.node(fid)?;
        let (parent, _) = self.parent(parent)?;
        self.server.folder.hard_link(&node, &parent, name)?;
        self.server.attributes.change(node.qid.path).changed = self.time;
        self.server.attributes.touch(parent.qid.path, self.time);
        Ok(())
    }

    pub(super) fn rename(&mut self, r: &mut Reader<'_>) -> Result {
        let (fid, to, name) = (r.u32()?, r.u32()?, r.string()?);
        let node = self.server.fids.node(fid)?;
        let (parent, old) = self.server.folder.place(&node)?;
        let to = self.server.fids.node(to)?;
        self.renamed((&parent, &old), (&to, name))
    }

    pub(super) fn renameat(&mut self, r: &mut Reader<'_>) -> Result {
        let (from, old, to, new) = (r.u32()?, r.string()?, r.u32()?, r.string()?);
        let (from, to) = (self.server.fids.node(from)?, self.server.fids.node(to)?);
        self.renamed((&from, old), (&to, new))
    }

    pub(super) fn unlinkat(&mut self, r: &mut Reader<'_>) -> Result {
        const REMOVE_FOLDER: u32 = 0x200;
        let (parent, name, flags) = (r.u32()?, r.string()?, r.u32()?);
        let parent = self.server.fids.node(parent)?;
        self.unlink(&parent, name, flags & REMOVE_FOLDER != 0)
    }

    /// Removes a file by its handle, which is given up whatever happens.
    pub(super) fn remove(&mut self, r: &mut Reader<'_>) -> Result {
        let fid = r.u32()?;
        let node = self.server.fids.remove(fid)?.node;
        let (parent, name) = self.server.folder.place(&node)?;
        self.unlink(&parent, &name, node.kind == FileType::Directory)
    }

    fn parent(&mut self, fid: u32) -> Result<(Rc<Node>, u32)> {
        let fid = self.server.fids.get(fid)?;
        Ok((fid.node.clone(), fid.uid))
    }

    /// Notes a new file.
    fn created(&mut self, parent: &Node, node: Rc<Node>, owner: (u32, u32), mode: u32) -> Rc<Node> {
        self.server
            .attributes
            .create(node.qid.path, owner, mode & SPECIAL, self.time);
        self.server.attributes.touch(parent.qid.path, self.time);
        node
    }

    fn unlink(&mut self, parent: &Node, name: &[u8], folder: bool) -> Result {
        let gone = self.server.folder.remove(parent, name, folder)?;
        self.server.attributes.touch(parent.qid.path, self.time);
        gone.into_iter()
            .for_each(|path| self.server.attributes.forget(path));
        Ok(())
    }

    fn renamed(&mut self, from: (&Rc<Node>, &[u8]), to: (&Rc<Node>, &[u8])) -> Result {
        let gone = self.server.folder.rename(from, to)?;
        gone.into_iter()
            .for_each(|path| self.server.attributes.forget(path));
        self.server.attributes.touch(from.0.qid.path, self.time);
        self.server.attributes.touch(to.0.qid.path, self.time);
        Ok(())
    }

    /// Through the handle's own open file if there is one: its mode may forbid to open it again.
    fn truncate(&mut self, fid: u32, node: &Rc<Node>, size: u64) -> Result {
        if let Some(Open::File { file, .. }) = &self.server.fids.get(fid)?.open
            && rustix::fs::ftruncate(file, size).is_ok()
        {
            return Ok(());
        }
        match self.server.folder.open_node(node, OFlags::WRONLY)? {
            Open::File { file, .. } => rustix::fs::ftruncate(&file, size),
            Open::Folder(_) => Err(Errno::ISDIR),
        }
    }
}
