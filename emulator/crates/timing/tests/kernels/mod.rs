//! The microkernels measured on BOOM's RTL, run on the model.
#![allow(dead_code, reason = "the example uses more than the test")]

use commit_trace::{Commit, CommitSink, Redirect, TeaEvents};
use timing::{Core, Preset, Stats};

use crate::asm::{Program, State};

const SOURCE: &str = include_str!("../../../../../workloads/kernels/kernels.S");
const KERNELS: &str = include_str!("../../../../../workloads/kernels/kernels.csv");
const STATES: &str = include_str!("../../../../../workloads/kernels/states.csv");

/// Calls a kernel as the measured programs did: counters read right before and after. How many instructions
/// they had between the flush of the counter's read and the kernel is not known; it decides which instructions
/// share a ROB row. Of 3 to 6, six give the measured commit states, which the `nop`s make up.
const DRIVER: &str = "
FN(driver) csrr s4,mcycle; csrr s5,minstret; nop; nop; nop; mv a0,s0; mv a1,s1; jalr ra,s2; csrr s6,minstret; csrr s7,mcycle
 j end
FN(build) mv a3,a1; 1: add a4,a1,a2; sd a4,0(a1); mv a1,a4; addi a0,a0,-1; bnez a0,1b; sub a1,a1,a2; sd a3,0(a1); ret
FN(touch) 1: ld a2,0(a1); addi a1,a1,64; addi a0,a0,-1; bnez a0,1b; ret
";
/// Where the program ends.
const END: u64 = 0x1000;
const BUFFER: u64 = 0x8100_0000;
const OTHER: u64 = 0x8200_0000;

/// One row of `kernels.csv`.
#[derive(Debug)]
pub(crate) struct Measured {
    pub kernel: String,
    pub memory: String,
    pub core: String,
    pub iterations: u64,
    pub cycles: u64,
}

/// What the model made of it.
pub(crate) struct Modelled {
    pub cycles: u64,
    pub states: States,
    pub stats: Stats,
}

/// Cycles of the kernel alone by how many instructions commit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct States {
    pub cycles: u64,
    pub instructions: u64,
    pub mispredicts: u64,
    pub flushes: u64,
    pub empty: u64,
    pub commit: [u64; 5],
}

impl States {
    /// Cycles with an empty ROB, with a full one and no commit, and with one to four commits.
    fn split(&self) -> [u64; 6] {
        let [none, commits @ ..] = self.commit;
        let [one, two, three, four] = commits;
        let empty = self.empty.min(none);
        [empty, none - empty, one, two, three, four]
    }

    /// How much of the time both spend in the same state: the sum over the states of the smaller share of
    /// cycles.
    pub(crate) fn overlap(&self, other: &Self) -> f64 {
        let shares = |states: &Self| {
            let split = states.split();
            let all = split.iter().sum::<u64>().max(1);
            split.map(|cycles| cycles as f64 / all as f64)
        };
        let pairs = shares(self).into_iter().zip(shares(other));
        pairs.map(|(a, b)| a.min(b)).sum()
    }
}

impl std::fmt::Display for States {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "cycles {} insts {} mispredicts {} flushes {} empty {} commit {:?}",
            self.cycles, self.instructions, self.mispredicts, self.flushes, self.empty, self.commit
        )
    }
}

/// Splits a CSV row with quoted fields.
fn fields(line: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => out.push(String::new()),
            c => out.last_mut().unwrap().push(c),
        }
    }
    out
}

impl Measured {
    /// All rows.
    pub(crate) fn all() -> Vec<Self> {
        let row = |line: &str| {
            let f = fields(line);
            Self {
                kernel: f[0].clone(),
                memory: f[1].clone(),
                core: f[2].clone(),
                iterations: f[3].parse().unwrap(),
                cycles: f[4].parse().unwrap(),
            }
        };
        KERNELS.lines().skip(1).map(row).collect()
    }

    /// Modelled cycles against measured ones.
    pub(crate) fn error(&self, modelled: &Modelled) -> f64 {
        modelled.cycles as f64 / self.cycles as f64 - 1.0
    }

    /// The row of `states.csv`, for kernels that run warm.
    pub(crate) fn states(&self) -> Option<States> {
        let line =
            STATES.lines().find(|l| l.starts_with(&format!("{},{},", self.kernel, self.core)))?;
        if self.memory.contains('L') && self.memory != "one line in L1" {
            return None;
        }
        let f = fields(line);
        let n = |i: usize| f[i].parse().unwrap();
        let commit = [n(8), n(9), n(10), n(11), n(12)];
        Some(States {
            cycles: n(2),
            instructions: n(3),
            mispredicts: n(4),
            flushes: n(5),
            empty: n(7),
            commit,
        })
    }
}

/// Collects the commit stream between two program counters' calls.
#[derive(Default)]
pub(crate) struct Watch {
    pub commits: Vec<Commit>,
}

impl CommitSink for Watch {
    fn commit(&mut self, commit: &Commit) {
        self.commits.push(*commit);
    }
}

impl Watch {
    /// Over the records [`from`, `to`).
    fn states(&self, from: usize, to: usize) -> States {
        let mut s = States::default();
        let Some(before) = from.checked_sub(1) else {
            return s;
        };
        let start = self.commits[before].commit;
        let end = self.commits[to - 1].commit;
        s.cycles = end - start;
        let mut per_cycle = std::collections::BTreeMap::new();
        let mut last = start;
        for c in &self.commits[from..to] {
            // A load whose order failed leaves a record for its flush and one for its commit.
            let failed = c.redirect == Redirect::Exception && c.tea.0 & TeaEvents::FL_MO.0 != 0;
            s.instructions += u64::from(!failed);
            s.mispredicts += u64::from(c.redirect == Redirect::Mispredict);
            s.flushes += u64::from(!matches!(c.redirect, Redirect::None | Redirect::Mispredict));
            s.empty += c.dispatch.saturating_sub(last + 1);
            last = c.commit;
            *per_cycle.entry(c.commit).or_insert(0usize) += 1;
        }
        for n in per_cycle.values() {
            s.commit[(*n).min(4)] += 1;
        }
        s.commit[0] = s.cycles.saturating_sub(s.commit[1..].iter().sum());
        s
    }
}

/// Runs one measurement.
pub(crate) fn run(row: &Measured) -> Modelled {
    let source = format!("{SOURCE}\n{DRIVER}");
    let source = source.replace(" j end", " jalr zero,s3");
    let program = Program::new(&source);
    let preset = Preset::load(&format!("rtl-{}", row.core)).unwrap();
    let mut core = Core::new(&preset, Watch::default());
    program.define(&mut core);
    let mut state = State::new();
    let call = |core: &mut Core<Watch>, state: &mut State, kernel: &str, n: u64, at: u64| {
        state.x[8] = n;
        state.x[9] = at;
        state.x[18] = program.labels[kernel];
        state.x[19] = END;
        state.pc = program.labels["driver"];
        let first = core.sink().commits.len() + 8;
        program.run(core, state);
        // The records between the driver's jump and its next CSR read.
        let to = core.sink().commits.len() - 3;
        (state.x[23] - state.x[20], core.sink().states(first, to))
    };
    let m = row.memory.as_str();
    let n = row.iterations;
    if m.starts_with("ring") {
        // By stores, as a program does: the caches' replacement goes on from there.
        state.x[12] = 128;
        call(&mut core, &mut state, "build", 1024, BUFFER);
    } else if m.starts_with("cold ring") {
        let at = |i: u64| BUFFER + i % 4096 * 8384;
        (0..4096).for_each(|i| state.poke(at(i), at(i + 1)));
    } else {
        state.poke(BUFFER, BUFFER);
    }
    if m.contains("not in L1") || m.contains("long") {
        // How the measured program brought lines into the L2 and out of the L1 is not known. Of 1024 lines both
        // cores' figures find a tenth back in memory, of 256 lines none: as after one round of 48 KiB that
        // share L2 sets, whose replacement is random, with all but the first 256.
        call(&mut core, &mut state, "touch", n * 4, BUFFER);
        call(&mut core, &mut state, "touch", 768, OTHER + 256 * 64);
        // Instructions warm, data elsewhere.
        call(&mut core, &mut state, &row.kernel, 4, OTHER);
    } else if m.starts_with("cold") {
        state.poke(OTHER, OTHER);
        call(&mut core, &mut state, &row.kernel, 4, OTHER);
        call(&mut core, &mut state, &row.kernel, 4, OTHER);
    } else {
        call(&mut core, &mut state, &row.kernel, n, BUFFER);
        call(&mut core, &mut state, &row.kernel, n, BUFFER);
    }
    let (cycles, states) = call(&mut core, &mut state, &row.kernel, n, BUFFER);
    Modelled { cycles, states, stats: core.stats() }
}
