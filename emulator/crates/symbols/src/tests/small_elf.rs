//! The smallest RISC-V executable that has what we read: a segment, symbols, a build ID.

pub(super) const NOTYPE: u8 = 0;
pub(super) const OBJECT: u8 = 1;
pub(super) const FUNC: u8 = 2;
pub(super) const BUILD_ID: [u8; 20] = *b"build id of the tool";
/// File offset of everything after the code.
pub(super) const TABLES: usize = 0x1100;
const TEXT_OFFSET: u64 = 0x1000;
const TEXT_ADDRESS: u64 = 0x11000;
const TEXT_SIZE: u64 = 0x100;

/// Symbols as (name, address, size, type).
pub(super) struct SmallElf {
    symbols: Vec<(&'static str, u64, u64, u8)>,
    /// The content of the section `.gnu_debugdata`.
    pub packed: Vec<u8>,
    /// The symbols are `.dynsym`'s, the only ones of a stripped file.
    pub dynamic: bool,
}

struct Section {
    name: u32,
    kind: u32,
    flags: u64,
    address: u64,
    offset: u64,
    size: u64,
    link: u32,
    entry: u64,
}

impl SmallElf {
    pub(super) fn new(symbols: Vec<(&'static str, u64, u64, u8)>) -> Self {
        Self { symbols, packed: Vec::new(), dynamic: false }
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut out = vec![0; TABLES];
        let mut strings = vec![0];
        let mut table = vec![0; 24];
        for (name, address, size, kind) in &self.symbols {
            table.extend((strings.len() as u32).to_le_bytes());
            table.extend([1 << 4 | kind, 0, 1, 0]); // global, section 1
            table.extend(address.to_le_bytes());
            table.extend(size.to_le_bytes());
            strings.extend(name.as_bytes());
            strings.push(0);
        }
        let mut note = Vec::new();
        for word in [4u32, 20, 3] {
            note.extend(word.to_le_bytes());
        }
        note.extend(b"GNU\0");
        note.extend(BUILD_ID);
        let names = b"\0.text\0.symtab\0.strtab\0.note.gnu.build-id\0.shstrtab\0.gnu_debugdata\0";

        let mut sections = vec![section(0, 0, 0, 0, 0, 0)];
        sections.push(section(1, 1, 6, TEXT_ADDRESS, TEXT_OFFSET, TEXT_SIZE));
        let mut add = |name, kind, bytes: &[u8]| {
            sections.push(section(name, kind, 0, 0, out.len() as u64, bytes.len() as u64));
            out.extend(bytes);
            out.resize(out.len().next_multiple_of(8), 0);
        };
        add(7, if self.dynamic { 11 } else { 2 }, &table);
        add(15, 3, &strings);
        add(23, 7, &note);
        add(42, 3, names);
        if !self.packed.is_empty() {
            add(52, 1, &self.packed);
        }
        sections[2].link = 3;
        sections[2].entry = 24;

        let section_offset = out.len() as u64;
        for s in &sections {
            out.extend(s.name.to_le_bytes());
            out.extend(s.kind.to_le_bytes());
            for field in [s.flags, s.address, s.offset, s.size] {
                out.extend(field.to_le_bytes());
            }
            out.extend(s.link.to_le_bytes());
            out.extend(1u32.to_le_bytes());
            out.extend(4u64.to_le_bytes());
            out.extend(s.entry.to_le_bytes());
        }
        let mut header = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
        header.extend([2, 0, 243, 0, 1, 0, 0, 0]); // ET_EXEC, EM_RISCV, version 1
        for field in [TEXT_ADDRESS, 64, section_offset] {
            header.extend(field.to_le_bytes());
        }
        header.extend(0u32.to_le_bytes());
        for field in [64u16, 56, 1, 64, sections.len() as u16, 5] {
            header.extend(field.to_le_bytes());
        }
        header.extend([1, 0, 0, 0, 5, 0, 0, 0]); // PT_LOAD, R+X
        for field in [TEXT_OFFSET, TEXT_ADDRESS, TEXT_ADDRESS, TEXT_SIZE, TEXT_SIZE, 0x1000] {
            header.extend(field.to_le_bytes());
        }
        out[..header.len()].copy_from_slice(&header);
        out
    }
}

fn section(name: u32, kind: u32, flags: u64, address: u64, offset: u64, size: u64) -> Section {
    Section { name, kind, flags, address, offset, size, link: 0, entry: 0 }
}
