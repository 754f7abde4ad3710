//! Run specs: what boots, on which core, what is run and recorded, and which profilers judge it.

mod base;
pub(crate) mod epoch;
mod guest;
mod quantity;
mod run;
pub(crate) mod samplers;
mod sampling;
mod set;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use timing::Preset;
use user_net::{BadForward, Forward};

use crate::experiment::command::check_variable;
use crate::failure::{BadInput, bad_input, read_at_most};
use crate::guest_files::packages::check_names;

use epoch::Epoch;
pub(crate) use guest::{Guest, GuestImage, Net};
pub(crate) use quantity::{parse_duration, parse_frequency, parse_memory, parse_size};
pub(crate) use run::Run;
use samplers::SamplerSpec;
pub(crate) use set::{PROFILE_OPTIONS, Source, toml_message};
use set::{apply, unfit};
pub(crate) use simulation::{HartOrder, MAX_HARTS, Mode, Region, Threads, Translator};

/// Bytes of a run spec that are read at most.
const MAX_SPEC_BYTES: u64 = 16 << 20;

/// A run spec. Every key has a default; an unknown key is an error.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Spec {
    /// Another spec, whose keys hold where this one has none.
    #[serde(skip_serializing)]
    pub base: Option<PathBuf>,
    /// Name of the run.
    pub name: String,
    /// What the author says of the run, for who reads its results. Any keys.
    pub about: toml::Table,
    /// What boots.
    pub guest: Guest,
    /// The core: a preset and single parameters, e.g. `rob.entries = 128`.
    pub core: Core,
    /// What is run.
    pub run: Run,
    /// What is recorded.
    pub record: Record,
    /// The profilers. None: the default set.
    pub sampler: Vec<SamplerSpec>,
}

/// The core: a preset and single parameters.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Core {
    /// A preset's name or file.
    pub preset: String,
    /// Single parameters of the preset.
    #[serde(flatten)]
    pub set: toml::Table,
}

impl Default for Core {
    fn default() -> Self {
        Self { preset: "boom-4w".into(), set: toml::Table::new() }
    }
}

/// Checks `--harts`: a machine can have so many.
pub(crate) fn harts(harts: u32) -> Result<usize, BadInput> {
    if (1..=MAX_HARTS).contains(&harts) {
        return Ok(harts as usize);
    }
    Err(BadInput(format!("--harts: expected 1 to {MAX_HARTS}, found {harts}")))
}

/// What is recorded.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Record {
    /// Write the trace.
    pub trace: bool,
    /// Evaluate the profilers.
    pub profilers: bool,
    /// Also count what a report says beyond profiles: top-down slots, time by event, misplaced time.
    pub detail: bool,
    /// Also follow calls: the report's flame graph is by callers, and by thread. Costs time.
    pub call_stacks: bool,
    /// With the timing core: count also the events that are counted only if somebody asks, such as top-down slots. Costs some time.
    pub counters: bool,
    /// Write what samples should say (truth.json): exact counts by instruction and by cache line. Costs time and memory.
    pub truth: bool,
    /// Look at interpreted programs (Python's) from outside: functions and lines of them.
    pub interpreters: bool,
    /// Keep some thousand consecutive instructions with all their stages every now and then (excerpts.zst): what the report says of loops.
    pub excerpts: bool,
    /// The trace says when each instruction was fetched, issued and completed, too. Costs size and time.
    pub stages: bool,
    /// zstd level of the trace, 1 to 19.
    pub level: i32,
}

impl Default for Record {
    fn default() -> Self {
        Self {
            trace: true,
            profilers: true,
            detail: true,
            call_stacks: false,
            counters: false,
            truth: false,
            interpreters: true,
            excerpts: true,
            stages: false,
            level: 1,
        }
    }
}

impl Spec {
    /// Reads a spec and applies `KEY=VALUE` overrides (dotted keys, TOML values).
    pub(crate) fn load(path: &Path, set: &[String]) -> anyhow::Result<Self> {
        let bytes = read_at_most(path, MAX_SPEC_BYTES).map_err(|e| bad_input(path, e))?;
        let expected =
            |found: &str| bad_input(path, format!("expected a run spec (TOML), found {found}"));
        if bytes.starts_with(b"\x7fELF") {
            let name = path.display();
            return Err(expected(&format!(
                "a program (ELF): tipsim profile {name} runs one of RISC-V Linux, tipsim exec {name} a bare-metal one"
            ))
            .into());
        }
        let text = String::from_utf8(bytes).map_err(|_| expected("what is no text (UTF-8)"))?;
        if text.trim().is_empty() {
            return Err(expected("nothing").into());
        }
        Self::parse(&text, path, set, &[])
    }

    /// Parses a spec that is, or is to be, the file `path`; `options`: see [`Source`].
    pub(crate) fn parse(
        text: &str,
        path: &Path,
        set: &[String],
        options: &[(&str, &str)],
    ) -> anyhow::Result<Self> {
        // The text is parsed by itself first, so that messages have the offending line.
        let mut spec: Spec =
            toml::from_str(text).map_err(|e| bad_input(path, toml_message(&e, text)))?;
        let mut table: toml::Table =
            toml::from_str(text).map_err(|e| bad_input(path, toml_message(&e, text)))?;
        if spec.base.is_some() {
            table = base::with_bases(path, table)?;
            spec = Spec::deserialize(table.clone()).map_err(|e| bad_input(path, e))?;
        }
        for assignment in set {
            apply(&mut table, assignment)?;
            let set = Spec::deserialize(table.clone());
            spec = set.map_err(|e| unfit(assignment, &e))?;
        }
        let of = Source { path, set, options };
        if spec.name.is_empty() {
            spec.name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        }
        spec.validate().map_err(|e| of.blame(e))?;
        spec.check_given(&table).map_err(|e| of.blame(e))?;
        // Files named in a spec are relative to it.
        let base = path.parent().unwrap_or(Path::new("."));
        let anchor = |p: &mut PathBuf| *p = base.join(&*p);
        spec.paths().for_each(anchor);
        spec.core.preset = Preset::beside(&path.to_string_lossy(), &spec.core.preset);
        Ok(spec)
    }

    /// Returns the files that the spec names, but for the core's preset. `base::PATH_KEYS` has their keys.
    pub(crate) fn paths(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        let guest = &mut self.guest;
        let boots = [
            &mut guest.kernel,
            &mut guest.firmware,
            &mut guest.initrd,
            &mut guest.program,
            &mut guest.semihosting,
        ];
        boots
            .into_iter()
            .flatten()
            .chain(&mut guest.drive)
            .chain(&mut guest.symbols)
            .chain(&mut self.run.files)
            .chain(&mut self.run.input)
            .chain(self.run.sampling.as_mut().and_then(|sampling| sampling.points.as_mut()))
    }

    /// Makes the paths in the spec absolute, from the current folder, so that the spec can be read from another one.
    pub(crate) fn make_absolute(&mut self) {
        let absolute = |path: &mut PathBuf| {
            if let Ok(absolute) = std::path::absolute(&*path) {
                *path = absolute;
            }
        };
        self.paths().for_each(absolute);
        let mut preset = PathBuf::from(&self.core.preset);
        if preset.is_file() {
            absolute(&mut preset);
            self.core.preset = preset.display().to_string();
        }
    }

    /// Returns whether the timing core waits for the region of interest.
    pub(crate) fn boots_functionally_first(&self) -> bool {
        self.run.boot == Mode::Functional && self.run.region.is_marked()
    }

    /// Returns whether another run of the spec is the same, to the cycle: nothing of the host but files gets into the guest.
    pub(crate) fn deterministic(&self) -> bool {
        self.guest.net == Net::None && self.guest.clock != Epoch::Host
    }

    /// Returns the forwarded ports.
    pub(crate) fn forwards(&self) -> Result<Vec<Forward>, BadForward> {
        self.guest.hostfwd.iter().map(|f| f.parse()).collect()
    }

    fn validate(&self) -> Result<(), String> {
        parse_memory(&self.guest.memory).map_err(|e| format!("guest.memory: {e}"))?;
        self.forwards().map_err(|e| format!("guest.hostfwd: {e}"))?;
        if self.guest.net == Net::None && !self.guest.hostfwd.is_empty() {
            return Err(
                "guest.hostfwd: expected guest.net = \"user\" with it, found \"none\"".into()
            );
        }
        if !(1..=MAX_HARTS).contains(&self.guest.harts) {
            return Err(format!(
                "guest.harts: expected 1 to {MAX_HARTS}, found {}",
                self.guest.harts
            ));
        }
        if self.run.hart_order != HartOrder::default() && self.guest.harts == 1 {
            return Err("run.hart_order: expected guest.harts of 2 or more with it, found 1".into());
        }
        check_names(&self.guest.packages)?;
        parse_duration(&self.run.max_idle).map_err(|e| format!("run.max_idle: {e}"))?;
        for name in self.run.env.keys() {
            check_variable(name).map_err(|e| format!("run.env: {e}"))?;
        }
        if !self.run.env.is_empty() && self.run.command.is_none() {
            return Err("run.env: expected run.command with it, found none".into());
        }
        if self.run.input.is_some() && self.run.command.is_none() && self.guest.program.is_none() {
            return Err("run.input: expected run.command with it, found none".into());
        }
        self.guest.check_program()?;
        if self.run.warm && self.guest.harts > 1 {
            let harts = self.guest.harts;
            return Err(format!("run.warm: expected guest.harts = 1 with it, found {harts}"));
        }
        if self.run.warm && self.run.boot == Mode::Timing {
            return Err(
                "run.warm: expected run.boot = \"functional\" with it, as a timed boot is warm already; found \"timing\"".into(),
            );
        }
        if self.run.warm && self.run.sampling.as_ref().is_some_and(|plan| plan.store) {
            return Err(
                "run.warm: expected run.sampling.store = false with it, as stored units begin where the region does; found true".into(),
            );
        }
        self.check_sampling().map_err(|e| format!("run.sampling{e}"))?;
        if self.guest.program.is_some() && self.run.command.is_some() {
            return Err("run.command: expected none with guest.program, found one".into());
        }
        if self.guest.image == GuestImage::Debian && self.run.command.is_none() {
            return Err(
                "run.command: expected one with guest.image = \"debian\", found none".into()
            );
        }
        if self.record.truth && !self.record.profilers {
            return Err(
                "record.truth: expected record.profilers = true with it, which tell processes apart; found false".into(),
            );
        }
        if !(1..=19).contains(&self.record.level) {
            return Err(format!("record.level: expected 1 to 19, found {}", self.record.level));
        }
        Ok(())
    }
}
