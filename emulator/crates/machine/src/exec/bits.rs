//! Bit manipulation (Zba, Zbb, Zbc, Zbs) and conditional zeroing (Zicond).

use isa::{Slot, TimingModel};

use super::int::{immediates, registers, word};
use super::{Next, following};
use crate::hart::{Env, Hart, InstPosition};

/// The low 32 bits, zero-extended.
#[inline(always)]
fn low(value: u64) -> u64 {
    value & 0xffff_ffff
}

#[inline(always)]
fn bit(number: u64) -> u64 {
    1 << (number & 63)
}

/// Every byte that is not zero becomes 0xff.
#[inline(always)]
fn or_combine(value: u64) -> u64 {
    let low_bits = 0x7f7f_7f7f_7f7f_7f7f;
    let nonzero = (((value & low_bits) + low_bits) | value) & !low_bits;
    (nonzero >> 7) * 0xff
}

/// All 128 bits of a carry-less product.
fn carry_less(a: u64, b: u64) -> u128 {
    (0..64).filter(|i| b >> i & 1 != 0).fold(0, |sum, i| sum ^ u128::from(a) << i)
}

registers! {
    add_uw(a, b) low(a).wrapping_add(b);
    sh1add(a, b) (a << 1).wrapping_add(b);
    sh2add(a, b) (a << 2).wrapping_add(b);
    sh3add(a, b) (a << 3).wrapping_add(b);
    sh1add_uw(a, b) (low(a) << 1).wrapping_add(b);
    sh2add_uw(a, b) (low(a) << 2).wrapping_add(b);
    sh3add_uw(a, b) (low(a) << 3).wrapping_add(b);

    andn(a, b) a & !b;
    orn(a, b) a | !b;
    xnor(a, b) !(a ^ b);
    clz(a, _b) a.leading_zeros().into();
    ctz(a, _b) a.trailing_zeros().into();
    cpop(a, _b) a.count_ones().into();
    clzw(a, _b) (a as u32).leading_zeros().into();
    ctzw(a, _b) (a as u32).trailing_zeros().into();
    cpopw(a, _b) (a as u32).count_ones().into();
    max(a, b) (a as i64).max(b as i64) as u64;
    maxu(a, b) a.max(b);
    min(a, b) (a as i64).min(b as i64) as u64;
    minu(a, b) a.min(b);
    sext_b(a, _b) a as i8 as u64;
    sext_h(a, _b) a as i16 as u64;
    zext_h(a, _b) a & 0xffff;
    rol(a, b) a.rotate_left(b as u32 & 63);
    ror(a, b) a.rotate_right(b as u32 & 63);
    rolw(a, b) word((a as u32).rotate_left(b as u32 & 31));
    rorw(a, b) word((a as u32).rotate_right(b as u32 & 31));
    orc_b(a, _b) or_combine(a);
    rev8(a, _b) a.swap_bytes();

    clmul(a, b) carry_less(a, b) as u64;
    clmulh(a, b) (carry_less(a, b) >> 64) as u64;
    clmulr(a, b) (carry_less(a, b) >> 63) as u64;

    bclr(a, b) a & !bit(b);
    bext(a, b) a >> (b & 63) & 1;
    binv(a, b) a ^ bit(b);
    bset(a, b) a | bit(b);

    czero_eqz(a, b) if b == 0 { 0 } else { a };
    czero_nez(a, b) if b != 0 { 0 } else { a };
}

immediates! {
    slli_uw(a, b) low(a) << (b & 63);
    rori(a, b) a.rotate_right(b as u32 & 63);
    roriw(a, b) word((a as u32).rotate_right(b as u32 & 31));
    bclri(a, b) a & !bit(b);
    bexti(a, b) a >> (b & 63) & 1;
    binvi(a, b) a ^ bit(b);
    bseti(a, b) a | bit(b);
}
