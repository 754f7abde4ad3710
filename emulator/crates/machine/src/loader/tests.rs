use devices::{RAM_BASE, Ram};

use super::*;

const ENTRY: u64 = RAM_BASE + 0x1000;

/// A minimal executable: header, one program header per segment, contents, and optionally a
/// symbol table with its names.
struct Builder {
    kind: u16,
    machine: u16,
    entry: u64,
    /// Address and content; each has 16 more bytes of memory.
    segments: Vec<(u64, Vec<u8>)>,
    symbols: Vec<(&'static str, u64)>,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            kind: 2,
            machine: 243,
            entry: ENTRY,
            segments: vec![(ENTRY, b"code".to_vec())],
            symbols: vec![("tohost", RAM_BASE + 0x2000), ("main", 1), ("end_signature", 2)],
        }
    }
}

impl Builder {
    fn build(&self) -> Vec<u8> {
        let table_end = 64 + 56 * self.segments.len();
        let mut content = Vec::new();
        let mut headers = Vec::new();
        for (address, bytes) in &self.segments {
            let offset = (table_end + content.len()) as u64;
            let (size, memory) = (bytes.len() as u64, bytes.len() as u64 + 16);
            headers.extend(1_u32.to_le_bytes());
            headers.extend(7_u32.to_le_bytes());
            for word in [offset, *address, *address, size, memory, 8] {
                headers.extend(word.to_le_bytes());
            }
            content.extend(bytes);
        }
        let mut names = vec![0];
        let mut symbols = vec![0; 24];
        for (name, value) in &self.symbols {
            symbols.extend((names.len() as u32).to_le_bytes());
            symbols.extend([0x10, 0, 1, 0]);
            symbols.extend(value.to_le_bytes());
            symbols.extend([0; 8]);
            names.extend(name.bytes());
            names.push(0);
        }
        let symbols_at = (table_end + content.len()) as u64;
        let names_at = symbols_at + symbols.len() as u64;
        let sections_at = names_at + names.len() as u64;
        let mut sections = vec![0; 64];
        for (kind, at, size, link, entry) in [
            (2_u32, symbols_at, symbols.len() as u64, 2_u32, 24_u64),
            (3, names_at, names.len() as u64, 0, 0),
        ] {
            sections.extend([0; 4]);
            sections.extend(kind.to_le_bytes());
            sections.extend([0; 16]);
            sections.extend(at.to_le_bytes());
            sections.extend(size.to_le_bytes());
            sections.extend(link.to_le_bytes());
            sections.extend([0; 12]);
            sections.extend(entry.to_le_bytes());
        }
        let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
        file.extend(self.kind.to_le_bytes());
        file.extend(self.machine.to_le_bytes());
        file.extend(1_u32.to_le_bytes());
        for word in [self.entry, 64, sections_at] {
            file.extend(word.to_le_bytes());
        }
        file.extend([0; 4]);
        for half in [64, 56, self.segments.len() as u16, 64, 3, 0] {
            file.extend(half.to_le_bytes());
        }
        [file, headers, content, symbols, names, sections].concat()
    }
}

fn load(bytes: &[u8]) -> Result<(Elf, Ram), LoadError> {
    let mut ram = Ram::new(1 << 20).unwrap();
    let elf = Elf::load(Image { name: "test.elf", bytes }, RAM_BASE, &mut ram)?;
    Ok((elf, ram))
}

fn message(bytes: &[u8]) -> String {
    load(bytes).map(|(elf, _)| elf).expect_err("must not load").to_string()
}

#[test]
fn loads_segments_and_symbols() {
    let (elf, ram) = load(&Builder::default().build()).unwrap();
    assert_eq!((elf.entry, elf.segments.len()), (ENTRY, 1));
    assert_eq!(elf.segments[0], ENTRY..ENTRY + 20);
    assert_eq!(ram.slice(ENTRY, 6), Some(&b"code\0\0"[..]));
    assert_eq!(elf.symbols.tohost, Some(RAM_BASE + 0x2000));
    assert_eq!(elf.symbols.end_signature, Some(2));
    assert_eq!(elf.symbols.fromhost, None);
}

#[test]
fn position_independent_files_are_moved_only_if_they_must() {
    let segments = vec![(0x1000, vec![1; 8]), (0x3000, vec![2; 8])];
    let file = Builder { kind: 3, entry: 0x1004, segments, ..Builder::default() };
    let (elf, ram) = load(&file.build()).unwrap();
    assert_eq!((elf.entry, elf.segments[1].start), (RAM_BASE + 4, RAM_BASE + 0x2000));
    assert_eq!(ram.load(RAM_BASE + 0x2000, 1), Some(2));
    let (elf, _) = load(&Builder { kind: 3, ..Builder::default() }.build()).unwrap();
    assert_eq!(elf.entry, ENTRY);
}

#[test]
fn errors_name_file_field_and_expectation() {
    let good = Builder::default().build();
    let with = |at: usize, value: &[u8]| {
        let mut bytes = good.clone();
        bytes[at..at + value.len()].copy_from_slice(value);
        message(&bytes)
    };
    assert_eq!(with(4, &[1]), "test.elf: EI_CLASS: expected 2 (64-bit), found 1");
    assert_eq!(with(5, &[2]), "test.elf: EI_DATA: expected 1 (little-endian), found 2");
    assert_eq!(with(18, &[62, 0]), "test.elf: e_machine: expected 243 (RISC-V), found 62 (X86_64)");
    assert!(with(16, &[1, 0]).contains("e_type: expected 2"));
    assert!(with(24, &[0; 8]).contains("e_entry: expected an address in a loaded segment"));
    assert!(with(54, &[57, 0]).contains("e_phentsize: expected 56, found 57"));
    assert!(with(32, &[0xff; 8]).contains("truncated: program header table"));
    assert!(with(64, &[0; 4]).contains("expected a segment to load, found none"));
    assert!(with(64 + 8, &[0xff; 4]).contains("truncated: segment 0 ends at"));
    assert!(with(64 + 40, &[1, 0]).contains("p_memsz: expected at least p_filesz (0x4)"));
    assert!(with(64 + 24, &[0; 8]).contains("segment 0 at 0x0, size 0x14, is not in memory"));
    // Offset and addresses.
    assert!(with(64 + 8, &[0; 24]).contains("`ld -n` leaves out) at 0x0, size"));
    assert!(message(b"MZ").contains("magic: expected 7f 45 4c 46 (ELF), found [4d, 5a]"));
    assert!(message(&good[..40]).contains("truncated: ELF header"));
}

#[test]
fn overlapping_and_outside_segments() {
    let segments = vec![(ENTRY, vec![0; 32]), (ENTRY + 40, vec![0; 8])];
    let overlapping = Builder { segments, ..Builder::default() };
    assert!(message(&overlapping.build()).contains("segment 1 at 0x80001028 overlaps segment 0"));
    for at in [RAM_BASE + (1 << 20) - 8, u64::MAX - 4, 0] {
        let segments = vec![(at, vec![0; 8])];
        let outside = Builder { segments, entry: at, ..Builder::default() };
        assert!(message(&outside.build()).contains("is not in memory (0x80000000-0x80100000)"));
    }
}

#[test]
fn hostile_files_do_no_harm() {
    let good = Builder::default().build();
    for length in 0..good.len() {
        let _ = load(&good[..length]);
    }
    let mut random = devices::virtio::SplitMix64::new(9);
    let mut ram = Ram::new(1 << 20).unwrap();
    for _ in 0..20_000 {
        let mut bytes = good.clone();
        for _ in 0..=random.next_u64() % 6 {
            let at = random.next_u64() as usize % bytes.len();
            let fill = [0, 0xff, random.next_u64() as u8][random.next_u64() as usize % 3];
            let count = [1, 2, 4, 8][random.next_u64() as usize % 4];
            bytes.iter_mut().skip(at).take(count).for_each(|byte| *byte = fill);
        }
        let _ = Elf::load(Image { name: "fuzz", bytes: &bytes }, RAM_BASE, &mut ram);
    }
}

fn images<'a>(kernel: &'a [u8], initrd: &'a [u8]) -> BootImages<'a> {
    BootImages {
        firmware: Image { name: "fw.bin", bytes: b"firmware" },
        kernel: Some(Image { name: "Image", bytes: kernel }),
        initrd: Some(Image { name: "initrd", bytes: initrd }),
    }
}

#[test]
fn boot_layout() {
    let mut ram = Ram::new(16 << 20).unwrap();
    let mut kernel = vec![0; 64];
    kernel[16..24].copy_from_slice(&0x30_0000_u64.to_le_bytes());
    kernel[56..60].copy_from_slice(b"RSC\x05");
    let boot = Boot::load(images(&kernel, &[7; 5000]), &mut ram, |initrd| {
        assert_eq!(initrd, Some(0x80df_e000..0x80df_f388));
        Ok(b"tree".to_vec())
    })
    .unwrap();
    let reset = ResetState { pc: RAM_BASE, a0: 0, a1: 0x80e0_0000, a2: 0x80ff_f000 };
    assert_eq!(boot.reset, reset);
    assert_eq!(reset.for_hart(3).a0, 3);
    let info: Vec<_> = (0..6).map(|n| ram.load(reset.a2 + 8 * n, 8).unwrap()).collect();
    assert_eq!(info, [0x4942_534f, 2, 0x8020_0000, 1, 0, 0]);
    assert_eq!(ram.slice(reset.a1, 4), Some(&b"tree"[..]));
    assert_eq!(ram.slice(RAM_BASE, 8), Some(&b"firmware"[..]));
    assert!(boot.layout.iter().any(|(what, r)| what == "kernel's bss" && r.end == 0x8050_0000));
}

#[test]
fn boot_that_does_not_fit() {
    let tree = |_| Ok(Vec::new());
    let boot = |mib: u64, kernel: &[u8], initrd: &[u8]| {
        let mut ram = Ram::new(mib << 20).unwrap();
        Boot::load(images(kernel, initrd), &mut ram, tree).map(|_| ()).unwrap_err().to_string()
    };
    assert!(boot(8, &[0; 3 << 20], &[0; 2 << 20]).contains("initial RAM disk at"));
    assert!(boot(1, &[0; 16], &[]).contains("Image: image at 0x80200000"));
    assert!(boot(8, b"\x1f\x8b\x08", &[]).contains("gzip"));
    assert!(boot(8, b"\x7fELF", &[]).contains("Image: truncated: ELF header"));
    let mut huge = vec![0; 64];
    huge[16..24].copy_from_slice(&u64::MAX.to_le_bytes());
    huge[56..60].copy_from_slice(b"RSC\x05");
    assert!(boot(8, &huge, &[1]).contains("overlaps kernel's bss"));
}
