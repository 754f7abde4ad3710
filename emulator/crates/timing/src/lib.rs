//! The one-pass out-of-order timing core: BOOM's pipeline as a scoreboard of timestamps.
//!
//! [`Core`] implements [`isa::TimingModel`]. Each instruction passes through once, in program order, and
//! gets its decode, dispatch, issue, completion and commit cycle from the state that the older ones left:
//! every structure maps the earliest cycle to the actual one, nothing ticks. One record per instruction goes
//! to a [`commit_trace::CommitSink`]. The machine is described by a [`Preset`]; README.md says what is
//! modelled from which source, and what is not.
//!
//! ```
//! use timing::{Core, Preset};
//!
//! let mut preset = Preset::load("mega-boom")?;
//! preset.set("rob.entries", "96")?;
//! let core = Core::new(&preset, commit_trace::NullSink);
//! assert_eq!(core.stats().instructions, 0);
//! # Ok::<(), timing::PresetError>(())
//! ```

mod ahead;
mod commit;
mod core;
mod count;
pub mod delays;
mod dependences;
mod excerpt;
mod execute;
mod follow;
mod fork;
mod front;
mod lsu;
mod mem;
mod micro_op;
mod observe;
mod path;
mod pipeline;
mod predict;
pub mod preset;
mod records;
mod ring;
mod schedule;
mod serialize;
mod stats;
mod tap;
mod trainings;
mod trap;
mod units;
mod warm;
mod window;
mod without;

pub use crate::core::Core;
pub use ahead::{Ahead, CoreWiring, SpareWork, run_ahead, run_apart};
pub use mem::{Origin, SharedMemory, UncoreCount, UncoreCounts, refresh_period};
pub use preset::{Preset, PresetError};
pub use stats::{JumpTotals, Stalls, Stats};
pub use tap::{CoreCall, CoreTap};
pub use warm::{FastForward, Learning, MissCounts, Warming};
pub use without::{Cause, Select, Without};
