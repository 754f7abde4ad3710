//! What to try of what harts and threads do to each other: cache lines that are padded, locks that are free, work that is even.

use std::collections::BTreeSet;

use profile::waits::{ReplayChange, Replayed};
use profile::{Evaluation, Process, ProcessId, ThreadId};
use serde::{Deserialize, Serialize};
use truth::{Line, LineUse, Sharing, Truth};

use super::candidates::{Candidate, Instruction, MIN_LOST_SHARE};
use crate::failure::{BadInput, bad_input, nearest};
use crate::run_folder::{Results, report_files, truth as truth_file};

/// What the user writes for all lines with false sharing.
const ALL_FALSE: &str = "false";

/// What harts or threads do to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Between {
    /// Harts take cache lines from each other, of which they use different parts. Without: each aligned 8 bytes have a line of their own.
    Sharing,
    /// Threads wait for a lock. Without: nobody waits.
    Lock,
    /// Threads wait at a barrier for those that have more to do. Without: all do the same.
    Imbalance,
}

impl Between {
    pub(super) const ALL: [Self; 3] = [Self::Sharing, Self::Lock, Self::Imbalance];

    /// Returns the name of what is gone.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Sharing => "sharing",
            Self::Lock => "lock",
            Self::Imbalance => "imbalance",
        }
    }

    /// Returns what it is about, in the plural.
    const fn kind(self) -> &'static str {
        match self {
            Self::Sharing => "data",
            Self::Lock => "locks",
            Self::Imbalance => "barriers",
        }
    }
}

/// What is asked for: `WHAT@WHERE`.
pub(super) struct WantedBetween<'a> {
    what: Between,
    place: &'a str,
}

/// What is tried.
pub(super) enum Attempt {
    /// A run of its own without a cause at some instructions or lines.
    Run(Candidate),
    /// A replay of what the kernel's scheduler recorded.
    Replay(Candidate, Replayed),
}

/// What the report says of futexes.
#[derive(Deserialize)]
struct ReportWaits {
    processes: Vec<NamedProcess>,
    waiting: Option<FutexList>,
}

#[derive(Deserialize)]
struct NamedProcess {
    name: String,
    pid: Option<u32>,
}

#[derive(Deserialize)]
struct FutexList {
    futexes: Vec<Futex>,
}

#[derive(Deserialize)]
struct Futex {
    process: usize,
    address: String,
    object: Option<String>,
    share: f64,
    places: Vec<Labelled>,
    callers: Vec<Caller>,
}

impl Futex {
    /// Returns what to try of waits for the futex, by the functions that wait: a lock that is free, or even work before a barrier. Otherwise it is a condition, or
    /// the end of a thread, without which the program would be another one.
    fn suggests(&self) -> Option<Between> {
        let named = |part: &str| self.places.iter().any(|place| place.label.contains(part));
        match (named("barrier"), named("lock")) {
            (true, _) => Some(Between::Imbalance),
            (false, true) => Some(Between::Lock),
            (false, false) => None,
        }
    }

    /// Returns the name of the futex's data object, or else its address.
    fn name(&self) -> &str {
        self.object.as_deref().map_or(&self.address, own_name)
    }
}

/// Returns the name in a label such as `NAME+16`.
fn own_name(label: &str) -> &str {
    label.split('+').next().unwrap_or_default()
}

#[derive(Deserialize)]
struct Labelled {
    label: String,
}

#[derive(Deserialize)]
struct Caller {
    function: String,
}

impl Attempt {
    pub(super) fn candidate(&self) -> &Candidate {
        match self {
            Self::Run(candidate) | Self::Replay(candidate, _) => candidate,
        }
    }
}

impl<'a> WantedBetween<'a> {
    /// Parses an argument of `--without`; `None` if it is about something else.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let (name, place) = text.split_once('@')?;
        let what = Between::ALL.into_iter().find(|what| what.name() == name)?;
        (!place.is_empty()).then_some(Self { what, place })
    }

    /// Returns what to try. `harts` is the number of harts of the run, `elapsed` the cycles of its region.
    pub(super) fn attempt(
        &self,
        results: &Results,
        evaluation: &Evaluation,
        program: &str,
        harts: usize,
        elapsed: f64,
    ) -> anyhow::Result<Attempt> {
        Ok(match self.what {
            Between::Sharing => Attempt::Run(self.lines(results, harts, elapsed)?),
            Between::Lock | Between::Imbalance => {
                let (candidate, change) = self.futexes(results, evaluation, program)?;
                let rank = |thread: ThreadId| {
                    let thread = evaluation.threads.get(thread.0 as usize);
                    let process = thread.map(|thread| thread.process.0 as usize);
                    let process = process.and_then(|process| evaluation.processes.get(process));
                    u32::from(process.is_none_or(|process| process.name != program))
                };
                let replayed = evaluation.replay(harts, &change, rank);
                let Some(replayed) = replayed.filter(|of| of.unchanged > 0) else {
                    let why =
                        "the records of the guest's scheduler do not lead to the region's end";
                    return Err(self.refused(why).into());
                };
                if replayed.waits == 0 {
                    return Err(self
                        .refused("no thread woke another one that waited there")
                        .into());
                }
                Attempt::Replay(candidate, replayed)
            }
        })
    }

    fn refused(&self, why: &str) -> BadInput {
        BadInput(format!("--without {}@{}: {why}", self.what.name(), self.place))
    }

    /// Returns the candidate of some lines or futexes.
    fn candidate(&self, lost: f64, instructions: Vec<Instruction>) -> Candidate {
        Candidate {
            cause: self.what.name(),
            kind: self.what.kind(),
            function: self.place.to_owned(),
            lost: lost.min(1.0),
            instructions,
            selects: None,
        }
    }

    /// Returns the cache lines of the place.
    fn lines(&self, results: &Results, harts: usize, elapsed: f64) -> anyhow::Result<Candidate> {
        let Some(truth): Option<Truth> = truth_file::read(results)? else {
            let why = "which lines harts contend for is not known: record.truth = true of a run with several harts";
            return Err(bad_input(results.path(), why).into());
        };
        let size = truth.line_bytes.max(1);
        let address = self.place.strip_prefix("0x");
        let address = address.and_then(|digits| u64::from_str_radix(digits, 16).ok());
        let object = |line: &Line| own_name(&line.object).to_owned();
        let is_wanted = |line: &&Line| match address {
            Some(address) => line.pa / size == address / size,
            None if self.place == ALL_FALSE => line.sharing == Sharing::False,
            None => object(line) == self.place,
        };
        let contended = || truth.lines.iter().filter(|line| line.is_contended());
        let mut lines: Vec<&Line> = contended().filter(is_wanted).collect();
        let cycles = |line: &Line| line.sum(|own: &LineUse| own.peer_cycles);
        lines.sort_by_key(|line| std::cmp::Reverse(cycles(line)));
        if lines.is_empty() {
            let known: BTreeSet<String> = contended().map(object).collect();
            let nearest = nearest(self.place, known.iter().map(String::as_str), 0.7);
            let nearest = nearest.map_or(String::new(), |name| format!("; did you mean `{name}`?"));
            let why = format!("harts do not contend for such a line{nearest}");
            return Err(self.refused(&why).into());
        }
        let waited: u64 = lines.iter().map(|line| cycles(line)).sum();
        let lost = waited as f64 / (harts as f64 * elapsed).max(1.0);
        let instruction = |line: &&Line| Instruction {
            without: format!("{:#x}", line.pa),
            label: line.object.clone(),
            text: format!("line {:#x}", line.pa),
            source: None,
        };
        Ok(self.candidate(lost, lines.iter().map(instruction).collect()))
    }

    /// Returns the futexes of the place, and the change that is about them.
    fn futexes(
        &self,
        results: &Results,
        evaluation: &Evaluation,
        program: &str,
    ) -> anyhow::Result<(Candidate, ReplayChange)> {
        let own = futexes_of(results, evaluation, program)?;
        let names = |futex: &Futex| -> Vec<String> {
            let places = futex.places.iter().map(|place| own_name(&place.label).to_owned());
            let callers = futex.callers.iter().map(|caller| caller.function.clone());
            let object = futex.object.iter().map(|object| own_name(object).to_owned());
            object.chain(callers).chain(places).chain([futex.address.clone()]).collect()
        };
        let found = || {
            let named = |futex: &Futex| names(futex).iter().any(|name| name == self.place);
            own.iter().filter(move |(_, futex)| named(futex))
        };
        let keys: BTreeSet<(ProcessId, u64)> = found()
            .filter_map(|(process, futex)| {
                let address = futex.address.strip_prefix("0x")?;
                Some((*process, u64::from_str_radix(address, 16).ok()?))
            })
            .collect();
        if keys.is_empty() {
            let known: BTreeSet<String> = own.iter().flat_map(|(_, futex)| names(futex)).collect();
            let nearest = nearest(self.place, known.iter().map(String::as_str), 0.7);
            let nearest = nearest.map_or(String::new(), |name| format!("; did you mean `{name}`?"));
            let why = format!(
                "the report knows no futex of {program} by that name, that address, or that function as one that waits for it{nearest}"
            );
            return Err(self.refused(&why).into());
        }
        let lost = found().map(|(_, futex)| futex.share).sum();
        let instructions = found().map(|(_, futex)| Instruction {
            without: format!("{} {}", self.what.name(), futex.address),
            label: futex.object.clone().unwrap_or_default(),
            text: format!("futex {}", futex.address),
            source: None,
        });
        let candidate = self.candidate(lost, instructions.collect());
        let change = match self.what {
            Between::Lock => ReplayChange { free: keys, ..ReplayChange::default() },
            _ => ReplayChange { even: keys, ..ReplayChange::default() },
        };
        Ok((candidate, change))
    }
}

/// Returns what to try of what harts and threads do to each other, where that takes a share of the time: false sharing, locks and barriers.
pub(super) fn suggested(
    results: &Results,
    evaluation: &Evaluation,
    program: &str,
    harts: usize,
    elapsed: f64,
) -> anyhow::Result<Vec<Attempt>> {
    if harts < 2 {
        return Ok(Vec::new());
    }
    let own = futexes_of(results, evaluation, program)?;
    let lost = own.iter().filter(|(_, futex)| futex.share >= MIN_LOST_SHARE);
    let mut places: BTreeSet<(Between, &str)> =
        lost.filter_map(|(_, futex)| Some((futex.suggests()?, futex.name()))).collect();
    places.insert((Between::Sharing, ALL_FALSE));
    let wanted = places.into_iter().map(|(what, place)| WantedBetween { what, place });
    let mut found = Vec::new();
    for wanted in wanted {
        match wanted.attempt(results, evaluation, program, harts, elapsed) {
            Ok(attempt) if attempt.candidate().lost >= MIN_LOST_SHARE => found.push(attempt),
            Ok(_) => {}
            // What cannot be tried is not suggested.
            Err(error) if error.is::<BadInput>() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// Returns the futexes of a program that the report knows, each with its process.
fn futexes_of(
    results: &Results,
    evaluation: &Evaluation,
    program: &str,
) -> anyhow::Result<Vec<(ProcessId, Futex)>> {
    let report: ReportWaits = report_files::part_of_report(results, None)?;
    // The report adds the process id to names that several have.
    let process = |futex: &Futex| {
        let row = report.processes.get(futex.process)?;
        let is_own = |process: &&Process| {
            let is_named =
                row.name == process.name || row.name.starts_with(&format!("{}-", process.name));
            process.pid == row.pid && is_named
        };
        evaluation.processes.iter().find(is_own).filter(|process| process.name == program)
    };
    let all = report.waiting.into_iter().flat_map(|waiting| waiting.futexes);
    Ok(all.filter_map(|futex| Some((process(&futex)?.id, futex))).collect())
}

/// What became of a replay, as run.json has it.
#[derive(Debug, Serialize)]
pub(super) struct ReplayTrial {
    /// Cycles that the region took.
    recorded: u64,
    /// Cycles of the replay as it was.
    unchanged: u64,
    /// Cycles of the replay with the change.
    changed: u64,
    /// Number of waits that the change is about.
    waits: u64,
}

impl ReplayTrial {
    pub(super) fn new(of: Replayed) -> Self {
        let Replayed { recorded, unchanged, changed, waits } = of;
        Self { recorded, unchanged, changed, waits }
    }

    /// Returns the share of the cycles that the replay with the change takes less.
    pub(super) fn gain(&self) -> f64 {
        1.0 - self.changed as f64 / self.unchanged as f64
    }
}
