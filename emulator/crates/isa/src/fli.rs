//! The constants of `fli` (Zfa 1.0, section "Load-Immediate Instructions").

/// A constant that `fli` loads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FliConstant {
    /// The smallest positive normal number of the format.
    MinPositive,
    /// A number. Every format can represent it, except that 2^16 is infinity in half precision.
    Value(f64),
    /// Plus infinity.
    Infinity,
    /// The canonical NaN.
    Nan,
}

use FliConstant::{Infinity, MinPositive, Nan, Value};

const CONSTANTS: [FliConstant; 32] = [
    Value(-1.0),
    MinPositive,
    Value(1.0 / 65536.0),
    Value(1.0 / 32768.0),
    Value(1.0 / 256.0),
    Value(1.0 / 128.0),
    Value(0.0625),
    Value(0.125),
    Value(0.25),
    Value(0.3125),
    Value(0.375),
    Value(0.4375),
    Value(0.5),
    Value(0.625),
    Value(0.75),
    Value(0.875),
    Value(1.0),
    Value(1.25),
    Value(1.5),
    Value(1.75),
    Value(2.0),
    Value(2.5),
    Value(3.0),
    Value(4.0),
    Value(8.0),
    Value(16.0),
    Value(128.0),
    Value(256.0),
    Value(32768.0),
    Value(65536.0),
    Infinity,
    Nan,
];

impl FliConstant {
    /// The constant that the low 5 bits of `number`, the instruction's field in the place of rs1, name.
    pub const fn numbered(number: u8) -> Self {
        CONSTANTS[number as usize % 32]
    }
}
