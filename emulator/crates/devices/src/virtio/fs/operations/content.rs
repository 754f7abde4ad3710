//! The contents of files.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::fs::{FallocateFlags, SeekFrom};
use rustix::io::Errno;

use crate::virtio::fs::wire::{Reader, Writer};
use crate::virtio::fs::{Call, Result};

impl Call<'_> {
    pub(super) fn read(&mut self, r: &mut Reader<'_>, w: &mut Writer) -> Result {
        let (handle, offset, size) = (r.u64()?, r.u64()?, r.u32()?);
        let (_, file) = self.server.handles.file(handle)?;
        // An offset beyond what the host can count is beyond the end of any file.
        if i64::try_from(offset).is_err() {
            return Ok(());
        }
        w.fill(self.room.min(size as usize), |data| {
            let mut done = 0;
            while done < data.len() {
                match again(|| file.read_at(&mut data[done..], offset + done as u64))? {
                    0 => break,
                    more => done += more,
                }
            }
            Ok(done)
        })
    }

    /// Writes as much as finds room: an error is one if nothing was written.
    pub(super) fn write(&mut self, r: &mut Reader<'_>, w: &mut Writer) -> Result {
        const KILL_SUIDGID: u32 = 1 << 2;
        let (handle, offset, size, how) = (r.u64()?, r.u64()?, r.u32()?, r.u32()?);
        let (_lock_owner, _flags, _) = (r.u64()?, r.u32()?, r.u32()?);
        let data = r.bytes(size as usize)?;
        let (node, file) = self.server.handles.file(handle)?;
        let number = node.number;
        let done = write_at(file, data, offset);
        // Even where it failed the host's file may have changed.
        self.server.attributes.touch(number, self.time);
        if how & KILL_SUIDGID != 0
            && let Ok(node) = self.server.folder.node(number)
        {
            self.drop_set_id(&node);
        }
        w.u32(done? as u32);
        w.u32(0);
        Ok(())
    }

    pub(super) fn fsync(&mut self, r: &mut Reader<'_>) -> Result {
        let handle = r.u64()?;
        let (_, file) = self.server.handles.file(handle)?;
        rustix::fs::fdatasync(file)
    }

    /// What the host's file system can do of it. Linux's own driver asks for allocation, holes and zeros.
    pub(super) fn fallocate(&mut self, r: &mut Reader<'_>) -> Result {
        let (handle, offset, length, mode) = (r.u64()?, r.u64()?, r.u64()?, r.u32()?);
        let (node, file) = self.server.handles.file(handle)?;
        let (number, mode) = (node.number, FallocateFlags::from_bits_retain(mode));
        rustix::fs::fallocate(file, mode, offset, length)?;
        self.server.attributes.touch(number, self.time);
        Ok(())
    }

    /// Finds data and holes, as the host's file system has them.
    pub(super) fn lseek(&mut self, r: &mut Reader<'_>, w: &mut Writer) -> Result {
        const DATA: u32 = 3;
        const HOLE: u32 = 4;
        let (handle, offset, whence) = (r.u64()?, r.u64()?, r.u32()?);
        let (_, file) = self.server.handles.file(handle)?;
        let offset = i64::try_from(offset).map_err(|_| Errno::NXIO)?;
        let from = match whence {
            DATA => SeekFrom::Data(offset as _),
            HOLE => SeekFrom::Hole(offset as _),
            _ => return Err(Errno::INVAL),
        };
        w.u64(rustix::fs::seek(file, from)?);
        Ok(())
    }

    /// Copies on the host. If the host cannot, the error makes the guest's kernel copy by reading and writing.
    pub(super) fn copy_file_range(&mut self, r: &mut Reader<'_>, w: &mut Writer) -> Result {
        /// Maximum number of bytes per call, so that the simulation is not blocked for long; the guest calls again.
        const MOST: u64 = 64 << 20;
        let (from, mut at) = (r.u64()?, r.u64()?);
        let (_node, to, mut to_at) = (r.u64()?, r.u64()?, r.u64()?);
        let (length, _flags) = (r.u64()?.min(MOST), r.u64()?);
        let (_, source) = self.server.handles.file(from)?;
        let (node, target) = self.server.handles.file(to)?;
        let number = node.number;
        let mut done = 0;
        while done < length {
            let (at, to_at) = (Some(&mut at), Some(&mut to_at));
            let rest = (length - done) as usize;
            match rustix::fs::copy_file_range(source, at, target, to_at, rest) {
                Ok(0) => break,
                Ok(more) => done += more as u64,
                Err(Errno::INTR) => {}
                Err(Errno::XDEV | Errno::NOSYS) if done == 0 => return Err(Errno::OPNOTSUPP),
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            }
        }
        self.server.attributes.touch(number, self.time);
        w.u32(done as u32);
        w.u32(0);
        Ok(())
    }
}

pub(crate) fn write_at(file: &File, data: &[u8], offset: u64) -> Result<usize> {
    let mut done = 0;
    while done < data.len() {
        // File offsets are signed 64-bit.
        let at = offset.checked_add(done as u64);
        let at = at.filter(|at| i64::try_from(*at).is_ok()).ok_or(Errno::FBIG)?;
        match again(|| file.write_at(&data[done..], at)) {
            Ok(0) => {
                return if done == 0 { Err(Errno::NOSPC) } else { Ok(done) };
            }
            Ok(more) => done += more,
            Err(error) if done == 0 => return Err(error),
            Err(_) => break,
        }
    }
    Ok(done)
}

/// Repeats what a signal interrupted.
fn again(mut work: impl FnMut() -> io::Result<usize>) -> Result<usize> {
    loop {
        match work() {
            Ok(done) => return Ok(done),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO)),
        }
    }
}
