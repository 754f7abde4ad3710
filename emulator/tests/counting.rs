//! The guest's performance counters under Linux, as users of perf know them, beside what the host counted.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{json, repo, run_spec, scratch, succeed};
use isa::PerfEvent;
use serde_json::Value;

/// The program of both tests.
fn compile(dir: &Path) {
    let mut gcc = Command::new("riscv64-linux-gnu-gcc");
    gcc.args(["-O1", "-g", "-static", "-o"]).arg(dir.join("counting"));
    gcc.arg(repo().join("emulator/tests/counting/counting.c"));
    assert!(gcc.status().unwrap().success());
}

/// Runs a command under the timing core; its output folder.
fn run(dir: &Path, command: &str) -> PathBuf {
    let spec = format!(
        "[run]\nboot = \"functional\"\nthreads = \"one\"\nregion = \"command\"\nmax_cycles = 4000000000\nfiles = ['counting']\n\
         command = '''{command}'''\n[record]\ntrace = false\ncounters = true\n"
    );
    let out = dir.join("out");
    let _ = std::fs::remove_dir_all(&out);
    succeed(&mut run_spec(dir, &spec));
    out
}

fn read(path: PathBuf) -> String {
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// What happens only where there is a kernel, and what happens everywhere.
const EVENTS: [PerfEvent; 26] = [
    PerfEvent::Instructions,
    PerfEvent::Cycles,
    PerfEvent::EcallUser,
    PerfEvent::LoadPageFaults,
    PerfEvent::StorePageFaults,
    PerfEvent::Interrupts,
    PerfEvent::CyclesIdle,
    PerfEvent::DtlbMisses,
    PerfEvent::DtlbL2Hits,
    PerfEvent::DtlbWalks,
    PerfEvent::DtlbWalkCycles,
    PerfEvent::WalkReads,
    PerfEvent::WalkReadMisses,
    PerfEvent::PteCacheHits,
    PerfEvent::L2Walks,
    PerfEvent::RetiredDtlbMiss,
    PerfEvent::BranchMisses,
    PerfEvent::L1dReadMisses,
    PerfEvent::LastLevelMisses,
    PerfEvent::Slots,
    PerfEvent::SlotsRetiring,
    PerfEvent::SlotsBackend,
    PerfEvent::StalledDram,
    PerfEvent::IntDiv,
    PerfEvent::Wfi,
    PerfEvent::TlbFlushes,
];

#[test]
fn counters_under_linux_are_the_hosts_own() {
    let dir = scratch("counting-host");
    compile(&dir);
    let selectors = EVENTS.map(|event| format!("{:#x}", event.selector()));
    let command = format!("./counting {} > counts.txt", selectors.join(" "));
    let out = run(&dir, &command);
    let host = &json(&out.join("run.json"))["counters"]["harts"][0];
    let text = read(out.join("files/counts.txt"));
    assert_eq!(text.lines().count(), EVENTS.len(), "{text}");
    for (event, line) in EVENTS.iter().zip(text.lines()) {
        let name = event.row().name;
        let places: Vec<u64> = line.split(' ').map(|word| word.parse().unwrap()).collect();
        let (least, most) = (places[2] - places[1], places[3] - places[0]);
        let host = host[name].as_u64().unwrap();
        assert!((least..=most).contains(&host), "{name}: {least} to {most} in the guest, {host}");
        // The difference is what lies between the marks and the reads beside them.
        let around = most - least;
        assert!(around <= 20_000 + host / 100, "{name}: {around} beside {host}");
        assert!(host > 0 || *event == PerfEvent::LoadPageFaults, "{name}");
    }
}

/// The numbers of a perf stat file by event, without modifiers.
fn stat(path: PathBuf) -> HashMap<String, f64> {
    let text = read(path);
    let counts = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let count = words.next()?.replace(',', "").parse().ok()?;
        Some((words.next()?.to_owned(), count))
    });
    counts.collect()
}

/// Percentages of perf stat's metrics: `#  12.3 %  retiring`.
fn metrics(text: &str) -> HashMap<String, f64> {
    let metrics = text.lines().filter_map(|line| {
        let (_, metric) = line.split_once('#')?;
        let mut words = metric.split_whitespace();
        let value = words.next()?.parse().ok()?;
        Some((words.find(|word| *word != "%")?.to_owned(), value))
    });
    metrics.collect()
}

#[test]
#[ignore = "scripts/test --long"]
fn perf_counts_as_users_know_it() {
    let dir = scratch("counting-perf");
    compile(&dir);
    let command = "
perf stat -d -d -d -o detailed.txt true
perf stat -M TopdownL1,TopdownL2 -o topdown.txt ./counting
perf stat -M IPC,Branches -o rates.txt ./counting
perf stat -M Cache,TLB,Memory_BW -o memory.txt ./counting
perf stat -o default.txt ./counting
cp counting /tmp/alone; perf stat -M TopdownL1 -o alone.txt /tmp/alone; perf stat -e cycles -o again.txt /tmp/alone
perf stat -j -o groups.json -e '{inst.ret,cycles.hart}:W,{inst.div,inst.mul}' true
perf stat -o condition.txt -e r100000002,r10100000002,cycles.commit,cycles.hart,cycles.idle -a ./counting
perf stat -o many.txt -e inst.alu,inst.mul,inst.div,inst.branch,inst.jal,inst.jalr,inst.load,inst.store,inst.csr,inst.fence,\
inst.amo,inst.lr,inst.sc,inst.xret,inst.wfi,mem.l2.access,mem.l2.miss,mem.walk,stall.rob,stall.head.l1,stall.head.l2,stall.head.dram,\
topdown.slots,topdown.retiring,cycles.stalled,cycles.drained,cycles.flushed,cycles.commit,cycles.hart,inst.ret,br.call,br.ret,tlb.flush sh -c './counting; ./counting; ./counting'
perf stat -I 1 -o intervals.txt -e inst.ret ./counting
perf stat -a -A -o harts.txt -e inst.ret true
perf stat -r 2 -o runs.txt -e inst.ret true
perf stat -C 0 -o hart.txt -e inst.ret true
perf stat --per-thread -a -o threads.txt -e inst.ret ./counting
sleep 0.05 & perf stat -o process.txt -e inst.ret -p $! ; wait
perf record -q -e inst.div -c 2000 -o div.data ./counting
tipsim-region stop
perf list > list.txt
perf report --stats -i div.data > div.txt
";
    let out = run(&dir, command);
    let list = read(out.join("files/list.txt"));
    for event in PerfEvent::ALL {
        assert!(list.contains(&event.row().name.to_lowercase()), "{}", event.row().name);
    }
    for group in ["TopdownL1", "TopdownL2", "Branches", "Cache", "TLB", "Memory_BW", "IPC"] {
        assert!(list.contains(group), "{group}: {list}");
    }
    for name in ["detailed", "default", "topdown", "rates", "memory", "condition"] {
        let text = read(out.join(format!("files/{name}.txt")));
        assert!(!text.contains("<not"), "{text}");
    }
    let detailed = stat(out.join("files/detailed.txt"));
    for event in [
        "cycles",
        "instructions",
        "L1-dcache-loads",
        "LLC-loads",
        "iTLB-load-misses",
        "L1-dcache-prefetch-misses",
    ] {
        assert!(detailed.contains_key(event), "{detailed:?}");
    }
    let topdown = read(out.join("files/topdown.txt"));
    let shares = metrics(&topdown);
    let sum = |names: &[&str]| names.iter().map(|name| shares[*name]).sum::<f64>();
    let roots = ["retiring", "frontend_bound", "bad_speculation", "backend_bound"];
    assert!((sum(&roots) - 100.0).abs() < 0.3, "{topdown}");
    for (root, parts) in [
        ("frontend_bound", ["fetch_latency", "fetch_bandwidth"]),
        ("bad_speculation", ["branch_mispredicts", "machine_clears"]),
        ("backend_bound", ["memory_bound", "core_bound"]),
    ] {
        assert!((sum(&parts) - shares[root]).abs() < 0.3, "{topdown}");
    }
    let condition = stat(out.join("files/condition.txt"));
    let [some, none] = ["r100000002", "r10100000002"].map(|event| condition[event]);
    let [committing, all, idle] =
        ["cycles.commit", "cycles.hart", "cycles.idle"].map(|event| condition[event]);
    let near = |a: f64, b: f64| (a - b).abs() < 0.01 * b;
    assert!(near(some, committing) && near(some + none, all - idle), "{condition:?}");
    let many = read(out.join("files/many.txt"));
    assert!(many.contains("%)"), "more events than counters: {many}");
    for name in ["intervals", "harts", "runs", "hart", "threads", "process"] {
        let text = read(out.join(format!("files/{name}.txt")));
        assert!(text.contains("inst.ret") && !text.contains("<not"), "{name}: {text}");
    }
    let div = read(out.join("files/div.txt"));
    assert!(div.contains("SAMPLE events:"), "{div}");

    let report = json(&out.join("report.json"));
    let guest = report["counters"]["guest"].as_array().unwrap();
    // Each of so many perf stats is compared with its own process, not with the region, if it is known which that is.
    let of = |name: &str| {
        let own = guest.iter().filter(|row| row["command"] == name);
        own.collect::<Vec<&Value>>()
    };
    let (alone, many) = (of("/tmp/alone"), of("./counting"));
    assert!(alone.len() > 2 && many.len() > 20, "{guest:?}");
    for row in &many {
        assert!(row["host"].is_null() && row["process"].is_null(), "{row}");
        assert!(row["note"].as_str().unwrap().contains("processes"), "{row}");
    }
    let mut processes: Vec<&str> =
        alone.iter().map(|row| row["process"].as_str().unwrap()).collect();
    processes.dedup();
    assert_eq!(processes.len(), 2, "{alone:?}");
    let compared: Vec<_> = alone.iter().filter(|row| row["host"].is_u64()).collect();
    assert_eq!(compared.len(), 1, "{alone:?}");
    for row in compared {
        // perf leaves the firmware out, and counts its own way into and out of the program.
        let ratio = row["guest"].as_f64().unwrap() / row["host"].as_f64().unwrap();
        assert!((0.9..1.1).contains(&ratio), "{row}");
    }
    let by_process = report["counters"]["top_down_of"].as_array().unwrap();
    assert!(!by_process.is_empty(), "{report}");
    let checks = report["counters"]["checks"].as_array().unwrap();
    for check in checks {
        let [counters, profile] = ["counters", "profile"].map(|key| check[key].as_f64().unwrap());
        assert!((counters - profile).abs() <= 1e-9 * profile + 1.0, "{check}");
    }
    let pairs = report["counters"]["top_down"].as_array().unwrap();
    let retiring = &pairs[0];
    let [decode, commit] = ["decode", "commit"].map(|key| retiring[key].as_f64().unwrap());
    assert!((decode - commit).abs() < 1e-3, "{retiring}");
}
