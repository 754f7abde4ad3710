//! Messages: little-endian integers, and strings with a 16-bit length.

use rustix::io::Errno;

use super::{HEADER, Result};

/// Message types of requests; a reply's is one more.
pub mod kind {
    pub const RLERROR: u8 = 7;
    pub const STATFS: u8 = 8;
    pub const LOPEN: u8 = 12;
    pub const LCREATE: u8 = 14;
    pub const SYMLINK: u8 = 16;
    pub const MKNOD: u8 = 18;
    pub const RENAME: u8 = 20;
    pub const READLINK: u8 = 22;
    pub const GETATTR: u8 = 24;
    pub const SETATTR: u8 = 26;
    pub const XATTRWALK: u8 = 30;
    pub const XATTRCREATE: u8 = 32;
    pub const READDIR: u8 = 40;
    pub const FSYNC: u8 = 50;
    pub const LOCK: u8 = 52;
    pub const GETLOCK: u8 = 54;
    pub const LINK: u8 = 70;
    pub const MKDIR: u8 = 72;
    pub const RENAMEAT: u8 = 74;
    pub const UNLINKAT: u8 = 76;
    pub const VERSION: u8 = 100;
    pub const ATTACH: u8 = 104;
    pub const FLUSH: u8 = 108;
    pub const WALK: u8 = 110;
    pub const READ: u8 = 116;
    pub const WRITE: u8 = 118;
    pub const CLUNK: u8 = 120;
    pub const REMOVE: u8 = 122;
}

/// Identity of a file: its kind and a number that no other file of the run has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Qid {
    /// [`Self::FOLDER`], [`Self::LINK`] or 0.
    pub kind: u8,
    /// Number, from 1 in the order of first sight.
    pub path: u64,
}

impl Qid {
    /// Kind of a folder.
    pub const FOLDER: u8 = 0x80;
    /// Kind of a symbolic link.
    pub const LINK: u8 = 0x02;
}

/// Takes a request apart. A request that is too short is `EINVAL`.
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count).ok_or(Errno::INVAL)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(Errno::INVAL)?;
        self.0 = rest;
        Ok(*bytes)
    }

    pub fn u8(&mut self) -> Result<u8> {
        self.array().map(u8::from_le_bytes)
    }

    pub fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub fn string(&mut self) -> Result<&'a [u8]> {
        let length = self.u16()?;
        self.bytes(length.into())
    }
}

/// Puts a reply together.
pub struct Writer(Vec<u8>);

impl Writer {
    pub fn new() -> Self {
        Self(vec![0; HEADER])
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    pub fn u16(&mut self, value: u16) {
        self.bytes(&value.to_le_bytes());
    }

    pub fn u32(&mut self, value: u32) {
        self.bytes(&value.to_le_bytes());
    }

    pub fn u64(&mut self, value: u64) {
        self.bytes(&value.to_le_bytes());
    }

    /// A string, cut to what its length can say.
    pub fn string(&mut self, string: &[u8]) {
        let length = string.len().min(u16::MAX.into());
        self.u16(length as u16);
        self.bytes(&string[..length]);
    }

    /// The version is always 0: a number that changed would make Linux drop the inode.
    pub fn qid(&mut self, qid: Qid) {
        self.u8(qid.kind);
        self.u32(0);
        self.u64(qid.path);
    }

    /// Bytes of data with a 32-bit length.
    pub fn data(&mut self, data: &[u8]) {
        self.u32(data.len() as u32);
        self.bytes(data);
    }

    /// What was written, without a header.
    pub fn body(mut self) -> Vec<u8> {
        self.0.split_off(HEADER)
    }

    /// The message, with its header.
    pub fn finish(mut self, kind: u8, tag: u16) -> Vec<u8> {
        let size = self.0.len() as u32;
        self.0[..4].copy_from_slice(&size.to_le_bytes());
        self.0[4] = kind;
        self.0[5..HEADER].copy_from_slice(&tag.to_le_bytes());
        self.0
    }
}
