//! The guest's files, made up, for tests of what names code by them.

use std::fs;

/// A root folder with `/usr/bin/quickstart`: `tests/inlined.elf`.
pub fn guest_root() -> tempfile::TempDir {
    let root = tempfile::tempdir().expect("a temporary folder");
    let bin = root.path().join("usr/bin");
    fs::create_dir_all(&bin).expect("a folder");
    let elf: &[u8] = include_bytes!("tests/inlined.elf");
    fs::write(bin.join("quickstart"), elf).expect("a file");
    root
}
