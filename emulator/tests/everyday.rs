//! What everybody meets in the first hour: no guest named, a command that fails, a full disk, too much memory.

use std::path::Path;
use std::process::{Command, Output};

use crate::common::{assert_error, guest, scratch, stderr, tipsim};

const FUNCTIONAL: &str = "[run]\nboot = \"functional\"\n";

/// A cache whose last guest is the tests' own.
fn cache(dir: &Path) {
    std::fs::create_dir_all(dir.join("guest")).unwrap();
    std::os::unix::fs::symlink(guest(), dir.join("guest/latest")).unwrap();
}

#[test]
fn the_guest_built_last_is_found_and_a_failing_command_is_told() {
    let dir = scratch("everyday-latest");
    cache(&dir.join("cache"));
    let spec = dir.join("spec.toml");
    std::fs::write(&spec, FUNCTIONAL).unwrap();
    let run = |command: &str| {
        let mut run = tipsim();
        run.arg("run").arg(&spec).arg("--out").arg(dir.join("out"));
        run.args(["--set", &format!("run.command='{command}'")]);
        run.env_remove("TIPSIM_GUEST");
        run.env("TIPSIM_CACHE", dir.join("cache")).output().unwrap()
    };
    let missing = run("echo so far; nosuchcommand");
    let said = stderr(&missing);
    assert_eq!(missing.status.code(), Some(127), "{said}");
    for part in [
        &format!("guest: {}, built last", guest().canonicalize().unwrap().display()) as &str,
        "| so far",
        "| /bin/sh: nosuchcommand: not found",
    ] {
        assert!(said.contains(part), "no \"{part}\" in {said}");
    }
    let last = said.trim_end().lines().last();
    assert_eq!(last, Some("tipsim: the guest's command ended with 127: a command was not found"));
    assert!(!said.contains("Power down") && !said.contains("HART"), "{said}");
    let killed = run("kill -KILL $$");
    assert_eq!(killed.status.code(), Some(137));
    assert!(stderr(&killed).contains("killed by signal 9 (SIGKILL)"));
    let fine = run("true");
    assert_eq!(fine.status.code(), Some(0));
    assert!(!stderr(&fine).contains("ended with"));
}

#[test]
fn without_a_guest_one_is_told_how_to_build_it() {
    let dir = scratch("everyday-no-guest");
    let spec = dir.join("spec.toml");
    std::fs::write(&spec, FUNCTIONAL).unwrap();
    let mut run = tipsim();
    run.arg("run").arg(&spec).arg("--out").arg(dir.join("out"));
    for command in [&mut run, tipsim().arg("boot")] {
        command.env_remove("TIPSIM_GUEST").env("TIPSIM_CACHE", &dir);
        assert_error(&command.output().unwrap(), 2, &["no guest", "guest-sw/build"]);
        // What was built last may have been removed since.
        std::fs::create_dir_all(dir.join("guest")).unwrap();
        let _ = std::os::unix::fs::symlink("gone", dir.join("guest/latest"));
        assert_error(&command.output().unwrap(), 2, &["no guest", "guest-sw/build"]);
    }
}

#[test]
fn more_memory_than_the_host_has_is_refused_with_numbers() {
    let dir = scratch("everyday-memory");
    let spec = dir.join("spec.toml");
    std::fs::write(&spec, "[guest]\nmemory = \"32768G\"\n").unwrap();
    let mut run = tipsim();
    run.arg("run").arg(&spec).arg("--out").arg(dir.join("out"));
    run.arg("--guest-dir").arg(guest());
    let words = ["guest.memory", "the host's", "32768.0 GiB"];
    assert_error(&run.output().unwrap(), 2, &words);
    run.args(["--set", "guest.memory=16384G"]);
    assert_error(&run.output().unwrap(), 2, &["--set guest.memory=16384G: ", "16384.0 GiB"]);
    let mut boot = tipsim();
    boot.args(["boot", "--memory", "32768G", "--guest-dir"]).arg(guest());
    assert_error(&boot.output().unwrap(), 2, &["--memory", "32768.0 GiB"]);
}

#[test]
fn a_parameter_of_the_core_that_is_set_wrongly_blames_the_option() {
    let dir = scratch("everyday-set");
    let spec = dir.join("spec.toml");
    std::fs::write(&spec, FUNCTIONAL).unwrap();
    for (set, word) in [
        ("core.rob.entries=63", "rob.entries"),
        ("core.rob.entires=64", "entries"),
        ("run.command=false", "expected a string"),
    ] {
        let mut run = tipsim();
        run.arg("run").arg(&spec).arg("--out").arg(dir.join("out"));
        let output = run.args(["--set", set]).output().unwrap();
        assert_error(&output, 2, &[&format!("--set {set}: "), word]);
    }
}

/// A run that may write so many KiB to a file: what a full disk is, but that it is full for that file alone.
fn limited(spec: &Path, out: &Path, kib: u32, extra: &[&str]) -> Output {
    let mut shell = Command::new("bash");
    shell.arg("-c");
    shell.arg(format!("ulimit -f {kib}; exec \"$0\" \"$@\""));
    shell.arg(env!("CARGO_BIN_EXE_tipsim")).arg("run").arg(spec);
    shell.arg("--guest-dir").arg(guest()).arg("--out").arg(out);
    shell.args(extra).args(["--set", "run.checkpoint=false"]);
    shell.output().unwrap()
}

#[test]
fn a_full_disk_names_the_file_and_leaves_no_half_ones() {
    let dir = scratch("everyday-full");
    std::fs::write(dir.join("big"), vec![7; 1 << 20]).unwrap();
    let spec = dir.join("spec.toml");
    let command = "files = [\"big\"]\ncommand = \"md5sum big\"\nregion = \"command\"\n";
    std::fs::write(&spec, format!("{FUNCTIONAL}{command}")).unwrap();
    let without = ["--set", "run.files=[]"];
    let cases: [(&str, u32, &[&str], &str); 4] = [
        ("share", 64, &[], "files/big: cannot write"),
        (
            "console",
            64,
            &[
                "--set",
                "run.command=seq 30000",
                "--set",
                "record.trace=false",
                "--set",
                "record.profilers=false",
            ],
            "console.log: cannot write",
        ),
        ("trace", 24, &["--set", "run.command=ls -lR /usr | md5sum"], "trace.tip: cannot write"),
        (
            "report",
            24,
            &["--set", "run.command=ls /", "--set", "record.trace=false"],
            "cannot write",
        ),
    ];
    for (name, kib, extra, expected) in cases {
        let out = dir.join(name);
        let extra = if name == "share" { extra.to_vec() } else { [&without, extra].concat() };
        let output = limited(&spec, &out, kib, &extra);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{name}: {said}");
        let last = said.trim_end().lines().last().unwrap();
        assert!(last.contains(expected) && last.contains("File too large"), "{name}: {said}");
        assert!(!dir.join(format!("{name}.partial")).exists(), "{name}");
        // The run has not begun where the given files do not fit.
        assert_eq!(out.exists(), name != "share", "{name}");
        for entry in std::fs::read_dir(&out).into_iter().flatten() {
            let file = entry.unwrap().file_name().into_string().unwrap();
            assert!(!file.ends_with(".partial"), "{name}: {file}");
            assert!(name != "report" || file != "report.html", "a half report");
        }
    }
}
