//! A small 9P client, for tests. Handle 0 is the root; errors are error numbers.

use std::path::Path;

use super::wire::{Reader, Writer, kind};
use super::{HEADER, P9};
use crate::virtio::{Backend, Request};

pub const ROOT: u32 = 0;
pub const ROOM: usize = 8192;

pub struct Client {
    pub server: P9,
    /// Simulated nanoseconds.
    pub nanos: u64,
}

/// What a `getattr` says.
#[derive(Debug, PartialEq, Eq)]
pub struct Stat {
    pub kind: u8,
    pub path: u64,
    pub mode: u32,
    pub owner: (u32, u32),
    pub links: u64,
    pub size: u64,
    pub modified: u64,
}

type Result<T> = std::result::Result<T, u32>;

/// Builds the body of a message.
pub fn body(fill: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut writer = Writer::new();
    fill(&mut writer);
    writer.body()
}

impl Client {
    /// A session with a server for `path`, attached as user 7.
    pub fn new(path: &Path, read_only: bool) -> Self {
        let server = P9::new(path, "host", read_only, 1000).unwrap();
        let mut client = Self { server, nanos: 0 };
        client.attach().unwrap();
        client
    }

    pub fn attach(&mut self) -> Result<()> {
        let version = body(|w| {
            w.u32(1 << 20);
            w.string(b"9P2000.L");
        });
        let reply = self.call(kind::VERSION, &version)?;
        assert_eq!(reply[..4], (512_u32 << 10).to_le_bytes());
        let attach = body(|w| {
            w.u32(ROOT);
            w.u32(u32::MAX);
            w.string(b"user");
            w.string(b"");
            w.u32(7);
        });
        self.call(kind::ATTACH, &attach).map(drop)
    }

    /// Sends a message and returns the reply's body.
    pub fn call(&mut self, kind: u8, body: &[u8]) -> Result<Vec<u8>> {
        self.call_with_room(kind, body, ROOM)
    }

    pub fn call_with_room(&mut self, kind: u8, body: &[u8], room: usize) -> Result<Vec<u8>> {
        let mut message = Writer::new();
        message.bytes(body);
        let bytes = message.finish(kind, 3);
        let request = Request {
            queue: 0,
            bytes: &bytes,
            room,
            nanos: self.nanos,
        };
        let reply = self.server.serve(request).unwrap();
        let mut reader = Reader::new(&reply);
        let size = reader.u32().unwrap() as usize;
        assert_eq!((size, reply.len() <= room), (reply.len(), true));
        let answer = reader.u8().unwrap();
        assert_eq!(reader.u16(), Ok(3), "the tag comes back");
        if answer == kind::RLERROR {
            return Err(reader.u32().unwrap());
        }
        assert_eq!(answer, kind + 1);
        Ok(reply[HEADER..].to_vec())
    }

    /// Walks to a path; returns the number of components found.
    pub fn walk(&mut self, from: u32, to: u32, names: &[&[u8]]) -> Result<usize> {
        let walk = body(|w| {
            w.u32(from);
            w.u32(to);
            w.u16(names.len() as u16);
            names.iter().for_each(|name| w.string(name));
        });
        let reply = self.call(kind::WALK, &walk)?;
        Ok(u16::from_le_bytes([reply[0], reply[1]]).into())
    }

    /// Makes `fid` the file at a path below the root.
    pub fn to(&mut self, fid: u32, path: &str) -> Result<()> {
        let names: Vec<&[u8]> = path
            .split('/')
            .filter(|n| !n.is_empty())
            .map(str::as_bytes)
            .collect();
        assert_eq!(
            self.walk(ROOT, fid, &names)?,
            names.len(),
            "{path} was found in part"
        );
        Ok(())
    }

    pub fn fid(&mut self, kind: u8, fid: u32) -> Result<Vec<u8>> {
        self.call(kind, &fid.to_le_bytes())
    }

    pub fn clunk(&mut self, fid: u32) {
        self.fid(kind::CLUNK, fid).unwrap();
    }

    pub fn open(&mut self, fid: u32, flags: u32) -> Result<()> {
        self.call(
            kind::LOPEN,
            &body(|w| [fid, flags].into_iter().for_each(|n| w.u32(n))),
        )
        .map(drop)
    }

    pub fn create(&mut self, fid: u32, name: &[u8], flags: u32, mode: u32) -> Result<()> {
        let create = body(|w| {
            w.u32(fid);
            w.string(name);
            [flags, mode, 9].into_iter().for_each(|n| w.u32(n));
        });
        self.call(kind::LCREATE, &create).map(drop)
    }

    pub fn read(&mut self, fid: u32, offset: u64, count: u32) -> Result<Vec<u8>> {
        self.read_by(kind::READ, fid, offset, count)
    }

    fn read_by(&mut self, kind: u8, fid: u32, offset: u64, count: u32) -> Result<Vec<u8>> {
        let read = body(|w| {
            w.u32(fid);
            w.u64(offset);
            w.u32(count);
        });
        let reply = self.call(kind, &read)?;
        assert_eq!(reply[..4], (reply.len() as u32 - 4).to_le_bytes());
        Ok(reply[4..].to_vec())
    }

    pub fn write(&mut self, fid: u32, offset: u64, data: &[u8]) -> Result<()> {
        let write = body(|w| {
            w.u32(fid);
            w.u64(offset);
            w.data(data);
        });
        self.call(kind::WRITE, &write).map(drop)
    }

    /// Names and numbers of a folder's entries, read in pieces of `count` bytes.
    pub fn list(&mut self, fid: u32, count: u32) -> Result<Vec<(String, u64)>> {
        let (mut entries, mut offset) = (Vec::new(), 0);
        loop {
            let data = self.read_by(kind::READDIR, fid, offset, count)?;
            if data.is_empty() {
                return Ok(entries);
            }
            let mut rest = data.len();
            let mut reader = Reader::new(&data);
            while rest > 0 {
                let (_kind, _version) = (reader.u8().unwrap(), reader.u32().unwrap());
                let path = reader.u64().unwrap();
                offset = reader.u64().unwrap();
                reader.u8().unwrap();
                let name = reader.string().unwrap();
                rest -= 24 + name.len();
                entries.push((String::from_utf8(name.to_vec()).unwrap(), path));
            }
        }
    }

    pub fn stat(&mut self, fid: u32) -> Result<Stat> {
        let getattr = body(|w| {
            w.u32(fid);
            w.u64(u64::MAX);
        });
        let reply = self.call(kind::GETATTR, &getattr)?;
        let mut r = Reader::new(&reply);
        assert_eq!(r.u64(), Ok(0x7ff));
        let (kind, _, path) = (r.u8().unwrap(), r.u32().unwrap(), r.u64().unwrap());
        let (mode, owner) = (r.u32().unwrap(), (r.u32().unwrap(), r.u32().unwrap()));
        let [links, _, size] = [(); 3].map(|()| r.u64().unwrap());
        let times = [(); 10].map(|()| r.u64().unwrap());
        let modified = times[4] * 1_000_000_000 + times[5];
        Ok(Stat {
            kind,
            path,
            mode,
            owner,
            links,
            size,
            modified,
        })
    }

    /// A message of handle, name and 32-bit numbers.
    pub fn named(&mut self, kind: u8, fid: u32, name: &[u8], numbers: &[u32]) -> Result<()> {
        let message = body(|w| {
            w.u32(fid);
            w.string(name);
            numbers.iter().for_each(|&n| w.u32(n));
        });
        self.call(kind, &message).map(drop)
    }

    pub fn rename(&mut self, from: (u32, &[u8]), to: (u32, &[u8])) -> Result<()> {
        let rename = body(|w| {
            w.u32(from.0);
            w.string(from.1);
            w.u32(to.0);
            w.string(to.1);
        });
        self.call(kind::RENAMEAT, &rename).map(drop)
    }

    pub fn set(&mut self, fid: u32, valid: u32, mode: u32, size: u64, time: u64) -> Result<()> {
        let setattr = body(|w| {
            [fid, valid, mode, 5, 6].into_iter().for_each(|n| w.u32(n));
            [size, time, 0, time, 0].into_iter().for_each(|n| w.u64(n));
        });
        self.call(kind::SETATTR, &setattr).map(drop)
    }
}
