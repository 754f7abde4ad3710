//! Debug information outside the program. `forms/make` lists the commands that made the files.

use std::fs;
use std::path::{Path, PathBuf};

use super::super::*;
use super::symbolizer;

/// The folder of the prepared files.
pub(super) fn forms() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tests/forms")
}

/// File offset of the multiplication of `square`, in `sum_of_squares`, in `length`; without a build ID, and with one.
const MUL: u64 = 0xf8;
pub(super) const MUL_WITH_ID: u64 = 0x154;

/// A folder with these of the prepared files.
pub(super) fn with(files: &[&str]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for file in files {
        fs::copy(forms().join(file), root.path().join(file)).unwrap();
    }
    root
}

fn resolve(root: &Path, file: &str, offset: u64) -> Symbols {
    symbolizer(root).resolve(&[Place::file(&format!("/{file}"), None, offset)])
}

pub(super) fn inlined(symbols: &Symbols) -> Vec<(&str, u32)> {
    let line = |frame: &Frame| frame.call.as_ref().map_or(0, |call| call.line);
    let frames = symbols.locations[0].inlined.iter();
    frames.map(|f| (&*f.function, line(f))).collect()
}

pub(super) const SQUARE: [(&str, u32); 2] = [("square", 10), ("sum_of_squares", 15)];

#[test]
fn debug_information_in_every_form_names_inlined_functions() {
    for (files, offset) in [
        (&["split4.elf", "split4.dwo"][..], MUL),
        (&["split5.elf", "split5.dwo"], MUL),
        (&["packed4.elf", "packed4.elf.dwp"], MUL),
        (&["shared.elf", "common.dwz"], MUL_WITH_ID),
        (&["linked.elf", "linked.debug"], MUL),
        (&["zlib.elf"], MUL_WITH_ID),
        (&["zstd.elf"], MUL_WITH_ID),
        (&["zlib-gnu.elf"], MUL_WITH_ID),
    ] {
        let root = with(files);
        let symbols = resolve(root.path(), files[0], offset);
        assert_eq!(symbols.label(0), "length+0x10", "{files:?}");
        assert_eq!(inlined(&symbols), SQUARE, "{files:?}: {symbols:?}");
        assert_eq!(symbols.locations[0].source.as_ref().unwrap().line, 4);
        let expected = usize::from(files[0].contains("split") || files[0].contains("packed"));
        assert_eq!(symbols.warnings.len(), expected, "{files:?} {:?}", symbols.warnings);
    }
}

/// What GNU as writes for RISC-V: the functions of a `.dwo` file have starts, and no ends.
#[test]
fn inlined_functions_without_lengths_end_where_their_source_lines_do() {
    for version in ["4", "5"] {
        let (elf, dwo) = (format!("nested{version}.elf"), format!("nested{version}.dwo"));
        let root = with(&[&elf, &dwo]);
        let at = |offset| {
            let symbols = resolve(root.path(), &elf, offset);
            assert!(symbols.label(0).starts_with("work"), "{symbols:?}");
            let names = symbols.locations[0].inlined.iter();
            let names: Vec<String> = names.map(|f| f.function.to_string()).collect();
            let line = symbols.locations[0].source.as_ref().unwrap().line;
            (line, names.join(" in "), symbols.warnings.len())
        };
        for (offset, line, inlined) in [
            (0x120, 14, ""),
            (0x12e, 5, "add in add_and_mark"),
            (0x132, 5, "add in add_and_mark"),
            (0x134, 10, "add_and_mark"),
            (0x138, 10, "add_and_mark"),
            (0x13a, 14, ""),
        ] {
            let (found, names, warnings) = at(offset);
            assert_eq!((found, &*names), (line, inlined), "{offset:#x} {version}");
            assert_eq!(warnings, 1, "that it was told so");
        }
    }
}

#[test]
fn a_part_that_is_not_there_is_named_beside_its_module() {
    for (file, offset, words) in [
        ("split5.elf", MUL, "inlined functions are in split5.dwo or split5.elf.dwp: not found"),
        ("shared.elf", MUL_WITH_ID, "are in common.dwz (build ID "),
        ("linked.elf", MUL, "names and source lines are in linked.debug: not found"),
    ] {
        let root = with(&[file]);
        let symbols = resolve(root.path(), file, offset);
        let missing = &symbols.modules[0].missing;
        assert!(missing[0].contains(words), "{file}: {missing:?}");
        assert!(symbols.warnings[0].starts_with(&format!("/{file}: ")));
    }
}

#[test]
fn a_part_of_another_build_is_refused_and_named() {
    let root = with(&["linked.elf", "split5.elf", "shared.elf"]);
    fs::copy(forms().join("zlib.elf"), root.path().join("linked.debug")).unwrap();
    fs::copy(forms().join("split4.dwo"), root.path().join("split5.dwo")).unwrap();
    fs::copy(forms().join("zstd.elf"), root.path().join("common.dwz")).unwrap();
    for (file, offset, words) in [
        ("linked.elf", MUL, "linked.debug has checksum "),
        ("split5.elf", MUL, "split5.dwo is of another build"),
        ("shared.elf", MUL_WITH_ID, "common.dwz has build ID "),
    ] {
        let symbols = resolve(root.path(), file, offset);
        assert_eq!(symbols.locations[0].inlined.len(), if file == "shared.elf" { 2 } else { 0 });
        assert!(symbols.warnings[0].contains(words), "{:?}", symbols.warnings);
    }
}

#[test]
fn a_debug_file_lies_where_gdb_looks() {
    for place in [".debug/linked.debug", "usr/lib/debug/bin/linked.debug", "deep/er/linked.debug"] {
        let root = with(&[]);
        let (tool, debug) = (root.path().join("bin/linked.elf"), root.path().join(place));
        for file in [&tool, &debug] {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
        }
        fs::copy(forms().join("linked.elf"), &tool).unwrap();
        fs::copy(forms().join("linked.debug"), &debug).unwrap();
        let symbols = resolve(root.path(), "bin/linked.elf", MUL);
        assert_eq!(inlined(&symbols), SQUARE, "{place}");
    }
}

#[test]
fn damaged_parts_do_no_harm() {
    for (file, part, offset) in [
        ("split5.elf", "split5.dwo", MUL),
        ("packed4.elf", "packed4.elf.dwp", MUL),
        ("shared.elf", "common.dwz", MUL_WITH_ID),
        ("shared.elf", "shared.elf", MUL_WITH_ID),
    ] {
        let root = with(&[file, part]);
        let whole = fs::read(forms().join(part)).unwrap();
        for at in (0..whole.len()).step_by(7) {
            let mut bytes = whole.clone();
            bytes[at] ^= [0xff, 0x80, 0x01][at % 3];
            fs::write(root.path().join(part), &bytes).unwrap();
            assert_eq!(resolve(root.path(), file, offset).locations.len(), 1);
        }
    }
}
