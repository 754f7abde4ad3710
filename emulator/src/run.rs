//! `tipsim run`: a whole experiment.

mod boot;
mod description;
mod host;
mod laps;
mod outcome;
mod progress;
mod self_profile;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use commit_trace::recordings;
use machine::{Limit, Output, RunExit};
use profile::Sampler;
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};
use timing::Preset;
use user_net::UserNet;

use crate::cli::RunArgs;
use crate::failure::{BadInput, bad_input};
use crate::guest::GuestFiles;
use crate::net;
use crate::samplers::samplers;
use crate::spec::{self, Mode, Net, Spec};
use crate::system::{EPOCH_SECONDS, Engine, Setup, System};

use boot::Boot;
use description::metadata;
pub use host::Helper;
use host::Host;
use laps::Laps;
use outcome::Outcome;
use progress::Progress;
pub use self_profile::sample_this_thread;
use self_profile::{Samples, SelfProfile};

/// Instructions between two looks at the outside world, some tenths of a second: a core's thread begins anew after each.
/// Part of what makes runs equal: where the hart pauses must not depend on the host (but with a network).
const SLICE: u64 = 1 << 22;
/// Batches that may wait for the host's side: 4 MiB.
const IN_FLIGHT: usize = 128;

/// Longest kernel command line (Linux's COMMAND_LINE_SIZE on RISC-V, less the terminator).
const MAX_BOOTARGS: usize = 1023;

/// Where the guest finds its command in the shared folder, in base64.
const COMMAND: &str = ".tipsim-command";

/// Everything that a run needs, checked before anything is written.
struct Plan {
    spec: Spec,
    preset: Preset,
    files: GuestFiles,
    samplers: Vec<Sampler>,
    bootargs: String,
    memory: u64,
}

/// Runs the experiment; the exit status is that of the guest's command.
pub fn run(args: &RunArgs) -> anyhow::Result<u8> {
    let plan = Plan::new(args)?;
    let net = net::of(plan.spec.guest.net, &plan.spec.forwards()?)?;
    let stop = Arc::new(AtomicBool::new(false));
    let on_signal = Arc::clone(&stop);
    ctrlc::set_handler(move || on_signal.store(true, Ordering::Relaxed))?;

    std::fs::create_dir_all(&args.out).map_err(|e| bad_input(&args.out, e))?;
    let share = args.out.join("share");
    let _ = std::fs::remove_dir_all(&share);
    std::fs::create_dir_all(&share).map_err(|e| bad_input(&share, e))?;

    share_files(&plan.spec.run.files, &share)?;
    // What the guest sees of the folder does not depend on when it was made.
    let start = UNIX_EPOCH + Duration::from_secs(EPOCH_SECONDS);
    let command = share.join(COMMAND);
    if let Some(text) = &plan.spec.run.command {
        let encoded = base64::engine::general_purpose::STANDARD.encode(text);
        std::fs::write(&command, encoded + "\n").map_err(|e| bad_input(&command, e))?;
        set_modified(&command, start).map_err(|e| bad_input(&command, e))?;
    }
    set_modified(&share, start).map_err(|e| bad_input(&share, e))?;
    let outcome = simulate(&plan, args, &share, net, &stop)?;
    unshare_files(&plan.spec.run.files, &share);
    let _ = std::fs::remove_file(&command);
    collect(&share, &args.out)?;
    outcome.write(&plan, &args.out)?;
    outcome.verdict(&args.out)
}

impl Plan {
    fn new(args: &RunArgs) -> anyhow::Result<Self> {
        let spec = Spec::load(&args.spec, &args.set)?;
        let at = |e: BadInput| bad_input(&args.spec, e);
        let preset = crate::core_cmd::of_spec(&spec.core).map_err(at)?;
        let clock_hz = f64::from(preset.clock.mhz) * 1e6;
        let samplers = samplers(&spec.sampler, clock_hz);
        let samplers = samplers.map_err(BadInput).map_err(at)?;
        let guest = &spec.guest;
        let files = GuestFiles::resolve(
            args.guest_dir.as_deref(),
            guest.firmware.as_deref(),
            guest.kernel.as_deref(),
            guest.initrd.as_deref(),
        )?;
        let parts = [
            Some(&files.firmware),
            files.kernel.as_ref(),
            files.initrd.as_ref(),
        ];
        let named = guest.drive.iter().chain(&spec.run.files);
        for file in parts.into_iter().flatten().chain(named) {
            std::fs::File::open(file).map_err(|e| bad_input(file, e))?;
        }
        let bootargs = format!(
            "console=ttyS0 earlycon=sbi {}{}",
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
        let memory = spec::parse_size(&guest.memory)
            .map_err(BadInput)
            .map_err(at)?;
        Ok(Self {
            spec,
            preset,
            files,
            samplers,
            bootargs,
            memory,
        })
    }
}

/// Boots and runs to the end, with the host's side on a thread of its own.
fn simulate(
    plan: &Plan,
    args: &RunArgs,
    share: &Path,
    net: Option<UserNet>,
    stop: &AtomicBool,
) -> anyhow::Result<Outcome> {
    let mut console = progress::Console::create(&args.out.join("console.log"), args.console)?;
    let mut system = System::new(Setup {
        memory: plan.memory,
        harts: plan.spec.guest.harts as usize,
        preset: &plan.preset,
        console: Output::new(Box::new(console.clone())),
        input: None,
        drives: &plan.spec.guest.drive,
        write_drives: false,
        translator: plan.spec.run.translator,
        threads: plan.spec.run.threads,
        share: Some(share),
        net,
        live: plan.spec.guest.net != Net::None,
    })?;
    let boot = Boot::start(plan, &mut system, &mut console)?;
    // It reads all that boots: not a part of the run's time.
    let described = plan.spec.record.trace.then(|| metadata(plan)).transpose()?;

    let mut host = None;
    let start = |system: &System, host: &mut Option<Host>| {
        timing(plan, &args.out, described.as_deref(), system, host)
    };
    let mut engine = match plan.spec.run.boot {
        Mode::Timing => start(&system, &mut host)?,
        Mode::Functional => Engine::FUNCTIONAL,
    };
    let boots_first = plan.spec.boots_functionally_first();
    // A trigger that one hart executes is for all of them.
    system.stop_at_regions(boots_first || system.harts() > 1);
    let self_profile = args.self_profile.then(SelfProfile::start).transpose()?;

    let mut progress = Progress::new(Instant::now());
    let mut laps = Laps::new(&system);
    let end = loop {
        let exit = system.run(&mut engine, Limit::instructions(SLICE));
        progress.show(system.hart.cycle(), system.instructions());
        match exit {
            RunExit::Exit(exit) => break outcome::End::Guest(exit),
            RunExit::Idle => break outcome::End::Asleep,
            RunExit::Limit if stop.load(Ordering::Relaxed) => break outcome::End::Interrupted,
            RunExit::Limit if host.as_ref().is_some_and(Host::failed) => {
                break outcome::End::RecordingFailed;
            }
            RunExit::Mount => {
                if let Some(boot) = &boot {
                    boot.save(plan, &mut system, &console);
                }
            }
            RunExit::Limit | RunExit::Debug(_) => {}
            RunExit::Region(starts) => {
                if system.harts() > 1 && engine.is_timing() {
                    engine.region(starts);
                }
                if !boots_first {
                    continue;
                }
                laps.lap(&system, engine.is_timing());
                if !starts {
                    engine.rest();
                } else if !engine.go_on(system.hart.cycle()) {
                    engine = start(&system, &mut host)?;
                    engine.region(true);
                }
            }
        }
        let most = plan.spec.run.max_cycles;
        if most != 0 && system.hart.cycle() >= most {
            break outcome::End::TooLong(most);
        }
    };
    progress.end();

    let samples = self_profile.map(SelfProfile::stop);
    let timing = engine.is_timing();
    let stats = engine.stats().unwrap_or_default();
    let recorded = engine.finish();
    recorded.map_err(|e| tracing::error!("{e}")).ok();
    let host = host.map(Host::finish).transpose()?;
    // With what the host's side still had to read.
    laps.lap(&system, timing);
    let parts = samples.map(Samples::parts).transpose()?;
    if let Some(stats) = stats.first() {
        laps.timing.cycles = stats.cycles;
    }
    Ok(Outcome {
        end,
        laps,
        parts,
        stats,
        host,
    })
}

/// The timing core from now on, and its recording, if there is to be one; `described`: what the trace says of the run.
fn timing(
    plan: &Plan,
    out: &Path,
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
        *host = Some(Host::start(plan, out, described, stream)?);
    }
    let helper = host.as_ref().map(Host::helper);
    let stages = record.stages && record.trace;
    Ok(system.timing(&plan.preset, recorders, stages, helper))
}

/// Puts the host's files where the guest's command finds them.
fn share_files(files: &[PathBuf], share: &Path) -> anyhow::Result<()> {
    for file in files {
        let name = file
            .file_name()
            .ok_or_else(|| bad_input(file, "expected a file or folder with a name"))?;
        copy(file, &share.join(name)).map_err(|e| bad_input(file, e))?;
    }
    Ok(())
}

/// Copies a file, a link or a whole folder, with the times of their last change: the guest sees those.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    let metadata = std::fs::symlink_metadata(from)?;
    let kind = metadata.file_type();
    if kind.is_symlink() {
        std::os::unix::fs::symlink(std::fs::read_link(from)?, to)?;
    } else if kind.is_file() {
        std::fs::copy(from, to)?;
    } else if kind.is_dir() {
        std::fs::create_dir(to)?;
        for entry in std::fs::read_dir(from)? {
            let entry = entry?;
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
    } else {
        let what = format!(
            "expected files, folders and links, found something else: {}",
            from.display()
        );
        return Err(std::io::Error::other(what));
    }
    set_modified(to, metadata.modified()?)
}

/// Sets when a file, folder or link was last changed.
fn set_modified(path: &Path, time: SystemTime) -> std::io::Result<()> {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let time = Timespec {
        tv_sec: since.as_secs() as _,
        tv_nsec: since.subsec_nanos().into(),
    };
    let times = Timestamps {
        last_access: time,
        last_modification: time,
    };
    utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(())
}

/// Takes the host's files out of the shared folder again.
fn unshare_files(files: &[PathBuf], share: &Path) {
    for name in files.iter().filter_map(|file| file.file_name()) {
        let path = share.join(name);
        // The guest may have removed or replaced it.
        let _ = std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir_all(&path));
    }
}

/// Moves what the guest left in its shared folder to the output directory.
fn collect(share: &Path, out: &Path) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(share)? {
        let entry = entry?;
        let to = out.join(entry.file_name());
        if to.exists() {
            let _ = std::fs::remove_file(&to);
        }
        std::fs::rename(entry.path(), &to).map_err(|e| bad_input(&to, e))?;
    }
    std::fs::remove_dir(share)?;
    Ok(())
}
