//! Sampling hardware of a hart beside its counters and the TIP unit: [`ctr`], control transfer records; [`pdis`], sampled instructions and
//! fetches; [`precise`], which instruction a counter's overflow is due to. Hart and commit stage share each: the hart has the registers, the
//! commit stage tells what passes.

mod passed;

pub mod ctr;
pub mod pdis;
pub mod precise;

pub use passed::{Observed, Outcome, Passed, StaticKind};

/// The units of a hart, which its commit stage shares.
#[derive(Clone, Debug, Default)]
pub struct SharedUnits {
    /// Control transfer records.
    pub transfer_records: ctr::SharedTransferRecords,
    /// Sampled instructions, and attributed overflows.
    pub samplers: pdis::SharedSamplingUnits,
}

snapshot::snapshot!(SharedUnits { transfer_records, samplers });
