//! Runs random programs on tipsim and on QEMU and compares registers, CSRs and memory after every block.
//!
//! A program depends on its seed alone. It consists of blocks of all instructions that both machines have, in all privilege
//! modes, with and without address translation, with traps. `harness.S` enters the blocks and computes the checksums.
//!
//! For each seed, several harts also rewrite each other's code; the result of that is known (`harts.rs`).

mod generate;
mod harts;
mod layout;
mod machines;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, bail, ensure};
use clap::Parser;

use generate::{Block, Program};
use harts::Harts;
use layout::{POINTERS, SAVED_CSRS, SAVED_INTERRUPTS, SAVED_LAST, SAVED_TRAPS};
use machines::{Machines, Mode, Outcome};

/// Seeds that once found a difference, one a line, with comments after `#`.
const FOUND_SEEDS: &str = include_str!("seeds.txt");

/// Compare tipsim with QEMU on random programs (`scripts/fuzz --help` says the same without being built)
#[derive(Parser)]
struct Args {
    /// Instructions to execute in random blocks, e.g. 100M
    #[arg(long, default_value = "1M", value_parser = number)]
    instructions: u64,
    /// First seed; without, the ones that found something, then from 1 on
    #[arg(long)]
    seed: Option<u64>,
    /// Blocks of a program
    #[arg(long, default_value_t = 400)]
    blocks: usize,
    /// Block runs of a program
    #[arg(long, default_value_t = 8000)]
    runs: u64,
    /// QEMU
    #[arg(long, default_value = "qemu-system-riscv64")]
    qemu: PathBuf,
    /// Compiler that assembles the harness
    #[arg(long, default_value = "riscv64-linux-gnu-gcc")]
    compiler: PathBuf,
}

/// Parses a number with an optional suffix `k` or `M`.
fn number(text: &str) -> Result<u64, String> {
    let (digits, factor) = match text.strip_suffix(['M', 'k']) {
        Some(digits) if text.ends_with('M') => (digits, 1_000_000),
        Some(digits) => (digits, 1000),
        None => (text, 1),
    };
    let digits: u64 = digits.parse().map_err(|e| format!("{e}"))?;
    digits.checked_mul(factor).ok_or("too large".into())
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let folder = tempfile::tempdir()?;
    let machines = Machines::new(&args.qemu, &args.compiler, folder.path())?;
    let harts = Harts::new(&args.compiler, folder.path())?;
    let names: Vec<_> = isa::Extension::ALL
        .iter()
        .filter(|e| machines.extensions.has(**e))
        .map(|e| e.name())
        .collect();
    println!("RV64GC and what both machines have of the rest: {}", names.join(" "));
    let start = Instant::now();
    let numbers = FOUND_SEEDS.lines().filter_map(|line| line.split('#').next());
    let found: Vec<u64> = numbers.filter_map(|number| number.trim().parse().ok()).collect();
    let seeds: Box<dyn Iterator<Item = u64>> = match args.seed {
        Some(seed) => Box::new(seed..),
        None => {
            let others = (1..).filter(|seed| !found.contains(seed));
            Box::new(found.iter().copied().chain(others))
        }
    };
    let (mut programs, mut crashes, mut instructions) = (0u64, 0u64, 0u64);
    for seed in seeds {
        let compared = compare(&machines, seed, &args)?;
        harts.compare(seed)?;
        instructions += compared;
        programs += u64::from(compared != 0);
        crashes += u64::from(compared == 0);
        ensure!(crashes < 20 + programs, "QEMU crashes on most programs");
        if programs.is_multiple_of(20) {
            eprintln!("{programs} programs, {:.1} M instructions", instructions as f64 / 1e6);
        }
        if instructions >= args.instructions {
            break;
        }
    }
    println!(
        "{programs} programs, {instructions} instructions: QEMU and tipsim (interpreted, translated, timed, timed and translated) are equal \
         after every block, and harts that rewrite each other's code compute what they should ({:.0} s); not compared, since QEMU crashed: {crashes}",
        start.elapsed().as_secs_f64()
    );
    Ok(())
}

/// Runs one program on QEMU and in every mode of tipsim; the number of instructions in its blocks, 0 if QEMU crashed. An
/// error lists the differences.
fn compare(machines: &Machines, seed: u64, args: &Args) -> anyhow::Result<u64> {
    let mut program =
        Program::new(seed, args.blocks, machines.extensions, machines.faults_on_clear_bits);
    let context = || format!("seed {seed}");
    let reference = { machines }.qemu(&mut program, args.runs).with_context(context)?;
    let Some(reference) = reference else {
        eprintln!("seed {seed}: QEMU crashed, no comparison");
        return Ok(0);
    };
    let mut instructions = 0;
    for mode in [Mode::Functional, Mode::Translated, Mode::Timing, Mode::TimingTranslated] {
        let (ours, executed) =
            { machines }.tipsim(&mut program, args.runs, mode).with_context(context)?;
        instructions = executed;
        // The saved words need no comparison: the checksums cover those that must be equal.
        if (&ours.log, &ours.data) == (&reference.log, &reference.data) {
            continue;
        }
        let pairs = ours.log.iter().zip(&reference.log);
        let Some(at) = { pairs }.position(|(ours, theirs)| ours != theirs) else {
            bail!(
                "seed {seed}, {mode:?}: memory differs at the end\n{}",
                differences(&ours, &reference)
            );
        };
        let runs = at as u64 + 1;
        let reference = machines.qemu(&mut program, runs)?;
        let reference = reference.context("QEMU crashed this time")?;
        let (ours, _) = machines.tipsim(&mut program, runs, mode)?;
        let block = &program.blocks[at % program.blocks.len()];
        bail!(
            "seed {seed}, {mode:?}: differs after block run {at}\n{}{}",
            differences(&ours, &reference),
            listing(block)
        );
    }
    Ok(instructions)
}

/// A listing of the registers, CSRs, traps and data that differ.
fn differences(ours: &Outcome, reference: &Outcome) -> String {
    let names = (0..64u8).map(|reg| isa::register_name(reg).to_owned());
    let names = names.chain(SAVED_CSRS.map(str::to_owned));
    let pairs = ours.log.iter().zip(&reference.log);
    let first = { pairs }.position(|(ours, theirs)| ours != theirs);
    let mut text = format!("run again up to there: first difference {first:?}\n");
    text += "what       tipsim             QEMU\n";
    for (n, name) in names.enumerate() {
        let (ours, theirs) = (ours.saved[n], reference.saved[n]);
        if ours != theirs {
            text += &format!("{name:8} {ours:#018x} {theirs:#018x}\n");
        }
    }
    let counts = [ours, reference].map(|o| o.saved[SAVED_TRAPS]);
    text += &format!("traps so far: {counts:?}\n");
    let counts = [ours, reference].map(|o| o.saved[SAVED_INTERRUPTS]);
    text += &format!("interrupts so far: {counts:?}\n");
    for n in 0..64 {
        let last = |o: &Outcome| o.saved[SAVED_LAST + 4 * n..][..4].to_owned();
        let (ours, theirs) = (last(ours), last(reference));
        if ours != theirs {
            text += &format!("mcause, mepc, mtval, mstatus: {ours:x?} {theirs:x?}\n");
        }
    }
    let pairs = ours.data.iter().zip(&reference.data);
    for (at, (a, b)) in { pairs }.enumerate().filter(|(_, (a, b))| a != b).take(8) {
        text += &format!("{:#x}: {a:#04x} {b:#04x}\n", layout::DATA + at as u64);
    }
    text
}

/// A listing of a block's entry state and instructions.
fn listing(block: &Block) -> String {
    let entry = &block.entry;
    let mut text = format!(
        "block at {:#x}: pc {:#x} mstatus {:#x} satp {:#x} fcsr {:#x} medeleg {:#x} \
         mideleg, mie, mip {:x?}\n",
        block.start,
        entry.pc,
        entry.mstatus,
        entry.satp,
        entry.fcsr,
        entry.medeleg,
        entry.interrupts
    );
    for (register, value) in POINTERS.iter().zip(entry.pointers) {
        text += &format!("{} = {value:#x}\n", isa::register_name(*register));
    }
    let mut pc = entry.pc;
    for &raw in &block.insts {
        let inst = isa::decode(raw);
        text += &format!("{pc:#x}: {raw:08x} {}\n", isa::disasm(&inst, pc));
        pc += u64::from(inst.len);
    }
    text
}
