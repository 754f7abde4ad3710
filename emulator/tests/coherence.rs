//! Waits for lines of other harts: the event of TEA's signatures, against what else a run says of them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::common::bare_metal::{TraceRecord, trace};
use crate::common::truth::instructions;
use crate::common::{assemble, json, scratch, succeed, tipsim};
use commit_trace::DataSource;
use serde_json::Value;

/// The event.
const PEER: &str = "ST-PEER";
/// The word of a line that each hart adds to so often, and turns of a flag.
const ATOMICS: u64 = 300;
const TURNS: u64 = 200;
/// Sources of an access that other harts answered or had to permit: `truth.json` has a number for each.
const PEERS: [DataSource; 3] =
    [DataSource::PeerClean, DataSource::PeerModified, DataSource::Upgrade];

/// Two flags, each written by one hart and read by the other.
const FLAGS: &str = "addi s3, s1, 256\n addi s4, s1, 512\n li t2, TURNS\n li t1, 1\n bnez s0, 4f\n\
     3: sd t1, (s3)\n add t0, s4, t4\n call until\n addi t1, t1, 1\n bge t2, t1, 3b\n j 5f\n\
     4: add t0, s3, t4\n call until\n sd t1, (s4)\n addi t1, t1, 1\n bge t2, t1, 4b\n\
     5:\n";

/// Each hart adds to its own word of one line, and then does `body`; the last to be done turns the power off. A load of a loop that waits
/// has its address from the one before, so that none is on the way at the same time.
fn program(harts: usize, body: &str) -> String {
    format!(
        ".globl _start\n_start:\n csrr s0, mhartid\n lla s1, page\n li t1, {harts}\n lla t0, arrived\n li t2, 1\n\
         amoadd.d zero, t2, (t0)\n call until\n\
         slli a1, s0, 3\n add a1, a1, s1\n li a2, 1\n li a3, {ATOMICS}\n\
         1: amoadd.d zero, a2, (a1)\n addi a3, a3, -1\n bnez a3, 1b\n\
         {body}\
         lla t0, done\n li t1, {harts}\n li t2, 1\n amoadd.d zero, t2, (t0)\n bnez s0, 9f\n call until\n\
         li t0, 0x5555\n li t1, 0x100000\n sw t0, (t1)\n\
         9: wfi\n j 9b\n\
         until: ld t3, (t0)\n sub t4, t3, t3\n add t0, t0, t4\n blt t3, t1, until\n ret\n\
         .align 12\npage: .zero 4096\n\
         arrived: .zero 2048\ndone: .zero 2048\n"
    )
    .replace("TURNS", &TURNS.to_string())
}

/// The folder of a run of it.
fn run(name: &str, harts: usize, body: &str) -> PathBuf {
    let dir = scratch(name);
    let elf = assemble(&dir, "program", &program(harts, body));
    let spec = format!(
        "[guest]\nfirmware = {elf:?}\nharts = {harts}\n[run]\nmax_cycles = 20000000\n[record]\ntruth = true\ncounters = true\n\
         [[sampler]]\nprofiler = \"tip\"\nperiod = 101\n"
    );
    let path = dir.join("spec.toml");
    std::fs::write(&path, spec).unwrap();
    let mut command = tipsim();
    command.arg("run").arg(&path);
    succeed(command.arg("--out").arg(dir.join("out")));
    dir
}

/// The execution has the event.
fn waited(row: &TraceRecord) -> bool {
    row.tea.split('|').any(|event| event == PEER)
}

/// Accesses of each instruction of a hart that other harts answered or had to permit, as `truth.json` says.
fn of_truth(truth: &Value, hart: usize, classes: &[&str]) -> BTreeMap<u64, u64> {
    let all = instructions(truth);
    let own = all
        .iter()
        .filter(|i| i["hart"] == hart && classes.iter().any(|&class| i["class"] == class));
    let peers = own.map(|i| {
        let pc = u64::from_str_radix(&i["pc"].as_str().unwrap()[2..], 16).unwrap();
        let sources = &i["memory"]["sources"];
        (pc, PEERS.iter().filter_map(|&source| sources[source as usize].as_u64()).sum())
    });
    peers.filter(|(_, count)| *count != 0).collect()
}

#[test]
fn the_event_is_each_access_that_waited_for_a_line_of_another_hart() {
    let dir = run("coherence-two", 2, FLAGS);
    let truth = json(&dir.join("out/truth.json"));
    let run = json(&dir.join("out/run.json"));
    for hart in [0, 1] {
        let rows = trace(&dir, hart);
        let mut found = BTreeMap::<u64, u64>::new();
        for row in rows.iter().filter(|row| waited(row)) {
            *found.entry(row.pc).or_default() += 1;
        }
        // The number for each instruction is what the observer of accesses says.
        assert_eq!(found, of_truth(&truth, hart, &["Load", "Atomic"]));
        // Each execution waited if the class of its stall says so.
        for row in &rows {
            assert_eq!(waited(row), row.wait == "LoadPeer", "{row:?}");
        }
        // The sum is what the directory counts as requests: of stores, too, which have left the ROB before they wait, and of
        // the few lines of code and those that are prefetched.
        let total = found.values().sum::<u64>();
        let waits = total + of_truth(&truth, hart, &["Store"]).values().sum::<u64>();
        let of = |event: &str| run["counters"]["harts"][hart][event].as_u64().unwrap();
        let requests = of("MEM.TRANSFER") + of("MEM.UPGRADE");
        assert!((waits..waits + 10).contains(&requests), "{waits}, {requests}");
        // Nearly each atomic, and a load for each turn.
        assert!(total > ATOMICS * 9 / 10 + TURNS, "{total}");
    }
    let report = json(&dir.join("out/report.json"));
    let tea = &report["tea"]["processes"][0];
    assert!(tea["events"][PEER].as_f64().unwrap() > 0.5, "{tea}");
    let text = std::fs::read_to_string(dir.join("out/report.txt")).unwrap();
    assert!(text.contains("ST-L1|ST-PEER"), "{text}");
    let mut explain = tipsim();
    explain.arg("report").arg(dir.join("out"));
    let path = format!("tea.processes.0.events.{PEER}");
    let text = succeed(explain.args(["--explain", &path]));
    assert!(text.contains("another hart's cache"), "{text}");
}

#[test]
fn one_hart_waits_for_none() {
    let dir = run("coherence-one", 1, "");
    assert!(!trace(&dir, 0).iter().any(waited));
    let truth = json(&dir.join("out/truth.json"));
    assert!(!instructions(&truth).is_empty());
    assert!(of_truth(&truth, 0, &["Load", "Store", "Atomic"]).is_empty());
    for file in ["report.json", "report.txt"] {
        let text = std::fs::read_to_string(dir.join("out").join(file)).unwrap();
        assert!(!text.contains(PEER), "{file}");
    }
}
