//! The TIP unit (Time-Proportional Instruction Profiling, MICRO'21, section 3): the Offending Instruction Register,
//! sample selection, a period timer with a privilege filter, a FIFO of samples, a buffer of them in memory, and the
//! register file that a driver programs. Which instructions a sample names is not decided here, but by the rules that
//! the host's profilers apply, too ([`sampling_rules`]).
//!
//! The unit knows registers and commit-stage events, never addresses on a bus; whoever owns a bus
//! maps [`Reg::at`] offsets onto it. One table ([`regs`]) gives the [`Reg`] enum, the C header
//! ([`c_header`]) and the register documentation ([`markdown`]).
//!
//! ```
//! use tip_device::{Reg, TipUnit, control};
//! let mut tip = TipUnit::new(4, 3_200_000_000);
//! tip.write(Reg::Period, 1000, 0);
//! tip.write(Reg::Count, 1000, 0);
//! tip.write(Reg::Control, control::ENABLE | control::U | control::S | control::M, 0);
//! assert_eq!(tip.next_sample(), 1000);
//! ```

mod buffer;
mod doc;
mod recent;
pub mod regs;
mod sample;
mod selection;
mod side_band;
mod timer;
mod unit;

pub use doc::{COMPATIBLE, Placement, c_header, markdown};
pub use regs::{Reg, control, flags, status};
pub use sample::{SAMPLE_BYTES, SAMPLE_WORDS, Sample};
pub use side_band::SideBandRecord;
pub use unit::{Origin, TipUnit, WriteEffect};
