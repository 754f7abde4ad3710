//! Everything that a run needs, checked before anything is written.

use std::path::PathBuf;

use phases::Point;
use profile::Sampler;
use simulation::{ChosenUnits, Goal, PANIC_ARGUMENT, RunPosition, System};
use timing::Preset;

use super::{End, input, net, points};
use crate::cli::RunArgs;
use crate::failure::{BadInput, bad_input};
use crate::guest_files::images::GuestFiles;
use crate::guest_files::packages::{DebianImage, Packages};
use crate::guest_files::program::Program;
use crate::host::memory;
use crate::spec::samplers::samplers;
use crate::spec::{self, GuestImage, PROFILE_OPTIONS, Spec};

/// Longest kernel command line (Linux's COMMAND_LINE_SIZE on RISC-V, less the terminator).
const MAX_BOOTARGS: usize = 1023;

/// Boots the disk of `guest-sw/debian-image`, up to the run's command: `systemd-init` is in the guest of `guest-sw/build --systemd`.
const SYSTEMD_ARGS: &str = "rdinit=/systemd-init systemd.unit=tipsim.target systemd.mask=serial-getty@ttyS0.service \
    systemd.show_status=no quiet TERM=dumb ";

/// Everything that a run needs, checked before anything is written.
pub(crate) struct Plan {
    pub spec: Spec,
    pub preset: Preset,
    pub files: GuestFiles,
    /// The bare-metal program, if that is all that boots.
    pub program: Option<Program>,
    pub samplers: Vec<Sampler>,
    /// Packages of `guest.packages`, if there are any and they are not on a disk.
    pub packages: Option<Packages>,
    /// The disk of `guest.image`, if that is Debian's.
    pub image: Option<DebianImage>,
    /// Disks, the system's first.
    pub drives: Vec<PathBuf>,
    pub bootargs: String,
    pub memory: u64,
    /// Bytes of the host's memory that this process may have in use.
    pub host_memory: u64,
    /// Unix time at reset, in seconds.
    pub epoch: u64,
    /// Addresses of debuginfod servers for the report's names; none if empty.
    pub debuginfod: String,
    /// Intervals of a sampled run that the spec's files name.
    pub points: Vec<Point>,
    /// Units of a sampled run, if a survey chose them.
    pub chosen: ChosenUnits,
}

impl Plan {
    pub(crate) fn new(args: &RunArgs) -> anyhow::Result<Self> {
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
        let preset = crate::commands::core::of_spec(&spec.core).map_err(at)?;
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
        let points = spec.run.sampling.as_ref().map(points::read).transpose()?;
        let points = points.unwrap_or_default();
        let memory = spec::parse_memory(&guest.memory).map_err(BadInput).map_err(at)?;
        memory::check("guest.memory", memory).map_err(|e| of.blame(&e))?;
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
        let program = guest.program.as_deref().map(Program::read).transpose()?;
        let files = match &guest.program {
            Some(program) => GuestFiles::of_program(program),
            None => GuestFiles::resolve(
                image.as_ref().map(|image| image.guest.as_path()).or(args.guest_dir.as_deref()),
                guest.firmware.as_deref(),
                guest.kernel.as_deref(),
                guest.initrd.as_deref(),
            )?,
        };
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
            program,
            samplers,
            packages,
            image,
            drives,
            bootargs,
            memory,
            host_memory: memory::bound(asked),
            epoch,
            debuginfod: args.debuginfod.clone().unwrap_or_default(),
            points,
            chosen: ChosenUnits::default(),
        })
    }

    /// Loads what boots into a machine, and resets it.
    ///
    /// # Errors
    /// If a file cannot be read, is not what it should be, or does not fit into memory.
    pub(crate) fn load_guest(&self, system: &mut System) -> anyhow::Result<()> {
        let images = self.files.read(self.memory)?;
        Ok(system.load_guest(&images, &self.bootargs)?)
    }

    /// Returns the limit of the run that a machine at this position has come to, if it has.
    pub(crate) fn exceeded(&self, (cycle, instructions): RunPosition) -> Option<End> {
        let run = &self.spec.run;
        let is_over = |limit: u64, found: u64| limit != 0 && found >= limit;
        if is_over(run.max_cycles, cycle) {
            return Some(End::TooLong(run.max_cycles));
        }
        let most = run.max_instructions;
        is_over(most, instructions).then_some(End::TooManyInstructions(most))
    }

    /// Returns a goal that is no later than the limits of the run, for a machine at this position.
    pub(crate) fn limited(&self, mut goal: Goal, (_, instructions): RunPosition) -> Goal {
        let run = &self.spec.run;
        if run.max_cycles != 0 {
            goal.cycle = Some(goal.cycle.unwrap_or(u64::MAX).min(run.max_cycles));
        }
        if run.max_instructions != 0 {
            let left = run.max_instructions.saturating_sub(instructions);
            goal.instructions = Some(goal.instructions.unwrap_or(u64::MAX).min(left));
        }
        goal
    }

    /// Returns name, version and SHA-256 of each of Debian's packages in the guest.
    pub(crate) fn package_list(&self) -> Option<&[String]> {
        let unpacked = self.packages.iter().map(|packages| &packages.list[..]);
        let installed = self.image.iter().map(|image| &image.list[..]);
        unpacked.chain(installed).next()
    }
}
