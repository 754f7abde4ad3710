//! Guests that send anything.

use super::*;

#[test]
fn messages_do_no_harm() {
    let outer = folder();
    let mut random = SplitMix64::new(4);
    let names: [&[u8]; 7] = [b"file", b"sub", b"..", b".", b"link", b"x", b"\xff/"];
    for _ in 0..60 {
        let mut client = client(&outer);
        for _ in 0..4 {
            let _ = client.lookup(ROOT, names[random.next_u64() as usize % 7]);
            let _ = client.open(random.next_u64() % 8, random.next_u64() as u32);
        }
        for _ in 0..200 {
            let code = (random.next_u64() % 56) as u32;
            let mut body = Body::default();
            for _ in 0..random.next_u64() % 8 {
                body = match random.next_u64() % 4 {
                    0 => body.u32s(&[(random.next_u64() % 5) as u32]),
                    1 => body.name(names[random.next_u64() as usize % 7]),
                    2 => body.u64s(&[random.next_u64() >> (random.next_u64() % 64)]),
                    _ => body.u64s(&[random.next_u64() % 8]),
                };
            }
            // Nobody's disk is to be filled by a test.
            if code != opcode::FALLOCATE {
                let room = random.next_u64() as usize % 400;
                let reply = client.send(code, random.next_u64() % 8, body, room);
                assert!(reply.len() <= room.max(REPLY_HEADER));
            }
        }
        let length = random.next_u64() as usize % 64;
        let bytes = random.bytes(length);
        client.server.serve(Request { queue: 0, bytes: &bytes, room: 0, nanos: 0 });
    }
    let secret = outer.path().join("secret");
    assert_eq!(fs::read_to_string(secret).unwrap(), "secret");
    assert_eq!(fs::read_dir(outer.path()).unwrap().count(), 2);
}

#[test]
fn lengths_that_lie_are_refused() {
    let outer = folder();
    let mut client = client(&outer);
    let whole = message(opcode::LOOKUP, ROOT, OWNER, b"file\0");
    for length in 0..whole.len() {
        let mut cut = whole.clone();
        cut.truncate(length);
        let mut lies = whole.clone();
        lies[..4].copy_from_slice(&(length as u32).to_le_bytes());
        for bytes in [cut, lies] {
            let request = Request { queue: 1, bytes: &bytes, room: 4096, nanos: 0 };
            let reply = client.server.serve(request).unwrap();
            assert!(reply.len() <= REPLY_HEADER, "no file was found");
        }
    }
}

#[test]
fn a_deep_tree_can_be_let_go() {
    let outer = folder();
    let mut client = client(&outer);
    let mut node = ROOT;
    for _ in 0..400 {
        node = client.mkdir(node, b"d", 0o755).unwrap().number;
    }
    client.call(opcode::INIT, 0, init()).unwrap();
    assert_eq!(client.stat(node), Err(ESTALE));
}

/// Sets the mask of file permissions of the test's process. The mask is the process's, not the thread's: while it is another one no other
/// test may create files, so that the test of it runs in a process of its own.
fn with_umask(mask: u32, test: &str) {
    let binary = std::env::current_exe().unwrap();
    let script = format!("umask {mask:03o}; exec \"$0\" --exact {test}");
    let output =
        std::process::Command::new("sh").args(["-c", &script]).arg(binary).output().unwrap();
    assert!(output.status.success(), "umask {mask:o}: {output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("1 passed"), "{text}");
}

const MODES_TEST: &str = "virtio::fs::tests::hostile::modes_are_those_that_the_guest_asks_for";

#[test]
fn the_hosts_umask_is_not_the_guests() {
    for mask in [0, 0o077, 0o777] {
        with_umask(mask, MODES_TEST);
    }
}

#[test]
fn modes_are_those_that_the_guest_asks_for() {
    let outer = tempfile::tempdir().unwrap();
    let mode = |path: &str, mode| {
        let path = outer.path().join(path);
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    mode("", 0o755);
    fs::create_dir(outer.path().join("shared")).unwrap();
    mode("shared", 0o755);
    let mut client = client(&outer);
    let (file, handle) = client.create(ROOT, b"made", READ_WRITE, 0o6751).unwrap();
    client.write(handle, 0, b"text").unwrap();
    let folder = client.mkdir(ROOT, b"folder", 0o3775).unwrap();
    let node = client.mknod(ROOT, b"node", 0o100_640, 0).unwrap();
    let device = client.mknod(ROOT, b"device", 0o060_666, 0x800).unwrap();
    let shown = [&file, &folder, &node, &device].map(|stat| stat.mode);
    assert_eq!(shown, [0o106_751, 0o043_775, 0o100_640, 0o060_666]);
    let body = u32s(&[READ_WRITE, 0o100_604, 0, 0]).name(b"");
    // Not every file system has files without names.
    if let Ok(reply) = client.call(opcode::TMPFILE, ROOT, body) {
        let unnamed = super::super::client::entry(&reply);
        assert_eq!(unnamed.mode, 0o100_604);
        client.link(unnamed.number, ROOT, b"unnamed").unwrap();
        let found = fs::symlink_metadata(outer.path().join("shared/unnamed")).unwrap();
        assert_eq!(found.mode(), 0o100_604);
    }
    // The host's files have neither special bits nor kinds.
    for (name, expected) in
        [("made", 0o100_751), ("folder", 0o040_775), ("node", 0o100_640), ("device", 0o100_666)]
    {
        let found = fs::symlink_metadata(outer.path().join("shared").join(name)).unwrap();
        assert_eq!(found.mode(), expected, "{name}");
    }
}

#[test]
fn a_program_of_the_hosts_user_does_not_get_the_guests_content() {
    let outer = folder();
    let path = outer.path().join("shared/file");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o6755)).unwrap();
    let mut client = client(&outer);
    let file = client.at("file");
    let handle = client.open(file, 0).unwrap();
    client.release(handle).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o6755, "only read");
    let handle = client.open(file, WRITE_ONLY).unwrap();
    client.write(handle, 0, b"guest").unwrap();
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o755);
    // Special bits that the guest itself sets are kept for the guest, and not given to the host's file.
    assert_eq!(client.set(file, MODE, &to(|s| s.mode = 0o7777)).unwrap().mode & 0o7777, 0o7777);
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o777);
}

#[test]
fn listings_and_attributes_take_so_much_of_the_hosts_memory() {
    let outer = folder();
    let mut client = client(&outer);
    let big = client.mkdir(ROOT, b"big", 0o755).unwrap().number;
    for n in 0..1000 {
        let name = format!("{n:0200}");
        client.mknod(big, name.as_bytes(), 0o100_644, 0).unwrap();
    }
    let listed = |client: &mut Client| {
        let reply = client.call(opcode::OPENDIR, big, u32s(&[0, 0])).unwrap();
        let handle = Reader::new(&reply).u64().unwrap();
        let body = u64s(&[handle, 0]).u32s(&[4096, 0]).u64s(&[0]).u32s(&[0, 0]);
        client.call(opcode::READDIR, big, body).map(|_| handle)
    };
    // Each takes a quarter of a megabyte.
    let handles: Vec<_> = (0..10).map(|_| listed(&mut client)).collect();
    let open = handles.iter().filter(|handle| handle.is_ok()).count();
    assert_eq!(open, 4);
    assert_eq!(handles[9], Err(ENFILE));
    client.release(handles[0].unwrap()).unwrap();
    let again = listed(&mut client).unwrap();
    assert_eq!(listed(&mut client), Err(ENFILE));
    client.release(again).unwrap();

    let value = vec![1; 60_000];
    let set = |client: &mut Client, name: &str| {
        let (made, handle) = client.create(ROOT, name.as_bytes(), READ_WRITE, 0o644).unwrap();
        client.release(handle).unwrap();
        let set = client.set_extended(made.number, b"trusted.x", &value, 0);
        client.forget(made.number, 1);
        set
    };
    assert_eq!(["a", "b", "c"].map(|name| set(&mut client, name)), [Ok(()), Ok(()), Err(ENOSPC)]);
    client.remove(opcode::UNLINK, ROOT, b"a").unwrap();
    assert_eq!(set(&mut client, "d"), Ok(()));
}
