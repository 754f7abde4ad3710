//! The host: its terminal, memory, signals and log.

pub mod log;
pub mod memory;
pub mod progress_bar;
pub mod self_profile;
pub mod sha256;
pub mod signals;
pub mod terminal;
