//! Sampled simulation of a program, against the same program timed from end to end.

use std::path::Path;

use serde_json::Value;

use crate::common::{
    assert_error, compile_work, json, run_of_spec, run_spec, scratch, stderr, stdout, succeed,
    tipsim,
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
pub(crate) fn run(dir: &Path, more: &str) -> Value {
    run_with(dir, "", more)
}

/// Runs the program with more of a spec, and more of its table `run`; gives run.json.
fn run_with(dir: &Path, of_run: &str, more: &str) -> Value {
    run_recorded(dir, of_run, false, more)
}

/// Runs the program as [`run_with`] does, with a trace or without.
pub(crate) fn run_recorded(dir: &Path, of_run: &str, trace: bool, more: &str) -> Value {
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
fn a_survey_chooses_units_whatever_the_host_does() {
    let plan =
        "[run.sampling]\nscheme = \"ranked-set\"\nunit = 20000\nwarm_up = 20000\nunits = 40\n";
    let found = |name: &str, of_run: &str| {
        let dir = scratch(name);
        let part = run_with(&dir, of_run, plan);
        (json(&dir.join("out/units.json")), part["fingerprint"].clone())
    };
    let usual = found("sampled-ranked", "");
    let units: Vec<u64> = serde_json::from_value(usual.0["at"].clone()).unwrap();
    assert_eq!(units.len(), 40);
    // One in each of forty stretches of the region, where an interval of the survey began.
    let last = *units.last().unwrap();
    assert!(units.is_sorted_by(|a, b| a < b) && units.iter().all(|at| at % 20_000 == 0));
    assert!(units.windows(2).all(|pair| pair[1] - pair[0] <= last / 15), "{units:?}");
    for of_run in ["translator = \"off\"", "threads = \"one\""] {
        assert!(found("sampled-ranked-other", of_run) == usual, "{of_run}");
    }
}

#[test]
fn units_that_stand_for_more_weigh_more() {
    let of = |name: &str, of_run: &str, trace, plan: &str| {
        let dir = scratch(name);
        let plan = format!("[run.sampling]\nunit = 20000\nwarm_up = 20000\n{plan}");
        let part = run_recorded(&dir, of_run, trace, &plan);
        (
            part["sampling"].clone(),
            json(&dir.join("out/units.json")),
            dir,
            part["fingerprint"].clone(),
        )
    };
    let numbers = |units: &Value, key: &str| -> Vec<u64> {
        serde_json::from_value(units[key].clone()).unwrap()
    };
    let whole = run(&scratch("sampled-weights-all"), "");
    let cycles = whole["regions"]["cycles"].as_f64().unwrap();

    let plan = "scheme = \"stratified\"\nunits = 60\n";
    let (found, units, dir, fingerprint) = of("sampled-stratified", "", true, plan);
    let weights = numbers(&units, "weights");
    assert!((58..=75).contains(&weights.len()), "{found}");
    // Units stand for all intervals, but for one that the region's end cuts.
    let all = found["instructions"].as_u64().unwrap();
    assert_eq!(weights.iter().sum::<u64>(), all / 20_000);
    let estimate = found["cycles"]["value"].as_f64().unwrap();
    let within = found["cycles"]["within_99_7"]["half_width"].as_f64().unwrap();
    assert!((estimate - cycles).abs() < within + 0.01 * cycles, "{estimate} ± {within}, {cycles}");
    // The report counts each unit as often as it weighs.
    let weighed = |key: &str| -> u64 {
        weights.iter().zip(numbers(&units, key)).map(|(weight, of)| weight * of).sum()
    };
    let report = json(&dir.join("out/report.json"));
    let totals = &report["totals"];
    // An instruction that traps is none that commits.
    let committed = totals["instructions"].as_f64().unwrap();
    assert!((committed / weighed("instructions") as f64 - 1.0).abs() < 1e-3, "{totals}");
    let awake = totals["cycles"].as_u64().unwrap() - totals["idle"].as_u64().unwrap();
    // A unit's last cycle may be the next stretch's first.
    assert!(awake.abs_diff(weighed("cycles")) <= weights.iter().sum(), "{totals}");
    assert!((awake as f64 - estimate).abs() < 0.005 * estimate, "{totals}");
    // Exports of the time line do, too.
    let mut export = tipsim();
    export.arg("report").arg(dir.join("out")).args(["--format", "folded", "--exact"]);
    let folded = succeed(&mut export);
    let lines = folded.lines().filter(|line| !line.starts_with('#'));
    let samples = lines.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>());
    let exported: u64 = samples.map(Result::unwrap).sum();
    assert!((exported as f64 / awake as f64 - 1.0).abs() < 0.01, "{exported} {awake}");
    // Whoever reads the trace counts the same.
    let mut evaluate = tipsim();
    evaluate.args(["trace", "evaluate", "--format", "json"]).arg(dir.join("out/trace.tip"));
    let replayed: Value = serde_json::from_str(&succeed(&mut evaluate)).unwrap();
    assert_eq!(replayed["instructions"], totals["instructions"], "{replayed}");
    let other = of("sampled-stratified-other", "threads = \"one\"", true, plan);
    assert_eq!((other.1, other.3), (units, fingerprint));

    let (found, units, dir, _) = of("sampled-simpoint", "", false, "scheme = \"simpoint\"\n");
    assert!((3..=30).contains(&found["units"].as_u64().unwrap()), "{found}");
    assert_eq!(found["cycles"], Value::Null);
    assert!(found["in_words"].as_str().unwrap().contains("how far that is off is not known"));
    let estimate = found["point"]["cycles"].as_f64().unwrap();
    assert!((estimate / cycles - 1.0).abs() < 0.15, "{estimate} {cycles}");
    let text = std::fs::read_to_string(dir.join("out/report.txt")).unwrap();
    assert!(text.lines().any(|line| line.contains("main") && line.contains('?')), "{text}");
    // Files as SimPoint writes them name the same units.
    let mut command = tipsim();
    command.arg("phases").arg(dir.join("spec.toml")).args(["--interval", "20000"]);
    succeed(command.arg("--out").arg(dir.join("phases")));
    let plan = format!(
        "scheme = \"simpoint\"\npoints = {:?}\n",
        dir.join("phases/phases.simpts").display().to_string()
    );
    let (found, imported, found_in, _) = of("sampled-points", "", false, &plan);
    for column in ["at", "cycles"] {
        assert_eq!(imported[column], units[column], "{column}");
    }
    // An interval that the region's end cuts has a smaller share than one.
    let weights = numbers(&imported, "weights").into_iter().zip(numbers(&units, "weights"));
    assert!(weights.clone().all(|(imported, own)| imported.abs_diff(own) <= 1), "{imported}");
    assert_eq!(weights.count(), found["units"].as_u64().unwrap() as usize);
    let again = found["point"]["cycles"].as_f64().unwrap();
    assert!((again / estimate - 1.0).abs() < 0.002, "{again} {estimate}");
    let points = std::fs::read_to_string(dir.join("phases/phases.simpts")).unwrap();
    let (_, rest) = points.split_once(' ').unwrap();
    std::fs::write(dir.join("phases/phases.simpts"), format!("99999 {rest}")).unwrap();
    let spec = std::fs::read_to_string(found_in.join("spec.toml")).unwrap();
    let refused = run_spec(&found_in, &spec).output().unwrap();
    let words = ["run.sampling.points: expected intervals below", "found 99999"];
    assert!(words.iter().all(|word| stderr(&refused).contains(word)), "{}", stderr(&refused));
    assert_eq!(refused.status.code(), Some(2));
    std::fs::write(dir.join("phases/phases.weights"), "0.5 x\n").unwrap();
    let spec = format!(
        "[run]\nboot = \"functional\"\nregion = \"command\"\ncommand = \"true\"\n[run.sampling]\n{plan}"
    );
    let refused = run_spec(&scratch("sampled-points-wrong"), &spec).output().unwrap();
    assert_error(&refused, 2, &["phases.weights", "line 1", "WEIGHT PHASE", "0.5 x"]);
}

#[test]
fn a_pass_before_that_fails_ends_the_run() {
    let plan = "unit = 20000\nunits = 40\n";
    for (command, words) in [
        ("exit 7", "its command ended with status 7"),
        ("true", "the run ended before its region of interest began"),
    ] {
        let dir = scratch("sampled-fails");
        let region = if command == "true" { "marked" } else { "command" };
        let spec = format!(
            "[run]\nboot = \"functional\"\nregion = \"{region}\"\ncommand = \"{command}\"\n[run.sampling]\n{plan}"
        );
        let output = run_spec(&dir, &spec).output().unwrap();
        assert_error(&output, 1, &["the pass before the run", words]);
        assert!(!dir.join("out/run.json").exists());
    }
}

#[test]
fn phases_are_those_of_the_program() {
    let dir = scratch("sampled-phases");
    let plan = "[run.sampling]\nunit = 20000\nevery = 30000000\n";
    run(&dir, plan);
    let refused = |settings: &[&str], status, words: &[&str]| {
        let mut command = tipsim();
        command.arg("phases").arg(dir.join("spec.toml")).arg("--out").arg(dir.join("none"));
        for setting in settings {
            command.args(["--set", setting]);
        }
        assert_error(&command.output().unwrap(), status, words);
        assert!(!dir.join("none").exists() && !dir.join("none.partial").exists());
    };
    refused(&["guest.harts=2"], 2, &["guest.harts = 1", "found 2"]);
    refused(&["run.max_instructions=30000000"], 1, &["run.max_instructions", "no phases"]);
    refused(&["run.region=\"marked\""], 1, &["no region of interest"]);
    // What others have put there is not written over, and no link is followed.
    std::fs::create_dir(dir.join("theirs")).unwrap();
    std::os::unix::fs::symlink("../precious", dir.join("theirs/phases.bb")).unwrap();
    std::fs::write(dir.join("precious"), "precious").unwrap();
    let mut command = tipsim();
    command.arg("phases").arg(dir.join("spec.toml")).arg("--out").arg(dir.join("theirs"));
    assert_error(&command.output().unwrap(), 2, &["theirs", "phases.bb"]);
    assert_eq!(std::fs::read_to_string(dir.join("precious")).unwrap(), "precious");
    let mut command = tipsim();
    command.arg("phases").arg(dir.join("spec.toml")).args(["--set", "run.command=\"exit 7\""]);
    let failed = command.arg("--out").arg(dir.join("failed")).output().unwrap();
    assert_eq!(failed.status.code(), Some(7), "{}", stderr(&failed));
    assert_eq!(json(&dir.join("failed/phases.json"))["command_status"], 7);
    let survey = |out: &str, settings: &[&str]| {
        let mut command = tipsim();
        command.arg("phases").arg(dir.join("spec.toml")).args(["--interval", "200k"]);
        for setting in settings {
            command.args(["--set", setting]);
        }
        let text = succeed(command.arg("--out").arg(dir.join(out)));
        let read = |name: &str| std::fs::read_to_string(dir.join(out).join(name)).unwrap();
        let files = ["phases.bb", "phases.simpts", "phases.weights"].map(read);
        (text, json(&dir.join(out).join("phases.json")), files)
    };
    let (text, found, [vectors, points, weights]) = survey("phases", &[]);
    let phases = found["phases"].as_array().unwrap();
    assert!((3..=30).contains(&phases.len()), "{text}");
    let instructions: Vec<u64> =
        serde_json::from_value(found["survey"]["instructions"].clone()).unwrap();
    assert_eq!(found["of"].as_array().unwrap().len(), instructions.len());
    // The array of 256 pages is written once, and then one element in 4099 is read.
    let pages = found["survey"]["pages"].as_array().unwrap();
    assert_eq!(pages.len(), instructions.len());
    let of = |pages: &Value, key: &str| pages[key].as_u64().unwrap();
    let most = |key: &str| pages.iter().map(|pages| of(pages, key)).max().unwrap();
    let footprint: u64 = pages.iter().map(|pages| of(pages, "new")).sum();
    assert!(
        (256..4000).contains(&footprint) && most("data") >= 256,
        "{footprint} {}",
        most("data")
    );
    assert!((20..256).contains(&most("new")) && most("code") > 2, "{}", most("new"));
    assert!(pages.iter().all(|pages| of(pages, "written") <= of(pages, "data")));
    let strides = pages.iter().filter(|pages| of(pages, "data") >= 256);
    assert!(strides.clone().count() > 10 && strides.clone().any(|pages| of(pages, "written") < 64));
    // Each vector has all instructions of its interval, and those that trapped.
    assert_eq!(vectors.lines().count(), instructions.len());
    for (line, expected) in vectors.lines().zip(&instructions) {
        let blocks = line.strip_prefix('T').unwrap().split_whitespace();
        let counts = blocks.map(|block| block.rsplit(':').next().unwrap().parse::<u64>().unwrap());
        let counted: u64 = counts.sum();
        assert!((*expected..expected + 2000).contains(&counted), "{counted} of {expected}");
    }
    let numbers = |text: &str| -> Vec<(f64, usize)> {
        let pairs = text.lines().map(|line| line.split_once(' ').unwrap());
        pairs.map(|(value, phase)| (value.parse().unwrap(), phase.parse().unwrap())).collect()
    };
    let (points, weights) = (numbers(&points), numbers(&weights));
    assert_eq!((points.len(), weights.len()), (phases.len(), phases.len()));
    let sum: f64 = weights.iter().map(|(weight, _)| weight).sum();
    assert!((sum - 1.0).abs() < 1e-4, "{sum}");
    for (interval, phase) in points {
        assert_eq!(found["of"][interval as usize], phase);
    }
    let mut command = tipsim();
    command.arg("phases").arg(dir.join("spec.toml")).args(["--interval", "200k", "--json"]);
    command.args(["--dimensions", "100"]).arg("--out").arg(dir.join("phases-100"));
    let wider: Value = serde_json::from_str(&succeed(&mut command)).unwrap();
    let vectors_of = |found: &Value| -> Vec<Vec<f64>> {
        serde_json::from_value(found["survey"]["vectors"].clone()).unwrap()
    };
    assert_eq!(wider["survey"]["instructions"], found["survey"]["instructions"]);
    for (wide, usual) in vectors_of(&wider).iter().zip(vectors_of(&found)) {
        assert_eq!((wide.len(), usual.len()), (100, 15));
        assert_eq!(wide[..15], usual[..]);
    }
    for settings in [&["run.translator=\"off\""][..], &["run.threads=\"one\""]] {
        let (_, other, [other_vectors, ..]) = survey("phases-other", settings);
        assert!(other == found && other_vectors == vectors, "{settings:?}");
    }
}

#[test]
fn schemes_are_judged_by_a_run_that_times_everything() {
    let dir = scratch("sampled-schemes");
    let gaps = "[run.sampling]\nunit = 10000\nevery = 1000000\n";
    run(&dir, gaps);
    std::fs::rename(dir.join("out"), dir.join("gaps")).unwrap();
    let run_json =
        run(&dir, "[run.sampling]\nunit = 10000\nevery = 10000\nwarm_up = 0\ncheck = 0\n");
    succeed(
        tipsim()
            .arg("phases")
            .arg(dir.join("spec.toml"))
            .args(["--interval", "20000", "--out"])
            .arg(dir.join("phases")),
    );
    let of = |run: &str, more: &[&str]| {
        tipsim().arg("schemes").arg(dir.join(run)).args(more).current_dir(&dir).output().unwrap()
    };
    let refused = of("gaps", &[]);
    assert_error(&refused, 2, &["units.json", "without a gap"]);
    let refused = of("out", &["--phases", "phases", "--unit", "50k"]);
    assert_error(&refused, 2, &["phases.json", "multiple", "found 20000"]);
    let refused = of("out", &["--unit", "15k"]);
    assert_error(&refused, 2, &["units.json", "at least 2"]);
    let arguments = ["--phases", "phases", "--unit", "40k", "--budget", "1,10", "--seeds", "200"];
    let more = ["--choosing-seeds", "5", "--json"];
    let output = of("out", &[&arguments[..], &more[..]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["instructions"], run_json["sampling"]["instructions"]);
    let trials = found["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 10);
    for trial in trials {
        let number = |key: &str| trial[key].as_f64().unwrap();
        let budget = number("budget");
        assert!(number("mean_error") <= number("largest_error"), "{trial}");
        assert!(number("bias").abs() <= number("mean_error"), "{trial}");
        let scheme = trial["scheme"].as_str().unwrap();
        match scheme {
            "simpoint" => assert!(trial["holds_95"].is_null(), "{trial}"),
            _ => assert!(number("holds_99_7") > 0.8, "{trial}"),
        }
        if matches!(scheme, "systematic" | "random") {
            assert_eq!(number("seeds"), 200.0);
            assert!((100.0 * number("timed") / budget - 1.0).abs() < 0.1, "{trial}");
            assert!(budget < 10.0 || number("mean_error") < 0.05, "{trial}");
        }
    }
    let text = stdout(&of("out", &["--unit", "40k", "--units", "30", "--budget", "1"]));
    assert!(text.contains("\nsystematic        40k      30"), "{text}");
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
    let expected = run(&there, &format!("{plan}[core]\npreset = \"mega-boom\"\n"));
    let cpi = |run: &Value| run["sampling"]["cpi"]["value"].as_f64().unwrap();
    let error = cpi(&other) / cpi(&expected) - 1.0;
    assert!(error.abs() < 0.02, "{error}");
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
