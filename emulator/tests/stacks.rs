//! Call stacks and threads of programs that leave functions in other ways than by returns. Each program has functions that
//! take nearly all of its time, whose callers are known, in all of their cycles.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::common::{guest, json, repo, scratch, succeed, tipsim};

const WAYS: [&str; 9] =
    ["signals", "handler", "jump", "coroutines", "vfork", "fork", "tail", "returned", "threads"];
/// What calls `main`.
const START: [&str; 4] = ["_start", "__libc_start_main", "__libc_start_call_main", "main"];

fn compile(compiler: &str, level: &str, source: &str, dir: &Path) {
    let source = repo().join("emulator/tests/stacks").join(source);
    let name = source.file_stem().expect("a source has a name");
    let mut compile = Command::new(compiler);
    compile.args([level, "-g", "-static", "-o"]);
    succeed(compile.arg(dir.join(name)).arg(&source));
}

/// A run of all programs, shared by the tests of this file.
fn run() -> &'static Path {
    static OUT: OnceLock<PathBuf> = OnceLock::new();
    OUT.get_or_init(|| {
        let out = scratch("stacks");
        let files = out.join("files");
        std::fs::create_dir(&files).unwrap();
        compile("riscv64-linux-gnu-gcc", "-O1", "stacks.c", &files);
        compile("riscv64-linux-gnu-g++", "-O2", "throw.cpp", &files);
        let commands = WAYS.map(|way| format!("./stacks {way}")).join("; ");
        let spec = out.join("spec.toml");
        let text = format!(
            "[guest]\nsymbols = [\"files\"]\n[run]\nboot = \"functional\"\nthreads = \"one\"\nregion = \"command\"\n\
             command = \"{commands}; ./throw\"\nfiles = [\"files/stacks\", \"files/throw\"]\n\
             [[sampler]]\nprofiler = \"tip\"\nperiod = 211\n\
             [[sampler]]\nprofiler = \"tip\"\nperiod = 211\nthread = [\"alpha\", \"beta\"]\n"
        );
        std::fs::write(&spec, text).unwrap();
        let mut run = tipsim();
        run.arg("run").arg(&spec).arg("--guest-dir").arg(guest());
        succeed(run.arg("--out").arg(out.join("out")));
        out.join("out")
    })
}

/// The Oracle's stacks in functions of the program, outermost first, without their process, with their cycles.
fn stacks() -> &'static [(Vec<String>, u64)] {
    static STACKS: OnceLock<Vec<(Vec<String>, u64)>> = OnceLock::new();
    STACKS.get_or_init(|| {
        let mut report = tipsim();
        report.arg("report").arg(run());
        let text = succeed(report.args(["--format", "folded", "--profiler", "oracle"]));
        let stack = |line: &str| {
            let (stack, cycles) = line.rsplit_once(' ').expect("a stack and its cycles");
            let frames = stack.split(';').skip(1).map(str::to_owned);
            (frames.collect(), cycles.parse().expect("cycles"))
        };
        text.lines().map(stack).collect()
    })
}

/// Checks that a function's own cycles, `least` or more, all have exactly these callers after those of `main`.
#[track_caller]
fn assert_callers(function: &str, callers: &[&str], least: u64) {
    let expected: Vec<&str> = START.iter().chain(callers).copied().collect();
    assert_all(function, &expected, least);
}

#[track_caller]
fn assert_all(function: &str, expected: &[&str], least: u64) {
    let mut total = 0;
    for (stack, cycles) in stacks() {
        let Some(at) = stack.iter().position(|frame| frame == function) else {
            continue;
        };
        // What interrupts it is on top of it.
        assert_eq!(stack[..at], *expected, "{cycles} cycles of {function}");
        total += cycles;
    }
    assert!(total >= least, "{function} has {total} cycles");
}

#[test]
fn signals_do_not_lose_the_callers_of_what_they_interrupt() {
    assert_callers("signalled_inner", &["signals", "signalled_outer"], 20_000_000);
}

#[test]
fn siglongjmp_out_of_a_handler_goes_back_to_its_function() {
    assert_callers("after_handler", &["handler_left"], 1_000_000);
}

#[test]
fn longjmp_over_a_thousand_frames_goes_back_to_its_function() {
    assert_callers("after_jump", &["jumped"], 1_000_000);
}

#[test]
fn exceptions_over_hundreds_of_frames_are_caught_where_they_are() {
    assert_callers("caught_inner()", &["catcher(int)"; 6], 400_000);
}

#[test]
fn coroutines_keep_their_stacks_apart() {
    for (name, outer, deep, depth) in
        [("left_inner", "left", "left_deep", 21), ("right_inner", "right", "right_deep", 31)]
    {
        let mut expected = vec!["__start_context", outer];
        expected.resize(2 + depth, deep);
        assert_all(name, &expected, 600_000);
    }
}

#[test]
fn children_on_their_parent_s_stack_and_copies_have_its_callers() {
    assert_callers("before_exec", &["vforked"], 400_000);
    assert_callers("after_vfork", &["vforked"], 400_000);
    assert_callers("forked_inner", &["forked"], 250_000);
}

#[test]
fn tail_calls_and_returns_that_are_jumps_leave_no_function() {
    assert_callers("tail_inner", &["tail_caller", "tail"], 100_000);
    assert_callers("returned_inner", &["returned_to"], 1_000_000);
}

#[test]
fn threads_have_their_names_in_reports_exports_and_filters() {
    let report = json(&run().join("report.json"));
    let rows = report["threads"].as_array().expect("threads");
    let named = |name: &str| -> Vec<&serde_json::Value> {
        rows.iter().filter(|row| row["name"] == name).collect()
    };
    let cycles = |name: &str| named(name)[0]["cycles"].as_f64().expect("cycles");
    let ratio = cycles("alpha") / cycles("beta");
    assert!((2.9..3.1).contains(&ratio), "alpha to beta {ratio}");
    // Forty that come and go are one row.
    assert_eq!(named("passing").len(), 1);
    assert_eq!(named("passing")[0]["count"], 40);
    let text = std::fs::read_to_string(run().join("report.txt")).unwrap();
    assert!(text.contains("Threads of"), "{text}");

    let spun = |name: &str| -> u64 {
        let own = stacks().iter().filter(|(stack, _)| stack[0] == name);
        own.map(|(_, cycles)| cycles).sum()
    };
    let ratio = spun("alpha") as f64 / spun("beta") as f64;
    assert!((2.9..3.1).contains(&ratio), "alpha to beta {ratio}");

    let file = run().join("perf.data.export");
    let mut export = tipsim();
    export.arg("report").arg(run());
    succeed(export.args(["--format", "perf-data", "-o"]).arg(&file));
    let mut perf = Command::new("perf");
    let script = succeed(perf.args(["script", "-F", "comm,tid,period", "-i"]).arg(&file));
    let sum = |name: &str| -> f64 {
        let words = script.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let own = words.filter(|words| words.first() == Some(&name));
        own.filter_map(|words| words.get(2)?.parse::<f64>().ok()).sum()
    };
    let ratio = sum("alpha") / sum("beta");
    assert!((2.9..3.1).contains(&ratio), "alpha to beta {ratio}");

    let columns = report["columns"].as_array().expect("columns");
    let samples = |name: &str| {
        let column = columns.iter().find(|column| column["name"] == name);
        column.expect("a column")["samples"].as_f64().expect("samples")
    };
    let ratio = samples("tip@211:alpha") / samples("tip@211:beta");
    assert!((2.9..3.1).contains(&ratio), "alpha to beta {ratio}");
}
