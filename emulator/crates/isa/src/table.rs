//! The instruction table: one row per instruction. The operation enum, the decoder, the
//! disassembler and the machine's dispatch are generated from these rows.

use crate::operand::{Operand, format};
use crate::pattern::{Pattern, pattern};
use crate::{Extension, InstClass};

/// What the table says of one operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpRow {
    pub op: Op,
    pub mnemonic: &'static str,
    pub encoding: Pattern,
    /// Operands in assembly order: decoded and printed by [`crate::operand`].
    pub operands: &'static [Operand],
    pub class: InstClass,
    /// The optional [`Extension`]s that the instruction needs.
    pub extensions: &'static [Extension],
}

/// Turns the rows into the [`Op`] enum, the `ROWS` constant and the `for_each_op!` macro.
macro_rules! instructions {
    ($d:tt $($variant:ident $method:ident $mnemonic:literal $bits:literal $format:ident $class:ident $($extension:ident)*;)*) => {
        /// Operations: one for each row of the instruction table.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u16)]
        pub enum Op {
            /// Not an instruction: the encoding is reserved, or could not be fetched.
            Illegal = 0,
            $(#[doc = concat!("`", $mnemonic, "`.")] $variant,)*
        }

        impl Op {
            /// Every operation, in numeric order.
            pub const ALL: &'static [Op] = &[Op::Illegal, $(Op::$variant,)*];
        }

        /// The table, indexed by `Op as usize`.
        pub(crate) const ROWS: &[OpRow] = &[
            OpRow {
                op: Op::Illegal,
                mnemonic: "illegal",
                encoding: Pattern::NEVER,
                operands: format::NONE,
                class: InstClass::Illegal,
                extensions: &[],
            },
            $(OpRow {
                op: Op::$variant,
                mnemonic: $mnemonic,
                encoding: pattern($bits),
                operands: format::$format,
                class: InstClass::$class,
                extensions: &[$(Extension::$extension),*],
            },)*
        ];

        export_for_each_op! { $d $($variant $method)* }
    };
}

/// `$d` is a dollar sign, so that the exported macro can have parameters of its own.
macro_rules! export_for_each_op {
    ($d:tt $($variant:ident $method:ident)*) => {
        /// Calls `callback! { Illegal illegal, Lui lui, … FaddS fadd_s, … }` with the variant and
        /// the method name of every [`Op`]; further tokens come first, before a semicolon:
        /// `for_each_op!(callback, x, y)` calls `callback! { x, y; Illegal illegal, … }`.
        ///
        /// ```
        /// use isa::Op;
        /// macro_rules! method_name {
        ///     ($op:expr; $($variant:ident $method:ident,)*) => {
        ///         match $op { $(Op::$variant => stringify!($method),)* }
        ///     };
        /// }
        /// let op = Op::FaddS;
        /// assert_eq!(isa::for_each_op!(method_name, op), "fadd_s");
        /// ```
        #[macro_export]
        macro_rules! for_each_op {
            ($d callback:ident) => {
                $d callback! { Illegal illegal, $($variant $method,)* }
            };
            ($d callback:ident, $d ($d argument:tt)*) => {
                $d callback! { $d ($d argument)*; Illegal illegal, $($variant $method,)* }
            };
        }
    };
}

impl Op {
    pub(crate) const fn row(self) -> &'static OpRow {
        &ROWS[self as usize]
    }

    /// The assembly mnemonic, without `.aq` and `.rl`.
    pub const fn mnemonic(self) -> &'static str {
        self.row().mnemonic
    }

    /// The fixed bits of its 32-bit encoding, as (value, mask).
    pub const fn encoding(self) -> (u32, u32) {
        (self.row().encoding.value, self.row().encoding.mask)
    }

    /// Returns the optional extensions that the operation needs.
    pub const fn extensions(self) -> &'static [Extension] {
        self.row().extensions
    }

    /// Returns the class of the operation, which decides queue, ports and latency in the timing core.
    pub const fn class(self) -> InstClass {
        self.row().class
    }
}

// Columns: variant, execute method, mnemonic, fixed bits (`.` is a field), operands, class, and the extensions
// that an instruction needs and a machine may lack.
instructions! { $
    // RV64I: constants, jumps and branches.
    Lui       lui        "lui"        "....... ..... ..... ... ..... 0110111"  U      IntAlu;
    Auipc     auipc      "auipc"      "....... ..... ..... ... ..... 0010111"  U      IntAlu;
    Jal       jal        "jal"        "....... ..... ..... ... ..... 1101111"  J      Jal;
    Jalr      jalr       "jalr"       "....... ..... ..... 000 ..... 1100111"  JALR   Jalr;
    Beq       beq        "beq"        "....... ..... ..... 000 ..... 1100011"  B      Branch;
    Bne       bne        "bne"        "....... ..... ..... 001 ..... 1100011"  B      Branch;
    Blt       blt        "blt"        "....... ..... ..... 100 ..... 1100011"  B      Branch;
    Bge       bge        "bge"        "....... ..... ..... 101 ..... 1100011"  B      Branch;
    Bltu      bltu       "bltu"       "....... ..... ..... 110 ..... 1100011"  B      Branch;
    Bgeu      bgeu       "bgeu"       "....... ..... ..... 111 ..... 1100011"  B      Branch;

    // RV64I: loads and stores.
    Lb        lb         "lb"         "....... ..... ..... 000 ..... 0000011"  LOAD   Load;
    Lh        lh         "lh"         "....... ..... ..... 001 ..... 0000011"  LOAD   Load;
    Lw        lw         "lw"         "....... ..... ..... 010 ..... 0000011"  LOAD   Load;
    Ld        ld         "ld"         "....... ..... ..... 011 ..... 0000011"  LOAD   Load;
    Lbu       lbu        "lbu"        "....... ..... ..... 100 ..... 0000011"  LOAD   Load;
    Lhu       lhu        "lhu"        "....... ..... ..... 101 ..... 0000011"  LOAD   Load;
    Lwu       lwu        "lwu"        "....... ..... ..... 110 ..... 0000011"  LOAD   Load;
    Sb        sb         "sb"         "....... ..... ..... 000 ..... 0100011"  STORE  Store;
    Sh        sh         "sh"         "....... ..... ..... 001 ..... 0100011"  STORE  Store;
    Sw        sw         "sw"         "....... ..... ..... 010 ..... 0100011"  STORE  Store;
    Sd        sd         "sd"         "....... ..... ..... 011 ..... 0100011"  STORE  Store;

    // RV64I: integer computation.
    Addi      addi       "addi"       "....... ..... ..... 000 ..... 0010011"  I      IntAlu;
    Slti      slti       "slti"       "....... ..... ..... 010 ..... 0010011"  I      IntAlu;
    Sltiu     sltiu      "sltiu"      "....... ..... ..... 011 ..... 0010011"  I      IntAlu;
    Xori      xori       "xori"       "....... ..... ..... 100 ..... 0010011"  I      IntAlu;
    Ori       ori        "ori"        "....... ..... ..... 110 ..... 0010011"  I      IntAlu;
    Andi      andi       "andi"       "....... ..... ..... 111 ..... 0010011"  I      IntAlu;
    Slli      slli       "slli"       "000000. ..... ..... 001 ..... 0010011"  SHIFT  IntAlu;
    Srli      srli       "srli"       "000000. ..... ..... 101 ..... 0010011"  SHIFT  IntAlu;
    Srai      srai       "srai"       "010000. ..... ..... 101 ..... 0010011"  SHIFT  IntAlu;
    Add       add        "add"        "0000000 ..... ..... 000 ..... 0110011"  R      IntAlu;
    Sub       sub        "sub"        "0100000 ..... ..... 000 ..... 0110011"  R      IntAlu;
    Sll       sll        "sll"        "0000000 ..... ..... 001 ..... 0110011"  R      IntAlu;
    Slt       slt        "slt"        "0000000 ..... ..... 010 ..... 0110011"  R      IntAlu;
    Sltu      sltu       "sltu"       "0000000 ..... ..... 011 ..... 0110011"  R      IntAlu;
    Xor       xor        "xor"        "0000000 ..... ..... 100 ..... 0110011"  R      IntAlu;
    Srl       srl        "srl"        "0000000 ..... ..... 101 ..... 0110011"  R      IntAlu;
    Sra       sra        "sra"        "0100000 ..... ..... 101 ..... 0110011"  R      IntAlu;
    Or        or         "or"         "0000000 ..... ..... 110 ..... 0110011"  R      IntAlu;
    And       and        "and"        "0000000 ..... ..... 111 ..... 0110011"  R      IntAlu;
    Addiw     addiw      "addiw"      "....... ..... ..... 000 ..... 0011011"  I      IntAlu;
    Slliw     slliw      "slliw"      "0000000 ..... ..... 001 ..... 0011011"  SHIFT  IntAlu;
    Srliw     srliw      "srliw"      "0000000 ..... ..... 101 ..... 0011011"  SHIFT  IntAlu;
    Sraiw     sraiw      "sraiw"      "0100000 ..... ..... 101 ..... 0011011"  SHIFT  IntAlu;
    Addw      addw       "addw"       "0000000 ..... ..... 000 ..... 0111011"  R      IntAlu;
    Subw      subw       "subw"       "0100000 ..... ..... 000 ..... 0111011"  R      IntAlu;
    Sllw      sllw       "sllw"       "0000000 ..... ..... 001 ..... 0111011"  R      IntAlu;
    Srlw      srlw       "srlw"       "0000000 ..... ..... 101 ..... 0111011"  R      IntAlu;
    Sraw      sraw       "sraw"       "0100000 ..... ..... 101 ..... 0111011"  R      IntAlu;

    // Memory ordering. `fence.tso` and `pause` are fences here; reserved fields are ignored, as the
    // specification asks of base implementations.
    Fence     fence      "fence"      "....... ..... ..... 000 ..... 0001111"  FENCE  Fence;
    FenceI    fence_i    "fence.i"    "....... ..... ..... 001 ..... 0001111"  NONE   FenceI;

    // System: Zicsr and the privileged instructions.
    Csrrw     csrrw      "csrrw"      "....... ..... ..... 001 ..... 1110011"  CSR    Csr;
    Csrrs     csrrs      "csrrs"      "....... ..... ..... 010 ..... 1110011"  CSR    Csr;
    Csrrc     csrrc      "csrrc"      "....... ..... ..... 011 ..... 1110011"  CSR    Csr;
    Csrrwi    csrrwi     "csrrwi"     "....... ..... ..... 101 ..... 1110011"  CSRI   Csr;
    Csrrsi    csrrsi     "csrrsi"     "....... ..... ..... 110 ..... 1110011"  CSRI   Csr;
    Csrrci    csrrci     "csrrci"     "....... ..... ..... 111 ..... 1110011"  CSRI   Csr;
    Ecall     ecall      "ecall"      "0000000 00000 00000 000 00000 1110011"  NONE   Ecall;
    Ebreak    ebreak     "ebreak"     "0000000 00001 00000 000 00000 1110011"  NONE   Ecall;
    Sret      sret       "sret"       "0001000 00010 00000 000 00000 1110011"  NONE   Xret;
    Mret      mret       "mret"       "0011000 00010 00000 000 00000 1110011"  NONE   Xret;
    Wfi       wfi        "wfi"        "0001000 00101 00000 000 00000 1110011"  NONE   Wfi;
    SfenceVma sfence_vma "sfence.vma" "0001001 ..... ..... 000 00000 1110011"  SFENCE SfenceVma;

    // M: multiplication and division.
    Mul       mul        "mul"        "0000001 ..... ..... 000 ..... 0110011"  R      IntMul;
    Mulh      mulh       "mulh"       "0000001 ..... ..... 001 ..... 0110011"  R      IntMul;
    Mulhsu    mulhsu     "mulhsu"     "0000001 ..... ..... 010 ..... 0110011"  R      IntMul;
    Mulhu     mulhu      "mulhu"      "0000001 ..... ..... 011 ..... 0110011"  R      IntMul;
    Div       div        "div"        "0000001 ..... ..... 100 ..... 0110011"  R      IntDiv;
    Divu      divu       "divu"       "0000001 ..... ..... 101 ..... 0110011"  R      IntDiv;
    Rem       rem        "rem"        "0000001 ..... ..... 110 ..... 0110011"  R      IntDiv;
    Remu      remu       "remu"       "0000001 ..... ..... 111 ..... 0110011"  R      IntDiv;
    Mulw      mulw       "mulw"       "0000001 ..... ..... 000 ..... 0111011"  R      IntMul;
    Divw      divw       "divw"       "0000001 ..... ..... 100 ..... 0111011"  R      IntDiv;
    Divuw     divuw      "divuw"      "0000001 ..... ..... 101 ..... 0111011"  R      IntDiv;
    Remw      remw       "remw"       "0000001 ..... ..... 110 ..... 0111011"  R      IntDiv;
    Remuw     remuw      "remuw"      "0000001 ..... ..... 111 ..... 0111011"  R      IntDiv;

    // A: atomics (aq and rl are read from the encoding).
    LrW       lr_w       "lr.w"       "00010.. 00000 ..... 010 ..... 0101111"  LR     LoadReserved;
    ScW       sc_w       "sc.w"       "00011.. ..... ..... 010 ..... 0101111"  AMO    StoreConditional;
    AmoswapW  amoswap_w  "amoswap.w"  "00001.. ..... ..... 010 ..... 0101111"  AMO    Amo;
    AmoaddW   amoadd_w   "amoadd.w"   "00000.. ..... ..... 010 ..... 0101111"  AMO    Amo;
    AmoxorW   amoxor_w   "amoxor.w"   "00100.. ..... ..... 010 ..... 0101111"  AMO    Amo;
    AmoandW   amoand_w   "amoand.w"   "01100.. ..... ..... 010 ..... 0101111"  AMO    Amo;
    AmoorW    amoor_w    "amoor.w"    "01000.. ..... ..... 010 ..... 0101111"  AMO    Amo;
    AmominW   amomin_w   "amomin.w"   "10000.. ..... ..... 010 ..... 0101111"  AMO    Amo;
    AmomaxW   amomax_w   "amomax.w"   "10100.. ..... ..... 010 ..... 0101111"  AMO    Amo;
    AmominuW  amominu_w  "amominu.w"  "11000.. ..... ..... 010 ..... 0101111"  AMO    Amo;
    AmomaxuW  amomaxu_w  "amomaxu.w"  "11100.. ..... ..... 010 ..... 0101111"  AMO    Amo;
    LrD       lr_d       "lr.d"       "00010.. 00000 ..... 011 ..... 0101111"  LR     LoadReserved;
    ScD       sc_d       "sc.d"       "00011.. ..... ..... 011 ..... 0101111"  AMO    StoreConditional;
    AmoswapD  amoswap_d  "amoswap.d"  "00001.. ..... ..... 011 ..... 0101111"  AMO    Amo;
    AmoaddD   amoadd_d   "amoadd.d"   "00000.. ..... ..... 011 ..... 0101111"  AMO    Amo;
    AmoxorD   amoxor_d   "amoxor.d"   "00100.. ..... ..... 011 ..... 0101111"  AMO    Amo;
    AmoandD   amoand_d   "amoand.d"   "01100.. ..... ..... 011 ..... 0101111"  AMO    Amo;
    AmoorD    amoor_d    "amoor.d"    "01000.. ..... ..... 011 ..... 0101111"  AMO    Amo;
    AmominD   amomin_d   "amomin.d"   "10000.. ..... ..... 011 ..... 0101111"  AMO    Amo;
    AmomaxD   amomax_d   "amomax.d"   "10100.. ..... ..... 011 ..... 0101111"  AMO    Amo;
    AmominuD  amominu_d  "amominu.d"  "11000.. ..... ..... 011 ..... 0101111"  AMO    Amo;
    AmomaxuD  amomaxu_d  "amomaxu.d"  "11100.. ..... ..... 011 ..... 0101111"  AMO    Amo;

    // F: single precision.
    Flw       flw        "flw"        "....... ..... ..... 010 ..... 0000111"  FLOAD  FpLoad;
    Fsw       fsw        "fsw"        "....... ..... ..... 010 ..... 0100111"  FSTORE FpStore;
    FmaddS    fmadd_s    "fmadd.s"    ".....00 ..... ..... ... ..... 1000011"  FR4    FpArith;
    FmsubS    fmsub_s    "fmsub.s"    ".....00 ..... ..... ... ..... 1000111"  FR4    FpArith;
    FnmsubS   fnmsub_s   "fnmsub.s"   ".....00 ..... ..... ... ..... 1001011"  FR4    FpArith;
    FnmaddS   fnmadd_s   "fnmadd.s"   ".....00 ..... ..... ... ..... 1001111"  FR4    FpArith;
    FaddS     fadd_s     "fadd.s"     "0000000 ..... ..... ... ..... 1010011"  FRM    FpArith;
    FsubS     fsub_s     "fsub.s"     "0000100 ..... ..... ... ..... 1010011"  FRM    FpArith;
    FmulS     fmul_s     "fmul.s"     "0001000 ..... ..... ... ..... 1010011"  FRM    FpArith;
    FdivS     fdiv_s     "fdiv.s"     "0001100 ..... ..... ... ..... 1010011"  FRM    FpDivSqrt;
    FsqrtS    fsqrt_s    "fsqrt.s"    "0101100 00000 ..... ... ..... 1010011"  F1RM   FpDivSqrt;
    FsgnjS    fsgnj_s    "fsgnj.s"    "0010000 ..... ..... 000 ..... 1010011"  FR     FpArith;
    FsgnjnS   fsgnjn_s   "fsgnjn.s"   "0010000 ..... ..... 001 ..... 1010011"  FR     FpArith;
    FsgnjxS   fsgnjx_s   "fsgnjx.s"   "0010000 ..... ..... 010 ..... 1010011"  FR     FpArith;
    FminS     fmin_s     "fmin.s"     "0010100 ..... ..... 000 ..... 1010011"  FR     FpArith;
    FmaxS     fmax_s     "fmax.s"     "0010100 ..... ..... 001 ..... 1010011"  FR     FpArith;
    FleS      fle_s      "fle.s"      "1010000 ..... ..... 000 ..... 1010011"  FCMP   FpToInt;
    FltS      flt_s      "flt.s"      "1010000 ..... ..... 001 ..... 1010011"  FCMP   FpToInt;
    FeqS      feq_s      "feq.s"      "1010000 ..... ..... 010 ..... 1010011"  FCMP   FpToInt;
    FclassS   fclass_s   "fclass.s"   "1110000 00000 ..... 001 ..... 1010011"  FTOX   FpToInt;
    FmvXW     fmv_x_w    "fmv.x.w"    "1110000 00000 ..... 000 ..... 1010011"  FTOX   FpToInt;
    FmvWX     fmv_w_x    "fmv.w.x"    "1111000 00000 ..... 000 ..... 1010011"  XTOF   IntToFp;
    FcvtWS    fcvt_w_s   "fcvt.w.s"   "1100000 00000 ..... ... ..... 1010011"  FTOXRM FpToInt;
    FcvtWuS   fcvt_wu_s  "fcvt.wu.s"  "1100000 00001 ..... ... ..... 1010011"  FTOXRM FpToInt;
    FcvtLS    fcvt_l_s   "fcvt.l.s"   "1100000 00010 ..... ... ..... 1010011"  FTOXRM FpToInt;
    FcvtLuS   fcvt_lu_s  "fcvt.lu.s"  "1100000 00011 ..... ... ..... 1010011"  FTOXRM FpToInt;
    FcvtSW    fcvt_s_w   "fcvt.s.w"   "1101000 00000 ..... ... ..... 1010011"  XTOFRM IntToFp;
    FcvtSWu   fcvt_s_wu  "fcvt.s.wu"  "1101000 00001 ..... ... ..... 1010011"  XTOFRM IntToFp;
    FcvtSL    fcvt_s_l   "fcvt.s.l"   "1101000 00010 ..... ... ..... 1010011"  XTOFRM IntToFp;
    FcvtSLu   fcvt_s_lu  "fcvt.s.lu"  "1101000 00011 ..... ... ..... 1010011"  XTOFRM IntToFp;

    // D: double precision.
    Fld       fld        "fld"        "....... ..... ..... 011 ..... 0000111"  FLOAD  FpLoad;
    Fsd       fsd        "fsd"        "....... ..... ..... 011 ..... 0100111"  FSTORE FpStore;
    FmaddD    fmadd_d    "fmadd.d"    ".....01 ..... ..... ... ..... 1000011"  FR4    FpArith;
    FmsubD    fmsub_d    "fmsub.d"    ".....01 ..... ..... ... ..... 1000111"  FR4    FpArith;
    FnmsubD   fnmsub_d   "fnmsub.d"   ".....01 ..... ..... ... ..... 1001011"  FR4    FpArith;
    FnmaddD   fnmadd_d   "fnmadd.d"   ".....01 ..... ..... ... ..... 1001111"  FR4    FpArith;
    FaddD     fadd_d     "fadd.d"     "0000001 ..... ..... ... ..... 1010011"  FRM    FpArith;
    FsubD     fsub_d     "fsub.d"     "0000101 ..... ..... ... ..... 1010011"  FRM    FpArith;
    FmulD     fmul_d     "fmul.d"     "0001001 ..... ..... ... ..... 1010011"  FRM    FpArith;
    FdivD     fdiv_d     "fdiv.d"     "0001101 ..... ..... ... ..... 1010011"  FRM    FpDivSqrt;
    FsqrtD    fsqrt_d    "fsqrt.d"    "0101101 00000 ..... ... ..... 1010011"  F1RM   FpDivSqrt;
    FsgnjD    fsgnj_d    "fsgnj.d"    "0010001 ..... ..... 000 ..... 1010011"  FR     FpArith;
    FsgnjnD   fsgnjn_d   "fsgnjn.d"   "0010001 ..... ..... 001 ..... 1010011"  FR     FpArith;
    FsgnjxD   fsgnjx_d   "fsgnjx.d"   "0010001 ..... ..... 010 ..... 1010011"  FR     FpArith;
    FminD     fmin_d     "fmin.d"     "0010101 ..... ..... 000 ..... 1010011"  FR     FpArith;
    FmaxD     fmax_d     "fmax.d"     "0010101 ..... ..... 001 ..... 1010011"  FR     FpArith;
    FleD      fle_d      "fle.d"      "1010001 ..... ..... 000 ..... 1010011"  FCMP   FpToInt;
    FltD      flt_d      "flt.d"      "1010001 ..... ..... 001 ..... 1010011"  FCMP   FpToInt;
    FeqD      feq_d      "feq.d"      "1010001 ..... ..... 010 ..... 1010011"  FCMP   FpToInt;
    FclassD   fclass_d   "fclass.d"   "1110001 00000 ..... 001 ..... 1010011"  FTOX   FpToInt;
    FmvXD     fmv_x_d    "fmv.x.d"    "1110001 00000 ..... 000 ..... 1010011"  FTOX   FpToInt;
    FmvDX     fmv_d_x    "fmv.d.x"    "1111001 00000 ..... 000 ..... 1010011"  XTOF   IntToFp;
    FcvtWD    fcvt_w_d   "fcvt.w.d"   "1100001 00000 ..... ... ..... 1010011"  FTOXRM FpToInt;
    FcvtWuD   fcvt_wu_d  "fcvt.wu.d"  "1100001 00001 ..... ... ..... 1010011"  FTOXRM FpToInt;
    FcvtLD    fcvt_l_d   "fcvt.l.d"   "1100001 00010 ..... ... ..... 1010011"  FTOXRM FpToInt;
    FcvtLuD   fcvt_lu_d  "fcvt.lu.d"  "1100001 00011 ..... ... ..... 1010011"  FTOXRM FpToInt;
    FcvtDW    fcvt_d_w   "fcvt.d.w"   "1101001 00000 ..... ... ..... 1010011"  XTOFRM IntToFp;
    FcvtDWu   fcvt_d_wu  "fcvt.d.wu"  "1101001 00001 ..... ... ..... 1010011"  XTOFRM IntToFp;
    FcvtDL    fcvt_d_l   "fcvt.d.l"   "1101001 00010 ..... ... ..... 1010011"  XTOFRM IntToFp;
    FcvtDLu   fcvt_d_lu  "fcvt.d.lu"  "1101001 00011 ..... ... ..... 1010011"  XTOFRM IntToFp;
    FcvtSD    fcvt_s_d   "fcvt.s.d"   "0100000 00001 ..... ... ..... 1010011"  F1RM   FpArith;
    FcvtDS    fcvt_d_s   "fcvt.d.s"   "0100001 00000 ..... ... ..... 1010011"  F1RM   FpArith;

    // Zfhmin: half precision in memory, and its conversion to the other formats.
    Flh       flh        "flh"        "....... ..... ..... 001 ..... 0000111"  FLOAD  FpLoad Zfhmin;
    Fsh       fsh        "fsh"        "....... ..... ..... 001 ..... 0100111"  FSTORE FpStore Zfhmin;
    FmvXH     fmv_x_h    "fmv.x.h"    "1110010 00000 ..... 000 ..... 1010011"  FTOX   FpToInt Zfhmin;
    FmvHX     fmv_h_x    "fmv.h.x"    "1111010 00000 ..... 000 ..... 1010011"  XTOF   IntToFp Zfhmin;
    FcvtSH    fcvt_s_h   "fcvt.s.h"   "0100000 00010 ..... ... ..... 1010011"  F1RM   FpArith Zfhmin;
    FcvtHS    fcvt_h_s   "fcvt.h.s"   "0100010 00000 ..... ... ..... 1010011"  F1RM   FpArith Zfhmin;
    FcvtDH    fcvt_d_h   "fcvt.d.h"   "0100001 00010 ..... ... ..... 1010011"  F1RM   FpArith Zfhmin;
    FcvtHD    fcvt_h_d   "fcvt.h.d"   "0100010 00001 ..... ... ..... 1010011"  F1RM   FpArith Zfhmin;

    // Zfh: half precision.
    FmaddH    fmadd_h    "fmadd.h"    ".....10 ..... ..... ... ..... 1000011"  FR4    FpArith Zfh;
    FmsubH    fmsub_h    "fmsub.h"    ".....10 ..... ..... ... ..... 1000111"  FR4    FpArith Zfh;
    FnmsubH   fnmsub_h   "fnmsub.h"   ".....10 ..... ..... ... ..... 1001011"  FR4    FpArith Zfh;
    FnmaddH   fnmadd_h   "fnmadd.h"   ".....10 ..... ..... ... ..... 1001111"  FR4    FpArith Zfh;
    FaddH     fadd_h     "fadd.h"     "0000010 ..... ..... ... ..... 1010011"  FRM    FpArith Zfh;
    FsubH     fsub_h     "fsub.h"     "0000110 ..... ..... ... ..... 1010011"  FRM    FpArith Zfh;
    FmulH     fmul_h     "fmul.h"     "0001010 ..... ..... ... ..... 1010011"  FRM    FpArith Zfh;
    FdivH     fdiv_h     "fdiv.h"     "0001110 ..... ..... ... ..... 1010011"  FRM    FpDivSqrt Zfh;
    FsqrtH    fsqrt_h    "fsqrt.h"    "0101110 00000 ..... ... ..... 1010011"  F1RM   FpDivSqrt Zfh;
    FsgnjH    fsgnj_h    "fsgnj.h"    "0010010 ..... ..... 000 ..... 1010011"  FR     FpArith Zfh;
    FsgnjnH   fsgnjn_h   "fsgnjn.h"   "0010010 ..... ..... 001 ..... 1010011"  FR     FpArith Zfh;
    FsgnjxH   fsgnjx_h   "fsgnjx.h"   "0010010 ..... ..... 010 ..... 1010011"  FR     FpArith Zfh;
    FminH     fmin_h     "fmin.h"     "0010110 ..... ..... 000 ..... 1010011"  FR     FpArith Zfh;
    FmaxH     fmax_h     "fmax.h"     "0010110 ..... ..... 001 ..... 1010011"  FR     FpArith Zfh;
    FleH      fle_h      "fle.h"      "1010010 ..... ..... 000 ..... 1010011"  FCMP   FpToInt Zfh;
    FltH      flt_h      "flt.h"      "1010010 ..... ..... 001 ..... 1010011"  FCMP   FpToInt Zfh;
    FeqH      feq_h      "feq.h"      "1010010 ..... ..... 010 ..... 1010011"  FCMP   FpToInt Zfh;
    FclassH   fclass_h   "fclass.h"   "1110010 00000 ..... 001 ..... 1010011"  FTOX   FpToInt Zfh;
    FcvtWH    fcvt_w_h   "fcvt.w.h"   "1100010 00000 ..... ... ..... 1010011"  FTOXRM FpToInt Zfh;
    FcvtWuH   fcvt_wu_h  "fcvt.wu.h"  "1100010 00001 ..... ... ..... 1010011"  FTOXRM FpToInt Zfh;
    FcvtLH    fcvt_l_h   "fcvt.l.h"   "1100010 00010 ..... ... ..... 1010011"  FTOXRM FpToInt Zfh;
    FcvtLuH   fcvt_lu_h  "fcvt.lu.h"  "1100010 00011 ..... ... ..... 1010011"  FTOXRM FpToInt Zfh;
    FcvtHW    fcvt_h_w   "fcvt.h.w"   "1101010 00000 ..... ... ..... 1010011"  XTOFRM IntToFp Zfh;
    FcvtHWu   fcvt_h_wu  "fcvt.h.wu"  "1101010 00001 ..... ... ..... 1010011"  XTOFRM IntToFp Zfh;
    FcvtHL    fcvt_h_l   "fcvt.h.l"   "1101010 00010 ..... ... ..... 1010011"  XTOFRM IntToFp Zfh;
    FcvtHLu   fcvt_h_lu  "fcvt.h.lu"  "1101010 00011 ..... ... ..... 1010011"  XTOFRM IntToFp Zfh;

    // Zfa: constants, minimum and maximum that return NaN for a NaN operand, rounding to integers, JavaScript's
    // conversion, quiet comparisons.
    FliS      fli_s      "fli.s"      "1111000 00001 ..... 000 ..... 1010011"  FLI    FpArith Zfa;
    FminmS    fminm_s    "fminm.s"    "0010100 ..... ..... 010 ..... 1010011"  FR     FpArith Zfa;
    FmaxmS    fmaxm_s    "fmaxm.s"    "0010100 ..... ..... 011 ..... 1010011"  FR     FpArith Zfa;
    FroundS   fround_s   "fround.s"   "0100000 00100 ..... ... ..... 1010011"  F1RM   FpArith Zfa;
    FroundnxS froundnx_s "froundnx.s" "0100000 00101 ..... ... ..... 1010011"  F1RM   FpArith Zfa;
    FleqS     fleq_s     "fleq.s"     "1010000 ..... ..... 100 ..... 1010011"  FCMP   FpToInt Zfa;
    FltqS     fltq_s     "fltq.s"     "1010000 ..... ..... 101 ..... 1010011"  FCMP   FpToInt Zfa;
    FliD      fli_d      "fli.d"      "1111001 00001 ..... 000 ..... 1010011"  FLI    FpArith Zfa;
    FminmD    fminm_d    "fminm.d"    "0010101 ..... ..... 010 ..... 1010011"  FR     FpArith Zfa;
    FmaxmD    fmaxm_d    "fmaxm.d"    "0010101 ..... ..... 011 ..... 1010011"  FR     FpArith Zfa;
    FroundD   fround_d   "fround.d"   "0100001 00100 ..... ... ..... 1010011"  F1RM   FpArith Zfa;
    FroundnxD froundnx_d "froundnx.d" "0100001 00101 ..... ... ..... 1010011"  F1RM   FpArith Zfa;
    FleqD     fleq_d     "fleq.d"     "1010001 ..... ..... 100 ..... 1010011"  FCMP   FpToInt Zfa;
    FltqD     fltq_d     "fltq.d"     "1010001 ..... ..... 101 ..... 1010011"  FCMP   FpToInt Zfa;
    FcvtmodWD fcvtmod_w_d "fcvtmod.w.d" "1100001 01000 ..... 001 ..... 1010011"  FTOXRM FpToInt Zfa;
    FliH      fli_h      "fli.h"      "1111010 00001 ..... 000 ..... 1010011"  FLI    FpArith Zfa Zfh;
    FminmH    fminm_h    "fminm.h"    "0010110 ..... ..... 010 ..... 1010011"  FR     FpArith Zfa Zfh;
    FmaxmH    fmaxm_h    "fmaxm.h"    "0010110 ..... ..... 011 ..... 1010011"  FR     FpArith Zfa Zfh;
    FroundH   fround_h   "fround.h"   "0100010 00100 ..... ... ..... 1010011"  F1RM   FpArith Zfa Zfh;
    FroundnxH froundnx_h "froundnx.h" "0100010 00101 ..... ... ..... 1010011"  F1RM   FpArith Zfa Zfh;
    FleqH     fleq_h     "fleq.h"     "1010010 ..... ..... 100 ..... 1010011"  FCMP   FpToInt Zfa Zfh;
    FltqH     fltq_h     "fltq.h"     "1010010 ..... ..... 101 ..... 1010011"  FCMP   FpToInt Zfa Zfh;

    // Zba: addresses.
    AddUw     add_uw     "add.uw"     "0000100 ..... ..... 000 ..... 0111011"  R      IntAlu Zba;
    Sh1add    sh1add     "sh1add"     "0010000 ..... ..... 010 ..... 0110011"  R      IntAlu Zba;
    Sh2add    sh2add     "sh2add"     "0010000 ..... ..... 100 ..... 0110011"  R      IntAlu Zba;
    Sh3add    sh3add     "sh3add"     "0010000 ..... ..... 110 ..... 0110011"  R      IntAlu Zba;
    Sh1addUw  sh1add_uw  "sh1add.uw"  "0010000 ..... ..... 010 ..... 0111011"  R      IntAlu Zba;
    Sh2addUw  sh2add_uw  "sh2add.uw"  "0010000 ..... ..... 100 ..... 0111011"  R      IntAlu Zba;
    Sh3addUw  sh3add_uw  "sh3add.uw"  "0010000 ..... ..... 110 ..... 0111011"  R      IntAlu Zba;
    SlliUw    slli_uw    "slli.uw"    "000010. ..... ..... 001 ..... 0011011"  SHIFT  IntAlu Zba;

    // Zbb: basic bit manipulation.
    Andn      andn       "andn"       "0100000 ..... ..... 111 ..... 0110011"  R      IntAlu Zbb;
    Orn       orn        "orn"        "0100000 ..... ..... 110 ..... 0110011"  R      IntAlu Zbb;
    Xnor      xnor       "xnor"       "0100000 ..... ..... 100 ..... 0110011"  R      IntAlu Zbb;
    Clz       clz        "clz"        "0110000 00000 ..... 001 ..... 0010011"  R1     IntAlu Zbb;
    Ctz       ctz        "ctz"        "0110000 00001 ..... 001 ..... 0010011"  R1     IntAlu Zbb;
    Cpop      cpop       "cpop"       "0110000 00010 ..... 001 ..... 0010011"  R1     IntAlu Zbb;
    Clzw      clzw       "clzw"       "0110000 00000 ..... 001 ..... 0011011"  R1     IntAlu Zbb;
    Ctzw      ctzw       "ctzw"       "0110000 00001 ..... 001 ..... 0011011"  R1     IntAlu Zbb;
    Cpopw     cpopw      "cpopw"      "0110000 00010 ..... 001 ..... 0011011"  R1     IntAlu Zbb;
    Max       max        "max"        "0000101 ..... ..... 110 ..... 0110011"  R      IntAlu Zbb;
    Maxu      maxu       "maxu"       "0000101 ..... ..... 111 ..... 0110011"  R      IntAlu Zbb;
    Min       min        "min"        "0000101 ..... ..... 100 ..... 0110011"  R      IntAlu Zbb;
    Minu      minu       "minu"       "0000101 ..... ..... 101 ..... 0110011"  R      IntAlu Zbb;
    SextB     sext_b     "sext.b"     "0110000 00100 ..... 001 ..... 0010011"  R1     IntAlu Zbb;
    SextH     sext_h     "sext.h"     "0110000 00101 ..... 001 ..... 0010011"  R1     IntAlu Zbb;
    ZextH     zext_h     "zext.h"     "0000100 00000 ..... 100 ..... 0111011"  R1     IntAlu Zbb;
    Rol       rol        "rol"        "0110000 ..... ..... 001 ..... 0110011"  R      IntAlu Zbb;
    Ror       ror        "ror"        "0110000 ..... ..... 101 ..... 0110011"  R      IntAlu Zbb;
    Rori      rori       "rori"       "011000. ..... ..... 101 ..... 0010011"  SHIFT  IntAlu Zbb;
    Rolw      rolw       "rolw"       "0110000 ..... ..... 001 ..... 0111011"  R      IntAlu Zbb;
    Rorw      rorw       "rorw"       "0110000 ..... ..... 101 ..... 0111011"  R      IntAlu Zbb;
    Roriw     roriw      "roriw"      "0110000 ..... ..... 101 ..... 0011011"  SHIFT  IntAlu Zbb;
    OrcB      orc_b      "orc.b"      "0010100 00111 ..... 101 ..... 0010011"  R1     IntAlu Zbb;
    Rev8      rev8       "rev8"       "0110101 11000 ..... 101 ..... 0010011"  R1     IntAlu Zbb;

    // Zbc: carry-less multiplication.
    Clmul     clmul      "clmul"      "0000101 ..... ..... 001 ..... 0110011"  R      IntMul Zbc;
    Clmulh    clmulh     "clmulh"     "0000101 ..... ..... 011 ..... 0110011"  R      IntMul Zbc;
    Clmulr    clmulr     "clmulr"     "0000101 ..... ..... 010 ..... 0110011"  R      IntMul Zbc;

    // Zbs: single bits.
    Bclr      bclr       "bclr"       "0100100 ..... ..... 001 ..... 0110011"  R      IntAlu Zbs;
    Bext      bext       "bext"       "0100100 ..... ..... 101 ..... 0110011"  R      IntAlu Zbs;
    Binv      binv       "binv"       "0110100 ..... ..... 001 ..... 0110011"  R      IntAlu Zbs;
    Bset      bset       "bset"       "0010100 ..... ..... 001 ..... 0110011"  R      IntAlu Zbs;
    Bclri     bclri      "bclri"      "010010. ..... ..... 001 ..... 0010011"  SHIFT  IntAlu Zbs;
    Bexti     bexti      "bexti"      "010010. ..... ..... 101 ..... 0010011"  SHIFT  IntAlu Zbs;
    Binvi     binvi      "binvi"      "011010. ..... ..... 001 ..... 0010011"  SHIFT  IntAlu Zbs;
    Bseti     bseti      "bseti"      "001010. ..... ..... 001 ..... 0010011"  SHIFT  IntAlu Zbs;

    // Zicond: conditional zeroing.
    CzeroEqz  czero_eqz  "czero.eqz"  "0000111 ..... ..... 101 ..... 0110011"  R      IntAlu Zicond;
    CzeroNez  czero_nez  "czero.nez"  "0000111 ..... ..... 111 ..... 0110011"  R      IntAlu Zicond;

    // Zicbom, Zicboz: cache blocks of 64 bytes.
    CboInval  cbo_inval  "cbo.inval"  "0000000 00000 ..... 010 00000 0001111"  BLOCK  Fence Zicbom;
    CboClean  cbo_clean  "cbo.clean"  "0000000 00001 ..... 010 00000 0001111"  BLOCK  Fence Zicbom;
    CboFlush  cbo_clean  "cbo.flush"  "0000000 00010 ..... 010 00000 0001111"  BLOCK  Fence Zicbom;
    CboZero   cbo_zero   "cbo.zero"   "0000000 00100 ..... 010 00000 0001111"  BLOCK  Fence Zicboz;

    // Zawrs: waiting for a store to the reservation set. The wait may end at any time; here it ends at once.
    WrsNto    fence      "wrs.nto"    "0000000 01101 00000 000 00000 1110011"  NONE   Fence Zawrs;
    WrsSto    fence      "wrs.sto"    "0000000 11101 00000 000 00000 1110011"  NONE   Fence Zawrs;

    // Zacas: compare and swap.
    AmocasW   amocas_w   "amocas.w"   "00101.. ..... ..... 010 ..... 0101111"  AMO    Amo Zacas;
    AmocasD   amocas_d   "amocas.d"   "00101.. ..... ..... 011 ..... 0101111"  AMO    Amo Zacas;
    AmocasQ   amocas_q   "amocas.q"   "00101.. ..... ..... 100 ..... 0101111"  PAIR   Amo Zacas;

    // Svinval: invalidation in three steps; here the first does all of it.
    SinvalVma    sfence_vma    "sinval.vma"      "0001011 ..... ..... 000 00000 1110011"  SFENCE SfenceVma Svinval;
    SfenceWInval sfence_w_inval "sfence.w.inval" "0001100 00000 00000 000 00000 1110011"  NONE   Fence Svinval;
    SfenceInvalIr sfence_w_inval "sfence.inval.ir" "0001100 00001 00000 000 00000 1110011" NONE Fence Svinval;

    // Smctr: the control transfer records.
    Sctrclr   sctrclr    "sctrclr"    "0001000 00100 00000 000 00000 1110011"  NONE   Csr Smctr;
}
