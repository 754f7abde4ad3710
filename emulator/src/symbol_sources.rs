//! Where names and lines of the guest's code come from.

pub(crate) mod file_servers;
pub(crate) mod names;
