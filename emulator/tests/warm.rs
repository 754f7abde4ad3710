//! Warm starts: what is timed after a functional boot begins with the caches, TLBs and predictors that the boot left.

use std::path::Path;

use serde_json::Value;

use crate::common::{compile_work, run_of_spec, scratch};

/// A program of some millions of instructions: it counts words in a hash table.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct entry { struct entry *next; unsigned count; char word[20]; };
static struct entry *table[1024];
int main(void) {
    unsigned long state = 1, distinct = 0;
    for (int n = 0; n < 4000; n++) {
        char word[20];
        state = state * 6364136223846793005ul + 1442695040888963407ul;
        int length = snprintf(word, sizeof word, "w%lx", state >> 55);
        unsigned hash = 5381;
        for (int i = 0; i < length; i++) hash = hash * 33 + word[i];
        struct entry **at = &table[hash % 1024];
        while (*at && strcmp((*at)->word, word)) at = &(*at)->next;
        if (!*at) { *at = calloc(1, sizeof **at); strcpy((*at)->word, word); distinct++; }
        (*at)->count++;
    }
    printf("%lu\n", distinct);
}
"#;

/// Runs the program as the region of interest, with more of the table `run` of its spec; gives run.json.
fn run(dir: &Path, of_run: &str) -> Value {
    run_command(dir, "./work > answer.txt", &format!("region = \"command\"\n{of_run}"))
}

/// Runs a command that has the program, with more of the table `run` of its spec; gives run.json.
fn run_command(dir: &Path, command: &str, of_run: &str) -> Value {
    compile_work(dir, PROGRAM, &[]);
    let spec = format!(
        "[run]\nboot = \"functional\"\ncommand = \"{command}\"\nfiles = [\"work\"]\n{of_run}\n\
         [record]\ntrace = false\n[[sampler]]\nprofiler = \"tip\"\nperiod = 997\n"
    );
    run_of_spec(dir, &spec)
}

fn count(run: &Value, event: &str) -> f64 {
    run["counters"]["harts"][0][event].as_f64().unwrap()
}

const WARM: &str = "warm = true\n";

#[test]
fn what_a_boot_left_in_the_caches_is_found_there() {
    let dir = scratch("warm-start");
    let cold = run(&dir, "");
    let warm = run(&dir, WARM);
    let retired = |run: &Value| count(run, "INST.RET");
    assert!((retired(&warm) / retired(&cold) - 1.0).abs() < 0.02);
    assert!(retired(&cold) > 2e6, "{}", retired(&cold));
    let missed = |run: &Value| count(run, "MEM.LLC.MISS");
    assert!(missed(&warm) < 0.6 * missed(&cold), "{} {}", missed(&warm), missed(&cold));
    let cycles = |run: &Value| count(run, "CYCLES.HART") - count(run, "CYCLES.IDLE");
    assert!(cycles(&warm) < 0.99 * cycles(&cold), "{} {}", cycles(&warm), cycles(&cold));
    assert_eq!(
        (&cold["spec"]["run"]["warm"], &warm["spec"]["run"]["warm"]),
        (&Value::Null, &true.into())
    );
}

#[test]
fn a_warm_start_is_the_same_whatever_the_host_does() {
    let dir = scratch("warm-same");
    let found = |of_run: &str| {
        let run = run(&dir, &format!("{WARM}{of_run}"));
        (run["counters"].clone(), run["fingerprint"].clone(), run["stats"].clone())
    };
    // A boot that is kept, one that is gone on from, and one that is not kept.
    let usual = found("");
    for of_run in ["", "checkpoint = false", "translator = \"off\"", "threads = \"one\""] {
        assert!(found(of_run) == usual, "{of_run}");
    }
}

#[test]
fn a_mark_within_a_command_starts_warm() {
    let dir = scratch("warm-marked");
    // The marked part is the second time that the program runs.
    let command = "./work > first.txt; tipsim-run ./work > answer.txt";
    let marked = |of_run: &str| {
        let found = run_command(&dir, command, &format!("region = \"marked\"\n{of_run}"));
        assert_eq!(found["regions"]["count"], 1);
        found
    };
    let (cold, warm) = (marked(""), marked(WARM));
    for event in ["MEM.LLC.MISS", "MEM.L2.MISS", "INST.MISPRED.SPEC"] {
        let missed = |run: &Value| count(run, event);
        let at_most = if event == "INST.MISPRED.SPEC" { 1.0 } else { 0.9 };
        assert!(
            missed(&warm) < at_most * missed(&cold),
            "{event} {} {}",
            missed(&warm),
            missed(&cold)
        );
    }
}
