//! One sample record (Linux: include/uapi/linux/perf_event.h, `PERF_RECORD_SAMPLE`).

use super::GuestSample;
use super::container::Attr;
use super::cursor::Cursor;

const IP: u64 = 1 << 0;
const TID: u64 = 1 << 1;
const TIME: u64 = 1 << 2;
const ADDR: u64 = 1 << 3;
const READ: u64 = 1 << 4;
const CALLCHAIN: u64 = 1 << 5;
const ID: u64 = 1 << 6;
const CPU: u64 = 1 << 7;
const PERIOD: u64 = 1 << 8;
const STREAM_ID: u64 = 1 << 9;
const RAW: u64 = 1 << 10;
const IDENTIFIER: u64 = 1 << 16;

/// Version of the raw data that the kernel driver writes.
const RAW_VERSION: u8 = 1;

/// The event id of a sample, which lies where the sample type says.
pub(super) fn id(body: &[u8], sample_type: u64) -> Option<u64> {
    if sample_type & IDENTIFIER != 0 {
        return word(body, 0);
    }
    if sample_type & ID == 0 {
        return None;
    }
    word(
        body,
        8 * (sample_type & (IP | TID | TIME | ADDR)).count_ones() as usize,
    )
}

/// Reads a sample; `None` if it is shorter than its type says, or does not say where.
pub(super) fn parse(body: &[u8], attr: &Attr) -> Option<GuestSample> {
    let mut rest = Cursor(body);
    let mut field = |bit: u64| {
        if attr.sample_type & bit != 0 {
            rest.u64().map(Some)
        } else {
            Some(None)
        }
    };
    field(IDENTIFIER)?;
    let ip = field(IP)?;
    let thread = field(TID)?;
    for skipped in [TIME, ADDR, ID, STREAM_ID, CPU] {
        field(skipped)?;
    }
    let period = field(PERIOD)?;
    if attr.sample_type & READ != 0 {
        skip_read(&mut rest, attr.read_format)?;
    }
    if attr.sample_type & CALLCHAIN != 0 {
        let depth = rest.u64()?;
        rest.skip_words(depth)?;
    }
    let raw = if attr.sample_type & RAW != 0 {
        let size = rest.u32()?;
        Some(rest.bytes(size as usize)?)
    } else {
        None
    };
    let thread = thread?;
    // Without PERIOD, every sample of a fixed period stands for it.
    let period = period.or_else(|| (!attr.is_frequency).then_some(attr.period))?;
    let mut sample = GuestSample {
        pid: thread as u32,
        tid: (thread >> 32) as u32,
        period,
        cycle: None,
        privilege: None,
        addresses: Vec::new(),
    };
    match raw.and_then(tip) {
        Some((cycle, privilege, addresses)) => {
            sample.cycle = Some(cycle);
            sample.privilege = Some(privilege);
            sample.addresses = addresses;
        }
        None => sample.addresses.push(ip?),
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

fn skip_read(rest: &mut Cursor<'_>, format: u64) -> Option<()> {
    let has = |bit: u32| format >> bit & 1;
    let (times, each) = (has(0) + has(1), 1 + has(2) + has(4));
    if has(3) != 0 {
        let count = rest.u64()?;
        rest.skip_words(times)?;
        rest.skip_words(count.checked_mul(each)?)
    } else {
        rest.skip_words(times + each)
    }
}

/// `(process id, name)` of a `PERF_RECORD_COMM` of a process's first thread.
pub(super) fn command(body: &[u8]) -> Option<(u32, String)> {
    let mut rest = Cursor(body);
    let (pid, tid) = (rest.u32()?, rest.u32()?);
    (pid == tid).then(|| (pid, text(rest.0)))
}

/// The 64-bit word at a byte offset.
pub(super) fn word(body: &[u8], offset: usize) -> Option<u64> {
    Cursor(body.get(offset..)?).u64()
}

/// A string that ends with a zero byte.
pub(super) fn text(bytes: &[u8]) -> String {
    let end = bytes
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
