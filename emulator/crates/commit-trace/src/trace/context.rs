//! Static info and events as bytes.

use super::varint::{Cursor, put, put_signed};
use crate::{Class, Event, InstId, StaticInfo};

/// The instruction after the last one: what the next static info is expected to be of.
#[derive(Debug, Default)]
pub(super) struct StaticInfoState {
    id: u32,
    pc: u64,
}

impl StaticInfoState {
    fn advance(&mut self, static_info: &StaticInfo) {
        self.id = static_info.id.0.wrapping_add(1);
        self.pc = static_info.pc.wrapping_add(u64::from(static_info.len));
    }
}

pub(super) fn put_static_info(
    out: &mut Vec<u8>,
    state: &mut StaticInfoState,
    static_info: &StaticInfo,
) {
    let head = u64::from(static_info.len)
        | u64::from(static_info.class as u8) << 8
        | u64::from(static_info.privilege) << 16
        | u64::from(static_info.target.is_some()) << 24;
    put(out, head);
    put_signed(out, i64::from(static_info.id.0.wrapping_sub(state.id) as i32));
    put(out, u64::from(static_info.space));
    put_signed(out, static_info.pc.wrapping_sub(state.pc) as i64);
    out.extend(static_info.raw.to_le_bytes());
    if let Some(target) = static_info.target {
        put_signed(out, target.wrapping_sub(static_info.pc) as i64);
    }
    state.advance(static_info);
}

pub(super) fn take_static_info(
    input: &mut Cursor<'_>,
    state: &mut StaticInfoState,
) -> Option<StaticInfo> {
    let head = input.number()?;
    let id = InstId(state.id.wrapping_add(input.signed()? as u32));
    let space = input.narrow()?;
    let pc = state.pc.wrapping_add(input.signed()? as u64);
    let raw = input.u32()?;
    let target = match head >> 24 {
        0 => None,
        1 => Some(pc.wrapping_add(input.signed()? as u64)),
        _ => return None,
    };
    let class = *Class::ALL.get((head >> 8 & 0xff) as usize)?;
    let (len, privilege) = (head as u8, (head >> 16) as u8);
    let static_info = StaticInfo { id, space, pc, raw, len, privilege, class, target };
    state.advance(&static_info);
    Some(static_info)
}

const IDLE: u8 = 0;
const PRIVILEGE: u8 = 1;
const SIDE_BAND: u8 = 2;
const REGION: u8 = 3;
const END: u8 = 4;
const WEIGHT: u8 = 5;

/// Appends an event to `out`; `before` is the index of the previous event of the batch (0 for its first).
pub(super) fn put_event(out: &mut Vec<u8>, before: u32, index: u32, event: &Event) {
    put_signed(out, i64::from(index) - i64::from(before));
    match event {
        Event::Idle { cycles } => {
            out.push(IDLE);
            put(out, *cycles);
        }
        Event::Privilege(privilege) => out.extend([PRIVILEGE, *privilege]),
        Event::SideBand { kind, bytes } => {
            out.extend([SIDE_BAND, *kind]);
            put(out, bytes.len() as u64);
            out.extend(bytes);
        }
        Event::Region(inside) => out.extend([REGION, u8::from(*inside)]),
        Event::RegionAnew => out.extend([REGION, 2]),
        Event::Weight(weight) => {
            out.push(WEIGHT);
            put(out, u64::from(*weight));
        }
        Event::End => out.push(END),
    }
}

pub(super) fn take_event(input: &mut Cursor<'_>, before: u32) -> Option<(u32, Event)> {
    let index = u32::try_from(i64::from(before).checked_add(input.signed()?)?).ok()?;
    let event = match input.byte()? {
        IDLE => Event::Idle { cycles: input.number()? },
        PRIVILEGE => Event::Privilege(input.byte()?),
        SIDE_BAND => {
            let kind = input.byte()?;
            let len = input.narrow()?;
            Event::SideBand { kind, bytes: input.bytes(len)?.to_vec() }
        }
        REGION => match input.byte()? {
            0 => Event::Region(false),
            1 => Event::Region(true),
            2 => Event::RegionAnew,
            _ => return None,
        },
        WEIGHT => match input.narrow()? {
            weight @ 1..=Event::MAX_WEIGHT => Event::Weight(weight),
            _ => return None,
        },
        END => Event::End,
        _ => return None,
    };
    Some((index, event))
}
