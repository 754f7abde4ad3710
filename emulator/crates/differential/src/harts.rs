//! Tests of several harts that rewrite each other's code. A program's result does not depend on the order in which the harts
//! run. It is computed here, and compared with tipsim's in every execution mode and with random lengths of the harts' turns.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail, ensure};
use devices::{Bus, Clock, RAM_BASE};
use machine::{Elf, Hart, Image, Limit, RunExit, Translate, run_timed_together, run_together};
use timing::{Core, Preset, SharedMemory};

use crate::machines::IgnoredCommits;
use fastrand::Rng;

const MEMORY: u64 = 1 << 20;
/// Physical address of the functions, which lie in three pages.
const CODE: u64 = RAM_BASE + 0x4_0000;
const FUNCTIONS: usize = 16;
/// Instructions of a function before its `ret`.
const LENGTH: usize = 5;
const STEPS: usize = 60;
const RET: u32 = 0x0000_8067;
/// Cycles after which a program that has not ended is taken to hang.
const MAX_CYCLES: u64 = 200_000_000;

/// The harness that all harts execute, assembled from `harts.S`.
pub(crate) struct Harts {
    elf: Vec<u8>,
    preset: Preset,
}

/// A 4-byte instruction that changes `a0`, or two compressed ones (`CompressedPair`).
#[derive(Clone, Copy)]
enum Inst {
    Add(i32),
    Xor(i32),
    Shift(u32),
    CompressedPair(i32, i32),
}

impl Inst {
    fn random(random: &mut Rng) -> Self {
        match random.u8(0..4) {
            0 => Self::Add(random.i32(-2048..2048)),
            1 => Self::Xor(random.i32(-2048..2048)),
            2 => Self::Shift(random.u32(1..4)),
            _ => Self::CompressedPair(random.i32(1..32), random.i32(-32..0)),
        }
    }

    fn encoding(self) -> u32 {
        let immediate =
            |funct3: u32, imm: i32| (imm as u32) << 20 | 10 << 15 | funct3 << 12 | 10 << 7 | 0x13;
        let c_addi = |imm: i32| {
            let imm = imm as u32;
            (imm >> 5 & 1) << 12 | 10 << 7 | (imm & 31) << 2 | 1
        };
        match self {
            Self::Add(imm) => immediate(0, imm),
            Self::Xor(imm) => immediate(4, imm),
            // A rotation would need Zbb.
            Self::Shift(by) => immediate(1, by as i32),
            Self::CompressedPair(first, second) => c_addi(first) | c_addi(second) << 16,
        }
    }

    fn apply(self, a0: u64) -> u64 {
        match self {
            Self::Add(imm) => a0.wrapping_add_signed(imm.into()),
            Self::Xor(imm) => a0 ^ i64::from(imm) as u64,
            Self::Shift(by) => a0 << by,
            Self::CompressedPair(first, second) => a0.wrapping_add_signed((first + second).into()),
        }
    }
}

/// A random program for the harness.
struct Program {
    harts: usize,
    functions: Vec<(u64, [Inst; LENGTH])>,
    /// In order, what one hart writes and another then executes: writing hart, executing hart, address of the
    /// instruction, its encoding, address of its function.
    steps: Vec<[u64; 5]>,
    /// The expected result: `a0` after the functions of all steps.
    sum: u64,
}

impl Program {
    fn new(seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        let harts = [2, 3, 4, 8][random.usize(0..4)];
        let size = 4 * (LENGTH as u64 + 1);
        let mut functions = Vec::new();
        for n in 0..FUNCTIONS as u64 {
            // The first two cross the end of a page, the first with an instruction that lies in both pages.
            let at = match n {
                0 => 0x1000 - 10,
                1 => 0x2000 - 8,
                _ => (n % 3) * 0x1000 + 0x100 + n * 40 + 2 * random.u64(0..2),
            };
            debug_assert!(at + size < 0x3000);
            let body = std::array::from_fn(|_| Inst::random(&mut random));
            functions.push((CODE + at, body));
        }
        let mut program = Self { harts, functions, steps: Vec::new(), sum: 1 };
        let mut now: Vec<[Inst; LENGTH]> = program.functions.iter().map(|f| f.1).collect();
        for _ in 0..STEPS {
            let function = random.usize(0..FUNCTIONS);
            let place = random.usize(0..LENGTH);
            let inst = Inst::random(&mut random);
            now[function][place] = inst;
            program.sum = now[function].iter().fold(program.sum, |a0, i| i.apply(a0));
            let at = program.functions[function].0;
            program.steps.push([
                random.u64(0..harts as u64),
                random.u64(0..harts as u64),
                at + 4 * place as u64,
                inst.encoding().into(),
                at,
            ]);
        }
        program
    }

    /// Writes the program to memory, for the harness that is loaded there.
    fn load(&self, bus: &mut Bus, parameters: u64) -> anyhow::Result<()> {
        let mut store = |at: u64, size: u8, value: u64| {
            bus.ram.store(at, size, value).context("the program does not fit")
        };
        store(parameters + 8, 8, 1)?;
        store(parameters + 16, 8, STEPS as u64)?;
        store(parameters + 24, 8, FUNCTIONS as u64)?;
        for (n, (at, body)) in self.functions.iter().enumerate() {
            store(parameters + 64 + 8 * n as u64, 8, *at)?;
            for (n, inst) in body.iter().enumerate() {
                store(at + 4 * n as u64, 4, inst.encoding().into())?;
            }
            store(at + 4 * LENGTH as u64, 4, RET.into())?;
        }
        for (n, &[writer, executor, at, encoding, function]) in self.steps.iter().enumerate() {
            let entry = parameters + 64 + 256 + 32 * n as u64;
            store(entry, 4, writer)?;
            store(entry + 4, 4, executor)?;
            store(entry + 8, 8, at)?;
            store(entry + 16, 8, encoding)?;
            store(entry + 24, 8, function)?;
        }
        Ok(())
    }
}

impl Harts {
    /// Assembles the harness; its files go to `folder`.
    pub(crate) fn new(compiler: &Path, folder: &Path) -> anyhow::Result<Self> {
        let (source, elf) = (folder.join("harts.S"), folder.join("harts.elf"));
        std::fs::write(&source, include_str!("harts.S"))?;
        let output = Command::new(compiler)
            .args(["-march=rv64gc", "-mabi=lp64d", "-static", "-nostdlib", "-nostartfiles"])
            .args(["-fno-pic", "-no-pie", "-mcmodel=medany", "-Wl,--build-id=none"])
            .args(["-Wl,-N", "-Wl,-Ttext=0x80000000", "-o"])
            .args([&elf, &source])
            .output()
            .with_context(|| format!("{}: cannot be run", compiler.display()))?;
        ensure!(
            output.status.success(),
            "{}: {}",
            compiler.display(),
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(Self { elf: std::fs::read(&elf)?, preset: Preset::default() })
    }

    /// Runs one program in every mode; an error is a difference.
    pub(crate) fn compare(&self, seed: u64) -> anyhow::Result<()> {
        let program = Program::new(seed);
        for timed in [false, true] {
            for translate in [Translate::Nothing, Translate::Hot, Translate::Everything] {
                let kind = if timed { "timed" } else { "functional" };
                self.run(&program, seed, translate, timed).with_context(|| {
                    format!("seed {seed}: {} harts, {kind}, {translate:?}", program.harts)
                })?;
            }
        }
        Ok(())
    }

    fn run(
        &self,
        program: &Program,
        seed: u64,
        translate: Translate,
        timed: bool,
    ) -> anyhow::Result<()> {
        let mut bus = Bus::new(MEMORY, program.harts, Clock::default())?;
        let image = Image { name: "harts.elf", bytes: &self.elf };
        let elf = Elf::load(image, RAM_BASE, &mut bus.ram)?;
        // The harness is one page of code.
        let parameters = RAM_BASE + 0x1000;
        program.load(&mut bus, parameters)?;
        let mut harts = Vec::new();
        for id in 0..program.harts {
            let mut hart = Hart::new(id);
            hart.set_translate(translate)?;
            hart.set_pc(elf.entry);
            hart.set_reg(20, id as u64);
            harts.push(hart);
        }
        // The seed also decides in which cycles turns end.
        let mut random = Rng::with_seed(seed);
        let most = [50, 3000, 40_000][random.usize(0..3)];
        let mut cycle = 0;
        let mut next = || {
            cycle += random.u64(1..most);
            Limit::cycle(cycle)
        };
        let memory = SharedMemory::new(&self.preset, program.harts);
        let core = |n| Core::sharing(&memory, n, &self.preset, IgnoredCommits);
        let mut cores: Vec<_> = (0..program.harts).map(core).collect();
        loop {
            let limit = next();
            let exit = if timed {
                let mut pairs: Vec<_> = harts.iter_mut().zip(&mut cores).collect();
                run_timed_together(&mut pairs, &mut bus, limit)
            } else {
                let mut harts: Vec<_> = harts.iter_mut().collect();
                run_together(&mut harts, &mut bus, limit)
            };
            ensure!(exit == RunExit::Limit, "ended with {exit:?}");
            let load = |at: u64| bus.ram.load(parameters + at, 8).unwrap_or_default();
            let (state, sum) = (load(0), load(8));
            if state == 2 * STEPS as u64 {
                ensure!(sum == program.sum, "found {sum:#x}, expected {:#x}", program.sum);
                return Ok(());
            }
            if limit.cycle > MAX_CYCLES {
                bail!("not done after step {}", state / 2);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_do_what_they_say() {
        let text = |inst: Inst| {
            let raw = inst.encoding();
            isa::disasm(&isa::decode(raw), 0)
        };
        assert_eq!(text(Inst::Add(-5)), "addi a0,a0,-5");
        assert_eq!(text(Inst::Xor(7)), "xori a0,a0,7");
        assert_eq!(text(Inst::Shift(3)), "slli a0,a0,0x3");
        assert_eq!(text(Inst::CompressedPair(9, -9)), "addi a0,a0,9");
        assert_eq!(Inst::CompressedPair(9, -4).apply(1), 6);
    }
}
