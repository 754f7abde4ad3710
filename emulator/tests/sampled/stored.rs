//! Stored units, which other cores time without the guest.

use std::path::Path;

use serde_json::Value;

use super::{run, run_with};
use crate::common::{assert_error, json, scratch, stderr, stdout, succeed, tipsim};

#[test]
fn stored_units_take_on_any_core_what_they_would() {
    let dir = scratch("sampled-stored");
    let plan = "[run.sampling]\nunit = 5000\nwarm_up = 20000\npredictors = 100000\nevery = 500000\ncheck = 0\n";
    let recorded = run(&dir, &format!("{plan}store = true\n"));
    let out = dir.join("out");
    let retime = |to: &str, more: &[&str]| {
        let mut command = tipsim();
        command.arg("retime").arg(&out).arg("--out").arg(dir.join(to)).args(more);
        command.output().unwrap()
    };
    let retimed = |to: &str, more: &[&str]| {
        let output = retime(to, more);
        assert!(output.status.success(), "{}", stderr(&output));
        (json(&dir.join(to).join("run.json")), stdout(&output))
    };
    // On the core of the run every unit takes what it took, and profiles are the same.
    let (same, said) = retimed("same", &[]);
    let read = |folder: &str, file: &str| std::fs::read(dir.join(folder).join(file)).unwrap();
    assert_eq!(read("same", "units.json"), read("out", "units.json"));
    for key in ["fingerprint", "stats", "counters", "sampling", "cycles"] {
        assert_eq!(same[key], recorded[key], "{key}");
    }
    assert_eq!(read("same", "report.txt"), read("out", "report.txt"));
    assert!(said.contains("1.0000 times the cycles of the run"), "{said}");
    // Also if the core times from the first instruction on, before which the driver has said who runs.
    let awake = scratch("sampled-stored-awake");
    let plan_of_all =
        "[run.sampling]\nunit = 5000\nwarm_up = 600000\nevery = 500000\nstore = true\n";
    let of_all = run(&awake, plan_of_all);
    let mut command = tipsim();
    succeed(command.arg("retime").arg(awake.join("out")).arg("--out").arg(awake.join("same")));
    let same_of_all = json(&awake.join("same/run.json"));
    assert_eq!(same_of_all["fingerprint"], of_all["fingerprint"]);
    // On another core they take what a run on that core takes.
    let (other, _) = retimed("mega", &["--core", "mega-boom"]);
    let there = scratch("sampled-stored-mega");
    run(&there, &format!("{plan}[core]\npreset = \"mega-boom\"\n"));
    // Units are compared, not estimates: that of a run without stored units uses misses, too.
    let units_take = |out: &Path| -> u64 {
        let units = json(&out.join("units.json"));
        units["cycles"].as_array().unwrap().iter().map(|cycles| cycles.as_u64().unwrap()).sum()
    };
    let [retimed_units, units] = [dir.join("mega"), there.join("out")].map(|out| units_take(&out));
    let error = retimed_units as f64 / units as f64 - 1.0;
    assert!(error.abs() < 0.02, "{error}");
    let cpi = |run: &Value| run["sampling"]["cpi"]["value"].as_f64().unwrap();
    assert!((cpi(&other) / cpi(&same) - 1.0).abs() > 0.02, "the cores differ");
    assert_eq!(other["retimed"]["core"], recorded["core"]["name"]);
    // A smaller core takes longer; cycles alone leave no report.
    let (small, _) = retimed("small", &["--set", "rob.entries=16", "--cycles-only"]);
    assert!(cpi(&small) > 1.1 * cpi(&same));
    assert!(!dir.join("small/report.txt").exists());

    // Several cores are compared, with the same result however many at once: each takes what it takes alone.
    let cores = ["--core", "boom-4w", "--core", "mega-boom", "--sweep", "rob.entries=16,64"];
    let compare = |to: &str, jobs: &str| {
        let output = retime(to, &[&cores[..], &["--jobs", jobs]].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output)
    };
    let table = compare("sweep-1", "1");
    compare("sweep-3", "3");
    assert_eq!(read("sweep-1", "sweep.json"), read("sweep-3", "sweep.json"));
    let sweep = json(&dir.join("sweep-1/sweep.json"));
    let rows = sweep["cores"].as_array().unwrap();
    let names: Vec<String> =
        rows.iter().map(|row| format!("{} {}", row["core"], row["set"])).collect();
    let expected = [("boom-4w", 16), ("boom-4w", 64), ("mega-boom", 16), ("mega-boom", 64)]
        .map(|(core, rob)| format!("\"{core}\" [\"rob.entries={rob}\"]"));
    assert_eq!(names, expected);
    let cycles = |folder: &str| json(&dir.join(folder).join("units.json"))["cycles"].clone();
    assert_eq!(rows[0]["unit_cycles"], cycles("small"));
    assert_eq!(rows[0]["ratio_estimate"], small["retimed"]["cycles_ratio"]);
    assert_eq!((&rows[1]["unit_cycles"], rows[1]["ratio"].as_f64()), (&cycles("out"), Some(1.0)));
    assert_ne!(rows[3]["unit_cycles"], rows[1]["unit_cycles"]);
    let line = |name: &str| table.lines().find(|line| line.starts_with(name)).unwrap();
    assert!(line("boom-4w rob.entries=64").contains("  1.0000    0.00 %"), "{table}");

    // What is stored depends neither on when code is translated nor on threads.
    let stored = read("out", "stored-units.bin");
    for (name, of_run) in [("one", "threads = \"one\""), ("plain", "translator = \"off\"")] {
        let other = scratch(&format!("sampled-stored-{name}"));
        run_with(&other, of_run, &format!("{plan}store = true\n"));
        let found = std::fs::read(other.join("out/stored-units.bin")).unwrap();
        assert!(found == stored, "{name}: {} and {} bytes", found.len(), stored.len());
    }

    // Results of a run are in nobody's way, and neither is the run.
    for (to, why) in [
        ("../sampled-stored-awake/same/../out", "found the results of a run"),
        ("out/inner", "not in that of the run"),
    ] {
        assert_error(&retime(to, &["--cycles-only"]), 2, &[why]);
    }
    let mut report = tipsim();
    let output = report.arg("report").arg(dir.join("small")).output().unwrap();
    assert_error(&output, 2, &["--cycles-only"]);
    let fails = |more: &[&str], why: &str| assert_error(&retime("fails", more), 2, &[why]);
    fails(&["--core", "none-such"], "--core none-such: ");
    fails(&["--sweep", "rob.entries=64,65"], "rob.entries=65");
    fails(&["--set", "isa.zacas=false"], "isa: expected the extensions");
    let units = out.join("stored-units.bin");
    let whole = std::fs::read(&units).unwrap();
    std::fs::write(&units, &whole[..whole.len() / 2]).unwrap();
    fails(&[], "stored-units.bin: expected the");
    let other = std::fs::read(awake.join("out/stored-units.bin")).unwrap();
    std::fs::write(&units, other).unwrap();
    fails(&[], "it was cut or replaced");
    let without = scratch("sampled-not-stored");
    run(&without, plan);
    let output = tipsim().arg("retime").arg(without.join("out")).output().unwrap();
    assert_error(&output, 2, &["run.sampling.store = true, found none"]);
}
