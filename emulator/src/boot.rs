//! `tipsim boot`: an interactive machine on this terminal.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use devices::{Exit, Input, Output};
use machine::{Limit, RunExit};

use crate::checkpoint::{self, Checkpoint};
use crate::cli::BootArgs;
use crate::failure::BadInput;
use crate::gdb::{self, Debugger};
use crate::guest::GuestFiles;
use crate::host_memory;
use crate::net;
use crate::spec::{Mode, parse_size};
use crate::stuck;
use crate::system::{Setup, System, harts};
use crate::terminal::Terminal;

/// Instructions between two looks at the terminal.
const SLICE: u64 = 1_000_000;
/// Only the host can wake the guest: it looks this often.
const IDLE_SLEEP: Duration = Duration::from_millis(2);

/// Guest directory, firmware and kernel.
type Parts<'a> = [Option<&'a Path>; 3];

/// What the options name. A firmware of one's own, without a kernel, boots alone: it has its payload inside,
/// or is a whole system.
fn parts(args: &BootArgs) -> Result<Parts<'_>, BadInput> {
    let (dir, kernel) = (args.guest_dir.as_deref(), args.kernel.as_deref());
    match args.firmware.as_deref() {
        Some(firmware) if firmware == Path::new("none") => match kernel {
            Some(kernel) => Ok([None, Some(kernel), None]),
            None => Err(BadInput(
                "--firmware none: expected --kernel FILE with it".into(),
            )),
        },
        Some(firmware) if kernel.is_none() => Ok([None, Some(firmware), None]),
        firmware => Ok([dir, firmware, kernel]),
    }
}

/// Boots; the exit status is the guest's.
pub fn boot(args: &BootArgs) -> anyhow::Result<u8> {
    let saved = args.restore.as_deref().map(Checkpoint::open).transpose()?;
    let (mut memory, mut count) = (parse_size(&args.memory), args.harts);
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
    let input = Input::default();
    let mut system = System::new(Setup {
        memory,
        harts: harts(count)?,
        preset: &preset,
        console: Output::new(Box::new(std::io::stdout())),
        input: Some(input.clone()),
        drives: &args.drive,
        write_drives: true,
        threads: args.threads,
        translator: args.translator,
        epoch: args.clock.seconds(),
        share: args.share.as_deref(),
        packages: None,
        net: net::of(args.net, &args.hostfwd)?,
        virtio_legacy: args.virtio_legacy,
        live: true,
    })?;
    let mut engine = match saved {
        Some(saved) => saved.load(&mut system, args.mode, &preset)?.0,
        None => {
            let [dir, firmware, kernel] = parts(args)?;
            let files = GuestFiles::resolve(dir, firmware, kernel, args.initrd.as_deref())?;
            let (net, append) = (net::boot_argument(args.net), &args.append);
            let bootargs = format!("console=ttyS0 earlycon=sbi {net}{append}");
            system.load_guest(&files, &bootargs)?;
            system.engine(args.mode, &preset)
        }
    };

    let leave = Arc::new(AtomicBool::new(false));
    let terminal = Terminal::open(input, Arc::clone(&leave));
    let start = Instant::now();
    let mut asleep = Duration::ZERO;
    let mut debugger = args.gdb.map(Debugger::listen).transpose()?;
    if let Some(debugger) = &mut debugger {
        debugger.keep_beginning(&mut system, &mut engine, args.mode, &preset);
        debugger.wait()?;
    }
    system.stop_when_stuck(true);
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
        if leave.load(Ordering::Relaxed) {
            break None;
        }
        if args
            .max_insts
            .is_some_and(|most| system.instructions() >= most)
        {
            break None;
        }
        match system.run(&mut engine, Limit::instructions(slice)) {
            RunExit::Exit(exit) => break Some(exit),
            RunExit::Idle => {
                std::thread::sleep(IDLE_SLEEP);
                asleep += IDLE_SLEEP;
            }
            RunExit::Stuck(stuck) => {
                // A terminal in raw mode needs the carriage return.
                let text = stuck::describe(&mut system, &stuck);
                eprint!("tipsim: the guest goes on, but gets nowhere: {text}\r\n");
                // It retires nothing any more: the limit would never be reached.
                if args.max_insts.is_some() && system.harts() == 1 {
                    break None;
                }
            }
            RunExit::Limit | RunExit::Paused | RunExit::Region(_) | RunExit::Debug(_) => {}
        }
    };
    drop(terminal);
    if let Some(path) = &args.save {
        match exit {
            None => checkpoint::save(path, &mut system, &mut engine, &preset, &[])?,
            Some(_) => eprintln!("tipsim: nothing saved: the guest has ended"),
        }
    }
    let instructions = system.instructions();
    let awake = start.elapsed().saturating_sub(asleep + system.asleep());
    let awake = awake.as_secs_f64();
    let mode = if args.mode == Mode::Timing {
        "timing"
    } else {
        "functional"
    };
    eprintln!(
        "tipsim: {instructions} instructions, {} cycles, {:.1} MIPS ({mode})",
        system.hart.cycle(),
        instructions as f64 / awake.max(1e-9) / 1e6,
    );
    Ok(match exit {
        Some(Exit::PowerOff(code)) => u8::try_from(code).unwrap_or(255),
        Some(Exit::Host(code)) => u8::try_from(code).unwrap_or(255),
        Some(Exit::Reset) | None => 0,
    })
}
