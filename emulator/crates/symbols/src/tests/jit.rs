//! Code that was made at run time.

use std::fs;
use std::path::Path;

use super::super::*;
use super::small_elf::{FUNC, SmallElf};
use super::symbolizer;

fn jit(pid: u32, address: u64, raw: u32) -> Place {
    Place::Jit {
        pid,
        address,
        code: Some(Code { raw, len: 4 }),
        otherwise: Box::new(Place::file("//anon", None, address)),
    }
}

fn labels(root: &Path, places: &[Place]) -> (Vec<String>, Vec<String>) {
    let symbols = symbolizer(root).resolve(places);
    let labels = (0..places.len()).map(|n| symbols.label(n)).collect();
    (labels, symbols.warnings)
}

#[test]
fn a_map_names_its_process_and_the_last_line_of_an_address_holds() {
    let root = tempfile::tempdir().unwrap();
    let map = b"7f001000 20 old\n7f001000 20 LazyCompile:~f a.js:1\n0x7f002000 0x10 cold;<b> \"x\"\nnonsense\n\
        7f003000 10 bad\x01\xff\xfename\r\n7f004000 10 \n";
    fs::write(root.path().join("perf-77.map"), map).unwrap();
    let places = [
        jit(77, 0x7f00_1000, 1),
        jit(77, 0x7f00_101f, 1),
        jit(77, 0x7f00_1020, 1),
        jit(77, 0x7f00_2004, 1),
        jit(77, 0x7f00_3000, 1),
        jit(77, 0x7f00_4000, 1),
    ];
    let (labels, warnings) = labels(root.path(), &places);
    assert_eq!(
        labels,
        [
            "LazyCompile:~f a.js:1",
            "LazyCompile:~f a.js:1+0x1f",
            "anon+0x7f001020",
            "cold;<b> \"x\"+0x4",
            "bad\u{fffd}\u{fffd}\u{fffd}name",
            "perf-77.map+0x7f004000",
        ]
    );
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].contains("lines that were not read: 1 (expected START SIZE NAME"),
        "{warnings:?}"
    );
}

/// V8's builtins are in node's file, and no symbol of the file covers them.
#[test]
fn a_map_names_code_of_a_file_that_has_no_symbol() {
    let root = tempfile::tempdir().unwrap();
    let elf = SmallElf::new(vec![("known", 0x11000, 0x10, FUNC)]).bytes();
    fs::create_dir(root.path().join("bin")).unwrap();
    fs::write(root.path().join("bin/node"), elf).unwrap();
    let map = b"7f001000 10 other\n7f001040 10 Builtin:Add\n";
    fs::write(root.path().join("perf-77.map"), map).unwrap();
    // Another process of the program, with the same in another order, and more.
    let map = b"7f001080 10 Builtin:Sub\n7f001040 10 Builtin:Add\n";
    fs::write(root.path().join("perf-79.map"), map).unwrap();
    let at = |pid: u32, within: u64| Place::File {
        path: "/bin/node".into(),
        build_id: None,
        offset: 0x1000 + within,
        code: None,
        mapped: Mapped(Some((pid, 0x7f00_1000 + within))),
    };
    let places = [
        at(77, 4),
        at(77, 0x40),
        at(77, 0x44),
        at(77, 0x60),
        at(78, 0x44),
        at(79, 0x84),
        at(79, 0x48),
    ];
    assert_eq!(places[2], at(78, 0x44));
    let symbols = symbolizer(root.path()).resolve(&places);
    let labels: Vec<_> = (0..places.len()).map(|n| symbols.label(n)).collect();
    // A symbol comes first; another process has no map.
    assert_eq!(
        labels,
        [
            "known+0x4",
            "Builtin:Add",
            "Builtin:Add+0x4",
            "node+0x11060",
            "node+0x11044",
            "Builtin:Sub+0x4",
            "Builtin:Add+0x8",
        ]
    );
    let builtin = &symbols.locations[2];
    assert_eq!(builtin.offset, 0x11044);
    assert_eq!(builtin.function, symbols.locations[6].function);
    assert_eq!(&*symbols.module(builtin.module).path, "/bin/node");
}

#[test]
fn a_map_is_found_below_tmp_and_a_very_long_name_is_cut() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("tmp")).unwrap();
    let map = format!("1000 10 {}\n", "x".repeat(100_000));
    fs::write(root.path().join("tmp/perf-5.map"), map).unwrap();
    fs::write(root.path().join("tmp/perf-x5.map"), "1000 10 wrong\n").unwrap();
    let (labels, _) = labels(root.path(), &[jit(5, 0x1000, 1)]);
    assert_eq!(labels, ["x".repeat(1000)]);
}

/// In a process namespace, and after a fork, the name of the file is another number.
#[test]
fn the_only_map_that_has_the_code_is_used_and_told() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("perf-1.map"), "1000 10 inside\n").unwrap();
    fs::write(root.path().join("perf-2.map"), "9000 10 elsewhere\n").unwrap();
    let (found, warnings) = labels(root.path(), &[jit(99, 0x1000, 1)]);
    assert_eq!(found, ["inside"]);
    assert!(warnings[0].contains("process 99 has no perf-99.map"), "{warnings:?}");
    // Two that have it: nobody knows which.
    fs::write(root.path().join("perf-3.map"), "1000 10 other\n").unwrap();
    assert_eq!(labels(root.path(), &[jit(99, 0x1000, 1)]).0, ["anon+0x1000"]);
}

/// A jitdump file, record by record.
struct Dump(Vec<u8>);

impl Dump {
    fn new() -> Self {
        let mut bytes = Vec::new();
        for word in [0x4A69_5444u32, 1, 40, 243, 0, 77] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend([0; 16]);
        Self(bytes)
    }

    fn record(mut self, kind: u32, body: &[u8]) -> Self {
        self.0.extend(kind.to_le_bytes());
        self.0.extend((16 + body.len() as u32).to_le_bytes());
        self.0.extend([0; 8]);
        self.0.extend(body);
        self
    }

    fn load(self, start: u64, index: u64, name: &[u8], code: &[u32]) -> Self {
        let mut body = [77u32, 77].map(u32::to_le_bytes).concat();
        for word in [start, start, 4 * code.len() as u64, index] {
            body.extend(word.to_le_bytes());
        }
        body.extend(name);
        body.push(0);
        body.extend(code.iter().flat_map(|word| word.to_le_bytes()));
        self.record(0, &body)
    }

    fn moved(self, from: u64, to: u64, size: u64, index: u64) -> Self {
        let mut body = [77u32, 77].map(u32::to_le_bytes).concat();
        for word in [to, from, to, size, index] {
            body.extend(word.to_le_bytes());
        }
        self.record(1, &body)
    }

    fn lines(self, start: u64, lines: &[(u64, u32, &[u8])]) -> Self {
        let mut body = [start, lines.len() as u64].map(u64::to_le_bytes).concat();
        for (address, line, file) in lines {
            body.extend(address.to_le_bytes());
            body.extend([*line, 0].map(u32::to_le_bytes).concat());
            body.extend(*file);
            body.push(0);
        }
        self.record(2, &body)
    }
}

fn sample() -> Dump {
    Dump::new()
        .lines(0x1000, &[(0x1000, 7, b"f.js"), (0x1008, 8, b"\xff")])
        .load(0x1000, 1, b"first", &[11, 12, 13, 14])
        .load(0x1000, 2, b"second", &[21, 22, 23, 24])
        .load(0x2000, 3, b"_ZN3jit5movedEv", &[31, 32])
        .moved(0x2000, 0x3000, 8, 3)
        .record(4, &[0; 24])
        .record(3, &[])
}

#[test]
fn jitdump_tells_code_of_one_address_apart_by_what_was_executed() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("jit-77.dump"), sample().0).unwrap();
    let places = [
        jit(77, 0x1008, 13),
        jit(77, 0x1008, 23),
        // Changed in place after it was loaded: the last one there.
        jit(77, 0x1008, 99),
        jit(77, 0x2004, 32),
        jit(77, 0x3004, 32),
    ];
    let symbols = symbolizer(root.path()).resolve(&places);
    let labels: Vec<String> = (0..places.len()).map(|n| symbols.label(n)).collect();
    assert_eq!(
        labels,
        ["first+0x8", "second+0x8", "second+0x8", "jit::moved()+0x4", "jit::moved()+0x4"]
    );
    let source = symbols.locations[0].source.as_ref().unwrap();
    assert_eq!((&*source.file, source.line), ("f.js", 8));
    assert_eq!(symbols.warnings, [""; 0]);
}

#[test]
fn a_jitdump_of_a_killed_program_names_what_it_has() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("jit-77.dump");
    let whole = sample().0;
    for len in 0..whole.len() {
        fs::write(&file, &whole[..len]).unwrap();
        let (labels, _) = labels(root.path(), &[jit(77, 0x1000, 11)]);
        assert_eq!(labels.len(), 1);
    }
    fs::write(&file, &whole[..whole.len() - 50]).unwrap();
    let (labels, warnings) = labels(root.path(), &[jit(77, 0x1000, 11)]);
    assert_eq!(labels, ["first"]);
    assert!(warnings[0].contains("cut off"), "{warnings:?}");
}

#[test]
fn damaged_jitdumps_do_no_harm() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("jit-77.dump");
    let whole = sample().0;
    for at in 0..whole.len() {
        for value in [0, 0xff, 0x80] {
            let mut bytes = whole.clone();
            bytes[at] = value;
            fs::write(&file, &bytes).unwrap();
            let places = [jit(77, 0x1000, 11), jit(77, u64::MAX, 1)];
            assert_eq!(labels(root.path(), &places).0.len(), 2);
        }
    }
}
