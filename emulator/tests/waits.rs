//! What threads wait for, and who wakes them: of a program that knows.

use std::collections::HashMap;
use std::process::Command;

use crate::common::{json, repo, run_spec, scratch, succeed};
use serde_json::Value;

/// Cycles of the core in a nanosecond.
const CYCLES_PER_NS: f64 = 3.2;
/// Most cycles of a thread that its own times do not have: its start before and its end after it takes them.
const MAX_START_AND_END: f64 = 250_000.0;

/// What a thread of `waits.c` says of itself.
struct Said {
    tid: u64,
    /// Number of times that the thread left its hart by itself.
    waited: u64,
    /// Number of times that the thread was preempted on its hart.
    preempted: u64,
    cpu_ns: f64,
    /// Time since the thread was made, in nanoseconds, if the thread knows it.
    since_ns: f64,
}

fn said(console: &str) -> HashMap<String, Said> {
    let threads = console.lines().filter(|line| line.starts_with("thread "));
    threads
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let number = |at: usize| words[at].parse::<u64>().unwrap();
            let said = Said {
                tid: number(2),
                waited: number(3),
                preempted: number(4),
                cpu_ns: number(5) as f64,
                since_ns: number(6) as f64,
            };
            (words[1].to_owned(), said)
        })
        .collect()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().unwrap()
}

fn number(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or_else(|| panic!("{key}: {value}"))
}

/// The waits of a thread for a reason: count, cycles, and each waker with its count.
fn waits(thread: &Value, reason: &str) -> (u64, u64, Vec<(String, u64)>) {
    let own = list(thread, "waits").iter().find(|wait| wait["reason"] == reason);
    let own = own.unwrap_or_else(|| panic!("{reason}: {thread}"));
    let wakers = list(own, "wakers").iter();
    let wakers =
        wakers.map(|row| (row["waker"].as_str().unwrap().to_owned(), number(row, "count")));
    (number(own, "count"), number(own, "cycles"), wakers.collect())
}

#[test]
fn locks_conditions_sleeps_and_pipes_are_told_as_often_as_they_were() {
    let dir = scratch("waits");
    let source = repo().join("emulator/tests/harts/waits.c");
    let mut compiler = Command::new("riscv64-linux-gnu-gcc");
    compiler.args(["-O1", "-g", "-static", "-pthread", "-Wall", "-Wextra", "-Werror", "-o"]);
    succeed(compiler.arg(dir.join("waits")).arg(source));
    let spec = "[guest]\nharts = 2\n[run]\nboot = \"functional\"\nregion = \"command\"\nfiles = [\"waits\"]\n\
         command = \"./waits\"\n[record]\ntrace = false\ncall_stacks = true\n[[sampler]]\nprofiler = \"tip\"\nperiod = 10007\n";
    succeed(&mut run_spec(&dir, spec));
    let console = std::fs::read_to_string(dir.join("out/console.log")).unwrap();
    let said = said(&console);
    assert_eq!(said.len(), 9, "{console}");
    let report = json(&dir.join("out/report.json"));
    let waiting = &report["waiting"];
    let named = |tid: u64| {
        let own = |thread: &&Value| {
            let process = number(thread, "process") as usize;
            number(thread, "tid") == tid && report["processes"][process]["name"] == "waits"
        };
        let found = list(waiting, "threads").iter().find(own);
        found.unwrap_or_else(|| panic!("no thread {tid}: {waiting}"))
    };
    let thread = |name: &str| named(said[name].tid);
    let title =
        |name: &str| format!("{} {}", if name == "main" { "waits" } else { name }, said[name].tid);

    // Exactly as often as the program did it, and by whom.
    let (count, cycles, wakers) = waits(thread("waiter"), "futex");
    assert_eq!((count, &*wakers), (5, &[(title("holder"), 5)][..]));
    // The lock is held for 100,000 passes of a loop, of which the attempt takes a little.
    assert!(cycles > 5 * 400_000, "{cycles}");
    let (count, cycles, wakers) = waits(thread("sleeper"), "clock_nanosleep");
    assert_eq!((count, &*wakers), (7, &[("interrupt".to_owned(), 7)][..]));
    // Less what the call takes before it leaves the hart.
    let slept = cycles as f64 / CYCLES_PER_NS / 7.0;
    assert!((80_000.0..180_000.0).contains(&slept), "{slept} ns each");
    let (count, _, wakers) = waits(thread("reader"), "read");
    assert_eq!((count, &*wakers), (4, &[(title("main"), 4)][..]));
    // The ends of the threads that main joined, of those that it had to wait for.
    let (count, _, wakers) = waits(thread("main"), "futex (shared)");
    assert!((5..=8).contains(&count), "{count}");
    for (waker, _) in &wakers {
        let threads = ["holder", "waiter", "ping", "pong", "left", "right", "sleeper", "reader"];
        assert!(threads.iter().any(|name| title(name) == *waker), "{waker}");
    }

    // Futexes by their symbols.
    let futexes = list(waiting, "futexes");
    let of = |object: &'static str| {
        let own = move |futex: &&Value| {
            let name = futex["object"].as_str().unwrap_or("");
            name.split('+').next() == Some(object)
        };
        futexes.iter().filter(own)
    };
    let held: Vec<&Value> = of("held").collect();
    assert_eq!(held.len(), 1, "{futexes:?}");
    assert_eq!(number(held[0], "count"), 5);
    let pair = &held[0]["pairs"][0];
    assert_eq!(
        (&pair["waiter"], &pair["waker"]),
        (&title("waiter").into(), &title("holder").into())
    );
    assert!(held[0]["places"][0]["label"].as_str().unwrap().contains("lll_lock_wait"));
    // The report says which functions of the program wait, with the line of the call.
    let line_of = |call: &str| {
        let lines = include_str!("harts/waits.c").lines();
        let found = lines.enumerate().filter(|(_, line)| line.contains(call));
        let numbers = found.map(|(number, _)| format!("waits.c:{}", number + 1));
        numbers.collect::<Vec<_>>()
    };
    let is_at = |caller: &Value, function: &str, calls: &[String]| {
        let source = caller["source"].as_str().unwrap_or("");
        caller["function"] == function && calls.iter().any(|line| source.ends_with(line))
    };
    let callers = list(held[0], "callers");
    let locks = line_of("pthread_mutex_lock(&held)");
    assert!(callers.len() == 1 && is_at(&callers[0], "waiter", &locks), "{callers:?}");
    assert_eq!(number(&callers[0], "count"), 5);
    let conditions: u64 = of("turned").map(|futex| number(futex, "count")).sum();
    let counted = console.split("conditions ").nth(1).unwrap();
    let counted: u64 = counted.split(' ').next().unwrap().parse().unwrap();
    assert!(conditions <= counted && conditions + 4 >= counted, "{conditions} of {counted}");
    let calls = line_of("pthread_cond_wait(&turned");
    for caller in of("turned").flat_map(|futex| list(futex, "callers")) {
        assert!(is_at(caller, "player", &calls), "{caller}");
    }
    for futex in of("turned") {
        for pair in list(futex, "pairs") {
            let both = [&pair["waiter"], &pair["waker"]].map(|name| name.as_str().unwrap());
            let (ping, pong) = (title("ping"), title("pong"));
            assert!(both == [&ping, &pong] || both == [&pong, &ping], "{pair}");
        }
    }

    // Ready to run, but on no hart: what is left of the time by the guest's clock.
    for name in ["left", "right"] {
        let ready = number(&thread(name)["ready"], "cycles") as f64;
        let expected = (said[name].since_ns - said[name].cpu_ns) * CYCLES_PER_NS;
        assert!(
            (ready - expected).abs() < MAX_START_AND_END && expected > 4.0 * MAX_START_AND_END,
            "{name}: {ready}, {expected}"
        );
        assert!(said[name].preempted >= 5, "{}", said[name].preempted);
    }

    // The kernel's own counts of each thread: what it does after it has read them is little.
    for (name, said) in &said {
        let own = thread(name);
        let count: u64 = list(own, "waits").iter().map(|wait| number(wait, "count")).sum();
        let later = count - said.waited.min(count);
        // main was a child of the shell before it was this program, and waited for its files.
        let before = if name == "main" { 8 } else { 0 };
        assert!(said.waited <= count + before && later <= 3, "{name}: {} of {count}", said.waited);
        assert!(said.preempted <= number(&own["ready"], "count"), "{name}");
        let running = number(&own["running"], "cycles") as f64;
        let cpu = said.cpu_ns * CYCLES_PER_NS;
        if name != "main" {
            assert!(
                (0.0..MAX_START_AND_END).contains(&(running - cpu)),
                "{name}: {running}, {cpu}"
            );
        }
        let waits = list(own, "waits").iter().map(|wait| number(wait, "cycles"));
        let parts = waits.sum::<u64>() + running as u64 + number(&own["ready"], "cycles");
        assert_eq!(parts, number(own, "cycles"), "{name}: all of it is told");
        // The Oracle's cycles of a thread are those in which it was on a hart.
        let rows = list(&report, "threads");
        let tids = |row: &&Value| row["tids"] == Value::from(vec![said.tid]) && row["count"] == 1;
        let row = rows.iter().find(|row| tids(row) && (row["name"] == **name || name == "main"));
        let oracle = row.unwrap()["cycles"].as_f64().unwrap();
        assert!((oracle - running).abs() <= 0.02 * oracle, "{name}: {oracle}, {running}");
    }
    let text = std::fs::read_to_string(dir.join("out/report.txt")).unwrap();
    assert!(text.contains("for `held` (0x"), "{text}");
    assert!(text.contains("in waiter (waits.c:"), "{text}");
    // A hart knows but its own part.
    assert!(json(&dir.join("out/hart0/report.json"))["waiting"].is_null());
}
