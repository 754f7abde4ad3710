//! What a sample says of a data access (Linux: `union perf_mem_data_src`).

/// The fields of `PERF_SAMPLE_DATA_SRC`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataSrc(pub u64);

const OPERATIONS: [(u64, &str); 5] =
    [(1, "N/A"), (2, "load"), (4, "store"), (8, "prefetch"), (16, "exec")];
const LEVELS: [(u64, &str); 14] = [
    (1 << 0, "N/A"),
    (1 << 1, "hit"),
    (1 << 2, "miss"),
    (1 << 3, "L1"),
    (1 << 4, "LFB"),
    (1 << 5, "L2"),
    (1 << 6, "L3"),
    (1 << 7, "local RAM"),
    (1 << 8, "remote RAM, 1 hop"),
    (1 << 9, "remote RAM, 2 hops"),
    (1 << 10, "remote cache, 1 hop"),
    (1 << 11, "remote cache, 2 hops"),
    (1 << 12, "I/O"),
    (1 << 13, "uncached"),
];
/// `mem_lvl_num`, which newer drivers fill in.
const LEVEL_NUMBERS: [(u64, &str); 13] = [
    (1, "L1"),
    (2, "L2"),
    (3, "L3"),
    (4, "L4"),
    (5, "L2 MHB"),
    (6, "memory-side cache"),
    (8, "uncached"),
    (9, "CXL"),
    (10, "I/O"),
    (11, "any cache"),
    (12, "LFB"),
    (13, "RAM"),
    (14, "PMEM"),
];
const SNOOPS: [(u64, &str); 5] = [(1, "N/A"), (2, "none"), (4, "hit"), (8, "miss"), (16, "HITM")];
const SNOOPS_X: [(u64, &str); 2] = [(1, "forward"), (2, "peer")];
const TLBS: [(u64, &str); 7] =
    [(1, "N/A"), (2, "hit"), (4, "miss"), (8, "L1"), (16, "L2"), (32, "walker"), (64, "fault")];

/// The names of the bits that are set, joined by blanks.
fn bits(value: u64, names: &[(u64, &'static str)]) -> String {
    let set = names.iter().filter(|(bit, _)| value & bit != 0);
    let set: Vec<&str> = set.map(|(_, name)| *name).collect();
    set.join(" ")
}

impl DataSrc {
    fn field(self, from: u32, width: u32) -> u64 {
        self.0 >> from & ((1 << width) - 1)
    }

    /// Returns the kind of access: `load`, `store`.
    pub fn op(self) -> String {
        bits(self.field(0, 5), &OPERATIONS)
    }

    /// Returns the level that answered: `L1 hit`, `L3 miss`, `RAM hit`; empty if it is not known.
    pub fn level(self) -> String {
        let number = self.field(33, 4);
        let remote = self.field(37, 1) != 0;
        let old = self.field(5, 14);
        let outcome = bits(old & 6, &LEVELS);
        let named = LEVEL_NUMBERS.iter().find(|(n, _)| *n == number);
        let named = match named {
            Some((_, name)) if remote => format!("remote {name}"),
            Some((_, name)) => (*name).to_owned(),
            None => bits(old & !7, &LEVELS),
        };
        match (named.is_empty(), outcome.is_empty()) {
            (true, _) => bits(old, &LEVELS),
            (false, true) => named,
            (false, false) => format!("{named} {outcome}"),
        }
    }

    /// Returns what other caches answered: `HITM` is a line that they had modified.
    pub fn snoop(self) -> String {
        let (old, new) = (bits(self.field(19, 5), &SNOOPS), bits(self.field(38, 2), &SNOOPS_X));
        match (old.is_empty(), new.is_empty()) {
            (false, false) => format!("{old} {new}"),
            _ => old + &new,
        }
    }

    /// The line was in another cache, which had modified it.
    pub fn is_hitm(self) -> bool {
        self.field(19, 5) & 16 != 0
    }

    /// Returns how the address was translated.
    pub fn tlb(self) -> String {
        bits(self.field(26, 7), &TLBS)
    }

    /// The access was atomic: `locked`.
    pub fn lock(self) -> String {
        bits(self.field(24, 2), &[(1, "N/A"), (2, "locked")])
    }
}
