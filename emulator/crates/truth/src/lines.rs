//! Cache lines: which harts accessed which bytes, and what they waited for.
//!
//! A miss of a hart on a line that others wrote since the hart had it is *true sharing* if, before the hart loses the line again, it
//! accesses a byte that another hart wrote in the meantime; else only the line was shared and not the data, and the miss is *false
//! sharing* (Dubois, Skeppstedt, Ricciulli, Ramamurthy, Stenström: The Detection and Elimination of Useless Misses in
//! Multiprocessors, ISCA 1993). A hart's first access to a line is neither.
//!
//! Not modelled: harts take turns of 64 cycles, and accesses of one turn count as before those of the next hart's. Writes by devices
//! are not seen.

use std::sync::{Arc, Mutex, PoisonError};

use commit_trace::{AccessKind, DataAccess, DataSource, InstId};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// Bytes of a cache line.
pub const LINE_BYTES: u64 = 64;

/// Lines that are told apart: some 150 MB for one hart. Accesses to others are only counted.
const MAX_LINES: usize = 1 << 20;

/// One hart's use of a line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LineUse {
    /// Loads, atomics with them.
    pub loads: u64,
    /// Stores, atomics with them.
    pub stores: u64,
    /// Accesses that missed in the L1 data cache; those whose line was on its way are not among them.
    pub misses: u64,
    /// Of these the ones of loads and atomics,
    pub load_misses: u64,
    /// the ones that memory answered,
    pub memory: u64,
    /// the ones that another hart's cache answered, which had not modified the line,
    pub peer_clean: u64,
    /// and those that it answered with a modified line (HITM).
    pub peer_modified: u64,
    /// Writes before which other harts had to drop their copies.
    pub upgrades: u64,
    /// Misses that were true sharing,
    pub true_sharing: u64,
    /// and false sharing.
    pub false_sharing: u64,
    /// Cycles from issue until the access was done, of all that were no hits.
    pub cycles: u64,
    /// Of these the ones of accesses that other harts' caches answered, or had to permit.
    pub peer_cycles: u64,
    /// A bit for each byte that was read,
    #[serde(with = "crate::hex")]
    pub read: u64,
    /// and written.
    #[serde(with = "crate::hex")]
    pub written: u64,
    /// Virtual address of the first access, of its line's start.
    #[serde(with = "crate::hex")]
    pub va: u64,
}

/// The same while it is collected.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tracked {
    pub counts: LineUse,
    /// The instruction of the first access.
    pub inst: InstId,
    /// Bytes that other harts wrote and this one has not got since.
    foreign: u64,
    /// The last sharing miss has not met such a byte yet.
    pending: bool,
}

impl LineUse {
    /// Accesses.
    pub fn accesses(&self) -> u64 {
        self.loads + self.stores
    }

    /// Accesses that had to do with other harts' caches.
    pub fn exchanges(&self) -> u64 {
        self.peer_clean + self.peer_modified + self.upgrades
    }
}

/// An instruction of a hart whose accesses to a line had to do with other harts' caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExchangeKey {
    /// Number of the line: its physical address by [`LINE_BYTES`].
    pub line: u64,
    /// The hart.
    pub hart: u32,
    /// Its instruction.
    pub inst: InstId,
}

/// How often, and for how long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExchangeCounts {
    /// Loads.
    pub loads: u64,
    /// Stores; atomics are both.
    pub stores: u64,
    /// Answered by a line that another hart had modified.
    pub peer_modified: u64,
    /// By one that it had not.
    pub peer_clean: u64,
    /// Writes before which others had to drop their copies.
    pub upgrades: u64,
    /// Cycles from issue until they were done.
    pub cycles: u64,
}

/// All lines of a machine.
#[derive(Debug, Default)]
pub struct Lines {
    harts: usize,
    /// By number; each with the use by every hart.
    pub(crate) uses: FxHashMap<u64, Box<[Tracked]>>,
    pub(crate) exchanges: FxHashMap<ExchangeKey, ExchangeCounts>,
    /// Accesses to lines beyond [`MAX_LINES`].
    pub(crate) untracked: u64,
}

/// [`Lines`] of which each hart's collector has a handle.
#[derive(Clone, Debug)]
pub struct SharedLines(Arc<Mutex<Lines>>);

impl SharedLines {
    /// Those of a machine of so many harts.
    pub fn new(harts: usize) -> Self {
        Self(Arc::new(Mutex::new(Lines {
            harts,
            ..Lines::default()
        })))
    }

    /// Accesses them.
    pub fn with<R>(&self, with: impl FnOnce(&mut Lines) -> R) -> R {
        with(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Lines {
    /// Forgets everything: the region begins anew.
    pub fn clear(&mut self) {
        *self = Self {
            harts: self.harts,
            ..Self::default()
        };
    }

    /// Ends what is pending.
    pub fn finish(&mut self) {
        for own in self.uses.values_mut().flatten() {
            own.counts.false_sharing += u64::from(std::mem::take(&mut own.pending));
        }
    }

    /// Adds an access of a hart that was done after `cycles`.
    pub(crate) fn access(&mut self, hart: usize, inst: InstId, access: &DataAccess, cycles: u64) {
        // Registers of devices are no lines.
        if access.kind == AccessKind::None || access.source == DataSource::Device {
            return;
        }
        let offset = access.pa % LINE_BYTES;
        let bytes = ((1u128 << access.size.min(64)) - 1) << offset;
        let line = access.pa / LINE_BYTES;
        self.touch(hart, inst, line, access, bytes as u64, Some(cycles));
        let beyond = (bytes >> LINE_BYTES) as u64;
        if beyond != 0 {
            self.touch(hart, inst, line + 1, access, beyond, None);
        }
    }

    /// Of an access that reaches over two lines, the first has the `cycles` and counts.
    fn touch(
        &mut self,
        hart: usize,
        inst: InstId,
        line: u64,
        access: &DataAccess,
        bytes: u64,
        cycles: Option<u64>,
    ) {
        if self.uses.len() >= MAX_LINES && !self.uses.contains_key(&line) {
            self.untracked += u64::from(cycles.is_some());
            return;
        }
        let harts = self.harts;
        let fresh = || vec![Tracked::default(); harts].into_boxed_slice();
        let uses = self.uses.entry(line).or_insert_with(fresh);
        let tracked = &mut uses[hart];
        let own = &mut tracked.counts;
        if own.read | own.written == 0 {
            own.va = access.va & !(LINE_BYTES - 1);
            tracked.inst = inst;
            tracked.foreign = 0;
        }
        let (loads, stores) = (
            access.kind != AccessKind::Store,
            access.kind != AccessKind::Load,
        );
        own.read |= if loads { bytes } else { 0 };
        own.written |= if stores { bytes } else { 0 };
        let source = access.source;
        let missed = is_l1d_miss(source);
        if let Some(cycles) = cycles {
            own.loads += u64::from(loads);
            own.stores += u64::from(stores);
            own.misses += u64::from(missed);
            own.load_misses += u64::from(missed && loads);
            own.memory += u64::from(source == DataSource::Memory);
            own.peer_clean += u64::from(source == DataSource::PeerClean);
            own.peer_modified += u64::from(source == DataSource::PeerModified);
            own.upgrades += u64::from(source == DataSource::Upgrade);
            if !is_hit(source) {
                own.cycles += cycles;
            }
            if is_exchange(source) {
                own.peer_cycles += cycles;
                let key = ExchangeKey {
                    line,
                    hart: hart as u32,
                    inst,
                };
                let counts = self.exchanges.entry(key).or_default();
                counts.loads += u64::from(loads);
                counts.stores += u64::from(stores);
                counts.peer_modified += u64::from(source == DataSource::PeerModified);
                counts.peer_clean += u64::from(source == DataSource::PeerClean);
                counts.upgrades += u64::from(source == DataSource::Upgrade);
                counts.cycles += cycles;
            }
        }
        if missed && tracked.foreign != 0 {
            own.false_sharing += u64::from(tracked.pending);
            tracked.pending = true;
        }
        if tracked.foreign & bytes != 0 {
            if std::mem::take(&mut tracked.pending) {
                own.true_sharing += 1;
                tracked.foreign = 0;
            }
            tracked.foreign &= !bytes;
        }
        if stores {
            for (_, other) in uses.iter_mut().enumerate().filter(|(n, _)| *n != hart) {
                other.foreign |= bytes;
            }
        }
    }
}

/// The L1 data cache had the line, or the store queue the data.
fn is_hit(source: DataSource) -> bool {
    matches!(source, DataSource::L1 | DataSource::StoreQueue)
}

/// The L1 data cache did not have the line, nor was it on its way.
pub(crate) fn is_l1d_miss(source: DataSource) -> bool {
    use DataSource as S;
    matches!(
        source,
        S::L2 | S::Llc | S::Memory | S::PeerClean | S::PeerModified
    )
}

/// Other harts' caches had to do with it.
pub(crate) fn is_exchange(source: DataSource) -> bool {
    use DataSource as S;
    matches!(source, S::PeerClean | S::PeerModified | S::Upgrade)
}
