use object::write::elf::{FileHeader, SectionHeader, Writer};
use object::{Endianness, elf};

use super::*;

const CODE_ADDRESS: u64 = 0x11000;
const TABLE_ADDRESS: u64 = 0x20000;
const DATA_ADDRESS: u64 = 0x30000;
const MODULE_ADDRESS: u64 = 0x40000;

/// A program of two functions: `main.outer` of 64 bytes, whose middle half is a call of `main.inner` that was inlined, and
/// `main.last` of 32 bytes. It has the table at an odd place of its section, as an external linker places it.
struct GoProgram {
    version: TableVersion,
    position_independent: bool,
}

#[derive(Default)]
struct SectionBytes(Vec<u8>);

impl SectionBytes {
    fn u32(&mut self, value: u32) {
        self.0.extend(value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.0.extend(value.to_le_bytes());
    }

    /// Where it was put.
    fn put(&mut self, bytes: &[u8]) -> u32 {
        let at = self.0.len() as u32;
        self.0.extend(bytes);
        at
    }
}

/// Values that hold for so many instructions of 4 bytes each.
fn values(pairs: &[(i8, u8)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut before = -1;
    for (value, length) in pairs {
        let change = value - before;
        bytes.extend([(change << 1 ^ change >> 7) as u8, *length]);
        before = *value;
    }
    bytes.push(0);
    bytes
}

impl GoProgram {
    fn table(&self) -> Vec<u8> {
        let newer = self.version >= TableVersion::Go18;
        // Everything that is found by an offset is in one part: offsets of all parts are those of the table.
        let mut table = SectionBytes::default();
        table.u32(match self.version {
            TableVersion::Go2 => 0xffff_fffb,
            TableVersion::Go16 => 0xffff_fffa,
            TableVersion::Go18 => 0xffff_fff0,
            TableVersion::Go20 => 0xffff_fff1,
        });
        table.put(&[0, 0, 4, 8]);
        table.u64(2);
        if self.version != TableVersion::Go2 {
            table.u64(2);
            if newer {
                table.u64(if self.position_independent { 0 } else { CODE_ADDRESS });
            }
            // Five parts, which all begin where the functions do.
            let parts = 8 + 8 * if newer { 8 } else { 7 };
            (0..5).for_each(|_| table.u64(parts));
        }
        let base = if self.version == TableVersion::Go2 { 0 } else { table.0.len() };
        // The functions come first, and need to know what follows them.
        let functions = table.0.len();
        let field = if newer { 4 } else { 8 };
        table.0.resize(functions + 5 * field + 4, 0);
        let mut put = |bytes: &[u8]| table.put(bytes) - base as u32;
        let outer = put(b"main.outer\0");
        let inner = put(b"main.inner\0");
        let last = put(b"main.last\0");
        let file = put(b"/src/main.go\0");
        let files = put(&values(&[(0, 16)]));
        let lines = put(&values(&[(10, 4), (3, 8), (12, 4)]));
        let inlined = put(&values(&[(-1, 4), (0, 8), (-1, 4)]));
        assert_eq!(inner, outer + 11);
        while (table.0.len() - base) % 4 != 0 {
            table.0.push(0);
        }
        let units = table.put(&file.to_le_bytes()) - base as u32;
        let mut records = Vec::new();
        for (index, name) in [outer, last].into_iter().enumerate() {
            records.push((table.0.len() - base) as u64);
            match newer {
                true => table.u32(64 * index as u32),
                false => table.u64(CODE_ADDRESS + 64 * index as u64),
            }
            for number in [name, 0, 0, 0, files, lines, 3] {
                table.u32(number);
            }
            if self.version != TableVersion::Go2 {
                table.u32(units / 4);
            }
            if self.version == TableVersion::Go20 {
                table.u32(9);
            }
            table.put(&[0, 0, 0, 4]);
            for number in [0, 0, inlined, u32::MAX, u32::MAX, u32::MAX, 16] {
                table.u32(number);
            }
        }
        let mut at = functions;
        let mut list = SectionBytes::default();
        for (index, record) in records.into_iter().enumerate() {
            let start = 64 * index as u64;
            match newer {
                true => [start, record].map(|number| list.u32(number as u32)),
                false => [CODE_ADDRESS + start, record].map(|number| list.u64(number)),
            };
        }
        match newer {
            true => list.u32(96),
            false => list.u64(CODE_ADDRESS + 96),
        }
        if self.version == TableVersion::Go2 {
            list.u32(units);
        }
        for byte in list.0 {
            table.0[at] = byte;
            at += 1;
        }
        table.0
    }

    /// Inlined calls: of the second word's function, inlined at its fourth instruction.
    fn calls(&self) -> Vec<u8> {
        let name = if self.version == TableVersion::Go2 { 0 } else { 5 * self.field() + 4 };
        let mut calls = SectionBytes::default();
        calls.0.resize(32, 0);
        match self.version {
            TableVersion::Go20 => [0, name + 11, 12, 0].map(|number| calls.u32(number)).to_vec(),
            _ => [0xffff, 0, 0, name + 11, 12].map(|number| calls.u32(number)).to_vec(),
        };
        calls.0
    }

    fn field(&self) -> u32 {
        if self.version >= TableVersion::Go18 { 4 } else { 8 }
    }

    fn module(&self) -> Vec<u8> {
        let mut words = vec![0; 48];
        words[0] = TABLE_ADDRESS + 8;
        words[22] = CODE_ADDRESS;
        words[if self.version == TableVersion::Go20 { 40 } else { 38 }] = DATA_ADDRESS + 16;
        words.into_iter().flat_map(u64::to_le_bytes).collect()
    }

    fn file(&self) -> Vec<u8> {
        let table = [&[0; 8], &self.table()[..]].concat();
        let code = vec![0x13; 96];
        let name: &[u8] = if self.position_independent { b".data.rel.ro" } else { b".gopclntab" };
        elf_file(&[
            (b".text", CODE_ADDRESS, true, &code),
            (name, TABLE_ADDRESS, false, &table),
            (b".rodata", DATA_ADDRESS, false, &self.calls()),
            (b".noptrdata", MODULE_ADDRESS, false, &self.module()),
        ])
    }
}

fn elf_file(sections: &[(&[u8], u64, bool, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(Endianness::Little, true, &mut bytes);
    writer.reserve_file_header();
    writer.reserve_null_section_index();
    let placed: Vec<_> = sections
        .iter()
        .map(|(name, _, _, data)| {
            writer.reserve_section_index();
            (writer.add_section_name(name), writer.reserve(data.len() as u64, 16))
        })
        .collect();
    writer.reserve_shstrtab_section_index();
    writer.reserve_shstrtab().unwrap();
    writer.reserve_section_headers();
    let header = FileHeader {
        os_abi: elf::ELFOSABI_NONE,
        abi_version: 0,
        e_type: elf::ET_EXEC,
        e_machine: elf::EM_RISCV,
        e_entry: 0,
        e_flags: elf::FileFlags(0),
    };
    writer.write_file_header(&header).unwrap();
    for (_, _, _, data) in sections {
        writer.write_align(16);
        writer.write(data);
    }
    writer.write_shstrtab();
    writer.write_null_section_header();
    for ((_, address, is_code, data), (name, offset)) in sections.iter().zip(placed) {
        let flags = if *is_code { elf::SHF_EXECINSTR } else { elf::SHF_WRITE };
        writer.write_section_header(&SectionHeader {
            sh_name: writer.section_name_offset(Some(name)),
            sh_type: elf::SHT_PROGBITS,
            sh_flags: elf::SHF_ALLOC | flags,
            sh_addr: *address,
            sh_offset: offset,
            sh_size: data.len() as u64,
            sh_link: 0,
            sh_info: 0,
            sh_addralign: 16,
            sh_entsize: 0,
        });
    }
    writer.write_shstrtab_section_header();
    bytes
}

/// File and line, and the inlined calls with the lines of their calls, of an address.
fn found(table: &GoTable<'_>, address: u64) -> (String, Vec<(String, u32)>) {
    let (source, inlined) = table.find(address, &mut Interner::default());
    let source = source.map_or(String::new(), |at| format!("{}:{}", at.file, at.line));
    let line = |frame: &Frame| frame.call.as_ref().map_or(0, |call| call.line);
    let inlined = inlined.iter().map(|frame| (frame.function.to_string(), line(frame)));
    (source, inlined.collect())
}

#[test]
fn functions_lines_and_inlined_calls_of_every_version() {
    for (version, position_independent) in [
        (TableVersion::Go2, false),
        (TableVersion::Go16, false),
        (TableVersion::Go18, false),
        (TableVersion::Go18, true),
        (TableVersion::Go20, false),
        (TableVersion::Go20, true),
    ] {
        let program = GoProgram { version, position_independent };
        let file = program.file();
        let elf = Elf::parse(&file).unwrap();
        let table = GoTable::of(&elf).unwrap_or_else(|| panic!("{version:?}: no table"));
        assert_eq!(
            table.functions(),
            [
                (CODE_ADDRESS, CODE_ADDRESS + 64, "main.outer"),
                (CODE_ADDRESS + 64, CODE_ADDRESS + 96, "main.last")
            ],
            "{version:?}"
        );
        let at = |from| found(&table, CODE_ADDRESS + from);
        let plain = |line: u32| (format!("/src/main.go:{line}"), Vec::new());
        assert_eq!(at(12), plain(10), "{version:?}");
        assert_eq!(at(60), plain(12), "{version:?}");
        let inside = at(20);
        assert_eq!(inside.0, "/src/main.go:3", "{version:?}");
        match version >= TableVersion::Go18 {
            true => assert_eq!(inside.1, [("main.inner".to_owned(), 10)], "{version:?}"),
            false => assert_eq!(inside.1, []),
        }
        assert_eq!(at(96), (String::new(), Vec::new()), "behind the last function");
    }
}

#[test]
fn damaged_tables_give_less() {
    let mut tables = 0;
    for version in [TableVersion::Go2, TableVersion::Go16, TableVersion::Go18, TableVersion::Go20] {
        let program = GoProgram { version, position_independent: false };
        let whole = program.file();
        for at in 64..whole.len() {
            for byte in [0, 0x7f, 0xff] {
                let mut file = whole.clone();
                file[at] = byte;
                let Ok(elf) = Elf::parse(&file) else { continue };
                let Some(table) = GoTable::of(&elf) else {
                    continue;
                };
                tables += 1;
                for (start, end, _) in table.functions() {
                    assert!(start < end);
                }
                (0..100).step_by(10).for_each(|from| _ = found(&table, CODE_ADDRESS + from));
            }
        }
    }
    assert!(tables > 1000, "{tables}");
}
