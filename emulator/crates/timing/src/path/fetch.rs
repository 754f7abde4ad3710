//! The packets in which the path is fetched, and what the predictors that learn from the path alone make of its branches and jumps.

use isa::{PathSegment, TransferKind};

use super::output::Packet;
use super::position::{Position, Walks};
use super::role::Role;
use super::wrong::{Mispredicted, Predicted, Wrong};
use crate::Preset;
use crate::mem::LINE_BITS;
use crate::predict::{FetchSlot, Forecast, History, Last, Outcome, Predictor, Returns};

/// Which packet an instruction belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextPacket {
    /// The present one.
    Same,
    /// The one that follows in memory.
    Sequential,
    /// One that a branch, a jump or a flush leads to.
    AfterTransfer,
}

/// Where fetch is, and what the predictors have learnt.
pub(crate) struct Fetch {
    pub(super) position: Position,
    /// Banks of the packet with a branch that was not taken; a bit each.
    pub(super) seen: u8,
    /// What [`Self::seen`] of the packet that starts next begins with.
    resumed: u8,
    pub(super) history: History,
    pub(super) predictor: Predictor,
    pub(super) returns: Returns,
    pub(super) packet_bytes: u64,
    pub packet_insts: u32,
    walks: Walks,
    pub(super) wrong: Wrong,
    /// Fetch targets, which a wrong path can use up.
    pub(super) most_targets: u64,
}

/// The bit of [`Fetch::seen`] of a packet's first bank.
const FIRST_BANK: u8 = 1;

snapshot::snapshot!(Fetch { position, seen, resumed, history, predictor, returns } keeps {
    packet_bytes,
    packet_insts,
    walks,
    wrong,
    most_targets,
});

impl Fetch {
    pub(crate) fn new(preset: &Preset) -> Self {
        let (packet_bytes, packet_insts) = (u64::from(preset.fetch.bytes), preset.fetch.insts);
        Self {
            position: Position::default(),
            seen: 0,
            resumed: 0,
            history: History::default(),
            predictor: Predictor::new(preset),
            returns: Returns::new(preset.predictor.returns),
            packet_bytes,
            packet_insts,
            walks: Walks::new(packet_bytes, packet_insts),
            wrong: Wrong::No,
            most_targets: u64::from(preset.fetch.targets),
        }
    }

    /// Starts a packet with the instruction at `pc`, whose physical address is `pc` plus `to_pa`.
    #[inline(always)]
    pub(crate) fn packet(&mut self, pc: u64, len: u8, to_pa: u64) -> Packet {
        let sequential = self.position.limit != 0;
        if sequential {
            self.run_on(self.position);
        }
        self.predictor.packets(1);
        let straddles = self.position.start_packet(pc, len, self.packet_bytes);
        self.seen = std::mem::take(&mut self.resumed);
        // A packet in the page after that of the instruction's first half is taken to follow in physical memory, too: the machine tells one physical
        // address per instruction.
        let line = self.position.start.wrapping_add(to_pa) >> LINE_BITS;
        Packet::new(line, sequential, straddles)
    }

    /// Leaves the packet at `left`, which nothing ended, and updates the history.
    #[inline(always)]
    pub(super) fn run_on(&mut self, left: Position) {
        if self.seen == 0 {
            self.history.pass();
            return;
        }
        let single = left.end - left.start < self.packet_bytes;
        self.history = self.history.after(self.earlier(0), self.earlier(1), single);
    }

    /// Returns what the branches that were not taken did to a bank.
    #[inline(always)]
    fn earlier(&self, bank: u8) -> Outcome {
        match self.seen >> bank & 1 {
            0 => Outcome::None,
            _ => Outcome::NotTaken,
        }
    }

    /// Returns what becomes of a branch or jump whose next instruction is at `next`. Not inlined: it needs all of the
    /// host's registers, as does the loop that it is called from.
    #[inline(never)]
    pub(super) fn turn(&mut self, role: Role, pc: u64, len: u8, next: u64) -> Forecast {
        let second = pc & !(self.packet_bytes / 2 - 1) > self.position.start;
        let (at, bank) = (FetchSlot::new(pc.max(self.position.start)), u8::from(second));
        let after = pc.wrapping_add(u64::from(len));
        let forecast = if role == Role::Branch {
            self.branch(at, bank, next != after, next, pc)
        } else {
            self.jump(role, at, bank, after, next, pc)
        };
        forecast.in_bank(bank)
    }

    #[inline(always)]
    fn branch(&mut self, at: FetchSlot, bank: u8, taken: bool, next: u64, pc: u64) -> Forecast {
        let history = self.history.seen(bank.into());
        let forecast = self.predictor.branch(at, history, taken, next);
        if forecast.last() == Last::Wrong {
            let predicted = if taken { Predicted::NotTaken } else { Predicted::Taken };
            self.mispredicted(pc, bank, predicted);
        }
        if taken {
            self.close(bank, Outcome::Taken);
        } else if forecast.last() == Last::Wrong {
            match self.keeps_history(pc, next) {
                true => self.resume(),
                false => self.close(bank, Outcome::NotTaken),
            }
        } else {
            self.seen |= 1 << bank;
        }
        forecast
    }

    /// Returns the forecast of a branch that is not mispredicted, whatever its forecast says; the predictor learns of
    /// it as of any other.
    #[cold]
    #[inline(never)]
    fn foreseen(&mut self, at: FetchSlot, bank: u8, taken: bool, next: u64) -> Forecast {
        let history = self.history.seen(bank.into());
        let forecast = self.predictor.branch(at, history, taken, next);
        match taken {
            true => self.close(bank, Outcome::Taken),
            false => self.seen |= 1 << bank,
        }
        forecast
    }

    #[inline(always)]
    fn jump(
        &mut self,
        role: Role,
        at: FetchSlot,
        bank: u8,
        after: u64,
        next: u64,
        pc: u64,
    ) -> Forecast {
        if role == Role::Foreseen {
            return self.foreseen(at, bank, next != after, next);
        }
        let falls = next == self.position.end;
        let (mut full, mut empty) = (false, false);
        // F3 knows a direct jump's target, takes a return's from the stack, any other from the buffers.
        let last = match role {
            Role::Direct | Role::DirectCall => Last::Right,
            Role::Return => {
                let address;
                (address, empty) = self.returns.ret();
                match address == next {
                    true => Last::Right,
                    false => {
                        self.mispredicted(pc, bank, Predicted::Jump(address, -1));
                        Last::Wrong
                    }
                }
            }
            _ => Last::AsF2,
        };
        let calls = matches!(role, Role::DirectCall | Role::IndirectCall);
        if calls {
            full = self.returns.call(after);
        }
        // Only the pipeline knows what the micro BTB says.
        if last == Last::AsF2 && self.predictor.learns_at_commit() {
            match self.predictor.expects_target(at, pc) {
                Some(target) => {
                    self.mispredicted(pc, bank, Predicted::Jump(target, isize::from(calls)));
                }
                None => self.wrong = Wrong::Unknown,
            }
        }
        self.close(bank, Outcome::None);
        let is_direct = matches!(role, Role::Direct | Role::DirectCall);
        let forecast = self.predictor.jump(at, next, last, is_direct);
        forecast.with_fall_through(falls).with_returns(full, empty)
    }

    /// Ends the packet with an instruction of `bank`, and updates the history by what that did to it.
    #[inline(always)]
    pub(super) fn close(&mut self, bank: u8, last: Outcome) {
        let in_bank = match last {
            Outcome::None => self.earlier(bank),
            _ => last,
        };
        let (first, second) =
            if bank == 0 { (in_bank, Outcome::None) } else { (self.earlier(0), in_bank) };
        // A branch that is not taken ends its packet if it was mispredicted; it leaves no bank out.
        let single = match last {
            Outcome::NotTaken => self.position.end - self.position.start < self.packet_bytes,
            _ => bank == 0,
        };
        self.history = self.history.after(first, second, single);
        self.position.limit = 0;
    }

    /// Returns whether hardware keeps the history that the packet began with after a branch at `pc` that was mispredicted to be taken: if the instruction
    /// at `next` is in the first bank of the branch's line (`use_same_ghist`, `exu/core.scala:437`, which compares with the line and not with the bank).
    fn keeps_history(&self, pc: u64, next: u64) -> bool {
        let line = pc >> LINE_BITS << LINE_BITS;
        next.wrapping_sub(line) < self.packet_bytes / 2
    }

    /// Ends the packet with a mispredicted branch, and keeps the history that it began with: the next packet's first bank has seen a branch that was
    /// not taken, and what this packet's banks saw before is forgotten.
    fn resume(&mut self) {
        self.position.limit = 0;
        self.resumed = FIRST_BANK;
    }

    /// Notes a misprediction, if wrong paths are followed.
    #[cold]
    pub(super) fn mispredicted(&mut self, pc: u64, bank: u8, predicted: Predicted) {
        if self.predictor.learns_at_commit() {
            let Self { position, seen, history, .. } = *self;
            self.wrong =
                Wrong::Maybe(Mispredicted { pc, bank, predicted, position, seen, history });
        }
    }

    /// Restarts fetch after a flush at commit: the history is cleared too (`exu/core.scala:410`).
    pub(crate) fn flush(&mut self) {
        self.position.limit = 0;
        self.resumed = 0;
        self.history = History::default();
    }

    /// Leaves the packet as if nothing had ended it. The next instruction starts a packet, even if it lies in the bytes of this one.
    pub(crate) fn leave(&mut self) {
        if self.position.limit != 0 {
            self.run_on(self.position);
        }
        self.position.limit = 0;
    }

    /// Returns whether the predictors want to be [told](Self::told) what the pipeline has trained with.
    pub(super) fn learns_at_commit(&self) -> bool {
        self.predictor.learns_at_commit()
    }

    /// Takes how many packets before the last one the pipeline has not trained with.
    pub(super) fn told(&mut self, untrained: u64) {
        self.predictor.told(Some(untrained));
    }

    /// Returns the packet that an instruction of `len` bytes at `pc` belongs to, which is executed next.
    pub(super) fn next_packet(&self, pc: u64, len: u8) -> NextPacket {
        let Position { limit, room, .. } = self.position;
        match limit {
            0 => NextPacket::AfterTransfer,
            _ if super::over(pc, len, limit, room) => NextPacket::Sequential,
            _ => NextPacket::Same,
        }
    }

    /// Follows the path that a log records. Packets are formed and the predictors learn as if each instruction had been followed.
    pub(crate) fn replay(&mut self, segments: &[PathSegment]) {
        self.predictor.told(None);
        for segment in segments {
            let (lengths, count) = (segment.lengths, segment.lengths.count());
            let Some(last) = count.checked_sub(1) else { continue };
            self.walk(segment);
            let Some(kind) = segment.kind() else { continue };
            if kind == TransferKind::Flush {
                self.flush();
                continue;
            }
            let at = |number: u32| segment.start().wrapping_add(lengths.bytes(number));
            let falls = kind == TransferKind::Branch && !segment.taken();
            let next = if falls { at(count) } else { segment.target() };
            self.turn(kind.into(), at(last), lengths.len_at(last), next);
        }
    }

    /// Goes on to the packet that has the last instruction of a segment.
    #[inline(always)]
    fn walk(&mut self, segment: &PathSegment) {
        let before = self.position;
        let mut packets = self.walks.walk(&mut self.position, segment);
        if packets == 0 {
            return;
        }
        self.predictor.packets(packets.into());
        let mut seen = 0;
        if before.limit == 0 {
            packets -= 1;
            if self.resumed != 0 {
                seen = self.after_resuming(segment, packets);
                packets = packets.saturating_sub(1);
            }
        } else if self.seen != 0 {
            self.run_on(before);
            packets -= 1;
        }
        if packets != 0 {
            // However many packets without a branch are left, the history is the same then.
            self.history.pass();
        }
        self.seen = seen;
    }

    /// Goes on from the first packet of a segment, which was [resumed](Self::resume), if other `packets` follow it; returns what the last packet's banks have
    /// seen.
    #[cold]
    fn after_resuming(&mut self, segment: &PathSegment, packets: u32) -> u8 {
        let seen = std::mem::take(&mut self.resumed);
        if packets == 0 {
            return seen;
        }
        let mut first = Position::default();
        first.start_packet(segment.start(), segment.lengths.len_at(0), self.packet_bytes);
        self.seen = seen;
        self.run_on(first);
        0
    }
}

#[cfg(test)]
mod tests {
    use isa::{DecodedInst, InstClass, Privilege, RUN_STEPS, Run, StaticId, StaticInst, Step};
    use snapshot::{Archive, Snapshot};

    use super::*;
    use crate::path::{Path, PathOutput};

    const TEXT: u64 = 0xffff_ffff_8000_0000;
    const CODE: usize = 1500;

    /// Numbers that look random (xorshift).
    struct Random(u64);

    impl Random {
        fn below(&mut self, bound: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 16) as usize % bound
        }
    }

    /// Returns the code of a program: addresses and instructions, many of them branches and jumps.
    fn code(random: &mut Random) -> Vec<(u64, DecodedInst)> {
        const ENCODINGS: [u32; 6] =
            [0x0000_0063, 0x0000_006f, 0x0000_00ef, 0x0000_8067, 0x0000_80e7, 0x0007_8067];
        let mut pc = TEXT;
        let mut placed = |_| {
            let transfers = random.below(4) == 0;
            let kind = [0, 0, 0, 0, 0, 1, 2, 3, 4, 5][random.below(10)];
            let mut inst = isa::decode(if transfers { ENCODINGS[kind] } else { 0x0000_0013 });
            inst.len = if random.below(2) == 0 { 2 } else { 4 };
            pc += u64::from(inst.len);
            (pc - u64::from(inst.len), inst)
        };
        (0..CODE).map(&mut placed).collect()
    }

    /// Returns true if the instruction in `one` follows those of `before` in one segment.
    fn joins(before: &PathSegment, one: &PathSegment) -> bool {
        let (lengths, start) = (before.lengths, before.start());
        let has_room = (lengths.count() as usize) < isa::SegmentLengths::MOST;
        let end = start.wrapping_add(lengths.bytes(lengths.count()));
        has_room && before.kind().is_none() && end == one.start()
    }

    fn bytes(fetch: &mut Fetch) -> Vec<u8> {
        let mut archive = Archive::saving();
        fetch.snapshot(&mut archive).unwrap();
        archive.into_bytes()
    }

    #[test]
    fn a_log_teaches_what_the_instructions_teach() {
        for preset in ["boom-4w", "mega-boom"] {
            let preset = Preset::load(preset).unwrap();
            let mut random = Random(0x9e37_79b9_7f4a_7c15);
            let code = code(&mut random);
            let (mut path, mut output) = (Path::new(&preset), PathOutput::default());
            for (n, &(pc, inst)) in code.iter().enumerate() {
                let id = StaticId(n as u32);
                path.define(&StaticInst { id, space: 1, pc, inst, privilege: Privilege::User });
            }
            let mut replayed = Fetch::new(&preset);
            let (mut at, mut calls, mut log, mut transfers) = (0, Vec::new(), Vec::new(), 0);
            // The path is the same again and again, so that there is something to learn.
            for _ in 0..400 {
                let mut random = Random(77);
                at = if random.below(2) == 0 { at } else { 0 };
                for n in 0..30 {
                    let vpage = code[at].0 & !0xfff;
                    let mut steps = Vec::new();
                    let most = 1 + random.below(RUN_STEPS);
                    let next = loop {
                        let (pc, inst) = code[at];
                        steps.push(Step::new(
                            StaticId(at as u32),
                            pc as u16 & 0xfff,
                            inst.class,
                            inst.len,
                        ));
                        let falls = if at + 1 < CODE { at + 1 } else { 0 };
                        let elsewhere = random.below(CODE);
                        let next = match inst.class {
                            InstClass::Branch if random.below(3) == 0 => falls,
                            InstClass::Branch | InstClass::Jal => elsewhere,
                            InstClass::Jalr => calls.pop().unwrap_or(elsewhere),
                            _ => falls,
                        };
                        let kind = TransferKind::of(&inst);
                        let target = code[next].0;
                        let taken = target != pc + u64::from(inst.len);
                        let one = PathSegment::one(kind, pc, inst.len, taken, target);
                        match log.last_mut().filter(|_| random.below(8) != 0) {
                            Some(before) if joins(before, &one) => {
                                let lengths = before.lengths.with(inst.len);
                                let start = before.start() | one.start_and_taken & 1;
                                *before = PathSegment { start_and_taken: start, lengths, ..one };
                            }
                            _ => log.push(one),
                        }
                        if let Some(TransferKind::DirectCall | TransferKind::IndirectCall) = kind {
                            calls.push(falls);
                        }
                        at = next;
                        if steps.len() == most || code[next].0 & !0xfff != vpage {
                            break next;
                        }
                    };
                    at = next;
                    let run = Run {
                        steps: &steps,
                        accesses: &[],
                        operands: &[],
                        next_pc: code[next].0,
                        vpage,
                        page: vpage,
                        privilege: Privilege::User,
                        translated: false,
                    };
                    output.clear();
                    path.follow(&run, &mut output);
                    if n == 29 || random.below(40) == 0 {
                        // An interrupt in place of an instruction that was fetched.
                        let (pc, inst) = code[next];
                        path.fetch(pc, inst.len, vpage, false, &mut output);
                        path.flush();
                        at = random.below(CODE);
                        let kind = Some(TransferKind::Flush);
                        log.push(PathSegment::one(kind, pc, inst.len, false, code[at].0));
                        replayed.replay(&log);
                        let timed = path.fetch_mut();
                        replayed.position = timed.position;
                        replayed.seen = timed.seen;
                        assert!(bytes(&mut replayed) == bytes(timed), "{log:?}");
                        transfers += log.len();
                        log.clear();
                    }
                }
            }
            assert!(transfers > 20_000, "{transfers}");
        }
    }

    #[test]
    fn code_may_end_where_addresses_do() {
        let preset = Preset::load("boom-4w").unwrap();
        let (mut path, mut output) = (Path::new(&preset), PathOutput::default());
        let inst = DecodedInst { len: 2, ..isa::decode(0x0000_0013) };
        let (id, vpage) = (StaticId(0), !0xfff);
        path.define(&StaticInst { id, space: 1, pc: vpage, inst, privilege: Privilege::User });
        let steps: Vec<_> = (0xf80..0x1000u16)
            .step_by(2)
            .map(|offset| Step::new(id, offset, inst.class, 2))
            .collect();
        let mut segments = Vec::new();
        for steps in steps.chunks(RUN_STEPS) {
            let run = Run {
                steps,
                accesses: &[],
                operands: &[],
                next_pc: 0,
                vpage,
                page: 0x8000_0000,
                privilege: Privilege::User,
                translated: false,
            };
            output.clear();
            path.follow(&run, &mut output);
            let one = |step: &Step| PathSegment::one(None, run.pc(step), 2, false, 0);
            segments.extend(steps.iter().map(one));
        }
        segments.push(PathSegment::one(None, 0, 2, false, 0));
        path.fetch(0, 2, 0, false, &mut output);
        let mut replayed = Fetch::new(&preset);
        replayed.replay(&segments);
        assert!(bytes(&mut replayed) == bytes(path.fetch_mut()));
    }
}
