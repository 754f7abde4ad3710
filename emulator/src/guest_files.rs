//! Files of the guest that the host provides: what boots, packages, and what programs need of them.

pub(crate) mod images;
mod kernel;
pub(crate) mod needed;
pub(crate) mod packages;
pub(crate) mod program;
