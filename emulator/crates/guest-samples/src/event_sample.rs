//! One sample of any event.

use super::data_src::DataSrc;

/// A sample; fields that its event does not have are `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Index into [`SampleFile::events`](crate::SampleFile::events).
    pub event: usize,
    /// Nanoseconds of the guest's clock.
    pub time: Option<u64>,
    /// The process id.
    pub pid: Option<u32>,
    /// Thread id.
    pub tid: Option<u32>,
    /// The hart's number.
    pub cpu: Option<u32>,
    /// The instruction's virtual address.
    pub ip: Option<u64>,
    /// True if the kernel says that `ip` is exactly the sampled instruction (`PERF_RECORD_MISC_EXACT_IP`).
    pub is_exact: bool,
    /// True if `ip` is an address of user space.
    pub is_user: bool,
    /// Events that the sample stands for.
    pub period: Option<u64>,
    /// Virtual address of the data.
    pub addr: Option<u64>,
    /// Physical address of the data.
    pub phys_addr: Option<u64>,
    /// The data source: what is known of the access.
    pub data_src: Option<DataSrc>,
    /// perf's `weight`: the latency that the PMU measures, in cycles.
    pub weight: Option<u64>,
    /// perf's `ins_lat`: the instruction's latency, in cycles.
    pub ins_lat: Option<u16>,
    /// perf's `retire_lat`: the latency from completion to retirement, in cycles.
    pub retire_lat: Option<u16>,
}
