//! ELF images in ELF files: compressed symbols of stripped files, and the vDSO in the kernel.

use std::io::Read;

use lzma_rust2::XzReader;
use object::{Object, ObjectSection, ObjectSymbol};

use super::elf::Elf;

/// Largest image that is unpacked; that of a C library has some 100 KiB.
const MAX_BYTES: u64 = 64 << 20;
/// Memory for unpacking, in KiB; xz's highest preset takes half of it.
const MAX_KIB: u32 = 128 << 10;

/// `.gnu_debugdata` (GDB manual, "MiniDebugInfo"): an xz-compressed ELF file with the symbols of functions that are
/// not among the dynamic ones.
pub(super) fn mini_debug_info(elf: &Elf<'_>) -> Option<Vec<u8>> {
    let packed = elf.section(".gnu_debugdata");
    if packed.is_empty() {
        return None;
    }
    let mut bytes = Vec::new();
    let read = XzReader::new_mem_limit(&*packed, true, MAX_KIB)
        .take(MAX_BYTES + 1)
        .read_to_end(&mut bytes);
    (read.is_ok() && bytes.len() as u64 <= MAX_BYTES).then_some(bytes)
}

/// The vDSO as the kernel maps it into processes: it lies in `vmlinux` between two symbols.
pub(super) fn vdso(kernel: &Elf<'_>) -> Option<Vec<u8>> {
    let address = |wanted: &str| {
        kernel.object.symbols().find(|s| s.name() == Ok(wanted)).map(|s| s.address())
    };
    let (start, end) = (address("vdso_start")?, address("vdso_end")?);
    kernel.object.sections().find_map(|section| {
        let size = end.checked_sub(start).filter(|size| (1..=MAX_BYTES).contains(size))?;
        section.data_range(start, size).ok().flatten().map(<[u8]>::to_vec)
    })
}
