//! Exported profiles, opened by the tools that they are for.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::common::{assert_error, guest, json, repo, scratch, stderr, stdout, succeed, tipsim};

/// A short run, shared by the tests of this file.
fn run() -> &'static Path {
    static OUT: OnceLock<PathBuf> = OnceLock::new();
    OUT.get_or_init(|| {
        let out = scratch("export");
        let spec = out.join("spec.toml");
        let text = "[run]\nboot = \"functional\"\nthreads = \"one\"\nregion = \"command\"\n\
            command = \"seq 1 3000 | sort -r | tail -n 1\"\n";
        std::fs::write(&spec, text).unwrap();
        let mut run = tipsim();
        run.arg("run").arg(&spec).arg("--guest-dir").arg(guest());
        succeed(run.arg("--out").arg(out.join("out")));
        out.join("out")
    })
}

/// Cycles of the Oracle, all of which an export must account for.
fn cycles() -> u64 {
    let run = json(&run().join("run.json"));
    run["oracle_cycles"].as_u64().expect("the Oracle's cycles")
}

/// Writes an export to `file` in the run's folder.
fn export(format: &str, profilers: &[&str], file: &str) -> PathBuf {
    let path = run().join(file);
    let mut report = tipsim();
    report.arg("report").arg(run()).args(["--format", format, "-o"]).arg(&path);
    for profiler in profilers {
        report.args(["--profiler", profiler]);
    }
    succeed(&mut report);
    path
}

/// Returns what scripts/test installs from npm and PyPI.
fn tools() -> PathBuf {
    let tools = std::env::var_os("TIPSIM_EXPORT_TOOLS");
    tools.expect("TIPSIM_EXPORT_TOOLS is not set: run scripts/test, which installs them").into()
}

fn node() -> Command {
    Command::new(tools().join("node_modules/.bin/node"))
}

#[test]
fn perf_opens_perf_data() {
    let file = export("perf-data", &["oracle", "tip"], "export.perf.data");
    let perf = |args: &[&str]| {
        let mut perf = Command::new("perf");
        succeed(perf.args(args).arg("-i").arg(&file))
    };
    let report = perf(&["report", "--stdio", "--sort", "comm,dso,sym"]);
    for event in ["of event 'oracle'", "of event 'tip'"] {
        assert!(report.contains(event), "no {event}:\n{report}");
    }
    for name in ["sort", "busybox", "vmlinux", "memcpy"] {
        assert!(report.contains(name), "no {name}:\n{report}");
    }

    let script = perf(&["script", "-F", "event,period"]);
    let sum = |event: &str| -> u64 {
        let lines = script.lines().filter_map(|line| line.trim().split_once(' '));
        let of_event = lines.filter(|(_, name)| name.trim().trim_end_matches(':') == event);
        of_event.map(|(period, _)| period.parse::<u64>().expect("a period")).sum()
    };
    assert_eq!(sum("oracle"), cycles());
    assert!(cycles() - sum("tip") < 199, "the tail is shorter than a period");

    let objdump = "--objdump=riscv64-linux-gnu-objdump";
    let annotate = perf(&["annotate", "--stdio", objdump, "-s", "__pi___memcpy"]);
    let hot = |line: &str| {
        let percent = line.split_whitespace().next().and_then(|first| first.parse::<f64>().ok());
        percent.is_some_and(|percent| percent > 1.0) && line.contains("sd ")
    };
    assert!(annotate.lines().any(hot), "no hot store in:\n{annotate}");
}

#[test]
fn pprof_opens_pprof() {
    let file = export("pprof", &[], "export.pb.gz");
    let pprof = |args: &[&str]| {
        let mut pprof = Command::new("go");
        succeed(pprof.args(["tool", "pprof"]).args(args).arg(&file))
    };
    let top = pprof(&["-top", "-nodecount=20", "-sample_index=oracle"]);
    assert!(top.contains("Type: oracle"), "{top}");
    let total = format!("Total samples = {}cycles", cycles());
    assert!(top.contains(&total), "no {total}:\n{top}");
    assert!(top.contains("memcpy"), "{top}");
    let tags = pprof(&["-tags", "-sample_index=software"]);
    assert!(tags.contains("process:") && tags.contains("sort"), "{tags}");
}

#[test]
fn firefox_profiler_opens_its_profile() {
    let file = export("firefox", &["oracle"], "export.firefox.json");
    let sessions = scratch("export-firefox");
    let cli = |args: &[&str]| {
        let mut node = node();
        node.arg(tools().join("node_modules/@firefox-devtools/profiler-cli/dist/profiler-cli.js"));
        node.env("PROFILER_CLI_SESSION_DIR", &sessions).env("PROFILER_CLI_NO_SYMBOLICATE", "1");
        node.args(args);
        node
    };
    let path = file.to_str().expect("a UTF-8 path");
    // On a busy machine profiler-cli finds its own daemon too late, and says to try again.
    let loaded = (0..30)
        .map(|_| cli(&["load", path]).output().unwrap())
        .find(|output| !stderr(output).contains("did not become ready"));
    let loaded = loaded.expect("a daemon that becomes ready");
    assert!(loaded.status.success(), "{}", stderr(&loaded));
    let threads = cli(&["thread", "list"]).output();
    let samples = cli(&["thread", "samples"]).output();
    succeed(&mut cli(&["stop", "--all"]));
    let (threads, samples) = (stdout(&threads.unwrap()), stdout(&samples.unwrap()));
    assert!(threads.contains("sort (oracle)"), "{threads}");
    // The busiest thread is selected: its cycles, functions and instructions.
    let cycles_of = |thread: &serde_json::Value| -> u64 {
        let weights = thread["samples"]["weight"].as_array().expect("weights");
        weights.iter().filter_map(|weight| weight.as_u64()).sum()
    };
    let profile = json(&file);
    let all: Vec<u64> =
        profile["threads"].as_array().expect("threads").iter().map(cycles_of).collect();
    assert_eq!(all.iter().sum::<u64>(), cycles());
    let busiest = all.iter().max().expect("a thread");
    assert!(samples.contains(&format!("({busiest} running samples)")), "{samples}");
    for word in ["User", "Kernel", "busybox!seq_main"] {
        assert!(samples.contains(word), "no {word}:\n{samples}");
    }
    assert!(!samples.contains("busybox!0x"), "functions are leaves");
}

#[test]
fn speedscopes_schema_holds() {
    let file = export("speedscope", &[], "export.speedscope.json");
    let script = repo().join("emulator/tests/export/check_speedscope.js");
    let sums = succeed(node().arg(script).arg(tools()).arg(file));
    assert!(sums.contains(&format!("oracle {}\n", cycles())), "{sums}");
    assert_eq!(sums.lines().count(), 9, "{sums}");
}

#[test]
fn what_is_left_out_is_said() {
    let written = |more: &[&str]| {
        let path = run().join("left-out.json");
        let mut report = tipsim();
        report.arg("report").arg(run()).args(more);
        report.args(["--format", "speedscope", "--profiler", "oracle", "-o"]);
        let out = report.arg(&path).output().unwrap();
        assert!(out.status.success());
        let said = String::from_utf8(out.stderr).unwrap();
        let file = json(&path);
        let exporter = file["exporter"].as_str().expect("text").to_owned();
        let weights = file["profiles"][0]["weights"].as_array().unwrap();
        let cycles = weights.iter().map(|weight| weight.as_u64().unwrap());
        assert_eq!(cycles.sum::<u64>(), self::cycles());
        (said, exporter, weights.len())
    };
    let note = "are charged to their functions";
    let (said, exporter, samples) = written(&["--instructions"]);
    assert!(said.contains(note), "{said}");
    assert!(exporter.contains(note), "{exporter}");
    let (said, exporter, all) = written(&["--instructions", "--exact"]);
    assert!(!said.contains(note), "{said}");
    assert!(!exporter.contains(note), "{exporter}");
    assert!(all > 2 * samples, "{all} and {samples} samples");
}

#[test]
fn perfettos_messages_hold() {
    let file = export("perfetto", &[], "export.pftrace");
    let script = repo().join("emulator/tests/export/check_perfetto.py");
    let python = tools().join("python/bin/python");
    let means = succeed(Command::new(python).arg(script).arg(file));
    let all = means.lines().filter_map(|line| line.strip_prefix("cycle stack of spec: "));
    let percents = all.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok());
    let sum: f64 = percents.sum();
    assert!((sum - 100.0).abs() < 0.1, "categories make {sum} %:\n{means}");
    assert!(means.contains("sort: Execution"), "{means}");
}

#[test]
fn folded_stacks_go_to_standard_output() {
    let folded = |more: &[&str]| {
        let mut report = tipsim();
        report.arg("report").arg(run()).args(more);
        let text = succeed(report.args(["--format", "folded", "--profiler", "oracle"]));
        let cycles = |line: &str| line.rsplit_once(' ')?.1.parse::<u64>().ok();
        let sum: u64 = text.lines().map(|line| cycles(line).expect("cycles")).sum();
        assert_eq!(sum, self::cycles());
        text
    };
    let flat = folded(&["--no-call-stacks"]);
    assert!(flat.contains("memcpy_[k] "), "no kernel function");
    let instructions = folded(&["--no-call-stacks", "--instructions"]);
    assert!(instructions.contains("memcpy_[k];0x"), "no instruction of the kernel");
    let text = folded(&[]);
    for handled in ["do_trap_ecall_u_[k];", "do_page_fault_[k];"] {
        assert!(text.contains(handled), "{handled}");
    }
    // Some stacks lead from the program into the kernel.
    let into_kernel = |line: &str| {
        let mut frames = line.split(';').skip(1);
        frames.next().is_some_and(|first| !first.ends_with("_[k]"))
            && frames.any(|f| f.ends_with("_[k]"))
    };
    assert!(text.lines().any(into_kernel), "no system call or fault");
}

#[test]
fn bad_choices_say_what_there_is() {
    let report = |args: &[&str]| tipsim().arg("report").arg(run()).args(args).output().unwrap();
    let out = report(&["--format", "folded", "--profiler", "tipp"]);
    assert_error(&out, 2, &["--profiler", "tipp", "oracle", "lci"]);
    let out = report(&["--format", "folded", "--profiler", "tip", "--profiler", "lci"]);
    assert_error(&out, 2, &["folded holds one profiler"]);
    let out = report(&["--format", "perfetto", "--profiler", "tip"]);
    assert_error(&out, 2, &["perfetto", "Oracle's cycle stacks"]);
    let out = report(&["--format", "html", "--level", "function"]);
    assert_error(&out, 2, &["--level"]);
    let out = tipsim().args(["report", "absent", "--format", "pprof"]).output().unwrap();
    assert_error(&out, 2, &["absent: ", "No such file"]);
}
