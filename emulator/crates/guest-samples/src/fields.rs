//! All fields of a sample record (Linux: include/uapi/linux/perf_event.h, `PERF_RECORD_SAMPLE`).

use super::attr::Attr;
use super::cursor::{Cursor, word};

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
const BRANCH_STACK: u64 = 1 << 11;
const REGS_USER: u64 = 1 << 12;
const STACK_USER: u64 = 1 << 13;
const WEIGHT: u64 = 1 << 14;
const DATA_SRC: u64 = 1 << 15;
const IDENTIFIER: u64 = 1 << 16;
const TRANSACTION: u64 = 1 << 17;
const REGS_INTR: u64 = 1 << 18;
const PHYS_ADDR: u64 = 1 << 19;
const WEIGHT_STRUCT: u64 = 1 << 24;

/// `PERF_SAMPLE_BRANCH_HW_INDEX` and `…_COUNTERS`: branch stacks have more than their entries.
const BRANCH_HW_INDEX: u64 = 1 << 17;
const BRANCH_COUNTERS: u64 = 1 << 19;

/// A sample's fields, as far as its event has them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fields<'a> {
    pub ip: Option<u64>,
    /// Process in the low half, thread in the high one.
    pub thread: Option<u64>,
    pub time: Option<u64>,
    pub addr: Option<u64>,
    /// CPU number, in the low half.
    pub cpu: Option<u64>,
    pub period: Option<u64>,
    pub raw: Option<&'a [u8]>,
    /// One weight, or three packed ones ([`weight_is_packed`]).
    pub weight: Option<u64>,
    pub data_src: Option<u64>,
    pub phys_addr: Option<u64>,
}

/// Returns the event id of a sample, whose position depends on the sample type.
pub(crate) fn id(body: &[u8], sample_type: u64) -> Option<u64> {
    if sample_type & IDENTIFIER != 0 {
        return word(body, 0);
    }
    if sample_type & ID == 0 {
        return None;
    }
    let before = (sample_type & (IP | TID | TIME | ADDR)).count_ones();
    word(body, 8 * before as usize)
}

/// The fields at the end of records that are no samples (`sample_id_all`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Suffix {
    pub pid: Option<u32>,
    pub tid: Option<u32>,
    pub time: Option<u64>,
    pub id: Option<u64>,
    pub cpu: Option<u32>,
}

/// Reads the fields at the end of a record that is no sample; `None` if it is shorter than the event's sample type says.
pub(crate) fn suffix(body: &[u8], attr: &Attr) -> Option<Suffix> {
    let parts = [TID, TIME, ID, STREAM_ID, CPU, IDENTIFIER];
    let has = |bit: u64| attr.sample_type & bit != 0;
    let words = parts.iter().filter(|bit| has(**bit)).count();
    let mut rest = Cursor(body.get(body.len().checked_sub(8 * words)?..)?);
    let mut field = |bit: u64| match has(bit) {
        true => rest.u64().map(Some),
        false => Some(None),
    };
    let (thread, time, id) = (field(TID)?, field(TIME)?, field(ID)?);
    let (_stream, cpu, identifier) = (field(STREAM_ID)?, field(CPU)?, field(IDENTIFIER)?);
    Some(Suffix {
        pid: thread.map(|thread| thread as u32),
        tid: thread.map(|thread| (thread >> 32) as u32),
        time,
        id: id.or(identifier),
        cpu: cpu.map(|cpu| cpu as u32),
    })
}

/// Reads a sample; `None` if it is shorter than its type says. Fields behind the physical address are not read.
pub(crate) fn parse<'a>(body: &'a [u8], attr: &Attr) -> Option<Fields<'a>> {
    let mut rest = Cursor(body);
    let has = |bit: u64| attr.sample_type & bit != 0;
    let field = |rest: &mut Cursor<'_>, bit: u64| match has(bit) {
        true => rest.u64().map(Some),
        false => Some(None),
    };
    field(&mut rest, IDENTIFIER)?;
    let mut fields = Fields {
        ip: field(&mut rest, IP)?,
        thread: field(&mut rest, TID)?,
        time: field(&mut rest, TIME)?,
        addr: field(&mut rest, ADDR)?,
        ..Fields::default()
    };
    field(&mut rest, ID)?;
    field(&mut rest, STREAM_ID)?;
    fields.cpu = field(&mut rest, CPU)?;
    fields.period = field(&mut rest, PERIOD)?;
    if has(READ) {
        skip_read(&mut rest, attr.read_format)?;
    }
    if has(CALLCHAIN) {
        let depth = rest.u64()?;
        rest.skip_words(depth)?;
    }
    if has(RAW) {
        let size = rest.u32()?;
        fields.raw = Some(rest.bytes(size as usize)?);
    }
    if has(BRANCH_STACK) {
        let entries = rest.u64()?;
        rest.skip_words(u64::from(attr.branch_sample_type & BRANCH_HW_INDEX != 0))?;
        rest.skip_words(entries.checked_mul(3)?)?;
        if attr.branch_sample_type & BRANCH_COUNTERS != 0 {
            rest.skip_words(entries)?;
        }
    }
    if has(REGS_USER) {
        skip_registers(&mut rest, attr.sample_regs_user)?;
    }
    if has(STACK_USER) {
        let size = rest.u64()?;
        rest.bytes(usize::try_from(size).ok()?)?;
        rest.skip_words(u64::from(size != 0))?;
    }
    fields.weight = field(&mut rest, WEIGHT | WEIGHT_STRUCT)?;
    fields.data_src = field(&mut rest, DATA_SRC)?;
    field(&mut rest, TRANSACTION)?;
    if has(REGS_INTR) {
        skip_registers(&mut rest, attr.sample_regs_intr)?;
    }
    fields.phys_addr = field(&mut rest, PHYS_ADDR)?;
    Some(fields)
}

/// True if a sample's weight is three packed ones (`PERF_SAMPLE_WEIGHT_STRUCT`).
pub(crate) fn weight_is_packed(attr: &Attr) -> bool {
    attr.sample_type & WEIGHT_STRUCT != 0
}

fn skip_registers(rest: &mut Cursor<'_>, mask: u64) -> Option<()> {
    match rest.u64()? {
        // `PERF_SAMPLE_REGS_ABI_NONE`.
        0 => Some(()),
        _ => rest.skip_words(mask.count_ones().into()),
    }
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
