//! Reading, writing, and everything else about contents.

use super::*;

#[test]
fn files_are_read_and_written() {
    let outer = folder();
    let mut client = client(&outer);
    let file = client.at("file");
    let handle = client.open(file, 0).unwrap();
    assert_eq!(client.read(handle, 1, 3).unwrap(), b"ell");
    assert_eq!(client.read(handle, 5, 3).unwrap(), b"");
    assert_eq!(client.read(handle, u64::MAX, 3).unwrap(), b"");
    assert_eq!(client.write(handle, 0, b"x"), Err(EBADF), "open for reading only");
    client.release(handle).unwrap();
    assert_eq!(client.read(handle, 0, 1), Err(EBADF));
    assert_eq!(client.open(ROOT, 0), Err(EISDIR));
    let handle = client.open(file, READ_WRITE | TRUNCATE).unwrap();
    assert_eq!(client.write(handle, 3, b"data"), Ok(4));
    assert_eq!(client.read(handle, 0, 100).unwrap(), b"\0\0\0data");
    let path = outer.path().join("shared/file");
    assert_eq!(fs::read(&path).unwrap(), b"\0\0\0data", "at once on the host");
    assert_eq!(client.stat(file).unwrap().size, 7);
    client.set(file, SIZE, &to(|s| s.size = 2)).unwrap();
    assert_eq!(fs::read(&path).unwrap(), [0, 0]);
    assert!(client.call(opcode::FSYNC, file, u64s(&[handle, 0])).is_ok());
}

#[test]
fn creating_opens_what_its_mode_forbids() {
    let outer = folder();
    let mut client = client(&outer);
    let (made, handle) = client.create(ROOT, b"new", READ_WRITE, 0o4444).unwrap();
    assert_eq!((made.mode, made.owner), (0o104_444, OWNER));
    assert_eq!(client.write(handle, 0, b"data"), Ok(4));
    let host = fs::metadata(outer.path().join("shared/new")).unwrap();
    assert_eq!(host.mode(), 0o100_444, "special bits stay here");
    let exclusive = client.create(ROOT, b"new", READ_WRITE | EXCLUSIVE, 0o644);
    assert_eq!(exclusive, Err(EEXIST));
    let again = client.create(ROOT, b"new", 0, 0o644).unwrap();
    assert_eq!((again.0.number, again.0.size), (made.number, 4));
}

#[test]
fn removed_and_nameless_files_live_on_while_open() {
    let outer = folder();
    let mut client = client(&outer);
    let (made, handle) = client.create(ROOT, b"gone", READ_WRITE, 0o600).unwrap();
    client.remove(opcode::UNLINK, ROOT, b"gone").unwrap();
    assert_eq!(client.write(handle, 0, b"hi"), Ok(2));
    assert_eq!(client.read(handle, 0, 9).unwrap(), b"hi");
    let number = made.number;
    let changed = client.set(number, MODE, &to(|s| s.mode = 0o100_644)).unwrap();
    assert_eq!((changed.mode, changed.links, changed.size), (0o100_644, 0, 2));
    assert_eq!(client.set(number, SIZE, &to(|_| ())).unwrap().size, 0);

    let body = u32s(&[READ_WRITE, 0o100_640, 0, 0]).name(b"/");
    let Ok(reply) = client.call(opcode::TMPFILE, ROOT, body) else {
        return; // The host's file system has no such files.
    };
    let made = super::super::client::entry(&reply);
    assert_eq!((made.links, made.mode, made.owner), (0, 0o100_640, OWNER));
    let handle = Reader::new(&reply[128..]).u64().unwrap();
    assert_eq!(client.write(handle, 0, b"text"), Ok(4));
    assert_eq!(client.list(ROOT, 4096).unwrap().len(), 7);
    assert_eq!(client.link(made.number, ROOT, b"named").unwrap().links, 1);
    let path = outer.path().join("shared/named");
    assert_eq!(fs::read_to_string(path).unwrap(), "text");
}

#[test]
fn sparse_files_of_more_than_four_gigabytes() {
    const FAR: u64 = 5 << 30;
    let outer = folder();
    let mut client = client(&outer);
    let (made, handle) = client.create(ROOT, b"sparse", READ_WRITE, 0o600).unwrap();
    assert_eq!(client.write(handle, FAR, b"end"), Ok(3));
    assert_eq!(client.stat(made.number).unwrap().size, FAR + 3);
    assert_eq!(client.read(handle, FAR - 1, 9).unwrap(), b"\0end");
    let mut seek = |offset: u64, whence: u32| {
        let reply = client.call(opcode::LSEEK, 0, u64s(&[handle, offset]).u32s(&[whence, 0]));
        reply.map(|reply| Reader::new(&reply).u64().unwrap())
    };
    let data = seek(0, 3).unwrap();
    // A file system without holes has data everywhere.
    assert!(data == 0 || (FAR - (1 << 20)..=FAR).contains(&data), "{data}");
    assert_eq!(seek(FAR, 4), Ok(FAR + 3));
    assert_eq!(seek(FAR + 3, 3), Err(ENXIO));
    assert_eq!(seek(0, 0), Err(EINVAL));
    assert_eq!(seek(u64::MAX, 3), Err(ENXIO));
}

#[test]
fn space_is_allocated_punched_and_zeroed() {
    const PUNCH: u32 = 3;
    let outer = folder();
    let mut client = client(&outer);
    let (made, handle) = client.create(ROOT, b"new", READ_WRITE, 0o600).unwrap();
    let mut allocate = |offset: u64, length: u64, mode: u32| {
        let body = u64s(&[handle, offset, length]).u32s(&[mode, 0]);
        client.call(opcode::FALLOCATE, made.number, body).map(drop)
    };
    match allocate(0, 8192, 0) {
        Err(EOPNOTSUPP) => return, // The host's file system cannot.
        done => done.unwrap(),
    }
    assert_eq!(allocate(4096, 0, 0), Err(EINVAL));
    assert!(allocate(0, u64::MAX, 0).is_err());
    assert!(allocate(u64::MAX, 1, 0).is_err());
    assert_eq!(client.stat(made.number).unwrap().size, 8192);
    client.write(handle, 0, &[7; 8192]).unwrap();
    let body = u64s(&[handle, 0, 4096]).u32s(&[PUNCH, 0]);
    if client.call(opcode::FALLOCATE, made.number, body).is_ok() {
        assert_eq!(client.read(handle, 4095, 2).unwrap(), [0, 7]);
    }
}

/// The guest gets the host's error, not less nor more, for what the host has no room for.
#[test]
fn a_full_disk_is_the_guests_error() {
    const ENOSPC: i32 = 28;
    const EFBIG: i32 = 27;
    let outer = folder();
    let mut client = client(&outer);
    let (_, handle) = client.create(ROOT, b"big", READ_WRITE, 0o600).unwrap();
    let body = u64s(&[handle, 0, 1 << 50]).u32s(&[0, 0]);
    let error = client.call(opcode::FALLOCATE, 0, body).unwrap_err();
    assert!([ENOSPC, EFBIG, EOPNOTSUPP].contains(&error), "{error}");
    assert_eq!(client.write(handle, 1 << 62, b"xx"), Err(EFBIG));
    assert_eq!(client.write(handle, u64::MAX, b"xx"), Err(EFBIG));
    assert_eq!(client.write(handle, 0, b"fits"), Ok(4), "the server goes on");
    // `/dev/full` is no file that a guest can open: here the host's kernel says it.
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    assert_eq!(super::super::operations::content::write_at(&full, b"x", 0), Err(Errno::NOSPC));
}

#[test]
fn the_host_copies_ranges() {
    let outer = folder();
    let mut client = client(&outer);
    let file = client.at("file");
    let from = client.open(file, 0).unwrap();
    let (made, to) = client.create(ROOT, b"copy", READ_WRITE, 0o600).unwrap();
    let body = u64s(&[from, 1, made.number, to, 2, u64::MAX, 0]);
    let copied = match client.call(opcode::COPY_FILE_RANGE, file, body) {
        Err(EOPNOTSUPP) => return, // The guest copies by itself.
        copied => copied.unwrap(),
    };
    assert_eq!(copied, [4, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(client.read(to, 0, 9).unwrap(), b"\0\0ello");
    let onto_reader = u64s(&[to, 0, file, from, 0, 4, 0]);
    assert_eq!(client.call(opcode::COPY_FILE_RANGE, made.number, onto_reader), Err(EBADF));
}
