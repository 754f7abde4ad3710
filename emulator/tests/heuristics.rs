//! The TIP unit's heuristics as a guest's user has them: `perf record -e tip/heuristic=nci/`, against the host's models.

use std::process::Command;

use crate::common::{guest, scratch, stderr, stdout, tipsim};
use serde_json::Value;

const HEURISTICS: [&str; 7] = ["tip", "tip-ilp", "nci", "nci-ilp", "lci", "dispatch", "software"];

/// Loops whose time is where the rules differ: a load that misses, divisions that wait for each other, a branch that nobody
/// predicts, and a flush.
const WORK: &str = "\
    enum { N = 1 << 16 };\n\
    static unsigned next[N];\n\
    __attribute__((noipa)) unsigned chase(unsigned steps) {\n\
        unsigned at = 0;\n\
        while (steps--) at = next[at];\n\
        return at;\n\
    }\n\
    __attribute__((noipa)) unsigned long divide(unsigned long n, unsigned count) {\n\
        while (count--) n = ((n ^ count) | 1ul << 63) / (count | 1);\n\
        return n;\n\
    }\n\
    __attribute__((noipa)) unsigned branch(unsigned count) {\n\
        unsigned state = 1, sum = 0;\n\
        while (count--) {\n\
            state = state * 1664525 + 1013904223;\n\
            if (state >> 31) sum += state ^ count; else sum -= 3;\n\
            __asm__ volatile(\"\");\n\
        }\n\
        return sum;\n\
    }\n\
    __attribute__((noipa)) void flush(unsigned count) {\n\
        while (count--) __asm__ volatile(\"frflags t0; fsflags t0\" ::: \"t0\");\n\
    }\n\
    int main(void) {\n\
        for (unsigned i = 0; i < N; i++) next[i] = (i * 5 + 12345) % N;\n\
        unsigned long sum = chase(60000) + divide(77, 30000) + branch(150000);\n\
        flush(40000);\n\
        return sum == 42;\n\
    }\n";

/// Returns what runs in the guest: a recording with each heuristic, and requests that it must refuse.
fn spec(threads: &str) -> String {
    let record = "sysctl -q -w kernel.perf_event_max_sample_rate=10000000\n\
        for h in tip tip-ilp nci nci-ilp lci dispatch software; do\n\
            perf record -q -e tip/heuristic=$h/u -c 4999 -o $h.data ./work || echo $h: status $?\n\
        done\n\
        perf record -q -e tip/nci/u -c 4999 -o alias.out ./work; perf evlist -v -i alias.out\n\
        perf list tip 2>&1\n\
        perf record -q -e tip/heuristic=pebs/ -o refused.out true 2>&1; echo unknown: status $?\n\
        perf record -q -e tip/heuristic=9/ -o refused.out true 2>&1; echo no such: status $?\n\
        dmesg";
    format!(
        "[run]\nboot = \"functional\"\nregion = \"command\"\nthreads = \"{threads}\"\nmax_cycles = 20000000000\n\
         command = '''{record}'''\nfiles = [\"work\"]\n[record]\ntrace = false\ndetail = false\n\
         [[sampler]]\nprofiler = {HEURISTICS:?}\nperiod = 499\n"
    )
}

fn run(dir: &std::path::Path, threads: &str) -> std::path::PathBuf {
    let (file, out) = (dir.join(format!("{threads}.toml")), dir.join(threads));
    std::fs::write(&file, spec(threads)).unwrap();
    let mut command = tipsim();
    command.arg("run").arg(&file).arg("--guest-dir").arg(guest());
    let output = command.arg("--out").arg(&out).output().unwrap();
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    out
}

fn fraction(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

#[test]
#[ignore = "scripts/test --long"]
fn each_heuristic_in_the_guest_agrees_with_the_hosts_model_of_it() {
    let dir = scratch("heuristics");
    std::fs::write(dir.join("work.c"), WORK).unwrap();
    let mut gcc = Command::new("riscv64-linux-gnu-gcc");
    gcc.args(["-O1", "-g", "-static", "-o"]);
    let status = gcc.args([dir.join("work"), dir.join("work.c")]).status();
    assert!(status.expect("run riscv64-linux-gnu-gcc").success());
    let out = run(&dir, "one");
    let console = std::fs::read(out.join("console.log")).unwrap();
    let console = String::from_utf8_lossy(&console).replace('\r', "");

    let report = std::fs::read_to_string(out.join("report.json")).unwrap();
    let report: Value = serde_json::from_str(&report).unwrap();
    let rows = report["in_guest"].as_array().unwrap();
    let row = |rule: &str| {
        let found = rows.iter().find(|row| row["rule"] == rule);
        found.unwrap_or_else(|| panic!("no {rule}: {rows:?}\n{console}"))
    };
    for rule in HEURISTICS {
        let row = row(rule);
        assert_eq!(row["file"], format!("{rule}.data"));
        let (n, m) = (fraction(&row["samples"]), fraction(&row["model_samples"]));
        assert!(n > 500.0 && m > 5000.0, "{rule}: {n} and {m} samples");
        // What two profiles of one distribution are expected to differ by, and the most that chance adds to it but once in
        // a million times (McDiarmid: a sample moves the difference by one part of its profile).
        let chance = ((1.0 / n + 1.0 / m) * 1e6f64.ln() / 2.0).sqrt();
        for level in ["instruction", "function"] {
            let between = &row["errors"][level]["between"];
            let (error, sampling) = (fraction(&between["error"]), fraction(&between["sampling"]));
            println!("{rule} {level}: {error:.4}, by sampling {sampling:.4} + {chance:.4}");
            assert!(error < sampling + chance, "{rule} {level}: {between}");
        }
    }
    // The rules differ, and so the unit's profiles do.
    let wrong = |rule: &str| fraction(&row(rule)["errors"]["instruction"]["guest"]["error"]);
    assert!(wrong("tip") < 0.1, "{}", wrong("tip"));
    for rule in ["lci", "dispatch", "software"] {
        assert!(wrong(rule) > 0.3, "{rule}: {}", wrong(rule));
    }
    assert!(wrong("nci") > wrong("tip") + 0.05, "{}", wrong("nci"));

    let text = std::fs::read_to_string(out.join("report.txt")).unwrap();
    assert!(text.contains("by the host's model of the same rule"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
    for said in [
        "config: 0x4",
        "tip/heuristic",
        "unknown value 'pebs' of term 'heuristic'",
        "one of: ",
        "do not have this heuristic",
    ] {
        assert!(console.contains(said), "{said}: {console}");
    }
    for refused in ["unknown", "no such"] {
        assert!(console.contains(&format!("{refused}: status ")), "{console}");
        assert!(!console.contains(&format!("{refused}: status 0")), "{console}");
    }
    for rule in HEURISTICS {
        assert!(!console.contains(&format!("\n{rule}: status")), "{console}");
        assert!(console.contains(&format!("tip/{rule}/")), "{console}");
    }
    for complaint in ["WARNING: CPU:", "BUG:", "Call Trace"] {
        assert!(!console.contains(complaint), "{complaint}: {console}");
    }
    // The samples are taken in band: another host thread changes none.
    let two = run(&dir, "two");
    for file in HEURISTICS.map(|rule| format!("{rule}.data")) {
        let read = |out: &std::path::Path| std::fs::read(out.join("files").join(&file)).unwrap();
        assert!(read(&out) == read(&two), "{file}");
    }
}
