//! Sampled simulation of a program, against the same program timed from end to end.

mod harts;
mod live;
mod phases;
mod stored;

use std::path::Path;

use serde_json::Value;

use crate::common::{
    assert_error, compile_work, json, run_of_spec, run_spec, scratch, stderr, stdout, tipsim,
};

/// A program of some 60 million instructions: it sorts, which mispredicts, and adds up what lies far apart, which misses.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
int main(void) {
    enum { N = 1 << 18 };
    static int values[N];
    unsigned long sum = 0, state = 1;
    for (int i = 0; i < N; i++) values[i] = (int)((state = state * 6364136223846793005ul + 1) >> 34);
    for (int round = 0; round < 4; round++)
        for (int i = 0; i < N; i++) sum += values[(i * 4099) % N];
    for (int at = 0; at < N; at += N / 8) qsort(values + at, N / 32, sizeof *values, compare);
    printf("%lu %d\n", sum, values[N / 3]);
}
"#;

/// Runs the program with more of a spec; gives run.json.
fn run(dir: &Path, more: &str) -> Value {
    run_with(dir, "", more)
}

/// Runs the program with more of a spec, and more of its table `run`; gives run.json.
fn run_with(dir: &Path, of_run: &str, more: &str) -> Value {
    run_recorded(dir, of_run, false, more)
}

/// Runs the program as [`run_with`] does, with a trace or without.
fn run_recorded(dir: &Path, of_run: &str, trace: bool, more: &str) -> Value {
    compile_work(dir, PROGRAM, &[]);
    let spec = format!(
        "[run]\nboot = \"functional\"\nregion = \"command\"\ncommand = \"./work > answer.txt\"\nfiles = [\"work\"]\n{of_run}\n\
         [record]\ntrace = {trace}\n[[sampler]]\nprofiler = \"tip\"\nperiod = 997\n{more}"
    );
    run_of_spec(dir, &spec)
}

#[test]
fn a_program_takes_as_long_as_when_all_of_it_is_timed() {
    let (all, sampled) = (scratch("sampled-all"), scratch("sampled-units"));
    let whole = run(&all, "");
    let plan = "[run.sampling]\nunit = 5000\nwarm_up = 20000\nevery = 100000\n";
    let part = run(&sampled, plan);
    let answer = |dir: &Path| std::fs::read_to_string(dir.join("out/files/answer.txt")).unwrap();
    assert_eq!(answer(&all), answer(&sampled));

    let cycles = whole["regions"]["cycles"].as_f64().unwrap();
    let found = &part["sampling"];
    let estimate = found["cycles"]["value"].as_f64().unwrap();
    let error = estimate / cycles - 1.0;
    let within = found["cycles"]["within_99_7"]["half_width"].as_f64().unwrap() / cycles;
    // The guest's time is not quite the same, so that its timer interrupts come elsewhere.
    assert!(error.abs() < within + 0.01, "{error} ± {within}");
    assert!(within < 0.1, "{within}");
    // What the counters of the units say of all.
    let counted = |run: &Value| run["counters"]["harts"][0].as_object().unwrap().clone();
    let estimates = &part["counters"]["estimates"];
    let (mut events, mut off) = (0, Vec::new());
    for (event, count) in counted(&whole) {
        let count = count.as_f64().unwrap();
        let estimate = &estimates[&event];
        if count > 20_000.0 {
            events += 1;
            let error = (estimate["value"].as_f64().unwrap() - count).abs();
            let margin = estimate["within_99_7"]["half_width"].as_f64().unwrap();
            if error > margin + 0.02 * count {
                off.push((event, error / count, margin / count));
            }
        }
    }
    assert!(events > 20 && off.len() * 20 <= events, "{off:?} of {events}");
    let retired = &estimates["INST.RET"];
    assert_eq!(retired["value"], found["instructions"].as_f64().unwrap());

    let instructions = whole["regions"]["instructions"].as_f64().unwrap();
    let seen = found["instructions"].as_f64().unwrap();
    assert!((seen / instructions - 1.0).abs() < 0.002, "{seen} of {instructions}");
    let timed = found["timed_instructions"].as_f64().unwrap() / seen;
    assert!((0.2..0.27).contains(&timed), "{timed}");

    let units = json(&sampled.join("out/units.json"));
    let units_of = |column: &str| units[column].as_array().unwrap().len() as u64;
    for column in ["at", "instructions", "cycles"] {
        assert_eq!(units_of(column), found["units"].as_u64().unwrap(), "{column}");
    }
    // What all of the region misses explains much of how units differ.
    let alone = found["units_alone"]["within_99_7"]["half_width"].as_f64().unwrap() / cycles;
    assert!(within < 0.8 * alone, "{within} {alone}");
    let misses = units["misses"].as_array().unwrap();
    assert_eq!(misses.len(), 5);
    for of in misses {
        let counted: u64 =
            of["units"].as_array().unwrap().iter().map(|misses| misses.as_u64().unwrap()).sum();
        let region = of["region"].as_u64().unwrap();
        assert!((1..region).contains(&counted), "{}: {counted} of {region}", of["kind"]);
    }
    // What is recorded is of the units alone, and the report says so.
    let recorded = part["oracle_cycles"].as_f64().unwrap();
    let in_units: f64 =
        units["cycles"].as_array().unwrap().iter().map(|cycles| cycles.as_f64().unwrap()).sum();
    assert!((recorded / in_units - 1.0).abs() < 0.01, "{recorded} of {in_units}");
    let report = stdout(&tipsim().arg("report").arg(sampled.join("out")).output().unwrap());
    assert!(report.contains("SAMPLED: "), "{report}");
    let of_all = json(&all.join("out/report.json"));
    let of_units = json(&sampled.join("out/report.json"));
    margins_hold(&of_all, &of_units);
    margins_of_profilers_hold(&of_all, &of_units);
    let stretches = of_units["units"]["stretches"].as_array().unwrap();
    let sum = |key: &str| stretches.iter().map(|of| of[key].as_f64().unwrap()).sum::<f64>();
    assert_eq!(sum("units"), found["units"].as_f64().unwrap());
    assert_eq!(sum("instructions"), seen);
    assert!((sum("variance") - 1.0).abs() < 1e-9);
    assert!(of_all.get("units").is_none());

    // A comparison knows that both are the same program, and that all differences are within chance or nearly so.
    let compared = tipsim()
        .args(["report", "--format", "json"])
        .args([all.join("out"), sampled.join("out")])
        .output()
        .unwrap();
    let compared: Value = serde_json::from_slice(&compared.stdout).unwrap();
    let changes = compared["processes"].as_array().unwrap();
    let work = changes.iter().find(|row| row["process"] == "work").unwrap();
    let number = |key: &str| work[key].as_f64().unwrap();
    let change = number("after") - number("before");
    assert!(change.abs() < 1.5 * number("margin") + 0.01 * number("before"), "{work}");
}

/// Checks that shares of functions are within their margins of what they are when all is timed.
fn margins_hold(whole: &Value, part: &Value) {
    let rows = |report: &Value| {
        let processes = report["processes"].as_array().unwrap();
        let work = processes.iter().position(|process| process["name"] == "work").unwrap();
        let functions = report["functions"].as_array().unwrap().iter();
        let own = functions.filter(|row| row["process"] == work);
        own.map(|row| (row["name"].as_str().unwrap().to_owned(), row.clone()))
            .collect::<std::collections::BTreeMap<_, _>>()
    };
    let (whole, part) = (rows(whole), rows(part));
    let large = whole.iter().filter(|(_, row)| row["share"].as_f64().unwrap() > 0.02);
    let mut checked = 0;
    for (name, row) in large {
        let found = &part[name];
        let share = |row: &Value| row["share"].as_f64().unwrap();
        let margin = found["margins"]["share"]["within_99_7"].as_f64().unwrap();
        let error = (share(found) - share(row)).abs();
        // The state in which units begin is off by little beside chance.
        assert!(margin > 0.0 && margin < 0.1 && error < margin + 0.005, "{name}: {error} {margin}");
        checked += 1;
    }
    assert!(checked >= 3, "{whole:?}");
}

/// Checks that the errors of TIP, and the shares of the top-down tree, are within their margins of what they are when all is timed.
fn margins_of_profilers_hold(whole: &Value, part: &Value) {
    let work = |report: &Value, table: &Value| -> Value {
        let rows = table.as_array().unwrap_or_else(|| panic!("no table: {report}"));
        rows.iter().find(|row| row["name"] == "work").unwrap().clone()
    };
    let process = |report: &Value| work(report, &report["processes"]);
    let (truth, found) = (process(whole), process(part));
    for level in ["instruction", "block", "function"] {
        let error = |process: &Value| process["errors"][0][level]["error"].as_f64().unwrap();
        let margin = found["errors"][0][level]["margin"]["within_99_7"].as_f64().unwrap();
        // A sixth of the samples has larger errors by chance of the samples.
        let sampling = found["errors"][0][level]["sampling"].as_f64().unwrap();
        let off = (error(&found) - error(&truth)).abs();
        assert!(margin > 0.0 && margin < 0.2 && off < margin + sampling, "{level}: {off} {margin}");
    }
    let tree = |report: &Value| work(report, &report["top_down"]["processes"]);
    let (truth, found) = (tree(whole), tree(part));
    for (node, share) in truth["shares"].as_object().unwrap() {
        let share = share.as_f64().unwrap();
        if share > 0.01 {
            let margin = found["margins"][node]["within_99_7"].as_f64().unwrap();
            let off = (found["shares"][node].as_f64().unwrap() - share).abs();
            assert!(margin > 0.0 && margin < 0.2 && off < margin + 0.005, "{node}: {off} {margin}");
        }
    }
}

#[test]
fn nothing_of_the_host_changes_what_is_sampled() {
    // Between units, first nothing is kept warm, then caches are, and then predictors too.
    let plan = "[run.sampling]\nunit = 2000\nwarm_up = 3000\npredictors = 15000\ncaches = 40000\nevery = 100000\n";
    let found = |name: &str, of_run: &str| {
        let dir = scratch(name);
        let part = run_with(&dir, of_run, plan);
        (std::fs::read(dir.join("out/units.json")).unwrap(), part["fingerprint"].clone())
    };
    let usual = found("sampled-usual", "");
    // Slices of the run lie elsewhere after a boot than after a checkpoint of one.
    for of_run in ["translator = \"off\"", "checkpoint = false", "threads = \"one\""] {
        assert!(found("sampled-other", of_run) == usual, "{of_run}");
    }
}

#[test]
fn units_are_as_many_as_are_asked_for_or_as_an_error_needs() {
    let dir = scratch("sampled-passes");
    let part = run(&dir, "[run.sampling]\nunit = 5000\nwarm_up = 20000\nunits = 80\n");
    let (found, plan) = (&part["sampling"], &part["sampling"]["plan"]);
    let units = found["units"].as_u64().unwrap();
    assert!((79..=81).contains(&units), "{found}");
    let each = found["instructions"].as_f64().unwrap() / 80.0;
    assert!((plan["every"].as_f64().unwrap() / each - 1.0).abs() < 0.01, "{found}");

    // Some sixty units are too few for this.
    let plan = "[run.sampling]\nunit = 5000\nwarm_up = 20000\nevery = 1000000\nerror = \"4 %\"\n";
    let part = run(&dir, plan);
    let (found, plan) = (&part["sampling"], &part["sampling"]["plan"]);
    let every = plan["every"].as_u64().unwrap();
    assert!(every < 1_000_000, "{found}");
    let cycles = &found["cycles"];
    let half = cycles["within_95"]["half_width"].as_f64().unwrap();
    assert!(half / cycles["value"].as_f64().unwrap() <= 0.04 || every == 5000, "{found}");
}

#[test]
fn what_is_made_of_a_sampled_run_says_so() {
    let dir = scratch("sampled-said");
    run_recorded(&dir, "", true, "[run.sampling]\nunit = 2000\nwarm_up = 3000\nevery = 500000\n");
    let said = |arguments: &[&str]| {
        let output = tipsim().args(arguments).current_dir(&dir).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    for command in ["info", "evaluate"] {
        let text = said(&["trace", command, "out/trace.tip"]);
        assert!(text.starts_with("SAMPLED: units alone were timed"), "{text}");
    }
    // What lies between units is no sleep.
    let info: Value =
        serde_json::from_str(&said(&["trace", "info", "out/trace.tip", "--format", "json"]))
            .unwrap();
    let gaps = |key: &str| info["between_units"][key].as_u64().unwrap();
    let units = json(&dir.join("out/run.json"))["sampling"]["units"].as_u64().unwrap();
    assert!((units..=units + 2).contains(&gaps("count")), "{units} {info}");
    let text = said(&["trace", "verify", "out/trace.tip"]);
    let line = text.lines().find(|line| line.starts_with("between units")).unwrap();
    assert_eq!(line.split_whitespace().nth(2), Some(&*gaps("cycles").to_string()), "{text}");
    let dumped = said(&["trace", "dump", "out/trace.tip", "--count", "100000000"]);
    let lines = dumped.lines().filter(|line| line.contains("between units: "));
    assert_eq!(lines.count() as u64, gaps("count"));
    for format in ["folded", "speedscope"] {
        let text = said(&["report", "out", "--format", format, "--profiler", "tip"]);
        assert!(text.contains("SAMPLED: units alone were timed"), "{format}");
    }
    for format in ["arrow", "parquet"] {
        said(&["report", "out", "--format", format, "--table", "functions", "-o", "functions"]);
        let table = std::fs::read(dir.join("functions")).unwrap();
        // Metadata of a table are plain text.
        assert!(
            String::from_utf8_lossy(&table).contains(" units of 2000 instructions"),
            "{format}"
        );
    }
}

#[test]
fn units_that_are_timed_twice_say_how_far_the_state_is_off() {
    let plan = "[run.sampling]\nunit = 20000\nwarm_up = 20000\npredictors = 500000\nevery = 2000000\ncheck = 4\n";
    let dir = scratch("sampled-checked");
    let checked = run(&dir, plan);
    let state = &checked["sampling"]["state"];
    let count = state["units"].as_u64().unwrap();
    assert!(count >= 5, "{state}");
    let ratio = state["ratio"]["value"].as_f64().unwrap();
    assert!((ratio - 1.0).abs() < 0.05, "{state}");
    let words = checked["sampling"]["in_words"].as_str().unwrap();
    assert!(words.contains("; the state in which units begin "), "{words}");
    let units = |dir: &Path| json(&dir.join("out/units.json"));
    let found = units(&dir);
    assert_eq!(found["checked"].as_array().unwrap().len() as u64, count);
    // Whatever the host does.
    for (name, of_run) in [("one", "threads = \"one\""), ("plain", "translator = \"off\"")] {
        let dir = scratch(&format!("sampled-checked-{name}"));
        run_with(&dir, of_run, plan);
        assert_eq!(units(&dir), found, "{name}");
    }
    // Units that are not checked take the same without.
    let without = scratch("sampled-not-checked");
    let plain = run(&without, &plan.replace("check = 4", "check = 0"));
    assert_eq!(plain["sampling"].get("state"), None);
    let [first, second] = [&found, &units(&without)].map(|units| units["cycles"][0].clone());
    assert_eq!(first, second);
}

#[test]
fn plans_that_cannot_be_are_refused() {
    let dir = scratch("sampled-bad");
    for (spec, words) in [
        (
            "boot = \"functional\"\nregion = \"command\"\n[run.sampling]\nunit = 10\n",
            ["run.sampling.unit", "at least 1000", "10"],
        ),
        (
            "boot = \"functional\"\nregion = \"command\"\n[run.sampling]\nevery = 2000\n",
            ["run.sampling.every", "at least the unit", "2000"],
        ),
        (
            "boot = \"functional\"\nregion = \"command\"\n[run.sampling]\ncaches = 5000\n",
            ["run.sampling.caches", "at least run.sampling.predictors, 1000000", "5000"],
        ),
        (
            "boot = \"functional\"\nregion = \"command\"\n[run.sampling]\nunits = 5\nerror = \"1 %\"\n",
            ["run.sampling.units", "none with run.sampling.error", "5"],
        ),
        (
            "boot = \"functional\"\nregion = \"command\"\n[run.sampling]\nerror = 1\n",
            ["error", "a percentage in quotes", "1"],
        ),
        (
            "boot = \"functional\"\nregion = \"command\"\n[run.sampling]\nerror = \"1 m\"\n",
            ["error", "such as \"1 %\"", "1 m"],
        ),
        (
            "region = \"command\"\n[run.sampling]\n",
            ["run.sampling", "run.boot", "found \"timing\""],
        ),
        (
            "boot = \"functional\"\nregion = \"command\"\n[run.sampling]\nunits = 50\nevery = 3000000\n",
            ["run.sampling.every", "none with run.sampling.units", "found 3000000"],
        ),
        (
            "boot = \"functional\"\nregion = \"command\"\n[run.sampling]\nscheme = \"simpoint\"\nevery = 3000000\n",
            ["run.sampling.every", "none with scheme = \"simpoint\"", "found 3000000"],
        ),
        (
            "boot = \"functional\"\nregion = \"command\"\n[run.sampling]\nscheme = \"live\"\ncaches = 3000000\n",
            ["run.sampling.caches", "none with scheme = \"live\"", "found 3000000"],
        ),
        (
            "boot = \"functional\"\nregion = \"command\"\n[run.sampling]\nscheme = \"live\"\ncheck = 20\n",
            ["run.sampling.check", "none with scheme = \"live\"", "found 20"],
        ),
        (
            "boot = \"functional\"\nregion = \"command\"\n[run.sampling]\ndimensions = 20\n",
            ["run.sampling.dimensions", "none without basic-block vectors", "found 20"],
        ),
        (
            "boot = \"functional\"\nregion = \"command\"\n[run.sampling]\nscheme = \"stratified\"\ndimensions = 101\n",
            ["run.sampling.dimensions", "1 to 100", "found 101"],
        ),
        (
            "warm = true\nregion = \"command\"\n",
            ["run.warm", "run.boot = \"functional\"", "found \"timing\""],
        ),
        (
            "boot = \"functional\"\n[run.sampling]\n",
            ["run.sampling", "run.region", "found \"run\""],
        ),
    ] {
        let output =
            run_spec(&dir, &format!("[run]\ncommand = \"true\"\n{spec}")).output().unwrap();
        assert_error(&output, 2, &words);
    }
    for (key, name) in [
        ("store = true", "run.sampling.store"),
        ("units = 40", "run.sampling.units"),
        ("scheme = \"live\"", "run.sampling.scheme"),
    ] {
        let spec = format!(
            "[guest]\nharts = 2\n[run]\ncommand = \"true\"\nboot = \"functional\"\nregion = \"command\"\n[run.sampling]\n{key}\n"
        );
        let output = run_spec(&dir, &spec).output().unwrap();
        assert_error(&output, 2, &[name, "guest.harts = 1", "found 2"]);
    }
}
