//! Memory at reset, as OpenSBI and Linux expect it: firmware at the start of RAM, the kernel 2 MiB
//! above it, and at the end of RAM the initial RAM disk, the device tree and OpenSBI's
//! `fw_dynamic_info`.

use std::ops::Range;

use devices::{RAM_BASE, Ram};

use super::elf::FIRMWARE_BASE;
use super::{Elf, Image, LoadError, load_raw, overlap};
use crate::DeviceTreeError;

/// Where a kernel `Image` is loaded.
pub const KERNEL_BASE: u64 = RAM_BASE + (2 << 20);
/// Room at the end of RAM for the device tree and what OpenSBI adds to it in place, then a page
/// for `fw_dynamic_info`.
const TREE_ROOM: u64 = 2 << 20;
const TREE_SLACK: u64 = 64 << 10;
const PAGE: u64 = 4096;

/// The files of a boot.
#[derive(Clone, Copy)]
pub struct BootImages<'a> {
    /// Firmware: ELF, or a raw image for address 0x8000_0000.
    pub firmware: Image<'a>,
    /// What the firmware starts in S-mode: a Linux `Image`, another raw image, or an ELF file.
    pub kernel: Option<Image<'a>>,
    /// Initial RAM disk.
    pub initrd: Option<Image<'a>>,
}

impl BootImages<'_> {
    /// Bytes of memory into which they fit, each in its place: a Linux `Image` with its bss.
    pub fn least_memory(&self) -> u64 {
        let kernel = self.kernel.map_or(0, |kernel| {
            let size = linux_image_size(kernel.bytes).unwrap_or_default();
            size.max(kernel.bytes.len() as u64)
        });
        let initrd = self.initrd.map_or(0, |initrd| initrd.bytes.len() as u64);
        let below_tree = (KERNEL_BASE - RAM_BASE).saturating_add(kernel).saturating_add(initrd);
        below_tree.saturating_add(PAGE + TREE_ROOM)
    }
}

/// Registers of a hart at reset; all others are zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResetState {
    /// First instruction.
    pub pc: u64,
    /// Hart number.
    pub a0: u64,
    /// Physical address of the device tree.
    pub a1: u64,
    /// Physical address of `fw_dynamic_info`.
    pub a2: u64,
}

impl ResetState {
    /// Returns the state at reset of hart `hart`.
    pub fn for_hart(self, hart: u64) -> Self {
        Self { a0: hart, ..self }
    }
}

/// A machine that is ready to start.
#[derive(Clone, Debug)]
pub struct Boot {
    /// Registers of hart 0.
    pub reset: ResetState,
    /// What lies where.
    pub layout: Vec<(String, Range<u64>)>,
}

impl Boot {
    /// Loads firmware, kernel and RAM disk. `device_tree` writes the tree, given where the RAM
    /// disk lies.
    pub fn load(
        images: BootImages<'_>,
        ram: &mut Ram,
        device_tree: impl FnOnce(Option<Range<u64>>) -> Result<Vec<u8>, DeviceTreeError>,
    ) -> Result<Self, LoadError> {
        let mut layout = Layout { name: images.firmware.name, placed: Vec::new() };
        let pc = layout.firmware(images.firmware, ram)?;
        let next = images.kernel.map_or(Ok(KERNEL_BASE), |kernel| layout.kernel(kernel, ram))?;

        let tree_at = ram.end().saturating_sub(TREE_ROOM).max(RAM_BASE);
        let initrd = images.initrd.map(|image| layout.initrd(image, tree_at, ram)).transpose()?;
        let tree = device_tree(initrd)?;
        let info_at = ram.end() - PAGE;
        layout.put("device tree", tree_at..tree_at + tree.len() as u64 + TREE_SLACK)?;
        layout.put("fw_dynamic_info", info_at..ram.end())?;
        load_raw(Image { name: "device tree", bytes: &tree }, tree_at, ram)?;
        load_raw(Image { name: "fw_dynamic_info", bytes: &dynamic_info(next) }, info_at, ram)?;

        let reset = ResetState { pc, a0: 0, a1: tree_at, a2: info_at };
        Ok(Self { reset, layout: layout.placed })
    }
}

struct Layout<'a> {
    name: &'a str,
    placed: Vec<(String, Range<u64>)>,
}

impl Layout<'_> {
    fn put(&mut self, what: &str, range: Range<u64>) -> Result<(), LoadError> {
        if let Some((other, _)) = self.placed.iter().find(|(_, r)| overlap(r, &range)) {
            return Err(LoadError::Overlap {
                file: self.name.to_owned(),
                what: what.to_owned(),
                start: range.start,
                other: format!("{other} (more memory helps)"),
            });
        }
        self.placed.push((what.to_owned(), range));
        Ok(())
    }

    /// Loads ELF or raw; returns the entry point.
    fn program(
        &mut self,
        what: &str,
        image: Image<'_>,
        at: u64,
        ram: &mut Ram,
    ) -> Result<u64, LoadError> {
        if Elf::recognise(image.bytes) {
            let elf = Elf::load(image, at, ram)?;
            for segment in elf.segments {
                self.put(what, segment)?;
            }
            return Ok(elf.entry);
        }
        let range = load_raw(image, at, ram)?;
        self.put(what, range)?;
        Ok(at)
    }

    fn firmware(&mut self, image: Image<'_>, ram: &mut Ram) -> Result<u64, LoadError> {
        self.program("firmware", image, FIRMWARE_BASE, ram)
    }

    fn kernel(&mut self, image: Image<'_>, ram: &mut Ram) -> Result<u64, LoadError> {
        if let Some(packing) = devices::packing(image.bytes) {
            return Err(LoadError::Field {
                file: image.name.to_owned(),
                field: "kernel",
                expected: "a Linux Image, vmlinux or another raw or ELF image".to_owned(),
                found: packing.to_owned(),
            });
        }
        let entry = self.program("kernel", image, KERNEL_BASE, ram)?;
        if let Some(size) = linux_image_size(image.bytes) {
            let loaded = KERNEL_BASE + image.bytes.len() as u64;
            let end = KERNEL_BASE.saturating_add(size);
            if end > loaded {
                self.put("kernel's bss", loaded..end)?;
            }
        }
        Ok(entry)
    }

    fn initrd(
        &mut self,
        image: Image<'_>,
        below: u64,
        ram: &mut Ram,
    ) -> Result<Range<u64>, LoadError> {
        let at = below.saturating_sub(image.bytes.len() as u64) & !(PAGE - 1);
        let range = load_raw(image, at, ram)?;
        self.put("initial RAM disk", range.clone())?;
        Ok(range)
    }
}

/// Bytes that a Linux `Image` occupies once it runs, its bss included
/// (Documentation/arch/riscv/boot-image-header.rst).
fn linux_image_size(bytes: &[u8]) -> Option<u64> {
    (bytes.get(56..60)? == b"RSC\x05").then_some(())?;
    Some(u64::from_le_bytes(bytes.get(16..24)?.try_into().ok()?))
}

/// OpenSBI's `struct fw_dynamic_info`, version 2 (include/sbi/fw_dynamic.h): start `next` in
/// S-mode on hart 0.
fn dynamic_info(next: u64) -> Vec<u8> {
    const MAGIC: u64 = 0x4942_534f;
    const VERSION: u64 = 2;
    const NEXT_MODE_S: u64 = 1;
    const OPTIONS: u64 = 0;
    const BOOT_HART: u64 = 0;
    [MAGIC, VERSION, next, NEXT_MODE_S, OPTIONS, BOOT_HART]
        .into_iter()
        .flat_map(u64::to_le_bytes)
        .collect()
}
