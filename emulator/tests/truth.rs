//! `record.truth`: what samples should say, against the core's own counts and what programs do; and the guest's samples judged by it.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::truth::instructions;
use crate::common::{assert_error, json, repo, run_spec, scratch, succeed};
use serde_json::Value;

/// A program of `workloads/precise`.
fn program(dir: &Path, name: &str) -> PathBuf {
    let elf = dir.join(name);
    let source = repo().join(format!("workloads/precise/{name}.c"));
    succeed(
        Command::new("riscv64-linux-gnu-gcc")
            .args(["-O2", "-g1", "-static", "-I"])
            .arg(repo().join("guest-sw/tools"))
            .arg("-o")
            .args([&elf, &source]),
    );
    elf
}

/// Sum of a count over instructions.
fn sum<'a>(all: impl IntoIterator<Item = &'a Value>, part: &str, count: &str) -> u64 {
    let counts = all.into_iter().map(|i| i[part][count].as_u64().unwrap_or(0));
    counts.sum()
}

#[test]
fn it_agrees_with_the_core_is_invisible_and_judges_samples() {
    let dir = scratch("truth-mix");
    let mix = program(&dir, "mix");
    let spec = |truth: bool| {
        format!(
            "[run]\nboot = \"functional\"\nthreads = \"one\"\nregion = \"command\"\nfiles = [{mix:?}]\n\
             command = '''\n\
             perf record -q -e branch-misses:u -c 100 -o miss.data ./mix mispredict 40 20000\n\
             perf record -q -e pdis/loads,ldlat=30/u -c 53 -d -W -o slow.data ./mix l1d 60 20000\n\
             perf record -q -e pdis/loads,cycles=1,ldlat=30/u -c 997 -o cycles.data ./mix l1d 60 20000\n\
             '''\n\
             [record]\ntrace = false\ncounters = true\ntruth = {truth}\n\
             [[sampler]]\nprofiler = \"tip\"\nperiod = 1009\n"
        )
    };
    succeed(&mut run_spec(&dir, &spec(false)));
    let out = dir.join("out");
    let without = json(&out.join("run.json"));
    assert!(!out.join("truth.json").exists());
    succeed(&mut run_spec(&dir, &spec(true)));
    let run = json(&out.join("run.json"));
    for same in ["cycles", "instructions", "fingerprint"] {
        assert_eq!(run[same], without[same], "{same}");
    }

    let truth = json(&out.join("truth.json"));
    let counter = |name: &str| run["counters"]["harts"][0][name].as_u64().unwrap();
    let all = &instructions(&truth);
    let count = |count: &str| sum(all, "counts", count);
    assert_eq!(count("executed"), counter("INST.RET"));
    assert_eq!(count("mispredicted"), counter("INST.MISPRED.SPEC"));
    assert_eq!(count("replayed"), counter("MEM.ORDER.FAIL"));
    let traps = counter("INST.EXCEPTION") + counter("FLUSH.INTERRUPT");
    assert_eq!(count("trapped"), traps);
    let stored = ["INST.STORE", "INST.FP.STORE", "INST.AMO", "INST.SC"].map(counter);
    let stored = stored.iter().sum::<u64>() - counter("INST.SC.FAIL");
    assert_eq!(sum(all, "memory", "stores"), stored);
    // Counters have those that did not retire, too.
    let near = |found: u64, expected: u64| {
        let off = found.abs_diff(expected) as f64 / expected as f64;
        assert!(off < 0.01, "{found}, but counted {expected}");
    };
    near(sum(all, "memory", "loads"), counter("CACHE.L1.RD.DATA.ACCESS"));
    let translations = |at: usize| {
        let own = all.iter().filter_map(|i| i["memory"]["translations"][at].as_u64());
        own.sum::<u64>()
    };
    near(translations(1) + translations(2), counter("TLB.L1.LDST.MISS"));

    // Two of the loop's five branches are on random bits.
    let function = truth["functions"].as_array().unwrap();
    let at = function.iter().position(|name| name == "mispredict_40");
    let at = at.expect("the loop") as u64;
    let own = all.iter().filter(|i| i["function"] == at && i["class"] == "Branch");
    let missed = sum(own, "counts", "mispredicted");
    assert!((15_000..25_000).contains(&missed), "{missed}");
    each_execution_has_a_slot_and_a_record(all);

    let report = json(&out.join("report.json"));
    let profiles = report["precise"]["profiles"].as_array().unwrap();
    let of = |file: &str| profiles.iter().find(|own| own["file"] == file).unwrap();
    let judged = of("miss.data");
    assert_eq!(judged["metric"], "mispredicts");
    let samples = judged["samples"].as_u64().unwrap();
    assert!(samples > 100, "{judged}");
    let function_error = judged["function"]["error"].as_f64().unwrap();
    assert!(function_error < 0.2, "{judged}");
    let text = std::fs::read_to_string(out.join("report.txt")).unwrap();
    assert!(text.contains("\nPrecise sampling"), "{text}");

    // A filter by latency, exactly.
    let judged = of("slow.data");
    assert_eq!(judged["metric"]["filtered"]["threshold"], 30);
    assert_eq!(judged["wrong"], 0.0, "{judged}");
    let number = |name: &str| judged[name].as_f64().unwrap();
    let ratio = number("estimate") / number("truth");
    assert!((0.9..1.1).contains(&ratio), "{judged}");
    let latency = |by: &str| judged["latency"][by].as_f64().unwrap();
    let ratio = latency("sampled") / latency("truth");
    assert!((0.8..1.25).contains(&ratio), "{judged}");
    assert!(!judged["sources"].as_array().unwrap().is_empty());
    let slots = judged["slots"].as_array().unwrap();
    assert_eq!(slots.len(), 4, "decode is four wide");
    // What cannot be judged is said.
    let not_judged = report["precise"]["not_judged"].as_array().unwrap();
    let said = |own: &Value| own["why"].as_str().unwrap().starts_with("cycles=1");
    assert!(not_judged.iter().any(said), "{not_judged:?}");

    let unit = &report["precise"]["units"][0];
    let count = |name: &str| unit[name].as_u64().unwrap();
    let done = ["samples", "collisions", "filtered", "dropped"].map(count);
    let under_way = count("overflows") - done.iter().sum::<u64>();
    assert!(count("samples") > 500 && count("filtered") > 0 && under_way <= 2, "{unit}");
}

/// Each time that an instruction left the ROB it was decoded in one slot, and would have been recorded in one way.
fn each_execution_has_a_slot_and_a_record(all: &[Value]) {
    const TYPE_FETCH: u64 = 5;
    for own in all {
        let slots = own["slots"].as_array().unwrap();
        let slots = slots.iter().map(|n| n.as_u64().unwrap()).sum::<u64>();
        let left = sum([own], "counts", "executed")
            + sum([own], "counts", "trapped")
            + sum([own], "counts", "replayed");
        assert_eq!(slots, left, "{own}");
        // Type, events, total latencies: of accesses three numbers each, else two.
        let recorded = own["records"].as_array().unwrap().iter();
        let times = recorded.filter(|r| r[0] != TYPE_FETCH).map(|record| {
            let width = if record[0].as_u64().unwrap() <= 3 && record[0] != 0 { 3 } else { 2 };
            let totals = record[2].as_array().unwrap().chunks(width);
            totals.map(|step| step[1].as_u64().unwrap()).sum::<u64>()
        });
        assert_eq!(times.sum::<u64>(), left, "{own}");
    }
}

#[test]
fn false_and_true_sharing_are_told_apart() {
    let dir = scratch("truth-sharing");
    let sharing = program(&dir, "sharing");
    let spec = format!(
        "[guest]\nharts = 2\n[run]\nboot = \"functional\"\nregion = \"command\"\nfiles = [{sharing:?}]\n\
         command = \"./sharing 2000\"\n[record]\ntrace = false\ntruth = true\n\
         [[sampler]]\nprofiler = \"tip\"\nperiod = 1009\n"
    );
    succeed(&mut run_spec(&dir, &spec));
    let truth = json(&dir.join("out/truth.json"));
    let line = |object: &str| {
        let all = truth["lines"].as_array().unwrap();
        let found = all.iter().find(|line| line["object"] == object);
        found.unwrap_or_else(|| panic!("no line of {object}")).clone()
    };
    let (falsely, truly) = (line("false_pair"), line("true_word"));
    assert_eq!((&falsely["sharing"], &truly["sharing"]), (&"false".into(), &"true".into()));
    // The uses of the lines are the program's, on each hart.
    let by = |line: &Value, hart: u64| {
        let uses = line["uses"].as_array().unwrap();
        let named = |own: &&Value| {
            let process = own["process"].as_u64().map(|at| &truth["processes"][at as usize]);
            own["hart"] == hart && process.is_some_and(|process| process["name"] == "sharing")
        };
        uses.iter().find(named).expect("a use").clone()
    };
    for hart in [0, 1] {
        let (own, both) = (by(&falsely, hart), by(&truly, hart));
        assert_eq!(own["written"], ["0xff", "0xff00"][hart as usize]);
        assert_eq!(both["written"], "0xff");
        for own in [own, both] {
            assert!(own["peer_modified"].as_u64().unwrap() > 50, "{own}");
        }
    }
    assert!(!truly["exchanges"].as_array().unwrap().is_empty());
    assert_eq!(line("private_words")["sharing"], "none");
    let report = json(&dir.join("out/report.json"));
    let lines = report["contended"]["lines"].as_array().unwrap();
    let names: Vec<&str> = lines.iter().filter_map(|line| line["object"].as_str()).collect();
    assert!(names.contains(&"false_pair") && names.contains(&"true_word"), "{names:?}");
    assert!(!names.contains(&"private_words"), "{names:?}");

    // Time by event: atomics wait for the line themselves; plain stores have left the ROB, and fill the store queue.
    let instructions = report["tea"]["instructions"].as_array().unwrap();
    let share = |function: &str, event: &str| {
        let own = instructions.iter().filter(|row| {
            let label = row["label"].as_str().unwrap();
            label.split('+').next() == Some(function)
        });
        let stacks = own.flat_map(|row| row["stack"].as_object().unwrap());
        let met = stacks.filter(|(events, _)| events.split('|').any(|name| name == event));
        met.map(|(_, share)| share.as_f64().unwrap()).sum::<f64>()
    };
    let of_all = |event| ["add_false", "add_true", "add_private"].map(|f| share(f, event));
    let [falsely, truly, not] = of_all("ST-PEER");
    assert!(truly > 0.1 && falsely.max(not) < 0.001, "{falsely}, {truly}, {not}");
    let [falsely, _, not] = of_all("DR-SQ");
    assert!(falsely > 0.001 && not < 0.0005, "{falsely}, {not}");
}

#[test]
fn it_needs_the_profilers() {
    let dir = scratch("truth-bad");
    let spec = "[record]\ntruth = true\nprofilers = false\n";
    let output = run_spec(&dir, spec).output().unwrap();
    assert_error(&output, 2, &["spec.toml", "record.truth: expected record.profilers = true"]);
}
