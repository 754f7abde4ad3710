//! The critical path over threads: of a program that has one that is known.

use std::process::Command;

use crate::common::{json, repo, run_spec, scratch, succeed, tipsim};
use serde_json::Value;

/// Returns the share of the path in functions of this name of a thread of this name, whatever its number is.
fn share_of(path: &Value, thread: &str, function: &str) -> f64 {
    let is_own = |row: &&Value| {
        let name = row["thread"].as_str().unwrap();
        name.split(' ').next() == Some(thread) && row["function"] == function
    };
    let rows = path["functions"].as_array().unwrap().iter().filter(is_own);
    rows.map(|row| row["share"].as_f64().unwrap()).sum()
}

#[test]
fn the_path_leads_through_the_slow_stage_and_the_serial_thread() {
    let dir = scratch("thread-path");
    let mut compiler = Command::new("riscv64-linux-gnu-gcc");
    compiler.args(["-O2", "-g", "-static", "-pthread", "-Wall", "-Wextra", "-Werror", "-I"]);
    compiler.arg(repo().join("guest-sw/tools")).arg("-o").arg(dir.join("path"));
    succeed(compiler.arg(repo().join("emulator/tests/harts/path.c")));
    let spec = "[guest]\nharts = 2\n[run]\nboot = \"functional\"\nregion = \"marked\"\nfiles = [\"path\"]\n\
         command = \"./path\"\n[record]\ncall_stacks = true\n[[sampler]]\nprofiler = \"tip\"\nperiod = 10007\n";
    succeed(&mut run_spec(&dir, spec));
    let report = json(&dir.join("out/report.json"));
    let path = &report["thread_path"];
    let rows = |key: &str| path[key].as_array().unwrap().iter();
    // All of the path is the region, however it is split.
    let cycles = path["cycles"].as_u64().unwrap();
    for key in ["kinds", "threads"] {
        assert_eq!(rows(key).map(|row| row["cycles"].as_u64().unwrap()).sum::<u64>(), cycles);
    }
    let elapsed = report["totals"]["elapsed"]["cycles"].as_f64().unwrap();
    assert!((cycles as f64 - elapsed).abs() < 0.002 * elapsed, "{cycles}, {elapsed}");
    // The work is 20 and 10 times as much as what a stage or step of the other thread is, which happens meanwhile.
    let on_path = [("slow", "slow_work", 0.55..0.68), ("serial", "slow_work", 0.26..0.34)];
    for (thread, function, expected) in on_path {
        let share = share_of(path, thread, function);
        assert!(expected.contains(&share), "{thread}: {share}: {path}");
    }
    for (thread, most) in [("fast", 0.02), ("idler", 0.02)] {
        let share = share_of(path, thread, "fast_work");
        assert!(share < most, "{thread}: {share}: {path}");
    }
    let edge = |waker: &str, waiter: &str, reason: &str| {
        let is_of = |row: &&Value| {
            let starts = |key: &str, name: &str| row[key].as_str().unwrap().starts_with(name);
            starts("waker", waker) && starts("waiter", waiter) && row["reason"] == reason
        };
        rows("edges").find(is_of).unwrap_or_else(|| panic!("{waker}, {waiter}, {reason}: {path}"))
    };
    let join = edge("serial", "path", "futex (shared)");
    assert_eq!((&join["count"], &join["place"]), (&1.into(), &"both".into()), "{join}");
    assert!(join["waited"].as_u64().unwrap() as f64 > 0.25 * cycles as f64, "{join}");
    edge("path", "slow", "new thread");
    edge("path", "serial", "new thread");
    let text = std::fs::read_to_string(dir.join("out/report.txt")).unwrap();
    assert!(text.contains("Critical path over threads"), "{text}");
    let page = std::fs::read_to_string(dir.join("out/report.html")).unwrap();
    assert!(page.contains("<section id=\"thread-path\""));
    let mut explain = tipsim();
    explain.arg("report").arg(dir.join("out"));
    let text = succeed(explain.args(["--explain", "thread_path.functions.0.cycles"]));
    assert!(text.contains("profile/src/waits/path.rs"), "{text}");
}
