//! Attributes of files, read and set by the guest: kind, permissions, owner, size, times.

use std::rc::Rc;

use rustix::fs::{FileType, OFlags, Stat};
use rustix::io::Errno;

use crate::virtio::fs::attributes::host_time;
use crate::virtio::fs::node::{Node, Open};
use crate::virtio::fs::wire::{Reader, Writer};
use crate::virtio::fs::{Call, Result};

const BLOCK: u64 = 4096;
const SECOND: u64 = 1_000_000_000;

/// Size of every folder for the guest, since the host's depends on its file system.
const FOLDER_SIZE: u64 = 4096;
/// Link count of every folder for the guest. 1 means unknown; from other counts some tools derive the number of subfolders.
const FOLDER_LINKS: u32 = 1;

/// How long the guest may cache names and attributes, in simulated seconds. It sees changes on the host so much later.
const VALID_SECONDS: u64 = 1;

const SPECIAL: u32 = 0o7000;

/// Bits of `SETATTR` that say which of its fields are valid (`FATTR_*`).
mod valid {
    pub(crate) const MODE: u32 = 1;
    pub(crate) const UID: u32 = 1 << 1;
    pub(crate) const GID: u32 = 1 << 2;
    pub(crate) const SIZE: u32 = 1 << 3;
    pub(crate) const ACCESSED: u32 = 1 << 4;
    pub(crate) const MODIFIED: u32 = 1 << 5;
    pub(crate) const HANDLE: u32 = 1 << 6;
    /// The time is now, instead of a given one.
    pub(crate) const ACCESSED_NOW: u32 = 1 << 7;
    pub(crate) const MODIFIED_NOW: u32 = 1 << 8;
    pub(crate) const KILL_SUIDGID: u32 = 1 << 11;
}

/// What the guest sees of a file.
pub(super) struct GuestStat {
    number: u64,
    mode: u32,
    links: u32,
    owner: (u32, u32),
    device: u32,
    size: u64,
    accessed: u64,
    modified: u64,
    changed: u64,
    born: Option<u64>,
}

impl Call<'_> {
    pub(super) fn guest_stat(&mut self, node: &Node) -> Result<GuestStat> {
        let stat = node.stat()?;
        let folder = node.kind == FileType::Directory;
        let attribute = self.server.attributes.change(node.number);
        attribute.follow(&stat, folder);
        let host = host_time(&stat);
        let (mut mode, mut size, mut device) =
            (stat.st_mode & !SPECIAL, stat.st_size.max(0) as u64, device_of(&stat));
        if let Some((kind, number)) = attribute.device {
            (mode, size, device) = (mode & 0o777 | kind, 0, number);
        }
        #[allow(clippy::unnecessary_cast, reason = "some hosts count links in 64 bits")]
        let links = stat.st_nlink as u32;
        let removed = links == 0;
        Ok(GuestStat {
            number: node.number,
            mode: mode | attribute.special,
            links: if folder && !removed { FOLDER_LINKS } else { links },
            owner: (attribute.uid, attribute.gid),
            device,
            size: if folder { FOLDER_SIZE } else { size },
            accessed: attribute.accessed.unwrap_or(host),
            modified: attribute.modified.unwrap_or(host),
            changed: attribute.changed.unwrap_or(host),
            born: attribute.born,
        })
    }

    /// Writes a file's entry to the reply, and adds one to its lookup count.
    pub(super) fn entry(&mut self, node: &Rc<Node>, w: &mut Writer) -> Result {
        let shown = self.guest_stat(node)?;
        w.u64(node.number);
        w.u64(0); // generation: no number is used twice
        w.u64(VALID_SECONDS);
        w.u64(VALID_SECONDS);
        w.u64(0); // and no nanoseconds of both
        shown.write(w);
        self.server.folder.add_lookup(node);
        Ok(())
    }

    pub(super) fn getattr(&mut self, w: &mut Writer) -> Result {
        let node = self.node()?;
        self.attributes_of(&node, w)
    }

    fn attributes_of(&mut self, node: &Node, w: &mut Writer) -> Result {
        let shown = self.guest_stat(node)?;
        w.u64(VALID_SECONDS);
        w.u64(0);
        shown.write(w);
        Ok(())
    }

    pub(super) fn statx(&mut self, w: &mut Writer) -> Result {
        /// All basic fields.
        const BASIC: u32 = 0x7ff;
        const BORN: u32 = 0x800;
        let node = self.node()?;
        let shown = self.guest_stat(&node)?;
        w.u64(VALID_SECONDS);
        [0; 6].into_iter().for_each(|n| w.u32(n));
        w.u32(BASIC | shown.born.map_or(0, |_| BORN));
        w.u32(BLOCK as u32);
        w.u64(0); // attributes
        w.u32(shown.links);
        w.u32(shown.owner.0);
        w.u32(shown.owner.1);
        w.u16(shown.mode as u16);
        w.u16(0);
        w.u64(shown.number);
        w.u64(shown.size);
        w.u64(shown.size.div_ceil(512));
        w.u64(0); // attributes that could be
        let born = shown.born.unwrap_or(0);
        for time in [shown.accessed, born, shown.changed, shown.modified] {
            w.u64(time / SECOND);
            w.u64(time % SECOND);
        }
        // Linux's 32-bit form of a device number.
        w.u32(shown.device >> 8 & 0xfff);
        w.u32(shown.device & 0xff | shown.device >> 12 & 0xfff00);
        [0; 30].into_iter().for_each(|n| w.u32(n));
        Ok(())
    }

    pub(super) fn setattr(&mut self, r: &mut Reader<'_>, w: &mut Writer) -> Result {
        let (which, _, handle, size, _owner) = (r.u32()?, r.u32()?, r.u64()?, r.u64()?, r.u64()?);
        let seconds = [r.u64()?, r.u64()?, r.u64()?];
        let nanos = [r.u32()?, r.u32()?, r.u32()?];
        let (mode, _, uid, gid) = (r.u32()?, r.u32()?, r.u32()?, r.u32()?);
        let set = |bit| which & bit != 0;
        let time = |n: usize| seconds[n].saturating_mul(SECOND).saturating_add(nanos[n].into());
        let node = self.node()?;
        if set(valid::MODE) {
            node.set_permissions(mode)?;
        }
        if set(valid::SIZE) {
            self.truncate(set(valid::HANDLE).then_some(handle), &node, size)?;
        }
        let given = |bit, now, n| (set(bit) && !set(now)).then(|| time(n));
        let accessed = given(valid::ACCESSED, valid::ACCESSED_NOW, 0);
        let modified = given(valid::MODIFIED, valid::MODIFIED_NOW, 1);
        let attribute = self.server.attributes.change(node.number);
        if accessed.is_some() || modified.is_some() {
            // Whoever unpacks an archive in the guest wants its times on the host, too. The guest has them even if the
            // host's user may not set them.
            let _ = node.set_times(accessed, modified);
            attribute.set_written(self.time);
        }
        attribute.changed = Some(self.time);
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
            attribute.accessed = accessed.or(Some(self.time));
        }
        if set(valid::MODIFIED) {
            attribute.modified = modified.or(Some(self.time));
        } else if set(valid::SIZE) {
            attribute.modified = Some(self.time);
        }
        if set(valid::KILL_SUIDGID) {
            self.drop_set_id(&node);
        }
        self.attributes_of(&node, w)
    }

    /// Through the handle's own open file if there is one: its mode may forbid to open it again.
    fn truncate(&mut self, handle: Option<u64>, node: &Node, size: u64) -> Result {
        let attribute = self.server.attributes.change(node.number);
        attribute.set_written(self.time);
        if let Some(handle) = handle
            && let Ok((_, file)) = self.server.handles.file(handle)
            && rustix::fs::ftruncate(file, size).is_ok()
        {
            return Ok(());
        }
        match self.server.folder.open_node(node, OFlags::WRONLY)? {
            Open::File { file, .. } => rustix::fs::ftruncate(&file, size),
            Open::Folder(_) => Err(Errno::ISDIR),
        }
    }

    /// Somebody without the right to keep them writes to a file with set-user-ID or set-group-ID.
    pub(super) fn drop_set_id(&mut self, node: &Node) {
        if let Some(attribute) = self.server.attributes.get(node.number)
            && attribute.special & 0o6000 != 0
            && let Ok(stat) = node.stat()
        {
            let attribute = self.server.attributes.change(node.number);
            attribute.drop_set_id(stat.st_mode);
        }
    }

    /// A file system of 64 GiB that never fills.
    pub(super) fn statfs(&mut self, w: &mut Writer) -> Result {
        const BLOCKS: u64 = (64 << 30) / BLOCK;
        const FILES: u64 = 1 << 20;
        for n in [BLOCKS, BLOCKS / 2, BLOCKS / 2, FILES, FILES / 2] {
            w.u64(n);
        }
        w.u32(BLOCK as u32);
        w.u32(255); // longest name
        w.u32(BLOCK as u32);
        [0; 7].into_iter().for_each(|n| w.u32(n));
        Ok(())
    }
}

impl GuestStat {
    /// A `fuse_attr`.
    fn write(&self, w: &mut Writer) {
        w.u64(self.number);
        w.u64(self.size);
        w.u64(self.size.div_ceil(512));
        let times = [self.accessed, self.modified, self.changed];
        times.iter().for_each(|time| w.u64(time / SECOND));
        times.iter().for_each(|time| w.u32((time % SECOND) as u32));
        w.u32(self.mode);
        w.u32(self.links);
        w.u32(self.owner.0);
        w.u32(self.owner.1);
        w.u32(self.device);
        w.u32(BLOCK as u32);
        w.u32(0); // flags
    }
}

/// The device number of a host's device file, as Linux puts it into 32 bits.
#[allow(clippy::unnecessary_cast, reason = "not all hosts have the same width")]
fn device_of(stat: &Stat) -> u32 {
    let (major, minor) = (rustix::fs::major(stat.st_rdev), rustix::fs::minor(stat.st_rdev));
    minor & 0xff | (major & 0xfff) << 8 | (minor & 0xfff00) << 12
}
