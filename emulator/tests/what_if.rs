//! `tipsim what-if`: what a program would gain without a cause of lost cycles.

mod harts;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{assert_error, json, repo, scratch, succeed, tipsim};

/// A program of `workloads/what-if`, before its change, profiled: the run's folder.
fn profiled(name: &str, dir: &Path) -> PathBuf {
    let mut gcc = Command::new("riscv64-linux-gnu-gcc");
    gcc.args(["-O2", "-g1", "-march=rv64gc", "-I"])
        .arg(repo().join("guest-sw/tools"))
        .arg("-o")
        .arg(dir.join(name))
        .arg(repo().join(format!("workloads/what-if/{name}.c")));
    assert!(gcc.status().expect("run riscv64-linux-gnu-gcc").success());
    let out = dir.join("out");
    let mut command = tipsim();
    command.args(["profile", "--marked", "--out"]).arg(&out);
    succeed(command.arg("--").arg(dir.join(name)));
    out
}

#[test]
fn a_run_without_the_cause_says_what_it_gains() {
    let dir = scratch("what-if");
    // The program is not static: it lies elsewhere in each process, but not in each run.
    let out = profiled("chain", &dir);
    let text = succeed(tipsim().arg("what-if").arg(&out));
    assert!(text.contains("what if (chain, "), "{text}");
    assert!(text.contains("chains of dot that do not wait for themselves"), "{text}");
    assert!(text.contains("chain.c:"), "{text}");
    let run = json(&out.join("run.json"));
    let trial = &run["what_if"]["trials"][0];
    assert_eq!(trial["cause"], "chain");
    // One addition after the other takes four cycles; two loads, an addition and their share of the loop fit into less than one and a half.
    let gain = trial["gain"].as_f64().unwrap();
    assert!((0.6..0.85).contains(&gain), "{trial}");
    let instructions = trial["instructions"].as_array().unwrap();
    assert_eq!(instructions.len(), 4, "{trial}");
    for instruction in instructions {
        assert!(instruction["text"].as_str().unwrap().starts_with("fmadd.d"));
    }
    // The trial's own run says what it was.
    let spec = std::fs::read_to_string(out.join("what-if/1.toml")).unwrap();
    assert!(spec.contains("without = [\"chain 0x"), "{spec}");

    let report = json(&out.join("report.json"));
    assert_eq!(report["what_if"], run["what_if"]);
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("<section id=\"what-if\""));
    let mut explain = tipsim();
    explain.arg("report").arg(&out);
    let text = succeed(explain.args(["--explain", "what_if.trials.0.gain"]));
    assert!(text.contains("1 - cycles without / cycles"), "{text}");

    // The user may ask for trials by function and by line instead; none of these costs anything.
    let mut asked = tipsim();
    asked.arg("what-if").arg(&out);
    asked.args(["--without", "mispredict@dot", "--without", "miss@chain.c:23"]);
    let text = succeed(&mut asked);
    let run = json(&out.join("run.json"));
    let trials = run["what_if"]["trials"].as_array().unwrap();
    // The answer to the question before is still there.
    let (before, asked): (Vec<_>, Vec<_>) = trials.iter().partition(|t| t["cause"] == "chain");
    assert_eq!(before.len(), 1, "{text}");
    assert_eq!(asked.len(), 3, "branches, jumps, loads: {text}");
    for trial in asked {
        assert!(trial["gain"].as_f64().unwrap().abs() < 0.1, "{trial}");
    }

    let refused = |arguments: &[&str], expected: &[&str]| {
        let mut command = tipsim();
        command.arg("what-if").arg(&out).args(arguments);
        assert_error(&command.output().unwrap(), 2, expected);
    };
    refused(&["--without", "mis@dot"], &["--without", "mispredict, miss, flush", "mis@dot"]);
    refused(&["--without", "flush@dot"], &["flush@dot", "CSR accesses, fences and atomics"]);
    refused(
        &["--without", "miss@nowhere"],
        &["miss@nowhere", "chain executed no function `nowhere`"],
    );
    refused(&["--without", "miss@dott"], &["no function `dott`", "did you mean `dot`?"]);
    refused(&["--without", "select@dot"], &["a select could take the place of"]);
    refused(&["--debug-dir", "nowhere"], &["nowhere", "--debug-dir"]);
    refused(&["--process", "other"], &["\"other\""]);
}

/// A branch's data dependence: in a binary search the next load's address waits for it.
#[test]
fn a_branch_is_tried_as_a_select_too() {
    let dir = scratch("what-if-select");
    let out = profiled("search", &dir);
    let mut command = tipsim();
    let text = succeed(command.arg("what-if").arg(&out).args(["--most", "1"]));
    for part in [
        "branches of search foreseen (what independent work side by side could gain)",
        "as selects (what branchless code would gain)",
    ] {
        assert!(text.contains(part), "no \"{part}\" in {text}");
    }
    let run = json(&out.join("run.json"));
    let trial = &run["what_if"]["trials"][0];
    let [foreseen, select] = [trial, &trial["select"]].map(|trial| trial["gain"].as_f64().unwrap());
    assert!(foreseen > 0.4 && select < foreseen - 0.1, "{trial}");
    let without = trial["select"]["instructions"][0]["without"].as_str().unwrap();
    assert!(without.starts_with("select 0x"), "{trial}");
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("as selects (what branchless code would gain)"));
    let mut explain = tipsim();
    explain.arg("report").arg(&out);
    let text = succeed(explain.args(["--explain", "what_if.trials.0.select.gain"]));
    assert!(text.contains("1 - cycles without / cycles"), "{text}");
    let mut asked = tipsim();
    asked.arg("what-if").arg(&out).args(["--without", "select@search"]);
    let text = succeed(&mut asked);
    assert!(text.contains("branches of search as selects"), "{text}");
}

#[test]
fn a_run_that_cannot_be_repeated_is_refused() {
    let dir = scratch("what-if-refused");
    let mut command = tipsim();
    assert_error(&command.arg("what-if").arg(&dir).output().unwrap(), 2, &["run.json"]);
    let spec = serde_json::json!({"spec": {"guest": {"net": "user"}}});
    std::fs::write(dir.join("run.json"), spec.to_string()).unwrap();
    let mut command = tipsim();
    let output = command.arg("what-if").arg(&dir).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    for part in ["warning: ", "no tipsim.json", "run.json: expected", "found guest.net"] {
        assert!(said.contains(part), "no \"{part}\" in {said}");
    }
}

/// Somebody else's results: links among the trials lead nowhere.
#[test]
fn trials_are_not_written_through_links() {
    let dir = scratch("what-if-links");
    let out = profiled("chain", &dir);
    let victim = dir.join("victim");
    std::fs::write(&victim, "victim").unwrap();
    let trials = out.join("what-if");
    std::fs::create_dir(&trials).unwrap();
    for name in ["1.toml", "2.toml", "before.toml", "18446744073709551615.toml"] {
        std::os::unix::fs::symlink(&victim, trials.join(name)).unwrap();
    }
    let mut command = tipsim();
    succeed(command.arg("what-if").arg(&out).args(["--most", "1"]));
    assert_eq!(std::fs::read_to_string(victim).unwrap(), "victim");
}
