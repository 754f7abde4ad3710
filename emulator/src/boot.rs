//! `tipsim boot`: an interactive machine on this terminal.

mod console;
mod scripted;

use std::path::Path;
use std::time::{Duration, Instant};

use devices::{Exit, Input, Output};
use machine::{Limit, RunExit};

use crate::checkpoint::{self, Checkpoint};
use crate::cli::BootArgs;
use crate::ends::{PANIC_ARGUMENT, Standstill, Watch, kernel_panic};
use crate::failure::BadInput;
use crate::gdb::{self, Debugger};
use crate::guest::GuestFiles;
use crate::host_memory;
use crate::net;
use crate::run::command;
use crate::signals::{self, SessionEnd};
use crate::spec::{self, Mode, Net, parse_memory};
use crate::stuck;
use crate::system::{Setup, System, harts};
use crate::terminal::Terminal;
use console::Console;
use scripted::Scripted;

/// Instructions between two looks at the terminal.
const SLICE: u64 = 1_000_000;
/// Time between two looks for what may wake a guest that only the host can wake.
const IDLE_SLEEP: Duration = Duration::from_millis(2);

/// Guest directory, firmware and kernel.
type Parts<'a> = [Option<&'a Path>; 3];

/// Returns what the options name. A firmware of one's own, without a kernel, boots alone: it has its payload
/// inside, or is a whole system.
fn parts(args: &BootArgs) -> Result<Parts<'_>, BadInput> {
    let (dir, kernel) = (args.guest_dir.as_deref(), args.kernel.as_deref());
    match args.firmware.as_deref() {
        Some(firmware) if firmware == Path::new("none") => match kernel {
            Some(kernel) => Ok([None, Some(kernel), None]),
            None => Err(BadInput("--firmware none: expected --kernel FILE with it".into())),
        },
        Some(firmware) if kernel.is_none() => Ok([None, Some(firmware), None]),
        firmware => Ok([dir, firmware, kernel]),
    }
}

/// Boots; the exit status is the guest's, or that of the command that it was given.
pub fn boot(args: &BootArgs) -> anyhow::Result<u8> {
    let leave = SessionEnd::default();
    // First: all threads that are started later inherit it.
    signals::handle(&leave);
    let saved = args.restore.as_deref().map(Checkpoint::open).transpose()?;
    let (mut memory, mut count) = (parse_memory(&args.memory), args.harts);
    let mut preset = crate::core_cmd::load(args.core.as_deref().unwrap_or("boom-4w"), &[])?;
    if let Some(Checkpoint { header, .. }) = &saved {
        (memory, count) = (Ok(header.memory), header.harts as u32);
        if args.core.is_none() {
            preset = header.core.clone();
        }
    }
    crate::core_cmd::apply(&mut preset, &args.set)?;
    let memory = memory.map_err(|e| BadInput(format!("--memory: {e}")))?;
    host_memory::check("--memory", memory)?;
    let variables = command::variables(&args.env)?;
    let give = |text: &String| {
        let text = command::with_environment(text, &variables);
        Scripted::give(&text, args.share.as_deref())
    };
    let scripted = args.command.as_ref().map(give).transpose()?;
    let (input, console) = (Input::default(), Console::default());
    // A command has the machine to itself: its input is in a file.
    let terminal = (scripted.is_none()).then(|| Terminal::open(input.clone(), leave.clone()));
    let mut attended = terminal.as_ref().is_some_and(|terminal| !terminal.has_ended());
    let mut system = System::new(Setup {
        memory,
        harts: harts(count)?,
        preset: &preset,
        console: Output::new(Box::new(console.clone())),
        input: Some(input.clone()),
        drives: &args.drive,
        write_drives: true,
        threads: args.threads,
        translator: args.translator,
        epoch: args.clock.seconds(),
        share: scripted.as_ref().map(Scripted::share).or(args.share.as_deref()),
        packages: None,
        net: net::of(args.net, &args.hostfwd)?,
        virtio_legacy: args.virtio_legacy,
        live: attended || args.net != Net::None,
    })?;
    let mut engine = match saved {
        Some(saved) => saved.load(&mut system, args.mode, &preset)?.0,
        None => {
            let [dir, firmware, kernel] = parts(args)?;
            let files = GuestFiles::resolve(dir, firmware, kernel, args.initrd.as_deref())?;
            let (net, append) = (net::boot_argument(args.net), &args.append);
            let bootargs = format!("console=ttyS0 earlycon=sbi {PANIC_ARGUMENT}{net}{append}");
            system.load_guest(&files, &bootargs)?;
            system.engine(args.mode, &preset)
        }
    };

    let start = Instant::now();
    let mut asleep = Duration::ZERO;
    let mut debugger = args.gdb.map(Debugger::listen).transpose()?;
    if let Some(debugger) = &mut debugger {
        debugger.keep_beginning(&mut system, &mut engine, args.mode, &preset);
        debugger.wait()?;
    }
    system.stop_when_stuck(true);
    let max_idle = spec::Run::default().max_idle_seconds();
    let mut watch = Watch::new(&system, max_idle, args.restore.is_some());
    let mut standstill = None;
    let slice = match debugger {
        Some(_) => gdb::POLL_INSTRUCTIONS,
        None => SLICE,
    };
    let exit = loop {
        if let Some(debugger) = &mut debugger {
            match debugger.serve(&mut system, &mut engine, &mut |_, _, _| Ok(false))? {
                Some(gdb::End::Guest(exit)) => break Some(exit),
                Some(gdb::End::Killed) => break None,
                Some(gdb::End::Detached | gdb::End::Caller) | None => {}
            }
        }
        if leave.is_asked() {
            break None;
        }
        if args.max_insts.is_some_and(|most| system.instructions() >= most) {
            break None;
        }
        let exit = system.run(&mut engine, Limit::instructions(slice));
        if attended && terminal.as_ref().is_some_and(Terminal::has_ended) {
            attended = false;
            if args.net == Net::None {
                system.run_ahead();
            }
        }
        // A guest with a network may still get a packet, and one with a debugger may still be changed.
        let deserted = !attended && args.net == Net::None && debugger.is_none();
        standstill = match exit {
            RunExit::Idle if deserted => Some(Standstill::Asleep),
            RunExit::Limit if deserted => watch.look(&mut system, || console.tail()),
            _ => None,
        };
        if standstill.is_some() {
            break None;
        }
        match exit {
            RunExit::Exit(exit) => break Some(exit),
            RunExit::Idle => {
                std::thread::sleep(IDLE_SLEEP);
                asleep += IDLE_SLEEP;
            }
            RunExit::Stuck(stuck) => {
                let text = stuck::describe(&mut system, &stuck);
                // A stuck guest retires nothing any more: no limit would ever be reached.
                let over = deserted || args.max_insts.is_some();
                if over && system.harts() == 1 {
                    standstill = Some(Standstill::Stuck(text));
                    break None;
                }
                // A terminal in raw mode needs the carriage return.
                eprint!("tipsim: the guest goes on, but gets nowhere: {text}\r\n");
            }
            RunExit::Limit | RunExit::Paused | RunExit::Region(_) | RunExit::Debug(_) => {}
        }
    };
    drop(terminal);
    let by_signal = leave.notice();
    if let Some(path) = &args.save {
        match exit {
            None => checkpoint::save(path, &mut system, &mut engine, &preset, &[])?,
            Some(_) => eprintln!("tipsim: nothing saved: the guest has ended"),
        }
    }
    let instructions = system.instructions();
    let awake = start.elapsed().saturating_sub(asleep + system.asleep());
    let awake = awake.as_secs_f64();
    let mode = if args.mode == Mode::Timing { "timing" } else { "functional" };
    let cycles = system.hart.cycle();
    // Everything that the guest printed is there before anything is said of it.
    drop(system);
    eprintln!(
        "tipsim: {instructions} instructions, {cycles} cycles, {:.1} MIPS ({mode})",
        instructions as f64 / awake.max(1e-9) / 1e6,
    );
    if let Some(status) = by_signal {
        return Ok(status);
    }
    match standstill {
        Some(standstill @ Standstill::Waits(_)) if scripted.is_none() => {
            anyhow::bail!("{standstill}, and console input is at its end")
        }
        Some(standstill) => anyhow::bail!("{standstill}"),
        None => status(exit, scripted.as_ref(), &console),
    }
}

/// The exit status of a session that the guest ended, or somebody who left it.
fn status(
    exit: Option<Exit>,
    scripted: Option<&Scripted>,
    console: &Console,
) -> anyhow::Result<u8> {
    if exit == Some(Exit::Reset)
        && let Some(reason) = kernel_panic(&console.tail())
    {
        anyhow::bail!("{}", Standstill::Panicked(reason));
    }
    Ok(match (exit, scripted) {
        (Some(Exit::PowerOff(0) | Exit::Reset), Some(scripted)) => scripted.status()?,
        (Some(Exit::PowerOff(code)), _) => u8::try_from(code).unwrap_or(255),
        (Some(Exit::Host(code)), _) => u8::try_from(code).unwrap_or(255),
        (Some(Exit::Reset), None) => {
            eprintln!("tipsim: the guest asked for a reset, which ends the session");
            0
        }
        (None, _) => 0,
    })
}
