//! `tipsim run`: a whole experiment.

mod boot;
pub mod command;
mod description;
mod jit;
mod laps;
mod outcome;
mod progress;
pub mod region;
mod share;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use ::truth::SharedLines;
use commit_trace::{Event, recordings};
use critical_path::{CoreDescription, Delays, Widths};
use devices::Output;
use machine::{Limit, Mark, RunExit};
use profile::Sampler;
use timing::Preset;
use user_net::UserNet;

use crate::cli::{Made, RunArgs};
use crate::counts::RegionCounts;
use crate::ends::{PANIC_ARGUMENT, Standstill, Watch};
use crate::failure::{BadInput, bad_input};
use crate::gdb::{self, Debugger};
use crate::guest::GuestFiles;
use crate::host_memory;
use crate::input::{self, MADE_INPUT};
use crate::net;
use crate::packages::{DebianImage, Packages};
use crate::results::{CONSOLE, PROFILE_SPEC, RUN, Work};
use crate::samplers::samplers;
use crate::self_profile::{Samples, SelfProfile};
use crate::spec::{self, GuestImage, Mode, Net, PROFILE_OPTIONS, Region, Spec};
use crate::stream::{Host, IN_FLIGHT, StreamClosed};
use crate::stuck;
use crate::system::{Engine, Setup, System};
use crate::truth::Collected;
use crate::uncore::UncoreRegion;
use boot::Boot;
use description::metadata;
use laps::Laps;
use outcome::{Outcome, Reports};
use progress::Progress;
use region::Regions;
use share::Share;

/// Instructions between two looks at the outside world, some tenths of a second: a core's thread begins anew after each.
/// Part of what makes runs equal: where the hart pauses must not depend on the host (but with a network).
const SLICE: u64 = 1 << 22;

/// Exit status of a program that SIGINT ended, as shells have it.
const STATUS_OF_INTERRUPT: u8 = 130;

/// Longest kernel command line (Linux's COMMAND_LINE_SIZE on RISC-V, less the terminator).
const MAX_BOOTARGS: usize = 1023;

/// Boots the disk of `guest-sw/debian-image`, up to the run's command: `systemd-init` is in the guest of `guest-sw/build --systemd`.
const SYSTEMD_ARGS: &str = "rdinit=/systemd-init systemd.unit=tipsim.target systemd.mask=serial-getty@ttyS0.service \
    systemd.show_status=no quiet TERM=dumb ";

/// Everything that a run needs, checked before anything is written.
struct Plan {
    spec: Spec,
    preset: Preset,
    files: GuestFiles,
    samplers: Vec<Sampler>,
    /// Packages of `guest.packages`, if there are any and they are not on a disk.
    packages: Option<Packages>,
    /// The disk of `guest.image`, if that is Debian's.
    image: Option<DebianImage>,
    /// Disks, the system's first.
    drives: Vec<PathBuf>,
    bootargs: String,
    memory: u64,
    /// Bytes of the host's memory that this process may have in use.
    host_memory: u64,
    /// Unix time at reset, in seconds.
    epoch: u64,
    /// Addresses of debuginfod servers for the report's names; none if empty.
    debuginfod: String,
}

/// Runs the experiment; the exit status is that of the guest's command.
pub fn run(args: &RunArgs) -> anyhow::Result<u8> {
    Work::check(&args.out)?;
    let plan = Plan::new(args)?;
    if plan.spec.run.boot == Mode::Functional && plan.spec.run.region == Region::Run {
        eprintln!(
            "tipsim: note: run.boot = \"functional\" without run.region: nothing is timed, and nothing is profiled; \
             run.region = \"command\" profiles the command"
        );
    }
    if args.made.as_ref().is_some_and(|made| made.has_default_out) && args.out.join(RUN).exists() {
        let out = args.out.display();
        eprintln!("tipsim: note: the run before in {out} is replaced; --out DIR keeps both");
    }
    let net = net::of(plan.spec.guest.net, &plan.spec.forwards()?)?;
    let stop = Arc::new(AtomicBool::new(false));
    let on_signal = Arc::clone(&stop);
    ctrlc::set_handler(move || on_signal.store(true, Ordering::Relaxed))?;

    let mut work = Work::begin(&args.out)?;
    let repeated = match &args.made {
        Some(_) => None,
        None => repeated(args, &plan.spec)?,
    };
    let mut input: Option<Box<dyn Read>> = None;
    if let Some(made) = args.made.as_ref().or(repeated.as_ref()) {
        let name = args.spec.file_name().unwrap_or_default();
        work.results().write(&name.to_string_lossy(), made.spec.as_bytes())?;
        if let Some(content) = &made.input {
            work.results().write(MADE_INPUT, content)?;
            input = Some(Box::new(&content[..]));
        }
    }
    let begun = serde_json::to_vec_pretty(&outcome::begun(&plan))?;
    work.results().write(RUN, &begun)?;
    let share = Share { path: work.guest_files() };
    share.give(&plan.spec.run.files)?;
    let run = &plan.spec.run;
    let command =
        run.command.as_deref().map(|command| command::with_environment(command, &run.env));
    let command = command.as_deref();
    if let (None, Some(file)) = (&input, &plan.spec.run.input) {
        input = Some(Box::new(File::open(file).map_err(|e| bad_input(file, e))?));
    }
    let input = input.as_mut().map(|input| &mut **input as &mut dyn Read);
    command::give(&share.path, command, input)?;
    // What the guest sees of the folder does not depend on when it was made.
    share.made_at(&[command::COMMAND, command::INPUT, ""], plan.epoch)?;
    share.fix_modes()?;
    let mut outcome = simulate(&plan, args, &work, net, &stop)?;
    jit::keep(&plan.spec.run.files, &share.path);
    share.take_back(&plan.spec.run.files);
    command::take_back(&share.path);
    let part = outcome.part();
    let written = outcome.write(&plan, work.results(), part.as_deref());
    let unwritten = written.as_ref().err().map(|error| format!("{error:#}"));
    let (place, published) = work.publish(part.or(unwritten).as_deref());
    // Nobody may read what is printed, which ends the program: the results are in their place by then.
    if let Err(error) = &published {
        eprintln!("tipsim: {error:#}");
    }
    let reports = match written {
        Ok(reports) => reports,
        // What failed first is why the rest does.
        Err(error) if !outcome.failed() => return Err(error),
        Err(_) => Reports::default(),
    };
    // What went wrong is told before what took how long.
    outcome.tell_failure(&place);
    print!("{}", if args.brief { reports.verdict } else { reports.text });
    let status = outcome.verdict(&args.out, &place)?;
    published?;
    // The run was over before the signal came; a script that has more of them shall end.
    Ok(match stop.load(Ordering::Relaxed) {
        true if status == 0 => STATUS_OF_INTERRUPT,
        _ => status,
    })
}

/// The spec of `tipsim profile` that is to be run again into its own folder: it stays beside the results, with its input.
fn repeated(args: &RunArgs, spec: &Spec) -> anyhow::Result<Option<Made>> {
    let real = |path: &Path| path.canonicalize().ok();
    let folder = real(&args.out);
    let own = |path: &Path| {
        folder.is_some() && real(path).as_deref().and_then(Path::parent) == folder.as_deref()
    };
    let read = |path: &Path| std::fs::read(path).map_err(|e| bad_input(path, e));
    if !own(&args.spec) || args.spec.file_name() != Some(PROFILE_SPEC.as_ref()) {
        return Ok(None);
    }
    let text = String::from_utf8(read(&args.spec)?).map_err(|e| bad_input(&args.spec, e))?;
    let input = spec.run.input.as_deref().filter(|input| own(input));
    Ok(Some(Made { spec: text, input: input.map(read).transpose()?, has_default_out: false }))
}

impl Plan {
    fn new(args: &RunArgs) -> anyhow::Result<Self> {
        let spec = match &args.made {
            Some(made) => Spec::parse(&made.spec, &args.spec, &args.set, &PROFILE_OPTIONS)?,
            None => Spec::load(&args.spec, &args.set)?,
        };
        let of = spec::Source {
            path: &args.spec,
            set: &args.set,
            options: match args.made {
                Some(_) => &PROFILE_OPTIONS,
                None => &[],
            },
        };
        let at = |e: BadInput| of.blame(&e);
        let preset = crate::core_cmd::of_spec(&spec.core).map_err(at)?;
        let clock_hz = f64::from(preset.clock.mhz) * 1e6;
        let samplers = samplers(&spec.sampler, clock_hz);
        let samplers = samplers.map_err(BadInput).map_err(at)?;
        let guest = &spec.guest;
        let readable = |file: &PathBuf| {
            let opened = std::fs::File::open(file).map_err(|e| bad_input(file, e));
            opened.map(drop)
        };
        let named = guest.drive.iter().chain(&spec.run.files);
        { named }.try_for_each(readable)?;
        let kept = args.made.as_ref().is_some_and(|made| made.input.is_some());
        if let Some(input) = spec.run.input.as_ref().filter(|_| !kept) {
            input::check(input)?;
        }
        let memory = spec::parse_memory(&guest.memory).map_err(BadInput).map_err(at)?;
        host_memory::check("guest.memory", memory).map_err(|e| of.blame(&e))?;
        let asked = spec.run.host_memory.as_deref().map(spec::parse_size);
        let asked = asked.transpose().map_err(|e| at(BadInput(format!("run.host_memory: {e}"))))?;
        let system = match guest.image {
            GuestImage::Minimal => "",
            GuestImage::Debian => SYSTEMD_ARGS,
        };
        let bootargs = format!(
            "console=ttyS0 earlycon=sbi {PANIC_ARGUMENT}{system}{}{}",
            net::boot_argument(guest.net),
            guest.append
        );
        if bootargs.len() > MAX_BOOTARGS {
            return Err(at(BadInput(format!(
                "guest.append: expected a kernel command line of at most {MAX_BOOTARGS} bytes, found {}",
                bootargs.len()
            )))
            .into());
        }
        // A script may have to make the image, which takes minutes.
        let image = (guest.image == GuestImage::Debian).then(|| DebianImage::find(&guest.packages));
        let image = image.transpose().map_err(at)?;
        let files = GuestFiles::resolve(
            image.as_ref().map(|image| image.guest.as_path()).or(args.guest_dir.as_deref()),
            guest.firmware.as_deref(),
            guest.kernel.as_deref(),
            guest.initrd.as_deref(),
        )?;
        let parts = [Some(&files.firmware), files.kernel.as_ref(), files.initrd.as_ref()];
        parts.into_iter().flatten().try_for_each(readable)?;
        let disk = image.iter().map(|image| image.disk.clone());
        let drives: Vec<PathBuf> = disk.chain(guest.drive.iter().cloned()).collect();
        let epoch = spec.guest.clock.seconds();
        // Last: it may take minutes.
        let unpacked = image.is_none() && !spec.guest.packages.is_empty();
        let packages = unpacked.then(|| Packages::find(&spec.guest.packages));
        let packages = packages.transpose().map_err(at)?;
        Ok(Self {
            spec,
            preset,
            files,
            samplers,
            packages,
            image,
            drives,
            bootargs,
            memory,
            host_memory: host_memory::bound(asked),
            epoch,
            debuginfod: args.debuginfod.clone().unwrap_or_default(),
        })
    }

    /// Name, version and SHA-256 of each of Debian's packages in the guest.
    fn package_list(&self) -> Option<&[String]> {
        let unpacked = self.packages.iter().map(|packages| &packages.list[..]);
        let installed = self.image.iter().map(|image| &image.list[..]);
        unpacked.chain(installed).next()
    }
}

/// Boots and runs to the end, with the host's side on a thread of its own.
fn simulate(
    plan: &Plan,
    args: &RunArgs,
    work: &Work,
    net: Option<UserNet>,
    stop: &AtomicBool,
) -> anyhow::Result<Outcome> {
    let console = work.create(CONSOLE)?;
    let mut console = progress::Console::new(console, &work.path().join(CONSOLE), args.console);
    let share = work.guest_files();
    let (output, mut net) = (console.clone(), net);
    let mut make = || {
        System::new(Setup {
            memory: plan.memory,
            harts: plan.spec.guest.harts as usize,
            preset: &plan.preset,
            console: Output::new(Box::new(output.clone())),
            input: None,
            drives: &plan.drives,
            write_drives: false,
            translator: plan.spec.run.translator,
            threads: plan.spec.run.threads,
            epoch: plan.epoch,
            share: Some(&share),
            packages: plan.packages.as_ref().map(|packages| packages.root.as_path()),
            // A machine that is made once more has no network: there is no checkpoint of a machine with one.
            net: net.take(),
            virtio_legacy: false,
            live: plan.spec.guest.net != Net::None,
        })
    };
    let mut system = make()?;
    let boot = Boot::start(plan, &mut system, &mut console, make)?;
    let record = &plan.spec.record;
    if record.interpreters && (record.trace || record.profilers) {
        system.look_at_interpreters();
    }
    // The description reads all files that boot, which is not a part of the run's time.
    let described = plan.spec.record.trace.then(|| metadata(plan)).transpose()?;

    let mut host = None;
    let lines = SharedLines::new(system.harts());
    let start = |system: &System, host: &mut Option<Host>| {
        let mut engine = timing(plan, work, described.as_deref(), system, host)?;
        if plan.spec.record.truth {
            engine.collect_truth(&lines, plan.spec.run.region.is_marked());
        }
        if plan.spec.record.excerpts && plan.spec.record.profilers {
            engine.take_excerpts(core_description(&plan.preset), plan.spec.run.region.is_marked());
        }
        anyhow::Ok(engine)
    };
    let mut engine = match plan.spec.run.boot {
        Mode::Timing => start(&system, &mut host)?,
        Mode::Functional => Engine::FUNCTIONAL,
    };
    let boots_first = plan.spec.boots_functionally_first();
    system.stop_at_regions(true);
    let mut regions = Regions::new(plan.spec.run.region);
    let mut counts = RegionCounts::new(plan.spec.record.counters);
    let mut uncore = UncoreRegion::default();
    let mut command_at = None;
    let self_profile = args.self_profile.then(SelfProfile::start).transpose()?;

    let mut progress = Progress::new(Instant::now(), system.instructions());
    let mut laps = Laps::new(&system);
    system.stop_when_stuck(true);
    // A debugger may stop the guest for as long as it likes.
    let watched = args.gdb.is_none();
    let restored = boot.as_ref().is_some_and(Boot::is_restored);
    let mut watch = Watch::new(&system, plan.spec.run.max_idle_seconds(), restored);
    // The guest has mounted the shared folder, where its command waits for it.
    let mut mounted = restored;
    let mut end = None;
    let mut after = |system: &mut System, engine: &mut Engine, exit: RunExit| {
        progress.show(system.hart.cycle(), system.instructions());
        match exit {
            RunExit::Exit(exit) => end = Some(outcome::End::Guest(exit)),
            RunExit::Idle => end = Some(outcome::End::Standstill(Standstill::Asleep)),
            RunExit::Limit if stop.load(Ordering::Relaxed) => end = Some(outcome::End::Interrupted),
            RunExit::Limit if console.failure().is_some() => {
                end = Some(outcome::End::RecordingFailed);
            }
            RunExit::Limit if host.as_ref().is_some_and(Host::failed) => {
                end = Some(outcome::End::RecordingFailed);
            }
            RunExit::Limit if host_memory::in_use().is_some_and(|used| used > plan.host_memory) => {
                end = Some(outcome::End::HostMemory(plan.host_memory));
            }
            RunExit::Paused => {
                mounted = true;
                if let Some(boot) = &boot {
                    boot.save(plan, system, &console);
                }
            }
            RunExit::Limit if watched => {
                let found = watch.look(system, || console.tail());
                end = found.map(outcome::End::Standstill);
            }
            RunExit::Limit | RunExit::Debug(_) => {}
            RunExit::Stuck(stuck) => {
                let text = stuck::describe(system, &stuck);
                match watched && system.harts() == 1 {
                    true => end = Some(outcome::End::Standstill(Standstill::Stuck(text))),
                    // Another hart, or the debugger, may change memory.
                    false => tracing::warn!("the guest goes on, but gets nowhere: {text}"),
                }
            }
            RunExit::Region(mark) => {
                if mark == Mark::CommandStart {
                    command_at.get_or_insert(console.size());
                }
                let now = now(system);
                if let Some(event) = regions.take(mark, now) {
                    let (opens, anew) = (event != Event::Region(false), event == Event::RegionAnew);
                    system.uncore.follow(&mut uncore, opens, anew, now.0);
                    let stops = event == Event::Region(false);
                    if boots_first && stops == engine.is_timing() {
                        laps.lap(system, stops);
                    }
                    if boots_first && !stops && !engine.go_on(system.hart.cycle()) {
                        *engine = start(system, &mut host)?;
                    }
                    // A mark that one hart executes is for all of them.
                    engine.region(&event);
                    if plan.spec.run.region.is_marked() {
                        counts.region(&event, engine);
                    }
                    if boots_first && stops {
                        engine.rest();
                    }
                }
            }
        }
        let most = plan.spec.run.max_cycles;
        if end.is_none() && most != 0 && system.hart.cycle() >= most {
            end = Some(outcome::End::TooLong(most));
        }
        Ok(end.is_some())
    };
    let mut debugger = args.gdb.map(Debugger::listen).transpose()?;
    if let Some(debugger) = &mut debugger {
        debugger.wait()?;
    }
    loop {
        if let Some(debugger) = &mut debugger {
            let exit = match debugger.serve(&mut system, &mut engine, &mut after)? {
                Some(gdb::End::Guest(exit)) => Some(RunExit::Exit(exit)),
                Some(gdb::End::Killed) => {
                    stop.store(true, Ordering::Relaxed);
                    Some(RunExit::Limit)
                }
                Some(gdb::End::Caller) => break,
                Some(gdb::End::Detached) | None => None,
            };
            if let Some(exit) = exit {
                after(&mut system, &mut engine, exit)?;
                break;
            }
        }
        let exit = system.run(&mut engine, Limit::instructions(SLICE));
        if after(&mut system, &mut engine, exit)? {
            break;
        }
    }
    let has_command = plan.spec.run.command.is_some();
    let status = command::status(&share);
    let end = end.unwrap_or(outcome::End::Interrupted);
    let end = end.settled(has_command && status.is_none(), work.path());
    progress.end();
    let end_at = now(&system);
    let regions = regions.end(end_at);
    system.uncore.follow(&mut uncore, false, false, end_at.0);
    let uncore = system.uncore.describe(&uncore, system.harts(), end_at.0);

    let samples = self_profile.map(SelfProfile::stop);
    let timing = engine.is_timing();
    let stats = engine.stats().unwrap_or_default();
    let counts = counts.end(&engine);
    let tip_frozen_cycles = system.tip_frozen_cycles();
    let mut closed = engine.finish();
    let collectors = closed.as_mut().map_or_else(Vec::new, StreamClosed::take_truth);
    let excerpts = closed.as_mut().map_or_else(Vec::new, StreamClosed::take_excerpts);
    let truth = (!collectors.is_empty()).then_some(Collected {
        collectors,
        lines,
        units: system.sampled(),
    });
    if let Some(error) = closed.as_ref().and_then(StreamClosed::error) {
        tracing::error!("{error}");
    }
    let host =
        host.zip(closed).map(|(host, closed)| host.finish(closed, end.is_part())).transpose()?;
    // The lap includes the time in which the host's side read the rest.
    laps.lap(&system, timing);
    let parts = samples.map(Samples::parts).transpose()?;
    if let Some(stats) = stats.first() {
        laps.timing.cycles = stats.cycles;
    }
    let never_began = plan.spec.boots_functionally_first() && regions.count == 0;
    Ok(Outcome {
        end,
        never_began,
        has_command,
        mounted,
        status,
        console: console.failure(),
        command_at,
        regions,
        laps,
        parts,
        stats,
        counts,
        tip_frozen_cycles,
        uncore,
        truth,
        excerpts,
        host,
    })
}

/// The cycle of the hart that is furthest, since others may sleep, and the instructions of all.
fn now(system: &System) -> region::RunPosition {
    let cycle = system.each().map(|(_, cycle)| cycle).max();
    (cycle.unwrap_or(0), system.instructions())
}

/// The timing core from now on, and its recording, if there is to be one; `described`: what the trace says of the run.
fn timing(
    plan: &Plan,
    work: &Work,
    described: Option<&str>,
    system: &System,
    host: &mut Option<Host>,
) -> anyhow::Result<Engine> {
    let record = &plan.spec.record;
    let mut recorders = Vec::new();
    if record.trace || record.profilers {
        let starts: Vec<u64> = system.each().map(|(_, cycles)| cycles).collect();
        let (senders, stream) = recordings(&starts, IN_FLIGHT);
        recorders = senders;
        *host = Some(Host::start(
            &plan.spec,
            &plan.samplers,
            plan.preset.decode.width,
            work,
            described,
            stream,
        )?);
    }
    let spare_worker = host.as_ref().map(Host::spare_worker);
    let stages = record.stages && record.trace;
    let mut engine = system.timing(&plan.preset, recorders, stages, spare_worker);
    if record.counters {
        engine.count_all();
    }
    Ok(engine)
}

/// Returns what excerpts say of a core.
fn core_description(preset: &Preset) -> CoreDescription {
    CoreDescription {
        widths: Widths {
            decode: preset.decode.width,
            int: preset.issue.int_width,
            mem: preset.issue.mem_width,
            fp: preset.issue.fp_width,
        },
        delays: Delays {
            load_search: timing::delays::LOAD_SEARCH,
            store_data: timing::delays::STORE_DATA,
            branch_tag: timing::delays::BRANCH_TAG,
            register: timing::delays::REGISTER,
        },
    }
}
