//! Sampling profilers, the Oracle that judges them, and the reports made of both.
//!
//! An [`Evaluator`] reads one hart's stream, live or from a trace file, and yields an
//! [`Evaluation`]: the Oracle's [`Profile`] and cycle stacks, and one profile per sampler.

mod evaluation;
mod guest_context;
mod paged;
mod process;
mod profile;
mod sampler;
mod stack;
pub mod symbolize;

pub use evaluation::{CycleStacks, Evaluation, SamplerResult};
pub use guest_context::GuestContext;
pub use process::{Mapping, Process, ProcessId};
pub use profile::Profile;
pub use sampler::{Profiler, Sampler, Schedule};
pub use stack::{Category, Component, CycleStack};
