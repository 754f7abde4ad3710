//! Performance monitoring units of what all harts share: eight counters of 64 bits for the events of the last-level cache or of
//! the memory controller, by hart and origin, a counter of cycles, and an interrupt when one overflows.
//!
//! A unit knows registers and the totals that it asks its owner for ([`Totals`]), never addresses on a bus. One table
//! ([`regs`]) gives the registers, another ([`Event`]) the events; of both come the C header ([`c_header`]) and the
//! documentation ([`markdown`]).
//!
//! ```
//! use uncore_pmu::{Event, Reg, RequestFilter, Totals, Unit, UncorePmu};
//! struct Seven;
//! impl Totals for Seven {
//!     fn total(&self, _: Event, _: RequestFilter, cycle: u64) -> u64 {
//!         7 * cycle
//!     }
//! }
//! let mut pmu = UncorePmu::new(Unit::Llc, 1, 3_200_000_000, |_| true);
//! pmu.write((Reg::Select, 0), Event::Lookups.row().number.into(), 10, &Seven);
//! pmu.write((Reg::Enable, 0), 1, 10, &Seven);
//! pmu.write((Reg::Control, 0), 1, 10, &Seven);
//! assert_eq!(pmu.read((Reg::Count, 0), 30, &Seven), 7 * 20);
//! ```

mod counter;
mod doc;
mod events;
pub mod regs;
mod unit;

pub use counter::{RequestFilter, Totals};
pub use doc::{c_header, markdown};
pub use events::{Event, EventRow, ORIGINS, Unit};
pub use regs::Reg;
pub use unit::{Tally, UncorePmu};
