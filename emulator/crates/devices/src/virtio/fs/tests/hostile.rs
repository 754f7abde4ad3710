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
        client.server.serve(Request {
            queue: 0,
            bytes: &bytes,
            room: 0,
            nanos: 0,
        });
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
            let request = Request {
                queue: 1,
                bytes: &bytes,
                room: 4096,
                nanos: 0,
            };
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
