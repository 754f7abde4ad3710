//! The half of the core that follows the program: which packets it is fetched in, what the predictors that learn
//! from the path alone make of its branches, which of its pages the TLBs hold, which stores its loads find. It
//! knows no cycles, so it may run ahead of the half that does.

mod output;
mod role;
mod stores;
mod tables;
mod tlb;

use isa::{Executed, MemAccess, MemKind, PageWalk, RUN_STEPS, Run, StaticInst};

use crate::Preset;
use crate::mem::LINE_BITS;
use crate::observe::ObservedBy;
use output::Draft;
pub(crate) use output::{
    Extent, InstOutput, LsuAccess, Packet, PathOutput, Reader, Steps, WalkReads,
};
use role::Role;
use stores::Stores;
pub(crate) use stores::{STORES, StoreMatch};
use tables::Tables;
use tlb::Tlb;

use crate::predict::{FetchSlot, Forecast, History, Last, Outcome, Predictor, Returns};
use crate::without::Removed;

/// The path, in lines of the host's caches that no other processor writes, like
/// [`Pipeline`](crate::pipeline::Pipeline).
#[repr(align(128))]
pub(crate) struct Path {
    /// Roles of the static instructions, by number.
    roles: Vec<Role>,
    removed: Removed,
    draft: Draft,
    state: State,
    /// Who wants to know the accesses of runs.
    pub observed_by: ObservedBy,
}

/// What the path so far has left behind.
struct State {
    /// Current packet: bytes [`start`, `end`) of code, and how many instructions still fit.
    start: u64,
    end: u64,
    room: u32,
    /// Where the next instruction must end to belong to the packet: `end`, or 0 if something closed it.
    limit: u64,
    /// Banks of the packet with a branch that was not taken; a bit each.
    seen: u8,
    history: History,
    predictor: Predictor,
    returns: Returns,
    /// Page of the last translated fetch.
    page: u64,
    itlb: Tlb,
    dtlb: Tlb,
    tables: Tables,
    stores: Stores,
    packet_bytes: u64,
    packet_insts: u32,
}

// Saved between runs. Roles of instructions are not state: they are announced again, and so are page tables.
snapshot::snapshot!(Path { state, observed_by } keeps { roles, removed, draft });

snapshot::snapshot!(State {
    start,
    end,
    room,
    limit,
    seen,
    history,
    predictor,
    returns,
    page,
    itlb,
    dtlb,
    stores,
} keeps {
    tables,
    packet_bytes,
    packet_insts,
});

impl Path {
    pub fn new(preset: &Preset) -> Self {
        Self {
            roles: Vec::new(),
            removed: Removed::of(preset),
            draft: Draft::new(),
            state: State::new(preset),
            observed_by: ObservedBy::default(),
        }
    }

    /// Announces a static instruction.
    pub fn define(&mut self, inst: &StaticInst) {
        let index = inst.id.0 as usize;
        if index >= self.roles.len() {
            self.roles.resize(index + 1, Role::None);
        }
        self.roles[index] = Role::of(&inst.inst).without(self.removed.at(inst));
    }

    /// Leaves room for instructions that were announced to another core.
    pub fn skip_ids(&mut self, count: usize) {
        self.roles.resize(count, Role::None);
    }

    /// Notes that the hart walked its page tables for `va`.
    pub fn translated(&mut self, va: u64, walk: &PageWalk) {
        self.state.tables.note(va, walk);
    }

    /// Drops all translations, as they changed.
    pub fn flush_tlb(&mut self) {
        let state = &mut self.state;
        state.itlb.clear();
        state.dtlb.clear();
        state.page = u64::MAX;
    }

    /// Follows a run, after those that were followed before.
    #[inline(never)]
    pub fn follow(&mut self, run: &Run<'_>, output: &mut PathOutput) -> Extent {
        let Self { roles, removed: _, draft, state, observed_by } = self;
        let (steps, mut words, accesses) = draft.begin(run);
        // Within a page both addresses go up together.
        let to_pa = run.page.wrapping_sub(run.vpage);
        let mut room = state.room;
        let mut n = 0;
        loop {
            // The steps that belong to the packet.
            let first = n;
            let until = run.steps.len().min(first + room as usize);
            while n < until {
                let step = &run.steps[n];
                let (pc, len) = (run.pc(step), step.size());
                if pc.wrapping_add(len.into()) > state.limit {
                    break;
                }
                n += 1;
                if step.is_control_flow() {
                    let next = run.steps.get(n);
                    let next = next.map_or(run.next_pc, |next| run.pc(next));
                    let role = roles[step.id.0 as usize];
                    words.forecast(state.turn(role, pc, len, next));
                }
            }
            room -= (n - first) as u32;
            let Some(step) = run.steps.get(n) else {
                break;
            };
            let packet = state.packet(run.pc(step), step.size(), to_pa);
            let packet = state.in_page(packet, run.translated, &mut output.packet_walks);
            room = state.packet_insts;
            words.packet(packet);
            steps[n].starts_packet();
        }
        state.room = room;
        output.operands.extend_from_slice(run.operands);
        if observed_by.any() {
            output.observed.extend_from_slice(run.accesses);
        }
        // Nothing above has to do with the accesses, and they are followed fastest by themselves.
        let accesses = state.accesses(run, accesses, &mut output.data_walks);
        output.take(steps, words.written(), accesses)
    }

    /// Follows the fetch of the next instruction, which is at `pc` in the page at physical address `page`; returns the
    /// packet that it starts, if it starts one.
    pub fn fetch(
        &mut self,
        pc: u64,
        len: u8,
        page: u64,
        translated: bool,
        output: &mut PathOutput,
    ) -> Option<Packet> {
        let state = &mut self.state;
        let packet = over(pc, len, state.limit, state.room).then(|| {
            let packet = state.packet(pc, len, page.wrapping_sub(pc & !0xfff));
            state.room = state.packet_insts;
            state.in_page(packet, translated, &mut output.packet_walks)
        });
        state.room -= 1;
        packet
    }

    /// Follows the instruction that was fetched last.
    pub fn pass(&mut self, executed: &Executed, output: &mut PathOutput) -> InstOutput {
        let (role, len) = (self.roles[executed.id.0 as usize], executed.inst.len);
        let state = &mut self.state;
        let (mem, translated) = (&executed.mem, executed.translated);
        let data_walks = &mut output.data_walks;
        let mut passed = InstOutput::default();
        match role {
            _ if executed.trap.is_some() => state.flush(),
            Role::None => {}
            Role::Load | Role::Store => {
                passed.found = state.access(mem, translated && !mem.mmio(), data_walks);
            }
            Role::Flush | Role::SerialWithoutFlush => {
                // An atomic finds no store in the queue.
                let accesses = mem.kind() != MemKind::None && !mem.mmio();
                let walks = accesses && translated && state.walks(mem.va, data_walks);
                passed.found = LsuAccess::new(mem.pa(), StoreMatch::default(), walks);
                if role == Role::Flush {
                    state.flush();
                }
            }
            _ => passed.forecast = state.turn(role, executed.pc, len, executed.next_pc),
        }
        passed
    }

    /// Looks up the page of a data access for functional warming, and notes what a walk reads. Returns the entry that has the
    /// page, and whether it did not have it before.
    pub fn warm_data(&mut self, va: u64, walks: &mut Vec<WalkReads>) -> (usize, bool) {
        let State { dtlb, tables, .. } = &mut self.state;
        let missed = lookup(dtlb, tables, va, walks);
        (dtlb.entry(va), missed)
    }

    /// Looks up the page of code for functional warming, and notes what a walk reads. Returns the entry that has the page, and
    /// whether it did not have it before.
    pub fn warm_code(&mut self, pc: u64, walks: &mut Vec<WalkReads>) -> (usize, bool) {
        let State { itlb, tables, page, .. } = &mut self.state;
        *page = u64::MAX;
        let missed = lookup(itlb, tables, pc, walks);
        (itlb.entry(pc), missed)
    }

    /// Restarts fetch after a flush at commit.
    pub fn flush(&mut self) {
        self.state.flush();
    }
}

impl State {
    fn new(preset: &Preset) -> Self {
        Self {
            start: 0,
            end: 0,
            room: 0,
            limit: 0,
            seen: 0,
            history: History::default(),
            predictor: Predictor::new(preset),
            returns: Returns::new(preset.predictor.returns),
            page: u64::MAX,
            itlb: Tlb::new(preset.itlb.entries),
            dtlb: Tlb::new(preset.dtlb.entries),
            tables: Tables::default(),
            stores: Stores::new(),
            packet_bytes: u64::from(preset.fetch.bytes),
            packet_insts: preset.fetch.insts,
        }
    }

    /// Returns the packet that was started, with whether its page is in the ITLB; if not, notes what the walk reads.
    #[inline(always)]
    fn in_page(&mut self, packet: Packet, translated: bool, walks: &mut Vec<WalkReads>) -> Packet {
        match self.start >> 12 != self.page && translated && self.fetch_page(walks) {
            true => packet.with_itlb_miss(),
            false => packet,
        }
    }

    /// Looks up the packet's page, which is not that of the last one, in the ITLB; if it is not there, returns true and
    /// notes what the walk reads.
    #[cold]
    #[inline(never)]
    fn fetch_page(&mut self, walks: &mut Vec<WalkReads>) -> bool {
        self.page = self.start >> 12;
        lookup(&mut self.itlb, &self.tables, self.start, walks)
    }

    /// Returns what the loads and stores of a run find.
    #[inline(never)]
    fn accesses<'a>(
        &mut self,
        run: &Run<'_>,
        accesses: &'a mut [LsuAccess; RUN_STEPS],
        walks: &mut Vec<WalkReads>,
    ) -> &'a [LsuAccess] {
        let accesses = &mut accesses[..run.accesses.len()];
        for (access, found) in run.accesses.iter().zip(&mut *accesses) {
            *found = self.access(access, run.translated, walks);
        }
        accesses
    }

    /// Returns what a load or store finds.
    #[inline(always)]
    fn access(
        &mut self,
        access: &MemAccess,
        translated: bool,
        walks: &mut Vec<WalkReads>,
    ) -> LsuAccess {
        let pa = access.pa();
        let store = if access.kind() == MemKind::Load {
            self.stores.search(access)
        } else {
            self.stores.push(access);
            StoreMatch::default()
        };
        let walks = translated && self.walks(access.va, walks);
        LsuAccess::new(pa, store, walks)
    }

    /// Looks up the page of a data access in the TLB; if it is not there, returns true and notes what the walk reads.
    #[inline(always)]
    fn walks(&mut self, va: u64, walks: &mut Vec<WalkReads>) -> bool {
        lookup(&mut self.dtlb, &self.tables, va, walks)
    }

    /// Starts a packet with the instruction at `pc`; `to_pa` more is its physical address.
    #[inline(always)]
    fn packet(&mut self, pc: u64, len: u8, to_pa: u64) -> Packet {
        let end = pc.wrapping_add(u64::from(len));
        let sequential = self.limit != 0;
        if sequential {
            self.run_on();
        }
        self.predictor.packet();
        let bank = self.packet_bytes / 2;
        self.start = if sequential && end > self.end { self.end } else { pc & !(bank - 1) };
        self.end = self.packet_end();
        let straddles = end > self.end;
        if straddles {
            // The instruction belongs to the packet that has its second half.
            self.start = self.end;
            self.end = self.packet_end();
        }
        self.limit = self.end;
        self.seen = 0;
        // A packet of the page after the instruction's first half is taken to follow in memory: the machine
        // tells one physical address per instruction.
        let line = self.start.wrapping_add(to_pa) >> LINE_BITS;
        Packet::new(line, sequential, straddles)
    }

    /// Returns the end of a packet: it has two banks, or one in the last bank of a line (`ifu/frontend.scala:153`).
    #[inline(always)]
    fn packet_end(&self) -> u64 {
        let line_end = (self.start | ((1 << LINE_BITS) - 1)).wrapping_add(1);
        self.start.wrapping_add(self.packet_bytes).min(line_end)
    }

    /// Leaves a packet that nothing ended, and updates the history.
    #[inline(always)]
    fn run_on(&mut self) {
        if self.seen == 0 {
            self.history.pass();
            return;
        }
        let single = self.end - self.start < self.packet_bytes;
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
    fn turn(&mut self, role: Role, pc: u64, len: u8, next: u64) -> Forecast {
        let second = pc & !(self.packet_bytes / 2 - 1) > self.start;
        let (at, bank) = (FetchSlot::new(pc.max(self.start)), u8::from(second));
        let after = pc.wrapping_add(u64::from(len));
        let forecast = if role == Role::Branch {
            self.branch(at, bank, next != after, next)
        } else {
            self.jump(role, at, bank, after, next)
        };
        forecast.in_bank(bank)
    }

    #[inline(always)]
    fn branch(&mut self, at: FetchSlot, bank: u8, taken: bool, next: u64) -> Forecast {
        let history = self.history.seen(bank.into());
        let forecast = self.predictor.branch(at, history, taken, next);
        if taken {
            self.close(bank, Outcome::Taken);
        } else if forecast.last() == Last::Wrong {
            self.close(bank, Outcome::NotTaken);
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
    fn jump(&mut self, role: Role, at: FetchSlot, bank: u8, after: u64, next: u64) -> Forecast {
        if role == Role::Foreseen {
            return self.foreseen(at, bank, next != after, next);
        }
        let falls = next == self.end;
        let (mut full, mut empty) = (false, false);
        // F3 knows a direct jump's target, takes a return's from the stack, any other from the buffers.
        let last = match role {
            Role::Direct | Role::DirectCall => Last::Right,
            Role::Return => {
                let address;
                (address, empty) = self.returns.ret();
                match address == next {
                    true => Last::Right,
                    false => Last::Wrong,
                }
            }
            _ => Last::AsF2,
        };
        if matches!(role, Role::DirectCall | Role::IndirectCall) {
            full = self.returns.call(after);
        }
        self.close(bank, Outcome::None);
        let forecast = self.predictor.jump(at, next, last);
        forecast.with_fall_through(falls).with_returns(full, empty)
    }

    /// Ends the packet with an instruction of `bank`, and updates the history by what that did to it.
    #[inline(always)]
    fn close(&mut self, bank: u8, last: Outcome) {
        let in_bank = match last {
            Outcome::None => self.earlier(bank),
            _ => last,
        };
        let single = bank == 0;
        let (first, second) =
            if single { (in_bank, Outcome::None) } else { (self.earlier(0), in_bank) };
        self.history = self.history.after(first, second, single);
        self.limit = 0;
    }

    /// Restarts fetch after a flush at commit: the history is cleared too (`exu/core.scala:410`).
    fn flush(&mut self) {
        self.limit = 0;
        self.history = History::default();
    }
}

/// Returns true if the instruction at `pc` does not belong to a packet whose instructions end at `limit` at the
/// latest, and that has room for `room` more.
#[inline(always)]
fn over(pc: u64, len: u8, limit: u64, room: u32) -> bool {
    (pc.wrapping_add(u64::from(len)) > limit) | (room == 0)
}

/// Looks up a page in a TLB; if it is not there, fills it, notes what the walk reads, and returns true.
#[inline(always)]
fn lookup(tlb: &mut Tlb, tables: &Tables, va: u64, walks: &mut Vec<WalkReads>) -> bool {
    let missed = !tlb.hit(va);
    if missed {
        walk(tlb, tables, va, walks);
    }
    missed
}

#[cold]
#[inline(never)]
fn walk(tlb: &mut Tlb, tables: &Tables, va: u64, walks: &mut Vec<WalkReads>) {
    let walk = tables.walk(va);
    tlb.fill(va, walk.page_bits);
    walks.push(WalkReads { va, walk });
}
