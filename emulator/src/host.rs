//! The host: its terminal, memory, signals and log.

pub(crate) mod log;
pub(crate) mod memory;
pub(crate) mod progress_bar;
pub(crate) mod self_profile;
pub(crate) mod sha256;
pub(crate) mod signals;
pub(crate) mod terminal;
