//! Where names and lines of the guest's code come from.

pub mod file_servers;
pub mod names;
