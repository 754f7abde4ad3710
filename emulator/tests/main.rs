//! The end-to-end tests: they run the built simulator, most of them with the built guest.
//!
//! All of these tests are one program, so that it is linked once, and so that the test harness keeps all processors busy. A file's tests are
//! chosen by its name: `cargo test -p tipsim --test end_to_end region::`.

mod common;

mod bad_input;
mod boot;
mod branch_records;
mod causes;
mod checkpoint;
mod coherence;
mod core;
mod counters;
mod counting;
mod debug_files;
mod delegation;
mod driver;
mod ends;
mod everyday;
mod exec;
mod export;
mod folder;
mod gdb;
mod guest;
mod harts;
mod heuristics;
mod input;
mod manual;
mod memory;
mod names;
mod network;
mod packages;
mod page;
mod precise;
mod precise_memory;
mod profile;
mod quickstart;
mod region;
mod report;
mod results;
mod runs;
mod sampled;
mod samples;
mod sampling;
mod session;
mod speedup;
mod stacks;
mod study;
mod thread_path;
mod tip_buffer;
mod trace;
mod truth;
mod uncore;
mod waits;
mod warm;
mod what_if;
