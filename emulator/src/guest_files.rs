//! Files of the guest that the host provides: what boots, packages, and what programs need of them.

pub mod images;
mod kernel;
pub mod needed;
pub mod packages;
pub mod program;
