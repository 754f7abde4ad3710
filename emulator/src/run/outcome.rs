//! What a run leaves: run.json, the report's files, and the last lines on the terminal.

use std::path::Path;
use std::time::Duration;

use machine::Exit;
use serde_json::json;
use timing::Stats;

use super::Plan;
use super::host::HostOutcome;
use crate::failure::bad_input;
use crate::report_cmd;
use crate::spec::Mode;
use crate::trace_cmd::fingerprint;

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
}

/// A finished run.
pub struct Outcome {
    /// Why it ended.
    pub end: End,
    /// Cycles, to the last commit.
    pub cycles: u64,
    /// Instructions retired.
    pub instructions: u64,
    /// Host time until the profilers had read everything.
    pub host_seconds: Duration,
    /// Counters of the timing core.
    pub stats: Option<Stats>,
    /// The host's side.
    pub host: Option<HostOutcome>,
}

impl Outcome {
    /// Writes run.json and the report's files.
    pub fn write(&self, plan: &Plan, out: &Path) -> anyhow::Result<()> {
        let run = self.run_json(plan);
        let path = out.join("run.json");
        let text = serde_json::to_string_pretty(&run)? + "\n";
        std::fs::write(&path, text).map_err(|e| bad_input(&path, e))?;
        if let Some(evaluation) = self.host.as_ref().and_then(|h| h.evaluation.as_ref()) {
            let (files, symbols) = (&plan.files, &plan.spec.guest.symbols);
            report_cmd::write(evaluation, files, symbols, out, &plan.preset, run)?;
        }
        Ok(())
    }

    fn run_json(&self, plan: &Plan) -> serde_json::Value {
        let seconds = self.host_seconds.as_secs_f64();
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
        json!({
            "name": plan.spec.name,
            "tipsim": env!("CARGO_PKG_VERSION"),
            "end": format!("{:?}", self.end),
            "cycles": self.cycles,
            "instructions": self.instructions,
            "ipc": self.instructions as f64 / self.cycles.max(1) as f64,
            "host_seconds": seconds,
            "mips": self.instructions as f64 / seconds / 1e6,
            "mcycles_per_second": self.cycles as f64 / seconds / 1e6,
            "deterministic": true,
            "core": plan.preset,
            "spec": plan.spec,
            "stats": self.stats,
            "trace": trace.map(|t| json!({
                "bytes": t.bytes,
                "records": t.records,
                "chunks": t.chunks,
                "bytes_per_record": t.bytes as f64 / t.records.max(1) as f64,
            })),
            "fingerprint": self.host.as_ref().and_then(|h| h.evaluation.as_ref()).map(fingerprint),
            "oracle_cycles": self.host.as_ref().and_then(|h| h.evaluation.as_ref())
                .map(|e| e.oracle.total() / e.oracle.units_per_cycle()),
            "idle_cycles": self.host.as_ref().and_then(|h| h.evaluation.as_ref()).map(|e| e.idle),
            "guest": manifest,
        })
    }

    /// Prints the summary; the exit status is that of the guest's command.
    pub fn verdict(self, plan: &Plan, out: &Path) -> anyhow::Result<u8> {
        let (m_insts, m_cycles) = (self.instructions as f64 / 1e6, self.cycles as f64 / 1e6);
        let seconds = self.host_seconds.as_secs_f64();
        let mode = match plan.spec.run.boot {
            Mode::Timing => "timing core",
            Mode::Functional => "functional",
        };
        println!(
            "{m_insts:.1} M instructions, {m_cycles:.1} M cycles, {seconds:.1} s on the host: \
             {:.1} MIPS, {:.1} M cycles/s ({mode})",
            m_insts / seconds,
            m_cycles / seconds,
        );
        if let Some(trace) = self.host.as_ref().and_then(|h| h.trace.as_ref()) {
            let per = trace.bytes as f64 / trace.records.max(1) as f64;
            println!(
                "trace: {:.1} MB, {per:.2} bytes per instruction",
                trace.bytes as f64 / 1e6
            );
        }
        println!("results: {}", out.display());
        if let Some(error) = self.host.and_then(|h| h.error) {
            return Err(error);
        }
        match self.end {
            End::Guest(Exit::PowerOff(0)) => Ok(command_status(out)),
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
        }
    }
}

/// The status that the guest's init wrote for the command; success where there was no command.
fn command_status(out: &Path) -> u8 {
    let text = std::fs::read_to_string(out.join("status")).unwrap_or_default();
    text.trim()
        .parse::<u32>()
        .map_or(0, |s| u8::try_from(s).unwrap_or(255))
}
