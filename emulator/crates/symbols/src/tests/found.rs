//! Names that are found in unusual places: without symbols, in other encodings, in files inside of others.

use std::fs;

use super::super::*;
use super::small_elf::{FUNC, SmallElf};
use super::{symbolizer, tool};

/// A root with these bytes at a path.
fn root(path: &str, bytes: &[u8]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, bytes).unwrap();
    root
}

#[test]
fn a_stripped_file_without_unwind_tables_is_parted_by_its_calls() {
    let mut bytes = SmallElf::new(Vec::new()).bytes();
    // jal ra, +0x40 at 0x11010
    bytes[0x1010..0x1014].copy_from_slice(&0x0400_00ef_u32.to_le_bytes());
    let root = root("bin/tool", &bytes);
    let places = [0x1004, 0x1010, 0x1050, 0x1054].map(|at| Place::file("/bin/tool", None, at));
    let symbols = symbolizer(root.path()).resolve(&places);
    let names = symbols.locations.iter().map(|at| symbols.function(at.function));
    let names: Vec<&str> = names.map(|function| &*function.name).collect();
    assert_eq!(names, ["tool+0x11000", "tool+0x11000", "tool+0x11050", "tool+0x11050"]);
}

#[test]
fn a_name_in_another_encoding_is_a_name() {
    let symbols = vec![("cafX", 0x11000, 0x20, FUNC), ("tea", 0x11020, 0x20, FUNC)];
    let mut bytes = SmallElf::new(symbols).bytes();
    let at = bytes.windows(5).position(|name| name == b"cafX\0").unwrap();
    // An é in Latin-1, which is no UTF-8.
    bytes[at + 3] = 0xe9;
    let root = root("bin/tool", &bytes);
    let places = [0x1004, 0x1024].map(|at| Place::file("/bin/tool", None, at));
    let symbols = symbolizer(root.path()).resolve(&places);
    assert_eq!([symbols.label(0), symbols.label(1)], ["caf\u{e9}+0x4", "tea+0x4"]);
}

#[test]
fn libraries_are_found_in_archives_and_images() {
    let library = tool().bytes();
    let name = b"lib/libx.so";
    let mut archive = vec![0; 0x2000 - 30 - name.len()];
    archive.extend(b"PK\x03\x04");
    archive.extend([0; 22]);
    archive.extend((name.len() as u16).to_le_bytes());
    archive.extend([0; 2]);
    archive.extend(name);
    archive.extend(&library);
    archive.resize(0x8000, 0);
    // Another one, which the archive does not name.
    archive.extend(&library);
    let root = root("out/app.apk", &archive);
    let places =
        [0x2000 + 0x1004, 0x8000 + 0x1024, 0x1000].map(|at| Place::file("/out/app.apk", None, at));
    let symbols = symbolizer(root.path()).resolve(&places);
    assert_eq!([symbols.label(0), symbols.label(1)], ["first+0x4", "lib::second()+0x4"]);
    let modules = symbols.locations.iter().map(|at| &*symbols.module(at.module).path);
    assert_eq!(
        modules.collect::<Vec<_>>(),
        ["/out/app.apk!lib/libx.so", "/out/app.apk!0x8000", "/out/app.apk"]
    );
    // What is in none of them is told.
    let [warning] = &symbols.warnings[..] else {
        panic!("{:?}", symbols.warnings);
    };
    assert!(warning.contains("no ELF file is there; hand in the folder"), "{warning}");
}

#[test]
fn maps_are_found_wherever_a_container_left_them() {
    let shared = root("root/tmp/perf-77.map", b"7f001000 20 hot\n");
    let files = SymbolFiles {
        shared: vec![Shared { guest: "/out".to_owned(), host: shared.path().to_owned() }],
        ..SymbolFiles::default()
    };
    let made = |pid| Place::Jit {
        pid,
        address: 0x7f00_1004,
        code: Some(Code { raw: 1, len: 4 }),
        otherwise: Box::new(Place::file("//anon", None, 0)),
    };
    let symbols = Symbolizer::new(files).resolve(&[made(77)]);
    assert_eq!(symbols.label(0), "hot+0x4");
    assert!(symbols.warnings.is_empty(), "{:?}", symbols.warnings);
    let symbols = Symbolizer::default().resolve(&[made(78)]);
    let [warning] = &symbols.warnings[..] else {
        panic!("{:?}", symbols.warnings);
    };
    assert!(warning.contains("left no perf-78.map"), "{warning}");
}
