//! The bytes of a disk: a file, and what was written over it.

use std::collections::HashMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use snapshot::{Archive, Snapshot, SnapshotError};

/// What happens to the guest's writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskMode {
    /// The guest cannot write.
    ReadOnly,
    /// Writes go to the file.
    Writable,
    /// Writes are kept in memory until the run ends: the file stays as it is, and every run
    /// starts from the same bytes.
    CopyOnWrite,
}

/// An error of a disk image that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// The image cannot be opened.
    #[error("disk image {0}: {1}")]
    Open(PathBuf, io::Error),
    /// The image is a folder, a device or a pipe.
    #[error("disk image {0}: expected a regular file")]
    Kind(PathBuf),
    /// Another machine has the image, and one of the two writes.
    #[error(
        "disk image {0}: in use by another machine, which writes to it or must not have it changed"
    )]
    InUse(PathBuf),
    /// The image is in a format whose bytes are not those of the disk.
    #[error(
        "disk image {path}: format: expected the disk's own bytes (raw), found {format}: \
         `qemu-img convert -O raw {path} FILE` makes a file that can be used"
    )]
    Format {
        /// Path of the image.
        path: PathBuf,
        /// Name of the format that was found.
        format: &'static str,
    },
}

const BLOCK: u64 = 4096;
/// Bytes of a sector, in which disks are counted.
pub(super) const SECTOR: u64 = 512;

struct Block(Box<[u8; BLOCK as usize]>);

impl Default for Block {
    fn default() -> Self {
        Self(Box::new([0; BLOCK as usize]))
    }
}

impl Snapshot for Block {
    fn snapshot(&mut self, archive: &mut Archive<'_>) -> snapshot::Result {
        archive.bytes(&mut self.0[..])
    }
}

/// Names the format of an image that is not raw, by its first bytes.
fn foreign_format(start: &[u8]) -> Option<&'static str> {
    const FORMATS: [(usize, &[u8], &str); 11] = [
        (0, b"QFI\xfb", "qcow2"),
        (0, b"QED\0", "QED"),
        (0, b"KDMV", "VMDK"),
        (0, b"COWD", "VMDK"),
        (0, b"# Disk DescriptorFile", "VMDK (its description)"),
        (0x40, &[0x7f, 0x10, 0xda, 0xbe], "VDI"),
        (0x40, &[0xbe, 0xda, 0x10, 0x7f], "VDI"),
        (0, b"vhdxfile", "VHDX"),
        (0, b"conectix", "VHD"),
        (0, b"WithoutFreeSpace", "Parallels"),
        (0, b"WithouFreSpacExt", "Parallels"),
    ];
    FORMATS
        .iter()
        .find_map(|&(at, magic, name)| start.get(at..)?.starts_with(magic).then_some(name))
}

/// A file with a layer of written blocks over it.
pub(crate) struct Disk {
    file: File,
    mode: DiskMode,
    /// Bytes in whole sectors. A file that ends within one has zeros behind it.
    size: u64,
    written: HashMap<u64, Block>,
}

/// What was written stays with the machine; the image must be the one that it ran with.
impl Snapshot for Disk {
    fn snapshot(&mut self, archive: &mut Archive<'_>) -> snapshot::Result {
        let Self { file, mode, size: _, written } = self;
        let unsaved = |e: io::Error| SnapshotError::Unsaved(format!("disk image: {e}"));
        let metadata = file.metadata().map_err(unsaved)?;
        let changed = metadata.modified().map_err(unsaved)?;
        let changed = changed.duration_since(UNIX_EPOCH).unwrap_or_default();
        let image = format!("{mode:?}, {} bytes, of {:.9}", metadata.len(), changed.as_secs_f64());
        archive.same("disk image", &image)?;
        written.snapshot(archive)
    }
}

impl Disk {
    /// Opens an image.
    pub(crate) fn open(path: &Path, mode: DiskMode) -> Result<Self, DiskError> {
        let failed = |error| DiskError::Open(path.to_owned(), error);
        // Looked at before it is opened: opening a pipe would wait for its other end.
        if !path.metadata().map_err(failed)?.is_file() {
            return Err(DiskError::Kind(path.to_owned()));
        }
        let writable = mode == DiskMode::Writable;
        let file = OpenOptions::new().read(true).write(writable).open(path).map_err(failed)?;
        // Two writers would damage it, and a reader beside a writer sees neither state. Not every file system has locks.
        let locked = match writable {
            true => file.try_lock(),
            false => file.try_lock_shared(),
        };
        if let Err(TryLockError::WouldBlock) = locked {
            return Err(DiskError::InUse(path.to_owned()));
        }
        let size = file.metadata().map_err(failed)?.len();
        let size = size.next_multiple_of(SECTOR);
        let mut start = [0; 80];
        let read = file.read_at(&mut start, 0).map_err(failed)?;
        if let Some(format) = foreign_format(&start[..read]) {
            let path = path.to_owned();
            return Err(DiskError::Format { path, format });
        }
        if let Some(packing) = crate::packing(&start[..read]) {
            tracing::warn!(
                "disk image {}: begins as {packing}: the guest sees it as it is",
                path.display()
            );
        }
        Ok(Self { file, mode, size, written: HashMap::new() })
    }

    /// Size in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// True if writes fail.
    pub(crate) fn read_only(&self) -> bool {
        self.mode == DiskMode::ReadOnly
    }

    /// Fills `data` from byte `at`. `None` if the host cannot read the file there.
    pub(crate) fn read(&self, at: u64, data: &mut [u8]) -> Option<()> {
        self.read_file(at, data)?;
        if self.written.is_empty() {
            return Some(());
        }
        for (block, within, piece) in pieces(at, data.len()) {
            if let Some(bytes) = self.written.get(&block) {
                let length = piece.len();
                data[piece].copy_from_slice(&bytes.0[within..within + length]);
            }
        }
        Some(())
    }

    /// Writes `data` at byte `at`. `None` if the disk is read-only or the host cannot write.
    pub(crate) fn write(&mut self, at: u64, data: &[u8]) -> Option<()> {
        match self.mode {
            DiskMode::ReadOnly => None,
            DiskMode::Writable => self.file.write_all_at(data, at).ok(),
            DiskMode::CopyOnWrite => {
                for (block, within, piece) in pieces(at, data.len()) {
                    let length = piece.len();
                    let bytes = self.block_for_writing(block)?;
                    bytes[within..within + length].copy_from_slice(&data[piece]);
                }
                Some(())
            }
        }
    }

    /// Makes what was written durable.
    pub(crate) fn flush(&mut self) -> Option<()> {
        match self.mode {
            DiskMode::Writable => self.file.sync_data().ok(),
            DiskMode::ReadOnly | DiskMode::CopyOnWrite => Some(()),
        }
    }

    /// Fills `data` from the file, and with zeros behind it in the last sector.
    fn read_file(&self, at: u64, data: &mut [u8]) -> Option<()> {
        let mut done = 0;
        while done < data.len() {
            match self.file.read_at(&mut data[done..], at + done as u64) {
                Ok(0) if at + done as u64 + SECTOR <= self.size => return None,
                Ok(0) => {
                    data[done..].fill(0);
                    break;
                }
                Ok(read) => done += read,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
        Some(())
    }

    fn block_for_writing(&mut self, block: u64) -> Option<&mut [u8]> {
        if !self.written.contains_key(&block) {
            let mut bytes = Block::default();
            let at = block * BLOCK;
            let length = BLOCK.min(self.size.saturating_sub(at)) as usize;
            self.read_file(at, &mut bytes.0[..length])?;
            self.written.insert(block, bytes);
        }
        self.written.get_mut(&block).map(|block| &mut block.0[..])
    }
}

/// Splits a byte range at block borders: block number, offset in the block, range in the data.
fn pieces(at: u64, length: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == length {
            return None;
        }
        let (block, within) = ((at + done as u64) / BLOCK, ((at + done as u64) % BLOCK) as usize);
        let size = (BLOCK as usize - within).min(length - done);
        done += size;
        Some((block, within, done - size..done))
    })
}
