//! What bounds a piece of an execution, out of the timing core's own knowledge.
//!
//! Now and then, the core tells a [`Collector`] all stages of some consecutive instructions, which become [`Excerpts`]. [`CriticalPath`] walks back
//! through an excerpt along what each stage waited for last, and gives each cycle to one cause of one instruction (B. Fields, S. Rubin, R.
//! Bodík, "Focusing Processor Policies via Critical-Path Prediction", ISCA 2001). [`find_loops`] finds natural loops in the code that was
//! executed, and [`Iterations`] finds what excerpts say of one loop.
//!
//! ```
//! use commit_trace::StaticInfo;
//! use critical_path::{Code, CriticalPath, Delays, Excerpt, Graph};
//!
//! let code = Code::new(&[]);
//! let excerpt = Excerpt::default();
//! let graph = Graph::new(&code, Delays::default(), &excerpt);
//! assert_eq!(CriticalPath::new(&graph, 0..0).cycles(), 0);
//! ```

mod cause;
mod code;
mod collect;
mod graph;
mod iterations;
mod loops;
mod row;
mod stages;
mod walk;

pub use cause::Cause;
pub use code::{Code, Inst, Queue};
pub use collect::Collector;
pub use graph::{Dependence, Graph};
pub use iterations::{Iteration, Iterations};
pub use loops::{Loop, find_loops};
pub use row::{CoreDescription, Delays, Excerpt, Excerpts, InstTimes, Widths};
pub use stages::{Segment, Stage};
pub use walk::{CriticalPath, Edge};
