//! `tipsim exec`: bare-metal ELFs under HTIF, as the public test suites expect it, or with semihosting.

use std::io::Write;
use std::path::Path;
use std::time::Instant;

use devices::{Exit, Output, signature};
use machine::RunExit;
use simulation::{
    Flow, Goal, InputWatch, MachineOptions, Observer, Recording, Session, Stop, System,
    describe_stuck,
};

use super::run::run;
use crate::cli::{ExecArgs, Made, RunArgs};
use crate::experiment::input::{MADE_INPUT, standard_input};
use crate::failure::{BadInput, bad_input, write_whole};
use crate::gdb::{self, Debugger, UnderDebugger};
use crate::guest_files::program::{Program, ProgramArguments, ProgramConsole};
use crate::run_folder::EXEC_SPEC;
use crate::spec::epoch::Epoch;
use crate::spec::{HartOrder, Mode, Region, harts, parse_memory};

/// Runs the ELF; the exit status is the test's.
pub(crate) fn exec(args: &ExecArgs) -> anyhow::Result<u8> {
    match &args.out {
        Some(out) => record(args, out),
        None => execute(args),
    }
}

/// Runs the ELF as an experiment: with trace, profilers and report.
fn record(args: &ExecArgs, out: &Path) -> anyhow::Result<u8> {
    if args.mode == Some(Mode::Functional) {
        let error = "--out: expected --mode timing with it, as only what is timed can be profiled; found functional";
        return Err(BadInput(error.to_owned()).into());
    }
    if args.max_insts == 0 {
        return Err(BadInput("--max-insts: expected at least 1 with --out, found 0".into()).into());
    }
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let input = standard_input()?;
    let name = args.elf.file_stem().unwrap_or_default().to_string_lossy();
    let mut table = toml::toml! {
        [[sampler]]
        profiler = "all"
        period = 199
    };
    let mut section = |name: &str, keys: Vec<(&str, toml::Value)>| {
        let keys = keys.into_iter().map(|(key, value)| (key.to_owned(), value));
        table.insert(name.to_owned(), toml::Table::from_iter(keys).into());
    };
    let mut guest: Vec<(&str, toml::Value)> = vec![
        ("program", absolute(&args.elf).display().to_string().into()),
        ("arguments", args.arguments.clone().into()),
        ("harts", i64::from(args.harts).into()),
        ("memory", args.memory.clone().into()),
    ];
    if let Some(folder) = &args.semihosting {
        guest.push(("semihosting", absolute(folder).display().to_string().into()));
    }
    section("guest", guest);
    let core = Path::new(&args.core);
    let core =
        if core.is_file() { absolute(core).display().to_string() } else { args.core.clone() };
    section("core", vec![("preset", core.into())]);
    let region = if args.marked { Region::Marked } else { Region::Run };
    let most = i64::try_from(args.max_insts).unwrap_or(i64::MAX);
    let mut keys: Vec<(&str, toml::Value)> =
        vec![("region", toml::Value::try_from(region)?), ("max_instructions", most.into())];
    if args.hart_order != HartOrder::default() {
        keys.push(("hart_order", toml::Value::try_from(args.hart_order)?));
    }
    if input.is_some() {
        keys.push(("input", MADE_INPUT.into()));
    }
    section("run", keys);
    section("record", vec![("counters", true.into())]);
    table.insert("name".to_owned(), name.as_ref().into());
    let of_core = |set: &String| match set.strip_prefix("core.") {
        Some(_) => set.clone(),
        None => format!("core.{set}"),
    };
    let status = run(&RunArgs {
        spec: out.join(EXEC_SPEC),
        set: args.set.iter().map(of_core).collect(),
        out: out.to_owned(),
        guest_dir: None,
        debuginfod: None,
        console: false,
        gdb: args.gdb,
        self_profile: false,
        made: Some(Made {
            spec: toml::to_string(&table)?,
            input,
            has_default_out: false,
            prints: true,
        }),
        brief: true,
    })?;
    println!("report: {}", out.join("report.html").display());
    Ok(status)
}

fn execute(args: &ExecArgs) -> anyhow::Result<u8> {
    let memory = parse_memory(&args.memory).map_err(|e| BadInput(format!("--memory: {e}")))?;
    let preset = super::core::load(&args.core, &args.set)?;
    let program = Program::read(&args.elf)?;
    let name = program.name();
    let mode = args.mode.unwrap_or(Mode::Functional);
    if args.counters.is_some() && mode != Mode::Timing {
        return Err(BadInput("--counters: expected --mode timing".to_owned()).into());
    }
    if args.hart_order != HartOrder::default() && mode != Mode::Timing {
        return Err(BadInput("--hart-order: expected --mode timing".to_owned()).into());
    }
    let mut system = System::new(MachineOptions {
        harts: harts(args.harts)?,
        console: Output::new(Box::new(std::io::stdout())),
        threads: args.threads,
        hart_order: args.hart_order,
        translator: args.translator,
        epoch: Epoch::Fixed.seconds(),
        ..MachineOptions::new(memory, &preset)
    })?;
    let given =
        ProgramArguments { arguments: args.arguments.clone(), files: args.semihosting.clone() };
    let symbols = program.load(&mut system, &given, ProgramConsole::standard)?;
    let wanted = match &args.signature {
        Some(file) => {
            let ram = &system.board.bus.ram;
            Some((file, program.signature_range(&symbols, ram)?))
        }
        None => None,
    };
    // Only counts depend on the region, which needs the timing core.
    let region = if mode == Mode::Timing { Region::Command } else { Region::Run };
    let all_events = args.counters.is_some();
    let recording = Recording { all_events, region, ..Recording::default() };
    let mut session = Session::new(system, &preset, recording, mode)?;

    let start = Instant::now();
    let mut debugger = args.gdb.map(Debugger::listen).transpose()?;
    if let Some(debugger) = &mut debugger {
        debugger.keep_beginning(&mut session, mode);
        debugger.wait()?;
    }
    let goal = Goal::instructions(args.max_insts);
    let mut program_observer = ProgramObserver {
        input: InputWatch::default(),
        waits: false,
        slice: if debugger.is_some() { gdb::POLL_INSTRUCTIONS } else { u64::MAX },
    };
    let mut observer = UnderDebugger::new(debugger.as_mut(), &mut program_observer);
    let stop = session.run_until(&goal, &mut observer)?;
    let stop = match observer.end {
        Some(gdb::End::Guest(exit)) => Stop::Exit(exit),
        Some(gdb::End::Killed) => anyhow::bail!("killed by the debugger"),
        _ => stop,
    };
    std::io::stdout().flush()?;
    if args.stats {
        statistics(&session, start)?;
    }
    if let Some(file) = &args.counters {
        write_whole(file, serde_json::to_string_pretty(&session.region_counts())? + "\n")?;
    }
    let system = session.system_mut();
    let code = match stop {
        Stop::Exit(Exit::Host(code)) => code,
        Stop::Exit(Exit::PowerOff(code)) => code.into(),
        Stop::Exit(Exit::Reset) => 0,
        _ => {
            let waits = program_observer.waits;
            let (why, (pc, rest)) =
                unfinished(&stop, waits, system, args, symbols.tohost.is_some());
            anyhow::bail!("{name}: {why}{}{rest}", program.place(pc))
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

/// Returns why a program has not ended, with the address that the text ends with and what follows it.
fn unfinished(
    stop: &Stop,
    waits: bool,
    system: &mut System,
    args: &ExecArgs,
    has_tohost: bool,
) -> (String, (u64, String)) {
    let pc = system.harts.first().pc();
    match stop {
        Stop::Idle => {
            let why = "sleeps in wfi and nothing can wake it: hart 0 is at ";
            (why.to_owned(), (pc, String::new()))
        }
        Stop::Stuck(stuck) => {
            let why = format!("{}; that is ", describe_stuck(system, stuck));
            (why, (stuck.first.pc, String::new()))
        }
        _ if waits => {
            let why = "waits for console input, which is at its end: hart 0 is at ";
            (why.to_owned(), (pc, String::new()))
        }
        _ => {
            let (hart, bus) = system.hart_and_bus(0);
            let turn = if hart.jumps_to_itself(bus) { ", a jump to itself" } else { "" };
            let end = match has_tohost {
                true => "",
                false => {
                    "; it has no symbol `tohost`: it can end by semihosting or the test device"
                }
            };
            let why = format!("not done after {} instructions: hart 0 is at ", args.max_insts);
            (why, (pc, format!("{turn}{end}")))
        }
    }
}

/// Looks whether a program still does something.
struct ProgramObserver {
    input: InputWatch,
    /// The program waits for input, which is at its end.
    waits: bool,
    /// Most instructions of a slice.
    slice: u64,
}

impl Observer for ProgramObserver {
    type Error = anyhow::Error;

    fn slice(&mut self, session: &Session) -> u64 {
        self.slice.min(self.input.slice(session.system()))
    }

    fn after_slice(&mut self, session: &mut Session, _: RunExit) -> anyhow::Result<Flow> {
        self.waits = self.input.look(session.system());
        Ok(if self.waits { Flow::End } else { Flow::Default })
    }
}

fn statistics(session: &Session, start: Instant) -> anyhow::Result<()> {
    let harts = &session.system().harts;
    let (cycles, instructions) = (harts.first().cycle(), harts.instructions());
    let mips = instructions as f64 / start.elapsed().as_secs_f64() / 1e6;
    eprintln!("{instructions} instructions, {cycles} cycles, {mips:.1} MIPS");
    if harts.len() > 1 {
        for (hart, (instructions, cycles)) in harts.positions().enumerate() {
            eprintln!("hart {hart}: {instructions} instructions, {cycles} cycles");
        }
    }
    for stats in session.stats() {
        eprintln!("{}", serde_json::to_string(&stats)?);
    }
    Ok(())
}
