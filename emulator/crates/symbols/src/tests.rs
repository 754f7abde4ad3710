use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::*;

mod found;
mod jit;
mod parts;
mod right_file;
mod servers;
mod small_elf;
use small_elf::{FUNC, NOTYPE, OBJECT, SmallElf};

/// A root with one ELF file at `/bin/tool`.
fn root_with(elf: &SmallElf) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir_all(root.path().join("bin")).unwrap();
    fs::write(root.path().join("bin/tool"), elf.bytes()).unwrap();
    root
}

fn symbolizer(root: &Path) -> Symbolizer {
    Symbolizer::new(SymbolFiles { roots: vec![root.to_owned()], ..SymbolFiles::default() })
}

fn tool() -> SmallElf {
    // .text is at file offset 0x1000 and at address 0x11000, 0x100 bytes long.
    SmallElf::new(vec![
        ("first", 0x11000, 0x20, small_elf::FUNC),
        ("label_inside_first", 0x11008, 0, small_elf::NOTYPE),
        ("_ZN3lib6secondEv", 0x11020, 0x10, small_elf::FUNC),
        ("assembly", 0x11080, 0, small_elf::NOTYPE),
        ("$x", 0x11080, 0, small_elf::NOTYPE),
    ])
}

#[test]
fn functions_labels_and_gaps() {
    let root = root_with(&tool());
    let places: Vec<Place> = [0x1000, 0x101f, 0x1024, 0x1040, 0x10fe, 0x5000]
        .map(|offset| Place::file("/bin/tool", None, offset))
        .to_vec();
    let symbols = symbolizer(root.path()).resolve(&places);
    let labels: Vec<String> = (0..places.len()).map(|n| symbols.label(n)).collect();
    let expected = [
        "first",
        "first+0x1f",
        "lib::second()+0x4",
        "tool+0x11040",
        "assembly+0x7e",
        "tool+0x5000",
    ];
    assert_eq!(labels, expected);
    assert_eq!(symbols.locations[4].offset, 0x110fe);
    assert_eq!(symbols.modules.len(), 1);
    assert!(symbols.warnings.is_empty());
}

#[test]
fn data_objects_by_address() {
    let root = root_with(&SmallElf::new(vec![
        ("first", 0x11000, 0x20, FUNC),
        ("alias", 0x13000, 0x40, OBJECT),
        ("buffer", 0x13000, 0x40, OBJECT),
        ("end", 0x13040, 0, OBJECT),
        ("flag", 0x13044, 4, OBJECT),
    ]));
    let symbolizer = symbolizer(root.path());
    let place = Place::file("/bin/tool", None, 0x1010);
    let data = symbolizer.data_objects(&place).unwrap();
    assert_eq!(data.linked, 0x11010);
    let found = [0x11000, 0x13000, 0x1303f, 0x13040, 0x13047, 0x13048].map(|at| data.find(at));
    let expected = [None, Some(("alias", 0)), Some(("alias", 0x3f)), None, Some(("flag", 3)), None];
    assert_eq!(found, expected);
    let missing = Place::file("/bin/other", None, 0x1010);
    assert!(symbolizer.data_objects(&missing).is_none());
}

#[test]
fn the_build_id_must_match() {
    let root = root_with(&tool());
    let right = Some(BuildId(small_elf::BUILD_ID.to_vec()));
    let wrong = Some(BuildId(vec![1; 20]));
    let places = [
        Place::file("/bin/tool", right.clone(), 0x1000),
        Place::file("/bin/tool", wrong, 0x1000),
        Place::file("/moved/away", right, 0x1000),
    ];
    let symbols = symbolizer(root.path()).resolve(&places);
    assert_eq!(symbols.label(0), "first");
    assert_eq!(symbols.label(1), "tool+0x1000");
    assert_eq!(symbols.label(2), "first", "found by its build id");
    assert_eq!(symbols.warnings.len(), 1);
    assert!(symbols.warnings[0].contains("the guest ran 0101"), "{:?}", symbols.warnings);
}

#[test]
fn kernel_firmware_and_nothing() {
    let folder = root_with(&tool());
    let file = folder.path().join("bin/tool");
    let symbolizer = Symbolizer::new(SymbolFiles {
        kernel: Some(file.clone()),
        kernel_physical: Some(0x8020_0000),
        firmware: Some(file),
        ..SymbolFiles::default()
    });
    let symbols = symbolizer.resolve(&[
        Place::Kernel(0x11004),
        Place::KernelPhysical(0x8020_0004),
        Place::Firmware(0x11024),
        Place::Unknown(0x42),
        Place::file("[vdso]", None, 0x10),
    ]);
    let labels: Vec<String> = (0..5).map(|n| symbols.label(n)).collect();
    assert_eq!(
        labels,
        ["first+0x4", "first+0x4", "lib::second()+0x4", "[unknown]+0x42", "[vdso]+0x10"]
    );
    assert_eq!(symbols.locations[0].function, symbols.locations[1].function);
    assert_eq!(symbols.warnings, ["[vdso]: no symbols: no file found on the host"]);
}

#[test]
fn stripped_files_keep_names_in_gnu_debugdata() {
    let mut xz =
        lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(1)).unwrap();
    std::io::Write::write_all(&mut xz, &tool().bytes()).unwrap();
    let mut stripped = SmallElf::new(Vec::new());
    stripped.packed = xz.finish().unwrap();
    let label = |elf: &SmallElf| {
        let root = root_with(elf);
        symbolizer(root.path()).resolve(&[Place::file("/bin/tool", None, 0x1024)]).label(0)
    };
    assert_eq!(label(&stripped), "lib::second()+0x4");
    // Damaged: as if it were not there.
    let middle = stripped.packed.len() / 2;
    stripped.packed.truncate(middle);
    assert_eq!(label(&stripped), "tool+0x11024");
}

#[test]
fn a_label_of_a_stripped_file_does_not_reach_over_functions_without_names() {
    let symbols = vec![("label", 0x11010, 0, NOTYPE), ("sized", 0x11020, 8, FUNC)];
    let mut elf = SmallElf::new(symbols);
    let labels = |elf: &SmallElf| {
        let root = root_with(elf);
        let places = [0x1014, 0x1024].map(|at| Place::file("/bin/tool", None, at));
        let symbols = symbolizer(root.path()).resolve(&places);
        [0, 1].map(|n| symbols.label(n))
    };
    assert_eq!(labels(&elf), ["label+0x4", "sized+0x4"]);
    elf.dynamic = true;
    assert_eq!(labels(&elf), ["tool+0x11014", "sized+0x4"]);
}

#[test]
fn the_kernel_holds_the_vdso_between_two_symbols() {
    let symbols = |end| SmallElf::new(vec![("vdso_start", 0x11010, 0, 0), ("vdso_end", end, 0, 0)]);
    let mut bytes = symbols(0x11018).bytes();
    bytes[0x1010..0x1018].copy_from_slice(b"\x7fELF1234");
    let vdso = |bytes: &[u8]| embedded::vdso(&elf::Elf::parse(bytes).unwrap());
    assert_eq!(vdso(&bytes).as_deref(), Some(&b"\x7fELF1234"[..]));
    assert_eq!(vdso(&symbols(0x11008).bytes()), None, "ends before it starts");
    assert_eq!(vdso(&symbols(0x12000).bytes()), None, "ends after the section");
}

/// Never called: its address is what the test wants.
#[inline(never)]
fn outer(x: u64) -> u64 {
    inner(x) + 1
}

#[inline(always)]
fn inner(x: u64) -> u64 {
    std::hint::black_box(x).wrapping_mul(3)
}

/// `(path, file offset)` of an address of this very process.
fn own_place(address: u64) -> (String, u64) {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    for line in maps.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (from, to) = fields[0].split_once('-').unwrap();
        let [from, to, offset] = [from, to, fields[2]].map(|s| u64::from_str_radix(s, 16).unwrap());
        if (from..to).contains(&address) {
            return (fields[5].to_owned(), address - from + offset);
        }
    }
    panic!("{address:#x} is not mapped");
}

#[test]
fn source_lines_and_inlined_frames_of_this_program() {
    let (path, offset) = own_place(outer as *const () as u64);
    let places: Vec<Place> = (0..24).map(|n| Place::file(&path, None, offset + n)).collect();
    let symbols = symbolizer(Path::new("/")).resolve(&places);
    let function = symbols.function(symbols.locations[0].function);
    assert!(function.name.ends_with("tests::outer"), "{}", function.name);
    let source = symbols.locations[0].source.as_ref().unwrap();
    assert!(source.file.ends_with("symbols/src/tests.rs"), "{}", source.file);
    let inlined = symbols.locations.iter().flat_map(|l| &l.inlined);
    let frame = inlined.into_iter().find(|f| f.function.ends_with("tests::inner")).unwrap();
    assert!(frame.call.as_ref().unwrap().file.ends_with("symbols/src/tests.rs"));
}

#[test]
fn many_addresses_have_their_places() {
    let (path, offset) = own_place(outer as *const () as u64);
    let path: Arc<str> = path.into();
    let places: Vec<Place> = (0..200_000)
        .map(|n| Place::File {
            path: path.clone(),
            build_id: None,
            code: None,
            mapped: Mapped::default(),
            offset: offset + n,
        })
        .collect();
    let symbols = symbolizer(Path::new("/")).resolve(&places);
    assert_eq!(symbols.locations.len(), places.len());
}

/// Built from `inlined.c`, which lists the command.
const INLINED: &[u8] = include_bytes!("tests/inlined.elf");

#[test]
fn inlined_frames_of_riscv_code() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("inlined"), INLINED).unwrap();
    // The multiplication of `square`, in `sum_of_squares`, in `length`.
    let places = [Place::file("/inlined", None, MUL)];
    let symbols = symbolizer(root.path()).resolve(&places);
    let at = &symbols.locations[0];
    assert_eq!(symbols.label(0), "length+0x10");
    assert_eq!(at.source, Some(Source { file: "/src/inlined.c".into(), line: 4 }));
    let frames: Vec<(&str, u32)> =
        at.inlined.iter().map(|f| (&*f.function, f.call.as_ref().unwrap().line)).collect();
    assert_eq!(frames, [("square", 10), ("sum_of_squares", 15)]);
}

/// File offset of the `mul` in `inlined.elf`.
const MUL: u64 = 0x154;

/// `inlined.elf` without its symbol table.
fn stripped() -> Vec<u8> {
    let mut bytes = INLINED.to_vec();
    // The symbol table's section becomes one of unknown contents.
    let sections = u64::from_le_bytes(bytes[0x28..0x30].try_into().unwrap()) as usize;
    let count = bytes[0x3c] as usize;
    for header in (0..count).map(|n| sections + 64 * n) {
        if bytes[header + 4] == 2 {
            bytes[header + 4] = 1;
        }
    }
    bytes
}

#[test]
fn stripped_files_keep_the_bounds_of_functions() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("inlined"), stripped()).unwrap();
    let places = [0, 4].map(|n| Place::file("/inlined", None, MUL + n));
    let symbols = symbolizer(root.path()).resolve(&places);
    let function = symbols.function(symbols.locations[0].function);
    assert_eq!(&*function.name, "inlined+0x10144");
    assert!(!function.named);
    assert_eq!(symbols.label(1), "inlined+0x10158");
    assert_eq!(symbols.functions.len(), 1);
}

#[test]
fn stripped_files_have_their_names_in_a_debug_file() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("inlined"), stripped()).unwrap();
    let id = elf::build_id_of(&root.path().join("inlined")).unwrap().to_string();
    let folder = root.path().join("usr/lib/debug/.build-id").join(&id[..2]);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(format!("{}.debug", &id[2..])), INLINED).unwrap();
    let symbols = symbolizer(root.path()).resolve(&[Place::file("/inlined", None, MUL)]);
    assert_eq!(symbols.label(0), "length+0x10");
    assert_eq!(symbols.locations[0].inlined.len(), 2);
    assert!(symbols.modules[0].file.as_ref().unwrap().ends_with("inlined"));
}

#[test]
fn damaged_files_do_no_harm() {
    damage(&tool().bytes(), small_elf::TABLES, 0xff8, 200);
    damage(INLINED, 0x1a0, MUL - 0x18, 400);
}

/// A file with some bytes changed may lose its names, no more.
fn damage(whole: &[u8], tables: usize, offset: u64, rounds: usize) {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("tool");
    let symbolizer = symbolizer(root.path());
    let places: Vec<Place> = (0..16).map(|n| Place::file("/tool", None, offset + n * 4)).collect();
    let mut seed = 1u64;
    let mut random = || {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) as usize
    };
    for _ in 0..rounds {
        let mut bytes = whole.to_vec();
        for _ in 0..1 + random() % 8 {
            let at = match random() % 3 {
                0 => random() % 0x100,
                1 => tables + random() % (bytes.len() - tables),
                _ => random() % bytes.len(),
            };
            bytes[at] = [0, 0xff, 0x7f, 0x80, random() as u8][random() % 5];
        }
        if random() % 8 == 0 {
            bytes.truncate(random() % bytes.len());
        }
        fs::write(&file, &bytes).unwrap();
        assert_eq!(symbolizer.resolve(&places).locations.len(), places.len());
    }
}
