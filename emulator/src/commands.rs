//! The commands of the command line, one file each.

pub mod boot;
pub mod core;
mod core_events;
pub mod exec;
pub mod export;
pub mod manual;
pub mod phases;
pub mod profile;
pub mod report;
pub mod retime;
pub mod run;
pub mod samples;
pub mod schema;
pub mod schemes;
pub mod tables;
pub mod trace;
pub mod what_if;
