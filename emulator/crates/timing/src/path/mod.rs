//! The half of the core that follows the program: which packets it is fetched in, what the predictors that learn
//! from the path alone make of its branches, which of its pages the TLBs hold, which stores its loads find. It
//! knows no cycles, so it may run ahead of the half that does.

mod fetch;
mod output;
mod position;
mod role;
mod stores;
mod tables;
mod tlb;
mod wrong;

use isa::{
    Executed, MemAccess, MemKind, PageWalk, RUN_STEPS, Run, StaticId, StaticInst, TransferKind,
};
use snapshot::{Archive, Snapshot as _};

use crate::Preset;
use crate::observe::ObservedBy;
pub(crate) use fetch::{Fetch, NextPacket};
use output::Draft;
pub(crate) use output::{
    Extent, InstOutput, LsuAccess, Packet, PathOutput, Reader, Steps, WalkReads,
};
use role::Role;
use stores::Stores;
pub(crate) use stores::{STORES, StoreMatch};
use tables::Tables;
use tlb::Tlb;
use wrong::Code;

use crate::without::Removed;

/// The path, in lines of the host's caches that no other processor writes, like
/// [`Pipeline`](crate::pipeline::Pipeline).
#[repr(align(128))]
pub(crate) struct Path {
    /// Roles of the static instructions, by number.
    roles: Vec<Role>,
    /// For wrong paths, if they are followed.
    code: Option<Box<Code>>,
    removed: Removed,
    draft: Draft,
    state: State,
    /// Who wants to know the accesses of runs.
    pub observed_by: ObservedBy,
}

/// State that the path so far has left in fetch, predictors, TLBs and the list of stores.
struct State {
    fetch: Fetch,
    /// Page of the last translated fetch.
    page: u64,
    itlb: Tlb,
    dtlb: Tlb,
    tables: Tables,
    stores: Stores,
}

// Saved between runs. Roles of instructions are not state: they are announced again, and so are page tables.
snapshot::snapshot!(Path { state, observed_by } keeps { roles, code, removed, draft });

snapshot::snapshot!(State { fetch, page, itlb, dtlb, stores } keeps { tables });

impl Path {
    pub(crate) fn new(preset: &Preset) -> Self {
        Self {
            roles: Vec::new(),
            code: preset.predictor.at_commit.then(Box::default),
            removed: Removed::of(preset),
            draft: Draft::new(),
            state: State::new(preset),
            observed_by: ObservedBy::default(),
        }
    }

    /// Announces a static instruction.
    pub(crate) fn define(&mut self, inst: &StaticInst) {
        let index = inst.id.0 as usize;
        if index >= self.roles.len() {
            self.roles.resize(index + 1, Role::None);
        }
        let role = Role::of(&inst.inst).without(self.removed.at(inst));
        self.roles[index] = role;
        if let Some(code) = &mut self.code {
            code.define(inst, role);
        }
    }

    /// Takes what was announced to another path: instructions and page tables.
    pub(crate) fn announced_as(&mut self, other: &Self) {
        self.roles.clone_from(&other.roles);
        self.code.clone_from(&other.code);
        self.state.tables.clone_from(&other.state.tables);
    }

    /// Returns what an instruction does to the path.
    pub(crate) fn transfer(&self, id: StaticId) -> Option<TransferKind> {
        self.roles.get(id.0 as usize).and_then(|role| role.transfer())
    }

    /// Leaves room for instructions that were announced to another core.
    pub(crate) fn skip_ids(&mut self, count: usize) {
        self.roles.resize(count, Role::None);
    }

    /// Saves or loads what the path has left behind.
    pub(crate) fn warmed_state(&mut self, archive: &mut Archive<'_>) -> snapshot::Result {
        self.state.snapshot(archive)
    }

    /// Notes that the hart walked its page tables for `va`.
    pub(crate) fn translated(&mut self, va: u64, walk: &PageWalk) {
        self.state.tables.note(va, walk);
    }

    /// Returns whether the hart has noted this walk for `va` already, and no other one since.
    pub(crate) fn has_walk(&self, va: u64, walk: &PageWalk) -> bool {
        self.state.tables.has(va, walk)
    }

    /// Drops all translations, as they changed.
    pub(crate) fn flush_tlb(&mut self) {
        let state = &mut self.state;
        state.itlb.clear();
        state.dtlb.clear();
        state.page = u64::MAX;
    }

    /// Follows a run, after those that were followed before.
    #[inline(never)]
    pub(crate) fn follow(&mut self, run: &Run<'_>, output: &mut PathOutput) -> Extent {
        let Self { roles, code: _, removed: _, draft, state, observed_by } = self;
        let (steps, mut words, accesses) = draft.begin(run);
        // Within a page both addresses go up together.
        let to_pa = run.page.wrapping_sub(run.vpage);
        let mut room = state.fetch.position.room;
        let mut n = 0;
        loop {
            // The steps that belong to the packet.
            let first = n;
            let until = run.steps.len().min(first + room as usize);
            while n < until {
                let step = &run.steps[n];
                let (pc, len) = (run.pc(step), step.size());
                if pc.wrapping_add(len.into()) > state.fetch.position.limit {
                    break;
                }
                n += 1;
                if step.is_control_flow() {
                    let next = run.steps.get(n);
                    let next = next.map_or(run.next_pc, |next| run.pc(next));
                    let role = roles[step.id.0 as usize];
                    words.forecast(state.fetch.turn(role, pc, len, next));
                }
            }
            room -= (n - first) as u32;
            let Some(step) = run.steps.get(n) else {
                break;
            };
            let packet = state.fetch.packet(run.pc(step), step.size(), to_pa);
            let packet = state.in_page(packet, run.translated, &mut output.packet_walks);
            room = state.fetch.packet_insts;
            words.packet(packet);
            steps[n].starts_packet();
        }
        state.fetch.position.room = room;
        output.operands.extend_from_slice(run.operands);
        if observed_by.any() {
            output.observed.extend_from_slice(run.accesses);
        }
        // Nothing above has to do with the accesses, and they are followed fastest by themselves.
        let accesses = state.accesses(run, accesses, &mut output.data_walks);
        output.take(steps, words.written(), accesses)
    }

    /// Returns whether the predictors want to know, before each branch and jump, what the pipeline has trained with.
    pub(crate) fn learns_at_commit(&self) -> bool {
        self.state.fetch.learns_at_commit()
    }

    /// Returns whether the branch or jump that was followed last may be mispredicted, which the pipeline knows then.
    pub(crate) fn may_be_wrong(&self) -> bool {
        self.state.fetch.may_be_wrong()
    }

    /// Notes that it is not.
    pub(crate) fn is_right(&mut self) {
        self.state.fetch.is_right();
    }

    /// Follows the wrong path after a branch or jump that was followed last, if it is mispredicted, which is known so many cycles after the fetch of its
    /// packet; returns over how many packets the repair of predictors goes.
    pub(crate) fn wrong_path(&mut self, id: StaticId, cycles: u64) -> u64 {
        let Some(code) = &self.code else { return 0 };
        self.state.fetch.wrong_path(code, code.space(id), cycles)
    }

    /// Takes how many packets before the last one the pipeline has not trained with.
    pub(crate) fn told(&mut self, untrained: u64) {
        self.state.fetch.told(untrained);
    }

    /// Returns the packet that an instruction of `len` bytes at `pc` belongs to, which is executed next.
    pub(crate) fn next_packet(&self, pc: u64, len: u8) -> NextPacket {
        self.state.fetch.next_packet(pc, len)
    }

    /// Returns the next part of a run: a branch or jump, or all that comes before one; and the packet that a branch or jump belongs to. `done` says
    /// what of the run was returned before.
    pub(crate) fn part<'r>(
        &self,
        run: &Run<'r>,
        done: &mut Done,
    ) -> Option<(Run<'r>, Option<NextPacket>)> {
        let steps = &run.steps[done.steps..];
        let first = steps.first()?;
        let transfer = first.is_control_flow();
        let before = steps.iter().position(|step| step.is_control_flow());
        let steps = &steps[..if transfer { 1 } else { before.unwrap_or(steps.len()) }];
        let accesses =
            |step: &&isa::Step| matches!(self.roles[step.id.0 as usize], Role::Load | Role::Store);
        let (accesses, operands) = (
            steps.iter().filter(accesses).count(),
            steps.iter().filter(|step| step.divides()).count(),
        );
        let part = Run {
            steps,
            accesses: &run.accesses[done.accesses..][..accesses],
            operands: &run.operands[done.operands..][..operands],
            next_pc: run.steps.get(done.steps + steps.len()).map_or(run.next_pc, |n| run.pc(n)),
            ..*run
        };
        done.steps += steps.len();
        done.accesses += accesses;
        done.operands += operands;
        let packet = transfer.then(|| self.next_packet(run.pc(first), first.size()));
        Some((part, packet))
    }

    /// Follows the fetch of the next instruction, which is at `pc` in the page at physical address `page`; returns the
    /// packet that it starts, if it starts one.
    pub(crate) fn fetch(
        &mut self,
        pc: u64,
        len: u8,
        page: u64,
        translated: bool,
        output: &mut PathOutput,
    ) -> Option<Packet> {
        let state = &mut self.state;
        let packet =
            over(pc, len, state.fetch.position.limit, state.fetch.position.room).then(|| {
                let packet = state.fetch.packet(pc, len, page.wrapping_sub(pc & !0xfff));
                state.fetch.position.room = state.fetch.packet_insts;
                state.in_page(packet, translated, &mut output.packet_walks)
            });
        state.fetch.position.room -= 1;
        packet
    }

    /// Follows the instruction that was fetched last.
    pub(crate) fn pass(&mut self, executed: &Executed, output: &mut PathOutput) -> InstOutput {
        let (role, len) = (self.roles[executed.id.0 as usize], executed.inst.len);
        let state = &mut self.state;
        let (mem, translated) = (&executed.mem, executed.translated);
        let data_walks = &mut output.data_walks;
        let mut passed = InstOutput::default();
        match role {
            _ if executed.trap.is_some() => state.fetch.flush(),
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
                    state.fetch.flush();
                }
            }
            _ => passed.forecast = state.fetch.turn(role, executed.pc, len, executed.next_pc),
        }
        passed
    }

    /// Looks up the page of a data access for functional warming, and notes what a walk reads.
    pub(crate) fn warm_data(&mut self, va: u64, walks: &mut Vec<WalkReads>) -> WarmPage {
        let State { dtlb, tables, .. } = &mut self.state;
        WarmPage::look_up(dtlb, tables, va, walks)
    }

    /// Looks up the page of code for functional warming, and notes what a walk reads.
    pub(crate) fn warm_code(&mut self, pc: u64, walks: &mut Vec<WalkReads>) -> WarmPage {
        let State { itlb, tables, .. } = &mut self.state;
        WarmPage::look_up(itlb, tables, pc, walks)
    }

    /// Takes the state of fetch and predictors. An empty one takes its place until it is [given back](Self::give_back), since only timing needs it.
    pub(crate) fn take_fetch(&mut self, preset: &Preset) -> Fetch {
        std::mem::replace(&mut self.state.fetch, Fetch::new(preset))
    }

    /// Takes back what was [taken](Self::take_fetch).
    pub(crate) fn give_back(&mut self, fetch: Fetch) {
        self.state.fetch = fetch;
    }

    /// Returns what fetch and the predictors know.
    pub(crate) fn fetch_mut(&mut self) -> &mut Fetch {
        &mut self.state.fetch
    }

    /// Forgets the page of the last fetch, so that the next fetch looks up the ITLB: the hart has executed without the path.
    pub(crate) fn leave_page(&mut self) {
        self.state.page = u64::MAX;
    }

    /// Restarts fetch after a flush at commit.
    pub(crate) fn flush(&mut self) {
        self.state.fetch.flush();
    }
}

/// How much of a run was [taken](Path::part) so far.
#[derive(Default)]
pub(crate) struct Done {
    steps: usize,
    accesses: usize,
    operands: usize,
}

/// What functional warming finds of a page.
#[derive(Clone, Copy)]
pub(crate) struct WarmPage {
    /// The TLB's entry that has the page.
    pub entry: usize,
    /// Whether the TLB did not have the page before.
    pub missed: bool,
    /// Whether the TLB is as it was before.
    pub unchanged: bool,
}

impl WarmPage {
    fn look_up(tlb: &mut Tlb, tables: &Tables, va: u64, walks: &mut Vec<WalkReads>) -> Self {
        let used = tlb.used();
        let missed = lookup(tlb, tables, va, walks);
        Self { entry: tlb.entry(va), missed, unchanged: !missed && tlb.used() == used }
    }
}

impl State {
    fn new(preset: &Preset) -> Self {
        Self {
            fetch: Fetch::new(preset),
            page: u64::MAX,
            itlb: Tlb::new(preset.itlb.entries),
            dtlb: Tlb::new(preset.dtlb.entries),
            tables: Tables::default(),
            stores: Stores::new(),
        }
    }

    /// Returns the packet that was started, marked if its page misses in the ITLB; in that case, notes what the walk reads.
    #[inline(always)]
    fn in_page(&mut self, packet: Packet, translated: bool, walks: &mut Vec<WalkReads>) -> Packet {
        match self.fetch.position.start >> 12 != self.page && translated && self.fetch_page(walks) {
            true => packet.with_itlb_miss(),
            false => packet,
        }
    }

    /// Looks up the packet's page, which is not that of the last one, in the ITLB; if it is not there, returns true and
    /// notes what the walk reads.
    #[cold]
    #[inline(never)]
    fn fetch_page(&mut self, walks: &mut Vec<WalkReads>) -> bool {
        self.page = self.fetch.position.start >> 12;
        lookup(&mut self.itlb, &self.tables, self.fetch.position.start, walks)
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
