//! Messages that change nothing (opening can truncate, which is checked there).

use std::os::unix::fs::FileExt;

use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;

use crate::virtio::p9::node::Open;
use crate::virtio::p9::wire::{Qid, Reader, Writer};
use crate::virtio::p9::{Call, Result};

const BLOCK: u64 = 4096;
const SECOND: u64 = 1_000_000_000;

/// What all files of a kind show instead of what the host's file system makes of it.
const FOLDER_SIZE: u64 = 4096;
/// "Unknown": some tools take another number for the number of subfolders.
const FOLDER_LINKS: u64 = 1;

impl Call<'_> {
    /// A file system of 64 GiB that never fills.
    pub(super) fn statfs(&mut self, r: &mut Reader<'_>, w: &mut Writer) -> Result {
        const MAGIC: u32 = 0x0102_1997;
        const BLOCKS: u64 = (64 << 30) / BLOCK;
        const FILES: u64 = 1 << 20;
        let fid = r.u32()?;
        self.server.fids.get(fid)?;
        w.u32(MAGIC);
        w.u32(BLOCK as u32);
        [BLOCKS, BLOCKS / 2, BLOCKS / 2, FILES, FILES / 2, 0]
            .into_iter()
            .for_each(|n| w.u64(n));
        w.u32(255);
        Ok(())
    }

    #[allow(clippy::unnecessary_cast, reason = "some hosts count links in 32 bits")]
    pub(super) fn getattr(&mut self, r: &mut Reader<'_>, w: &mut Writer) -> Result {
        /// Mode to block count: all but birth time, generation and data version.
        const BASIC: u64 = 0x7ff;
        let (fid, mask) = (r.u32()?, r.u64()?);
        let node = self.server.fids.node(fid)?;
        let stat = node.stat()?;
        let attribute = self.server.attributes.get(node.qid.path);
        let (size, links) = match node.kind {
            FileType::Directory => (FOLDER_SIZE, FOLDER_LINKS),
            _ => (stat.st_size.max(0) as u64, stat.st_nlink as u64),
        };
        w.u64(mask & BASIC);
        w.qid(node.qid);
        w.u32(stat.st_mode & !0o7000 | attribute.special);
        w.u32(attribute.uid);
        w.u32(attribute.gid);
        w.u64(links);
        w.u64(0); // device number
        w.u64(size);
        w.u64(BLOCK);
        w.u64(size.div_ceil(512));
        for time in [attribute.accessed, attribute.modified, attribute.changed, 0] {
            w.u64(time / SECOND);
            w.u64(time % SECOND);
        }
        w.u64(0); // generation
        w.u64(0); // data version
        Ok(())
    }

    pub(super) fn readlink(&mut self, r: &mut Reader<'_>, w: &mut Writer) -> Result {
        let fid = r.u32()?;
        w.string(&self.server.fids.node(fid)?.read_link()?);
        Ok(())
    }

    pub(super) fn lopen(&mut self, r: &mut Reader<'_>, w: &mut Writer) -> Result {
        let (fid, flags) = (r.u32()?, r.u32()?);
        let flags = open_flags(flags);
        if self.server.read_only && flags.intersects(OFlags::RWMODE | OFlags::TRUNC) {
            return Err(Errno::ROFS);
        }
        let node = self.server.fids.node(fid)?;
        if node.kind == FileType::Directory && flags.intersects(OFlags::RWMODE) {
            return Err(Errno::ISDIR);
        }
        if self.server.fids.get(fid)?.open.is_some() {
            return Err(Errno::BADF);
        }
        let open = self.server.folder.open_node(&node, flags)?;
        if flags.contains(OFlags::TRUNC) {
            self.server.attributes.touch(node.qid.path, self.time);
        }
        self.server.fids.get(fid)?.open = Some(open);
        opened(node.qid, w);
        Ok(())
    }

    pub(super) fn read(&mut self, r: &mut Reader<'_>, w: &mut Writer) -> Result {
        let (fid, offset, count) = (r.u32()?, r.u64()?, r.u32()?);
        let Some(Open::File { file, .. }) = &self.server.fids.get(fid)?.open else {
            return Err(Errno::BADF);
        };
        // An offset beyond what the host can count is beyond the end of any file.
        let beyond = i64::try_from(offset).is_err();
        let mut data = vec![
            0;
            if beyond {
                0
            } else {
                self.room.min(count as usize)
            }
        ];
        let mut done = 0;
        while done < data.len() {
            match file.read_at(&mut data[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(more) => done += more,
                Err(error) => match Errno::from_io_error(&error) {
                    Some(Errno::INTR) => {}
                    error => return Err(error.unwrap_or(Errno::IO)),
                },
            }
        }
        w.data(&data[..done]);
        Ok(())
    }

    /// Entries from a position on: as many as fit, each with the position after it.
    pub(super) fn readdir(&mut self, r: &mut Reader<'_>, w: &mut Writer) -> Result {
        let (number, offset, count) = (r.u32()?, r.u64()?, r.u32()?);
        let node = self.server.fids.node(number)?;
        let fid = self.server.fids.get(number)?;
        if !matches!(fid.open, Some(Open::Folder(_))) {
            return Err(Errno::BADF);
        }
        if offset == 0 {
            // A new pass sees what changed since the last.
            let entries = self.server.folder.list(&node)?;
            self.server.fids.get(number)?.open = Some(Open::Folder(entries));
        }
        let Some(Open::Folder(entries)) = &self.server.fids.get(number)?.open else {
            return Err(Errno::BADF);
        };
        let room = self.room.min(count as usize);
        let skip = usize::try_from(offset).unwrap_or(usize::MAX);
        let mut list = Vec::new();
        for (n, entry) in entries.iter().enumerate().skip(skip) {
            let mut item = Writer::new();
            item.qid(entry.qid);
            item.u64(n as u64 + 1);
            item.u8(entry.kind);
            item.string(&entry.name);
            let item = item.body();
            if list.len() + item.len() > room {
                break;
            }
            list.extend(item);
        }
        w.data(&list);
        Ok(())
    }
}

/// Reply to an open; 0 leaves the size of reads and writes to the guest.
pub(super) fn opened(qid: Qid, w: &mut Writer) {
    w.qid(qid);
    w.u32(0);
}

/// The flags of an open that matter to the host: access mode and truncation. Linux gives the
/// offset of an append itself.
pub(super) fn open_flags(flags: u32) -> OFlags {
    const ACCESS: u32 = 3;
    const WRITE_ONLY: u32 = 1;
    const READ_WRITE: u32 = 2;
    const TRUNCATE: u32 = 0o1000;
    let access = match flags & ACCESS {
        WRITE_ONLY => OFlags::WRONLY,
        READ_WRITE => OFlags::RDWR,
        _ => OFlags::RDONLY,
    };
    if flags & TRUNCATE != 0 {
        access | OFlags::TRUNC
    } else {
        access
    }
}
