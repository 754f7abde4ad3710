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

/// Checks that functions and threads share all of the elapsed time, and that a serial part weighs as much as all harts.
fn check_elapsed(report: &Value, cause: &str) {
    let found = &report["elapsed_profile"];
    let number = |value: &Value| value.as_f64().unwrap();
    let sum = |list: &str, key: &str| {
        found[list].as_array().unwrap().iter().map(|row| number(&row[key])).sum::<f64>()
    };
    let busy: f64 = found["busy"].as_array().unwrap().iter().map(number).sum();
    let elapsed = number(&report["totals"]["elapsed"]["cycles"]);
    assert_eq!(number(&found["cycles"]), number(&found["idle"]) + busy);
    assert!((number(&found["cycles"]) - elapsed).abs() < 0.002 * elapsed, "{cause}: {elapsed}");
    for list in ["functions", "threads"] {
        assert!((sum(list, "cycles") - busy).abs() < 1e-6 * busy, "{cause}: {list}");
        assert!((sum(list, "of_busy") - 1.0).abs() < 0.001, "{cause}: {list}");
    }
    // What the functions' cycles are on all harts, which the report has, too.
    let part = |name: &str| {
        let rows = found["functions"].as_array().unwrap().iter();
        let shared: f64 =
            rows.filter(|row| row["name"] == name).map(|row| number(&row["cycles"])).sum();
        let rows = report["functions"].as_array().unwrap().iter();
        let own: f64 =
            rows.filter(|row| row["name"] == name).map(|row| number(&row["cycles"])).sum();
        shared / own
    };
    match cause {
        // One hart is busy, but for what the kernel does on others, and then all are.
        "serial" => {
            let [serial, parallel] = ["serial_work", "work"].map(part);
            assert!((0.95..1.01).contains(&serial), "{serial}");
            assert!((0.24..0.35).contains(&parallel), "{parallel}");
        }
        // All are busy for a fifth of the time, and then one is.
        "imbalance" => {
            let parallel = part("work");
            assert!((0.58..0.70).contains(&parallel), "{parallel}");
        }
        _ => {}
    }
}

#[test]
fn what_a_program_loses_its_speedup_to_is_named() {
    let mut four = PathBuf::new();
    for (cause, component) in [
        ("serial", "serial"),
        ("imbalance", "imbalance"),
        ("spinlock", "spinning"),
        ("barrier", "spinning"),
        ("line", "other-harts"),
        ("lock", "locks"),
    ] {
        four = run(cause, HARTS);
        let report = json(&four.join("report.json"));
        assert_eq!(largest(&report), component, "{cause}: {}", report["speedup"]);
        let share = |component| number(&report["speedup"]["components"], component, "share");
        assert!(share(component) > 0.4, "{cause}: {}", report["speedup"]);
        check_elapsed(&report, cause);
        // What does not wait in loops is not taken for it.
        let spins = component == "spinning";
        assert!(spins || share("spinning") < 0.01, "{cause}: {}", report["speedup"]);
    }
    // The trace says what the run itself said.
    let live = json(&four.join("report.json"));
    for hart in 0..HARTS {
        std::fs::remove_file(four.join(format!("hart{hart}/evaluation.zst"))).unwrap();
    }
    succeed(tipsim().arg("report").arg(&four).arg("--rebuild"));
    let again = json(&four.join("report.json"));
    for section in ["speedup", "elapsed_profile"] {
        assert_eq!(again[section], live[section]);
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
    let waits = speedup["memory_wait"].as_array().unwrap();
    let memory = &live["speedup"]["memory"];
    let [loads, waited] = ["loads", "waited"].map(|key| memory[key].as_f64().unwrap());
    assert!(loads > 100.0 && (waits[1].as_f64().unwrap() - waited / loads).abs() < 1e-9);
    let text = compare("text");
    assert!(text.contains("is lost to waiting for locks"), "{text}");
    assert!(compare("html").contains("id=\"speedup\""));
    // More runs have a column each.
    let more = |format: &str| {
        let mut report = tipsim();
        succeed(report.arg("report").arg(&one).args([&four, &four]).args(["--format", format]))
    };
    let speedups = serde_json::from_str::<Value>(&more("json")).unwrap()["speedups"].clone();
    assert_eq!(speedups, Value::from(vec![speedup.clone(); 2]));
    assert!(more("text").contains(&format!("{:<44}{fast:>9.3}{fast:>9.3}\n", "speed-up")));
    assert!(more("html").contains("id=\"speedup-title\""));
    // The report of one hart has no stack.
    assert!(json(&one.join("report.json")).get("speedup").is_none());
}
