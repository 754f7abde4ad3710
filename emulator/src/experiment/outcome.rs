//! What a run leaves: run.json, the report's files, and the last lines on the terminal.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use devices::Exit;
use profile::Evaluation;
use serde_json::json;
use simulation::{Finished, Lap, Laps, Recorded, Standstill};

use super::{End, Plan, command};
use crate::commands::report;
use crate::commands::trace::fingerprint;
use crate::host::memory;
use crate::run_folder::evaluation;
use crate::run_folder::guest_profiles;
use crate::run_folder::run_json::{
    EndReason, FunctionalPart, HartOfRun, RUN_FORMAT, RunEnd, RunJson, TraceOfRun,
};
use crate::run_folder::{RUN, Results, STORED_UNITS, UNITS};
use crate::spec::epoch::Epoch;
use crate::symbol_sources::names::SymbolPaths;

/// A finished run.
pub(crate) struct Outcome {
    /// Why the run ended.
    pub end: End,
    /// The guest was given a command.
    pub has_command: bool,
    /// The guest mounted the shared folder, where its command waits for it.
    pub mounted: bool,
    /// Exit status of the command, if it ended.
    pub status: Option<u32>,
    /// Why the console's file is not whole, if it is not.
    pub console: Option<anyhow::Error>,
    /// Bytes that the console had printed when the command started, if it did.
    pub command_at: Option<u64>,
    /// The timing core was to take over in the region of interest, which did not begin.
    pub never_began: bool,
    /// Share of the hart's host time that each part of the simulator took.
    pub parts: Option<BTreeMap<&'static str, f64>>,
    /// All that was recorded and counted.
    pub finished: Finished,
}

/// A run's report for the terminal; empty if nothing was profiled.
#[derive(Default)]
pub(crate) struct Reports {
    /// All of it.
    pub text: String,
    /// What binds the program.
    pub verdict: String,
}

/// Returns what run.json says of a run that has begun: a report of one that was killed needs it.
pub(super) fn begun(plan: &Plan) -> RunJson {
    // With absolute paths, the spec can be run again from any folder.
    let mut spec = plan.spec.clone();
    spec.make_absolute();
    RunJson {
        format: RUN_FORMAT,
        name: plan.spec.name.clone(),
        tipsim: env!("CARGO_PKG_VERSION").to_owned(),
        end: RunEnd::Known(EndReason::Killed),
        part: Some("it was killed before its end".to_owned()),
        core: json!(plan.preset),
        spec: json!(spec),
        symbols: json!(symbols(plan)),
        ..RunJson::default()
    }
}

pub(super) const NO_REGION: &str =
    "nothing was profiled: the run ended before its region of interest began";

impl Outcome {
    /// Returns why the results are not those of a whole run, if they are not.
    pub(crate) fn part(&self) -> Option<String> {
        if let Some(error) = self.failure() {
            return Some(format!("recording failed: {error}"));
        }
        let cycles = self.finished.laps.main().cycles;
        let ended = self.end.part();
        let whole = Evaluation::merged(self.evaluations());
        ended
            .map(|why| format!("{why}, after {:.1} M cycles", cycles as f64 / 1e6))
            .or_else(|| match whole {
                Some(whole) if whole.cycles > 0 => report::empty(&whole),
                Some(_) => Some(self.why_nothing()),
                None => None,
            })
            .or_else(|| self.never_began.then(|| self.why_nothing()))
    }

    /// Returns why nothing was profiled of a run that ended well.
    fn why_nothing(&self) -> String {
        match &self.finished.sampled {
            Some((sampled, _)) if sampled.instructions > 0 && sampled.units == 0 => format!(
                "nothing was profiled: the region ended after {:.1} M instructions, before its first unit; with a smaller run.sampling.every it has units",
                sampled.instructions as f64 / 1e6
            ),
            _ => NO_REGION.to_owned(),
        }
    }

    /// Returns what could not be recorded.
    fn failure(&self) -> Option<String> {
        let of_console = self.console.as_ref().map(|error| format!("{error:#}"));
        let of_units = match &self.finished.stored_units {
            Some(Err(error)) => Some(format!("{STORED_UNITS}: {error}")),
            _ => None,
        };
        let of_stream = || Some(self.finished.recorded.as_ref()?.error.as_ref()?.to_string());
        of_console.or(of_units).or_else(of_stream)
    }

    /// Writes run.json and the report's files; `part`: why they are not of a whole run. Returns what is for the terminal.
    pub(crate) fn write(
        &mut self,
        plan: &Plan,
        run: &mut Results,
        part: Option<&str>,
    ) -> anyhow::Result<Reports> {
        let mut reports = Reports::default();
        let how = self.run_json(plan, part).to_value();
        run.write(RUN, (serde_json::to_string_pretty(&how)? + "\n").as_bytes())?;
        if let Some((_, units)) = &self.finished.sampled {
            run.write(UNITS, &serde_json::to_vec(units)?)?;
        }
        let symbols = symbols(plan).with_guest_files(run.guest_files());
        if let Some(truth) = self.finished.truth.take() {
            let sampled = guest_profiles::processes(&run.guest_files());
            crate::run_folder::truth::write(
                truth,
                run,
                self.evaluations(),
                &symbols.symbolizer(),
                &sampled,
            )?;
        }
        let harts = self.evaluations();
        let all = report::whole_excerpts(harts, &self.finished.excerpts);
        let of = |hart: Option<u32>| report::ReportScope {
            hart,
            harts,
            excerpts: match hart {
                None => all.as_ref(),
                Some(hart) => self.finished.excerpts.get(hart as usize),
            },
        };
        if let Some(whole) = Evaluation::merged(harts) {
            let of = of(None);
            let written = report::write(run, &whole, &symbols, &of, &plan.preset, how.clone())?;
            if whole.cycles > 0 {
                reports = Reports { text: written.text, verdict: written.verdict };
            }
        }
        // A run that ended well fails if nothing was profiled, and tells that as its failure; another one tells it here.
        let is_empty = Evaluation::merged(harts).is_some_and(|whole| whole.cycles == 0);
        if self.end.is_part() && (self.never_began || is_empty) {
            let text = self.why_nothing() + "\n";
            reports = Reports { verdict: text.clone(), text };
        }
        for (hart, evaluation) in self.one_of_several() {
            let of = of(Some(hart));
            report::write(run, evaluation, &symbols, &of, &plan.preset, how.clone())?;
        }
        // Last: without it nothing is lost. What a report made of the trace would not say is not kept.
        let several = self.evaluations().len() > 1;
        if self.has_whole_trace() {
            for (hart, excerpts) in (0..).zip(&self.finished.excerpts) {
                evaluation::keep_excerpts(run, several.then_some(hart), excerpts)?;
            }
        }
        if self.has_whole_trace() && plan.spec.record.detail {
            for (hart, evaluation) in (0..).zip(self.evaluations()) {
                evaluation::keep(run, several.then_some(hart), evaluation)?;
            }
        }
        Ok(reports)
    }

    /// Returns whether something could not be recorded.
    pub(crate) fn failed(&self) -> bool {
        self.failure().is_some()
    }

    /// The trace is there, and has everything.
    fn has_whole_trace(&self) -> bool {
        let whole = |host: &Recorded| host.trace.is_some() && host.error.is_none();
        self.finished.recorded.as_ref().is_some_and(whole)
    }

    /// The largest share of a hart's timed cycles that its TIP unit stood still for, if it is worth a word.
    fn frozen_share(&self) -> Option<f64> {
        let harts = self.finished.stats.iter().zip(&self.finished.tip_frozen_cycles);
        let share = harts.map(|(stats, &frozen)| frozen as f64 / stats.cycles.max(1) as f64);
        share.reduce(f64::max).filter(|&share| share >= 0.001)
    }

    /// The evaluations of harts by number, if there are several.
    fn one_of_several(&self) -> impl Iterator<Item = (u32, &Evaluation)> {
        let several = self.evaluations().len() > 1;
        (0..).zip(self.evaluations()).filter(move |_| several)
    }

    fn evaluations(&self) -> &[Evaluation] {
        self.finished.recorded.as_ref().map_or(&[], |host| &host.evaluations)
    }

    /// Returns what was counted and profiled on each of several harts.
    fn harts(&self) -> Option<Vec<HartOfRun>> {
        let harts = self.finished.stats.iter().enumerate().map(|(hart, stats)| {
            let evaluation = self.evaluations().get(hart);
            HartOfRun {
                cycles: stats.cycles,
                instructions: stats.instructions,
                stats: json!(stats),
                fingerprint: json!(evaluation.map(fingerprint)),
                idle_cycles: evaluation.map(|e| e.idle),
            }
        });
        (harts.len() > 1).then(|| harts.collect())
    }

    /// Returns the run's run.json; `part`: why its results are not of a whole run.
    fn run_json(&self, plan: &Plan, part: Option<&str>) -> RunJson {
        let Laps { timing, functional, .. } = &self.finished.laps;
        let lap = self.finished.laps.main();
        let booted = (timing.instructions > 0 && functional.instructions > 0).then_some(functional);
        let per_instruction = 1e3 / lap.mips().max(1e-9);
        let of_part = |(&part, share): (&&str, &f64)| (part.to_owned(), share * per_instruction);
        let manifest = plan.files.kernel.as_ref().and_then(|k| k.parent()).and_then(|dir| {
            let text = std::fs::read_to_string(dir.join("manifest.json")).ok()?;
            serde_json::from_str(&text).ok()
        });
        let trace = self.finished.recorded.as_ref().and_then(|h| h.trace.as_ref());
        let first = self.evaluations().first();
        RunJson {
            end: RunEnd::from(&self.end),
            part: part.map(str::to_owned),
            ended_at: Some(Epoch::At(Epoch::Host.seconds()).to_string()),
            exit_status: self.status.or(match self.end {
                End::Guest(Exit::Host(code)) => u32::try_from(code).ok(),
                _ => None,
            }),
            failure: self.status.and_then(command::failure),
            cycles: Some(lap.cycles),
            instructions: Some(lap.instructions),
            ipc: Some(lap.instructions as f64 / lap.cycles.max(1) as f64),
            host_seconds: Some(lap.host.as_secs_f64()),
            mips: Some(lap.mips()),
            mcycles_per_second: Some(lap.mcycles_per_second()),
            peak_memory_mb: peak_memory_mb(),
            host_ns_per_instruction: self
                .parts
                .as_ref()
                .map(|parts| parts.iter().map(of_part).collect()),
            functional: booted.map(|lap| FunctionalPart {
                instructions: lap.instructions,
                restored_instructions: lap.restored_instructions,
                host_seconds: lap.host.as_secs_f64(),
                mips: lap.mips(),
            }),
            deterministic: Some(plan.spec.deterministic()),
            clock: Some(Epoch::At(plan.epoch).to_string()),
            regions: Some(self.finished.regions.clone()),
            sampling: self.finished.sampled.as_ref().map(|(sampled, _)| sampled.clone()),
            tip_frozen_cycles: Some(self.finished.tip_frozen_cycles.clone()),
            uncore: self.finished.uncore.clone(),
            stats: json!(self.finished.stats.first()),
            harts: self.harts(),
            counters: json!(self.finished.counts),
            trace: trace.map(|t| TraceOfRun {
                bytes: t.bytes,
                records: t.records,
                chunks: t.chunks,
                bytes_per_record: t.bytes as f64 / t.records.max(1) as f64,
            }),
            fingerprint: json!(first.map(fingerprint)),
            oracle_cycles: first.map(|e| e.oracle.total() / e.oracle.units_per_cycle()),
            idle_cycles: first.map(|e| e.idle),
            guest: manifest.unwrap_or_default(),
            packages: plan.package_list().map(<[_]>::to_vec),
            ..begun(plan)
        }
    }

    /// Tells on standard error of a command that failed, after what it printed last.
    pub(crate) fn tell_failure(&self, work: &Path) {
        if let (End::Guest(Exit::PowerOff(0)), Some(status)) = (&self.end, self.status) {
            command::report_status(status, work, self.command_at.unwrap_or(0));
        }
    }

    /// Prints the summary; the exit status is that of the guest's command.
    pub(crate) fn verdict(self, out: &Path, work: &Path) -> anyhow::Result<u8> {
        let part = self.part();
        let say = |lap: &Lap, mode| {
            println!(
                "{:.1} M instructions, {:.1} M cycles, {:.1} s on the host: {:.1} MIPS, {:.1} M cycles/s ({mode})",
                lap.instructions as f64 / 1e6,
                lap.cycles as f64 / 1e6,
                lap.host.as_secs_f64(),
                lap.mips(),
                lap.mcycles_per_second(),
            );
        };
        let Laps { timing, functional, .. } = &self.finished.laps;
        if functional.instructions > 0 {
            say(functional, "functional");
            if functional.restored_instructions > 0 {
                println!(
                    "{:.1} M of the instructions were executed by an earlier run with the same boot",
                    functional.restored_instructions as f64 / 1e6
                );
            }
        }
        if timing.instructions > 0 {
            say(timing, "timing core");
        }
        if let Some((sampled, _)) = &self.finished.sampled {
            println!("sampled: {}", sampled.in_words);
        }
        if let Some(Ok(bytes)) = self.finished.stored_units {
            println!(
                "units: {:.1} MB, for other cores (tipsim retime {})",
                bytes as f64 / 1e6,
                out.display()
            );
        }
        if let Some(trace) = self.finished.recorded.as_ref().and_then(|h| h.trace.as_ref()) {
            let megabytes = trace.bytes as f64 / 1e6;
            if trace.records == 0 {
                println!("trace: {megabytes:.1} MB, no instructions");
            } else {
                let per = trace.bytes as f64 / trace.records as f64;
                println!("trace: {megabytes:.1} MB, {per:.2} bytes per instruction");
            }
        }
        if let Some(share) = self.frozen_share() {
            println!(
                "TIP unit: stood still for {:.1} % of the cycles, while its interrupt was handled; they are in no sample",
                100.0 * share
            );
        }
        println!("results: {}", out.display());
        if let Some(warning) = self.finished.regions.warning() {
            eprintln!("tipsim: warning: {warning}");
        }
        if let Some(error) = self.failure() {
            anyhow::bail!("{error}");
        }
        match &self.end {
            End::Guest(exit @ (Exit::PowerOff(0) | Exit::Host(_))) => {
                let status = match exit {
                    Exit::Host(code) => u8::try_from(*code).unwrap_or(255),
                    _ => u8::try_from(self.status.unwrap_or(0)).unwrap_or(255),
                };
                return match part {
                    // The guest's command ended well, but there is no report of the run.
                    Some(part) if status == 0 => Err(anyhow::anyhow!("{part}")),
                    _ => Ok(status),
                };
            }
            End::Interrupted => anyhow::bail!("interrupted; what was recorded until then is whole"),
            End::RecordingFailed => anyhow::bail!("recording failed"),
            End::TooLong(_) | End::TooManyInstructions(_) => {
                anyhow::bail!("{}", self.end.part().unwrap_or_default())
            }
            End::HostMemory(most) => anyhow::bail!(
                "ended before its command did, as tipsim had more than {} of the host's memory in use (run.host_memory); what was recorded until then is whole",
                memory::size(*most)
            ),
            _ => {}
        }
        command::print_last_lines(work, self.command_at.unwrap_or(0), command::Lines::All);
        let never_began = match self.has_command && self.command_at.is_none() {
            true if !self.mounted => {
                "; it never mounted the folder in which its command waits: a kernel of one's own needs CONFIG_VIRTIO_MMIO and CONFIG_VIRTIO_FS built in"
            }
            true => "; its command had not begun",
            false => "",
        };
        match self.end {
            End::Guest(Exit::PowerOff(code)) => {
                anyhow::bail!("the guest failed with status {code}")
            }
            End::BeforeCommand(Exit::Reset) => {
                anyhow::bail!(
                    "the guest ended before its command did: it asked for a reset{never_began}"
                )
            }
            End::BeforeCommand(_) => {
                anyhow::bail!(
                    "the guest ended before its command did: it was switched off{never_began}"
                )
            }
            End::Standstill(Standstill::Waits(seconds)) => anyhow::bail!(
                "{}{never_began}. What waits for input gets it from the file run.input; run.max_idle lets it wait longer",
                Standstill::Waits(seconds)
            ),
            End::Standstill(standstill @ Standstill::Panicked(_)) => anyhow::bail!("{standstill}"),
            End::Standstill(standstill) => anyhow::bail!("{standstill}{never_began}"),
            _ => anyhow::bail!("the guest asked for a reset"),
        }
    }
}

fn symbols(plan: &Plan) -> SymbolPaths {
    let packages = plan
        .packages
        .iter()
        .map(|packages| &packages.root)
        .chain(plan.image.iter().map(|image| &image.root))
        .cloned();
    let roots: Vec<PathBuf> = plan.spec.guest.symbols.iter().cloned().chain(packages).collect();
    SymbolPaths {
        debuginfod: plan.debuginfod.clone(),
        debian: plan.packages.is_some() || plan.image.is_some(),
        ..SymbolPaths::new(&plan.files, &roots, &plan.spec.run.files)
    }
}

/// The most memory that this process ever had in use, as Linux counts it.
fn peak_memory_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib / 1024.0)
}
