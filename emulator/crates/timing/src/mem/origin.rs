//! On whose behalf a line is asked for.

/// What asks for a line below the L1 caches, or gives one back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The instruction cache's miss.
    Fetch,
    /// A load.
    Load,
    /// A store or an atomic: the line, or leave to write to it.
    Store,
    /// A page-table walk.
    Walk,
    /// The prefetchers of both L1 caches.
    Prefetch,
    /// A line that a cache above gives back.
    WriteBack,
}

impl Origin {
    /// Number of origins.
    pub const COUNT: usize = 6;
    /// All origins, each at its own number.
    pub const ALL: [Self; Self::COUNT] =
        [Self::Fetch, Self::Load, Self::Store, Self::Walk, Self::Prefetch, Self::WriteBack];

    /// Returns true if the line is wanted to be written to.
    #[inline(always)]
    pub(crate) fn writes(self) -> bool {
        matches!(self, Self::Store)
    }
}
