//! `tipsim core`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::{assert_error, tipsim};

fn show(args: &[&str]) -> std::process::Output {
    let show = tipsim().args(["core", "show"]).args(args).output();
    show.unwrap()
}

#[test]
fn parameters_are_set_with_and_without_the_spec_prefix() {
    for key in ["rob.entries", "core.rob.entries"] {
        let set = format!("{key}=192");
        let out = show(&["boom-4w", "--set", &set, "--format", "json"]);
        let shown: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        let rows = shown["parameters"].as_array().unwrap();
        let rob = rows.iter().find(|row| row["key"] == "rob.entries").unwrap();
        assert_eq!(rob["value"], 192);
    }
}

#[test]
fn cores_that_cannot_be_are_refused() {
    let cases = [
        ("rob.entries=97", ["rob.entries", "multiple", "97"]),
        ("core.l1d.kib=33", ["l1d.kib", "power of two", "33"]),
        ("decode.width=16777216", ["decode.width", "1 to 8", "16777216"]),
        ("decode.width=three", ["decode.width", "integer", "three"]),
        ("rob.size=64", ["rob.size", "unknown", "rob"]),
    ];
    for (set, parts) in cases {
        assert_error(&show(&["boom-4w", "--set", set]), 2, &parts);
    }
}

#[test]
fn the_picture_says_the_parameters() {
    let out = show(&["mega-boom", "--set", "rob.entries=136", "--format", "svg"]);
    let svg = String::from_utf8(out.stdout).unwrap();
    assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
    for part in ["136 entries", "34 rows × 4", "TIP unit", "store queue  32"] {
        assert!(svg.contains(part), "{part}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_panic() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut show = tipsim();
    show.args(["core", "show", "boom-4w"]).stdout(writer);
    let out = show.stderr(Stdio::piped()).spawn().unwrap();
    let out = out.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&out.stderr), "");
    assert_eq!(out.status.code(), Some(141));
}

#[test]
fn a_full_disk_is_an_error_and_says_so() {
    for arguments in [
        &["core", "show", "boom-4w"][..],
        &["core", "list", "--format", "json"],
        &["core", "show", "boom-4w", "--format", "svg"],
        &["core", "events"],
        &["tables"],
        &["completions", "bash"],
        &["--help"],
        &["run", "--help"],
        &["--version"],
        &["help", "report"],
    ] {
        let full = std::fs::File::create("/dev/full").unwrap();
        let out = tipsim().args(arguments).stdout(full).output().unwrap();
        assert_eq!(
            String::from_utf8_lossy(&out.stderr),
            "tipsim: standard output: cannot write: No space left on device (os error 28)\n",
            "{arguments:?}"
        );
        assert_eq!(out.status.code(), Some(1), "{arguments:?}");
    }
}

fn events(format: &str) -> String {
    let out = tipsim().args(["core", "events", "--format", format]).output();
    String::from_utf8(out.unwrap().stdout).unwrap()
}

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

fn assert_generated(path: &str, expected: &str) {
    register_table::is_generated(&repository(path), expected, "scripts/dev bless").unwrap();
}

#[test]
fn the_guide_lists_the_events() {
    assert_generated("emulator/guide/src/events.md", &events("markdown"));
}

#[test]
fn the_guide_lists_the_tables() {
    let out = tipsim().args(["tables", "--format", "markdown"]).output();
    let tables = String::from_utf8(out.unwrap().stdout).unwrap();
    assert_generated("emulator/guide/src/tables.md", &tables);
}

const PERF_PATCH: &str = "linux-patches/0040-perf-vendor-events-riscv-add-tipsim-s-core.patch";
const PERF_FOLDER: &str = "tools/perf/pmu-events/arch/riscv/tipsim/boom";

/// The patch that gives the guest's perf the names of the events.
#[test]
fn perf_knows_the_events() {
    let mut patch = "\
From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001
From: tipsim developers <tipsim@localhost>
Subject: [PATCH] perf vendor events riscv: add tipsim's core

Events and metrics of the out-of-order core that tipsim simulates. The
standard events are those of the RISC-V performance events draft; the
others are sets with a mask of events, as BOOM has them. The files are
written by `tipsim core events --format perf`.
---
--- a/tools/perf/pmu-events/arch/riscv/mapfile.csv
+++ b/tools/perf/pmu-events/arch/riscv/mapfile.csv
@@ -17,2 +17,3 @@
 0x67e-0x80000000db0000[89]0-0x[[:xdigit:]]+,v1,starfive/dubhe-80,core
 0x31e-0x8000000000008a45-0x[[:xdigit:]]+,v1,andes/ax45,core
+0x0-0x8000000074697001-0x[[:xdigit:]]+,v1,tipsim/boom,core
"
    .to_owned();
    let files: BTreeMap<String, serde_json::Value> = serde_json::from_str(&events("perf")).unwrap();
    for (name, content) in files {
        let content = serde_json::to_string_pretty(&content).unwrap();
        let lines = content.lines().count();
        patch += &format!("--- /dev/null\n+++ b/{PERF_FOLDER}/{name}\n@@ -0,0 +1,{lines} @@\n");
        for line in content.lines() {
            patch += &format!("+{line}\n");
        }
    }
    assert_generated(PERF_PATCH, &patch);
}

#[test]
fn a_c_compiler_takes_the_events() {
    let dir = crate::common::scratch("events-header");
    std::fs::write(dir.join("events.h"), events("c")).unwrap();
    let program = "#include \"events.h\"\n\
        _Static_assert(TIPSIM_INST_RET == 2 && TIPSIM_INST_DIV == 0x420, \"\");\n\
        unsigned long long f(void) { return TIPSIM_INST_RET | TIPSIM_EVENT_THRESHOLD(2ull) | TIPSIM_EVENT_EDGE; }\n";
    std::fs::write(dir.join("events.c"), program).unwrap();
    let compiler = Command::new("riscv64-linux-gnu-gcc")
        .args(["-Wall", "-Werror", "-c", "-o", "events.o", "events.c"])
        .current_dir(&dir)
        .status();
    assert!(compiler.unwrap().success());
}
