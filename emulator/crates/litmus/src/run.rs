//! Runs a test on the machine: functional, interpreted or translated, or under timing cores.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use anyhow::{Context, ensure};
use commit_trace::{Commit, CommitSink};
use devices::{Bus, Clock};
use fastrand::Rng;
use machine::{Hart, Limit, RunExit, Translate, run_timed_together, run_together};
use timing::{Core, Preset, SharedMemory};

use crate::harness::{Harness, MEMORY, Pace, STRIDES};
use crate::program::{Outcome, Program};

/// How the machine executes a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// Interpreted, without timing. Harts take turns of a few instructions, of random number.
    Interpreted,
    /// All code is translated to host code, without timing. Harts take turns of thousands of instructions, as translated code is not
    /// executed near the end of a turn.
    Translated,
    /// Each hart under its timing core, which says when the hart has its turn; hot code is translated.
    Timing,
}

impl Mode {
    /// All modes.
    pub const ALL: [Self; 3] = [Self::Interpreted, Self::Translated, Self::Timing];

    /// Returns the name of the mode in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Interpreted => "interpreted",
            Self::Translated => "translated",
            Self::Timing => "timing",
        }
    }

    /// Returns how harts begin an iteration. Timed harts would soon be far from each other without meeting, as caches serve one of them
    /// better, and they do not leave the barrier in one cycle. Where turns are long, meeting would take a turn of each hart, and a batch
    /// has to be longer than a turn for harts to be in it at once.
    fn pace(self) -> Pace {
        match self {
            Self::Interpreted => Pace { meets: false, delays: 16, batch: 32 },
            Self::Translated => Pace { meets: false, delays: 16, batch: 128 },
            Self::Timing => Pace { meets: true, delays: 128, batch: 32 },
        }
    }
}

/// How often each outcome occurred.
pub type Histogram = BTreeMap<Outcome, u64>;

/// Most cycles of an iteration; a run that takes more hangs.
const MOST_CYCLES: u64 = 5_000;
/// Most instructions of a turn in functional mode, interpreted.
const SHORT_TURN: u64 = 48;
/// Instructions of a turn in functional mode, translated: in the last 2048 of a turn translated code is not executed.
const LONG_TURN: RangeInclusive<u64> = 2049..=2560;
/// Cycles after which the host looks whether timed harts are done.
const CYCLES_BETWEEN_LOOKS: u64 = 50_000;

/// A sink that ignores a timing core's commits.
struct IgnoredCommits;

impl CommitSink for IgnoredCommits {
    fn commit(&mut self, _: &Commit) {}
}

/// Runs a test for at least so many iterations, and returns how often each outcome occurred. All depends on the test and the seed alone.
///
/// # Errors
/// If the machine cannot be made, or the program does not end.
pub fn run(
    program: &Program,
    mode: Mode,
    preset: &Preset,
    iterations: u64,
    seed: u64,
) -> anyhow::Result<Histogram> {
    let pace = mode.pace();
    let batch = u64::from(pace.batch.unsigned_abs());
    let batches = u32::try_from(iterations.div_ceil(batch)).context("too many iterations")?;
    let iterations = u64::from(batches) * batch;
    let harness = Harness::new(program, pace);
    // Tests differ in what is drawn for them.
    let of_test = |seed: u64, byte: u8| seed.wrapping_mul(31).wrapping_add(byte.into());
    let mut random = Rng::with_seed(program.name.bytes().fold(seed, of_test));
    let stride = STRIDES[random.usize(0..STRIDES.len())];
    let mut bus = Bus::new(MEMORY, program.harts.len(), Clock::default())?;
    let mut harts = Vec::new();
    for (id, (at, code)) in harness.code().enumerate() {
        bus.ram.write(at, &code).context("the program does not fit")?;
        let mut hart = Hart::new(id);
        hart.set_translate(match mode {
            Mode::Interpreted => Translate::Nothing,
            Mode::Translated => Translate::Everything,
            Mode::Timing => Translate::Hot,
        })?;
        hart.set_pc(at);
        for (register, value) in Harness::registers(batches, stride, random.u64(1..)) {
            hart.set_reg(register, value);
        }
        harts.push(hart);
    }
    let memory = SharedMemory::new(preset, harts.len());
    let core = |n| Core::sharing(&memory, n, preset, IgnoredCommits);
    let mut cores: Vec<_> = match mode {
        Mode::Timing => (0..harts.len()).map(core).collect(),
        _ => Vec::new(),
    };
    let mut cycle = 0;
    while bus.ram.load(Harness::done(), 4) != Some(1) {
        ensure!(
            cycle < MOST_CYCLES * (iterations + 100),
            "{}, {}: not done after {cycle} cycles",
            program.name,
            mode.name()
        );
        cycle += match mode {
            Mode::Interpreted => random.u64(1..=SHORT_TURN),
            Mode::Translated => random.u64(LONG_TURN),
            Mode::Timing => CYCLES_BETWEEN_LOOKS,
        };
        let exit = match mode {
            Mode::Timing => {
                let mut pairs: Vec<_> = harts.iter_mut().zip(&mut cores).collect();
                run_timed_together(&mut pairs, &mut bus, Limit::cycle(cycle))
            }
            _ => {
                let mut harts: Vec<_> = harts.iter_mut().collect();
                run_together(&mut harts, &mut bus, Limit::cycle(cycle))
            }
        };
        ensure!(exit == RunExit::Limit, "{}, {}: ended with {exit:?}", program.name, mode.name());
    }
    read(program, &bus, iterations)
}

/// Reads the histogram that the guest made.
fn read(program: &Program, bus: &Bus, iterations: u64) -> anyhow::Result<Histogram> {
    let oversized = bus.ram.load(Harness::oversized_values(), 4);
    ensure!(
        oversized == Some(0),
        "{}: values that no hart writes, in {oversized:?} iterations",
        program.name
    );
    let mut histogram = Histogram::new();
    for outcome in 0..1 << (2 * program.fields.len()) {
        let at = Harness::histogram() + 4 * u64::from(outcome);
        let count = bus.ram.load(at, 4).context("the histogram is not in memory")?;
        if count != 0 {
            histogram.insert(outcome, count);
        }
    }
    let total: u64 = histogram.values().sum();
    ensure!(total == iterations, "{}: {total} outcomes of {iterations}", program.name);
    Ok(histogram)
}
