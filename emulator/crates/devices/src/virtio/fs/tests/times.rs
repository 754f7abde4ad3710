//! Times, owners and special bits.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::*;

const ACCESSED: u32 = 1 << 4;
const MODIFIED: u32 = 1 << 5;
const MODIFIED_NOW: u32 = 1 << 8;
const KILL: u32 = 1 << 11;

fn age(path: &std::path::Path, seconds: u64) {
    let time = UNIX_EPOCH + Duration::from_secs(seconds);
    fs::File::open(path).unwrap().set_modified(time).unwrap();
}

#[test]
fn host_files_keep_their_times_and_guest_files_have_simulated_ones() {
    let outer = folder();
    let path = outer.path().join("shared/file");
    age(&path, 77);
    let mut client = client(&outer);
    let file = client.at("file");
    let stat = client.stat(file).unwrap();
    assert_eq!(stat.owner, (0, 0), "the host's owners stay there");
    let times = [stat.accessed, stat.modified, stat.changed];
    assert_eq!(times, [77 * SECOND; 3]);
    client.nanos = 5;
    let handle = client.open(file, READ_WRITE).unwrap();
    client.write(handle, 0, b"j").unwrap();
    let stat = client.stat(file).unwrap();
    assert_eq!((stat.modified, stat.changed), (1000 * SECOND + 5, 1000 * SECOND + 5));
    assert_eq!(stat.accessed, 77 * SECOND);
    let host = fs::metadata(&path).unwrap().modified().unwrap();
    let ago = SystemTime::now().duration_since(host).unwrap_or_default();
    assert!(ago < Duration::from_secs(3600), "the host has its own time");
    let (made, _) = client.create(ROOT, b"new", READ_WRITE, 0o600).unwrap();
    assert_eq!(made.modified, 1000 * SECOND + 5);
    assert_eq!(client.stat(ROOT).unwrap().modified, 1000 * SECOND + 5);
    let birth = client.call(opcode::STATX, made.number, u64s(&[0, 0, 0])).unwrap();
    assert_eq!(birth.len(), 288);
    assert_eq!(birth[32..36], 0xfff_u32.to_le_bytes(), "its birth is known");
    assert_eq!(birth[112..120], 1000_u64.to_le_bytes());
    let birth = client.call(opcode::STATX, file, u64s(&[0, 0, 0])).unwrap();
    assert_eq!(birth[32..36], 0x7ff_u32.to_le_bytes(), "the host's is not");
}

#[test]
fn times_that_the_guest_sets_reach_the_host() {
    let outer = folder();
    let mut client = client(&outer);
    let file = client.at("file");
    let times = to(|s| (s.accessed, s.modified) = (88 * SECOND + 1, 99 * SECOND + 2));
    let set = client.set(file, ACCESSED | MODIFIED, &times).unwrap();
    assert_eq!((set.accessed, set.modified), (88 * SECOND + 1, 99 * SECOND + 2));
    let path = outer.path().join("shared/file");
    let host = fs::metadata(&path).unwrap().modified().unwrap();
    assert_eq!(host, UNIX_EPOCH + Duration::new(99, 2));
    assert_eq!(client.stat(file).unwrap().modified, 99 * SECOND + 2);
    client.nanos = 7;
    let now = client.set(file, MODIFIED | MODIFIED_NOW, &times).unwrap();
    assert_eq!(now.modified, 1000 * SECOND + 7);
}

/// The guest drops what it has cached of a file only if somebody else changed it.
#[test]
fn changes_on_the_host_are_seen() {
    let outer = folder();
    let path = outer.path().join("shared/file");
    let mut client = client(&outer);
    let file = client.at("file");
    assert!(client.open_kept(file, 0).unwrap().1);
    let handle = client.open(file, READ_WRITE).unwrap();
    client.write(handle, 0, b"HELLO").unwrap();
    assert!(client.open_kept(file, 0).unwrap().1, "its own change");
    fs::write(&path, "changed").unwrap();
    age(&path, 55);
    let stat = client.stat(file).unwrap();
    assert_eq!((stat.size, stat.modified), (7, 55 * SECOND));
    assert!(!client.open_kept(file, 0).unwrap().1, "the host's");
    assert!(client.open_kept(file, 0).unwrap().1, "once");
}

#[test]
fn owners_and_special_bits_are_the_guests() {
    let outer = folder();
    let mut client = client(&outer);
    let file = client.at("file");
    let set = client.set(file, 1 | 2 | 4, &to(|s| (s.mode, s.owner) = (0o6755, (5, 6)))).unwrap();
    assert_eq!((set.mode, set.owner), (0o106_755, (5, 6)));
    let path = outer.path().join("shared/file");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode(), 0o100_755);
    let chown = client.set(file, 2 | KILL, &to(|s| s.owner = (8, 8))).unwrap();
    assert_eq!((chown.mode, chown.owner), (0o100_755, (8, 6)));
    client.set(file, MODE, &to(|s| s.mode = 0o4755)).unwrap();
    let handle = client.open(file, READ_WRITE).unwrap();
    client.write(handle, 0, b"x").unwrap();
    assert_eq!(client.stat(file).unwrap().mode, 0o104_755, "by root");
    client.write_as(handle, 0, b"x", 1 << 2).unwrap();
    assert_eq!(client.stat(file).unwrap().mode, 0o100_755, "by another");

    let sub = client.at("sub");
    client.set(sub, 1 | 4, &to(|s| (s.mode, s.owner) = (0o2775, (0, 50)))).unwrap();
    let below = client.mkdir(sub, b"below", 0o755).unwrap();
    assert_eq!((below.mode, below.owner), (0o042_755, (OWNER.0, 50)));
    let (made, _) = client.create(sub, b"made", READ_WRITE, 0o600).unwrap();
    assert_eq!((made.mode, made.owner), (0o100_600, (OWNER.0, 50)));
}
