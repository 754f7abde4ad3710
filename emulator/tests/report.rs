//! The report of a real run: rebuilt from its trace, explained, and opened in a browser.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::common::browser::Browser;
use crate::common::{guest, json, scratch, stderr, succeed, tipsim};

/// A short run, shared by the tests of this file.
fn run() -> &'static Path {
    static OUT: OnceLock<PathBuf> = OnceLock::new();
    OUT.get_or_init(|| {
        let out = scratch("report");
        let spec = out.join("spec.toml");
        let text =
            "[run]\nboot = \"functional\"\nregion = \"command\"\ncommand = \"quickstart 1\"\n";
        std::fs::write(&spec, text).unwrap();
        let mut run = tipsim();
        // Where the program's source is found.
        run.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap());
        run.arg("run").arg(&spec).arg("--guest-dir").arg(guest());
        succeed(run.arg("--out").arg(&out));
        out
    })
}

#[test]
fn a_rebuilt_report_is_the_runs_own() {
    let copy = scratch("report-again");
    for name in ["trace.tip", "run.json", "excerpts.zst"] {
        std::fs::copy(run().join(name), copy.join(name)).unwrap();
    }
    let again = succeed(tipsim().arg("report").arg(&copy).arg("--rebuild"));
    assert_eq!(again, std::fs::read_to_string(run().join("report.txt")).unwrap());
    assert_eq!(json(&copy.join("report.json")), json(&run().join("report.json")));
}

/// With the trace damaged, a report is of what the run kept; with what it kept damaged, the report is of the trace.
#[test]
fn a_report_is_rebuilt_without_its_trace() {
    let copy = scratch("report-kept");
    for name in ["trace.tip", "run.json", "evaluation.zst", "excerpts.zst"] {
        std::fs::copy(run().join(name), copy.join(name)).unwrap();
    }
    let damage = |name: &str| {
        let path = copy.join(name);
        let mut bytes = std::fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x55;
        std::fs::write(&path, bytes).unwrap();
    };
    let rebuild = || tipsim().arg("report").arg(&copy).arg("--rebuild").output().unwrap();
    let own = std::fs::read_to_string(run().join("report.txt")).unwrap();
    damage("trace.tip");
    let kept = rebuild();
    assert!(kept.status.success(), "{}", stderr(&kept));
    assert_eq!(String::from_utf8(kept.stdout).unwrap(), own);
    assert_eq!(json(&copy.join("report.json")), json(&run().join("report.json")));
    damage("evaluation.zst");
    assert!(!rebuild().status.success());
    damage("trace.tip");
    assert_eq!(String::from_utf8(rebuild().stdout).unwrap(), own);
}

#[test]
fn slots_events_and_sentences_are_of_the_program() {
    let report = json(&run().join("report.json"));
    let tree = &report["top_down"];
    let row = |name: &str| {
        let rows = tree["processes"].as_array().unwrap();
        rows.iter().find(|row| row["name"] == name).unwrap()
    };
    let all = report["processes"][0]["cycles"].as_f64().unwrap();
    assert_eq!(row("all")["slots"].as_f64().unwrap(), 4.0 * all);
    // Five phases: the divider is in none of them, flushes and mispredicts are.
    let shares = &row("quickstart")["shares"];
    assert!(shares["bad_speculation.clears"].as_f64().unwrap() > 0.01, "{shares}");
    assert!(shares["bad_speculation.mispredicts"].as_f64().unwrap() > 0.01, "{shares}");
    // TIP's samples with events err less than those of NCI at every level.
    let tea = report["tea"]["processes"].as_array().unwrap();
    let errors = &tea.iter().find(|row| row["name"] == "quickstart").unwrap()["errors"];
    let error = |column: &str, level: &str| errors[column][level].as_f64().unwrap();
    let named = |start: &str| {
        let names = errors.as_object().unwrap().keys();
        names.filter(|name| name.starts_with(start)).min().unwrap().clone()
    };
    assert!(
        error(&named("tea"), "instruction") < error(&named("nci-tea"), "instruction"),
        "{errors}"
    );
    let words: Vec<&str> = report["disagreements"]
        .as_array()
        .unwrap()
        .iter()
        .map(|d| d["words"].as_str().unwrap())
        .collect();
    assert!(
        words.iter().any(|w| w.contains("for the flush of `f") && w.contains("flags")),
        "{words:#?}"
    );
}

#[test]
fn numbers_are_explained() {
    let explain = |what: &str| succeed(tipsim().arg("report").arg(run()).args(["--explain", what]));
    let error = explain("processes.quickstart.errors.TIP.instruction.error");
    assert!(error.contains("C_correct") && error.contains("MICRO 2021"), "{error}");
    let ipc = explain("totals.ipc");
    assert!(ipc.contains("instructions / (cycles - idle)"), "{ipc}");
    let unknown =
        tipsim().arg("report").arg(run()).args(["--explain", "totals.ipcs"]).output().unwrap();
    assert_eq!(unknown.status.code(), Some(2), "{}", stderr(&unknown));
}

#[test]
fn a_browser_shows_the_page() {
    let page = std::fs::read_to_string(run().join("report.html")).unwrap();
    for scheme in ["light", "dark"] {
        let browser = Browser {
            scheme,
            // A function whose source is there is chosen.
            steps:
                "const at = data.functions.findIndex((row) => text(row[F.name]) === 'flush_ceil');
                await openCode(at);
                say('shown', document.querySelector('main').innerHTML);
                say('words', document.querySelector('main').innerText);",
            ..Browser::default()
        };
        let seen = browser.open(&format!("report-page-{scheme}"), &page);
        let words = seen.get("words").as_str().unwrap();
        let shown = seen.get("shown").as_str().unwrap();
        for expected in [
            "Branch Mispredicts",
            "quickstart (class:",
            "look closer",
            "ST-L1",
            "fsflags %0",
            "fsflags",
        ] {
            assert!(words.contains(expected), "{scheme}: no {expected}");
        }
        for expected in [
            "<ol id=\"sentences\"><li>",
            "aria-label=\"Cycle stack over time",
            "class=\"pipe-labels\"",
            "class=\"pipe-path\"",
        ] {
            assert!(shown.contains(expected), "{scheme}: no {expected}");
        }
        assert!(!words.contains("undefined") && !words.contains("NaN"), "{scheme}");
        assert!(shown.matches("<tr").count() > 150, "{scheme}");
    }
}
