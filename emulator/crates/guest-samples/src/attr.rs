//! What a file says of one event.

/// The part of a `perf_event_attr` that is used.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attr {
    pub name: String,
    /// The PMU's number, and its name if the file has it.
    pub kind: u32,
    pub pmu: String,
    /// The PMU's own configuration.
    pub config: u64,
    /// More of the event's configuration: `config1` and `config2`.
    pub more_config: [u64; 2],
    pub period: u64,
    pub is_frequency: bool,
    pub exclude_user: bool,
    pub exclude_kernel: bool,
    pub exclude_machine: bool,
    /// `PERF_SAMPLE_…` bits.
    pub sample_type: u64,
    /// `PERF_FORMAT_…` bits.
    pub read_format: u64,
    pub precise: u8,
    /// `PERF_SAMPLE_BRANCH_…` bits, and masks of registers.
    pub branch_sample_type: u64,
    pub sample_regs_user: u64,
    pub sample_regs_intr: u64,
    pub ids: Vec<u64>,
}
