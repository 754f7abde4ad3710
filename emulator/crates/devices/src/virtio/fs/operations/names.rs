//! Names: looked up, made, moved and removed.

use std::rc::Rc;

use rustix::fs::{FileType, RenameFlags};
use rustix::io::Errno;

use crate::virtio::fs::node::Node;
use crate::virtio::fs::wire::{Reader, Writer};
use crate::virtio::fs::{Call, Result};

const SPECIAL: u32 = 0o7000;
const SET_GROUP_ID: u32 = 0o2000;

impl Call<'_> {
    pub(super) fn lookup(&mut self, r: &mut Reader<'_>, w: &mut Writer) -> Result {
        let parent = self.folder()?;
        let node = self.server.folder.find(&parent, r.name()?)?;
        self.entry(&node, w)
    }

    pub(super) fn readlink(&mut self, w: &mut Writer) -> Result {
        w.bytes(&self.node()?.read_link()?);
        Ok(())
    }

    pub(super) fn mkdir(&mut self, r: &mut Reader<'_>, w: &mut Writer) -> Result {
        let (mode, _umask, name) = (r.u32()?, r.u32()?, r.name()?);
        let parent = self.folder()?;
        let node = self.server.folder.make_folder(&parent, name, mode)?;
        self.created(Some(&parent), &node, mode);
        self.entry(&node, w)
    }

    /// Pipes, sockets and devices are empty regular files on the host: its user cannot make devices, and pipes and sockets
    /// without a peer would only block programs there.
    pub(super) fn mknod(&mut self, r: &mut Reader<'_>, w: &mut Writer) -> Result {
        let (mode, device, _umask, _) = (r.u32()?, r.u32()?, r.u32()?, r.u32()?);
        let name = r.name()?;
        let kind = FileType::from_raw_mode(mode);
        let device = match kind {
            FileType::RegularFile => None,
            FileType::Fifo | FileType::Socket => Some((kind.as_raw_mode(), 0)),
            FileType::CharacterDevice | FileType::BlockDevice => Some((kind.as_raw_mode(), device)),
            _ => return Err(Errno::INVAL),
        };
        let parent = self.folder()?;
        let node = self.server.folder.create(&parent, name, mode)?;
        self.created(Some(&parent), &node, mode);
        self.server.attributes.change(node.number).device = device;
        self.entry(&node, w)
    }

    pub(super) fn symlink(&mut self, r: &mut Reader<'_>, w: &mut Writer) -> Result {
        let (name, target) = (r.name()?, r.name()?);
        let parent = self.folder()?;
        let node = self.server.folder.make_link(&parent, name, target)?;
        self.created(Some(&parent), &node, 0);
        self.entry(&node, w)
    }

    pub(super) fn link(&mut self, r: &mut Reader<'_>, w: &mut Writer) -> Result {
        let (number, name) = (r.u64()?, r.name()?);
        let node = self.server.folder.node(number)?;
        let parent = self.folder()?;
        self.server.folder.hard_link(&node, &parent, name)?;
        self.server.attributes.change(number).changed = Some(self.time);
        self.touch(&parent);
        self.entry(&node, w)
    }

    pub(super) fn unlink(&mut self, r: &mut Reader<'_>, folder: bool) -> Result {
        let name = r.name()?;
        let parent = self.folder()?;
        let gone = self.server.folder.remove(&parent, name, folder)?;
        self.touch(&parent);
        self.forget_attributes(gone);
        Ok(())
    }

    pub(super) fn rename(&mut self, r: &mut Reader<'_>, with_flags: bool) -> Result {
        let to = r.u64()?;
        let flags = match with_flags {
            true => RenameFlags::from_bits_retain(r.u64()? as u32),
            false => RenameFlags::empty(),
        };
        // RENAME_WHITEOUT, which overlay file systems need, is not supported.
        if !(RenameFlags::NOREPLACE | RenameFlags::EXCHANGE).contains(flags) {
            return Err(Errno::INVAL);
        }
        let (old, new) = (r.name()?, r.name()?);
        let (from, to) = (self.folder()?, self.server.folder.node(to)?);
        let gone = self.server.folder.rename((&from, old), (&to, new), flags)?;
        self.touch(&from);
        self.touch(&to);
        self.forget_attributes(gone);
        Ok(())
    }

    /// Records the attributes of a new file. In a folder with set-group-ID it belongs to the folder's group.
    pub(super) fn created(&mut self, parent: Option<&Rc<Node>>, node: &Node, mode: u32) {
        let (uid, mut gid) = self.header.owner;
        let mut special = mode & SPECIAL;
        let above = parent.and_then(|parent| self.server.attributes.get(parent.number));
        if let Some(above) = above.filter(|above| above.special & SET_GROUP_ID != 0) {
            gid = above.gid;
            if node.kind == FileType::Directory {
                special |= SET_GROUP_ID;
            }
        }
        let owner = (uid, gid);
        self.server.attributes.create(node.number, owner, special, self.time);
        if let Some(parent) = parent {
            self.touch(parent);
        }
    }

    pub(super) fn touch(&mut self, node: &Node) {
        self.server.attributes.touch(node.number, self.time);
    }

    fn forget_attributes(&mut self, gone: Option<u64>) {
        gone.into_iter().for_each(|number| self.server.attributes.forget(number));
    }
}
