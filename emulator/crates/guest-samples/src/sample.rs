//! One sample record as a [`GuestSample`].

use super::GuestSample;
use super::attr::Attr;
use super::cursor::{Cursor, text};
use super::fields;

/// Version of the raw data that the kernel driver writes.
const RAW_VERSION: u8 = 1;

/// Reads a sample; `None` if it is shorter than its type says, or does not say where.
pub(crate) fn parse(body: &[u8], attr: &Attr) -> Option<GuestSample> {
    let fields = fields::parse(body, attr)?;
    let thread = fields.thread?;
    // Without PERIOD, every sample of a fixed period stands for it.
    let fixed = || (!attr.is_frequency).then_some(attr.period);
    let mut sample = GuestSample {
        pid: thread as u32,
        tid: (thread >> 32) as u32,
        period: fields.period.or_else(fixed)?,
        cycle: None,
        privilege: None,
        addresses: Vec::new(),
    };
    match fields.raw.and_then(tip) {
        Some((cycle, privilege, addresses)) => {
            sample.cycle = Some(cycle);
            sample.privilege = Some(privilege);
            sample.addresses = addresses;
        }
        None => sample.addresses.push(fields.ip?),
    }
    Some(sample)
}

/// TIP's raw data: u8 version, u8 count, u16 flags (privilege in bits 9..8), u64 cycle, addresses.
fn tip(raw: &[u8]) -> Option<(u64, u8, Vec<u64>)> {
    let mut rest = Cursor(raw);
    let (version, count, flags, cycle) = (rest.u8()?, rest.u8()?, rest.u16()?, rest.u64()?);
    if version != RAW_VERSION || count == 0 {
        return None;
    }
    let addresses: Option<Vec<u64>> = (0..count).map(|_| rest.u64()).collect();
    Some((cycle, (flags >> 8 & 3) as u8, addresses?))
}

/// `(process id, name)` of a `PERF_RECORD_COMM` of a process's first thread.
pub(crate) fn command(body: &[u8]) -> Option<(u32, String)> {
    let mut rest = Cursor(body);
    let (pid, tid) = (rest.u32()?, rest.u32()?);
    (pid == tid).then(|| (pid, text(rest.0)))
}
