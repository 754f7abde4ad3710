use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};

use tempfile::TempDir;

use super::client::{Client, ROOM, ROOT, Stat, body};
use super::wire::Qid;
use super::*;
use crate::virtio::SplitMix64;
use crate::virtio::driver::Driver;

const ENOENT: u32 = 2;
const EBADF: u32 = 9;
const EINVAL: u32 = 22;
const EROFS: u32 = 30;
const READ_WRITE: u32 = 2;
const CREATE: u32 = 0o100;

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

#[test]
fn read_a_file() {
    let outer = folder();
    let mut client = client(&outer);
    client.to(1, "sub/inner").unwrap();
    assert_eq!(client.read(1, 0, 10), Err(EBADF), "not open yet");
    client.open(1, 0).unwrap();
    assert_eq!(client.read(1, 1, 3).unwrap(), b"nne");
    assert_eq!(client.read(1, 5, 3).unwrap(), b"");
    assert_eq!(client.read(1, u64::MAX, 3).unwrap(), b"");
    assert_eq!(
        client.write(1, 0, b"x"),
        Err(EBADF),
        "open for reading only"
    );
    client.clunk(1);
    assert_eq!(client.read(1, 0, 1), Err(EBADF));
}

#[test]
fn walks() {
    let outer = folder();
    let mut client = client(&outer);
    assert_eq!(client.walk(ROOT, 1, &[b"nothing"]), Err(ENOENT));
    assert_eq!(client.walk(ROOT, 1, &[b"sub", b"nothing", b"x"]), Ok(1));
    assert_eq!(client.stat(1), Err(EBADF), "a walk in part makes no handle");
    assert_eq!(
        client.walk(ROOT, 1, &[b"sub", b".", b"deep", b"..", b"inner"]),
        Ok(5)
    );
    assert_eq!(client.walk(ROOT, 1, &[]), Err(EBADF), "in use");
    assert_eq!(client.walk(1, 1, &[]), Ok(0));
    assert_eq!(client.walk(ROOT, 2, &[&b"."[..]; 17]), Err(EINVAL));
    assert_eq!(client.walk(1, 2, &[b"x"]), Err(20), "a file is no folder");
}

#[test]
fn nothing_leaves_the_folder() {
    let outer = folder();
    let mut client = client(&outer);
    let root = client.stat(ROOT).unwrap();
    client.to(1, "..").unwrap();
    assert_eq!(client.stat(1).unwrap(), root);
    client.to(2, "sub/deep/../../../..").unwrap();
    assert_eq!(client.stat(2).unwrap(), root);
    for name in [
        &b"../secret"[..],
        b"sub/inner",
        b"/etc/passwd",
        b"",
        b"a\0b",
        b"/",
    ] {
        assert_eq!(client.walk(ROOT, 9, &[name]), Err(EINVAL), "{name:?}");
        assert_eq!(
            client.named(kind::MKDIR, ROOT, name, &[0o755, 0]),
            Err(EINVAL)
        );
        assert_eq!(client.rename((ROOT, b"file"), (ROOT, name)), Err(EINVAL));
        assert_eq!(client.named(kind::UNLINKAT, ROOT, name, &[0]), Err(EINVAL));
        client.walk(ROOT, 8, &[]).unwrap();
        assert_eq!(
            client.create(8, name, READ_WRITE | CREATE, 0o644),
            Err(EINVAL)
        );
        client.clunk(8);
    }
    for name in ["escape", "slash", "link"] {
        client.to(5, name).unwrap();
        assert_eq!(client.stat(5).unwrap().kind, Qid::LINK);
        assert_eq!(
            client.walk(5, 6, &[b"etc"]),
            Err(20),
            "{name} is not followed"
        );
        assert!(client.open(5, 0).is_err(), "{name}");
        client.walk(ROOT, 7, &[]).unwrap();
        assert!(
            client
                .create(7, name.as_bytes(), READ_WRITE | CREATE, 0o644)
                .is_err()
        );
        client.clunk(7);
        assert!(
            client.set(5, 8, 0, 0, 0).is_err(),
            "{name} is not truncated"
        );
        assert!(
            client.set(5, 1, 0o777, 0, 0).is_err(),
            "{name} is not chmodded"
        );
        client.clunk(5);
    }
    assert_eq!(
        fs::read_to_string(outer.path().join("secret")).unwrap(),
        "secret"
    );
}

#[test]
fn host_pipes_and_devices_are_not_opened() {
    let outer = folder();
    let pipe = outer.path().join("shared/pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o644),
        0,
    )
    .unwrap();
    let mut client = client(&outer);
    client.to(1, "pipe").unwrap();
    assert_eq!(client.open(1, 0), Err(6));
    client.walk(ROOT, 2, &[]).unwrap();
    assert_eq!(
        client.create(2, b"pipe", READ_WRITE | CREATE, 0o644),
        Err(6)
    );
    assert_eq!(
        client.named(kind::MKNOD, ROOT, b"null", &[0o20666, 1, 3, 0]),
        Err(1)
    );
    client
        .named(kind::MKNOD, ROOT, b"plain", &[0o100_640, 0, 0, 0])
        .unwrap();
    assert_eq!(
        fs::metadata(outer.path().join("shared/plain"))
            .unwrap()
            .mode(),
        0o100_640
    );
}

#[test]
fn create_write_and_attributes() {
    let outer = folder();
    let mut client = client(&outer);
    client.nanos = 5;
    client.walk(ROOT, 1, &[]).unwrap();
    client
        .create(1, b"new", READ_WRITE | CREATE, 0o4444)
        .unwrap();
    client.nanos = 6;
    client.write(1, 3, b"data").unwrap();
    assert_eq!(client.read(1, 0, 100).unwrap(), b"\0\0\0data");
    let expected = Stat {
        kind: 0,
        path: client.stat(1).unwrap().path,
        mode: 0o104_444,
        owner: (7, 9),
        links: 1,
        size: 7,
        modified: 1_000_000_000_006,
    };
    assert_eq!(client.stat(1).unwrap(), expected);
    let path = outer.path().join("shared/new");
    assert_eq!(
        fs::metadata(&path).unwrap().mode(),
        0o100_444,
        "special bits stay here"
    );
    client.set(1, 8, 0, 2, 0).unwrap();
    assert_eq!(
        fs::read(&path).unwrap(),
        [0, 0],
        "truncated through the open file"
    );
    client
        .set(1, 0x1 | 0x2 | 0x4 | 0x20 | 0x100, 0o1600, 0, 77)
        .unwrap();
    let stat = client.stat(1).unwrap();
    assert_eq!(
        (stat.mode, stat.owner, stat.modified),
        (0o101_600, (5, 6), 77_000_000_000)
    );
    client.walk(ROOT, 2, &[]).unwrap();
    assert_eq!(client.create(2, b"new", CREATE | 0o200, 0o644), Err(17));
    client
        .create(2, b"new", CREATE | READ_WRITE, 0o644)
        .unwrap();
    assert_eq!(
        client.read(2, 0, 10).unwrap(),
        [0, 0],
        "the one that is there"
    );
    client.fid(kind::FSYNC, 2).unwrap();
}

#[test]
fn hosts_times_and_owners_stay_on_the_host() {
    let outer = folder();
    let mut client = client(&outer);
    client.to(1, "file").unwrap();
    let stat = client.stat(1).unwrap();
    assert_eq!(
        (stat.owner, stat.modified, stat.size),
        ((0, 0), 1_000_000_000_000, 5)
    );
    let root = client.stat(ROOT).unwrap();
    assert_eq!(
        (root.links, root.size, root.modified),
        (1, 4096, 1_000_000_000_000)
    );
}

#[test]
fn folders_are_listed_by_name_in_pieces() {
    let outer = folder();
    let mut client = client(&outer);
    client.walk(ROOT, 1, &[]).unwrap();
    client.open(1, 0).unwrap();
    let list = client.list(1, ROOM as u32).unwrap();
    let names: Vec<&str> = list.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, [".", "..", "escape", "file", "link", "slash", "sub"]);
    assert_eq!(
        list.iter().map(|(_, n)| *n).collect::<Vec<_>>(),
        [1, 1, 2, 3, 4, 5, 6]
    );
    assert_eq!(client.list(1, 40).unwrap(), list, "in small pieces");
    client.named(kind::MKDIR, ROOT, b"a", &[0o755, 0]).unwrap();
    assert_eq!(
        client.list(1, ROOM as u32).unwrap().len(),
        8,
        "a new pass sees changes"
    );
    client.to(2, "file").unwrap();
    client.open(2, 0).unwrap();
    assert_eq!(client.list(2, 100), Err(EBADF));
    assert_eq!(client.read(1, 0, 100), Err(EBADF));
}

#[test]
fn rename_link_and_remove() {
    let outer = folder();
    let shared = outer.path().join("shared");
    let mut client = client(&outer);
    client.to(1, "file").unwrap();
    client.to(2, "sub").unwrap();
    client.to(3, "sub/inner").unwrap();
    client.rename((ROOT, b"file"), (2, b"inner")).unwrap();
    assert_eq!(
        fs::read_to_string(shared.join("sub/inner")).unwrap(),
        "hello"
    );
    assert_eq!(client.stat(3).unwrap().links, 0, "replaced, but still held");

    let link = body(|w| {
        w.u32(ROOT);
        w.u32(1);
        w.string(b"twin");
    });
    client.call(kind::LINK, &link).unwrap();
    assert_eq!(client.stat(1).unwrap().links, 2);
    client.to(4, "twin").unwrap();
    assert_eq!(client.stat(4).unwrap().path, client.stat(1).unwrap().path);

    let rename = body(|w| {
        w.u32(1);
        w.u32(ROOT);
        w.string(b"back");
    });
    client.call(kind::RENAME, &rename).unwrap();
    assert!(shared.join("back").exists() && !shared.join("sub/inner").exists());

    assert_eq!(client.named(kind::UNLINKAT, ROOT, b"sub", &[0]), Err(21));
    assert_eq!(
        client.named(kind::UNLINKAT, ROOT, b"sub", &[0x200]),
        Err(39)
    );
    client.named(kind::UNLINKAT, 2, b"deep", &[0x200]).unwrap();
    client.fid(kind::REMOVE, 2).unwrap();
    assert!(!shared.join("sub").exists());
    assert_eq!(client.stat(2), Err(EBADF), "removal gives the handle up");
    assert_eq!(client.fid(kind::REMOVE, ROOT), Err(16), "the root stays");
}

#[test]
fn a_moved_folder_has_a_new_parent() {
    let outer = folder();
    let mut client = client(&outer);
    client
        .named(kind::MKDIR, ROOT, b"other", &[0o755, 0])
        .unwrap();
    client.to(1, "sub/deep").unwrap();
    client.to(2, "sub").unwrap();
    client.to(3, "other").unwrap();
    client.rename((2, b"deep"), (3, b"deep")).unwrap();
    client.walk(1, 4, &[b".."]).unwrap();
    assert_eq!(client.stat(4).unwrap(), client.stat(3).unwrap());
    assert_eq!(client.rename((ROOT, b"other"), (1, b"loop")), Err(EINVAL));
}

#[test]
fn links_are_the_guests() {
    let outer = folder();
    let mut client = client(&outer);
    let symlink = body(|w| {
        w.u32(ROOT);
        w.string(b"new");
        w.string(b"/any/where");
        w.u32(0);
    });
    client.call(kind::SYMLINK, &symlink).unwrap();
    client.to(1, "new").unwrap();
    assert_eq!(client.fid(kind::READLINK, 1).unwrap(), b"\x0a\0/any/where");
    assert_eq!(client.fid(kind::READLINK, ROOT), Err(EINVAL));
}

#[test]
fn numbers_do_not_follow_the_hosts_reuse_of_inodes() {
    let outer = folder();
    let mut client = client(&outer);
    let mut numbers = Vec::new();
    for _ in 0..5 {
        client.walk(ROOT, 1, &[]).unwrap();
        client
            .create(1, b"short-lived", CREATE | READ_WRITE, 0o644)
            .unwrap();
        numbers.push(client.stat(1).unwrap().path);
        client.clunk(1);
        client
            .named(kind::UNLINKAT, ROOT, b"short-lived", &[0])
            .unwrap();
    }
    assert_eq!(numbers, [2, 3, 4, 5, 6]);
}

#[test]
fn read_only_sharing() {
    let outer = folder();
    let mut client = Client::new(&outer.path().join("shared"), true);
    client.to(1, "file").unwrap();
    assert_eq!(client.open(1, 1), Err(EROFS));
    assert_eq!(client.open(1, 0o1000), Err(EROFS));
    client.open(1, 0).unwrap();
    assert_eq!(client.read(1, 0, 10).unwrap(), b"hello");
    assert_eq!(client.write(1, 0, b"x"), Err(EROFS));
    assert_eq!(
        client.named(kind::UNLINKAT, ROOT, b"file", &[0]),
        Err(EROFS)
    );
    assert_eq!(client.set(1, 8, 0, 0, 0), Err(EROFS));
}

#[test]
fn stubs() {
    let outer = folder();
    let mut client = client(&outer);
    assert_eq!(client.call(kind::XATTRWALK, &[0; 12]), Err(95));
    assert_eq!(client.call(200, &[]), Err(95));
    assert_eq!(client.call(kind::FLUSH, &[0, 0]).unwrap(), b"");
    assert_eq!(client.fid(kind::LOCK, ROOT).unwrap(), [0]);
    let getlock = body(|w| {
        w.u32(ROOT);
        w.u8(1);
        [3, 4].into_iter().for_each(|n| w.u64(n));
        w.u32(5);
        w.string(b"me");
    });
    let mut unlocked = getlock[4..].to_vec();
    unlocked[0] = 2;
    assert_eq!(client.call(kind::GETLOCK, &getlock).unwrap(), unlocked);
    assert_eq!(client.fid(kind::STATFS, ROOT).unwrap().len(), 60);
    let old = body(|w| {
        w.u32(8192);
        w.string(b"9P2000");
    });
    assert_eq!(
        &client.call(kind::VERSION, &old).unwrap()[4..],
        b"\x07\0unknown"
    );
}

#[test]
fn a_deep_tree_can_be_let_go() {
    let outer = folder();
    let mut client = client(&outer);
    client.walk(ROOT, 1, &[]).unwrap();
    for _ in 0..400 {
        client.named(kind::MKDIR, 1, b"d", &[0o755, 0]).unwrap();
        client.walk(1, 1, &[b"d"]).unwrap();
    }
    client.clunk(1);
    client.attach().unwrap();
}

#[test]
fn hostile_messages_do_no_harm() {
    let outer = folder();
    let mut random = SplitMix64::new(4);
    let kinds: Vec<u8> = (0..=130).collect();
    let names: [&[u8]; 7] = [b"file", b"sub", b"..", b".", b"link", b"x", b"\xff/"];
    for _ in 0..60 {
        let mut client = client(&outer);
        for fid in 1..4 {
            let _ = client.walk(ROOT, fid, &[names[random.next_u64() as usize % 7]]);
            let _ = client.open(fid, random.next_u64() as u32);
        }
        for _ in 0..200 {
            let kind = kinds[random.next_u64() as usize % kinds.len()];
            let message = body(|w| {
                for _ in 0..random.next_u64() % 6 {
                    match random.next_u64() % 4 {
                        0 => w.u32((random.next_u64() % 5) as u32),
                        1 => w.string(names[random.next_u64() as usize % 7]),
                        2 => w.u64(random.next_u64() >> (random.next_u64() % 64)),
                        _ => w.u32(u32::MAX),
                    }
                }
            });
            if kind != kind::RLERROR - 1 {
                let _ =
                    client.call_with_room(kind, &message, 64 + random.next_u64() as usize % 400);
            }
        }
        let length = random.next_u64() as usize % 64;
        let bytes = random.bytes(length);
        client.server.serve(Request {
            queue: 0,
            bytes: &bytes,
            room: 0,
            nanos: 0,
        });
    }
    assert_eq!(
        fs::read_to_string(outer.path().join("secret")).unwrap(),
        "secret"
    );
    assert_eq!(fs::read_dir(outer.path()).unwrap().count(), 2);
}

#[test]
fn over_the_transport() {
    let outer = folder();
    let server = P9::new(&outer.path().join("shared"), "host", true, 0).unwrap();
    assert_eq!(server.config(), b"\x04\0host");
    let mut driver = Driver::new(Box::new(server));
    let mut version = Writer::new();
    version.u32(8192);
    version.string(b"9P2000.L");
    let reply = driver.transact(0, &version.finish(kind::VERSION, 0xffff), 64);
    assert_eq!(reply, b"\x15\0\0\0\x65\xff\xff\0\x20\0\0\x08\09P2000.L");
    assert_eq!(driver.transact(0, b"bad", 64), b"");
    assert!(P9::new(&outer.path().join("secret"), "", false, 0).is_err());
}
