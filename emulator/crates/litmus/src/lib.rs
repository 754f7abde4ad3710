//! Litmus tests of RVWMO, the memory model of RISC-V: small programs of two to four harts that read and write shared words, all outcomes
//! that the model allows of each, and how often the machine has each of them.
//!
//! ```
//! use litmus::{Model, allowed_outcomes, catalog};
//!
//! let programs = catalog();
//! let sb = programs.iter().find(|program| program.name == "SB").expect("store buffering is in the list");
//! let weak = |model| allowed_outcomes(sb, model).into_iter().any(|outcome| sb.meets_condition(outcome));
//! // Both loads may read zero, though in no interleaving of the two harts they do.
//! assert!(weak(Model::Rvwmo) && !weak(Model::SequentialConsistency));
//! ```

mod assembler;
mod catalog;
mod cycle;
mod harness;
mod judge;
mod model;
mod program;
mod run;
mod tables;

pub use catalog::catalog;
pub use judge::{Judged, Verdict};
pub use model::{Model, allowed_outcomes};
pub use program::{
    Access, AccessKind, Fence, Field, Instruction, Location, Outcome, Program, Register, Value,
};
pub use run::{Histogram, Mode, run};
pub use tables::{Results, TestResult};
