//! F, D, Zfh and Zfa. The arithmetic is in [`crate::fp`]; here are registers, rounding modes and flags.

use isa::{FliConstant, Slot, TimingModel, Trap};

use super::{Next, following, illegal};
use crate::csr::status;
use crate::fp::{self, F16, Flags, Format, Rounding, half, nan_box, unbox};
use crate::hart::{Env, Hart, InstPosition};

/// How a format sits in a 64-bit FP register.
pub(crate) trait InRegister: Format {
    fn from_register(register: u64) -> Self::Bits;
    fn to_register(bits: Self::Bits) -> u64;
}

impl InRegister for F16 {
    #[inline(always)]
    fn from_register(register: u64) -> u16 {
        half::unbox(register)
    }
    #[inline(always)]
    fn to_register(bits: u16) -> u64 {
        half::nan_box(bits)
    }
}

impl InRegister for f32 {
    #[inline(always)]
    fn from_register(register: u64) -> u32 {
        unbox(register)
    }
    #[inline(always)]
    fn to_register(bits: u32) -> u64 {
        nan_box(bits)
    }
}

impl InRegister for f64 {
    #[inline(always)]
    fn from_register(register: u64) -> u64 {
        register
    }
    #[inline(always)]
    fn to_register(bits: u64) -> u64 {
        bits
    }
}

impl Hart {
    /// An FP instruction that changes no FP state: illegal while `mstatus.FS` is off.
    #[inline(always)]
    pub(crate) fn fp_reads(&self, inst: &Slot) -> Result<(), Trap> {
        if self.arch.csrs.mstatus & status::FS == 0 { Err(illegal(inst)) } else { Ok(()) }
    }

    /// An FP instruction that changes FP registers or flags: makes `mstatus.FS` dirty.
    #[inline(always)]
    pub(crate) fn fp_writes(&mut self, inst: &Slot) -> Result<(), Trap> {
        self.fp_reads(inst)?;
        self.arch.csrs.mstatus |= status::FS;
        Ok(())
    }

    /// The rounding mode that the instruction asks for.
    #[inline(always)]
    fn rounding(&self, inst: &Slot) -> Result<Rounding, Trap> {
        const DYNAMIC: u8 = 7;
        let field = (inst.raw() >> 12) as u8 & 7;
        let mode = if field == DYNAMIC { self.arch.csrs.frm } else { field };
        Rounding::from_bits(mode).ok_or(illegal(inst))
    }

    #[inline(always)]
    fn fp_get<F: InRegister>(&self, register: isa::Reg) -> F::Bits {
        F::from_register(self.get(register))
    }

    /// Writes an FP result and accrues its flags.
    #[inline(always)]
    fn fp_put<F: InRegister>(&mut self, inst: &Slot, (bits, flags): (F::Bits, Flags)) {
        self.put(inst.rd(), F::to_register(bits));
        self.arch.csrs.fflags |= flags;
    }

    /// Writes an integer result of an FP operation and accrues its flags.
    #[inline(always)]
    fn fp_put_x(&mut self, inst: &Slot, (value, flags): (u64, Flags)) {
        self.put(inst.rd(), value);
        self.arch.csrs.fflags |= flags;
    }
}

/// Methods of one shape: `name: format, hart, inst => body` with a body that may use `?`.
macro_rules! rows {
    ($shape:ident; $($name:ident $format:ty, $function:expr;)*) => {
        impl Hart {$(
            pub(crate) fn $name<T: TimingModel>(
                &mut self,
                _: &mut Env<'_, T>,
                inst: &Slot,
                at: InstPosition,
            ) -> Next {
                self.fp_writes(inst)?;
                $shape!(self, inst, $format, $function);
                following(inst, at)
            }
        )*}
    };
}

/// fd = function(fs1, fs2, rounding).
macro_rules! two_rounded {
    ($hart:ident, $inst:ident, $format:ty, $function:expr) => {
        let rounding = $hart.rounding($inst)?;
        let (a, b) = ($hart.fp_get::<$format>($inst.rs1()), $hart.fp_get::<$format>($inst.rs2()));
        let result = $function(a, b, rounding, $hart.arch.csrs.fflags);
        $hart.fp_put::<$format>($inst, result);
    };
}

/// fd = function(fs1, fs2, fs3, rounding).
macro_rules! three_rounded {
    ($hart:ident, $inst:ident, $format:ty, $function:expr) => {
        let rounding = $hart.rounding($inst)?;
        let (a, b) = ($hart.fp_get::<$format>($inst.rs1()), $hart.fp_get::<$format>($inst.rs2()));
        let c = $hart.fp_get::<$format>($inst.rs3());
        let result = $function(a, b, c, rounding, $hart.arch.csrs.fflags);
        $hart.fp_put::<$format>($inst, result);
    };
}

/// fd = function(fs1, rounding).
macro_rules! one_rounded {
    ($hart:ident, $inst:ident, $format:ty, $function:expr) => {
        let rounding = $hart.rounding($inst)?;
        let a = $hart.fp_get::<$format>($inst.rs1());
        $hart.fp_put::<$format>($inst, $function(a, rounding, $hart.arch.csrs.fflags));
    };
}

/// fd = function(fs1, fs2), without flags.
macro_rules! sign {
    ($hart:ident, $inst:ident, $format:ty, $function:expr) => {
        let (a, b) = ($hart.fp_get::<$format>($inst.rs1()), $hart.fp_get::<$format>($inst.rs2()));
        $hart.fp_put::<$format>($inst, ($function(a, b), 0));
    };
}

/// fd = function(fs1, fs2).
macro_rules! extremum {
    ($hart:ident, $inst:ident, $format:ty, $function:expr) => {
        let (a, b) = ($hart.fp_get::<$format>($inst.rs1()), $hart.fp_get::<$format>($inst.rs2()));
        $hart.fp_put::<$format>($inst, $function(a, b));
    };
}

/// rd = function(fs1, fs2).
macro_rules! comparison {
    ($hart:ident, $inst:ident, $format:ty, $function:expr) => {
        let (a, b) = ($hart.fp_get::<$format>($inst.rs1()), $hart.fp_get::<$format>($inst.rs2()));
        let (holds, flags) = $function(a, b);
        $hart.fp_put_x($inst, (u64::from(holds), flags));
    };
}

/// rd = function(fs1, rounding).
macro_rules! to_integer {
    ($hart:ident, $inst:ident, $format:ty, $function:expr) => {
        let rounding = $hart.rounding($inst)?;
        let a = $hart.fp_get::<$format>($inst.rs1());
        $hart.fp_put_x($inst, $function(a, rounding));
    };
}

/// fd = function(register, rounding).
macro_rules! from_register {
    ($hart:ident, $inst:ident, $format:ty, $function:expr) => {
        let rounding = $hart.rounding($inst)?;
        let a = $hart.get($inst.rs1());
        $hart.fp_put::<$format>($inst, $function(a, rounding));
    };
}

/// Destination register = function(source register), as 64 bits.
macro_rules! moved {
    ($hart:ident, $inst:ident, $format:ty, $function:expr) => {
        let a = $hart.get($inst.rs1());
        $hart.put($inst.rd(), $function(a));
    };
}

rows! { two_rounded;
    fadd_s f32, fp::add::<f32>;
    fsub_s f32, fp::sub::<f32>;
    fmul_s f32, fp::mul::<f32>;
    fdiv_s f32, fp::div::<f32>;
    fadd_d f64, fp::add::<f64>;
    fsub_d f64, fp::sub::<f64>;
    fmul_d f64, fp::mul::<f64>;
    fdiv_d f64, fp::div::<f64>;
    fadd_h F16, half::add;
    fsub_h F16, half::sub;
    fmul_h F16, half::mul;
    fdiv_h F16, half::div;
}

rows! { three_rounded;
    fmadd_s f32, fp::fmadd::<f32>;
    fmsub_s f32, fp::fmsub::<f32>;
    fnmsub_s f32, fp::fnmsub::<f32>;
    fnmadd_s f32, fp::fnmadd::<f32>;
    fmadd_d f64, fp::fmadd::<f64>;
    fmsub_d f64, fp::fmsub::<f64>;
    fnmsub_d f64, fp::fnmsub::<f64>;
    fnmadd_d f64, fp::fnmadd::<f64>;
    fmadd_h F16, half::fmadd;
    fmsub_h F16, half::fmsub;
    fnmsub_h F16, half::fnmsub;
    fnmadd_h F16, half::fnmadd;
}

rows! { one_rounded;
    fsqrt_s f32, fp::sqrt::<f32>;
    fsqrt_d f64, fp::sqrt::<f64>;
    fsqrt_h F16, half::sqrt;
    fround_s f32, fp::round::<f32>;
    fround_d f64, fp::round::<f64>;
    fround_h F16, fp::round::<F16>;
    froundnx_s f32, fp::round_inexact::<f32>;
    froundnx_d f64, fp::round_inexact::<f64>;
    froundnx_h F16, fp::round_inexact::<F16>;
}

rows! { sign;
    fsgnj_s f32, fp::sgnj::<f32>;
    fsgnjn_s f32, fp::sgnjn::<f32>;
    fsgnjx_s f32, fp::sgnjx::<f32>;
    fsgnj_d f64, fp::sgnj::<f64>;
    fsgnjn_d f64, fp::sgnjn::<f64>;
    fsgnjx_d f64, fp::sgnjx::<f64>;
    fsgnj_h F16, fp::sgnj::<F16>;
    fsgnjn_h F16, fp::sgnjn::<F16>;
    fsgnjx_h F16, fp::sgnjx::<F16>;
}

rows! { extremum;
    fmin_s f32, fp::min::<f32>;
    fmax_s f32, fp::max::<f32>;
    fmin_d f64, fp::min::<f64>;
    fmax_d f64, fp::max::<f64>;
    fmin_h F16, fp::min::<F16>;
    fmax_h F16, fp::max::<F16>;
    fminm_s f32, fp::minm::<f32>;
    fmaxm_s f32, fp::maxm::<f32>;
    fminm_d f64, fp::minm::<f64>;
    fmaxm_d f64, fp::maxm::<f64>;
    fminm_h F16, fp::minm::<F16>;
    fmaxm_h F16, fp::maxm::<F16>;
}

rows! { comparison;
    fle_s f32, fp::le::<f32>;
    flt_s f32, fp::lt::<f32>;
    feq_s f32, fp::eq::<f32>;
    fle_d f64, fp::le::<f64>;
    flt_d f64, fp::lt::<f64>;
    feq_d f64, fp::eq::<f64>;
    fle_h F16, fp::le::<F16>;
    flt_h F16, fp::lt::<F16>;
    feq_h F16, fp::eq::<F16>;
    fleq_s f32, fp::leq::<f32>;
    fltq_s f32, fp::ltq::<f32>;
    fleq_d f64, fp::leq::<f64>;
    fltq_d f64, fp::ltq::<f64>;
    fleq_h F16, fp::leq::<F16>;
    fltq_h F16, fp::ltq::<F16>;
}

rows! { to_integer;
    fcvt_w_s f32, fp::to_w::<f32>;
    fcvt_wu_s f32, fp::to_wu::<f32>;
    fcvt_l_s f32, fp::to_l::<f32>;
    fcvt_lu_s f32, fp::to_lu::<f32>;
    fcvt_w_d f64, fp::to_w::<f64>;
    fcvt_wu_d f64, fp::to_wu::<f64>;
    fcvt_l_d f64, fp::to_l::<f64>;
    fcvt_lu_d f64, fp::to_lu::<f64>;
    fcvt_w_h F16, fp::to_w::<F16>;
    fcvt_wu_h F16, fp::to_wu::<F16>;
    fcvt_l_h F16, fp::to_l::<F16>;
    fcvt_lu_h F16, fp::to_lu::<F16>;
    // `fcvtmod.w.d` always rounds to zero, as its encoding says.
    fcvtmod_w_d f64, |a, _| fp::modular_w(a);
}

/// fd = the constant that the instruction names.
macro_rules! constant {
    ($hart:ident, $inst:ident, $format:ty, $function:expr) => {
        let bits = $function(FliConstant::numbered($inst.imm() as u8));
        $hart.fp_put::<$format>($inst, (bits, 0));
    };
}

rows! { constant;
    fli_s f32, fp::constant::<f32>;
    fli_d f64, fp::constant::<f64>;
    fli_h F16, fp::constant::<F16>;
}

rows! { from_register;
    fcvt_s_w f32, fp::from_w::<f32>;
    fcvt_s_wu f32, fp::from_wu::<f32>;
    fcvt_s_l f32, fp::from_l::<f32>;
    fcvt_s_lu f32, fp::from_lu::<f32>;
    fcvt_d_w f64, fp::from_w::<f64>;
    fcvt_d_wu f64, fp::from_wu::<f64>;
    fcvt_d_l f64, fp::from_l::<f64>;
    fcvt_d_lu f64, fp::from_lu::<f64>;
    fcvt_h_w F16, half::from_w;
    fcvt_h_wu F16, half::from_wu;
    fcvt_h_l F16, half::from_l;
    fcvt_h_lu F16, half::from_lu;
    // From another FP register; those to a larger format are exact, but a reserved dynamic mode is still illegal.
    fcvt_s_d f32, fp::f64_to_f32;
    fcvt_d_s f64, |a, _| fp::f32_to_f64(unbox(a));
    fcvt_s_h f32, |a, rounding| fp::reformat::<F16, f32>(half::unbox(a), rounding);
    fcvt_d_h f64, |a, rounding| fp::reformat::<F16, f64>(half::unbox(a), rounding);
    fcvt_h_s F16, |a, rounding| fp::reformat::<f32, F16>(unbox(a), rounding);
    fcvt_h_d F16, fp::reformat::<f64, F16>;
}

rows! { moved;
    fclass_s f32, |a| fp::classify::<f32>(unbox(a));
    fclass_d f64, fp::classify::<f64>;
    fmv_x_w f32, |a| a as i32 as u64;
    fmv_w_x f32, |a| nan_box(a as u32);
    fmv_x_d f64, |a| a;
    fmv_d_x f64, |a| a;
    fclass_h F16, |a| fp::classify::<F16>(half::unbox(a));
    fmv_x_h F16, |a| a as i16 as u64;
    fmv_h_x F16, |a| half::nan_box(a as u16);
}
