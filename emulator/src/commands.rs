//! The commands of the command line, one file each.

pub(crate) mod boot;
pub(crate) mod core;
mod core_events;
pub(crate) mod exec;
pub(crate) mod export;
pub(crate) mod manual;
pub(crate) mod phases;
pub(crate) mod profile;
pub(crate) mod report;
pub(crate) mod retime;
pub(crate) mod run;
pub(crate) mod samples;
pub(crate) mod schema;
pub(crate) mod schemes;
pub(crate) mod tables;
pub(crate) mod trace;
pub(crate) mod what_if;
