//! A small FUSE client, for tests. Errors are error numbers.

use std::path::Path;

use super::Fs;
use super::wire::{REPLY_HEADER, REQUEST_HEADER, Reader, opcode};
use crate::virtio::{Backend, Request};

pub(crate) const ROOT: u64 = 1;
pub(crate) const ROOM: usize = 1 << 20;
/// Who asks, unless a test says otherwise.
pub(crate) const OWNER: (u32, u32) = (7, 9);

type Result<T> = std::result::Result<T, i32>;

pub(crate) struct Client {
    pub server: Fs,
    /// Simulated nanoseconds.
    pub nanos: u64,
    pub owner: (u32, u32),
}

/// What the guest is told of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    pub number: u64,
    pub mode: u32,
    pub owner: (u32, u32),
    pub links: u32,
    pub size: u64,
    pub device: u32,
    /// Nanoseconds since 1970.
    pub accessed: u64,
    pub modified: u64,
    pub changed: u64,
}

/// Builds the body of a message.
#[derive(Default)]
pub(crate) struct Body(pub Vec<u8>);

impl Body {
    pub(crate) fn u32s(mut self, values: &[u32]) -> Self {
        values.iter().for_each(|value| self.0.extend(value.to_le_bytes()));
        self
    }

    pub(crate) fn u64s(mut self, values: &[u64]) -> Self {
        values.iter().for_each(|value| self.0.extend(value.to_le_bytes()));
        self
    }

    pub(crate) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend(bytes);
        self
    }

    pub(crate) fn name(self, name: &[u8]) -> Self {
        self.bytes(name).bytes(b"\0")
    }
}

pub(crate) fn u32s(values: &[u32]) -> Body {
    Body::default().u32s(values)
}

pub(crate) fn u64s(values: &[u64]) -> Body {
    Body::default().u64s(values)
}

pub(crate) fn message(code: u32, node: u64, (uid, gid): (u32, u32), body: &[u8]) -> Vec<u8> {
    let length = (REQUEST_HEADER + body.len()) as u32;
    u32s(&[length, code]).u64s(&[UNIQUE, node]).u32s(&[uid, gid, 1, 0]).bytes(body).0
}

pub(crate) const UNIQUE: u64 = 0x1234_5678_9abc;

pub(crate) fn init() -> Body {
    u32s(&[7, 41, 128 << 10, u32::MAX]).u32s(&[0; 12])
}

impl Client {
    /// A session with a server for `path`, whose run starts at second 1000.
    pub(crate) fn new(path: &Path, read_only: bool) -> Self {
        let mut client = Self {
            server: Fs::new(path, "host", read_only, 1000).unwrap(),
            nanos: 0,
            owner: OWNER,
        };
        client.call(opcode::INIT, 0, init()).unwrap();
        client
    }

    /// Sends a message and returns the reply's body.
    pub(crate) fn call(&mut self, code: u32, node: u64, body: Body) -> Result<Vec<u8>> {
        self.call_with_room(code, node, body, ROOM)
    }

    pub(crate) fn call_with_room(
        &mut self,
        code: u32,
        node: u64,
        body: Body,
        room: usize,
    ) -> Result<Vec<u8>> {
        let reply = self.send(code, node, body, room);
        let mut reader = Reader::new(&reply);
        assert_eq!(reader.u32(), Ok(reply.len() as u32));
        let error = reader.u32().unwrap() as i32;
        assert_eq!(reader.u64(), Ok(UNIQUE), "the reply names its request");
        if error != 0 {
            assert_eq!(reply.len(), REPLY_HEADER);
            return Err(-error);
        }
        assert!(reply.len() <= room);
        Ok(reply[REPLY_HEADER..].to_vec())
    }

    /// The reply as it is.
    pub(crate) fn send(&mut self, code: u32, node: u64, body: Body, room: usize) -> Vec<u8> {
        let bytes = message(code, node, self.owner, &body.0);
        self.server.serve(Request { queue: 1, bytes: &bytes, room, nanos: self.nanos }).unwrap()
    }

    pub(crate) fn lookup(&mut self, parent: u64, name: &[u8]) -> Result<Stat> {
        let reply = self.call(opcode::LOOKUP, parent, Body::default().name(name))?;
        Ok(entry(&reply))
    }

    /// The number of the file at a path below the root.
    pub(crate) fn at(&mut self, path: &str) -> u64 {
        path.split('/').fold(ROOT, |node, name| self.lookup(node, name.as_bytes()).unwrap().number)
    }

    pub(crate) fn forget(&mut self, node: u64, lookups: u64) {
        assert_eq!(self.send(opcode::FORGET, node, u64s(&[lookups]), 0), b"");
    }

    pub(crate) fn stat(&mut self, node: u64) -> Result<Stat> {
        let reply = self.call(opcode::GETATTR, node, u64s(&[0, 0]))?;
        assert_eq!(reply.len(), 104);
        Ok(attributes(&reply[16..]))
    }

    /// Opens a file; the second is whether the guest may keep what it has cached.
    pub(crate) fn open_kept(&mut self, node: u64, flags: u32) -> Result<(u64, bool)> {
        let reply = self.call(opcode::OPEN, node, u32s(&[flags, 0]))?;
        Ok(opened(&reply))
    }

    pub(crate) fn open(&mut self, node: u64, flags: u32) -> Result<u64> {
        Ok(self.open_kept(node, flags)?.0)
    }

    pub(crate) fn create(
        &mut self,
        parent: u64,
        name: &[u8],
        flags: u32,
        mode: u32,
    ) -> Result<(Stat, u64)> {
        let body = u32s(&[flags, mode | 0o100_000, 0, 0]).name(name);
        let reply = self.call(opcode::CREATE, parent, body)?;
        assert_eq!(reply.len(), 144);
        Ok((entry(&reply), opened(&reply[128..]).0))
    }

    pub(crate) fn release(&mut self, handle: u64) -> Result<()> {
        let body = u64s(&[handle, 0, 0]);
        self.call(opcode::RELEASE, 0, body).map(drop)
    }

    pub(crate) fn read(&mut self, handle: u64, offset: u64, size: u32) -> Result<Vec<u8>> {
        let body = u64s(&[handle, offset]).u32s(&[size, 0]).u64s(&[0]).u32s(&[0, 0]);
        self.call(opcode::READ, 0, body)
    }

    pub(crate) fn write(&mut self, handle: u64, offset: u64, data: &[u8]) -> Result<u32> {
        self.write_as(handle, offset, data, 0)
    }

    pub(crate) fn write_as(
        &mut self,
        handle: u64,
        offset: u64,
        data: &[u8],
        how: u32,
    ) -> Result<u32> {
        let body = u64s(&[handle, offset])
            .u32s(&[data.len() as u32, how])
            .u64s(&[0])
            .u32s(&[0, 0])
            .bytes(data);
        let reply = self.call(opcode::WRITE, 0, body)?;
        Ok(Reader::new(&reply).u32().unwrap())
    }

    /// Sets what `which` says: permissions, owner, size and times (seconds).
    pub(crate) fn set(&mut self, node: u64, which: u32, to: &Stat) -> Result<Stat> {
        let body = u32s(&[which, 0])
            .u64s(&[0, to.size, 0])
            .u64s(&[to.accessed / 1_000_000_000, to.modified / 1_000_000_000, 0])
            .u32s(&[(to.accessed % 1_000_000_000) as u32, (to.modified % 1_000_000_000) as u32, 0])
            .u32s(&[to.mode, 0, to.owner.0, to.owner.1, 0]);
        let reply = self.call(opcode::SETATTR, node, body)?;
        Ok(attributes(&reply[16..]))
    }

    pub(crate) fn mknod(
        &mut self,
        parent: u64,
        name: &[u8],
        mode: u32,
        device: u32,
    ) -> Result<Stat> {
        let body = u32s(&[mode, device, 0, 0]).name(name);
        let reply = self.call(opcode::MKNOD, parent, body)?;
        Ok(entry(&reply))
    }

    pub(crate) fn mkdir(&mut self, parent: u64, name: &[u8], mode: u32) -> Result<Stat> {
        let reply = self.call(opcode::MKDIR, parent, u32s(&[mode, 0]).name(name))?;
        Ok(entry(&reply))
    }

    pub(crate) fn remove(&mut self, code: u32, parent: u64, name: &[u8]) -> Result<()> {
        self.call(code, parent, Body::default().name(name)).map(drop)
    }

    pub(crate) fn rename(
        &mut self,
        from: (u64, &[u8]),
        to: (u64, &[u8]),
        flags: u64,
    ) -> Result<()> {
        let body = u64s(&[to.0, flags]).name(from.1).name(to.1);
        self.call(opcode::RENAME2, from.0, body).map(drop)
    }

    pub(crate) fn link(&mut self, node: u64, parent: u64, name: &[u8]) -> Result<Stat> {
        let reply = self.call(opcode::LINK, parent, u64s(&[node]).name(name))?;
        Ok(entry(&reply))
    }

    pub(crate) fn get_extended(&mut self, node: u64, name: &[u8], size: u32) -> Result<Vec<u8>> {
        self.call(opcode::GETXATTR, node, u32s(&[size, 0]).name(name))
    }

    pub(crate) fn set_extended(
        &mut self,
        node: u64,
        name: &[u8],
        value: &[u8],
        how: u32,
    ) -> Result<()> {
        let body = u32s(&[value.len() as u32, how]).name(name).bytes(value);
        self.call(opcode::SETXATTR, node, body).map(drop)
    }

    /// Names, numbers and kinds of a folder's entries, read in pieces of `size` bytes.
    pub(crate) fn list(&mut self, node: u64, size: u32) -> Result<Vec<(Vec<u8>, u64, u32)>> {
        let reply = self.call(opcode::OPENDIR, node, u32s(&[0, 0]))?;
        let (handle, _) = opened(&reply);
        let (mut entries, mut offset) = (Vec::new(), 0);
        loop {
            let body = u64s(&[handle, offset]).u32s(&[size, 0]).u64s(&[0]).u32s(&[0, 0]);
            let data = self.call(opcode::READDIR, node, body)?;
            assert!(data.len() <= size as usize);
            if data.is_empty() {
                self.call(opcode::RELEASEDIR, node, u64s(&[handle, 0, 0]))?;
                return Ok(entries);
            }
            let mut rest = &data[..];
            while !rest.is_empty() {
                let mut reader = Reader::new(rest);
                let number = reader.u64().unwrap();
                offset = reader.u64().unwrap();
                let (length, kind) = (reader.u32().unwrap() as usize, reader.u32().unwrap());
                entries.push((reader.bytes(length).unwrap().to_vec(), number, kind));
                rest = &rest[(24 + length).next_multiple_of(8)..];
            }
        }
    }
}

/// An entry: the number comes first, and again in the attributes.
pub(crate) fn entry(reply: &[u8]) -> Stat {
    let stat = attributes(&reply[40..]);
    assert_eq!(Reader::new(reply).u64(), Ok(stat.number));
    stat
}

fn attributes(reply: &[u8]) -> Stat {
    let mut r = Reader::new(reply);
    let [number, size, _blocks] = [(); 3].map(|()| r.u64().unwrap());
    let seconds = [(); 3].map(|()| r.u64().unwrap());
    let nanos = [(); 3].map(|()| u64::from(r.u32().unwrap()));
    let [mode, links, uid, gid, device] = [(); 5].map(|()| r.u32().unwrap());
    let time = |n: usize| seconds[n] * 1_000_000_000 + nanos[n];
    Stat {
        number,
        mode,
        owner: (uid, gid),
        links,
        size,
        device,
        accessed: time(0),
        modified: time(1),
        changed: time(2),
    }
}

fn opened(reply: &[u8]) -> (u64, bool) {
    const KEEP_CACHE: u32 = 2;
    let mut reader = Reader::new(reply);
    let handle = reader.u64().unwrap();
    (handle, reader.u32().unwrap() & KEEP_CACHE != 0)
}
