//! Guests that die, end early, or wait for what does not come: each ends its run soon, with a failure and a reason.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::common::{assemble, run_spec, scratch, stderr, tipsim};

/// A run that takes longer has not noticed its guest's end, on whatever host.
const MAX_TIME: Duration = Duration::from_secs(60);

/// Runs to the end, or kills what does not come to one.
#[track_caller]
fn within(command: &mut Command) -> Output {
    let start = Instant::now();
    let pipes = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.stdin(Stdio::null()).spawn().unwrap();
    // What a run prints fits into a pipe.
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > MAX_TIME {
            child.kill().unwrap();
            let output = child.wait_with_output().unwrap();
            panic!("not over after {MAX_TIME:?}: {}", stderr(&output));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.wait_with_output().unwrap()
}

/// Checks that a run failed, that its last line has `words`, and that lines of the console with `shown` come before.
#[track_caller]
fn assert_fails(output: &Output, words: &[&str], shown: &[&str]) {
    let said = stderr(output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let last = said.trim_end().lines().last().unwrap_or_default();
    for word in words {
        assert!(last.contains(word), "no \"{word}\" at the end of: {said}");
    }
    let console: Vec<&str> = said.lines().filter(|l| l.starts_with("  | ")).collect();
    for line in shown {
        assert!(console.iter().any(|l| l.contains(line)), "no line \"{line}\" in: {said}");
    }
}

/// A functional run of a command with more keys of the spec.
fn run(dir: &Path, command: &str, set: &[&str]) -> Output {
    let text = format!("[run]\nboot = \"functional\"\ncommand = '''{command}'''\n");
    let mut run = run_spec(dir, &text);
    for set in set {
        run.args(["--set", set]);
    }
    within(&mut run)
}

#[test]
fn a_panic_of_the_kernel_ends_the_run_with_its_reason() {
    let dir = scratch("ends-panic");
    for (set, reason) in [
        ("guest.append=rdinit=/nothing", "Unable to mount root fs"),
        ("guest.append=rdinit=/usr/bin/false", "Attempted to kill init"),
        // There is no room for the initramfs, or for anything.
        ("guest.memory=48M", ""),
        ("guest.memory=24M", ""),
    ] {
        let output = run(&dir, "echo never", &[set]);
        let words = ["the guest's kernel panicked: ", reason];
        assert_fails(&output, &words, &["Kernel panic - not syncing"]);
        let end = &crate::common::json(&dir.join("out/run.json"))["end"];
        assert_eq!(end["reason"], "standstill", "{set}: {end}");
        assert!(end["why"].as_str().unwrap().contains("kernel panicked"), "{set}: {end}");
    }
}

#[test]
fn a_panic_during_the_command_ends_the_run_with_its_reason() {
    let dir = scratch("ends-panic-late");
    let command = "echo 2 > /proc/sys/vm/panic_on_oom; echo begins; tail /dev/zero; echo after";
    let output = run(&dir, command, &["guest.memory=80M"]);
    assert_fails(&output, &["kernel panicked: ", "panic_on_oom"], &["Kernel panic"]);
}

#[test]
fn a_program_that_prints_a_panic_ends_nothing() {
    let dir = scratch("ends-printed");
    let command = "echo 'Kernel panic - not syncing: not true'; sleep 60; echo after";
    let output = run(&dir, command, &[]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let console = std::fs::read_to_string(dir.join("out/console.log")).unwrap();
    assert!(console.contains("\nafter"), "{console}");
    // The system went down in order then, whatever was printed before.
    let output = run(&dir, "echo 'Kernel panic - not syncing: no'; reboot -f", &[]);
    assert_fails(&output, &["ended before its command did: it asked for a reset"], &[]);
}

#[test]
fn a_guest_that_ends_before_its_command_is_a_failure() {
    let dir = scratch("ends-early");
    for (command, how) in [
        ("poweroff -f", "it was switched off"),
        ("halt -f", "it was switched off"),
        ("reboot -f", "it asked for a reset"),
    ] {
        // A file of this name is the user's own, and says nothing of the command.
        let script = format!("echo begins\necho 0 > status\nsync\n{command}\necho after\n");
        let output = run(&dir, &script, &[]);
        let words = ["the guest ended before its command did: ", how];
        assert_fails(&output, &words, &["begins"]);
        let kept = std::fs::read_to_string(dir.join("out/files/status")).unwrap();
        assert_eq!(kept, "0\n");
        assert!(crate::common::json(&dir.join("out/run.json"))["exit_status"].is_null());
    }
    let output = run(&dir, "exit 3", &[]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert_eq!(crate::common::json(&dir.join("out/run.json"))["exit_status"], 3);
    assert!(!dir.join("out/files/.tipsim-status").exists());
}

#[test]
fn a_guest_that_only_waits_ends_the_run() {
    let dir = scratch("ends-waits");
    for command in ["read x < /dev/console", "kill -STOP $$"] {
        let output = run(&dir, &format!("echo begins; {command}"), &[]);
        let words =
            ["the guest only waits: ", "for 2h of simulated time", "run.input", "run.max_idle"];
        assert_fails(&output, &words, &["begins"]);
        assert!(!stderr(&output).contains("had not begun"));
    }
    // The limit can be set; a sleep below it is none of its business.
    let set = ["run.max_idle=10min"];
    let output = run(&dir, "sleep 20000", &set);
    assert_fails(&output, &["for 10min of simulated time"], &[]);
    let output = run(&dir, "sleep 590; echo over", &set);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let output = run(&dir, "sleep 20000", &["run.max_idle=0s"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let output = run(&dir, "true", &["run.max_idle=soon"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("run.max_idle: expected a duration"));
}

#[test]
fn an_hour_of_sleep_on_purpose_is_waited_for() {
    let dir = scratch("ends-sleeps");
    let output = run(&dir, "sleep 3600; echo over", &[]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn a_guest_without_the_shared_folder_is_said_not_to_have_begun() {
    let dir = scratch("ends-no-share");
    // The guest's init finds no folder, and leaves the console to a shell.
    let set = ["guest.append=initcall_blacklist=virtio_fs_init", "run.max_idle=10min"];
    let output = run(&dir, "echo never", &set);
    assert_fails(
        &output,
        &["the guest only waits: ", "it never mounted the folder in which its command waits"],
        &[],
    );
}

/// Firmware alone, under `tipsim run` and under `tipsim boot` with nobody at its console.
fn firmware(name: &str, source: &str) -> [Output; 2] {
    let dir = scratch(name);
    let elf = assemble(&dir, "firmware", source);
    let spec = dir.join("spec.toml");
    let elf = elf.display();
    std::fs::write(&spec, format!("[guest]\nfirmware = \"{elf}\"\n[run]\nboot = \"functional\"\n"))
        .unwrap();
    let (mut run, mut boot) = (tipsim(), tipsim());
    run.arg("run").arg(&spec).arg("--out").arg(dir.join("out"));
    boot.args(["boot", "--firmware"]).arg(dir.join("firmware.elf"));
    [&mut run, &mut boot].map(|command| within(command.env_remove("TIPSIM_GUEST")))
}

#[test]
fn firmware_that_has_stopped_ends_the_run() {
    // A pending interrupt that is not taken keeps the hart from sleeping.
    let source = ".globl _start\n_start: li t0, 8\n csrw mie, t0\n li t0, 0x2000000\n li t1, 1\n sw t1, 0(t0)\n1: wfi\n j 1b\n";
    for output in firmware("ends-halted", source) {
        assert_fails(&output, &["the guest's firmware has stopped: hart 0", "0x8000"], &[]);
    }
}

#[test]
fn firmware_whose_traps_lead_nowhere_ends_the_run() {
    for output in firmware("ends-stuck", ".globl _start\n_start: ebreak\n") {
        assert_fails(&output, &["the guest gets nowhere: hart 0: "], &[]);
    }
}
