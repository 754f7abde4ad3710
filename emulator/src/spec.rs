//! Run specs: what boots, on which core, what is run and recorded, and which profilers judge it.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use user_net::{BadForward, Forward};

use crate::epoch::Epoch;
use crate::failure::{BadInput, bad_input};
use crate::samplers::SamplerSpec;

/// A run spec. Every key has a default; an unknown key is an error.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Spec {
    /// Name of the run.
    pub name: String,
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

/// What boots.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Guest {
    /// A guest-sw target; `kernel` and the others replace single parts of it.
    pub image: String,
    /// Kernel Image.
    pub kernel: Option<PathBuf>,
    /// Firmware (OpenSBI `fw_dynamic`), ELF or raw.
    pub firmware: Option<PathBuf>,
    /// Initial RAM file system.
    pub initrd: Option<PathBuf>,
    /// Disk images, writes are dropped at the end.
    pub drive: Vec<PathBuf>,
    /// Added to the kernel command line.
    pub append: String,
    /// Memory, e.g. "512M".
    pub memory: String,
    /// What its clock shows at reset.
    pub clock: Epoch,
    /// The network. With one, runs are not deterministic.
    pub net: Net,
    /// TCP ports of the host's loopback interface that lead to the guest, e.g. "2222:22".
    pub hostfwd: Vec<String>,
    /// Number of harts.
    pub harts: u32,
    /// Folders searched for the guest's ELF files, at their guest paths.
    pub symbols: Vec<PathBuf>,
}

impl Default for Guest {
    fn default() -> Self {
        Self {
            image: "minimal".into(),
            kernel: None,
            firmware: None,
            initrd: None,
            drive: Vec::new(),
            append: String::new(),
            memory: "512M".into(),
            clock: Epoch::Fixed,
            net: Net::None,
            hostfwd: Vec::new(),
            harts: 1,
            symbols: Vec::new(),
        }
    }
}

/// The core: a preset and single parameters.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default)]
pub struct Core {
    /// A preset's name or file.
    pub preset: String,
    /// Single parameters of the preset.
    #[serde(flatten)]
    pub set: toml::Table,
}

impl Default for Core {
    fn default() -> Self {
        Self {
            preset: "boom-4w".into(),
            set: toml::Table::new(),
        }
    }
}

/// Most harts of a machine: what the guest's kernel is built for.
pub const MAX_HARTS: u32 = 8;

/// Which machine boots the guest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Under the timing core.
    #[default]
    Timing,
    /// Functional: one cycle per instruction, no profilers.
    Functional,
}

/// What is translated to host code; the guest cannot tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Translator {
    /// Code that is executed often, where the host has a translator (x86-64).
    #[default]
    Auto,
    /// Nothing: the interpreter executes everything.
    Off,
    /// All code, at once: slow, for tests.
    Eager,
}

impl From<Translator> for machine::Translate {
    fn from(translator: Translator) -> Self {
        match translator {
            Translator::Auto => Self::Hot,
            Translator::Off => Self::Nothing,
            Translator::Eager => Self::Everything,
        }
    }
}

/// Threads of the host that simulate under the timing core; the results are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Threads {
    /// Two, if the host has so many processors and the guest one hart, as long as they seldom wait for each other.
    #[default]
    Auto,
    /// One.
    One,
    /// Two, if the guest has one hart.
    Two,
}

impl Threads {
    /// One, if the host has but one processor and nobody says otherwise.
    pub fn of_this_host(self) -> Self {
        let several = std::thread::available_parallelism().is_ok_and(|n| n.get() > 1);
        match self {
            Self::Auto if !several => Self::One,
            other => other,
        }
    }
}

/// The guest's network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Net {
    /// No network card.
    #[default]
    None,
    /// User-mode networking: the guest reaches what the host reaches, and the host as 10.0.2.2.
    User,
}

/// What is profiled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Region {
    /// From reset to the end.
    #[default]
    Run,
    /// While the command runs.
    Command,
}

/// What is run.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Run {
    /// How the guest boots. A functional boot with the region `command` goes on under the timing core while the
    /// command runs; with the region `run` everything is functional.
    pub boot: Mode,
    /// What is translated to host code.
    pub translator: Translator,
    /// Threads of the host that simulate under the timing core. Not part of what a run is: results are the same.
    #[serde(skip_serializing)]
    pub threads: Threads,
    /// A functional boot is done once: later runs go on from where its guest mounts the shared folder.
    pub checkpoint: bool,
    /// Shell command that the guest runs; none: the guest's own init decides.
    pub command: Option<String>,
    /// Files and folders of the host that lie in the command's working folder.
    pub files: Vec<PathBuf>,
    /// What is profiled.
    pub region: Region,
    /// The run fails after this many cycles (0: no limit).
    pub max_cycles: u64,
}

impl Default for Run {
    fn default() -> Self {
        Self {
            boot: Mode::default(),
            translator: Translator::default(),
            threads: Threads::default(),
            checkpoint: true,
            command: None,
            files: Vec::new(),
            region: Region::default(),
            max_cycles: 0,
        }
    }
}

/// What is recorded.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Record {
    /// Write the trace.
    pub trace: bool,
    /// Evaluate the profilers.
    pub profilers: bool,
    /// Also count what a report says beyond profiles: top-down slots, time by event, misplaced time.
    pub detail: bool,
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
            stages: false,
            level: 1,
        }
    }
}

impl Spec {
    /// Reads a spec and applies `KEY=VALUE` overrides (dotted keys, TOML values).
    pub fn load(path: &Path, set: &[String]) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|e| bad_input(path, e))?;
        let mut table: toml::Table =
            toml::from_str(&text).map_err(|e| bad_input(path, toml_message(&e, &text)))?;
        // With the text, so that messages carry the offending line.
        let mut spec: Spec =
            toml::from_str(&text).map_err(|e| bad_input(path, toml_message(&e, &text)))?;
        for assignment in set {
            apply(&mut table, assignment)?;
            let set = Spec::deserialize(table.clone());
            spec = set.map_err(|e| unfit(assignment, &e))?;
        }
        let of = Source { path, set };
        if spec.name.is_empty() {
            spec.name = path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
        }
        spec.validate().map_err(|e| of.blame(e))?;
        // Files named in a spec are relative to it.
        let base = path.parent().unwrap_or(Path::new("."));
        let anchor = |p: &mut PathBuf| *p = base.join(&*p);
        spec.guest.kernel.iter_mut().for_each(anchor);
        spec.guest.firmware.iter_mut().for_each(anchor);
        spec.guest.initrd.iter_mut().for_each(anchor);
        spec.guest.drive.iter_mut().for_each(anchor);
        spec.guest.symbols.iter_mut().for_each(anchor);
        spec.run.files.iter_mut().for_each(anchor);
        Ok(spec)
    }

    /// The timing core waits for the region of interest.
    pub fn boots_functionally_first(&self) -> bool {
        self.run.boot == Mode::Functional && self.run.region == Region::Command
    }

    /// Another run of it is the same, to the cycle: nothing of the host but files gets into the guest.
    pub fn deterministic(&self) -> bool {
        self.guest.net == Net::None && self.guest.clock != Epoch::Host
    }

    /// The forwarded ports.
    pub fn forwards(&self) -> Result<Vec<Forward>, BadForward> {
        self.guest.hostfwd.iter().map(|f| f.parse()).collect()
    }

    fn validate(&self) -> Result<(), String> {
        parse_size(&self.guest.memory).map_err(|e| format!("guest.memory: {e}"))?;
        self.forwards().map_err(|e| format!("guest.hostfwd: {e}"))?;
        if self.guest.net == Net::None && !self.guest.hostfwd.is_empty() {
            return Err(
                "guest.hostfwd: expected guest.net = \"user\" with it, found \"none\"".into(),
            );
        }
        if !(1..=MAX_HARTS).contains(&self.guest.harts) {
            return Err(format!(
                "guest.harts: expected 1 to {MAX_HARTS}, found {}",
                self.guest.harts
            ));
        }
        if self.guest.image != "minimal" {
            return Err(format!(
                "guest.image: expected \"minimal\", found \"{}\"",
                self.guest.image
            ));
        }
        if !(1..=19).contains(&self.record.level) {
            return Err(format!(
                "record.level: expected 1 to 19, found {}",
                self.record.level
            ));
        }
        Ok(())
    }
}

/// Where a spec comes from.
pub struct Source<'a> {
    /// The file,
    pub path: &'a Path,
    /// and what was set instead of its keys.
    pub set: &'a [String],
}

impl Source<'_> {
    /// An error of the file, or of the option that set the key with which the error begins.
    pub fn blame(&self, error: impl std::fmt::Display) -> BadInput {
        let error = error.to_string();
        // As a preset says that its parameters were set by someone.
        let error = error.strip_prefix("override: ").unwrap_or(&error);
        let said = error.split([':', ' ']).next().unwrap_or_default();
        let names = |key: &str| key == said || error.contains(&format!("`{key}`"));
        let set = self.set.iter().rev().find(|assignment| {
            let key = assignment.split('=').next().unwrap_or_default().trim();
            // Parameters of the core are named as in a preset.
            names(key) || key.strip_prefix("core.").is_some_and(names)
        });
        match set {
            Some(assignment) => BadInput(format!("--set {assignment}: {error}")),
            None => bad_input(self.path, error),
        }
    }
}

/// What was set does not fit.
fn unfit(assignment: &str, error: &toml::de::Error) -> BadInput {
    let message = toml_message(error, "");
    let (key, value) = assignment.split_once('=').unwrap_or((assignment, ""));
    let hint = if message.contains("expected a string") {
        format!("; a text of that look wants quotes: --set '{key}=\"{value}\"'")
    } else {
        String::new()
    };
    BadInput(format!("--set {assignment}: {message}{hint}"))
}

/// Sets one dotted key of a table. The value is TOML, or a bare string.
fn apply(table: &mut toml::Table, assignment: &str) -> Result<(), BadInput> {
    let (key, value) = assignment.split_once('=').ok_or_else(|| {
        BadInput(format!(
            "--set {assignment}: expected KEY=VALUE, e.g. core.rob.entries=128"
        ))
    })?;
    let value = toml::from_str::<toml::Table>(&format!("v = {value}"))
        .ok()
        .and_then(|mut t| t.remove("v"))
        .unwrap_or_else(|| toml::Value::String(value.to_owned()));
    let mut at = table;
    let mut parts = key.split('.').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            at.insert(part.to_owned(), value);
            return Ok(());
        }
        at = at
            .entry(part)
            .or_insert_with(|| toml::Value::Table(toml::Table::new()))
            .as_table_mut()
            .ok_or_else(|| BadInput(format!("--set {assignment}: {part} is not a table")))?;
    }
    Ok(())
}

/// One line for a TOML error: line number, message, nearest known key.
pub fn toml_message(error: &toml::de::Error, text: &str) -> String {
    let message = error.message().replace('\n', " ");
    let line = { error.span() }
        .filter(|_| !text.is_empty())
        .map(|s| text[..s.start.min(text.len())].matches('\n').count() + 1);
    let mut quoted = message.split('`').skip(1).step_by(2);
    let nearest = message.starts_with("unknown").then(|| {
        let unknown = quoted.next()?;
        quoted.max_by(|a, b| {
            strsim::jaro_winkler(a, unknown).total_cmp(&strsim::jaro_winkler(b, unknown))
        })
    });
    let at = line.map(|l| format!("line {l}: ")).unwrap_or_default();
    match nearest.flatten() {
        Some(known) => format!("{at}{message}; did you mean `{known}`?"),
        None => format!("{at}{message}"),
    }
}

/// Bytes of a size such as "512M", "2G".
pub fn parse_size(text: &str) -> Result<u64, String> {
    let expected = || format!("expected a size such as 512M or 2G, found \"{text}\"");
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match &text[digits.len()..] {
        "" => 0,
        "K" | "KiB" => 10,
        "M" | "MiB" => 20,
        "G" | "GiB" => 30,
        _ => return Err(expected()),
    };
    let n: u64 = digits.parse().map_err(|_| expected())?;
    n.checked_mul(1 << shift)
        .filter(|&b| b > 0)
        .ok_or_else(expected)
}

/// Hertz of a frequency such as "4kHz".
pub fn parse_frequency(text: &str) -> Result<f64, String> {
    let expected = || format!("expected a frequency such as 4kHz, found \"{text}\"");
    let number = text.strip_suffix("Hz").ok_or_else(expected)?;
    let (number, factor) = match number.as_bytes().last() {
        Some(b'k') => (&number[..number.len() - 1], 1e3),
        Some(b'M') => (&number[..number.len() - 1], 1e6),
        _ => (number, 1.0),
    };
    let n: f64 = number.trim().parse().map_err(|_| expected())?;
    if n.is_finite() && n > 0.0 {
        Ok(n * factor)
    } else {
        Err(expected())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_frequencies() {
        assert_eq!(parse_size("512M"), Ok(512 << 20));
        assert_eq!(parse_size("4096"), Ok(4096));
        assert!(parse_size("12Q").is_err());
        assert!(parse_size("0M").is_err());
        assert!(parse_size("99999999999G").is_err());
        assert_eq!(parse_frequency("4kHz"), Ok(4000.0));
        assert!(parse_frequency("4k").is_err());
        assert!(parse_frequency("-1Hz").is_err());
    }

    #[test]
    fn overrides_reach_nested_keys() {
        let mut table = toml::Table::new();
        apply(&mut table, "core.rob.entries=96").unwrap();
        apply(&mut table, "core.preset=mega-boom").unwrap();
        let text = toml::to_string(&table).unwrap();
        let spec: Spec = toml::from_str(&text).unwrap();
        assert_eq!(spec.core.preset, "mega-boom");
        assert_eq!(spec.core.set["rob"]["entries"].as_integer(), Some(96));
        assert!(apply(&mut table, "core.preset.x=1").is_err());
        assert!(apply(&mut table, "nothing").is_err());
    }

    #[test]
    fn unknown_key_names_the_nearest() {
        let text = "[guest]\nmemroy = \"1G\"\n";
        let error = toml::from_str::<Spec>(text).unwrap_err();
        let message = toml_message(&error, text);
        assert!(
            message.contains("line 2") && message.contains("did you mean `memory`?"),
            "{message}"
        );
    }

    #[test]
    fn errors_of_what_is_set_blame_the_option() {
        let folder = std::env::temp_dir().join(format!("tipsim-spec-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("base.toml");
        std::fs::write(&path, "[guest]\nharts = 1\n[run]\n\ncommand = \"ls\"\n").unwrap();
        let load = |set: &[&str]| {
            let set: Vec<String> = set.iter().map(|s| s.to_string()).collect();
            Spec::load(&path, &set).map_err(|e| e.to_string())
        };
        let cases = [
            (
                "run.command=false",
                "--set run.command=false: invalid type: boolean `false`, expected a string; \
                 a text of that look wants quotes: --set 'run.command=\"false\"'",
            ),
            (
                "guest.memroy=1G",
                "--set guest.memroy=1G: unknown field `memroy`",
            ),
            ("guest.memroy=1G", "did you mean `memory`?"),
            (
                "run.boot=slow",
                "--set run.boot=slow: unknown variant `slow`",
            ),
            (
                "guest.harts=9",
                "--set guest.harts=9: guest.harts: expected 1 to 8, found 9",
            ),
            (
                "guest.memory=lots",
                "--set guest.memory=lots: guest.memory: expected a size",
            ),
            ("record.level=0", "--set record.level=0: record.level:"),
            (
                "guest.harts.x=1",
                "--set guest.harts.x=1: harts is not a table",
            ),
            ("sampler=3", "--set sampler=3: invalid type"),
            ("nothing", "--set nothing: expected KEY=VALUE"),
        ];
        for (set, expected) in cases {
            let error = load(&[set]).unwrap_err();
            assert!(error.contains(expected), "{set}: {error}");
            assert!(!error.contains("base.toml"), "{set}: {error}");
        }
        // What another option sets, or nothing does, is not blamed on this one.
        let error = load(&["guest.harts=9", "guest.memory=1G"]).unwrap_err();
        assert!(error.starts_with("--set guest.harts=9:"), "{error}");
        assert_eq!(
            load(&["run.command='false'"]).unwrap().run.command.unwrap(),
            "false"
        );
        assert_eq!(
            load(&["run.command=echo 1=2"])
                .unwrap()
                .run
                .command
                .unwrap(),
            "echo 1=2"
        );
        std::fs::write(&path, "[guest]\nharts = 9\n").unwrap();
        let error = load(&["guest.memory=1G"]).unwrap_err();
        assert!(error.contains("base.toml: guest.harts"), "{error}");
        std::fs::write(&path, "[run]\ncommand = false\n").unwrap();
        let error = load(&["guest.memory=1G"]).unwrap_err();
        assert!(error.contains("base.toml: line 2: invalid type"), "{error}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
