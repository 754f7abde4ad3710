//! `tipsim boot`: an interactive machine on this terminal.

mod console;
mod scripted;

use std::path::Path;
use std::time::{Duration, Instant};

use devices::{Exit, Input, Output};
use machine::RunExit;
use simulation::{
    Checkpoint, Flow, Goal, MachineOptions, Observer, PANIC_ARGUMENT, Recording, Session,
    Standstill, Stop, System, Watch, describe_stuck, kernel_panic,
};

use crate::cli::BootArgs;
use crate::experiment::{command, net};
use crate::failure::BadInput;
use crate::gdb::{self, Debugger, UnderDebugger};
use crate::guest_files::images::GuestFiles;
use crate::host::signals::{self, SessionEnd};
use crate::host::terminal::Terminal;
use crate::spec::{self, HartOrder, Mode, Net, harts, parse_memory};
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
pub(crate) fn boot(args: &BootArgs) -> anyhow::Result<u8> {
    let leave = SessionEnd::default();
    // First: all threads that are started later inherit it.
    signals::handle(&leave);
    let saved = args.restore.as_deref().map(Checkpoint::open).transpose()?;
    let (mut memory, mut count) = (parse_memory(&args.memory), args.harts);
    let mut preset = crate::commands::core::load(args.core.as_deref().unwrap_or("boom-4w"), &[])?;
    if let Some(Checkpoint { header, .. }) = &saved {
        (memory, count) = (Ok(header.memory), header.harts as u32);
        if args.core.is_none() {
            preset = header.core.clone();
        }
    }
    crate::commands::core::apply(&mut preset, &args.set)?;
    if args.hart_order != HartOrder::default() && args.mode != Mode::Timing {
        return Err(BadInput("--hart-order: expected --mode timing".to_owned()).into());
    }
    let memory = memory.map_err(|e| BadInput(format!("--memory: {e}")))?;
    crate::host::memory::check("--memory", memory)?;
    let variables = command::variables(&args.env)?;
    let give = |text: &String| {
        let text = command::with_environment(text, &variables);
        Scripted::give(&text, args.share.as_deref())
    };
    let scripted = args.command.as_ref().map(give).transpose()?;
    let (input, console) = (Input::default(), Console::default());
    // A command has the machine to itself: its input is in a file.
    let terminal = (scripted.is_none()).then(|| Terminal::open(input.clone(), leave.clone()));
    let attended = terminal.as_ref().is_some_and(|terminal| !terminal.has_ended());
    let mut system = System::new(MachineOptions {
        harts: harts(count)?,
        console: Output::new(Box::new(console.clone())),
        input: Some(input.clone()),
        drives: &args.drive,
        write_drives: true,
        threads: args.threads,
        hart_order: args.hart_order,
        translator: args.translator,
        epoch: args.clock.seconds(),
        share: scripted.as_ref().map(Scripted::share).or(args.share.as_deref()),
        net: net::of(args.net, &args.hostfwd)?,
        virtio_legacy: args.virtio_legacy,
        live: attended || args.net != Net::None,
        ..MachineOptions::new(memory, &preset)
    })?;
    let mut region = None;
    let engine = match saved {
        Some(saved) => {
            let (engine, context) = saved.load(&mut system, args.mode, &preset)?;
            region = Some(context.region);
            engine
        }
        None => {
            let [dir, firmware, kernel] = parts(args)?;
            let files = GuestFiles::resolve(dir, firmware, kernel, args.initrd.as_deref())?;
            let (net, append) = (net::boot_argument(args.net), &args.append);
            let bootargs = format!("console=ttyS0 earlycon=sbi {PANIC_ARGUMENT}{net}{append}");
            system.load_guest(&files.read(memory)?, &bootargs)?;
            system.engine(args.mode, &preset)
        }
    };
    let mut session = Session::with_engine(system, engine, &preset, Recording::default());
    if let Some(region) = &region {
        session.resume_region(region)?;
    }

    let start = Instant::now();
    let mut debugger = args.gdb.map(Debugger::listen).transpose()?;
    if let Some(debugger) = &mut debugger {
        debugger.keep_beginning(&mut session, args.mode);
        debugger.wait()?;
    }
    let max_idle = spec::Run::default().max_idle_seconds();
    let watch = Watch::new(session.system(), max_idle, args.restore.is_some());
    let mut terminal_observer = TerminalObserver {
        leave: &leave,
        terminal: terminal.as_ref(),
        console: &console,
        attended,
        // A guest with a network may still get a packet, and one with a debugger may still be changed.
        may_be_deserted: args.net == Net::None && debugger.is_none(),
        has_network: args.net != Net::None,
        max_instructions: args.max_insts,
        slice: if debugger.is_some() { gdb::POLL_INSTRUCTIONS } else { SLICE },
        watch,
        asleep: Duration::ZERO,
        standstill: None,
    };
    let mut observer = UnderDebugger::new(debugger.as_mut(), &mut terminal_observer);
    let stop = session.run_until(&Goal::END, &mut observer)?;
    let exit = match (observer.end, stop) {
        (Some(gdb::End::Guest(exit)), _) | (_, Stop::Exit(exit)) => Some(exit),
        _ => None,
    };
    let TerminalObserver { asleep, standstill, .. } = terminal_observer;
    drop(terminal);
    let by_signal = leave.notice();
    if let Some(path) = &args.save {
        match exit {
            None => session.save(path, Vec::new(), Vec::new())?,
            Some(_) => eprintln!("tipsim: nothing saved: the guest has ended"),
        }
    }
    let system = session.system();
    let instructions = system.harts.instructions();
    let awake = start.elapsed().saturating_sub(asleep + system.asleep());
    let awake = awake.as_secs_f64();
    let mode = if args.mode == Mode::Timing { "timing" } else { "functional" };
    let cycles = system.harts.first().cycle();
    // Everything that the guest printed is there before anything is said of it.
    drop(session);
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

/// Looks after a machine on a terminal: its input, its limits, and whether anything will happen yet.
struct TerminalObserver<'a> {
    leave: &'a SessionEnd,
    terminal: Option<&'a Terminal>,
    console: &'a Console,
    /// Somebody may still type something.
    attended: bool,
    /// Nobody but the terminal can do something for the guest.
    may_be_deserted: bool,
    has_network: bool,
    max_instructions: Option<u64>,
    /// Instructions between two looks at the terminal.
    slice: u64,
    watch: Watch,
    /// Time in which the guest waited for the host.
    asleep: Duration,
    standstill: Option<Standstill>,
}

impl Observer for TerminalObserver<'_> {
    type Error = anyhow::Error;

    fn slice(&mut self, _: &Session) -> u64 {
        self.slice
    }

    fn before_slice(&mut self, session: &mut Session) -> anyhow::Result<Flow> {
        let instructions = session.system().harts.instructions();
        let is_over = self.max_instructions.is_some_and(|most| instructions >= most);
        Ok(if self.leave.is_asked() || is_over { Flow::End } else { Flow::Default })
    }

    fn after_slice(&mut self, session: &mut Session, exit: RunExit) -> anyhow::Result<Flow> {
        if self.attended && self.terminal.is_some_and(Terminal::has_ended) {
            self.attended = false;
            if !self.has_network {
                session.system_mut().run_ahead();
            }
        }
        let deserted = !self.attended && self.may_be_deserted;
        let console = self.console;
        self.standstill = match exit {
            RunExit::Idle if deserted => Some(Standstill::Asleep),
            RunExit::Limit if deserted => self.watch.look(session.system_mut(), || console.tail()),
            _ => None,
        };
        if self.standstill.is_some() {
            return Ok(Flow::End);
        }
        match exit {
            RunExit::Exit(_) => return Ok(Flow::Default),
            RunExit::Idle => {
                std::thread::sleep(IDLE_SLEEP);
                self.asleep += IDLE_SLEEP;
            }
            RunExit::Stuck(stuck) => {
                let text = describe_stuck(session.system_mut(), &stuck);
                // A stuck guest retires nothing any more: no limit would ever be reached.
                let over = deserted || self.max_instructions.is_some();
                if over && session.system().harts.len() == 1 {
                    self.standstill = Some(Standstill::Stuck(text));
                    return Ok(Flow::End);
                }
                // A terminal in raw mode needs the carriage return.
                eprint!("tipsim: the guest goes on, but gets nowhere: {text}\r\n");
            }
            RunExit::Limit | RunExit::Paused | RunExit::Region(_) | RunExit::Debug(_) => {}
        }
        Ok(Flow::GoOn)
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
