//! The PMUs of last-level cache and memory controller by perf in Linux: what perf reads is what the machine counted.

use std::path::Path;

use serde_json::Value;

use super::{counter, region};
use crate::common::{json, run_spec, scratch, stderr, stdout};

/// Runs a command in the guest under the timing core: the console, and run.json.
fn run(dir: &Path, harts: u32, threads: &str, command: &str) -> (String, Value) {
    let spec = format!(
        "guest.harts = {harts}\n[run]\nboot = \"functional\"\nregion = \"command\"\nthreads = \"{threads}\"\n\
         max_cycles = 20000000000\ncommand = '''{command}'''\n[record]\ntrace = false\nprofilers = false\n"
    );
    let output = run_spec(dir, &spec).output().unwrap();
    let console = std::fs::read_to_string(dir.join("out/console.log")).unwrap_or_default();
    let console = console.replace('\r', "");
    assert!(output.status.success(), "{}{}{console}", stdout(&output), stderr(&output));
    (console, json(&dir.join("out/run.json")))
}

/// Returns what `perf stat -x,` says of an event: the number and its unit.
fn stat(console: &str, event: &str) -> (String, String) {
    let mut lines = console.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let line =
        lines.find(|words| words.get(2..).is_some_and(|rest| rest.join(",").starts_with(event)));
    let line = line.unwrap_or_else(|| panic!("no {event} in: {console}"));
    (line[0].to_owned(), line[1].to_owned())
}

const COMMAND: &str = "cd /sys/bus/event_source/devices; echo llc on $(cat llc/cpumask), \
    memory_controller on $(cat memory_controller/cpumask); \
    echo $(cat memory_controller/events/read_bytes.scale memory_controller/events/read_bytes.unit); cd /tmp; \
    perf stat -a -x, -o stat -e llc/lookups/,llc/misses/ -e llc/misses,origins=0x2/ -e llc/cycles/ -e llc/occupancy/ \
    -e memory_controller/reads/,memory_controller/read_bytes/,memory_controller/writes/,memory_controller/refreshes/ \
    -- sh -c 'seq 1 3000 | sort -r | md5sum'; cat stat; \
    perf stat -a -e memory_controller/read_bytes/ true 2>&1 | grep read_bytes; \
    perf record -q -a -e llc/lookups/ true > /dev/null 2>&1 || echo no sampling; \
    dmesg | grep -i -e warn -e uncore; true";

#[test]
fn perf_stat_prints_what_the_machine_counted() {
    let mut consoles = Vec::new();
    for (harts, threads) in [(1, "one"), (1, "two"), (2, "auto")] {
        let dir = scratch(&format!("uncore-linux-{harts}-{threads}"));
        let (console, described) = run(&dir, harts, threads, COMMAND);
        let exact = [
            ("llc/lookups/", (0, "lookups", 0, 0)),
            ("llc/misses/", (0, "misses", 0, 0)),
            ("llc/misses,origins=0x2/", (0, "misses", 0, 2)),
            ("llc/cycles/", (0, "cycles", 0, 0)),
            ("memory_controller/reads/", (1, "reads", 0, 0)),
            ("memory_controller/writes/", (1, "writes", 0, 0)),
            ("memory_controller/refreshes/", (1, "refreshes", 0, 0)),
        ];
        for (event, of) in exact {
            let (value, _) = stat(&console, event);
            let value: u64 = value.parse().unwrap();
            let host = counter(&described, &of);
            assert_eq!(value, host, "{event}, {harts} harts: {console}");
            // The counters were on for a part of the command.
            if of.1 != "cycles" {
                assert!(value <= region(&described, &of), "{event}: {console}");
            }
            if of.1 != "writes" {
                assert_ne!(value, 0, "{event}: {console}");
            }
        }
        let (reads, (megabytes, unit)) = (
            stat(&console, "memory_controller/reads/").0,
            stat(&console, "memory_controller/read_bytes/"),
        );
        let reads: f64 = reads.parse().unwrap();
        let megabytes: f64 = megabytes.parse().unwrap();
        assert_eq!(unit, "MB", "{console}");
        assert!((megabytes - reads * 64e-6).abs() <= 0.005, "{console}");
        assert_eq!(stat(&console, "llc/occupancy/").1, "Bytes", "{console}");
        for line in [
            "\nllc on 0, memory_controller on 0\n",
            "\n1e-6 MB\n",
            " MB   memory_controller/read_bytes/",
            "\nno sampling\n",
        ] {
            assert!(console.contains(line), "{line}: {console}");
        }
        assert!(!console.contains("WARNING"), "{console}");
        consoles.push(console);
    }
    assert_eq!(consoles[0], consoles[1], "on one thread and on two");
}
