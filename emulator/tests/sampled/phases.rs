//! Phases of a program, and units that are chosen by them.

use serde_json::Value;

use super::{run, run_recorded, run_with};
use crate::common::{assert_error, json, run_spec, scratch, stderr, stdout, succeed, tipsim};

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
    let alone = found["units_alone"]["value"].as_f64().unwrap_or(estimate);
    assert!((awake as f64 - alone).abs() < 0.005 * alone, "{totals}");
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
    let text = stdout(&of("out", &["--unit", "40k", "--units", "30,9999", "--budget", "0.001"]));
    for left_out in ["need --phases", "0.001 % of the region is 0 units", "no 9999 units of 40000"]
    {
        assert!(text.contains(left_out), "{text}");
    }
    assert!(text.contains("\nsystematic        40k      30"), "{text}");
}
