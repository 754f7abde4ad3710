//! What the path alone tells of the prediction of a branch or jump, before any cycle is known.

use super::{BranchOutcome, FetchSlot, Known, Stage};

/// Where fetch goes on after a branch or jump in the end, in F3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Last {
    /// Where the branch or jump went.
    #[default]
    Right,
    /// Elsewhere: the branch or jump is mispredicted.
    Wrong,
    /// Where F2 has it go: an indirect jump.
    AsF2,
}

/// What predicts where a branch or jump goes, as F3 has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Component {
    /// The bimodal table, for the direction of a conditional branch.
    Bimodal,
    /// TAGE, for the direction of a conditional branch.
    Tage,
    /// The loop predictor, for the direction of a conditional branch.
    Loops,
    /// The return stack, for the target of a return.
    Returns,
    /// The BTB, for the target of another indirect jump.
    Btb,
    /// The micro BTB, for the target of another indirect jump.
    MicroBtb,
    /// Nothing, for the target of another indirect jump.
    Unknown,
}

impl Component {
    /// Number of components.
    pub(crate) const COUNT: usize = 7;
}

/// What follows from the path alone of how the front end deals with a branch or jump. The prediction of F1 is not part of it, since the micro BTB is
/// written when branches commit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Forecast {
    /// Where the branch or jump stands.
    pub at: FetchSlot,
    /// In the low half, the low half of the address where the branch or jump went; above it flags.
    rest: u64,
}

impl Forecast {
    const BANK: u64 = 1 << 32;
    const TAKEN: u64 = 1 << 33;
    const FALLS: u64 = 1 << 34;
    const BASE: u64 = 1 << 35;
    const KNOWN: u64 = 1 << 36;
    const REDIRECTS: u64 = 1 << 37;
    const GOES_RIGHT: u64 = 1 << 38;
    const SEES: u64 = 1 << 39;
    const TARGET: u64 = 1 << 40;
    const WRONG: u64 = 1 << 41;
    const AS_F2: u64 = 1 << 42;
    const BY_TAGE: u64 = 1 << 43;
    const BY_LOOPS: u64 = 1 << 44;
    const RETURNS_FULL: u64 = 1 << 45;
    const RETURNS_EMPTY: u64 = 1 << 46;

    #[inline(always)]
    pub(super) fn new(at: FetchSlot, branch: &BranchOutcome, base: bool, found: Known) -> Self {
        let f2 = found.stage(branch, base);
        let rest = u64::from(branch.target)
            | flags(Self::TAKEN, branch.taken)
            | flags(Self::BASE, base)
            | flags(Self::KNOWN, found.hit)
            | flags(Self::REDIRECTS, f2.redirects)
            | flags(Self::GOES_RIGHT, f2.right)
            | flags(Self::SEES, f2.sees)
            | flags(Self::TARGET, f2.target);
        Self { at, rest }
    }

    /// Returns the forecast of a branch that the BTB knows as a conditional one. `target`: the BTB also has the address where the branch went.
    #[inline(always)]
    pub(super) fn of_known(
        at: FetchSlot,
        branch: &BranchOutcome,
        base: bool,
        target: bool,
    ) -> Self {
        let rest = u64::from(branch.target)
            | Self::KNOWN
            | Self::SEES
            | flags(Self::TAKEN, branch.taken)
            | flags(Self::BASE | Self::REDIRECTS, base)
            | flags(Self::GOES_RIGHT | Self::TARGET, target);
        Self { at, rest }
    }

    /// Returns the forecast with these flags too, if `set`.
    #[inline(always)]
    fn with(self, flags: u64, set: bool) -> Self {
        let rest = self.rest | self::flags(flags, set);
        Self { rest, ..self }
    }

    /// Returns the forecast of an instruction in that bank of its packet.
    #[inline(always)]
    pub(crate) fn in_bank(self, bank: u8) -> Self {
        self.with(Self::BANK, bank != 0)
    }

    /// Returns the forecast with what F3 does in the end.
    #[inline(always)]
    pub(crate) fn with_f3_outcome(self, last: Last) -> Self {
        self.with(Self::WRONG, last == Last::Wrong).with(Self::AS_F2, last == Last::AsF2)
    }

    /// Returns the forecast of a branch whose direction comes from TAGE, or from the loop predictor, which overrules
    /// it.
    #[inline(always)]
    pub(super) fn by(self, tage: bool, loops: bool) -> Self {
        self.with(Self::BY_TAGE, tage).with(Self::BY_LOOPS, loops)
    }

    /// Returns the forecast of a call that finds the return stack full, or of a return that finds it empty, if so.
    #[inline(always)]
    pub(crate) fn with_returns(self, full: bool, empty: bool) -> Self {
        self.with(Self::RETURNS_FULL, full).with(Self::RETURNS_EMPTY, empty)
    }

    /// Returns the forecast of a jump that goes to the packet that follows in memory, if `falls`.
    #[inline(always)]
    pub(crate) fn with_fall_through(self, falls: bool) -> Self {
        self.with(Self::FALLS, falls)
    }

    /// Returns the forecast in two words.
    #[inline(always)]
    pub(crate) fn words(&self) -> [u64; 2] {
        [self.at.0, self.rest]
    }

    /// Returns the forecast that gave these words.
    #[inline(always)]
    pub(crate) fn from_words([at, rest]: [u64; 2]) -> Self {
        let at = FetchSlot(at);
        Self { at, rest }
    }

    #[inline(always)]
    fn is(&self, flags: u64) -> bool {
        self.rest & flags != 0
    }

    /// Returns the low half of the address where the branch or jump went.
    #[inline(always)]
    pub(crate) fn next(&self) -> u32 {
        self.rest as u32
    }

    /// Returns the bank of its packet in which the branch or jump stands.
    #[inline(always)]
    pub(crate) fn bank(&self) -> u8 {
        u8::from(self.is(Self::BANK))
    }

    /// Returns true if the branch or jump left the packet.
    #[inline(always)]
    pub(crate) fn taken(&self) -> bool {
        self.is(Self::TAKEN)
    }

    /// Returns true if the branch or jump went to the packet that follows in memory.
    #[inline(always)]
    pub(crate) fn falls(&self) -> bool {
        self.is(Self::FALLS)
    }

    /// Returns the bimodal table's direction.
    #[inline(always)]
    pub(crate) fn base(&self) -> bool {
        self.is(Self::BASE)
    }

    /// Returns what F2 does, if the BTB has the branch or jump; otherwise F2 does what the micro BTB says of it.
    #[inline(always)]
    pub(crate) fn f2(&self) -> Option<Stage> {
        self.is(Self::KNOWN).then(|| Stage {
            hit: true,
            redirects: self.is(Self::REDIRECTS),
            right: self.is(Self::GOES_RIGHT),
            sees: self.is(Self::SEES),
            target: self.is(Self::TARGET),
        })
    }

    /// Returns true if the BTB has the branch or jump.
    #[inline(always)]
    pub(crate) fn is_known(&self) -> bool {
        self.is(Self::KNOWN)
    }

    /// Returns what gave the direction of a conditional branch; known if that was wrong.
    pub(crate) fn component(&self) -> Component {
        match (self.is(Self::BY_LOOPS), self.is(Self::BY_TAGE)) {
            (true, _) => Component::Loops,
            (_, true) => Component::Tage,
            _ => Component::Bimodal,
        }
    }

    /// Returns true for a call that finds the return stack full, and for a return that finds it empty.
    #[inline(always)]
    pub(crate) fn strains_returns(&self) -> bool {
        self.is(Self::RETURNS_FULL | Self::RETURNS_EMPTY)
    }

    /// Returns true for a call that finds the return stack full.
    pub(crate) fn overflows_returns(&self) -> bool {
        self.is(Self::RETURNS_FULL)
    }

    /// Returns what F3 does in the end.
    #[inline(always)]
    pub(crate) fn last(&self) -> Last {
        match (self.is(Self::WRONG), self.is(Self::AS_F2)) {
            (true, _) => Last::Wrong,
            (_, true) => Last::AsF2,
            _ => Last::Right,
        }
    }
}

/// Returns these flags if `set`, otherwise 0.
#[inline(always)]
fn flags(flags: u64, set: bool) -> u64 {
    u64::from(set).wrapping_neg() & flags
}
