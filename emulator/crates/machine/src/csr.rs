//! Control and status registers: their numbers, fields and storage. Reads and writes with their side
//! effects are in `csr_access`.

use isa::{Extension, Extensions, Interrupt, Privilege};

use crate::mmu::Satp;

/// CSR numbers (Privileged ISA 1.13, tables 3 to 6; Sstc; Sscofpmf; Smcntrpmf; Smcsrind;
/// Smcdeleg; Smctr).
pub(crate) mod number {
    pub const FFLAGS: u16 = 0x001;
    pub const FRM: u16 = 0x002;
    pub const FCSR: u16 = 0x003;
    pub const SSTATUS: u16 = 0x100;
    pub const SIE: u16 = 0x104;
    pub const STVEC: u16 = 0x105;
    pub const SCOUNTEREN: u16 = 0x106;
    pub const SENVCFG: u16 = 0x10a;
    pub const SCOUNTINHIBIT: u16 = 0x120;
    pub const SSCRATCH: u16 = 0x140;
    pub const SEPC: u16 = 0x141;
    pub const SCAUSE: u16 = 0x142;
    pub const STVAL: u16 = 0x143;
    pub const SIP: u16 = 0x144;
    pub const STIMECMP: u16 = 0x14d;
    pub const SCTRCTL: u16 = 0x14e;
    pub const SCTRSTATUS: u16 = 0x14f;
    pub const SISELECT: u16 = 0x150;
    pub const SIREG: u16 = 0x151;
    pub const SIREG2: u16 = 0x152;
    pub const SIREG3: u16 = 0x153;
    pub const SIREG6: u16 = 0x157;
    pub const SCTRDEPTH: u16 = 0x15f;
    pub const SATP: u16 = 0x180;
    pub const MSTATUS: u16 = 0x300;
    pub const MISA: u16 = 0x301;
    pub const MEDELEG: u16 = 0x302;
    pub const MIDELEG: u16 = 0x303;
    pub const MIE: u16 = 0x304;
    pub const MTVEC: u16 = 0x305;
    pub const MCOUNTEREN: u16 = 0x306;
    pub const MENVCFG: u16 = 0x30a;
    pub const MCOUNTINHIBIT: u16 = 0x320;
    pub const MCYCLECFG: u16 = 0x321;
    pub const MINSTRETCFG: u16 = 0x322;
    pub const MHPMEVENT3: u16 = 0x323;
    pub const MHPMEVENT31: u16 = 0x33f;
    pub const MSCRATCH: u16 = 0x340;
    pub const MEPC: u16 = 0x341;
    pub const MCAUSE: u16 = 0x342;
    pub const MTVAL: u16 = 0x343;
    pub const MIP: u16 = 0x344;
    pub const MCTRCTL: u16 = 0x34e;
    pub const MISELECT: u16 = 0x350;
    pub const PMPCFG0: u16 = 0x3a0;
    pub const PMPCFG2: u16 = 0x3a2;
    pub const PMPADDR0: u16 = 0x3b0;
    pub const PMPADDR15: u16 = 0x3bf;
    // CSRs of drafts, in the space for custom use.
    pub const SPDISCTL: u16 = 0x5c0;
    pub const SPDISCOUNTER: u16 = 0x5c1;
    pub const SPDISEVMASK: u16 = 0x5c2;
    pub const SPDISEVMATCH: u16 = 0x5c3;
    pub const SPDISFILTER: u16 = 0x5c4;
    pub const SPDISAMBCS: u16 = 0x5c5;
    pub const SPDISAMBADDR: u16 = 0x5c6;
    pub const SHPMSPC: u16 = 0x5c8;
    pub const SHPMSDATA: u16 = 0x5c9;
    pub const SHPMSCTL: u16 = 0x5ca;
    pub const SHPMSAMBCS: u16 = 0x5cb;
    pub const SHPMSAMBADDR: u16 = 0x5cc;
    pub const MPDISCTL: u16 = 0x7c0;
    pub const TSELECT: u16 = 0x7a0;
    pub const TDATA3: u16 = 0x7a3;
    pub const MCYCLE: u16 = 0xb00;
    pub const MINSTRET: u16 = 0xb02;
    pub const MHPMCOUNTER3: u16 = 0xb03;
    pub const MHPMCOUNTER31: u16 = 0xb1f;
    pub const CYCLE: u16 = 0xc00;
    pub const TIME: u16 = 0xc01;
    pub const HPMCOUNTER31: u16 = 0xc1f;
    pub const SCOUNTOVF: u16 = 0xda0;
    pub const MVENDORID: u16 = 0xf11;
    pub const MARCHID: u16 = 0xf12;
    pub const MIMPID: u16 = 0xf13;
    pub const MHARTID: u16 = 0xf14;
    pub const MCONFIGPTR: u16 = 0xf15;
}

/// `mstatus` fields.
pub(crate) mod status {
    pub const SIE: u64 = 1 << 1;
    pub const MIE: u64 = 1 << 3;
    pub const SPIE: u64 = 1 << 5;
    pub const MPIE: u64 = 1 << 7;
    pub const SPP: u64 = 1 << 8;
    pub const MPP: u64 = 3 << 11;
    pub const MPP_SHIFT: u32 = 11;
    pub const FS: u64 = 3 << 13;
    pub const MPRV: u64 = 1 << 17;
    pub const SUM: u64 = 1 << 18;
    pub const MXR: u64 = 1 << 19;
    pub const TVM: u64 = 1 << 20;
    pub const TW: u64 = 1 << 21;
    pub const TSR: u64 = 1 << 22;
    /// UXL = SXL = 2: 64 bits, fixed.
    pub const XL: u64 = 2 << 32 | 2 << 34;
    pub const SD: u64 = 1 << 63;
    /// What `sstatus` shows.
    pub const SSTATUS: u64 = SIE | SPIE | SPP | FS | SUM | MXR | 3 << 32 | SD;
    /// What a write to `sstatus` changes.
    pub const SSTATUS_WRITE: u64 = SIE | SPIE | SPP | FS | SUM | MXR;
    /// What a write to `mstatus` changes.
    pub const WRITE: u64 = SSTATUS_WRITE | MIE | MPIE | MPP | MPRV | TVM | TW | TSR;
}

/// The `mip` bit of an interrupt.
pub(crate) const fn bit(interrupt: Interrupt) -> u64 {
    1 << interrupt as u8
}

pub(crate) const SSIP: u64 = bit(Interrupt::SupervisorSoftware);
pub(crate) const STIP: u64 = bit(Interrupt::SupervisorTimer);
pub(crate) const SEIP: u64 = bit(Interrupt::SupervisorExternal);
pub(crate) const LCOFIP: u64 = bit(Interrupt::CounterOverflow);
pub(crate) const LAMBIP: u64 = bit(Interrupt::MemoryBuffer);
/// Interrupts that can be delegated.
pub(crate) const DELEGABLE: u64 = SSIP | STIP | SEIP | LCOFIP | LAMBIP;
/// Every interrupt there is.
pub(crate) const ALL_INTERRUPTS: u64 = DELEGABLE
    | bit(Interrupt::MachineSoftware)
    | bit(Interrupt::MachineTimer)
    | bit(Interrupt::MachineExternal);
/// Exceptions that can be delegated: all but `ecall` from M-mode (0–9, 12, 13, 15).
pub(crate) const MEDELEG_WRITE: u64 = 0xb3ff;
/// What `miselect` and `siselect` hold: the least range that `siselect` must have, and as much for custom use.
pub(crate) const SELECT_WRITE: u64 = 1 << 63 | 0xfff;
/// Fields of `menvcfg`, and below bit 8 of `senvcfg`. Without ADUE, clear A or D bits are page faults
/// (Svade).
/// FIOM has no effect: every fence orders everything here.
pub(crate) mod envcfg {
    use isa::{Extension, Extensions};

    pub const FIOM: u64 = 1;
    /// What `cbo.inval` does: 0 illegal, 1 and 3 legal.
    pub const CBIE: u64 = 3 << 4;
    pub const CBCFE: u64 = 1 << 6;
    pub const CBZE: u64 = 1 << 7;
    /// The supervisor has the counters that `mcounteren` lets it read.
    pub const CDE: u64 = 1 << 60;
    pub const ADUE: u64 = 1 << 61;
    pub const PBMTE: u64 = 1 << 62;
    pub const STCE: u64 = 1 << 63;
    /// Bytes of a cache block.
    pub const BLOCK: u64 = 64;

    /// What a write of `value` leaves in `menvcfg`; what `senvcfg` has of it is the same.
    pub fn legalize(value: u64, extensions: Extensions) -> u64 {
        let of = [
            (CBIE | CBCFE, Extension::Zicbom),
            (CBZE, Extension::Zicboz),
            (CDE, Extension::Smcdeleg),
            (ADUE, Extension::Svadu),
            (PBMTE, Extension::Svpbmt),
            (STCE, Extension::Sstc),
        ];
        let present = of.iter().filter(|(_, extension)| extensions.has(*extension));
        let mask = present.fold(FIOM, |mask, (bits, _)| mask | bits);
        // CBIE 2 is reserved.
        let reserved = if value & CBIE == 2 << 4 { CBIE } else { 0 };
        value & mask & !reserved
    }

    /// The fields that `senvcfg` has.
    pub const SUPERVISOR: u64 = FIOM | CBIE | CBCFE | CBZE;
}
/// `misa`: RV64 with A, C, D, F, I, M, S, U, and B if all of Zba, Zbb and Zbs are there.
pub(crate) fn misa(extensions: Extensions) -> u64 {
    use Extension::{Zba, Zbb, Zbs};
    let letters = "acdfimsu".bytes();
    let base = letters.fold(2 << 62, |misa, letter| misa | 1 << (letter - b'a'));
    let b = [Zba, Zbb, Zbs].into_iter().all(|e| extensions.has(e));
    base | u64::from(b) << 1
}

/// `marchid`: "tip" and a version, with the top bit set, so that it is none of the numbers that RISC-V International gives out.
/// With `mvendorid` 0, perf finds the events of this core by it.
pub(crate) const MARCHID: u64 = 1 << 63 | 0x7469_7001;
/// `mimpid`: "tip" and a version.
pub(crate) const MIMPID: u64 = 0x0074_6970_0000_0001;

/// Storage of the CSRs that no other part of the hart owns.
#[derive(Clone, Debug)]
pub(crate) struct Csrs {
    pub mstatus: u64,
    pub medeleg: u64,
    pub mideleg: u64,
    pub mie: u64,
    /// The bits of `mip` that are storage: SSIP, STIP (without Sstc), SEIP's software half, LCOFIP.
    pub mip_soft: u64,
    pub mtvec: u64,
    pub mcounteren: u64,
    pub menvcfg: u64,
    pub mscratch: u64,
    pub mepc: u64,
    pub mcause: u64,
    pub mtval: u64,
    pub miselect: u64,
    pub stvec: u64,
    pub scounteren: u64,
    pub senvcfg: u64,
    pub sscratch: u64,
    pub sepc: u64,
    pub scause: u64,
    pub stval: u64,
    pub stimecmp: u64,
    pub siselect: u64,
    pub satp: Satp,
    /// Accrued exception flags.
    pub fflags: u8,
    /// Dynamic rounding mode.
    pub frm: u8,
}

snapshot::snapshot!(Csrs {
    mstatus,
    medeleg,
    mideleg,
    mie,
    mip_soft,
    mtvec,
    mcounteren,
    menvcfg,
    mscratch,
    mepc,
    mcause,
    mtval,
    miselect,
    stvec,
    scounteren,
    senvcfg,
    sscratch,
    sepc,
    scause,
    stval,
    stimecmp,
    siselect,
    satp,
    fflags,
    frm,
});

impl Csrs {
    pub fn new() -> Self {
        Self {
            mstatus: status::XL,
            medeleg: 0,
            // Read-only one: firmware that knows nothing of it need not delegate it.
            mideleg: LAMBIP,
            mie: 0,
            mip_soft: 0,
            mtvec: 0,
            mcounteren: 0,
            menvcfg: 0,
            mscratch: 0,
            mepc: 0,
            mcause: 0,
            mtval: 0,
            miselect: 0,
            stvec: 0,
            scounteren: 0,
            senvcfg: 0,
            sscratch: 0,
            sepc: 0,
            scause: 0,
            stval: 0,
            stimecmp: u64::MAX,
            siselect: 0,
            satp: Satp::default(),
            fflags: 0,
            frm: 0,
        }
    }

    /// `mstatus` with SD worked out.
    pub fn mstatus(&self) -> u64 {
        let dirty = self.mstatus & status::FS == status::FS;
        self.mstatus | if dirty { status::SD } else { 0 }
    }

    /// Writes the fields in `mask`; MPP keeps its value if 2 is written.
    pub fn set_mstatus(&mut self, value: u64, mask: u64) {
        let mut value = self.mstatus & !mask | value & mask;
        if Privilege::from_bits(value >> status::MPP_SHIFT).is_none() {
            value = value & !status::MPP | self.mstatus & status::MPP;
        }
        self.mstatus = value;
    }

    /// Previous privilege in M-mode's stack.
    pub fn mpp(&self) -> Privilege {
        Privilege::from_bits(self.mstatus >> status::MPP_SHIFT).unwrap_or(Privilege::User)
    }

    /// Sstc is on: `stimecmp` drives STIP.
    pub fn stce(&self) -> bool {
        self.menvcfg & envcfg::STCE != 0
    }
}
