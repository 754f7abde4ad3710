//! Control and status registers: their numbers, fields and storage. Reads and writes with their side
//! effects are in `csr_access`.

use isa::{Extension, Extensions, Interrupt, Privilege};

use crate::mmu::Satp;

/// CSR numbers (Privileged ISA 1.13, tables 3 to 6; Sstc; Sscofpmf; Smcntrpmf; Smcsrind;
/// Smcdeleg; Smctr).
pub(crate) mod number {
    pub(crate) const FFLAGS: u16 = 0x001;
    pub(crate) const FRM: u16 = 0x002;
    pub(crate) const FCSR: u16 = 0x003;
    pub(crate) const SSTATUS: u16 = 0x100;
    pub(crate) const SIE: u16 = 0x104;
    pub(crate) const STVEC: u16 = 0x105;
    pub(crate) const SCOUNTEREN: u16 = 0x106;
    pub(crate) const SENVCFG: u16 = 0x10a;
    pub(crate) const SCOUNTINHIBIT: u16 = 0x120;
    pub(crate) const SSCRATCH: u16 = 0x140;
    pub(crate) const SEPC: u16 = 0x141;
    pub(crate) const SCAUSE: u16 = 0x142;
    pub(crate) const STVAL: u16 = 0x143;
    pub(crate) const SIP: u16 = 0x144;
    pub(crate) const STIMECMP: u16 = 0x14d;
    pub(crate) const SCTRCTL: u16 = 0x14e;
    pub(crate) const SCTRSTATUS: u16 = 0x14f;
    pub(crate) const SISELECT: u16 = 0x150;
    pub(crate) const SIREG: u16 = 0x151;
    pub(crate) const SIREG2: u16 = 0x152;
    pub(crate) const SIREG3: u16 = 0x153;
    pub(crate) const SIREG6: u16 = 0x157;
    pub(crate) const SCTRDEPTH: u16 = 0x15f;
    pub(crate) const SATP: u16 = 0x180;
    pub(crate) const MSTATUS: u16 = 0x300;
    pub(crate) const MISA: u16 = 0x301;
    pub(crate) const MEDELEG: u16 = 0x302;
    pub(crate) const MIDELEG: u16 = 0x303;
    pub(crate) const MIE: u16 = 0x304;
    pub(crate) const MTVEC: u16 = 0x305;
    pub(crate) const MCOUNTEREN: u16 = 0x306;
    pub(crate) const MENVCFG: u16 = 0x30a;
    pub(crate) const MCOUNTINHIBIT: u16 = 0x320;
    pub(crate) const MCYCLECFG: u16 = 0x321;
    pub(crate) const MINSTRETCFG: u16 = 0x322;
    pub(crate) const MHPMEVENT3: u16 = 0x323;
    pub(crate) const MHPMEVENT31: u16 = 0x33f;
    pub(crate) const MSCRATCH: u16 = 0x340;
    pub(crate) const MEPC: u16 = 0x341;
    pub(crate) const MCAUSE: u16 = 0x342;
    pub(crate) const MTVAL: u16 = 0x343;
    pub(crate) const MIP: u16 = 0x344;
    pub(crate) const MCTRCTL: u16 = 0x34e;
    pub(crate) const MISELECT: u16 = 0x350;
    pub(crate) const PMPCFG0: u16 = 0x3a0;
    pub(crate) const PMPCFG2: u16 = 0x3a2;
    pub(crate) const PMPADDR0: u16 = 0x3b0;
    pub(crate) const PMPADDR15: u16 = 0x3bf;
    // CSRs of drafts, in the space for custom use.
    pub(crate) const SPDISCTL: u16 = 0x5c0;
    pub(crate) const SPDISCOUNTER: u16 = 0x5c1;
    pub(crate) const SPDISEVMASK: u16 = 0x5c2;
    pub(crate) const SPDISEVMATCH: u16 = 0x5c3;
    pub(crate) const SPDISFILTER: u16 = 0x5c4;
    pub(crate) const SPDISAMBCS: u16 = 0x5c5;
    pub(crate) const SPDISAMBADDR: u16 = 0x5c6;
    pub(crate) const SHPMSPC: u16 = 0x5c8;
    pub(crate) const SHPMSDATA: u16 = 0x5c9;
    pub(crate) const SHPMSCTL: u16 = 0x5ca;
    pub(crate) const SHPMSAMBCS: u16 = 0x5cb;
    pub(crate) const SHPMSAMBADDR: u16 = 0x5cc;
    pub(crate) const MPDISCTL: u16 = 0x7c0;
    pub(crate) const TSELECT: u16 = 0x7a0;
    pub(crate) const TDATA3: u16 = 0x7a3;
    pub(crate) const MCYCLE: u16 = 0xb00;
    pub(crate) const MINSTRET: u16 = 0xb02;
    pub(crate) const MHPMCOUNTER3: u16 = 0xb03;
    pub(crate) const MHPMCOUNTER31: u16 = 0xb1f;
    pub(crate) const CYCLE: u16 = 0xc00;
    pub(crate) const TIME: u16 = 0xc01;
    pub(crate) const HPMCOUNTER31: u16 = 0xc1f;
    pub(crate) const SCOUNTOVF: u16 = 0xda0;
    pub(crate) const MVENDORID: u16 = 0xf11;
    pub(crate) const MARCHID: u16 = 0xf12;
    pub(crate) const MIMPID: u16 = 0xf13;
    pub(crate) const MHARTID: u16 = 0xf14;
    pub(crate) const MCONFIGPTR: u16 = 0xf15;
}

/// `mstatus` fields.
pub(crate) mod status {
    pub(crate) const SIE: u64 = 1 << 1;
    pub(crate) const MIE: u64 = 1 << 3;
    pub(crate) const SPIE: u64 = 1 << 5;
    pub(crate) const MPIE: u64 = 1 << 7;
    pub(crate) const SPP: u64 = 1 << 8;
    pub(crate) const MPP: u64 = 3 << 11;
    pub(crate) const MPP_SHIFT: u32 = 11;
    pub(crate) const FS: u64 = 3 << 13;
    pub(crate) const MPRV: u64 = 1 << 17;
    pub(crate) const SUM: u64 = 1 << 18;
    pub(crate) const MXR: u64 = 1 << 19;
    pub(crate) const TVM: u64 = 1 << 20;
    pub(crate) const TW: u64 = 1 << 21;
    pub(crate) const TSR: u64 = 1 << 22;
    /// UXL = SXL = 2: 64 bits, fixed.
    pub(crate) const XL: u64 = 2 << 32 | 2 << 34;
    pub(crate) const SD: u64 = 1 << 63;
    /// What `sstatus` shows.
    pub(crate) const SSTATUS: u64 = SIE | SPIE | SPP | FS | SUM | MXR | 3 << 32 | SD;
    /// What a write to `sstatus` changes.
    pub(crate) const SSTATUS_WRITE: u64 = SIE | SPIE | SPP | FS | SUM | MXR;
    /// What a write to `mstatus` changes.
    pub(crate) const WRITE: u64 = SSTATUS_WRITE | MIE | MPIE | MPP | MPRV | TVM | TW | TSR;
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

    pub(crate) const FIOM: u64 = 1;
    /// What `cbo.inval` does: 0 illegal, 1 and 3 legal.
    pub(crate) const CBIE: u64 = 3 << 4;
    pub(crate) const CBCFE: u64 = 1 << 6;
    pub(crate) const CBZE: u64 = 1 << 7;
    /// The supervisor has the counters that `mcounteren` lets it read.
    pub(crate) const CDE: u64 = 1 << 60;
    pub(crate) const ADUE: u64 = 1 << 61;
    pub(crate) const PBMTE: u64 = 1 << 62;
    pub(crate) const STCE: u64 = 1 << 63;
    /// Bytes of a cache block.
    pub(crate) const BLOCK: u64 = 64;

    /// What a write of `value` leaves in `menvcfg`; what `senvcfg` has of it is the same.
    pub(crate) fn legalize(value: u64, extensions: Extensions) -> u64 {
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
    pub(crate) const SUPERVISOR: u64 = FIOM | CBIE | CBCFE | CBZE;
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
    pub(crate) fn new() -> Self {
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
    pub(crate) fn mstatus(&self) -> u64 {
        let dirty = self.mstatus & status::FS == status::FS;
        self.mstatus | if dirty { status::SD } else { 0 }
    }

    /// Writes the fields in `mask`; MPP keeps its value if 2 is written.
    pub(crate) fn set_mstatus(&mut self, value: u64, mask: u64) {
        let mut value = self.mstatus & !mask | value & mask;
        if Privilege::from_bits(value >> status::MPP_SHIFT).is_none() {
            value = value & !status::MPP | self.mstatus & status::MPP;
        }
        self.mstatus = value;
    }

    /// Previous privilege in M-mode's stack.
    pub(crate) fn mpp(&self) -> Privilege {
        Privilege::from_bits(self.mstatus >> status::MPP_SHIFT).unwrap_or(Privilege::User)
    }

    /// Sstc is on: `stimecmp` drives STIP.
    pub(crate) fn stce(&self) -> bool {
        self.menvcfg & envcfg::STCE != 0
    }
}
