//! Units on the bus that sample and count.

pub(crate) mod tip;
pub(crate) mod uncore;
