//! Which functions and lines interpreted programs execute: the simulator looks into the memory of interpreters' processes now and then, and puts what
//! it finds into the stream ([`profile::ScriptRecord`] says how that becomes time).

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use interpreters::{Frame, Image, Memory, Python, find_runtime};
use machine::{GuestView, Onlooker};
use profile::{ScriptFrame, ScriptRecord};

use crate::units::tip::Programs;

/// Instructions from a sample to the next, in the mean; more where stacks are deep, so that looks take no more than some hundredths of the
/// host's time.
const PERIOD: u64 = 4096;
const PERIOD_PER_FRAME: u64 = 64;
/// Instructions whose cycles a sample tells, at least: some of the interpreter's steps.
const WINDOW: u64 = 64;
/// Looks between two searches for the runtime of an interpreter that has not been found: twice as many each time, up to this.
const MAX_WAIT: u64 = 4096;
/// Programs whose runtime is remembered.
const MAX_PROGRAMS: usize = 1024;

/// The thread that runs on a hart, as the guest's driver told last: numbers of process and thread.
pub(crate) type RunningThread = Rc<Cell<(u32, u32)>>;

/// Where the runtime of a program's interpreter is.
enum Runtime {
    At(u64),
    /// The runtime is not found: `left` looks until the next search, and `wait` between that search and the one after.
    Missing {
        left: u64,
        wait: u64,
    },
}

/// Looks at the programs of one hart.
pub(crate) struct ScriptSampler {
    running: RunningThread,
    programs: Rc<RefCell<Programs>>,
    python: Python,
    runtimes: HashMap<u64, Runtime>,
    /// Functions that the stream knows.
    told: usize,
    frames: Vec<Frame>,
    /// The thread of the window that is open.
    window: Option<(u32, u32)>,
    /// Instructions for which the next sample stands.
    stands_for: u64,
    period: u64,
    random: u64,
}

impl ScriptSampler {
    /// Looks at what runs on a hart.
    pub(crate) fn new(running: RunningThread, programs: Rc<RefCell<Programs>>) -> Self {
        Self {
            running,
            programs,
            python: Python::default(),
            runtimes: HashMap::new(),
            told: 0,
            frames: Vec::new(),
            window: None,
            stands_for: PERIOD,
            period: PERIOD,
            // Xorshift64 (Marsaglia 2003): any number but 0.
            random: 0x7469_7073_696d,
        }
    }

    /// Draws how long it is to the next window, from 1 up.
    fn draw(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.stands_for = self.period + WINDOW;
        1 + self.random % (2 * self.period - 1)
    }

    /// The runtime of a program's interpreter, if it is there by now.
    fn runtime(&mut self, memory: &impl Memory, program: u64, image: Image) -> Option<u64> {
        if self.runtimes.len() >= MAX_PROGRAMS && !self.runtimes.contains_key(&program) {
            self.runtimes.clear();
        }
        let new = Runtime::Missing { left: 0, wait: 1 };
        let known = self.runtimes.entry(program).or_insert(new);
        let (left, wait) = match known {
            Runtime::At(address) => return Some(*address),
            Runtime::Missing { left, wait } => (left, wait),
        };
        if *left > 0 {
            *left -= 1;
            return None;
        }
        (*left, *wait) = (*wait, (2 * *wait).min(MAX_WAIT));
        let found = find_runtime(memory, image)?;
        *known = Runtime::At(found);
        Some(found)
    }
}

/// What an onlooker sees, as the memory of an interpreter.
struct Seen<'a, 'b>(&'a GuestView<'b>);

impl Memory for Seen<'_, '_> {
    fn read(&self, address: u64, bytes: &mut [u8]) -> bool {
        self.0.read(address, bytes)
    }
}

impl Onlooker for ScriptSampler {
    fn look(&mut self, view: &GuestView<'_>, note: &mut dyn FnMut(u8, Vec<u8>)) -> u64 {
        let (pid, tid) = self.running.get();
        let found = self.programs.borrow().interpreter(pid);
        let window = self.window.take();
        let Some((program, image)) = found else {
            self.period = PERIOD;
            return self.draw();
        };
        let mut tell = |record: ScriptRecord| {
            let (kind, bytes) = record.encode();
            note(kind, bytes);
        };
        if window.is_none() {
            self.window = Some((pid, tid));
            tell(ScriptRecord::Window);
            return WINDOW;
        }
        if window != Some((pid, tid)) {
            return self.draw();
        }
        let memory = &Seen(view);
        let mut frames = std::mem::take(&mut self.frames);
        frames.clear();
        if let Some(runtime) = self.runtime(memory, program, image) {
            self.python.frames(memory, (program, runtime), tid, &mut frames);
        }
        for function in &self.python.functions()[self.told..] {
            tell(ScriptRecord::Function {
                name: function.name.clone(),
                file: function.file.clone(),
                line: function.line,
            });
        }
        self.told = self.python.functions().len();
        let of_sample =
            frames.iter().map(|frame| ScriptFrame { function: frame.function, line: frame.line });
        tell(ScriptRecord::Sample {
            instructions: self.stands_for as u32,
            frames: of_sample.collect(),
        });
        self.period = PERIOD.max(PERIOD_PER_FRAME * frames.len() as u64);
        self.frames = frames;
        self.draw()
    }
}
