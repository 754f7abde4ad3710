//! The device tree that firmware and kernel find the machine by.

mod node;
mod pmu;

use std::ops::Range;

use isa::{Extension, Extensions};
pub use node::{DeviceNode, Property};
use vm_fdt::FdtWriter;

use crate::csr::envcfg;

use devices::virtio::SplitMix64;
use devices::{
    CLINT_BASE, CLINT_SIZE, Clock, PLIC_BASE, PLIC_SIZE, PLIC_SOURCES, RAM_BASE, SYSCON_POWER_OFF,
    SYSCON_RESET,
};

/// The device tree could not be written, for example because a string holds a NUL.
#[derive(Debug, thiserror::Error)]
#[error("device tree: {0}")]
pub struct DeviceTreeError(#[from] vm_fdt::Error);

/// Virtual-memory scheme, as `mmu-type` names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MmuType {
    /// Three levels.
    Sv39,
    /// Four levels.
    #[default]
    Sv48,
    /// Five levels.
    Sv57,
}

/// What a hart implements.
#[derive(Clone, Debug)]
pub struct Isa {
    /// Extensions in the canonical order, single letters first (`i`, `m`, …, `zicsr`, …).
    pub extensions: Vec<String>,
    /// Virtual memory.
    pub mmu: MmuType,
}

impl Isa {
    /// RV64GC with the given extensions as well, and with what every hart here has.
    pub fn rv64gc(extensions: Extensions) -> Self {
        // `mmu-type` says which levels there are.
        let mmu = match extensions.has(Extension::Sv48) {
            true => MmuType::Sv48,
            false => MmuType::Sv39,
        };
        let extensions = extensions.with(Extension::Sv48, false);
        let base = "i m a f d c zicntr zicsr zifencei zihpm sscofpmf svade";
        let present = Extension::ALL.iter().filter(|e| extensions.has(**e));
        let names = present.flat_map(|e| e.names().iter().copied());
        let names: Vec<_> = base.split(' ').chain(names).collect();
        Self::new(&names, mmu)
    }

    /// RV64 with these extensions.
    pub fn new(extensions: &[&str], mmu: MmuType) -> Self {
        Self { extensions: extensions.iter().map(|&e| e.to_owned()).collect(), mmu }
    }

    /// The deprecated `riscv,isa` string: `rv64imafdc_zicsr_…`.
    pub fn string(&self) -> String {
        let (letters, names): (Vec<_>, Vec<_>) = self.extensions.iter().partition(|e| e.len() == 1);
        let letters: String = letters.into_iter().map(String::as_str).collect();
        names.into_iter().fold(format!("rv64{letters}"), |isa, name| isa + "_" + name)
    }
}

/// A cache, for `/sys/devices/system/cpu/*/cache` in the guest.
#[derive(Clone, Copy, Debug)]
pub struct Cache {
    /// Size in bytes.
    pub size: u32,
    /// Number of sets.
    pub sets: u32,
    /// Line size in bytes.
    pub line: u32,
}

/// The cache hierarchy of every hart.
#[derive(Clone, Debug)]
pub struct Caches {
    /// First level, instructions.
    pub l1i: Cache,
    /// First level, data.
    pub l1d: Cache,
    /// The levels below, nearest first, shared by all harts.
    pub shared: Vec<Cache>,
}

/// Everything that the tree says.
#[derive(Clone, Debug)]
pub struct DeviceTree {
    /// Number of harts.
    pub harts: usize,
    /// Bytes of RAM.
    pub ram_size: u64,
    /// Frequencies.
    pub clock: Clock,
    /// What the harts implement.
    pub isa: Isa,
    /// Caches, if they are to be described.
    pub caches: Option<Caches>,
    /// Kernel command line.
    pub bootargs: String,
    /// Physical addresses of the initial RAM disk.
    pub initrd: Option<Range<u64>>,
    /// Path of the console's node.
    pub stdout: Option<String>,
    /// Seed of the `rng-seed` that the kernel gets.
    pub seed: u64,
    /// Describe performance counters 3 to 31 to the firmware.
    pub pmu: bool,
    /// Address of the power switch ([`devices::Syscon`]).
    pub syscon: Option<u64>,
    /// The devices in `/soc`, in the order in which the kernel shall find them.
    pub devices: Vec<DeviceNode>,
}

type Result = std::result::Result<(), vm_fdt::Error>;

impl DeviceTree {
    /// The flattened tree.
    pub fn build(&self) -> std::result::Result<Vec<u8>, DeviceTreeError> {
        let mut fdt = FdtWriter::new()?;
        self.root(&mut fdt)?;
        Ok(fdt.finish()?)
    }

    fn root(&self, fdt: &mut FdtWriter) -> Result {
        within(fdt, "", |fdt| {
            fdt.property_u32("#address-cells", 2)?;
            fdt.property_u32("#size-cells", 2)?;
            fdt.property_string("compatible", "tipsim")?;
            fdt.property_string("model", "tipsim board")?;
            self.chosen(fdt)?;
            within(fdt, &format!("memory@{RAM_BASE:x}"), |fdt| {
                fdt.property_string("device_type", "memory")?;
                fdt.property_array_u64("reg", &[RAM_BASE, self.ram_size])
            })?;
            self.cpus(fdt)?;
            if self.pmu {
                within(fdt, "pmu", pmu::properties)?;
            }
            within(fdt, "soc", |fdt| self.soc(fdt))?;
            self.power(fdt)
        })
    }

    fn chosen(&self, fdt: &mut FdtWriter) -> Result {
        within(fdt, "chosen", |fdt| {
            fdt.property_string("bootargs", &self.bootargs)?;
            if let Some(stdout) = &self.stdout {
                fdt.property_string("stdout-path", stdout)?;
            }
            if let Some(initrd) = &self.initrd {
                fdt.property_u64("linux,initrd-start", initrd.start)?;
                fdt.property_u64("linux,initrd-end", initrd.end)?;
            }
            fdt.property("rng-seed", &SplitMix64::new(self.seed).bytes(64))
        })
    }

    fn cpus(&self, fdt: &mut FdtWriter) -> Result {
        within(fdt, "cpus", |fdt| {
            fdt.property_u32("#address-cells", 1)?;
            fdt.property_u32("#size-cells", 0)?;
            fdt.property_u32("timebase-frequency", self.clock.timebase_hz() as u32)?;
            for hart in 0..self.harts as u32 {
                within(fdt, &format!("cpu@{hart:x}"), |fdt| self.cpu(fdt, hart))?;
            }
            let shared = self.caches.iter().flat_map(|c| &c.shared);
            for (n, cache) in shared.enumerate() {
                within(fdt, &format!("l{}-cache", n + 2), |fdt| self.shared_cache(fdt, n, cache))?;
            }
            Ok(())
        })
    }

    fn cpu(&self, fdt: &mut FdtWriter, hart: u32) -> Result {
        fdt.property_string("device_type", "cpu")?;
        fdt.property_u32("reg", hart)?;
        fdt.property_string("status", "okay")?;
        fdt.property_string("compatible", "riscv")?;
        fdt.property_string("riscv,isa", &self.isa.string())?;
        fdt.property_string("riscv,isa-base", "rv64i")?;
        fdt.property_string_list("riscv,isa-extensions", self.isa.extensions.clone())?;
        let mmu = match self.isa.mmu {
            MmuType::Sv39 => "riscv,sv39",
            MmuType::Sv48 => "riscv,sv48",
            MmuType::Sv57 => "riscv,sv57",
        };
        fdt.property_string("mmu-type", mmu)?;
        for (extension, property) in [
            (Extension::Zicbom, "riscv,cbom-block-size"),
            (Extension::Zicboz, "riscv,cboz-block-size"),
        ] {
            if self.isa.extensions.iter().any(|e| e == extension.name()) {
                fdt.property_u32(property, envcfg::BLOCK as u32)?;
            }
        }
        fdt.property_u64("clock-frequency", self.clock.clock_hz())?;
        if let Some(caches) = &self.caches {
            for (kind, cache) in [("i", caches.l1i), ("d", caches.l1d)] {
                fdt.property_u32(&format!("{kind}-cache-size"), cache.size)?;
                fdt.property_u32(&format!("{kind}-cache-sets"), cache.sets)?;
                fdt.property_u32(&format!("{kind}-cache-block-size"), cache.line)?;
            }
            if !caches.shared.is_empty() {
                fdt.property_u32("next-level-cache", self.cache_phandle(0))?;
            }
        }
        within(fdt, "interrupt-controller", |fdt| {
            fdt.property_u32("#address-cells", 0)?;
            fdt.property_u32("#interrupt-cells", 1)?;
            fdt.property_null("interrupt-controller")?;
            fdt.property_string("compatible", "riscv,cpu-intc")?;
            fdt.property_phandle(Self::hart_phandle(hart))
        })
    }

    fn shared_cache(&self, fdt: &mut FdtWriter, n: usize, cache: &Cache) -> Result {
        fdt.property_string("compatible", "cache")?;
        fdt.property_u32("cache-level", n as u32 + 2)?;
        fdt.property_null("cache-unified")?;
        fdt.property_u32("cache-size", cache.size)?;
        fdt.property_u32("cache-sets", cache.sets)?;
        fdt.property_u32("cache-block-size", cache.line)?;
        if self.caches.as_ref().is_some_and(|c| n + 1 < c.shared.len()) {
            fdt.property_u32("next-level-cache", self.cache_phandle(n + 1))?;
        }
        fdt.property_phandle(self.cache_phandle(n))
    }

    fn soc(&self, fdt: &mut FdtWriter) -> Result {
        fdt.property_u32("#address-cells", 2)?;
        fdt.property_u32("#size-cells", 2)?;
        fdt.property_string("compatible", "simple-bus")?;
        fdt.property_null("ranges")?;
        within(fdt, &format!("clint@{CLINT_BASE:x}"), |fdt| {
            let compatible = ["sifive,clint0".to_owned(), "riscv,clint0".to_owned()];
            fdt.property_string_list("compatible", compatible.to_vec())?;
            fdt.property_array_u64("reg", &[CLINT_BASE, CLINT_SIZE])?;
            fdt.property_array_u32("interrupts-extended", &self.hart_lines(&[3, 7]))
        })?;
        within(fdt, &format!("plic@{PLIC_BASE:x}"), |fdt| {
            let compatible = ["sifive,plic-1.0.0".to_owned(), "riscv,plic0".to_owned()];
            fdt.property_string_list("compatible", compatible.to_vec())?;
            fdt.property_array_u64("reg", &[PLIC_BASE, PLIC_SIZE])?;
            fdt.property_u32("#address-cells", 0)?;
            fdt.property_u32("#interrupt-cells", 1)?;
            fdt.property_null("interrupt-controller")?;
            fdt.property_u32("riscv,ndev", PLIC_SOURCES)?;
            fdt.property_array_u32("interrupts-extended", &self.hart_lines(&[11, 9]))?;
            fdt.property_phandle(self.plic_phandle())
        })?;
        for device in &self.devices {
            let phandle = (self.syscon == Some(device.base)).then(|| self.syscon_phandle());
            device.write(fdt, self.plic_phandle(), phandle)?;
        }
        Ok(())
    }

    fn power(&self, fdt: &mut FdtWriter) -> Result {
        if self.syscon.is_none() {
            return Ok(());
        }
        for (name, value) in [("poweroff", SYSCON_POWER_OFF), ("reboot", SYSCON_RESET)] {
            within(fdt, name, |fdt| {
                fdt.property_string("compatible", &format!("syscon-{name}"))?;
                fdt.property_u32("regmap", self.syscon_phandle())?;
                fdt.property_u32("offset", 0)?;
                fdt.property_u32("value", value)
            })?;
        }
        Ok(())
    }

    /// Interrupt specifiers of `lines` on every hart.
    fn hart_lines(&self, lines: &[u32]) -> Vec<u32> {
        let harts = 0..self.harts as u32;
        harts.flat_map(|h| lines.iter().flat_map(move |&l| [Self::hart_phandle(h), l])).collect()
    }

    // Phandles: the harts' interrupt controllers from 1, then PLIC, power switch, caches.

    fn hart_phandle(hart: u32) -> u32 {
        hart + 1
    }

    fn plic_phandle(&self) -> u32 {
        self.harts as u32 + 1
    }

    fn syscon_phandle(&self) -> u32 {
        self.harts as u32 + 2
    }

    fn cache_phandle(&self, n: usize) -> u32 {
        (self.harts + 3 + n) as u32
    }
}

/// Writes a device-tree node: begins it, calls `content` for its properties and children, and ends it.
fn within(
    fdt: &mut FdtWriter,
    name: &str,
    content: impl FnOnce(&mut FdtWriter) -> Result,
) -> Result {
    let node = fdt.begin_node(name)?;
    content(fdt)?;
    fdt.end_node(node)
}

#[cfg(test)]
mod tests;
