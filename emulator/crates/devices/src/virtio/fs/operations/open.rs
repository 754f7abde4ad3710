//! Opening files and folders, and listing the latter.

use std::rc::Rc;

use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;

use crate::virtio::fs::node::{Entry, Node, Open};
use crate::virtio::fs::wire::{Reader, Writer};
use crate::virtio::fs::{Call, Result};

/// Set in a request to open: set-user-ID bits go when the file is emptied.
const KILL_SUIDGID: u32 = 1;
/// Set in the reply: what the guest has cached of the file is still good.
const KEEP_CACHE: u32 = 1 << 1;

impl Call<'_> {
    pub(super) fn open(&mut self, r: &mut Reader<'_>, w: &mut Writer) -> Result {
        let (flags, how) = (r.u32()?, r.u32()?);
        let flags = open_flags(flags);
        let truncates = flags.contains(OFlags::TRUNC);
        if self.server.read_only && flags.intersects(OFlags::RWMODE | OFlags::TRUNC) {
            return Err(Errno::ROFS);
        }
        let node = self.node()?;
        if node.kind == FileType::Directory {
            return Err(Errno::ISDIR);
        }
        self.refuse_device(&node)?;
        // Before it is truncated: was it the host that changed it last?
        self.guest_stat(&node)?;
        let open = self.server.folder.open_node(&node, flags)?;
        if truncates {
            self.touch(&node);
            if how & KILL_SUIDGID != 0 {
                self.drop_set_id(&node);
            }
        }
        self.opened(node, open, w)
    }

    /// Creates a file and opens it.
    pub(super) fn create(&mut self, r: &mut Reader<'_>, w: &mut Writer) -> Result {
        const EXCLUSIVE: u32 = 0o200;
        let (flags, mode, _umask, _how) = (r.u32()?, r.u32()?, r.u32()?, r.u32()?);
        let name = r.name()?;
        let parent = self.folder()?;
        // Opened before its mode is set: that may forbid what the one who creates it may do.
        let (node, new) = match self.server.folder.create(&parent, name, 0o600) {
            Ok(node) => (node, true),
            Err(Errno::EXIST) if flags & EXCLUSIVE == 0 => {
                let node = self.server.folder.find(&parent, name)?;
                self.refuse_device(&node)?;
                (node, false)
            }
            Err(error) => return Err(error),
        };
        if new {
            self.created(Some(&parent), &node, mode);
        }
        let flags = open_flags(flags);
        match self.server.folder.open_node(&node, flags)? {
            Open::Folder(_) => Err(Errno::ISDIR),
            open if new => {
                node.set_permissions(mode)?;
                self.entry(&node, w)?;
                self.opened(node, open, w)
            }
            open => {
                if flags.contains(OFlags::TRUNC) {
                    self.touch(&node);
                }
                self.entry(&node, w)?;
                self.opened(node, open, w)
            }
        }
    }

    /// Creates a file without a name (`O_TMPFILE`), which a link can give one.
    pub(super) fn tmpfile(&mut self, r: &mut Reader<'_>, w: &mut Writer) -> Result {
        let (flags, mode) = (r.u32()?, r.u32()?);
        let parent = self.folder()?;
        let node = self.server.folder.create_unnamed(&parent)?;
        self.created(None, &node, mode);
        let open = self.server.folder.open_node(&node, open_flags(flags))?;
        node.set_permissions(mode)?;
        self.entry(&node, w)?;
        self.opened(node, open, w)
    }

    pub(super) fn opendir(&mut self, w: &mut Writer) -> Result {
        let node = self.folder()?;
        self.opened(node, Open::Folder(Vec::new()), w)
    }

    fn opened(&mut self, node: Rc<Node>, open: Open, w: &mut Writer) -> Result {
        let stale = self.server.attributes.change(node.number).take_stale();
        w.u64(self.server.handles.insert(node, open)?);
        w.u32(if stale { 0 } else { KEEP_CACHE });
        w.u32(0);
        Ok(())
    }

    /// Pipes, sockets and devices are the guest's kernel's: it never asks to open them here.
    fn refuse_device(&self, node: &Node) -> Result {
        let attribute = self.server.attributes.get(node.number);
        match attribute.and_then(|attribute| attribute.device) {
            Some(_) => Err(Errno::NXIO),
            None => Ok(()),
        }
    }

    /// Entries from a position on: as many as fit, each with the position after it.
    pub(super) fn readdir(&mut self, r: &mut Reader<'_>, w: &mut Writer) -> Result {
        let (handle, offset, size) = (r.u64()?, r.u64()?, r.u32()?);
        let server = &mut *self.server;
        if offset == 0 {
            // A new pass sees what changed since the last.
            let (node, _) = server.handles.folder(handle)?;
            let entries = server.folder.list(node)?;
            server.handles.list(handle, entries)?;
        }
        let (_, entries) = server.handles.folder(handle)?;
        let room = self.room.min(size as usize);
        let skip = usize::try_from(offset).unwrap_or(usize::MAX);
        for (n, entry) in entries.iter().enumerate().skip(skip) {
            const FIXED: usize = 24;
            let length = (FIXED + entry.name.len()).next_multiple_of(8);
            if w.len() + length > room {
                break;
            }
            let attribute = server.attributes.get(entry.number);
            let device = attribute.and_then(|attribute| attribute.device);
            w.u64(entry.number);
            w.u64(n as u64 + 1);
            w.u32(entry.name.len() as u32);
            w.u32(entry_kind(entry, device));
            w.bytes(&entry.name);
            w.bytes(&[0; 8][..length - FIXED - entry.name.len()]);
        }
        Ok(())
    }
}

/// The kind of file as getdents(2) has it.
fn entry_kind(entry: &Entry, device: Option<(u32, u32)>) -> u32 {
    device.map_or(entry.kind.as_raw_mode(), |(kind, _)| kind) >> 12
}

/// The flags of an open that matter to the host: access mode and truncation. Linux gives the
/// offset of an append itself.
fn open_flags(flags: u32) -> OFlags {
    const ACCESS: u32 = 3;
    const WRITE_ONLY: u32 = 1;
    const READ_WRITE: u32 = 2;
    const TRUNCATE: u32 = 0o1000;
    let access = match flags & ACCESS {
        WRITE_ONLY => OFlags::WRONLY,
        READ_WRITE => OFlags::RDWR,
        _ => OFlags::RDONLY,
    };
    if flags & TRUNCATE != 0 { access | OFlags::TRUNC } else { access }
}
