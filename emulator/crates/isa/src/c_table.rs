//! The instructions beyond RV64GC as a table in C, for disassemblers of C programs (perf in the guest).

use std::fmt::Write as _;

use crate::Op;
use crate::disasm::constant;
use crate::operand::Operand;
use crate::table::ROWS;

/// Zcb: mnemonic, fixed bits and their values, operands (see [`operand_letter`]; capitals are of the compressed formats).
const ZCB: [(&str, u32, u32, &str); 12] = [
    ("lbu", 0xfc03, 0x8000, "BX"),
    ("lhu", 0xfc43, 0x8400, "BH"),
    ("lh", 0xfc43, 0x8440, "BH"),
    ("sb", 0xfc03, 0x8800, "BX"),
    ("sh", 0xfc43, 0x8c00, "BH"),
    ("zext.b", 0xfc7f, 0x9c61, "AA"),
    ("sext.b", 0xfc7f, 0x9c65, "AA"),
    ("zext.h", 0xfc7f, 0x9c69, "AA"),
    ("sext.h", 0xfc7f, 0x9c6d, "AA"),
    ("zext.w", 0xfc7f, 0x9c71, "AA"),
    ("not", 0xfc7f, 0x9c75, "AA"),
    ("mul", 0xfc63, 0x9c41, "AAB"),
];

/// Aliases of these instructions: mnemonic, mask, value, operands. `=` is not an operand, but requires `rs1` = `rs2`.
const ALIASES: [(&str, u32, u32, &str); 4] = [
    ("zext.w", 0xfff0_707f, 0x0800_003b, "ds"),
    ("fmv.h", 0xfe00_707f, 0x2400_0053, "=DS"),
    ("fneg.h", 0xfe00_707f, 0x2400_1053, "=DS"),
    ("fabs.h", 0xfe00_707f, 0x2400_2053, "=DS"),
];

/// The header `riscv-insns.h`: `riscv_rows` has a row (mask, value, mnemonic, one letter for each operand) for each
/// instruction of an [`Extension`](crate::Extension), `riscv_fli` the constants of `fli`.
///
/// ```
/// assert!(isa::c_table().contains("{ 0xfe00707f, 0x20002033, \"sh1add\", \"dst\" },"));
/// ```
pub fn c_table() -> String {
    let mut text = String::from(
        "/* SPDX-License-Identifier: MIT OR Apache-2.0 */\n\
         /* Generated from the instruction table of the crate isa: BLESS=1 cargo test -p isa --test c_table */\n\
         static const struct riscv_row {\n\
         \tunsigned int mask, value;\n\
         \tconst char *mnemonic, *operands;\n\
         } riscv_rows[] = {\n",
    );
    let mut row = |mask, value, mnemonic: &str, operands: &str| {
        writeln!(text, "\t{{ {mask:#010x}, {value:#010x}, \"{mnemonic}\", \"{operands}\" }},")
            .expect("a string takes everything");
    };
    for (mnemonic, mask, value, operands) in ALIASES {
        row(mask, value, mnemonic, operands);
    }
    for table_row in ROWS.iter().filter(|row| !row.extensions.is_empty()) {
        let operands: String = table_row
            .operands
            .iter()
            .map(|operand| operand_letter(*operand, table_row.op))
            .collect();
        let (mask, value) = (table_row.encoding.mask, table_row.encoding.value);
        row(mask, value, table_row.mnemonic, &operands);
    }
    for (mnemonic, mask, value, operands) in ZCB {
        row(mask, value, mnemonic, operands);
    }
    text.push_str("};\n\nstatic const char *const riscv_fli[32] = {\n");
    for number in 0..32 {
        writeln!(text, "\t\"{}\",", constant(number)).expect("a string takes everything");
    }
    text.push_str("};\n");
    text
}

/// The letter that stands for an operand in the C table.
fn operand_letter(operand: Operand, op: Op) -> char {
    match operand {
        Operand::Rd | Operand::RdPair => 'd',
        Operand::Rs1 => 's',
        Operand::Rs2 | Operand::Rs2Pair => 't',
        Operand::Frd => 'D',
        Operand::Frs1 => 'S',
        Operand::Frs2 => 'T',
        Operand::Frs3 => 'R',
        Operand::Shamt => '>',
        Operand::AddrI => 'o',
        Operand::AddrS => 'q',
        Operand::Addr => 'a',
        Operand::Block => 'b',
        Operand::Constant => 'f',
        Operand::Rm if crate::disasm::is_exact(op) => 'e',
        Operand::Rm => 'm',
        // No extension has these.
        other => unreachable!("{other:?} has no letter"),
    }
}
