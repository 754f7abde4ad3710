//! The host's memory: it does not grow with each process of the guest, and a run that takes too much ends in good order.

use std::path::{Path, PathBuf};
use std::process::Output;

use crate::common::{assert_error, guest, json, scratch, stderr, stdout, tipsim};

/// Runs a command under the timing core after a functional boot; the output, and the run's folder.
fn run(dir: &Path, name: &str, command: &str, set: &[&str]) -> (Output, PathBuf) {
    let spec = dir.join(format!("{name}.toml"));
    let text =
        format!("[run]\nboot = \"functional\"\nregion = \"command\"\ncommand = '{command}'\n");
    std::fs::write(&spec, text).unwrap();
    let out = dir.join(name);
    let mut tipsim = tipsim();
    tipsim.arg("run").arg(&spec).arg("--out").arg(&out);
    tipsim.arg("--guest-dir").arg(guest());
    for key in set {
        tipsim.args(["--set", key]);
    }
    (tipsim.output().unwrap(), out)
}

/// A shell that starts a program so many times.
fn starts(count: u32) -> String {
    format!("i=0; while [ $i -lt {count} ]; do /bin/true; i=$((i+1)); done")
}

#[test]
#[ignore = "scripts/test --long"]
fn each_further_program_takes_no_more_memory() {
    let dir = scratch("memory-programs");
    let peak = |count| {
        let name = format!("of-{count}");
        let (output, out) = run(&dir, &name, &starts(count), &["record.trace=false"]);
        assert!(output.status.success(), "{}", stderr(&output));
        let report = stdout(&output);
        let peak = json(&out.join("run.json"))["peak_memory_mb"].clone();
        (peak.as_f64().unwrap(), report)
    };
    let (few, report) = peak(20);
    assert!(!report.contains("others)"), "{report}");
    let (many, report) = peak(300);
    // In an earlier version each program took 4.4 MB.
    assert!(many < few + 280.0 * 0.5, "{few} MB, {many} MB");
    assert!(report.contains("others)"), "{report}");
}

#[test]
fn a_run_ends_in_good_order_before_it_takes_too_much_memory() {
    let dir = scratch("memory-bound");
    // The machine takes less, and what is recorded of these programs more.
    let (output, out) = run(&dir, "bound", &starts(100_000), &["run.host_memory=160M"]);
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    let last = said.lines().last().unwrap();
    assert!(last.contains("160 MiB") && last.contains("run.host_memory"), "{said}");
    let run_json = json(&out.join("run.json"));
    let end = serde_json::json!({"reason": "host-memory", "limit": 160 << 20});
    assert_eq!(run_json["end"], end);
    // The bound is not part of what a run is.
    assert_eq!(run_json["spec"]["run"].get("host_memory"), None);
    let mut verify = tipsim();
    verify.args(["trace", "verify"]).arg(out.join("trace.tip"));
    let verified = verify.output().unwrap();
    assert_error(&verified, 1, &["trace.tip", "before its time"]);
    assert!(stdout(&verified).starts_with("whole:"));
    assert!(stdout(&output).contains("cycles"));
    assert!(out.join("report.txt").exists() && out.join("report.html").exists());
}

#[test]
fn a_size_that_is_none_is_refused() {
    let dir = scratch("memory-size");
    let (output, _) = run(&dir, "size", "true", &["run.host_memory=lots"]);
    assert_error(&output, 2, &["run.host_memory", "512M or 2G", "lots"]);
}
