//! A folder of the host in the guest: 9P2000.L over virtio (virtio 1.2, section 5.15; protocol:
//! Linux Documentation/filesystems/9p.rst and diod's protocol.md).
//!
//! - No path leaves the folder: a name is one component, looked up in an open directory without
//!   following symbolic links, and `..` goes by what was walked, never by the host. Links are
//!   resolved by the guest.
//! - What the guest sees does not depend on the host beyond names, contents and permission bits:
//!   files are numbered in the order in which they are seen, folders are listed by name, owners
//!   and times are kept here ([`attributes`]), free space is a constant.

mod attributes;
mod fids;
mod folder;
mod node;
mod operations;
mod wire;

use std::path::Path;

pub use folder::FolderError;

use attributes::Attributes;
use fids::Fids;
use folder::Folder;
use rustix::io::Errno;
use wire::{Reader, Writer, kind};

use snapshot::{Archive, Snapshot, SnapshotError};

use super::{Backend, Request};

type Result<T = ()> = std::result::Result<T, Errno>;

/// Linux virtio transport's own limit, rounded up.
const MESSAGE_MAX: u32 = 512 << 10;
const MESSAGE_MIN: u32 = 4096;
/// Size, type and tag.
const HEADER: usize = 7;

/// A shared folder.
pub struct P9 {
    folder: Folder,
    attributes: Attributes,
    fids: Fids,
    tag: String,
    read_only: bool,
    /// Unix time at reset, in nanoseconds.
    epoch: u64,
    message_max: u32,
    /// The last message was the first of a mount.
    mounts: bool,
}

/// As long as the guest has not looked into the folder: what it holds of it are the host's files.
impl Snapshot for P9 {
    fn snapshot(&mut self, archive: &mut Archive<'_>) -> snapshot::Result {
        let Self {
            folder,
            attributes,
            fids,
            tag,
            read_only,
            epoch: _,
            message_max,
            mounts: _,
        } = self;
        if !(fids.is_empty() && attributes.is_empty() && folder.is_untouched()) {
            let what = "a machine that has used its shared folder cannot be saved".to_owned();
            return Err(SnapshotError::Unsaved(what));
        }
        archive.same("shared folder", tag)?;
        read_only.snapshot(archive)?;
        message_max.snapshot(archive)?;
        archive.check((MESSAGE_MIN..=MESSAGE_MAX).contains(message_max), || {
            format!("9P messages: found {message_max} bytes")
        })
    }
}

/// One request, while it is carried out.
struct Call<'a> {
    server: &'a mut P9,
    /// Current time, in nanoseconds since 1970.
    time: u64,
    /// Most bytes of data that the reply can carry.
    room: usize,
}

impl P9 {
    /// Shares the folder at `path` under a mount tag. `epoch_seconds` (Unix time) is when the
    /// run starts.
    pub fn new(
        path: &Path,
        tag: &str,
        read_only: bool,
        epoch_seconds: u64,
    ) -> std::result::Result<Self, FolderError> {
        let epoch = epoch_seconds.saturating_mul(1_000_000_000);
        Ok(Self {
            folder: Folder::open(path)?,
            attributes: Attributes::new(epoch),
            fids: Fids::default(),
            tag: tag.chars().take(255).collect(),
            read_only,
            epoch,
            message_max: MESSAGE_MAX,
            mounts: false,
        })
    }

    /// Answers a message.
    fn answer(&mut self, message: &[u8], room: usize, nanos: u64) -> Option<Vec<u8>> {
        let mut reader = Reader::new(message);
        let (size, kind, tag) = (reader.u32().ok()?, reader.u8().ok()?, reader.u16().ok()?);
        self.mounts = kind == kind::VERSION && self.folder.is_untouched();
        let limit = room.min(self.message_max as usize);
        let time = self.epoch.saturating_add(nanos);
        let mut writer = Writer::new();
        let result = match message.get(HEADER..size as usize) {
            Some(body) => {
                // Replies with data have a 4-byte count after the header.
                let room = limit.saturating_sub(HEADER + 4);
                let mut call = Call {
                    server: self,
                    time,
                    room,
                };
                call.dispatch(kind, &mut Reader::new(body), &mut writer)
            }
            None => Err(Errno::INVAL),
        };
        let refuse = |error: Errno| {
            let mut writer = Writer::new();
            writer.u32(error.raw_os_error() as u32);
            writer.finish(kind::RLERROR, tag)
        };
        Some(
            match result.map(|()| writer.finish(kind.wrapping_add(1), tag)) {
                Ok(reply) if reply.len() <= room => reply,
                Ok(_) => refuse(Errno::MSGSIZE),
                Err(error) => refuse(error),
            },
        )
    }
}

impl Backend for P9 {
    fn device_type(&self) -> u32 {
        9
    }

    fn features(&self) -> u64 {
        const MOUNT_TAG: u64 = 1;
        MOUNT_TAG
    }

    fn queues(&self) -> usize {
        1
    }

    fn config(&self) -> Vec<u8> {
        [&(self.tag.len() as u16).to_le_bytes(), self.tag.as_bytes()].concat()
    }

    /// A message that has not even a header is answered with nothing.
    fn serve(&mut self, request: Request<'_>) -> Option<Vec<u8>> {
        Some(
            self.answer(request.bytes, request.room, request.nanos)
                .unwrap_or_default(),
        )
    }

    fn pauses(&mut self) -> bool {
        std::mem::take(&mut self.mounts)
    }

    fn reset(&mut self) {
        self.fids = Fids::default();
        self.message_max = MESSAGE_MAX;
    }
}

#[cfg(test)]
mod client;
#[cfg(test)]
mod tests;
