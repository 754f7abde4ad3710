//! Messages of FUSE: little-endian integers, and names that end with a zero byte.
//!
//! Layouts as in Linux include/uapi/linux/fuse.h, read and written field by field. Crates have them as C structures
//! (`fuse-backend-rs`), to be cast to and from bytes: that saves nothing here.

use rustix::io::Errno;

use super::Result;

/// Size of a request's header.
pub(crate) const REQUEST_HEADER: usize = 40;
/// Size of a reply's header.
pub(crate) const REPLY_HEADER: usize = 16;

/// What a request asks for.
pub(crate) mod opcode {
    pub(crate) const LOOKUP: u32 = 1;
    pub(crate) const FORGET: u32 = 2;
    pub(crate) const GETATTR: u32 = 3;
    pub(crate) const SETATTR: u32 = 4;
    pub(crate) const READLINK: u32 = 5;
    pub(crate) const SYMLINK: u32 = 6;
    pub(crate) const MKNOD: u32 = 8;
    pub(crate) const MKDIR: u32 = 9;
    pub(crate) const UNLINK: u32 = 10;
    pub(crate) const RMDIR: u32 = 11;
    pub(crate) const RENAME: u32 = 12;
    pub(crate) const LINK: u32 = 13;
    pub(crate) const OPEN: u32 = 14;
    pub(crate) const READ: u32 = 15;
    pub(crate) const WRITE: u32 = 16;
    pub(crate) const STATFS: u32 = 17;
    pub(crate) const RELEASE: u32 = 18;
    pub(crate) const FSYNC: u32 = 20;
    pub(crate) const SETXATTR: u32 = 21;
    pub(crate) const GETXATTR: u32 = 22;
    pub(crate) const LISTXATTR: u32 = 23;
    pub(crate) const REMOVEXATTR: u32 = 24;
    pub(crate) const INIT: u32 = 26;
    pub(crate) const OPENDIR: u32 = 27;
    pub(crate) const READDIR: u32 = 28;
    pub(crate) const RELEASEDIR: u32 = 29;
    pub(crate) const FSYNCDIR: u32 = 30;
    pub(crate) const CREATE: u32 = 35;
    pub(crate) const INTERRUPT: u32 = 36;
    pub(crate) const DESTROY: u32 = 38;
    pub(crate) const IOCTL: u32 = 39;
    pub(crate) const BATCH_FORGET: u32 = 42;
    pub(crate) const FALLOCATE: u32 = 43;
    pub(crate) const RENAME2: u32 = 45;
    pub(crate) const LSEEK: u32 = 46;
    pub(crate) const COPY_FILE_RANGE: u32 = 47;
    pub(crate) const SYNCFS: u32 = 50;
    pub(crate) const TMPFILE: u32 = 51;
    pub(crate) const STATX: u32 = 52;
}

/// A request's header, but for its length.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Header {
    pub opcode: u32,
    /// Names the request in its reply.
    pub unique: u64,
    /// The file that it is about: the number of a node.
    pub node: u64,
    /// Who asks: becomes the owner of what is created.
    pub owner: (u32, u32),
}

/// Takes a request apart. A request that is too short is `EINVAL`.
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The header; what is left to read is as long as it says.
    pub(crate) fn header(&mut self) -> Result<Header> {
        let length = self.u32()? as usize;
        let header = Header {
            opcode: self.u32()?,
            unique: self.u64()?,
            node: self.u64()?,
            owner: (self.u32()?, self.u32()?),
        };
        let (_process, _extensions) = (self.u32()?, self.u32()?);
        self.0 = length
            .checked_sub(REQUEST_HEADER)
            .and_then(|length| self.0.get(..length))
            .unwrap_or_default();
        Ok(header)
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count).ok_or(Errno::INVAL)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(Errno::INVAL)?;
        self.0 = rest;
        Ok(*bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// Bytes up to a zero, which is taken too.
    pub(crate) fn name(&mut self) -> Result<&'a [u8]> {
        let end = self.0.iter().position(|byte| *byte == 0);
        let name = self.bytes(end.ok_or(Errno::INVAL)?)?;
        self.bytes(1)?;
        Ok(name)
    }
}

/// Puts a reply together.
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    pub(crate) fn new() -> Self {
        Self(vec![0; REPLY_HEADER])
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Up to `count` bytes that `read` fills and counts.
    pub(crate) fn fill(
        &mut self,
        count: usize,
        read: impl FnOnce(&mut [u8]) -> Result<usize>,
    ) -> Result {
        let start = self.0.len();
        self.0.resize(start + count, 0);
        let done = read(&mut self.0[start..])?;
        self.0.truncate(start + done.min(count));
        Ok(())
    }

    pub(crate) fn u16(&mut self, value: u16) {
        self.bytes(&value.to_le_bytes());
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.bytes(&value.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.bytes(&value.to_le_bytes());
    }

    /// Bytes written after the header.
    pub(crate) fn len(&self) -> usize {
        self.0.len() - REPLY_HEADER
    }

    /// The reply, with its header.
    pub(crate) fn finish(self, unique: u64) -> Vec<u8> {
        with_header(self.0, unique, 0)
    }

    /// The reply to a request that failed.
    pub(crate) fn refuse(unique: u64, error: Errno) -> Vec<u8> {
        with_header(vec![0; REPLY_HEADER], unique, -error.raw_os_error())
    }
}

fn with_header(mut reply: Vec<u8>, unique: u64, error: i32) -> Vec<u8> {
    let length = reply.len() as u32;
    reply[..4].copy_from_slice(&length.to_le_bytes());
    reply[4..8].copy_from_slice(&error.to_le_bytes());
    reply[8..REPLY_HEADER].copy_from_slice(&unique.to_le_bytes());
    reply
}
