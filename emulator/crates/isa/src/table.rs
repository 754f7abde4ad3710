//! The instruction table.

/// Operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum Op {
    /// Placeholder until the table lands.
    Illegal = 0,
}
