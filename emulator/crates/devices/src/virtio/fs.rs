//! A folder of the host in the guest: FUSE over virtio (virtio 1.2, section 5.11; messages: Linux
//! include/uapi/linux/fuse.h, version 7.38, and `FUSE_STATX` of 7.39).
//!
//! - No path leaves the folder: a name is one component, looked up in an open directory without
//!   following symbolic links, and there is no `..`. Links are resolved by the guest.
//! - What the guest sees does not depend on the host beyond names, contents, permission bits and
//!   times of files that the guest did not write: files are numbered in the order in which they are
//!   seen, folders are listed by name, owners are kept here ([`attributes`]), free space is a
//!   constant.
//! - Locks are not forwarded to the host: the guest's kernel keeps locks of both kinds (POSIX and `flock`) itself.
//! - Written data is on the host when the guest's `write` returns (no write-back cache). Data written through a mapping
//!   is there after `msync` or `munmap`, or when the guest's kernel writes it back.
//!
//! Not modelled: DAX, the notification queue, ACLs, and the time that work beyond the transfer of
//! the message takes (`copy_file_range` costs as much as a short message).

mod attributes;
mod folder;
mod handles;
mod node;
mod operations;
mod wire;

use std::path::Path;

pub use folder::FolderError;

use attributes::Attributes;
use folder::Folder;
use handles::Handles;
use rustix::io::Errno;
use wire::{Header, REPLY_HEADER, Reader, Writer, opcode};

use snapshot::{Archive, Snapshot, SnapshotError};

use super::{Backend, Request};

type Result<T = ()> = std::result::Result<T, Errno>;

/// Bytes of the tag in the configuration space.
const TAG: usize = 36;

/// A shared folder.
pub struct Fs {
    folder: Folder,
    attributes: Attributes,
    handles: Handles,
    tag: String,
    read_only: bool,
    /// Unix time at reset, in nanoseconds.
    epoch: u64,
    /// The last message was the first of a mount.
    mounts: bool,
}

/// Only possible while the guest has not looked into the folder: its state are open files of the host.
impl Snapshot for Fs {
    fn snapshot(&mut self, archive: &mut Archive<'_>) -> snapshot::Result {
        let Self { folder, attributes, handles, tag, read_only, epoch: _, mounts: _ } = self;
        if !(handles.is_empty() && attributes.is_empty() && folder.is_untouched()) {
            let what = "a machine that has used its shared folder cannot be saved".to_owned();
            return Err(SnapshotError::Unsaved(what));
        }
        archive.same("shared folder", tag)?;
        read_only.snapshot(archive)
    }
}

/// One request, while it is carried out.
struct Call<'a> {
    server: &'a mut Fs,
    header: Header,
    /// Current time, in nanoseconds since 1970.
    time: u64,
    /// Maximum number of bytes of the reply after its header.
    room: usize,
}

impl Fs {
    /// Shares the folder at `path` under a mount tag. `epoch_seconds` (Unix time) is when the
    /// run starts.
    pub fn new(
        path: &Path,
        tag: &str,
        read_only: bool,
        epoch_seconds: u64,
    ) -> std::result::Result<Self, FolderError> {
        Ok(Self {
            folder: Folder::open(path)?,
            attributes: Attributes::default(),
            handles: Handles::default(),
            tag: tag.chars().take(TAG).collect(),
            read_only,
            epoch: epoch_seconds.saturating_mul(1_000_000_000),
            mounts: false,
        })
    }

    /// Answers a message; some have no answer.
    fn answer(&mut self, message: &[u8], room: usize, nanos: u64) -> Option<Vec<u8>> {
        let mut reader = Reader::new(message);
        let header = reader.header().ok()?;
        self.mounts = header.opcode == opcode::INIT && self.folder.is_untouched();
        let mut writer = Writer::new();
        let time = self.epoch.saturating_add(nanos);
        let mut call = Call { server: self, header, time, room: room.saturating_sub(REPLY_HEADER) };
        if call.forgets(&mut reader) {
            return None;
        }
        let result = call.dispatch(&mut reader, &mut writer);
        Some(match result {
            Ok(()) if writer.len() + REPLY_HEADER <= room => writer.finish(header.unique),
            Ok(()) => Writer::refuse(header.unique, Errno::RANGE),
            Err(error) => Writer::refuse(header.unique, error),
        })
    }

    /// A session is over: the guest holds nothing any more.
    fn end_session(&mut self) {
        self.handles.clear();
        self.folder.forget_all();
    }
}

impl Backend for Fs {
    fn device_type(&self) -> u32 {
        26
    }

    /// Urgent messages, and all others.
    fn queues(&self) -> usize {
        2
    }

    fn config(&self) -> Vec<u8> {
        const REQUEST_QUEUES: u32 = 1;
        let mut config = vec![0; TAG];
        let length = self.tag.len().min(TAG);
        config[..length].copy_from_slice(&self.tag.as_bytes()[..length]);
        config.extend(REQUEST_QUEUES.to_le_bytes());
        config
    }

    fn serve(&mut self, request: Request<'_>) -> Option<Vec<u8>> {
        Some(self.answer(request.bytes, request.room, request.nanos).unwrap_or_default())
    }

    fn pauses(&mut self) -> bool {
        std::mem::take(&mut self.mounts)
    }

    fn reset(&mut self) {
        self.end_session();
    }
}

#[cfg(test)]
mod client;
#[cfg(test)]
mod tests;
