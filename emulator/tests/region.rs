//! A program's own marks narrow the command's region: in reports, in traces and for samplers, on any hart.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{json, repo, run_spec, scratch, stderr, stdout, succeed, tipsim};
use serde_json::Value;

/// Builds a program in which every function is a loop; `main` calls and marks.
fn program(dir: &Path, main: &str) -> PathBuf {
    let (source, elf) = (dir.join("marks.c"), dir.join("marks"));
    let functions: String = ["prepare", "inner", "between", "nested", "teardown"]
        .map(|name| {
            format!(
                "__attribute__((noinline)) static void {name}(void)\n\
                 {{ for (int i = 0; i < 50000; i++) sum += i; }}\n"
            )
        })
        .concat();
    let text = format!(
        "#include \"region.h\"\nstatic volatile long sum;\n{functions}\
         int main(void)\n{{\n{main}\nreturn 0;\n}}\n"
    );
    std::fs::write(&source, text).unwrap();
    let mut gcc = Command::new("riscv64-linux-gnu-gcc");
    gcc.args(["-O1", "-g", "-static", "-Wno-unused-function", "-I"]);
    gcc.arg(repo().join("guest-sw/tools"));
    succeed(gcc.arg("-o").arg(&elf).arg(&source));
    elf
}

/// Runs it as a spec says; run.json, and what was said on standard error.
fn run(dir: &Path, spec: &str) -> (Value, String) {
    let output = run_spec(dir, spec).output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{}{said}", stdout(&output));
    (json(&dir.join("out/run.json")), said)
}

/// A mark's own cycle is the hart's, which is some cycles from where its core commits it.
fn assert_about(regions: &Value, cycles: u64, off: u64) {
    let counted = regions["cycles"].as_u64().unwrap();
    assert!(counted.abs_diff(cycles) <= off, "{cycles}: {regions}");
}

/// The functions of the program that a report has, with their rows.
fn functions(report: &Path) -> Vec<(String, Value)> {
    let report = json(report);
    let rows = report["functions"].as_array().unwrap().iter();
    let own = rows.filter(|row| {
        let module = row["module"].as_u64().unwrap() as usize;
        let path = report["modules"][module]["path"].as_str();
        path.is_some_and(|path| path.ends_with("/marks"))
    });
    own.map(|row| (row["name"].as_str().unwrap().to_owned(), row.clone())).collect()
}

fn has(functions: &[(String, Value)], name: &str) -> bool {
    functions.iter().any(|(known, _)| known == name)
}

#[test]
fn own_marks_narrow_the_region_repeated_and_nested() {
    let dir = scratch("region-repeated");
    program(
        &dir,
        "prepare();\n\
         TIPSIM_REGION_START(); inner(); TIPSIM_REGION_STOP();\n\
         between();\n\
         TIPSIM_REGION_START(); TIPSIM_REGION_START(); inner(); TIPSIM_REGION_STOP(); nested(); TIPSIM_REGION_STOP();\n\
         teardown();",
    );
    let spec = "[guest]\nsymbols = [\".\"]\n[run]\nboot = \"functional\"\nthreads = \"one\"\nregion = \"command\"\n\
        files = [\"marks\"]\ncommand = \"./marks\"\n";
    let (run, said) = run(&dir, spec);
    assert!(!said.contains("region marks"), "{said}");
    let regions = &run["regions"];
    assert_eq!((&regions["count"], &regions["narrowed"]), (&2.into(), &true.into()));
    let cycles = run["oracle_cycles"].as_u64().unwrap() + run["idle_cycles"].as_u64().unwrap();
    assert_about(regions, cycles, 16);

    let own = functions(&dir.join("out/report.json"));
    for (name, expected) in [
        ("inner", true),
        ("nested", true),
        ("prepare", false),
        ("between", false),
        ("teardown", false),
    ] {
        assert_eq!(has(&own, name), expected, "{name} of {own:?}");
    }
    // The trace gives the same result, with call stacks and over time.
    let mut evaluate = tipsim();
    evaluate.args(["trace", "evaluate", "--format", "json"]);
    let again = succeed(evaluate.arg(dir.join("out/trace.tip")));
    let again: Value = serde_json::from_str(&again).unwrap();
    assert_eq!(again["fingerprint"], run["fingerprint"]);
    for (format, profiler) in [("folded", "oracle"), ("speedscope", "oracle")] {
        let mut report = tipsim();
        report.arg("report").arg(dir.join("out"));
        let text = succeed(report.args(["--format", format, "--profiler", profiler]));
        assert!(text.contains("inner") && text.contains("nested"), "{text}");
        for outside in ["prepare", "between", "teardown"] {
            assert!(!text.contains(outside), "{outside} in {text}");
        }
    }
}

#[test]
fn marks_of_one_hart_hold_for_all_and_unbalanced_ones_are_told() {
    let dir = scratch("region-harts");
    program(&dir, "prepare(); TIPSIM_REGION_START(); inner(); TIPSIM_REGION_STOP(); teardown();");
    let spec = "[guest]\nharts = 2\nsymbols = [\".\"]\n[run]\nboot = \"functional\"\nregion = \"command\"\n\
        files = [\"marks\"]\ncommand = \"taskset 2 ./marks; tipsim-region stop; tipsim-region start\"\n";
    let (run, said) = run(&dir, spec);
    assert!(
        said.contains("1 start without a stop") && said.contains("1 stop without a start"),
        "{said}"
    );
    let regions = &run["regions"];
    assert_eq!((&regions["count"], &regions["stray_stops"]), (&2.into(), &1.into()));
    let second = functions(&dir.join("out/hart1/report.json"));
    assert!(has(&second, "inner") && !has(&second, "prepare") && !has(&second, "teardown"));
    // Where the hart sleeps while the other marks, its sleep is counted to the other side in part: without it, what it did is
    // at least the stretch that it marked itself, and at most all of the region.
    let totals = &json(&dir.join("out/hart1/report.json"))["totals"];
    let number = |value: &Value| value.as_u64().unwrap();
    let busy = number(&totals["cycles"]) - number(&totals["idle"]);
    let (own, all) = (number(&regions["each"][0]["cycles"]), number(&regions["cycles"]));
    assert!((own - 1000..=all + 1000).contains(&busy), "{busy}: {regions}");
}

#[test]
fn samplers_of_the_region_see_what_is_marked_in_a_run_that_is_timed_from_reset() {
    let dir = scratch("region-samplers");
    program(&dir, "prepare(); TIPSIM_REGION_START(); inner(); TIPSIM_REGION_STOP(); teardown();");
    let spec = "[guest]\nsymbols = [\".\"]\n[run]\nfiles = [\"marks\"]\ncommand = \"./marks\"\n\
        [record]\ntrace = false\n[[sampler]]\nprofiler = \"tip\"\nperiod = 97\n\
        [[sampler]]\nprofiler = \"tip\"\nperiod = 101\nregion = \"command\"\n";
    let (run, _) = run(&dir, spec);
    assert_eq!(run["regions"]["count"], 1);
    let own = functions(&dir.join("out/report.json"));
    for name in ["prepare", "inner", "teardown"] {
        let (_, row) = own.iter().find(|(known, _)| known == name).unwrap();
        assert!(row["cycles"].as_f64().unwrap() > 0.0, "{row}");
        let marked = row["shares"][1].as_f64().unwrap_or(0.0);
        assert_eq!(marked > 0.0, name == "inner", "{row}");
    }
}

#[test]
fn a_region_of_marks_alone_is_all_that_is_timed() {
    let dir = scratch("region-marked");
    let spec = "[run]\nboot = \"functional\"\nregion = \"marked\"\n\
        command = \"seq 30000 > numbers; tipsim-run md5sum numbers > sum; rm numbers\"\n";
    let (run, said) = run(&dir, spec);
    assert!(!said.contains("region marks"), "{said}");
    assert_eq!(run["regions"]["count"], 1);
    let number = |value: &Value| value.as_u64().unwrap();
    let timed = number(&run["instructions"]);
    let region = number(&run["regions"]["instructions"]);
    assert!(timed.abs_diff(region) < 100, "{timed} timed, {region} in the region");
    // What made the numbers was functional.
    let report = json(&dir.join("out/report.json"));
    let profiled =
        |name| report["functions"].as_array().unwrap().iter().any(|row| row["name"] == name);
    assert!(profiled("md5_process_block64") && !profiled("seq_main"));

    let dir = scratch("region-not-marked");
    let spec = "[run]\nboot = \"functional\"\nregion = \"marked\"\ncommand = \"true\"\n";
    let output = run_spec(&dir, spec).output().unwrap();
    crate::common::assert_error(&output, 1, &["nothing was profiled"]);
}

#[test]
fn a_run_that_ends_before_its_region_says_so() {
    let dir = scratch("region-never");
    let spec = "[run]\nregion = \"command\"\nmax_cycles = 3000000\ncommand = \"true\"\n";
    let output = run_spec(&dir, spec).output().unwrap();
    let printed = stdout(&output);
    crate::common::assert_error(&output, 1, &["run.max_cycles"]);
    assert!(printed.contains("nothing was profiled"), "{printed}");
    // The trace has all that ran under the timing core.
    assert!(printed.contains("bytes per instruction"), "{printed}");
}
