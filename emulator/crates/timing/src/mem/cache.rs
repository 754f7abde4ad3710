//! A set-associative tag array with random replacement, as all of BOOM's caches have.

use isa::LineFilter;

use super::Lfsr;
use super::directory::Probe;

/// A line that a fill pushed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Victim {
    pub line: u64,
    pub dirty: bool,
}

/// Number of fills that are remembered: more than can be on their way at once, so that two of them rarely have the same place.
const FILLS: usize = 256;

/// A line that is being filled, or was.
#[derive(Clone, Copy, Default)]
struct Fill {
    line: u64,
    /// Cycle from which the line is there.
    cycle: u64,
    /// Where the line comes from, a number of the cache's owner.
    source: u8,
}

snapshot::snapshot!(Fill { line, cycle, source });

/// What a hit needs to know of a set, in one piece: most hits find the line that the one before found.
#[derive(Clone, Copy, Default)]
struct Set {
    /// Tag of the way that hit last.
    tag: u32,
    /// Lines that were written, a bit per way.
    dirty: u16,
    /// The way that hit last.
    recent: u8,
}

snapshot::snapshot!(Set { tag, dirty, recent });

/// Tags, dirty bits, and what is being filled.
pub(crate) struct Cache {
    ways: usize,
    set_bits: u32,
    set_mask: u64,
    /// Per set and way the line's number above the set index, plus one; 0: invalid.
    tags: Box<[u32]>,
    sets: Box<[Set]>,
    /// Ways whose line may be read, but written only after a look into the directory; a bit each, by set. Used in an L1 data cache, with several
    /// harts.
    asks: Box<[u16]>,
    /// The last fills, by the low bits of the line. Apart from the tags, and small: a big cache's tags are far away on
    /// the host as well.
    fills: Box<[Fill; FILLS]>,
    /// No line is filled after this cycle: lets a hit skip `fills`.
    last_fill: u64,
    random: Lfsr,
    /// Lines that need no access while the cache is kept warm; `None` before the first time that it is.
    shown: Option<ShownLines>,
}

snapshot::snapshot!(Cache {
    tags, sets, asks, fills, last_fill, random
} keeps {
    ways, set_bits, set_mask, shown
});

/// Lines of a cache to which a further access changes nothing in it, for functional warming. Replacement is random, so that a hit leaves no
/// trace, except for the first write to a line.
#[derive(Default)]
pub(crate) struct ShownLines {
    /// Lines that are there.
    pub reads: LineFilter,
    /// Lines that are there, have been written, and may be written again without a look into the directory.
    pub writes: LineFilter,
}

impl Cache {
    /// Returns an empty cache of `kib` KiB; sizes are powers of two.
    pub(crate) fn new(kib: u32, ways: u32, seed: u16) -> Self {
        let lines = (kib as usize * 1024) >> super::LINE_BITS;
        let sets = lines / ways as usize;
        Self {
            ways: ways as usize,
            set_bits: sets.trailing_zeros(),
            set_mask: sets as u64 - 1,
            tags: vec![0; lines].into(),
            sets: vec![Set::default(); sets].into(),
            asks: vec![0; sets].into(),
            fills: Box::new([Fill::default(); FILLS]),
            last_fill: 0,
            random: Lfsr::new(seed),
            shown: None,
        }
    }

    /// Begins to say which lines need no access; none is shown yet.
    pub(crate) fn begin_warming(&mut self) {
        let shown = self.shown.get_or_insert_default();
        shown.reads.clear();
        shown.writes.clear();
    }

    /// Returns the lines that need no access, once [warming has begun](Self::begin_warming).
    #[inline(always)]
    pub(crate) fn shown(&self) -> Option<&ShownLines> {
        self.shown.as_ref()
    }

    /// Shows a line that was accessed last of its set.
    pub(crate) fn show(&self, line: u64, written: bool) {
        if let Some(shown) = &self.shown {
            shown.reads.show(line);
            if written && !self.asks(line) {
                shown.writes.show(line);
            }
        }
    }

    /// Shows a line again, if it is there and another access to it changes nothing; returns whether that is so.
    pub(crate) fn show_again(&self, line: u64, write: bool) -> bool {
        let set = (line & self.set_mask) as usize;
        let Some(way) = self.find(set, self.tag(line)) else { return false };
        let is = |bits: u16| bits >> way & 1 != 0;
        let written = is(self.sets[set].dirty) && !is(self.asks[set]);
        if let (Some(shown), true) = (&self.shown, !write || written) {
            shown.reads.show(line);
            if write {
                shown.writes.show(line);
            }
        }
        !write || written
    }

    #[inline(always)]
    fn hide(&self, line: u64) {
        if let Some(shown) = &self.shown {
            shown.reads.hide(line);
            shown.writes.hide(line);
        }
    }

    /// Lets all lines that are on their way arrive.
    pub(crate) fn settle(&mut self) {
        self.fills.iter_mut().for_each(|fill| fill.cycle = 0);
        self.last_fill = 0;
    }

    #[inline(always)]
    fn tag(&self, line: u64) -> u32 {
        // 32 bits of tag cover 2^(32+6+set bits) bytes of physical memory, at least 2^38.
        ((line >> self.set_bits) as u32).wrapping_add(1)
    }

    /// Returns the cycle from which the line is there (0: long ago), or `None` if it is absent.
    #[inline(always)]
    pub(crate) fn hit(&mut self, line: u64, cycle: u64, write: bool) -> Option<u64> {
        let index = (line & self.set_mask) as usize;
        let tag = self.tag(line);
        if self.sets[index].tag != tag {
            self.look_for(index, tag)?;
        }
        if write {
            let set = &mut self.sets[index];
            set.dirty |= 1 << (set.recent & 15);
        }
        if cycle >= self.last_fill { Some(0) } else { Some(self.last(line).cycle) }
    }

    /// Returns the last fill of a line that is there; a default one if that was long ago.
    #[inline(always)]
    fn last(&self, line: u64) -> Fill {
        let fill = self.fills[line as usize % FILLS];
        if fill.line == line { fill } else { Fill::default() }
    }

    /// Looks for a line that did not hit last.
    #[inline(never)]
    fn look_for(&mut self, index: usize, tag: u32) -> Option<()> {
        let recent = self.find(index, tag)? as u8;
        let set = &mut self.sets[index];
        *set = Set { tag, recent, ..*set };
        Some(())
    }

    fn find(&self, set: usize, tag: u32) -> Option<usize> {
        let ways = &self.tags[set * self.ways..][..self.ways];
        ways.iter().position(|&t| t == tag)
    }

    /// Returns true if the line is there or on its way.
    pub(crate) fn contains(&self, line: u64) -> bool {
        self.find((line & self.set_mask) as usize, self.tag(line)).is_some()
    }

    /// Returns where a line that is on its way comes from.
    pub(crate) fn source(&self, line: u64) -> u8 {
        self.last(line).source
    }

    /// Puts an absent line in a random way, there from `cycle` on.
    pub(crate) fn fill(
        &mut self,
        line: u64,
        cycle: u64,
        dirty: bool,
        source: u8,
    ) -> Option<Victim> {
        let index = (line & self.set_mask) as usize;
        let way = self.random.next() as usize & (self.ways - 1);
        let tag = self.tag(line);
        let old = std::mem::replace(&mut self.tags[index * self.ways + way], tag);
        let set = &mut self.sets[index];
        let victim = (old != 0).then(|| Victim {
            line: u64::from(old - 1) << self.set_bits | index as u64,
            dirty: set.dirty >> way & 1 != 0,
        });
        *set = Set {
            tag,
            dirty: set.dirty & !(1 << way) | u16::from(dirty) << way,
            recent: way as u8,
        };
        if let Some(Victim { line, .. }) = victim {
            self.hide(line);
        }
        self.fills[line as usize % FILLS] = Fill { line, cycle, source };
        self.last_fill = self.last_fill.max(cycle);
        victim
    }

    /// Notes that a line that was on its way is there.
    pub(crate) fn arrived(&mut self, line: u64) {
        let fill = &mut self.fills[line as usize % FILLS];
        if fill.line == line {
            fill.cycle = 0;
        }
    }

    /// Returns the number, among all places of the cache, of the place of a line that was the last of its set to be
    /// looked up or filled.
    pub(crate) fn place(&self, line: u64) -> usize {
        let set = (line & self.set_mask) as usize;
        set * self.ways + usize::from(self.sets[set].recent)
    }

    /// Returns how many lines the cache has room for.
    pub(crate) fn places(&self) -> usize {
        self.tags.len()
    }

    /// Drops a line; true if it was dirty.
    pub(crate) fn invalidate(&mut self, line: u64) -> bool {
        let index = (line & self.set_mask) as usize;
        let tag = self.tag(line);
        let Some(way) = self.find(index, tag) else {
            return false;
        };
        self.tags[index * self.ways + way] = 0;
        self.hide(line);
        let set = &mut self.sets[index];
        if set.tag == tag {
            set.tag = 0;
        }
        let dirty = set.dirty >> way & 1 != 0;
        set.dirty &= !(1 << way);
        dirty
    }

    /// Returns whether a write to the line needs a look into the directory first. The line is there, and was the last of its set to be looked up or
    /// filled.
    #[inline]
    pub(crate) fn asks(&self, line: u64) -> bool {
        let set = (line & self.set_mask) as usize;
        self.asks[set] >> self.sets[set].recent & 1 != 0
    }

    /// Sets [`Self::asks`].
    pub(crate) fn set_asks(&mut self, line: u64, asks: bool) {
        let set = (line & self.set_mask) as usize;
        let way = self.sets[set].recent;
        self.asks[set] = self.asks[set] & !(1 << way) | u16::from(asks) << way;
    }

    /// Does what another hart's request demands of the line: drops it, or keeps it for reads only.
    pub(crate) fn probed(&mut self, probe: &Probe) {
        if probe.drop {
            self.invalidate(probe.line);
        } else if let Some(way) =
            self.find((probe.line & self.set_mask) as usize, self.tag(probe.line))
        {
            let set = (probe.line & self.set_mask) as usize;
            self.sets[set].dirty &= !(1 << way);
            self.asks[set] |= 1 << way;
            self.hide(probe.line);
        }
    }

    /// Drops everything, as `fence.i` does to the instruction cache.
    pub(crate) fn clear(&mut self) {
        self.tags.fill(0);
        self.sets.fill(Set::default());
        if self.shown.is_some() {
            self.begin_warming();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fill_then_hit_then_evict() {
        let mut cache = Cache::new(1, 1, 7);
        assert_eq!(cache.hit(3, 0, false), None);
        assert_eq!(cache.fill(3, 50, false, 0), None);
        assert_eq!(cache.hit(3, 10, true), Some(50), "still on its way");
        assert_eq!(cache.hit(3, 60, false), Some(0));
        assert_eq!(cache.fill(3 + 16, 70, false, 0), Some(Victim { line: 3, dirty: true }));
        assert!(!cache.contains(3));
    }

    #[test]
    fn a_set_holds_as_many_lines_as_ways() {
        let mut cache = Cache::new(32, 8, 1);
        let mut victims = 0;
        for i in 0..8 {
            victims += usize::from(cache.fill(i * 64, 0, false, 0).is_some());
        }
        let present = (0..8).filter(|i| cache.contains(i * 64)).count();
        assert_eq!(present + victims, 8);
    }
}
