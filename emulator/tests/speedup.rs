//! Speed-up stacks: of a program that loses its speed-up to what it is told to lose it to.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{json, repo, run_spec, scratch, succeed, tipsim};
use serde_json::Value;

/// Number of harts of the runs in which something is lost.
const HARTS: usize = 4;

/// Compiles the program into a folder.
fn compile(dir: &Path) {
    let mut compiler = Command::new("riscv64-linux-gnu-gcc");
    compiler.args(["-O2", "-g", "-static", "-pthread", "-Wall", "-Wextra", "-Werror", "-I"]);
    compiler.arg(repo().join("guest-sw/tools")).arg("-o").arg(dir.join("speedup"));
    succeed(compiler.arg(repo().join("emulator/tests/harts/speedup.c")));
}

/// Runs the program for a cause of loss, and returns the folder of the results.
fn run(cause: &str, harts: usize) -> PathBuf {
    let dir = scratch(&format!("speedup-{cause}-{harts}"));
    compile(&dir);
    let spec = format!(
        "[guest]\nharts = {harts}\n[run]\nboot = \"functional\"\nregion = \"command\"\nfiles = [\"speedup\"]\n\
         command = \"./speedup {cause}\"\n[[sampler]]\nprofiler = \"tip\"\nperiod = 10007\n"
    );
    succeed(&mut run_spec(&dir, &spec));
    dir.join("out")
}

/// Returns a component's number of a list.
fn number(components: &Value, component: &str, key: &str) -> f64 {
    let rows = components.as_array().unwrap();
    let row = rows.iter().find(|row| row["component"] == component).unwrap();
    row[key].as_f64().unwrap()
}

/// Checks that the components of a report's stack are all of its cycles, and returns the component beside the work itself that takes most.
fn largest(report: &Value) -> String {
    let stack = &report["speedup"];
    let rows = stack["components"].as_array().unwrap();
    let cycles = |row: &Value| row["cycles"].as_u64().unwrap();
    assert_eq!(rows.iter().map(cycles).sum::<u64>(), stack["cycles"].as_u64().unwrap());
    // All harts have the region's time: a hart may be ahead of the one that executes a mark.
    let elapsed = report["totals"]["elapsed"]["cycles"].as_f64().unwrap();
    let difference = stack["cycles"].as_f64().unwrap() / HARTS as f64 - elapsed;
    assert!(difference.abs() < 0.002 * elapsed, "{difference}");
    assert_eq!(stack["harts"], HARTS);
    // The scheduler's records and the Oracle agree on what is idle.
    let unknown = number(&stack["components"], "idle", "share");
    assert!(unknown < 0.01, "{stack}");
    let lost = rows.iter().filter(|row| row["component"] != "base");
    let most = lost.max_by_key(|row| cycles(row)).unwrap();
    most["component"].as_str().unwrap().to_owned()
}

#[test]
fn what_a_program_loses_its_speedup_to_is_named() {
    let mut four = PathBuf::new();
    for (cause, component) in
        [("imbalance", "no-thread"), ("line", "other-harts"), ("lock", "locks")]
    {
        four = run(cause, HARTS);
        let report = json(&four.join("report.json"));
        assert_eq!(largest(&report), component, "{cause}: {}", report["speedup"]);
        let share = number(&report["speedup"]["components"], component, "share");
        assert!(share > 0.4, "{cause}: {share}");
    }
    // The last one beside the run on one hart.
    let one = run("lock", 1);
    let compare = |format: &str| {
        let mut report = tipsim();
        succeed(report.arg("report").arg(&one).arg(&four).args(["--format", format]))
    };
    let compared: Value = serde_json::from_str(&compare("json")).unwrap();
    let speedup = &compared["speedup"];
    let [fast, lost] = ["speedup", "lost"].map(|key| speedup[key].as_f64().unwrap());
    let rows = speedup["components"].as_array().unwrap();
    let parts: f64 = rows.iter().map(|row| row["lost"].as_f64().unwrap()).sum();
    assert!((fast + lost - HARTS as f64).abs() < 1e-9 && (parts - lost).abs() < 1e-9, "{speedup}");
    // Ten elevenths of the work are done by one thread at a time.
    assert!((0.9..1.3).contains(&fast), "{speedup}");
    assert!(number(&speedup["components"], "locks", "lost") > 0.6 * lost, "{speedup}");
    let text = compare("text");
    assert!(text.contains("is lost to waiting for locks"), "{text}");
    assert!(compare("html").contains("id=\"speedup\""));
    // The report of one hart has no stack.
    assert!(json(&one.join("report.json")).get("speedup").is_none());
}
