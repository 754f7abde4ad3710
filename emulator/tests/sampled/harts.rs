//! Sampled simulation of a program with several threads on several harts, against the same program timed from end to end.

use std::path::Path;

use serde_json::Value;

use crate::common::{compile_work, run_of_spec, scratch};

/// Two threads that smooth halves of a grid, and wait for each other after each pass.
const PROGRAM: &str = r#"
#include <pthread.h>
#include <stdio.h>
enum { N = 96, PASSES = 100 };
static double grids[2][N * N], total;
static pthread_barrier_t barrier;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *work(void *argument) {
    long half = (long)argument;
    for (int pass = 0; pass < PASSES; pass++) {
        double *in = grids[pass & 1], *out = grids[~pass & 1], sum = 0;
        for (int y = half ? N / 2 : 1; y < (half ? N - 1 : N / 2); y++)
            for (int x = 1; x < N - 1; x++) {
                double *at = in + y * N + x;
                sum += out[y * N + x] = (at[0] + at[-1] + at[1] + at[-N] + at[N]) * 0.2;
            }
        pthread_mutex_lock(&lock);
        total += sum;
        pthread_mutex_unlock(&lock);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}
int main(void) {
    pthread_t thread;
    pthread_barrier_init(&barrier, NULL, 2);
    for (int i = 0; i < N * N; i++) grids[0][i] = grids[1][i] = i % 1000;
    pthread_create(&thread, NULL, work, (void *)1);
    work((void *)0);
    pthread_join(thread, NULL);
    printf("%.0f\n", total);
}
"#;

const PLAN: &str =
    "[run.sampling]\nunit = 10000\nwarm_up = 20000\npredictors = 200000\nevery = 100000\n";

/// Runs the program on two harts with more of the table `run`, and more of a spec; gives run.json.
fn run(dir: &Path, of_run: &str, more: &str) -> Value {
    compile_work(dir, PROGRAM, &["-pthread"]);
    let spec = format!(
        "[guest]\nharts = 2\n[run]\nboot = \"functional\"\nregion = \"command\"\ncommand = \"./work > answer.txt\"\nfiles = [\"work\"]\n{of_run}\n\
         [record]\ntrace = false\n[[sampler]]\nprofiler = \"tip\"\nperiod = 997\n{more}"
    );
    run_of_spec(dir, &spec)
}

#[test]
fn threads_take_about_as_long_as_when_all_is_timed() {
    let (all, sampled) = (scratch("sampled-harts-all"), scratch("sampled-harts"));
    let whole = run(&all, "", "");
    let part = run(&sampled, "", PLAN);
    let answer = |dir: &Path| std::fs::read_to_string(dir.join("out/files/answer.txt")).unwrap();
    assert_eq!(answer(&all), answer(&sampled));

    let found = &part["sampling"];
    assert!(found["units"].as_u64().unwrap() > 50, "{found}");
    assert_eq!(found["plan"]["check"], 0, "no unit of several harts is timed twice");
    let error = |estimate: &Value, truth: f64| {
        let value = estimate["value"].as_f64().unwrap();
        let within = estimate["within_99_7"]["half_width"].as_f64().unwrap();
        (value / truth - 1.0, within / truth)
    };
    let awake = |hart: &Value| {
        let cycles = |key: &str| hart["stats"][key].as_f64().unwrap();
        cycles("cycles") - cycles("cycles_idle")
    };
    let all_awake: f64 = whole["harts"].as_array().unwrap().iter().map(awake).sum();
    let elapsed = whole["regions"]["cycles"].as_f64().unwrap();
    // What the threads wait for each other comes elsewhere between units: the bound is that of chance and of that.
    for (name, truth) in [("cycles", all_awake), ("elapsed", elapsed)] {
        let (error, within) = error(&found[name], truth);
        assert!(error.abs() < within + 0.05 && within < 0.15, "{name}: {error} {within}");
    }
    assert_eq!(found["harts"].as_array().unwrap().len(), 2);
}

#[test]
fn nothing_of_the_host_changes_what_is_sampled_of_several_harts() {
    let found = |name: &str, of_run: &str| {
        let dir = scratch(name);
        let part = run(&dir, of_run, PLAN);
        let units = std::fs::read(dir.join("out/units.json")).unwrap();
        (units, part["fingerprint"].clone(), part["sampling"].clone())
    };
    let usual = found("sampled-harts-usual", "");
    for of_run in ["translator = \"off\"", "checkpoint = false", "threads = \"one\""] {
        assert!(found("sampled-harts-other", of_run) == usual, "{of_run}");
    }
}
