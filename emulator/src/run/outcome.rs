//! What a run leaves: run.json, the report's files, and the last lines on the terminal.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use critical_path::Excerpts;
use devices::Exit;
use profile::Evaluation;
use serde_json::json;
use timing::Stats;

use super::Plan;
use super::command;
use super::laps::{Lap, Laps};
use super::region::RegionSummary;
use crate::epoch::Epoch;
use crate::failure::{cannot_write, write_whole};
use crate::host_memory;
use crate::kept;
use crate::names::SymbolPaths;
use crate::report_cmd;
use crate::stream::HostOutcome;
use crate::trace_cmd::fingerprint;
use crate::truth::Collected;

/// Why the run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The guest ended it.
    Guest(Exit),
    /// The guest sleeps and nothing will wake it.
    Asleep,
    /// Ctrl-C or a signal.
    Interrupted,
    /// The trace or a profiler failed.
    RecordingFailed,
    /// More cycles than `run.max_cycles`.
    TooLong(u64),
    /// This process had more of the host's memory in use than these bytes (`run.host_memory`).
    HostMemory(u64),
}

/// A finished run.
pub struct Outcome {
    /// Why it ended.
    pub end: End,
    /// Why the console's file is not whole, if it is not.
    pub console: Option<anyhow::Error>,
    /// Bytes that the console had printed when the command started.
    pub command_at: u64,
    /// What the region of interest was.
    pub regions: RegionSummary,
    /// Simulated and host time, until the profilers had read everything.
    pub laps: Laps,
    /// Share of the hart's host time that each part of the simulator took.
    pub parts: Option<BTreeMap<&'static str, f64>>,
    /// Counters of each hart's timing core.
    pub stats: Vec<Stats>,
    /// What they counted of every event in the region of interest.
    pub counts: Option<serde_json::Value>,
    /// Cycles that each hart's TIP unit stood still, while its own interrupt was handled.
    pub tip_frozen_cycles: Vec<u64>,
    /// What last-level cache and memory counted in the region, and the guest's counters of them.
    pub uncore: serde_json::Value,
    /// What samples should say, if that was asked for.
    pub truth: Option<Collected>,
    /// Excerpts of each hart, if they were asked for.
    pub excerpts: Vec<Excerpts>,
    /// The host's side.
    pub host: Option<HostOutcome>,
}

const NO_REGION: &str = "nothing was profiled: the run ended before its region of interest began";

impl Outcome {
    /// Writes run.json and the report's files.
    /// On the terminal is the whole report, or `brief` the verdict.
    pub fn write(&mut self, plan: &Plan, out: &Path, brief: bool) -> anyhow::Result<()> {
        let run = self.run_json(plan);
        let path = out.join("run.json");
        let text = serde_json::to_string_pretty(&run)? + "\n";
        write_whole(&path, text)?;
        let symbols = symbols(plan).with_output(out);
        if let Some(truth) = self.truth.take() {
            truth.write(out, self.evaluations(), &symbols.symbolizer())?;
        }
        let harts = self.evaluations();
        let all = report_cmd::whole_excerpts(harts, &self.excerpts);
        let of = |hart: Option<u32>| report_cmd::ReportScope {
            out,
            hart,
            harts,
            excerpts: match hart {
                None => all.as_ref(),
                Some(hart) => self.excerpts.get(hart as usize),
            },
        };
        if let Some(whole) = Evaluation::merged(harts) {
            let written =
                report_cmd::write(&whole, &symbols, &of(None), &plan.preset, run.clone())?;
            if whole.cycles == 0 {
                println!("{NO_REGION}");
            } else {
                print!("{}", if brief { written.verdict } else { written.text });
            }
        }
        for (hart, evaluation) in self.one_of_several() {
            let folder = kept::folder(out, Some(hart));
            std::fs::create_dir_all(&folder).map_err(|e| cannot_write(&folder, e))?;
            let of = of(Some(hart));
            report_cmd::write(evaluation, &symbols, &of, &plan.preset, run.clone())?;
        }
        if plan.spec.boots_functionally_first() && self.host.is_none() {
            println!("{NO_REGION}");
        }
        // Last: without it nothing is lost. What a report made of the trace would not say is not kept.
        let several = self.evaluations().len() > 1;
        if self.has_whole_trace() {
            for (hart, excerpts) in (0..).zip(&self.excerpts) {
                kept::keep_excerpts(out, several.then_some(hart), excerpts)?;
            }
        }
        if self.has_whole_trace() && plan.spec.record.detail {
            for (hart, evaluation) in (0..).zip(self.evaluations()) {
                kept::keep(out, several.then_some(hart), evaluation)?;
            }
        }
        Ok(())
    }

    /// Something could not be recorded.
    pub fn failed(&self) -> bool {
        self.console.is_some() || self.host.as_ref().is_some_and(|host| host.error.is_some())
    }

    /// The trace is there, and has everything.
    fn has_whole_trace(&self) -> bool {
        let whole = |host: &HostOutcome| host.trace.is_some() && host.error.is_none();
        self.host.as_ref().is_some_and(whole)
    }

    /// The largest share of a hart's timed cycles that its TIP unit stood still for, if it is worth a word.
    fn frozen_share(&self) -> Option<f64> {
        let harts = self.stats.iter().zip(&self.tip_frozen_cycles);
        let share = harts.map(|(stats, &frozen)| frozen as f64 / stats.cycles.max(1) as f64);
        share.reduce(f64::max).filter(|&share| share >= 0.001)
    }

    /// The evaluations of harts by number, if there are several.
    fn one_of_several(&self) -> impl Iterator<Item = (u32, &Evaluation)> {
        let several = self.evaluations().len() > 1;
        (0..).zip(self.evaluations()).filter(move |_| several)
    }

    fn evaluations(&self) -> &[Evaluation] {
        self.host.as_ref().map_or(&[], |host| &host.evaluations)
    }

    /// What was counted and profiled on each of several harts.
    fn harts_json(&self) -> Option<Vec<serde_json::Value>> {
        let harts = self.stats.iter().enumerate().map(|(hart, stats)| {
            let evaluation = self.evaluations().get(hart);
            json!({
                "cycles": stats.cycles,
                "instructions": stats.instructions,
                "stats": stats,
                "fingerprint": evaluation.map(fingerprint),
                "idle_cycles": evaluation.map(|e| e.idle),
            })
        });
        (harts.len() > 1).then(|| harts.collect())
    }

    fn run_json(&self, plan: &Plan) -> serde_json::Value {
        let Laps {
            timing, functional, ..
        } = &self.laps;
        let lap = self.laps.main();
        let seconds = lap.host.as_secs_f64();
        let booted = (timing.instructions > 0 && functional.instructions > 0).then_some(functional);
        let per_instruction = 1e3 / lap.mips().max(1e-9);
        let manifest = plan
            .files
            .kernel
            .as_ref()
            .and_then(|k| k.parent())
            .and_then(|dir| {
                let text = std::fs::read_to_string(dir.join("manifest.json")).ok()?;
                serde_json::from_str::<serde_json::Value>(&text).ok()
            });
        let trace = self.host.as_ref().and_then(|h| h.trace.as_ref());
        let first = self.evaluations().first();
        // To be run again, from wherever.
        let mut spec = plan.spec.clone();
        spec.make_absolute();
        json!({
            "name": plan.spec.name,
            "tipsim": env!("CARGO_PKG_VERSION"),
            "end": format!("{:?}", self.end),
            "cycles": lap.cycles,
            "instructions": lap.instructions,
            "ipc": lap.instructions as f64 / lap.cycles.max(1) as f64,
            "host_seconds": seconds,
            "mips": lap.mips(),
            "mcycles_per_second": lap.mcycles_per_second(),
            "peak_memory_mb": peak_memory_mb(),
            "host_ns_per_instruction": self.parts.as_ref().map(|parts| parts.iter()
                .map(|(&part, share)| (part, share * per_instruction)).collect::<BTreeMap<_, _>>()),
            "functional": booted.map(|lap| json!({
                "instructions": lap.instructions,
                "restored_instructions": lap.restored_instructions,
                "host_seconds": lap.host.as_secs_f64(),
                "mips": lap.mips(),
            })),
            "deterministic": plan.spec.deterministic(),
            "clock": Epoch::At(plan.epoch).to_string(),
            "core": plan.preset,
            "spec": spec,
            "symbols": symbols(plan),
            "regions": self.regions,
            "tip_frozen_cycles": self.tip_frozen_cycles,
            "uncore": self.uncore,
            "stats": self.stats.first(),
            "harts": self.harts_json(),
            "counters": self.counts,
            "trace": trace.map(|t| json!({
                "bytes": t.bytes,
                "records": t.records,
                "chunks": t.chunks,
                "bytes_per_record": t.bytes as f64 / t.records.max(1) as f64,
            })),
            "fingerprint": first.map(fingerprint),
            "oracle_cycles": first.map(|e| e.oracle.total() / e.oracle.units_per_cycle()),
            "idle_cycles": first.map(|e| e.idle),
            "guest": manifest,
            "packages": plan.package_list(),
        })
    }

    /// Prints the summary; the exit status is that of the guest's command.
    pub fn verdict(self, out: &Path) -> anyhow::Result<u8> {
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
        let Laps {
            timing, functional, ..
        } = &self.laps;
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
        if let Some(trace) = self.host.as_ref().and_then(|h| h.trace.as_ref()) {
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
        if let Some(warning) = self.regions.warning() {
            eprintln!("tipsim: warning: {warning}");
        }
        if let Some(error) = self.console.or(self.host.and_then(|h| h.error)) {
            return Err(error);
        }
        match self.end {
            End::Guest(Exit::PowerOff(0)) => Ok(command::report_status(out, self.command_at)),
            End::Guest(Exit::PowerOff(code)) => {
                anyhow::bail!("the guest failed with status {code}")
            }
            End::Guest(Exit::Host(code)) => Ok(u8::try_from(code).unwrap_or(255)),
            End::Guest(Exit::Reset) => {
                anyhow::bail!("the guest asked for a reset: see console.log")
            }
            End::Asleep => {
                anyhow::bail!("the guest sleeps and nothing can wake it: see console.log")
            }
            End::Interrupted => anyhow::bail!("interrupted; what was recorded until then is whole"),
            End::RecordingFailed => anyhow::bail!("recording failed"),
            End::TooLong(most) => anyhow::bail!("not done after {most} cycles (run.max_cycles)"),
            End::HostMemory(most) => anyhow::bail!(
                "ended before its command did, as tipsim had more than {} of the host's memory in use (run.host_memory); what was recorded until then is whole",
                host_memory::size(most)
            ),
        }
    }
}

fn symbols(plan: &Plan) -> SymbolPaths {
    let packages = { plan.packages.iter().map(|packages| &packages.root) }
        .chain(plan.image.iter().map(|image| &image.root))
        .cloned();
    let roots: Vec<PathBuf> = { plan.spec.guest.symbols.iter().cloned() }
        .chain(packages)
        .collect();
    SymbolPaths {
        debuginfod: plan.debuginfod.clone(),
        debian: plan.packages.is_some() || plan.image.is_some(),
        ..SymbolPaths::new(&plan.files, &roots, &plan.spec.run.files)
    }
}

/// The most memory that this process ever had in use, as Linux counts it.
fn peak_memory_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib / 1024.0)
}
