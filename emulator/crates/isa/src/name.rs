//! Names of registers and CSRs, as assembly writes them.

use crate::Reg;

/// ABI names in the unified numbering of [`Reg`].
const REGISTERS: [&str; 64] = [
    "zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", "a0", "a1", "a2", "a3", "a4",
    "a5", "a6", "a7", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4",
    "t5", "t6", "ft0", "ft1", "ft2", "ft3", "ft4", "ft5", "ft6", "ft7", "fs0", "fs1", "fa0", "fa1",
    "fa2", "fa3", "fa4", "fa5", "fa6", "fa7", "fs2", "fs3", "fs4", "fs5", "fs6", "fs7", "fs8",
    "fs9", "fs10", "fs11", "ft8", "ft9", "ft10", "ft11",
];

/// The ABI name of a register; `?` for a number above 63.
pub const fn register_name(register: Reg) -> &'static str {
    if register < 64 { REGISTERS[register as usize] } else { "?" }
}

/// The name of a CSR (Privileged ISA 1.13, tables 4 to 8), without the numbered ones.
const fn plain_csr_name(csr: u16) -> Option<&'static str> {
    Some(match csr {
        0x001 => "fflags",
        0x002 => "frm",
        0x003 => "fcsr",
        0xc00 => "cycle",
        0xc01 => "time",
        0xc02 => "instret",
        0x100 => "sstatus",
        0x104 => "sie",
        0x105 => "stvec",
        0x106 => "scounteren",
        0x10a => "senvcfg",
        0x120 => "scountinhibit",
        0x140 => "sscratch",
        0x141 => "sepc",
        0x142 => "scause",
        0x143 => "stval",
        0x144 => "sip",
        0x14d => "stimecmp",
        0x14e => "sctrctl",
        0x14f => "sctrstatus",
        0x150 => "siselect",
        0x151 => "sireg",
        0x152 => "sireg2",
        0x153 => "sireg3",
        0x155 => "sireg4",
        0x156 => "sireg5",
        0x157 => "sireg6",
        0x15f => "sctrdepth",
        0x180 => "satp",
        0xda0 => "scountovf",
        0xf11 => "mvendorid",
        0xf12 => "marchid",
        0xf13 => "mimpid",
        0xf14 => "mhartid",
        0xf15 => "mconfigptr",
        0x300 => "mstatus",
        0x301 => "misa",
        0x302 => "medeleg",
        0x303 => "mideleg",
        0x304 => "mie",
        0x305 => "mtvec",
        0x306 => "mcounteren",
        0x30a => "menvcfg",
        0x320 => "mcountinhibit",
        0x321 => "mcyclecfg",
        0x322 => "minstretcfg",
        0x340 => "mscratch",
        0x341 => "mepc",
        0x342 => "mcause",
        0x343 => "mtval",
        0x344 => "mip",
        0x34a => "mtinst",
        0x34b => "mtval2",
        0x34e => "mctrctl",
        0x350 => "miselect",
        0x351 => "mireg",
        0x352 => "mireg2",
        0x353 => "mireg3",
        0x355 => "mireg4",
        0x356 => "mireg5",
        0x357 => "mireg6",
        0x7a0 => "tselect",
        0x7a1 => "tdata1",
        0x7a2 => "tdata2",
        0x7a3 => "tdata3",
        0xb00 => "mcycle",
        0xb02 => "minstret",
        _ => return None,
    })
}

/// The name of a CSR, `None` for a number that the base, F and privileged
/// specifications, Sstc, Sscofpmf, Smcntrpmf, Smcsrind, Smcdeleg and Smctr leave unnamed.
pub fn csr_name(csr: u16) -> Option<String> {
    let (stem, number) = match csr {
        0xc03..=0xc1f => ("hpmcounter", csr - 0xc00),
        0xb03..=0xb1f => ("mhpmcounter", csr - 0xb00),
        0x323..=0x33f => ("mhpmevent", csr - 0x320),
        0x3a0..=0x3ae if csr & 1 == 0 => ("pmpcfg", csr - 0x3a0),
        0x3b0..=0x3ef => ("pmpaddr", csr - 0x3b0),
        _ => return plain_csr_name(csr).map(str::to_owned),
    };
    Some(format!("{stem}{number}"))
}
