//! The simulated machine as a library: a [`System`] of harts, memory, devices and sampling units, what executes it (the functional
//! harts or the timing cores of an [`Engine`]), what is recorded of it ([`Recording`]), and the [`Session`] that drives it in steps.
//!
//! ```
//! use machine::{Limit, ResetState};
//! use simulation::{Goal, MachineOptions, Mode, NoObserver, Recording, Session, Stop, System};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let preset = timing::Preset::load("boom-4w")?;
//! let mut system = System::new(MachineOptions::new(1 << 20, &preset))?;
//! // li a0, 5; then a jump to itself.
//! let program = [0x0050_0513_u32, 0x0000_006f].map(u32::to_le_bytes).concat();
//! system.board.bus.ram.write(devices::RAM_BASE, &program);
//! system.harts.reset(ResetState { pc: devices::RAM_BASE, ..ResetState::default() });
//!
//! let mut session = Session::new(system, &preset, Recording::default(), Mode::Timing)?;
//! let stop = session.run_until(&Goal::instructions(100), &mut NoObserver)?;
//! assert_eq!(stop, Stop::Reached);
//! assert_eq!(session.system().harts.first().reg(10), 5);
//! # Ok(())
//! # }
//! ```
//!
//! The guest decides nothing about the host: what it does is a [`machine::RunExit`], and all that can go wrong otherwise is a
//! [`SimulationError`].

mod check;
pub mod checkpoint;
mod commit_stage;
mod cores;
mod counts;
mod engine;
mod error;
mod harts;
mod laps;
mod options;
mod pace;
mod recording;
mod region;
mod sampling;
mod script_sampler;
mod session;
mod standstill;
mod stored;
mod stuck;
mod survey;
mod system;
mod units;
mod user_net_link;

pub use checkpoint::{Checkpoint, CheckpointContext};
pub use cores::{StreamOptions, TimingCores};
pub use engine::Engine;
pub use error::SimulationError;
pub use harts::Harts;
pub use laps::{Lap, Laps};
pub use options::{HartOrder, MAX_HARTS, MachineOptions, Mode, Region, Threads, Translator};
pub use recording::{Profilers, Recorded, Recording, RecordingError, TraceOutput};
pub use region::{RegionState, RegionSummary, RunPosition, Stretch};
pub use sampling::{
    ChosenUnits, MissesOfUnits, PlannedUnit, PointEstimate, RegionPhases, RelativeError, Sampled,
    SampledUnits, SamplingPlan, Scheme, StateError, TimedRegion, Trial,
};
pub use session::{
    CollectedTruth, Finished, Flow, Goal, NoObserver, Observer, SLICE, Session, Stop,
};
pub use standstill::{InputWatch, PANIC_ARGUMENT, Standstill, TAIL_BYTES, Watch, kernel_panic};
pub use stored::{RetimeOptions, Retimed, StoredUnits, UnitsMetadata, retime};
pub use stuck::describe as describe_stuck;
pub use survey::SurveyOptions;
pub use system::{GuestImage, GuestImages, System};
