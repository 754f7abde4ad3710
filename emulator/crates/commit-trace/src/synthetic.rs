//! Streams that a commit stage could have produced, made from arbitrary numbers: for the tests and
//! benchmarks of whatever reads streams. Feature `synthetic`.

use crate::{
    Batch, Class, Commit, CommitSink, CycleClass, Event, HartId, InstFacts, InstId, Recorder,
    Redirect, TeaEvents, recording,
};

/// A core in caricature: each word of input decides about one instruction. Words near 0 make
/// unremarkable instructions, so that a failing test shrinks to a simple stream.
#[derive(Debug)]
pub struct SyntheticCore {
    width: u64,
    defined: u32,
    inst: u32,
    decode: u64,
    dispatch: u64,
    /// Instructions dispatched in cycle `dispatch`, committed in cycle `commit`.
    dispatched: u64,
    committed: u64,
    commit: u64,
    /// Nothing dispatches before.
    refilled: u64,
    redirect: Redirect,
}

impl SyntheticCore {
    /// A core that dispatches and commits up to `width` instructions a cycle (1 to 8).
    pub fn new(width: usize) -> Self {
        Self {
            width: width.clamp(1, 8) as u64,
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

    /// The cycle of the last commit, or the end of the idle period after it.
    pub fn cycle(&self) -> u64 {
        self.commit
    }

    /// One instruction, perhaps with an event before it.
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
            sink.define(&facts(self.inst));
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
        self.decode = self
            .decode
            .max(self.dispatch.saturating_sub(1 + bits(7, 2)));

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
        let alone = full || redirect.is_trap() && bits(18, 1) == 0;
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
            tea: TeaEvents(if rare > 200 {
                (word >> 10 & 0x1ff) as u16
            } else {
                0
            }),
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
            252 => sink.event(self.commit, Event::Region(word & 3 != 0)),
            _ => {}
        }
    }
}

fn facts(inst: u32) -> InstFacts {
    let pc = 0x8000_0000 + 4 * u64::from(inst);
    InstFacts {
        id: InstId(inst),
        space: inst % 4,
        pc,
        raw: inst.wrapping_mul(0x9e37_79b9),
        len: 4,
        privilege: 3,
        class: Class::ALL[inst as usize % Class::ALL.len()],
        target: (inst % 7 == 0).then(|| pc - 64),
    }
}

/// The batches of a whole recording, one instruction per word; some words end a batch.
///
/// # Panics
/// If the recorder refuses the stream, which is what a test wants to know.
pub fn batches(words: &[u32], width: usize) -> Vec<Batch> {
    let (mut recorder, stream) = recording(HartId(0), 0, words.len() + 1);
    let mut core = SyntheticCore::new(width);
    for word in words {
        core.step(*word, &mut recorder);
        if word >> 24 == 251 {
            Recorder::flush(&mut recorder);
        }
    }
    recorder.finish().expect("a synthetic stream is valid");
    stream.collect()
}
