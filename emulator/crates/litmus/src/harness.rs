//! The bare-metal program around a test: every hart executes its part of the test again and again, and hart 0 counts the outcomes.
//!
//! Harts meet at a barrier, execute a batch of instances, each after a delay of random length, and meet again. Every instance has words
//! of its own, which are zero. Hart 0 then adds the outcomes of the batch to a histogram, and clears the words.

use devices::RAM_BASE;

use crate::assembler::{Assembler, Atomic, Condition, Operation, X};
use crate::program::{Access, AccessKind, Fence, Field, Instruction, MAX_HARTS, Program, Value};

/// Bytes of memory.
pub(crate) const MEMORY: u64 = 16 << 20;
/// Most iterations of a batch, for whose words and results there is room.
const MAX_INSTANCES: i32 = 128;
/// Bytes of code that each hart has.
const CODE_SIZE: u64 = 0x1000;
/// Distances in bytes between the words of two instances: a line, two lines, and a page and a line.
pub(crate) const STRIDES: [u64; 3] = [64, 128, 4096 + 64];

/// Address of what harts share beside the tests' words: first the word of the barrier.
const CONTROL: u64 = RAM_BASE + 0x2_0000;
/// Offset from [`CONTROL`] of the word that is 1 once all batches are done.
const DONE: i32 = 64;
/// Offset from [`CONTROL`] of the number of iterations in which some value had more than 2 bits.
const OVERSIZED_VALUES: i32 = 128;
/// Offset of the results of a batch: for each instance and each hart, eight registers.
const RESULTS: u32 = 0x1_0000;
/// Bytes of the results of one hart in one instance.
const HART_RESULTS: usize = 32;
/// Bytes of the results of an instance.
const INSTANCE_RESULTS: usize = MAX_HARTS * HART_RESULTS;
/// Offset of the words: for each location, those of all instances.
const WORDS: u32 = 0x4_0000;
/// Bytes between the first words of two locations: pages, and some lines, so that caches have them in different sets.
const LOCATION_SIZE: u32 = 0x9_0000 + 5 * 64;
/// Offset of the histogram: a 32-bit count for each outcome.
const HISTOGRAM: u32 = 0x30_0000;

/// Scratch registers of the harness and of single instructions.
const T0: X = 5;
const T1: X = 6;
const T2: X = 7;
/// Register with [`CONTROL`].
const BASE: X = 8;
/// Register with the count at which the barrier opens.
const BARRIER: X = 9;
/// First of the registers of the test.
const TEST_REGISTERS: X = 10;
/// First of the registers with the words' addresses in the present instance.
const ADDRESSES: X = 18;
/// Register with the batches left.
const BATCHES: X = 22;
/// Register with the address of the present instance's results.
const RESULT: X = 23;
/// Register with the instances left in the batch.
const INSTANCES: X = 24;
/// Register with the distance between two instances' words.
const STRIDE: X = 25;
/// Register with the state of the generator of delays.
const RANDOM: X = 26;
/// Registers of hart 0 while it counts: outcome, and all values so far.
const OUTCOME: X = 28;
const SEEN: X = 29;

/// How harts begin an iteration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Harts meet at a barrier before each iteration, not only before each batch.
    pub(crate) meets: bool,
    /// Most steps, of two instructions each, for which a hart waits then: a power of two.
    pub(crate) delays: i32,
    /// Iterations of a batch, at most [`MAX_INSTANCES`].
    pub(crate) batch: i32,
}

/// The code of all harts for one test, and where the host finds what it needs.
pub(crate) struct Harness {
    code: Vec<Vec<u32>>,
}

impl Harness {
    /// Makes the code of a test.
    pub(crate) fn new(program: &Program, pace: Pace) -> Self {
        assert!(pace.batch <= MAX_INSTANCES);
        let harts = 0..program.harts.len();
        let code_of = |hart| HartCode { program, pace, hart, asm: Assembler::default() }.make();
        Self { code: harts.map(code_of).collect() }
    }

    /// Returns the address and the code of each hart.
    pub(crate) fn code(&self) -> impl Iterator<Item = (u64, Vec<u8>)> {
        self.code.iter().enumerate().map(|(hart, code)| {
            let bytes: Vec<u8> = code.iter().flat_map(|word| word.to_le_bytes()).collect();
            assert!(bytes.len() as u64 <= CODE_SIZE, "the code of a hart is too long");
            (RAM_BASE + hart as u64 * CODE_SIZE, bytes)
        })
    }

    /// Returns the registers, other than zero, with which a hart begins; `seed` is not zero.
    pub(crate) fn registers(batches: u32, stride: u64, seed: u64) -> [(u8, u64); 4] {
        let number = |x: X| u8::try_from(x).expect("a register's number is small");
        [
            (number(BASE), CONTROL),
            (number(BATCHES), batches.into()),
            (number(STRIDE), stride),
            (number(RANDOM), seed),
        ]
    }

    /// Returns the address of the word that is 1 once all batches are done.
    pub(crate) fn done() -> u64 {
        CONTROL.wrapping_add_signed(DONE.into())
    }

    /// Returns the address of the number of iterations in which some value had more than 2 bits.
    pub(crate) fn oversized_values() -> u64 {
        CONTROL.wrapping_add_signed(OVERSIZED_VALUES.into())
    }

    /// Returns the address of the histogram.
    pub(crate) fn histogram() -> u64 {
        CONTROL + u64::from(HISTOGRAM)
    }
}

/// The code of one hart while it is made.
struct HartCode<'a> {
    program: &'a Program,
    pace: Pace,
    hart: usize,
    asm: Assembler,
}

impl HartCode<'_> {
    fn make(mut self) -> Vec<u32> {
        let batch = self.asm.here();
        self.begin(u32::try_from(self.hart * HART_RESULTS).expect("small"));
        self.barrier();
        let instance = self.asm.here();
        if self.pace.meets {
            self.barrier();
        }
        self.delay();
        for instruction in &self.program.harts[self.hart] {
            self.instruction(instruction);
        }
        self.store_results();
        self.next_instance(instance);
        self.barrier();
        if self.hart == 0 {
            self.count();
        }
        self.asm.addi(BATCHES, BATCHES, -1);
        self.asm.branch(Condition::NotEqual, BATCHES, 0, batch);
        self.asm.fence(Fence::RW_RW);
        if self.hart == 0 {
            self.asm.addi(T0, 0, 1);
            self.asm.sw(T0, BASE, DONE);
        }
        let end = self.asm.here();
        self.asm.branch(Condition::Equal, 0, 0, end);
        self.asm.code
    }

    /// Points the registers to the first instance.
    fn begin(&mut self, result: u32) {
        for location in 0..self.program.locations() as u32 {
            self.asm.li(T0, WORDS + location * LOCATION_SIZE);
            self.asm.operate(Operation::Add, ADDRESSES + location, BASE, T0);
        }
        self.asm.li(T0, RESULTS + result);
        self.asm.operate(Operation::Add, RESULT, BASE, T0);
        self.asm.addi(INSTANCES, 0, self.pace.batch);
    }

    /// Points the registers to the next instance, and goes on there unless this was the last.
    fn next_instance(&mut self, start: usize) {
        for location in 0..self.program.locations() as u32 {
            let address = ADDRESSES + location;
            self.asm.operate(Operation::Add, address, address, STRIDE);
        }
        self.asm.addi(RESULT, RESULT, INSTANCE_RESULTS as i32);
        self.asm.addi(INSTANCES, INSTANCES, -1);
        self.asm.branch(Condition::NotEqual, INSTANCES, 0, start);
    }

    /// Waits until all harts are here.
    fn barrier(&mut self) {
        self.asm.fence(Fence::RW_RW);
        self.asm.addi(BARRIER, BARRIER, self.program.harts.len() as i32);
        self.asm.addi(T0, 0, 1);
        self.asm.atomic(Atomic::Add, (true, true), 0, T0, BASE);
        let wait = self.asm.here();
        self.asm.lw(T0, BASE, 0);
        self.asm.branch(Condition::Less, T0, BARRIER, wait);
        self.asm.fence(Fence::RW_RW);
    }

    /// Lets a random number of steps pass, by Marsaglia's generator xorshift64.
    fn delay(&mut self) {
        self.asm.slli(T0, RANDOM, 13);
        self.asm.operate(Operation::Xor, RANDOM, RANDOM, T0);
        self.asm.srli(T0, RANDOM, 7);
        self.asm.operate(Operation::Xor, RANDOM, RANDOM, T0);
        self.asm.slli(T0, RANDOM, 17);
        self.asm.operate(Operation::Xor, RANDOM, RANDOM, T0);
        self.asm.srli(T0, RANDOM, 20);
        self.asm.andi(T0, T0, self.pace.delays - 1);
        self.asm.addi(T0, T0, 1);
        let wait = self.asm.here();
        self.asm.addi(T0, T0, -1);
        self.asm.branch(Condition::NotEqual, T0, 0, wait);
    }

    fn instruction(&mut self, instruction: &Instruction) {
        match *instruction {
            Instruction::Fence(fence) => self.asm.fence(fence),
            Instruction::Branch(register) => {
                let next = self.asm.here() + 1;
                self.asm.branch(Condition::NotEqual, test_register(register), 0, next);
            }
            Instruction::Access(access) => self.access(&access),
        }
    }

    fn access(&mut self, access: &Access) {
        let mut base = ADDRESSES + access.location as u32;
        if let Some(register) = access.address_from {
            let register = test_register(register);
            self.asm.operate(Operation::Xor, T1, register, register);
            self.asm.operate(Operation::Add, T1, T1, base);
            base = T1;
        }
        let operand = match (access.value, access.data_from) {
            (Value::Register(register), _) => test_register(register),
            (Value::Constant(value), Some(register)) => {
                let register = test_register(register);
                self.asm.operate(Operation::Xor, T2, register, register);
                self.asm.addi(T2, T2, value.cast_signed());
                T2
            }
            (Value::Constant(0), None) => 0,
            (Value::Constant(value), None) => {
                self.asm.addi(T2, 0, value.cast_signed());
                T2
            }
        };
        let to = access.to.map_or(0, test_register);
        let atomic = match access.kind {
            AccessKind::Load => return self.asm.lw(to, base, 0),
            AccessKind::Store => return self.asm.sw(operand, base, 0),
            AccessKind::Swap => Atomic::Swap,
            AccessKind::Or => Atomic::Or,
            AccessKind::Add => Atomic::Add,
            AccessKind::LoadReserved => Atomic::LoadReserved,
            AccessKind::StoreConditional => Atomic::StoreConditional,
        };
        let annotations = (access.acquire, access.release);
        self.asm.atomic(atomic, annotations, to, operand, base);
    }

    fn store_results(&mut self) {
        for field in &self.program.fields {
            if let Field::Register(hart, register) = *field
                && hart == self.hart
            {
                self.asm.sw(test_register(register), RESULT, 4 * register as i32);
            }
        }
    }

    /// Adds the outcomes of a batch to the histogram, and clears the words.
    fn count(&mut self) {
        self.begin(0);
        let start = self.asm.here();
        self.asm.addi(OUTCOME, 0, 0);
        self.asm.addi(SEEN, 0, 0);
        for field in self.program.fields.iter().rev() {
            match *field {
                Field::Register(hart, register) => {
                    self.asm.lw(T0, RESULT, (hart * HART_RESULTS + 4 * register) as i32);
                }
                Field::Memory(location) => self.asm.lw(T0, ADDRESSES + location as u32, 0),
            }
            self.asm.operate(Operation::Or, SEEN, SEEN, T0);
            self.asm.slli(OUTCOME, OUTCOME, 2);
            self.asm.operate(Operation::Or, OUTCOME, OUTCOME, T0);
        }
        // A value of more than 2 bits is no outcome: the address of its own counter takes the place of the histogram's.
        self.asm.li(T0, HISTOGRAM);
        self.asm.operate(Operation::Add, T0, T0, BASE);
        self.asm.slli(OUTCOME, OUTCOME, 2);
        self.asm.operate(Operation::Add, OUTCOME, OUTCOME, T0);
        self.asm.srli(SEEN, SEEN, 2);
        let counter = self.asm.here() + 2;
        self.asm.branch(Condition::Equal, SEEN, 0, counter);
        self.asm.addi(OUTCOME, BASE, OVERSIZED_VALUES);
        self.asm.lw(T0, OUTCOME, 0);
        self.asm.addi(T0, T0, 1);
        self.asm.sw(T0, OUTCOME, 0);
        for location in 0..self.program.locations() as u32 {
            self.asm.sw(0, ADDRESSES + location, 0);
        }
        self.next_instance(start);
    }
}

/// Returns the machine's register for a register of the test.
fn test_register(register: usize) -> X {
    TEST_REGISTERS + register as u32
}
