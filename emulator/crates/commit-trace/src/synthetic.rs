//! Streams that a commit stage could have produced, made from arbitrary numbers: for the tests and
//! benchmarks of whatever reads streams. Feature `synthetic`.

use crate::{
    Batch, Class, Commit, CommitSink, CycleClass, Event, HartId, InstId, Recorder, Redirect,
    Stages, StaticInfo, TeaEvents, recording,
};

/// A core in caricature: each word of input decides about one instruction. Words near 0 make
/// unremarkable instructions, so that a failing test shrinks to a simple stream.
#[derive(Debug)]
pub struct SyntheticCore {
    width: u64,
    /// The instructions of a commit cycle are of one ROB row.
    by_rows: bool,
    defined: u32,
    inst: u32,
    decode: u64,
    dispatch: u64,
    /// Instructions dispatched in cycle `dispatch` so far.
    dispatched: u64,
    /// Instructions committed in cycle `commit` so far.
    committed: u64,
    commit: u64,
    /// Nothing dispatches before this cycle.
    refilled: u64,
    redirect: Redirect,
}

impl SyntheticCore {
    /// A core that dispatches and commits up to `width` instructions a cycle (1 to 8).
    pub fn new(width: usize) -> Self {
        Self {
            width: width.clamp(1, 8) as u64,
            by_rows: false,
            defined: 0,
            inst: 0,
            decode: 0,
            dispatch: 0,
            dispatched: 0,
            committed: 0,
            commit: 0,
            refilled: 3,
            redirect: Redirect::None,
        }
    }

    /// A core that commits one ROB row a cycle at most, as BOOM does.
    pub fn by_rows(width: usize) -> Self {
        Self { by_rows: true, ..Self::new(width) }
    }

    /// The cycle of the last commit, or the end of the idle period after it.
    pub fn cycle(&self) -> u64 {
        self.commit
    }

    /// Executes one instruction, perhaps with an event before it.
    pub fn step(&mut self, word: u32, sink: &mut impl CommitSink) {
        let bits = |shift: u32, width: u32| u64::from(word >> shift & ((1 << width) - 1));
        let rare = bits(24, 8);
        self.before(rare, word, sink);

        // Code: mostly the next instruction, sometimes a jump back, now and then new code.
        self.inst = match bits(0, 4) {
            15 => (word >> 4) % (self.defined + 1),
            _ => self.inst + 1,
        };
        if self.inst >= self.defined.min(4096) {
            self.inst = if self.defined < 4096 { self.defined } else { 0 };
        }
        if self.inst == self.defined {
            sink.define(&static_info(self.inst));
            self.defined += 1;
        }

        let hold = [0, 0, 0, 0, 0, 1, 2, 25][bits(4, 3) as usize];
        let earliest = (self.dispatch + hold).max(self.refilled);
        let row = earliest > self.dispatch || self.dispatched == self.width;
        if row {
            self.dispatch = earliest.max(self.dispatch + 1);
            self.dispatched = 0;
        }
        self.dispatched += 1;
        self.decode = self.decode.max(self.dispatch.saturating_sub(1 + bits(7, 2)));

        let latency = [1, 1, 1, 4, 4, 12, 30, 150][bits(9, 3) as usize];
        let redirect = match bits(12, 6) {
            60 | 61 => Redirect::Mispredict,
            62 => Redirect::Flush,
            63 if rare & 1 == 0 => Redirect::Exception,
            63 => Redirect::Interrupt,
            _ => Redirect::None,
        };
        let commit = self.commit.max(self.dispatch + latency);
        // An instruction commits beside the one before it if there is room and that one committed.
        let full = self.committed == 0 || self.committed == self.width;
        let alone = full || self.by_rows && row || redirect.is_trap() && bits(18, 1) == 0;
        if commit > self.commit || alone {
            self.commit = commit.max(self.commit + 1);
            self.committed = 0;
        }
        self.committed += 1;
        sink.commit(&Commit {
            inst: InstId(self.inst),
            decode: self.decode,
            dispatch: self.dispatch,
            commit: self.commit,
            redirect,
            first_of_row: row,
            class: CycleClass::from_bits(bits(19, 4) as u32),
            tea: TeaEvents(if rare > 200 { (word >> 10) as u16 & TeaEvents::ALL.0 } else { 0 }),
        });
        self.refilled = match redirect {
            Redirect::None => 0,
            Redirect::Mispredict => self.dispatch + 11,
            _ => self.commit + 7,
        };
        if redirect.is_trap() {
            self.committed = 0;
        }
        self.redirect = redirect;
    }

    fn before(&mut self, rare: u64, word: u32, sink: &mut impl CommitSink) {
        match rare {
            255 if self.redirect == Redirect::Flush || word & 1 == 0 => {
                let cycles = u64::from(word & 0xffff) + 1;
                sink.event(self.commit, Event::Idle { cycles });
                self.commit += cycles;
                self.committed = 0;
                self.refilled = self.commit + 3;
            }
            254 => sink.event(self.commit, Event::Privilege([0, 1, 3][word as usize % 3])),
            253 => {
                let pid = word & 3;
                let bytes = [pid.to_le_bytes(), pid.to_le_bytes()].concat();
                let bytes = [bytes, vec![b'a' + pid as u8; 16]].concat();
                sink.event(self.commit, Event::SideBand { kind: 1, bytes });
            }
            252 if word & 31 == 31 => sink.event(self.commit, Event::RegionAnew),
            252 => sink.event(self.commit, Event::Region(word & 3 != 0)),
            _ => {}
        }
    }
}

fn static_info(inst: u32) -> StaticInfo {
    let pc = 0x8000_0000 + 4 * u64::from(inst);
    StaticInfo {
        id: InstId(inst),
        space: inst % 4,
        pc,
        raw: inst.wrapping_mul(0x9e37_79b9),
        len: 4,
        privilege: 3,
        class: Class::ALL[inst as usize % Class::ALL.len()],
        target: inst.is_multiple_of(7).then(|| pc - 64),
    }
}

/// The batches of a whole recording, one instruction per word; some words end a batch.
///
/// # Panics
/// If the recorder refuses the stream, which is what a test wants to know.
pub fn batches(words: &[u32], width: usize) -> Vec<Batch> {
    batches_of(SyntheticCore::new(width), words)
}

/// The batches of a whole recording of `core`, one instruction per word; some words end a batch.
///
/// # Panics
/// If the recorder refuses the stream, which is what a test wants to know.
pub fn batches_of(mut core: SyntheticCore, words: &[u32]) -> Vec<Batch> {
    let (mut recorder, stream) = recording(HartId(0), 0, words.len() + 1);
    for word in words {
        core.step(*word, &mut recorder);
        if word >> 24 == 251 {
            Recorder::flush(&mut recorder);
        }
    }
    recorder.finish().expect("a synthetic stream is valid");
    stream.collect()
}

/// A program in caricature: nested loops over straight code, with the rhythm of a 4-wide core whose
/// ROB holds 64. For benchmarks: unlike a [`SyntheticCore`]'s, its stream repeats itself as code does.
///
/// # Panics
/// If the recorder refuses the stream, which is what a test wants to know.
pub fn program(instructions: usize, seed: u64) -> Vec<Batch> {
    const STATIC: u32 = 20_000;
    const ROB: usize = 64;
    let (mut recorder, stream) = recording(HartId(0), 0, instructions / crate::BATCH_RECORDS + 2);
    let mut state = seed;
    let mut random = move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u32
    };
    (0..STATIC).for_each(|inst| recorder.define(&static_info(inst)));
    let mut commits = [0u64; ROB];
    let (mut dispatch, mut slot, mut commit, mut width) = (4u64, 0, 0u64, 0);
    let (mut start, mut len, mut trips) = (0u32, 16, 10);
    let mut at = 0;
    for n in 0..instructions {
        let inst = start + at;
        let kind = inst.wrapping_mul(2_654_435_761) >> 24;
        at += 1;
        let mut redirect = Redirect::None;
        if at == len {
            at = 0;
            trips -= 1;
            if trips == 0 {
                redirect = Redirect::Mispredict;
                start = if random().is_multiple_of(8) {
                    random() % (STATIC - 64)
                } else {
                    (start + 64) % (STATIC - 64)
                };
                len = 4 + random() % 60;
                trips = 1 + random() % 60;
            }
        }
        // Kinds of loads by place, misses by chance.
        let (latency, class) = match kind {
            0..60 if random().is_multiple_of(32) => (30, CycleClass::LoadL2),
            0..60 => (4, CycleClass::LoadL1),
            60..63 => (90, CycleClass::LoadDram),
            63..80 => (7, CycleClass::Alu),
            80..100 => (1, CycleClass::Store),
            _ => (1, CycleClass::Alu),
        };
        let row = slot == 0 || slot == 4 || commits[n % ROB] >= dispatch;
        if row {
            dispatch = (dispatch + 1).max(commits[n % ROB] + 1);
            slot = 0;
        }
        slot += 1;
        let done = (dispatch + 4 + latency).max(commit);
        width = if done == commit && width < 4 { width + 1 } else { 1 };
        commit = if width == 1 { done.max(commit + 1) } else { done };
        commits[n % ROB] = commit;
        let tea = if latency == 30 { TeaEvents::ST_L1 } else { TeaEvents::default() };
        recorder.commit(&Commit {
            inst: InstId(inst),
            decode: dispatch - 2,
            dispatch,
            commit,
            redirect,
            first_of_row: row,
            class,
            tea,
        });
        if redirect == Redirect::Mispredict {
            dispatch = commit + 5;
            slot = 0;
        }
    }
    recorder.finish().expect("a synthetic stream is valid");
    stream.collect()
}

/// Adds stages to a batch, as a core that records all stages does: each instruction is fetched five cycles before
/// decode, issued at dispatch, and done at commit.
pub fn staged(mut batch: Batch) -> Batch {
    let stages = batch.records.iter().map(|record| Stages {
        fetch: record.residence() + record.decode_lead() + 5,
        issue: record.residence(),
        complete: 0,
    });
    batch.stages = stages.collect();
    batch
}
