//! What a core is told, as it is told: so that the same can be told to another core later.

use commit_trace::Event;
use isa::{
    DecodedInst, DmaLines, Executed, MemAccess, PageWalk, PathSegment, Privilege, Run, StaticId,
    StaticInst,
};

/// One call of a [`Core`](crate::Core), of the [`Ahead`](crate::Ahead) that stands for it while it times, or of the [`Warming`](crate::Warming) that stands for it in between.
#[derive(Clone, Debug)]
pub enum CoreCall<'a> {
    /// The core has slept until `cycle`, and times what follows ([`Core::end_rest`](crate::Core::end_rest)).
    Wake {
        /// The cycle.
        cycle: u64,
    },
    /// The hart executes without timing from now on.
    Rest {
        /// Predictors learn from the path.
        learns: bool,
    },
    /// The region of interest starts, stops or begins anew ([`Core::region`](crate::Core::region)).
    Region(Event),
    /// [`isa::TimingModel::define`].
    Define(StaticInst),
    /// [`isa::TimingModel::translated`], but where the walk is as it was told before.
    Translated {
        /// Virtual address.
        va: u64,
        /// What the walk reads.
        walk: PageWalk,
    },
    /// [`isa::TimingModel::run`].
    Run(Run<'a>),
    /// [`isa::TimingModel::fetch`].
    Fetch {
        /// Number of the instruction.
        id: StaticId,
        /// The instruction.
        inst: DecodedInst,
        /// Virtual address.
        pc: u64,
        /// Physical address.
        pa: u64,
        /// Address translation is on.
        translated: bool,
    },
    /// [`isa::TimingModel::retire`].
    Retire(Executed),
    /// [`isa::TimingModel::interrupt`] of the instruction that was fetched last.
    Interrupt,
    /// [`isa::TimingModel::idle_until`].
    IdleUntil(u64),
    /// [`isa::TimingModel::flush_tlb`].
    FlushTlb,
    /// [`isa::TimingModel::dma_write`].
    DmaWrite(DmaLines),
    /// [`isa::TimingModel::warm_fence_i`].
    FenceI,
    /// [`isa::TimingModel::note`], or a side-band record that the guest's driver wrote after what was retired last.
    Note {
        /// Type of the record.
        kind: u8,
        /// Content of the record.
        bytes: &'a [u8],
    },
    /// [`isa::TimingModel::privilege`].
    Privilege(Privilege),
    /// [`isa::TimingModel::warm_access`].
    WarmAccess {
        /// The access.
        access: MemAccess,
        /// Through page tables.
        translated: bool,
    },
    /// [`isa::TimingModel::warm_fetch`].
    WarmFetch {
        /// Virtual address.
        pc: u64,
        /// Physical address.
        pa: u64,
        /// Through page tables.
        translated: bool,
    },
    /// What [`isa::TimingModel::path_log`] had, while predictors learn.
    Path(&'a [PathSegment]),
}

/// Gets the calls of a core, in order, just before the core does.
pub trait CoreTap {
    /// Gets a call.
    fn call(&mut self, call: CoreCall<'_>);
}
