//! Extended attributes.

use super::*;

const CREATE: u32 = 1;
const REPLACE: u32 = 2;

fn list(client: &mut Client, node: u64) -> Vec<u8> {
    client.call(opcode::LISTXATTR, node, u32s(&[1000, 0])).unwrap()
}

#[test]
fn are_set_listed_and_removed() {
    let outer = folder();
    let mut client = client(&outer);
    let file = client.at("file");
    assert_eq!(list(&mut client, file), b"");
    // The second is never on the host: its user may not set it.
    for name in [&b"user.a"[..], b"trusted.overlay.opaque"] {
        assert_eq!(client.get_extended(file, name, 9), Err(ENODATA));
        assert_eq!(client.set_extended(file, name, b"v", REPLACE), Err(ENODATA));
        client.set_extended(file, name, b"value", CREATE).unwrap();
        assert_eq!(client.set_extended(file, name, b"v", CREATE), Err(EEXIST));
        assert_eq!(client.get_extended(file, name, 5).unwrap(), b"value");
        assert_eq!(client.get_extended(file, name, 4), Err(ERANGE));
        let size = client.get_extended(file, name, 0).unwrap();
        assert_eq!(size, [5, 0, 0, 0, 0, 0, 0, 0]);
        client.set_extended(file, name, b"", 0).unwrap();
        assert_eq!(client.get_extended(file, name, 5).unwrap(), b"");
    }
    let both = b"trusted.overlay.opaque\0user.a\0";
    assert_eq!(list(&mut client, file), both);
    let short = client.call(opcode::LISTXATTR, file, u32s(&[5, 0]));
    assert_eq!(short, Err(ERANGE));
    for name in [&b"user.a"[..], b"trusted.overlay.opaque"] {
        client.remove(opcode::REMOVEXATTR, file, name).unwrap();
        assert_eq!(client.remove(opcode::REMOVEXATTR, file, name), Err(ENODATA));
    }
    let acl = client.set_extended(file, b"system.posix_acl_access", b"x", 0);
    assert_eq!(acl, Err(EOPNOTSUPP));
    let huge = vec![1; 65_000];
    for n in 0..40 {
        let _ = client.set_extended(file, format!("trusted.{n}").as_bytes(), &huge, 0);
    }
    let most: usize = 64 << 10;
    let held = client.server.attributes.get(file).unwrap().extended.values();
    assert!(held.map(Vec::len).sum::<usize>() <= most);
}

#[test]
fn users_own_are_on_the_host_if_it_has_them() {
    let outer = folder();
    let path = outer.path().join("shared/file");
    let mut client = client(&outer);
    let file = client.at("file");
    client.set_extended(file, b"user.note", b"text", 0).unwrap();
    let mut value = [0; 9];
    match rustix::fs::getxattr(&path, "user.note", &mut value[..]) {
        Ok(length) => assert_eq!(&value[..length], b"text"),
        Err(error) => {
            assert_eq!(error, Errno::OPNOTSUPP);
            assert_eq!(client.get_extended(file, b"user.note", 9).unwrap(), b"text");
        }
    }
}
