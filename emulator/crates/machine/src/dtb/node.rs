//! A device in the tree.

use devices::memory_map::Region;
use vm_fdt::FdtWriter;

use super::{Result, within};

/// Value of a property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Property {
    /// No value: the property is there.
    Flag,
    /// 32-bit cells.
    Cells(Vec<u32>),
    /// Strings.
    Strings(Vec<String>),
}

/// A device in `/soc` as the tree describes it.
#[derive(Clone, Debug)]
pub struct DeviceNode {
    /// Kind of device: the node is `name@base`.
    pub name: String,
    /// Drivers that fit, the best first.
    pub compatible: Vec<String>,
    /// First address.
    pub base: u64,
    /// Bytes of registers.
    pub size: u64,
    /// PLIC source, that of the first unit.
    pub irq: Option<u32>,
    /// Units with equal parts of the registers and consecutive PLIC sources.
    pub units: u32,
    /// Further properties.
    pub properties: Vec<(String, Property)>,
}

impl DeviceNode {
    /// A device without further properties.
    pub fn new(name: &str, compatible: &[&str], base: u64, size: u64, irq: Option<u32>) -> Self {
        Self {
            name: name.to_owned(),
            compatible: compatible.iter().map(|&c| c.to_owned()).collect(),
            base,
            size,
            irq,
            units: 1,
            properties: Vec::new(),
        }
    }

    /// A device without further properties at place `number`, from 0, of the memory map's `region`.
    pub fn at(name: &str, compatible: &[&str], region: &Region, number: u32) -> Self {
        let (base, irq) = (region.base_of(number), region.source_of(number));
        Self::new(name, compatible, base, region.size, irq)
    }

    /// Adds a property.
    pub fn with(mut self, name: &str, value: Property) -> Self {
        self.properties.push((name.to_owned(), value));
        self
    }

    /// Path in the tree.
    pub fn path(&self) -> String {
        format!("/soc/{}@{:x}", self.name, self.base)
    }

    pub(super) fn write(&self, fdt: &mut FdtWriter, plic: u32, phandle: Option<u32>) -> Result {
        within(fdt, &format!("{}@{:x}", self.name, self.base), |fdt| {
            fdt.property_string_list("compatible", self.compatible.clone())?;
            fdt.property_array_u64("reg", &[self.base, self.size])?;
            if let Some(irq) = self.irq {
                fdt.property_u32("interrupt-parent", plic)?;
                let irqs: Vec<u32> = (irq..irq + self.units).collect();
                fdt.property_array_u32("interrupts", &irqs)?;
            }
            for (name, value) in &self.properties {
                match value {
                    Property::Flag => fdt.property_null(name)?,
                    Property::Cells(cells) => fdt.property_array_u32(name, cells)?,
                    Property::Strings(list) => fdt.property_string_list(name, list.clone())?,
                }
            }
            phandle.map_or(Ok(()), |phandle| fdt.property_phandle(phandle))
        })
    }
}
