//! Values that parse but describe no core: what parameters may be, and how they depend on each other.

use isa::Extension;

use super::limits::HasLimits;
use super::{Preset, PresetError};
use crate::mem::padded_line;
use crate::without::Without;

impl Preset {
    /// Returns the registers of the integer and the FP file that do not hold the architectural state.
    pub(crate) fn renamed_registers(&self) -> [u32; 2] {
        [self.rename.int_regs - 32, self.rename.fp_regs - 32]
    }

    /// Returns true if a register file can run out before the ROB is full.
    pub(crate) fn registers_are_scarce(&self) -> bool {
        self.renamed_registers().iter().any(|&n| n < self.rob.entries)
    }

    /// Checks every rule; the first broken one is the error.
    pub(super) fn check(&self, file: &str) -> Result<(), PresetError> {
        let bad = |key: &str, expected: String, found: u32| {
            Err(PresetError::Value {
                file: file.to_owned(),
                key: key.to_owned(),
                expected,
                found: found.to_string(),
            })
        };
        let mut limits = Vec::new();
        self.limits("", &mut limits);
        if let Some(limit) = limits.iter().find(|limit| !limit.holds()) {
            return bad(&limit.key, limit.expected(), limit.found);
        }
        if let Some((found, expected)) = self
            .what_if
            .without
            .iter()
            .find_map(|text| Some((text, text.parse::<Without>().err()?)))
        {
            return Err(PresetError::Value {
                file: file.to_owned(),
                key: "what_if.without".to_owned(),
                expected,
                found: format!("{found:?}"),
            });
        }
        if let Some(found) = self.what_if.padded.iter().find(|text| padded_line(text).is_none()) {
            return Err(PresetError::Value {
                file: file.to_owned(),
                key: "what_if.padded".to_owned(),
                expected: "0xPA, a physical address in hexadecimal".to_owned(),
                found: format!("{found:?}"),
            });
        }
        let width = self.decode.width;
        let ranges = [
            ("fetch.insts", self.fetch.insts, 1, self.fetch.bytes / 2),
            ("rob.entries", self.rob.entries, 2 * width, 256 * width),
            ("rename.int_regs", self.rename.int_regs, 33 + width, 32 + 256),
            ("rename.fp_regs", self.rename.fp_regs, 33 + width, 32 + 256),
            ("rename.branches", self.rename.branches, width, 127),
            ("issue.mem_entries", self.issue.mem_entries, width, 127),
            ("issue.int_entries", self.issue.int_entries, width, 127),
            ("issue.fp_entries", self.issue.fp_entries, width, 127),
        ];
        for (key, found, low, high) in ranges {
            if !(low..=high).contains(&found) {
                return bad(key, format!("{low} to {high}"), found);
            }
        }
        if let Some(extension) = self.isa.incomplete() {
            let key = |extension: &Extension| format!("isa.{}", extension.name());
            let needs: Vec<_> = extension.needs().iter().map(key).collect();
            return Err(PresetError::Value {
                file: file.to_owned(),
                key: key(&extension),
                expected: format!("false without {}", needs.join(" and ")),
                found: "true".to_owned(),
            });
        }
        let multiples = [("rob.entries", self.rob.entries), ("fetch.buffer", self.fetch.buffer)];
        for (key, found) in multiples {
            if found == 0 || found % width != 0 {
                return bad(key, format!("a multiple of decode.width = {width}"), found);
            }
        }
        let buffer = self.fetch.buffer;
        if buffer <= self.fetch.bytes / 2 || buffer > 16 * width {
            let (low, high) = (self.fetch.bytes / 2 + 1, 16 * width);
            return bad("fetch.buffer", format!("{low} to {high}"), buffer);
        }
        Ok(())
    }
}
