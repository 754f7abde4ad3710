//! The main job, end to end: Linux under the timing core, perf in the guest, every profiler judged.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::common::{guest, json, repo, scratch, stderr, stdout, tipsim};
use serde_json::Value;

/// One run of the quickstart spec, shared by the tests of this file.
fn quickstart() -> &'static Path {
    static OUT: OnceLock<PathBuf> = OnceLock::new();
    OUT.get_or_init(|| {
        let out = scratch("quickstart");
        let run = tipsim()
            .arg("run")
            .arg(repo().join("workloads/quickstart.toml"))
            .arg("--guest-dir")
            .arg(guest())
            .arg("--out")
            .arg(&out)
            .output()
            .expect("run tipsim");
        assert_eq!(run.status.code(), Some(0), "{}{}", stdout(&run), stderr(&run));
        std::fs::write(out.join("stdout"), &run.stdout).expect("keep the output");
        out
    })
}

fn text(name: &str) -> String {
    let path = quickstart().join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

#[test]
fn the_program_computes_what_it_should() {
    let expected = repo().join("workloads/quickstart/expected.txt");
    let console = text("console.log").replace('\r', "");
    for line in std::fs::read_to_string(expected).unwrap().lines() {
        assert!(
            console.lines().any(|l| l == line),
            "no line \"{line}\" on the console:\n{console}"
        );
    }
}

#[test]
fn everything_is_there() {
    for name in
        ["console.log", "run.json", "errors.json", "trace.tip", "files/perf.data", "report.html"]
    {
        let size = std::fs::metadata(quickstart().join(name)).map(|m| m.len()).unwrap_or(0);
        assert!(size > 0, "{name} is missing or empty");
    }
    let run = json(&quickstart().join("run.json"));
    for key in ["cycles", "instructions", "host_seconds", "mips", "core", "spec"] {
        assert!(!run[key].is_null(), "run.json has no {key}");
    }
    assert!(text("stdout").contains("MIPS"), "the speed is printed at the end");
}

#[test]
fn the_oracle_accounts_for_every_cycle() {
    let run = json(&quickstart().join("run.json"));
    let sum = run["oracle_cycles"].as_u64().unwrap() + run["idle_cycles"].as_u64().unwrap();
    assert_eq!(Some(sum), run["cycles"].as_u64());
}

#[test]
fn profilers_rank_as_the_paper_says() {
    let errors = json(&quickstart().join("errors.json"));
    for process in ["quickstart", "all"] {
        for level in ["instruction", "block", "function"] {
            for profiler in ["tip", "tip-ilp", "nci", "nci-ilp", "lci", "dispatch", "software"] {
                let e = &errors[process][level][profiler];
                let e = e.as_f64().unwrap_or_else(|| panic!("no {process}.{level}.{profiler}"));
                assert!((0.0..=1.0).contains(&e), "{process}.{level}.{profiler} = {e}");
            }
        }
    }
    let e = |profiler: &str| errors["quickstart"]["instruction"][profiler].as_f64().unwrap();
    let ranked = format!("{:#}", errors["quickstart"]["instruction"]);
    assert!(e("tip") < 0.05, "{ranked}");
    assert!(e("tip") < e("tip-ilp") && e("tip-ilp") < e("nci"), "{ranked}");
    for worse in ["lci", "dispatch", "software"] {
        assert!(e("nci") < e(worse), "{ranked}");
    }
}

#[test]
fn the_guests_own_profile_agrees() {
    // The hardware path (unit, interrupt, driver, perf) may err by what its few samples leave to
    // chance, and by the interrupt's own handler, which a periodic timer never samples.
    let report = json(&quickstart().join("report.json"));
    let processes = report["processes"].as_array().unwrap();
    let process = processes.iter().find(|p| p["name"] == "quickstart").expect("the process");
    let columns = report["columns"].as_array().unwrap();
    let guest = columns.iter().position(|c| c["name"] == "guest-tip").expect("the guest's column");
    for level in ["function", "block", "instruction"] {
        let found = &process["errors"][guest][level];
        let (error, sampling) = (found["error"].as_f64(), found["sampling"].as_f64());
        let (error, sampling) = (error.unwrap(), sampling.unwrap());
        assert!(error < sampling + 0.05, "{level}: {error:.3}, by sampling alone {sampling:.3}");
    }
    assert_eq!(columns[guest]["unmatched_cycles"], 0.0, "samples at addresses that never ran");
}

#[test]
fn perf_in_the_guest_reports_split_samples() {
    let report = text("files/perf-report.txt");
    for function in ["compute_", "flush_", "mispredict_", "stall_", "frontend_"] {
        assert!(report.contains(function), "no {function}* in perf report:\n{report}");
    }
    let annotate = text("files/perf-annotate.txt");
    assert!(annotate.contains("frflags") || annotate.contains("fsflags"), "{annotate}");
    // A sample of n addresses is n lines that share its weight: some period is a fraction.
    let script = text("files/perf-script.txt");
    let periods: Vec<u64> =
        script.lines().filter_map(|l| l.split_whitespace().next()?.parse().ok()).collect();
    let whole = periods.iter().max().copied().unwrap_or(0);
    assert!(periods.len() > 1000, "{} lines of perf script", periods.len());
    assert!(periods.iter().any(|&p| p > 0 && p <= whole / 2), "no split sample");
}

#[test]
fn replaying_the_trace_gives_bit_equal_profiles() {
    let trace = quickstart().join("trace.tip");
    let verified = tipsim().args(["trace", "verify"]).arg(&trace).output().unwrap();
    assert_eq!(verified.status.code(), Some(0), "{}", stderr(&verified));
    let out =
        tipsim().args(["trace", "evaluate", "--format", "json"]).arg(&trace).output().unwrap();
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let replayed: Value = serde_json::from_slice(&out.stdout).unwrap();
    let run = json(&quickstart().join("run.json"));
    assert_eq!(replayed["fingerprint"], run["fingerprint"]);
    assert_eq!(replayed["cycles"], run["cycles"]);
}

#[test]
fn report_prints_what_the_run_found() {
    let text = tipsim().arg("report").arg(quickstart()).output().unwrap();
    assert!(stdout(&text).contains("quickstart"), "{}", stderr(&text));
    let level = ["--level", "function", "--format", "json"];
    let json = tipsim().arg("report").arg(quickstart()).args(level).output().unwrap();
    let value: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert!(value["quickstart"]["tip"].is_number(), "{value}");
}
