//! Which file of the host is the one that the guest ran.

use std::fs;
use std::path::Path;

use super::super::*;
use super::small_elf::{self, SmallElf};

/// Two programs of equal layout without a build ID, whose instructions differ.
fn program(name: &'static str, word: u32) -> Vec<u8> {
    let elf = SmallElf::new(vec![(name, 0x11000, 0x40, small_elf::FUNC)]);
    let mut bytes = elf.bytes();
    let note = bytes.windows(20).position(|w| w == small_elf::BUILD_ID);
    // A note of another type is no build ID.
    bytes[note.unwrap() - 8] = 9;
    for at in (0x1000..0x1040).step_by(4) {
        bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

/// `addi a0,a0,1` and `addi a0,a0,2`.
const ONE: u32 = 0x0015_0513;
const TWO: u32 = 0x0025_0513;

/// What the guest executed of a file: the first instructions, all `word`.
fn executed(path: &str, word: u32, count: u64) -> Vec<Place> {
    let place = |n| Place::File {
        path: path.into(),
        build_id: None,
        offset: 0x1000 + 4 * n,
        code: Some(Code { raw: word, len: 4 }),
        mapped: Mapped::default(),
    };
    (0..count).map(place).collect()
}

fn put(root: &Path, path: &str, bytes: &[u8]) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

fn shared(guest: &str, host: &Path) -> Symbolizer {
    Symbolizer::new(SymbolFiles {
        shared: vec![Shared { guest: guest.to_owned(), host: host.to_owned() }],
        ..SymbolFiles::default()
    })
}

fn rooted(root: &Path) -> Symbolizer {
    Symbolizer::new(SymbolFiles { roots: vec![root.to_owned()], ..SymbolFiles::default() })
}

#[test]
fn another_file_of_the_same_path_is_refused_by_what_was_executed() {
    let root = tempfile::tempdir().unwrap();
    put(root.path(), "out/tool", &program("dig", TWO));
    let symbols = rooted(root.path()).resolve(&executed("/out/tool", ONE, 8));
    assert_eq!(symbols.label(0), "tool+0x1000");
    let [warning] = &symbols.warnings[..] else { panic!("{:?}", symbols.warnings) };
    assert!(
        warning.contains("8 of 8 executed instructions differ, at offset 0x1000 expected 00150513, found 00250513"),
        "{warning}"
    );
    assert_eq!(symbols.modules[0].missing.len(), 1);
}

#[test]
fn one_differing_instruction_is_another_file_but_a_breakpoint_is_not() {
    let root = tempfile::tempdir().unwrap();
    put(root.path(), "out/tool", &program("hot", ONE));
    let mut places = executed("/out/tool", ONE, 8);
    for (raw, label) in [(0x0010_0073, "hot"), (0, "hot"), (TWO, "tool+0x1000")] {
        places.truncate(8);
        places.extend(executed("/out/tool", raw, 1));
        let symbols = rooted(root.path()).resolve(&places);
        assert_eq!(symbols.label(0), label, "{raw:#x}: {:?}", symbols.warnings);
    }
}

#[test]
fn the_file_that_the_run_shared_is_used_and_the_guests_own_after_it() {
    let (host, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    put(host.path(), "tool", &program("hot", ONE));
    put(out.path(), "made", &program("made_by_the_guest", TWO));
    let given =
        |guest: &str, host: &Path| Shared { guest: guest.to_owned(), host: host.to_owned() };
    let symbolizer = Symbolizer::new(SymbolFiles {
        shared: vec![given("/out/tool", &host.path().join("tool")), given("/out", out.path())],
        ..SymbolFiles::default()
    });
    let mut places = executed("/out/tool", ONE, 4);
    places.extend(executed("/out/made", TWO, 4));
    // A name that the shared one begins like.
    places.extend(executed("/out/tool-2", ONE, 1));
    let symbols = symbolizer.resolve(&places);
    assert_eq!(symbols.label(0), "hot");
    assert_eq!(symbols.label(4), "made_by_the_guest");
    assert_eq!(symbols.label(8), "tool-2+0x1000");
}

#[test]
fn a_shared_folder_is_a_root_with_its_links() {
    let root = tempfile::tempdir().unwrap();
    put(root.path(), "usr/lib/real", &program("hot", ONE));
    std::os::unix::fs::symlink("/usr/lib/real", root.path().join("usr/absolute")).unwrap();
    std::os::unix::fs::symlink("lib/real", root.path().join("usr/relative")).unwrap();
    let by_share = shared("/out/system", root.path());
    for path in [
        "/out/system/usr/lib/real",
        "/out/system/usr/absolute",
        "/out/system/usr/relative",
        // Paths that a program sees after `chroot system`.
        "/usr/absolute",
        "/usr/lib/real",
    ] {
        assert_eq!(by_share.resolve(&executed(path, ONE, 8)).label(0), "hot", "{path}");
    }
    // Handed in as --debug-dir or guest.symbols, without a word of where it was.
    for path in
        ["/out/system/usr/lib/real", "/mnt/deep/usr/absolute", "/tmp/real", "/tmp/real (deleted)"]
    {
        let symbols = rooted(root.path()).resolve(&executed(path, ONE, 8));
        assert_eq!(symbols.label(0), "hot", "{path}: {:?}", symbols.warnings);
    }
}

#[test]
fn a_file_of_the_same_name_elsewhere_needs_proof() {
    let root = tempfile::tempdir().unwrap();
    put(root.path(), "a/tool", &program("wrong", TWO));
    put(root.path(), "b/tool", &program("hot", ONE));
    let label = |places: &[Place]| rooted(root.path()).resolve(places).label(0);
    assert_eq!(label(&executed("/tmp/tool", ONE, 8)), "hot");
    assert_eq!(label(&executed("/tmp/tool", ONE, 2)), "tool+0x1000");
    assert_eq!(label(&[Place::file("/tmp/tool", None, 0x1000)]), "tool+0x1000");
}

#[test]
fn names_with_spaces_and_strange_bytes() {
    use std::os::unix::ffi::OsStrExt;
    let root = tempfile::tempdir().unwrap();
    put(root.path(), "my tool;<b>", &program("hot", ONE));
    let strange = std::ffi::OsStr::from_bytes(b"t\xff\xfeol");
    fs::write(root.path().join(strange), program("strange", ONE)).unwrap();
    let symbolizer = shared("/out", root.path());
    for (path, label) in [("/out/my tool;<b>", "hot"), ("/out/t\u{fffd}\u{fffd}ol", "strange")] {
        assert_eq!(symbolizer.resolve(&executed(path, ONE, 8)).label(0), label);
    }
}

#[test]
fn what_no_file_backs_is_not_searched_for() {
    let root = tempfile::tempdir().unwrap();
    put(root.path(), "anon", &program("wrong", ONE));
    let symbols = rooted(root.path()).resolve(&executed("//anon", ONE, 8));
    assert_eq!(symbols.label(0), "anon+0x1000");
    assert!(symbols.warnings.is_empty());
}
