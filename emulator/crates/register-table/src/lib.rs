//! The registers of a device as one table: it gives the enum that the device matches on and the masks of its bit fields
//! ([`registers!`]), the C header of its driver ([`c_defines`]) and its documentation ([`markdown_rows`]).
//!
//! ```
//! register_table::registers! {
//!     Control "CONTROL" 0x00 "RW" "Control." control [RUN 0:0 "the counters count", MODE 5:4 "which cycles count"];
//!     Count "COUNT" 0x40 * 2 "RW" "Counters." [];
//! }
//! assert_eq!(register_table::find(TABLE, 0x48), Some((Reg::Count, 1)));
//! assert_eq!((control::RUN, control::MODE, control::ALL), (0x1, 0x30, 0x31));
//! assert_eq!(register_table::field(0x21, control::MODE), 2);
//! assert_eq!(register_table::in_field(control::MODE, 2), 0x20);
//! let header = register_table::c_defines("UNIT", TABLE);
//! assert!(header.contains("#define UNIT_CONTROL_RUN_MASK 0x1ULL"));
//! assert!(header.contains("#define UNIT_COUNT(n) (0x40 + 8 * (n))"));
//! ```

use std::fmt::Write;
use std::path::Path;

/// A bit field of a register.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Name as in the C header.
    pub name: &'static str,
    /// Lowest bit.
    pub lo: u32,
    /// Highest bit.
    pub hi: u32,
    /// One line for the header and the documentation.
    pub doc: &'static str,
}

/// One row of a table: a register of 64 bits, or several of the same kind, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct RegisterRow<R> {
    /// The register.
    pub reg: R,
    /// Name as in the C header.
    pub name: &'static str,
    /// Byte offset of the first; a multiple of 8.
    pub offset: u64,
    /// How many there are.
    pub count: u64,
    /// "RO", "RW" or "WO".
    pub access: &'static str,
    /// One line for the header and the documentation.
    pub doc: &'static str,
    /// Bit fields.
    pub fields: &'static [Field],
}

impl Field {
    /// Returns the bits of the field in its register.
    pub const fn mask(&self) -> u64 {
        (u64::MAX >> (63 - (self.hi - self.lo))) << self.lo
    }
}

/// Returns the value of the field with this mask in a register's `bits`.
pub const fn field(bits: u64, mask: u64) -> u64 {
    (bits & mask) >> mask.trailing_zeros()
}

/// Returns the bits of a register in which the field with this mask has a value; a value that is too large is cut off.
pub const fn in_field(mask: u64, value: u64) -> u64 {
    value << mask.trailing_zeros() & mask
}

/// Makes the enum `Reg` and its `TABLE` of rows
/// `Variant "NAME" offset [* count] "access" "doc" [module] [FIELD high:low "doc", …];`, and for each row with a module's name
/// that module, with the mask of each field and all of them as `ALL`.
#[macro_export]
macro_rules! registers {
    ($($variant:ident $name:literal $offset:literal $(* $count:literal)? $access:literal $doc:literal
        $($module:ident)? [$($field:ident $hi:literal : $lo:literal $fdoc:literal),* $(,)?];)*) => {
        /// A register of the unit.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Reg { $(#[doc = $doc] $variant,)* }

        /// The table, in order of offset.
        pub const TABLE: &[$crate::RegisterRow<Reg>] = &[$($crate::RegisterRow {
            reg: Reg::$variant,
            name: $name,
            offset: $offset,
            count: [1 $(, $count)?][[1 $(, $count)?].len() - 1],
            access: $access,
            doc: $doc,
            fields: &[$($crate::Field {
                name: stringify!($field),
                lo: $lo,
                hi: $hi,
                doc: $fdoc,
            }),*],
        }),*];

        $($crate::field_masks! { $variant [$($module)?] [$($field $hi:$lo $fdoc),*] })*
    };
}

/// Makes the module of a row of [`registers!`], if it has a name.
#[doc(hidden)]
#[macro_export]
macro_rules! field_masks {
    ($variant:ident [] $fields:tt) => {};
    ($variant:ident [$module:ident] [$($field:ident $hi:literal : $lo:literal $fdoc:literal),*]) => {
        #[doc = concat!("Bits of [`Reg::", stringify!($variant), "`](super::Reg::", stringify!($variant), ").")]
        pub mod $module {
            $(
                #[doc = concat!("Mask of: ", $fdoc, ".")]
                pub const $field: u64 = $crate::Field { name: "", lo: $lo, hi: $hi, doc: "" }.mask();
            )*
            /// Bits of all fields.
            pub const ALL: u64 = 0 $(| $field)*;
        }
    };
}

/// The register at a byte offset, and its number among those of its row, from 0.
pub fn find<R: Copy>(table: &[RegisterRow<R>], offset: u64) -> Option<(R, usize)> {
    let found = table.iter().find_map(|row| {
        let number = offset.checked_sub(row.offset)? / 8;
        (number < row.count).then_some((row.reg, number as usize))
    });
    found.filter(|_| offset.is_multiple_of(8))
}

/// The table in C: offsets as `<PREFIX>_<REG>`, with an argument where there are several, fields as `<PREFIX>_<REG>_<FIELD>_MASK`
/// (already shifted) and `…_SHIFT`.
pub fn c_defines<R>(prefix: &str, table: &[RegisterRow<R>]) -> String {
    let mut out = String::new();
    for row in table {
        let _ = writeln!(out, "\n/* {} ({}) */", row.doc, row.access);
        let (name, offset) = (format!("{prefix}_{}", row.name), row.offset);
        let _ = match row.count {
            1 => writeln!(out, "#define {name} 0x{offset:02x}"),
            _ => writeln!(out, "#define {name}(n) (0x{offset:02x} + 8 * (n))"),
        };
        for f in row.fields {
            let mask = f.mask();
            let name = format!("{name}_{}", f.name);
            let _ = writeln!(out, "#define {name}_SHIFT {}", f.lo);
            let _ = writeln!(out, "#define {name}_MASK 0x{mask:x}ULL /* {} */", f.doc);
        }
    }
    out
}

/// The rows of the documentation's table, in Markdown: offset, name, access, meaning.
pub fn markdown_rows<R>(table: &[RegisterRow<R>]) -> String {
    let mut out = String::new();
    for row in table {
        let last = row.offset + 8 * (row.count - 1);
        let offset = match row.count {
            1 => format!("0x{:02x}", row.offset),
            _ => format!("0x{:02x} to 0x{last:02x}", row.offset),
        };
        let _ = writeln!(out, "| {offset} | `{}` | {} | {} |", row.name, row.access, row.doc);
        for f in row.fields {
            let bits = if f.hi == f.lo { f.lo.to_string() } else { format!("{}..{}", f.hi, f.lo) };
            let _ = writeln!(out, "| | `{}` bit {bits} | | {} |", f.name, f.doc);
        }
    }
    out
}

/// For tests: a generated file is as expected. With `BLESS` in the environment it is written first; `command` does that.
pub fn is_generated(path: &Path, expected: &str, command: &str) -> Result<(), String> {
    let file = path.display();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, expected).map_err(|e| format!("{file}: {e}"))?;
    }
    let found = std::fs::read_to_string(path).map_err(|e| format!("{file}: {e}"))?;
    match found == expected {
        true => Ok(()),
        false => Err(format!("{file} is stale: run {command}")),
    }
}

#[cfg(test)]
#[expect(unreachable_pub, reason = "the macros make tables that other crates may export")]
mod tests {
    registers! {
        Control "CONTROL" 0x00 "RW" "Control." control [
            RUN 0:0 "the counters count",
            LEVEL 63:32 "a level",
        ];
        Count "COUNT" 0x08 * 2 "RW" "Counters." [];
    }

    #[test]
    fn the_masks_of_a_table_are_those_of_its_c_header() {
        let masks = [("RUN", control::RUN), ("LEVEL", control::LEVEL)];
        let header = super::c_defines("UNIT", TABLE);
        for (field, (name, mask)) in TABLE[0].fields.iter().zip(masks) {
            assert_eq!((field.name, field.mask()), (name, mask));
            assert!(header.contains(&format!("#define UNIT_CONTROL_{name}_MASK {mask:#x}ULL")));
        }
        assert_eq!(control::ALL, 0xffff_ffff_0000_0001);
    }

    #[test]
    fn a_value_goes_into_its_field_and_nowhere_else() {
        let bits = super::in_field(control::LEVEL, 0x7_1234_5678);
        assert_eq!(bits, 0x1234_5678_0000_0000);
        assert_eq!(super::field(bits | control::RUN, control::LEVEL), 0x1234_5678);
    }
}
