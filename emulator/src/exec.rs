//! `tipsim exec`: bare-metal ELFs under HTIF, as the public test suites expect it, or with semihosting.

use std::cell::RefCell;
use std::io::Write;
use std::rc::Rc;
use std::time::Instant;

use devices::{Exit, Htif, Output, RAM_BASE, Ram, signature};
use machine::{Elf, ElfSymbols, Image, Limit, ResetState, RunExit, nearest_symbol};
use timing::Preset;

use crate::cli::ExecArgs;
use crate::counts::RegionCounts;
use crate::epoch::Epoch;
use crate::failure::{BadInput, MAX_IMAGE_BYTES, bad_input, read_at_most, write_whole};
use crate::gdb::{self, Debugger};
use crate::run::region::Regions;
use crate::semihosting::Semihosting;
use crate::spec::{Mode, Region, parse_memory};
use crate::stuck;
use crate::system::{Engine, Setup, System, harts};

/// Instructions without a command to the host after which a program that asked for input, which was at its end, counts as
/// waiting for it. One that only looks whether there is some goes on and writes, or asks again.
const MAX_SILENT_INSTRUCTIONS: u64 = 50_000_000;

/// Runs the ELF; the exit status is the test's.
pub fn exec(args: &ExecArgs) -> anyhow::Result<u8> {
    let memory = parse_memory(&args.memory).map_err(|e| BadInput(format!("--memory: {e}")))?;
    let preset = crate::core_cmd::load(&args.core, &args.set)?;
    let bytes = read_at_most(&args.elf, MAX_IMAGE_BYTES).map_err(|e| bad_input(&args.elf, e))?;
    let mut system = System::new(Setup {
        memory,
        harts: harts(args.harts)?,
        preset: &preset,
        console: Output::new(Box::new(std::io::stdout())),
        input: None,
        drives: &[],
        write_drives: false,
        threads: args.threads,
        translator: args.translator,
        epoch: Epoch::Fixed.seconds(),
        share: None,
        packages: None,
        net: None,
        virtio_legacy: false,
        live: false,
    })?;
    let name = args.elf.display().to_string();
    let symbols = load(args, &name, &bytes, &mut system)?;
    let wanted = match &args.signature {
        Some(file) => {
            let ram = &system.board.bus.ram;
            Some((file, signature_range(&name, &symbols, ram)?))
        }
        None => None,
    };
    let image = Image { name: &name, bytes: &bytes };
    system.stop_when_stuck(true);

    let mut engine = system.engine(args.mode, &preset);
    let mut counts = RegionCounts::new(true);
    if args.counters.is_some() {
        if args.mode != Mode::Timing {
            return Err(BadInput("--counters: expected --mode timing".to_owned()).into());
        }
        engine.count_all();
        system.stop_at_regions(true);
    }
    let start = Instant::now();
    let (exit, waits) = match args.gdb {
        None => run(&mut system, &mut engine, args.max_insts, &mut counts),
        Some(port) => {
            let exit = debugged((port, args), &preset, &mut system, &mut engine)?;
            (exit, false)
        }
    };
    std::io::stdout().flush()?;
    if args.stats {
        statistics(&system, &engine, start)?;
    }
    if let Some(file) = &args.counters {
        let text = serde_json::to_string_pretty(&counts.end(&engine))? + "\n";
        write_whole(file, text)?;
    }
    let code = match exit {
        RunExit::Exit(Exit::Host(code)) => code,
        RunExit::Exit(Exit::PowerOff(code)) => code.into(),
        RunExit::Exit(Exit::Reset) => 0,
        RunExit::Idle => {
            let place = place(image, system.hart.pc());
            anyhow::bail!("{name}: sleeps in wfi and nothing can wake it: hart 0 is at {place}")
        }
        RunExit::Stuck(stuck) => {
            let place = place(image, stuck.first.pc);
            anyhow::bail!("{name}: {}; that is {place}", stuck::describe(&mut system, &stuck))
        }
        RunExit::Limit | RunExit::Paused | RunExit::Region(_) | RunExit::Debug(_) => {
            let place = place(image, system.hart.pc());
            if waits {
                anyhow::bail!(
                    "{name}: waits for console input, which is at its end: hart 0 is at {place}"
                )
            }
            let turn = match system.hart.jumps_to_itself(&mut system.board.bus) {
                true => ", a jump to itself",
                false => "",
            };
            let end = match symbols.tohost {
                Some(_) => "",
                None => "; it has no symbol `tohost`: it can end by semihosting or the test device",
            };
            anyhow::bail!(
                "{name}: not done after {} instructions: hart 0 is at {place}{turn}{end}",
                args.max_insts
            )
        }
    };
    let status = u8::try_from(code).unwrap_or_else(|_| {
        eprintln!("tipsim: {name}: exit code {}: the exit status is 255", code as i64);
        255
    });
    if let Some((file, (begin, end))) = wanted {
        let text = signature(&system.board.bus.ram, begin, end, args.signature_granularity.get())
            .expect("checked before the run");
        std::fs::write(file, text).map_err(|e| bad_input(file, e))?;
    }
    Ok(status)
}

/// Runs up to so many instructions, or until the program does nothing any more but wait for input that does not come (then
/// true).
fn run(
    system: &mut System,
    engine: &mut Engine,
    most: u64,
    counts: &mut RegionCounts,
) -> (RunExit, bool) {
    let mut left = most;
    let mut regions = Regions::new(Region::Command);
    loop {
        let before = system.board.bus.unanswered();
        let slice = before.map_or(left, |_| left.min(MAX_SILENT_INSTRUCTIONS));
        let exit = system.run(engine, Limit::instructions(slice));
        let silent = before.is_some() && before == system.board.bus.unanswered();
        match exit {
            // The program has just asked for the first byte that it does not get.
            RunExit::Paused => left = most.saturating_sub(system.instructions()),
            RunExit::Limit if left > slice && !silent => left -= slice,
            RunExit::Region(mark) => {
                // Only the counts depend on the region.
                if let Some(event) = regions.take(mark, Default::default()) {
                    counts.region(&event, engine);
                }
                left = most.saturating_sub(system.instructions());
            }
            exit => return (exit, exit == RunExit::Limit && left > slice),
        }
    }
}

/// Puts the program into memory, gives it its host, and resets the harts to its entry point.
fn load(
    args: &ExecArgs,
    name: &str,
    bytes: &[u8],
    system: &mut System,
) -> anyhow::Result<ElfSymbols> {
    let bus = &mut system.board.bus;
    let elf = Elf::load(Image { name, bytes }, RAM_BASE, &mut bus.ram)
        .map_err(|e| BadInput(e.to_string()))?;
    let mut arguments = vec![name.to_owned()];
    arguments.extend_from_slice(&args.arguments);
    if let Some(tohost) = elf.symbols.tohost {
        let htif = Htif::new(tohost, elf.symbols.fromhost, Box::new(std::io::stdout()))
            .with_input(Box::new(std::io::stdin()))
            .with_arguments(arguments.clone());
        bus.attach_htif(htif);
    }
    let end = elf.segments.iter().map(|segment| segment.end).max();
    let host = Semihosting::new(&arguments, end.unwrap_or(RAM_BASE), args.semihosting.as_deref())?;
    let host = Rc::new(RefCell::new(host));
    for hart in system.each_hart() {
        hart.set_host_calls(host.clone());
    }
    system.reset(ResetState { pc: elf.entry, ..ResetState::default() });
    system.permit_all_memory();
    Ok(elf.symbols)
}

/// Runs under debuggers' control, and without while there is none.
fn debugged(
    (port, args): (u16, &ExecArgs),
    core: &Preset,
    system: &mut System,
    engine: &mut Engine,
) -> anyhow::Result<RunExit> {
    let mut debugger = Debugger::listen(port)?;
    debugger.keep_beginning(system, engine, args.mode, core);
    debugger.wait()?;
    loop {
        match debugger.serve(system, engine, &mut |_, _, _| Ok(false))? {
            Some(gdb::End::Guest(exit)) => return Ok(RunExit::Exit(exit)),
            Some(gdb::End::Killed) => anyhow::bail!("killed by the debugger"),
            Some(gdb::End::Detached | gdb::End::Caller) | None => {}
        }
        let left = args.max_insts.saturating_sub(system.instructions());
        if left == 0 {
            return Ok(RunExit::Limit);
        }
        match system.run(engine, Limit::instructions(left.min(gdb::POLL_INSTRUCTIONS))) {
            RunExit::Limit => {}
            exit => return Ok(exit),
        }
    }
}

fn statistics(system: &System, engine: &Engine, start: Instant) -> anyhow::Result<()> {
    let (cycles, instructions) = (system.hart.cycle(), system.instructions());
    let mips = instructions as f64 / start.elapsed().as_secs_f64() / 1e6;
    eprintln!("{instructions} instructions, {cycles} cycles, {mips:.1} MIPS");
    if system.harts() > 1 {
        for (hart, (instructions, cycles)) in system.each().enumerate() {
            eprintln!("hart {hart}: {instructions} instructions, {cycles} cycles");
        }
    }
    for stats in engine.stats().unwrap_or_default() {
        eprintln!("{}", serde_json::to_string(&stats)?);
    }
    Ok(())
}

/// An address, with what the file calls it.
fn place(image: Image<'_>, pc: u64) -> String {
    match nearest_symbol(image, pc) {
        Some((name, 0)) => format!("pc {pc:#x}, {name}"),
        Some((name, offset)) => format!("pc {pc:#x}, {name}+{offset:#x}"),
        None => format!("pc {pc:#x}"),
    }
}

/// Returns where the signature is: a program without one is better told so before it runs than after.
fn signature_range(name: &str, symbols: &ElfSymbols, ram: &Ram) -> Result<(u64, u64), BadInput> {
    let (Some(begin), Some(end)) = (symbols.begin_signature, symbols.end_signature) else {
        return Err(BadInput(format!(
            "{name}: --signature: expected symbols begin_signature and end_signature"
        )));
    };
    let length = end.checked_sub(begin);
    length
        .and_then(|length| ram.slice(begin, length))
        .map(|_| (begin, end))
        .ok_or_else(|| BadInput(format!("{name}: signature {begin:#x}..{end:#x} is not in memory")))
}
