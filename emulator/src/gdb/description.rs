//! The target as GDB is told of it.

/// GDB's numbers of CSR 0, and of the privilege.
const FIRST_CSR: u16 = 65;
const PRIVILEGE: u16 = FIRST_CSR + (1 << 12);

/// The registers, with these CSRs, by GDB's names and numbers (GDB manual, appendix G.5.11).
pub(super) fn description(csrs: impl Iterator<Item = u16>) -> String {
    // Without an ABI of an operating system GDB has the hart make its steps. With Linux', which it takes for its own
    // where a file does not say, it guesses where one leads, and an environment call or a trap's return go elsewhere.
    let mut text = String::from(
        "<?xml version=\"1.0\"?><!DOCTYPE target SYSTEM \"gdb-target.dtd\"><target version=\"1.0\">\
         <architecture>riscv:rv64</architecture><osabi>none</osabi><feature name=\"org.gnu.gdb.riscv.cpu\">",
    );
    for n in 0..32 {
        let name = isa::register_name(n);
        text += &format!("<reg name=\"{name}\" bitsize=\"64\" regnum=\"{n}\"/>");
    }
    text += "<reg name=\"pc\" bitsize=\"64\" type=\"code_ptr\" regnum=\"32\"/></feature>\
             <feature name=\"org.gnu.gdb.riscv.fpu\">";
    for n in 32..64 {
        let name = isa::register_name(n);
        let number = n + 1;
        text += &format!(
            "<reg name=\"{name}\" bitsize=\"64\" type=\"ieee_double\" regnum=\"{number}\"/>"
        );
    }
    text += "</feature><feature name=\"org.gnu.gdb.riscv.csr\">";
    for (csr, name) in csrs.filter_map(|csr| Some((csr, isa::csr_name(csr)?))) {
        let number = FIRST_CSR + csr;
        text += &format!("<reg name=\"{name}\" bitsize=\"64\" regnum=\"{number}\"/>");
    }
    text += "</feature><feature name=\"org.gnu.gdb.riscv.virtual\">";
    text += &format!("<reg name=\"priv\" bitsize=\"8\" regnum=\"{PRIVILEGE}\"/>");
    text + "</feature></target>"
}
