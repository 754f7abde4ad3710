//! `tipsim what-if` for what harts and threads do to each other, against programs that were changed so.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{assert_error, json, repo, run_spec, scratch, succeed, tipsim};
use serde_json::Value;

/// Runs the program of two threads with an argument, and returns the folder of the results.
fn run(how: &str, record: &str) -> PathBuf {
    let dir = scratch(&format!("what-if-{how}"));
    let mut compiler = Command::new("riscv64-linux-gnu-gcc");
    compiler.args(["-O2", "-g", "-static", "-pthread", "-Wall", "-Wextra", "-Werror", "-I"]);
    compiler.arg(repo().join("guest-sw/tools")).arg("-o").arg(dir.join("two"));
    succeed(compiler.arg(repo().join("emulator/tests/harts/what_if.c")));
    let spec = format!(
        "[guest]\nharts = 2\n[run]\nboot = \"functional\"\nregion = \"marked\"\nfiles = [\"two\"]\n\
         command = \"./two {how}\"\n[record]\n{record}\n[[sampler]]\nprofiler = \"tip\"\nperiod = 10007\n"
    );
    succeed(&mut run_spec(&dir, &spec));
    dir.join("out")
}

/// Returns the elapsed cycles of a run's region.
fn elapsed(out: &Path) -> f64 {
    json(&out.join("run.json"))["regions"]["cycles"].as_f64().unwrap()
}

/// Tries a run without something, and returns the trial.
fn trial(out: &Path, without: &str) -> Value {
    tried(out, &["--without", without], without)
}

/// Tries what the options say, and returns the trial without what is asked for.
fn tried(out: &Path, options: &[&str], without: &str) -> Value {
    let mut command = tipsim();
    let text = succeed(command.arg("what-if").arg(out).args(options));
    let run = json(&out.join("run.json"));
    let trials = run["what_if"]["trials"].as_array().unwrap();
    let (cause, place) = without.split_once('@').unwrap();
    let found = trials.iter().find(|trial| trial["cause"] == cause && trial["function"] == place);
    let report = json(&out.join("report.json"));
    assert_eq!(report["what_if"], run["what_if"], "{text}");
    found.unwrap_or_else(|| panic!("{text}")).clone()
}

/// Checks that the cycles of a trial are those of the changed program, up to this share of them.
fn assert_predicted(trial: &Value, changed: &Path, before: &Path, share: f64) {
    let (predicted, found) = (trial["cycles"].as_f64().unwrap(), elapsed(changed));
    let before = elapsed(before);
    assert!((predicted / found - 1.0).abs() < share, "{predicted}, not {found}: {trial}");
    assert!(found < 0.95 * before, "{found}, {before}: the change gains something");
}

#[test]
fn false_sharing_costs_what_padding_gains() {
    let (before, after) = (run("line", "truth = true"), run("lines", "trace = false"));
    let by_name = trial(&before, "sharing@counters");
    assert_predicted(&by_name, &after, &before, 0.05);
    let spec = std::fs::read_to_string(before.join("what-if/1.toml")).unwrap();
    assert!(spec.contains("padded = [\"0x"), "{spec}");
    // What takes most is tried without being asked for.
    let all = tried(&before, &["--most", "1"], "sharing@false");
    assert!(all["gain"].as_f64().unwrap() > 0.5 * by_name["gain"].as_f64().unwrap(), "{all}");
    let mut command = tipsim();
    command.arg("what-if").arg(&before).args(["--without", "sharing@counter"]);
    let expected = ["harts do not contend", "did you mean `counters`?"];
    assert_error(&command.output().unwrap(), 2, &expected);
}

#[test]
fn a_lock_and_uneven_work_cost_what_their_change_gains() {
    let (before, after) = (run("lock", "trace = true"), run("locks", "trace = false"));
    let lock = trial(&before, "lock@held");
    assert_predicted(&lock, &after, &before, 0.1);
    let replay = &lock["replay"];
    let [recorded, unchanged] = ["recorded", "unchanged"].map(|key| replay[key].as_f64().unwrap());
    assert!((unchanged / recorded - 1.0).abs() < 0.05, "{replay}");
    let mut explain = tipsim();
    explain.arg("report").arg(&before);
    let text = succeed(explain.args(["--explain", "what_if.trials.0.replay.waits"]));
    assert!(text.contains("profile/src/waits/replay.rs"), "{text}");
    let page = std::fs::read_to_string(before.join("report.html")).unwrap();
    assert!(page.contains("estimated by a replay"));
    for (without, expected) in [
        ("lock@helt", &["no futex of two", "did you mean `held`?"][..]),
        ("sharing@held", &["record.truth"]),
    ] {
        let mut command = tipsim();
        command.arg("what-if").arg(&before).args(["--without", without]);
        assert_error(&command.output().unwrap(), 2, expected);
    }

    // What takes most is tried without being asked for.
    let most = ["--most", "1"];
    assert_eq!(tried(&before, &most, "lock@held"), lock);

    let (before, after) = (run("uneven", "trace = true"), run("even", "trace = false"));
    let imbalance = tried(&before, &most, "imbalance@step");
    assert_eq!(trial(&before, "imbalance@step"), imbalance);
    assert_predicted(&imbalance, &after, &before, 0.1);
}
