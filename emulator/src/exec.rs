//! `tipsim exec`: bare-metal ELFs under HTIF, as the public test suites expect it.

use std::io::Write;
use std::time::Instant;

use machine::{
    Elf, ElfSymbols, Exit, Htif, Image, Limit, Output, RAM_BASE, Ram, ResetState, RunExit,
    signature,
};

use crate::cli::ExecArgs;
use crate::epoch::Epoch;
use crate::failure::{BadInput, bad_input};
use crate::gdb;
use crate::spec::{Threads, parse_size};
use crate::system::{Setup, System, harts};

/// Runs the ELF; the exit status is the test's.
pub fn exec(args: &ExecArgs) -> anyhow::Result<u8> {
    let memory = parse_size(&args.memory).map_err(|e| BadInput(format!("--memory: {e}")))?;
    let preset = crate::core_cmd::load(&args.core, &args.set)?;
    let bytes = std::fs::read(&args.elf).map_err(|e| bad_input(&args.elf, e))?;
    let mut system = System::new(Setup {
        memory,
        harts: harts(args.harts, args.gdb.is_some())?,
        preset: &preset,
        console: Output::new(Box::new(std::io::stdout())),
        input: None,
        drives: &[],
        write_drives: false,
        threads: Threads::default(),
        translator: args.translator,
        epoch: Epoch::Fixed.seconds(),
        share: None,
        net: None,
        live: false,
    })?;
    let name = args.elf.display().to_string();
    let bus = &mut system.board.bus;
    let elf = Elf::load(
        Image {
            name: &name,
            bytes: &bytes,
        },
        RAM_BASE,
        &mut bus.ram,
    )
    .map_err(|e| BadInput(e.to_string()))?;
    let symbols = elf.symbols;
    match symbols.tohost {
        Some(tohost) => {
            bus.attach_htif(Htif::new(
                tohost,
                symbols.fromhost,
                Box::new(std::io::stdout()),
            ));
        }
        None => tracing::warn!(
            "{name}: no symbol `tohost`: the program can end by the test device only"
        ),
    }
    let wanted = match &args.signature {
        Some(file) => Some((file, signature_range(&name, &symbols, &bus.ram)?)),
        None => None,
    };
    system.reset(ResetState {
        pc: elf.entry,
        ..ResetState::default()
    });
    system.permit_all_memory();

    let mut engine = system.engine(args.mode, &preset);
    let start = Instant::now();
    let mut exit = None;
    if let Some(port) = args.gdb {
        exit = match gdb::serve(port, &mut system, &mut engine)? {
            gdb::End::Guest(exit) => Some(RunExit::Exit(exit)),
            gdb::End::Killed => anyhow::bail!("killed by the debugger"),
            gdb::End::Detached => None,
        };
    }
    let exit = exit.unwrap_or_else(|| system.run(&mut engine, Limit::instructions(args.max_insts)));
    std::io::stdout().flush()?;
    if args.stats {
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
    }
    let code = match exit {
        RunExit::Exit(Exit::Host(code)) => code,
        RunExit::Exit(Exit::PowerOff(code)) => code.into(),
        RunExit::Exit(Exit::Reset) => 0,
        RunExit::Idle => anyhow::bail!("{name}: sleeps in wfi and nothing can wake it"),
        RunExit::Limit | RunExit::Mount | RunExit::Region(_) | RunExit::Debug(_) => {
            anyhow::bail!("{name}: not done after {} instructions", args.max_insts)
        }
    };
    let status = u8::try_from(code).unwrap_or_else(|_| {
        eprintln!(
            "tipsim: {name}: exit code {}: the exit status is 255",
            code as i64
        );
        255
    });
    if let Some((file, (begin, end))) = wanted {
        let text = signature(
            &system.board.bus.ram,
            begin,
            end,
            args.signature_granularity.get(),
        )
        .expect("checked before the run");
        std::fs::write(file, text).map_err(|e| bad_input(file, e))?;
    }
    Ok(status)
}

/// Where the signature is: a program without one is better told so before it runs than after.
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
        .ok_or_else(|| {
            BadInput(format!(
                "{name}: signature {begin:#x}..{end:#x} is not in memory"
            ))
        })
}
