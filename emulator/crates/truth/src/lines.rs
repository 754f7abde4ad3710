//! Cache lines: which harts accessed which bytes, and what they waited for.
//!
//! A miss of a hart on a line that others wrote since the hart had it is *true sharing* if, before the hart loses the line again, it
//! accesses a byte that another hart wrote in the meantime; else only the line was shared and not the data, and the miss is *false
//! sharing* (Dubois, Skeppstedt, Ricciulli, Ramamurthy, Stenström: The Detection and Elimination of Useless Misses in
//! Multiprocessors, ISCA 1993). A hart's first access to a line is neither.
//!
//! Not modelled: accesses of one hart's turn count as before those of the next hart's. Turns end before accesses to lines that harts contend for,
//! and have up to 512 cycles and more otherwise. Writes by devices are not seen.

use std::sync::{Arc, Mutex, PoisonError};

use commit_trace::{AccessKind, DataAccess, DataSource, InstId};
use profile::ProcessId;
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::short::is_zero;

/// Bytes of a cache line.
pub const LINE_BYTES: u64 = 64;

/// Most lines that are tracked: some 150 MB for one hart. Accesses to further lines are only counted.
const MAX_LINES: usize = 1 << 20;
/// Most uses of one line that are tracked.
const MAX_USES: usize = 64;
/// Number of uses of all lines, some 150 MB, from which on a line gets a new use only for a hart that has none of that line.
const MAX_ALL_USES: usize = 1 << 20;
/// Most pairs of a line and an instruction that waited for other harts that are tracked: some 70 MB.
const MAX_EXCHANGES: usize = 1 << 20;

/// Least cycles from decode to retirement of a slow access. The value is the default of what `perf mem` records (`ldlat`).
pub(crate) const SLOW: u64 = 30;

/// The use of a line by one program on one hart.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct LineUse {
    /// Loads, atomics with them.
    #[serde(skip_serializing_if = "is_zero")]
    pub loads: u64,
    /// Stores, atomics with them.
    #[serde(skip_serializing_if = "is_zero")]
    pub stores: u64,
    /// Slow accesses: of at least `SLOW` cycles.
    #[serde(skip_serializing_if = "is_zero")]
    pub slow: u64,
    /// Slow accesses of loads and atomics.
    #[serde(skip_serializing_if = "is_zero")]
    pub slow_loads: u64,
    /// Accesses that missed in the L1 data cache, without those whose line was on its way already.
    #[serde(skip_serializing_if = "is_zero")]
    pub misses: u64,
    /// Misses of loads and atomics in the L1 data cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub load_misses: u64,
    /// Misses that memory answered.
    #[serde(skip_serializing_if = "is_zero")]
    pub memory: u64,
    /// Misses that another hart's cache answered with a line that it had not modified.
    #[serde(skip_serializing_if = "is_zero")]
    pub peer_clean: u64,
    /// Misses that another hart's cache answered with a modified line (HITM).
    #[serde(skip_serializing_if = "is_zero")]
    pub peer_modified: u64,
    /// Writes before which other harts had to drop their copies.
    #[serde(skip_serializing_if = "is_zero")]
    pub upgrades: u64,
    /// Misses that were true sharing.
    #[serde(skip_serializing_if = "is_zero")]
    pub true_sharing: u64,
    /// Misses that were false sharing.
    #[serde(skip_serializing_if = "is_zero")]
    pub false_sharing: u64,
    /// Cycles from issue until the access was done, summed over all accesses that were no hits.
    #[serde(skip_serializing_if = "is_zero")]
    pub cycles: u64,
    /// Cycles of the accesses that other harts' caches answered, or had to permit; a part of [`Self::cycles`].
    #[serde(skip_serializing_if = "is_zero")]
    pub peer_cycles: u64,
    /// Mask of the bytes of the line that were read, a bit for each byte.
    #[serde(with = "crate::hex", skip_serializing_if = "is_zero")]
    #[schemars(with = "crate::schema::Hex")]
    pub read: u64,
    /// Mask of the bytes of the line that were written, a bit for each byte.
    #[serde(with = "crate::hex", skip_serializing_if = "is_zero")]
    #[schemars(with = "crate::schema::Hex")]
    pub written: u64,
    /// Virtual address of the line's start, as the first access had it.
    #[serde(with = "crate::hex", skip_serializing_if = "is_zero")]
    #[schemars(with = "crate::schema::Hex")]
    pub va: u64,
}

/// A line while it is collected.
#[derive(Clone, Debug)]
pub(crate) struct TrackedLine {
    harts: Box<[HartState]>,
    /// Uses of the line by hart and program, in the order of their first accesses.
    pub uses: Vec<TrackedUse>,
}

/// State of a line in a hart's cache, whichever process runs on the hart.
#[derive(Clone, Copy, Debug, Default)]
struct HartState {
    /// Whether the hart has accessed the line.
    knows: bool,
    /// Mask of the bytes that other harts wrote and whose new values this hart has not got since.
    foreign: u64,
    /// Index of the use that had the hart's last sharing miss, while no byte of `foreign` has been accessed since.
    pending: Option<usize>,
}

/// The use of a line by a hart in one process.
#[derive(Clone, Debug)]
pub(crate) struct TrackedUse {
    pub hart: usize,
    /// `None`: kernel or firmware.
    pub process: Option<ProcessId>,
    pub counts: LineUse,
}

impl TrackedLine {
    fn new(harts: usize) -> Self {
        Self { harts: vec![HartState::default(); harts].into_boxed_slice(), uses: Vec::new() }
    }

    /// Returns the index of the use of the line by `by`. A missing use is added if the line has fewer than `most` uses, or none by that hart;
    /// otherwise another use by that hart stands in for it.
    fn use_of(&mut self, by: Accessor, va: u64, most: usize) -> usize {
        let same = |own: &TrackedUse| own.hart == by.hart && own.process == by.process;
        if let Some(known) = self.uses.iter().position(same) {
            return known;
        }
        // Many programs may have had this memory one after the other: further programs count under a use that is there.
        if self.uses.len() >= most
            && let Some(other) = self.uses.iter().position(|own| own.hart == by.hart)
        {
            return other;
        }
        self.uses.push(TrackedUse {
            hart: by.hart,
            process: by.process,
            counts: LineUse { va: va & !(LINE_BYTES - 1), ..LineUse::default() },
        });
        self.uses.len() - 1
    }
}

impl LineUse {
    /// Returns the number of loads and stores.
    pub fn accesses(&self) -> u64 {
        self.loads + self.stores
    }

    /// Returns the number of accesses that involved other harts' caches.
    pub fn exchanges(&self) -> u64 {
        self.peer_clean + self.peer_modified + self.upgrades
    }
}

/// An instruction of a hart whose accesses to a line involved other harts' caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExchangeKey {
    /// Number of the line: its physical address by [`LINE_BYTES`].
    pub line: u64,
    /// The hart.
    pub hart: u32,
    /// The hart's instruction.
    pub inst: InstId,
}

/// Number and cycles of an instruction's accesses to a line that involved other harts' caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct ExchangeCounts {
    /// Loads.
    #[serde(skip_serializing_if = "is_zero")]
    pub loads: u64,
    /// Stores; atomics are both.
    #[serde(skip_serializing_if = "is_zero")]
    pub stores: u64,
    /// Accesses that another hart's cache answered with a modified line (HITM).
    #[serde(skip_serializing_if = "is_zero")]
    pub peer_modified: u64,
    /// Accesses that another hart's cache answered with a line that it had not modified.
    #[serde(skip_serializing_if = "is_zero")]
    pub peer_clean: u64,
    /// Writes before which other harts had to drop their copies.
    #[serde(skip_serializing_if = "is_zero")]
    pub upgrades: u64,
    /// Cycles from issue until the access was done, summed over all accesses.
    #[serde(skip_serializing_if = "is_zero")]
    pub cycles: u64,
}

/// All lines of a machine.
#[derive(Debug, Default)]
pub struct Lines {
    harts: usize,
    /// Lines by number: physical address by [`LINE_BYTES`].
    pub(crate) lines: FxHashMap<u64, TrackedLine>,
    pub(crate) exchanges: FxHashMap<ExchangeKey, ExchangeCounts>,
    /// Accesses to lines beyond [`MAX_LINES`].
    pub(crate) untracked: u64,
    /// Uses of all lines.
    all_uses: usize,
}

/// [`Lines`] of which each hart's collector has a handle.
#[derive(Clone, Debug)]
pub struct SharedLines(Arc<Mutex<Lines>>);

impl SharedLines {
    /// Returns the empty lines of a machine of `harts` harts.
    pub fn new(harts: usize) -> Self {
        Self(Arc::new(Mutex::new(Lines { harts, ..Lines::default() })))
    }

    /// Calls `with` with the lines, locked, and returns its result.
    pub fn with<R>(&self, with: impl FnOnce(&mut Lines) -> R) -> R {
        with(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// How long an access took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AccessCycles {
    /// Cycles from issue until the access was done.
    pub execution: u64,
    /// Cycles from decode until the instruction left the ROB.
    pub total: u64,
}

/// The hart, instruction and process that access a line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Accessor {
    pub hart: usize,
    pub inst: InstId,
    /// The process whose program the instruction belongs to; `None`: kernel or firmware.
    pub process: Option<ProcessId>,
}

impl Lines {
    /// Returns the number of the machine's harts.
    pub(crate) fn harts(&self) -> usize {
        self.harts
    }

    /// Forgets everything: the region begins anew.
    pub fn clear(&mut self) {
        *self = Self { harts: self.harts, ..Self::default() };
    }

    /// Counts the sharing misses that are still pending as false sharing.
    pub fn finish(&mut self) {
        for line in self.lines.values_mut() {
            for pending in line.harts.iter_mut().filter_map(|hart| hart.pending.take()) {
                line.uses[pending].counts.false_sharing += 1;
            }
        }
    }

    /// Adds an access.
    pub(crate) fn access(&mut self, by: Accessor, access: &DataAccess, cycles: AccessCycles) {
        // Registers of devices are no lines.
        if access.kind == AccessKind::None || access.source == DataSource::Device {
            return;
        }
        let offset = access.pa % LINE_BYTES;
        let bytes = ((1u128 << access.size.min(64)) - 1) << offset;
        let line = access.pa / LINE_BYTES;
        self.touch(by, line, access, bytes as u64, Some(cycles));
        let beyond = (bytes >> LINE_BYTES) as u64;
        if beyond != 0 {
            self.touch(by, line + 1, access, beyond, None);
        }
    }

    /// Adds the part of an access that is in `line`. An access that crosses two lines is counted in the first, with its
    /// `cycles`; the second has `None`.
    fn touch(
        &mut self,
        by: Accessor,
        line: u64,
        access: &DataAccess,
        bytes: u64,
        cycles: Option<AccessCycles>,
    ) {
        if self.lines.len() >= MAX_LINES && !self.lines.contains_key(&line) {
            self.untracked += u64::from(cycles.is_some());
            return;
        }
        let harts = self.harts;
        let fresh = || TrackedLine::new(harts);
        let tracked = self.lines.entry(line).or_insert_with(fresh);
        let before = tracked.uses.len();
        let most = if self.all_uses < MAX_ALL_USES { MAX_USES } else { 0 };
        let used = tracked.use_of(by, access.va, most);
        self.all_uses += tracked.uses.len() - before;
        if let Some(cycles) = cycles {
            tracked.uses[used].counts.add(access, cycles);
            if is_exchange(access.source) {
                let key = ExchangeKey { line, hart: by.hart as u32, inst: by.inst };
                if self.exchanges.len() < MAX_EXCHANGES || self.exchanges.contains_key(&key) {
                    self.exchanges.entry(key).or_default().add(access, cycles.execution);
                }
            }
        }
        tracked.share(by.hart, used, access, bytes);
    }
}

impl TrackedLine {
    /// Tells true from false sharing by the bytes of an access.
    fn share(&mut self, hart: usize, used: usize, access: &DataAccess, bytes: u64) {
        let counts = &mut self.uses[used].counts;
        let (loads, stores) = kinds(access);
        counts.read |= if loads { bytes } else { 0 };
        counts.written |= if stores { bytes } else { 0 };
        let own = &mut self.harts[hart];
        if !std::mem::replace(&mut own.knows, true) {
            own.foreign = 0;
        }
        if is_l1d_miss(access.source)
            && own.foreign != 0
            && let Some(before) = own.pending.replace(used)
        {
            self.uses[before].counts.false_sharing += 1;
        }
        if own.foreign & bytes != 0 {
            own.foreign &= !bytes;
            if let Some(pending) = own.pending.take() {
                self.uses[pending].counts.true_sharing += 1;
                own.foreign = 0;
            }
        }
        if stores {
            for (_, other) in self.harts.iter_mut().enumerate().filter(|(n, _)| *n != hart) {
                other.foreign |= bytes;
            }
        }
    }
}

/// Returns whether an access loads, and whether it stores.
fn kinds(access: &DataAccess) -> (bool, bool) {
    (access.kind != AccessKind::Store, access.kind != AccessKind::Load)
}

impl LineUse {
    /// Adds the use by another process that is merged with this one.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.loads += other.loads;
        self.stores += other.stores;
        self.slow += other.slow;
        self.slow_loads += other.slow_loads;
        self.misses += other.misses;
        self.load_misses += other.load_misses;
        self.memory += other.memory;
        self.peer_clean += other.peer_clean;
        self.peer_modified += other.peer_modified;
        self.upgrades += other.upgrades;
        self.true_sharing += other.true_sharing;
        self.false_sharing += other.false_sharing;
        self.cycles += other.cycles;
        self.peer_cycles += other.peer_cycles;
        self.read |= other.read;
        self.written |= other.written;
    }

    fn add(&mut self, access: &DataAccess, AccessCycles { execution, total }: AccessCycles) {
        let (loads, stores) = kinds(access);
        let slow = total >= SLOW;
        self.slow += u64::from(slow);
        self.slow_loads += u64::from(slow && loads);
        let source = access.source;
        let missed = is_l1d_miss(source);
        self.loads += u64::from(loads);
        self.stores += u64::from(stores);
        self.misses += u64::from(missed);
        self.load_misses += u64::from(missed && loads);
        self.memory += u64::from(source == DataSource::Memory);
        self.peer_clean += u64::from(source == DataSource::PeerClean);
        self.peer_modified += u64::from(source == DataSource::PeerModified);
        self.upgrades += u64::from(source == DataSource::Upgrade);
        if !is_hit(source) {
            self.cycles += execution;
        }
        if is_exchange(source) {
            self.peer_cycles += execution;
        }
    }
}

impl ExchangeCounts {
    fn add(&mut self, access: &DataAccess, cycles: u64) {
        let (loads, stores) = kinds(access);
        self.loads += u64::from(loads);
        self.stores += u64::from(stores);
        self.peer_modified += u64::from(access.source == DataSource::PeerModified);
        self.peer_clean += u64::from(access.source == DataSource::PeerClean);
        self.upgrades += u64::from(access.source == DataSource::Upgrade);
        self.cycles += cycles;
    }
}

/// Returns whether the L1 data cache had the line, or the store queue the data.
fn is_hit(source: DataSource) -> bool {
    matches!(source, DataSource::L1 | DataSource::StoreQueue)
}

/// Returns whether the L1 data cache neither had the line nor had asked for it already.
pub(crate) fn is_l1d_miss(source: DataSource) -> bool {
    use DataSource as S;
    matches!(source, S::L2 | S::Llc | S::Memory | S::PeerClean | S::PeerModified)
}

/// Returns whether other harts' caches were involved in an access.
pub(crate) fn is_exchange(source: DataSource) -> bool {
    use DataSource as S;
    matches!(source, S::PeerClean | S::PeerModified | S::Upgrade)
}
