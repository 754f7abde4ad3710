mod content;
mod extended;
mod hostile;
mod times;

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};

use tempfile::TempDir;

use super::client::{Body, Client, OWNER, ROOM, ROOT, Stat, init, message, u32s, u64s};
use super::*;
use crate::virtio::SplitMix64;
use crate::virtio::driver::Driver;

const ENXIO: i32 = 6;
const ENOENT: i32 = 2;
const EBADF: i32 = 9;
const EEXIST: i32 = 17;
const ENOTDIR: i32 = 20;
const EISDIR: i32 = 21;
const EINVAL: i32 = 22;
const ENFILE: i32 = 23;
const ENOSPC: i32 = 28;
const EROFS: i32 = 30;
const ERANGE: i32 = 34;
const ENAMETOOLONG: i32 = 36;
const ENOSYS: i32 = 38;
const ENOTEMPTY: i32 = 39;
const ENODATA: i32 = 61;
const EOPNOTSUPP: i32 = 95;
const ESTALE: i32 = 116;

const WRITE_ONLY: u32 = 1;
const READ_WRITE: u32 = 2;
const TRUNCATE: u32 = 0o1000;
const EXCLUSIVE: u32 = 0o200;

const SECOND: u64 = 1_000_000_000;

/// Bits of `SETATTR`'s mask of the attributes that are set.
const MODE: u32 = 1;
const SIZE: u32 = 8;

/// A folder with a file, a subfolder, and beside it a secret that must stay one.
fn folder() -> TempDir {
    let outer = tempfile::tempdir().unwrap();
    fs::write(outer.path().join("secret"), "secret").unwrap();
    let shared = outer.path().join("shared");
    fs::create_dir_all(shared.join("sub/deep")).unwrap();
    fs::write(shared.join("file"), "hello").unwrap();
    fs::write(shared.join("sub/inner"), "inner").unwrap();
    symlink("../secret", shared.join("escape")).unwrap();
    symlink("/", shared.join("slash")).unwrap();
    symlink("sub", shared.join("link")).unwrap();
    outer
}

fn client(outer: &TempDir) -> Client {
    Client::new(&outer.path().join("shared"), false)
}

/// What a `SETATTR` sets.
fn to(change: impl FnOnce(&mut Stat)) -> Stat {
    let mut stat = Stat {
        number: 0,
        mode: 0,
        owner: (0, 0),
        links: 0,
        size: 0,
        device: 0,
        accessed: 0,
        modified: 0,
        changed: 0,
    };
    change(&mut stat);
    stat
}

#[test]
fn nothing_leaves_the_folder() {
    let outer = folder();
    let mut client = client(&outer);
    let file = client.at("file");
    for name in [&b".."[..], b".", b"../secret", b"sub/inner", b"/etc", b"", b"/"] {
        assert_eq!(client.lookup(ROOT, name), Err(EINVAL), "{name:?}");
        assert_eq!(client.mkdir(ROOT, name, 0o755), Err(EINVAL));
        assert_eq!(client.rename((ROOT, b"file"), (ROOT, name), 0), Err(EINVAL));
        assert_eq!(client.remove(opcode::UNLINK, ROOT, name), Err(EINVAL));
        assert_eq!(client.link(file, ROOT, name), Err(EINVAL));
        assert_eq!(client.create(ROOT, name, READ_WRITE, 0o644), Err(EINVAL));
    }
    for name in ["escape", "slash", "link"] {
        let link = client.at(name);
        assert_eq!(client.stat(link).unwrap().mode >> 12, 0o12);
        assert_eq!(client.lookup(link, b"etc"), Err(ENOTDIR), "{name} is not followed");
        assert!(client.open(link, 0).is_err(), "{name}");
        assert!(client.create(ROOT, name.as_bytes(), READ_WRITE, 0o644).is_err());
        assert!(client.set(link, SIZE, &to(|_| ())).is_err(), "{name} is not truncated");
        assert!(client.set(link, MODE, &to(|s| s.mode = 0o777)).is_err());
    }
    let secret = outer.path().join("secret");
    assert_eq!(fs::read_to_string(secret).unwrap(), "secret");
}

#[test]
fn names_are_looked_up_and_made() {
    let outer = folder();
    let mut client = client(&outer);
    assert_eq!(client.lookup(ROOT, b"nothing"), Err(ENOENT));
    let file = client.at("file");
    assert_eq!(client.lookup(file, b"x"), Err(ENOTDIR));
    assert_eq!(client.lookup(ROOT, &[b'n'; 256]), Err(ENAMETOOLONG));
    for name in [&b"\xff\xfe odd\n\x01"[..], &[b'n'; 255], b"-", b" ", b"a\\b:*?"] {
        let (made, handle) = client.create(ROOT, name, READ_WRITE, 0o640).unwrap();
        client.release(handle).unwrap();
        assert_eq!(client.lookup(ROOT, name).unwrap().number, made.number);
        client.remove(opcode::UNLINK, ROOT, name).unwrap();
        assert_eq!(client.lookup(ROOT, name), Err(ENOENT));
    }
    let made = client.mkdir(ROOT, b"new", 0o750).unwrap();
    assert_eq!((made.mode, made.links, made.owner), (0o040_750, 1, OWNER));
    assert_eq!(client.mkdir(ROOT, b"new", 0o750), Err(EEXIST));
    let link = Body::default().name(b"there").name(b"/any/where");
    client.call(opcode::SYMLINK, made.number, link).unwrap();
    let there = client.at("new/there");
    let target = client.call(opcode::READLINK, there, Body::default());
    assert_eq!(target.unwrap(), b"/any/where");
    let file_is_none = client.call(opcode::READLINK, file, Body::default());
    assert_eq!(file_is_none, Err(EINVAL));
}

#[test]
fn names_are_moved_and_removed() {
    const NO_REPLACE: u64 = 1;
    const EXCHANGE: u64 = 2;
    const WHITEOUT: u64 = 4;
    let outer = folder();
    let shared = outer.path().join("shared");
    let mut client = client(&outer);
    let (file, sub, inner) = (client.at("file"), client.at("sub"), client.at("sub/inner"));
    let (here, there) = ((ROOT, &b"file"[..]), (sub, &b"inner"[..]));
    assert_eq!(client.rename(here, there, NO_REPLACE), Err(EEXIST));
    assert_eq!(client.rename(here, there, WHITEOUT), Err(EINVAL));
    client.rename(here, there, EXCHANGE).unwrap();
    assert_eq!(fs::read_to_string(shared.join("file")).unwrap(), "inner");
    assert_eq!(client.lookup(ROOT, b"file").unwrap().number, inner);
    client.rename(here, there, 0).unwrap();
    assert_eq!(fs::read_to_string(shared.join("sub/inner")).unwrap(), "inner");
    assert_eq!(client.stat(file).unwrap().links, 0, "replaced, but still known");

    assert_eq!(client.link(inner, ROOT, b"twin").unwrap().links, 2);
    assert_eq!(client.at("twin"), inner);
    assert_eq!(client.remove(opcode::UNLINK, ROOT, b"sub"), Err(EISDIR));
    assert_eq!(client.remove(opcode::RMDIR, ROOT, b"sub"), Err(ENOTEMPTY));
    assert_eq!(client.remove(opcode::RMDIR, ROOT, b"twin"), Err(ENOTDIR));
    client.remove(opcode::RMDIR, sub, b"deep").unwrap();
    client.remove(opcode::UNLINK, sub, b"inner").unwrap();
    client.remove(opcode::RMDIR, ROOT, b"sub").unwrap();
    assert!(!shared.join("sub").exists());
    let old = u64s(&[ROOT]).name(b"twin").name(b"third");
    client.call(opcode::RENAME, ROOT, old).unwrap();
    assert_eq!(fs::read_to_string(shared.join("third")).unwrap(), "inner");
    assert_eq!(client.mkdir(file, b"x", 0o755), Err(ENOTDIR));
}

#[test]
fn folders_are_listed_by_name_in_pieces() {
    let outer = folder();
    let mut client = client(&outer);
    let list = client.list(ROOT, ROOM as u32).unwrap();
    let names: Vec<&[u8]> = list.iter().map(|(name, ..)| &name[..]).collect();
    let expected: [&[u8]; 7] = [b".", b"..", b"escape", b"file", b"link", b"slash", b"sub"];
    assert_eq!(names, expected);
    let numbers: Vec<_> = list.iter().map(|(_, number, _)| *number).collect();
    assert_eq!(numbers, [1, 1, 2, 3, 4, 5, 6]);
    let kinds: Vec<_> = list.iter().map(|(.., kind)| *kind).collect();
    assert_eq!(kinds, [4, 4, 10, 8, 10, 10, 4]);
    assert_eq!(client.list(ROOT, 40).unwrap(), list, "in small pieces");
    let sub = client.at("sub");
    assert_eq!(client.list(sub, 4096).unwrap()[1], (b"..".to_vec(), ROOT, 4));
    client.mknod(sub, b"pipe", 0o010_600, 0).unwrap();
    let list = client.list(sub, 4096).unwrap();
    assert_eq!((&list[4].0[..], list[4].2), (&b"pipe"[..], 1), "its own kind");
    let file = client.at("file");
    assert_eq!(client.list(file, 4096), Err(ENOTDIR));
}

#[test]
fn a_folder_of_ten_thousand_files() {
    let outer = folder();
    let mut client = client(&outer);
    let big = client.mkdir(ROOT, b"big", 0o755).unwrap().number;
    for n in 0..10_000 {
        let name = format!("file{n:05}");
        client.mknod(big, name.as_bytes(), 0o100_644, 0).unwrap();
    }
    let list = client.list(big, 4096).unwrap();
    assert_eq!(list.len(), 10_002);
    assert!(list[2..].is_sorted());
    for (name, number, _) in &list[2..] {
        client.forget(*number, 1);
        client.remove(opcode::UNLINK, big, name).unwrap();
    }
    client.remove(opcode::RMDIR, ROOT, b"big").unwrap();
}

#[test]
fn pipes_sockets_and_devices_are_the_guests() {
    let outer = folder();
    let mut client = client(&outer);
    for (name, mode, device) in [
        ("pipe", 0o010_640, 0),
        ("socket", 0o140_755, 0),
        ("null", 0o020_666, 0x103),
        ("disk", 0o060_600, 0x800),
    ] {
        let made = client.mknod(ROOT, name.as_bytes(), mode, device).unwrap();
        let shown = (made.mode, made.device, made.size, made.owner);
        assert_eq!(shown, (mode, device, 0, OWNER), "{name}");
        assert_eq!(client.lookup(ROOT, name.as_bytes()), Ok(made.clone()));
        assert_eq!(client.open(made.number, 0), Err(ENXIO));
        let host = fs::metadata(outer.path().join("shared").join(name)).unwrap();
        assert!(host.is_file() && host.len() == 0, "an empty file on the host");
        client.forget(made.number, 2);
        assert_eq!(client.lookup(ROOT, name.as_bytes()).unwrap().mode, mode);
        client.remove(opcode::UNLINK, ROOT, name.as_bytes()).unwrap();
    }
    assert_eq!(client.mknod(ROOT, b"x", 0o040_755, 0), Err(EINVAL));
    assert_eq!(client.mknod(ROOT, b"x", 0o120_777, 0), Err(EINVAL));
}

#[test]
fn host_pipes_are_not_opened() {
    let outer = folder();
    let pipe = outer.path().join("shared/pipe");
    let mode = rustix::fs::Mode::from_raw_mode(0o644);
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, mode, 0).unwrap();
    let mut client = client(&outer);
    let node = client.at("pipe");
    assert_eq!(client.stat(node).unwrap().mode, 0o010_644);
    assert_eq!(client.open(node, 0), Err(ENXIO));
    assert_eq!(client.create(ROOT, b"pipe", READ_WRITE, 0o644), Err(ENXIO));
    assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
}

#[test]
fn numbers_do_not_follow_the_hosts_reuse_of_inodes() {
    let outer = folder();
    let mut client = client(&outer);
    let mut numbers = Vec::new();
    for n in 0..5 {
        client.owner = (n, n);
        let (made, handle) = client.create(ROOT, b"short-lived", READ_WRITE, 0o644).unwrap();
        assert_eq!(made.owner, (n, n));
        numbers.push(made.number);
        client.release(handle).unwrap();
        client.remove(opcode::UNLINK, ROOT, b"short-lived").unwrap();
        client.forget(made.number, 1);
        assert_eq!(client.stat(made.number), Err(ESTALE));
    }
    assert_eq!(numbers, [2, 3, 4, 5, 6]);
}

#[test]
fn what_the_guest_knows_is_counted() {
    let outer = folder();
    let mut client = client(&outer);
    let file = client.at("file");
    client.at("file");
    client.forget(file, 1);
    assert!(client.stat(file).is_ok(), "told twice, forgotten once");
    let many = u32s(&[2, 0]).u64s(&[file, 1, 999, 7]);
    assert_eq!(client.send(opcode::BATCH_FORGET, 0, many, 0), b"");
    assert_eq!(client.stat(file), Err(ESTALE));
    client.forget(ROOT, u64::MAX);
    assert!(client.stat(ROOT).is_ok(), "the root is always known");
    assert_eq!(client.send(opcode::INTERRUPT, 0, u64s(&[4]), 16), b"");
    let sub = client.at("sub");
    let handle = client.create(sub, b"open", READ_WRITE, 0o644).unwrap().1;
    client.call(opcode::DESTROY, 0, Body::default()).unwrap();
    assert_eq!(client.read(handle, 0, 1), Err(EBADF));
    assert_eq!(client.stat(sub), Err(ESTALE));
}

#[test]
fn read_only_sharing() {
    let outer = folder();
    let mut client = Client::new(&outer.path().join("shared"), true);
    let file = client.at("file");
    assert_eq!(client.open(file, WRITE_ONLY), Err(EROFS));
    assert_eq!(client.open(file, TRUNCATE), Err(EROFS));
    let handle = client.open(file, 0).unwrap();
    assert_eq!(client.read(handle, 0, 10).unwrap(), b"hello");
    assert_eq!(client.write(handle, 0, b"x"), Err(EROFS));
    assert_eq!(client.create(ROOT, b"x", 0, 0o644), Err(EROFS));
    assert_eq!(client.remove(opcode::UNLINK, ROOT, b"file"), Err(EROFS));
    assert_eq!(client.set(file, SIZE, &to(|_| ())), Err(EROFS));
    assert_eq!(client.set_extended(file, b"user.x", b"x", 0), Err(EROFS));
}

/// Without these the guest's kernel keeps locks of both kinds by itself.
#[test]
fn locks_are_left_to_the_guest() {
    const POSIX_LOCKS: u32 = 1 << 1;
    const FLOCK_LOCKS: u32 = 1 << 10;
    const WRITEBACK_CACHE: u32 = 1 << 16;
    let outer = folder();
    let mut client = client(&outer);
    let reply = client.call(opcode::INIT, 0, init()).unwrap();
    assert_eq!(reply.len(), 64);
    let mut r = Reader::new(&reply);
    assert_eq!((r.u32(), r.u32(), r.u32()), (Ok(7), Ok(38), Ok(128 << 10)));
    let features = r.u32().unwrap();
    assert_eq!(features & (POSIX_LOCKS | FLOCK_LOCKS | WRITEBACK_CACHE), 0);
    assert_eq!(client.call(31, ROOT, u64s(&[0; 6])), Err(ENOSYS));
    let old = u32s(&[7, 12, 0, 0]);
    assert!(client.call(opcode::INIT, 0, old).is_err(), "too old");
}

#[test]
fn over_the_transport() {
    let outer = folder();
    let server = Fs::new(&outer.path().join("shared"), "host", true, 0).unwrap();
    assert_eq!(server.config()[..6], *b"host\0\0");
    assert_eq!(server.config()[36..], [1, 0, 0, 0]);
    let mut driver = Driver::new(Box::new(server));
    let statfs = message(opcode::STATFS, ROOT, OWNER, &[]);
    let reply = driver.transact(1, &statfs, 200);
    assert_eq!((reply.len(), &reply[..8]), (96, &[96, 0, 0, 0, 0, 0, 0, 0][..]));
    let forget = message(opcode::FORGET, ROOT, OWNER, &[0; 8]);
    assert_eq!(driver.transact(0, &forget, 0), b"");
    assert_eq!(driver.transact(1, b"bad", 64), b"");
    assert!(Fs::new(&outer.path().join("secret"), "", false, 0).is_err());
}
