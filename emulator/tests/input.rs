//! Standard input of the guest's command.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::common::{guest, json, run_spec, scratch, stderr, succeed, tipsim};

/// Prints how many lines came, and their digest.
const READS: &str = "tee copy | wc -l; md5sum < copy";

/// `tipsim profile` of a script that reads, with a standard input, in a folder of its own.
fn profile(out: &Path, stdin: Stdio) -> Output {
    let mut profile = tipsim();
    profile.args(["profile", "--guest-dir"]).arg(guest());
    profile.arg("--out").arg(out).arg(READS);
    let child = profile.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let output = child.unwrap().wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    output
}

/// The last lines of the guest's console that are its programs'.
fn printed(out: &Path) -> String {
    let console = std::fs::read_to_string(out.join("console.log")).unwrap();
    let lines = console.lines().filter(|line| !line.starts_with('['));
    let lines: Vec<&str> = lines.collect();
    lines[lines.len() - 2..].join(" ")
}

#[test]
fn a_profiled_command_has_the_standard_input_of_tipsim() {
    let dir = scratch("input-profile");
    let (out, file) = (dir.join("out"), dir.join("in"));
    let text: String = (0..2_000).map(|n| format!("{n}\n")).collect();
    std::fs::write(&file, &text).unwrap();
    let sum = succeed(Command::new("md5sum").arg(&file));
    let whole = format!("2000 {}  -", sum.split(' ').next().unwrap());
    profile(&out, File::open(&file).unwrap().into());
    assert_eq!(printed(&out), whole);
    assert_eq!(std::fs::read_to_string(out.join("input")).unwrap(), text);
    // The input is a part of the run, which can be repeated.
    let mut again = tipsim();
    again.arg("run").arg(out.join("profile.toml")).arg("--guest-dir").arg(guest());
    succeed(again.arg("--out").arg(dir.join("again")));
    assert_eq!(printed(&dir.join("again")), whole);
    let [first, second] = [&out, &dir.join("again")].map(|out| json(&out.join("run.json")));
    assert_eq!(first["cycles"], second["cycles"]);
}

#[test]
fn a_pipe_is_read_to_its_end_and_what_has_nothing_is_empty() {
    let dir = scratch("input-none");
    let mut slow = Command::new("sh");
    slow.args(["-c", "echo first; sleep 2; echo second"]);
    let mut slow = slow.stdout(Stdio::piped()).spawn().unwrap();
    let output = profile(&dir.join("pipe"), slow.stdout.take().unwrap().into());
    slow.wait().unwrap();
    assert!(printed(&dir.join("pipe")).starts_with("2 "), "{}", printed(&dir.join("pipe")));
    assert!(stderr(&output).contains("reading standard input to its end"));

    profile(&dir.join("null"), Stdio::null());
    assert!(printed(&dir.join("null")).starts_with("0 "));
    assert!(!dir.join("null/input").exists());
    let spec = std::fs::read_to_string(dir.join("null/profile.toml")).unwrap();
    assert!(!spec.contains("input"), "{spec}");
}

#[test]
fn a_spec_names_a_file_for_it() {
    let dir = scratch("input-spec");
    std::fs::write(dir.join("numbers"), "3\n4\n").unwrap();
    let text = "[run]\nboot = \"functional\"\ninput = \"numbers\"\ncommand = 'read a; read b; echo $((a * b)); read c || echo end; ls -A'\n";
    let output = run_spec(&dir, text).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let console = std::fs::read_to_string(dir.join("out/console.log")).unwrap();
    assert!(console.contains("12\r\nend\r\n"), "{console}");
    assert!(!dir.join("out/files/.tipsim-input").exists());
    for (text, words) in [
        ("[run]\ninput = \"numbers\"\n", "run.input: expected run.command"),
        ("[run]\ncommand = \"true\"\ninput = \"none\"\n", "none: No such file"),
        ("[run]\ncommand = \"true\"\ninput = \".\"\n", "expected a file for run.input"),
    ] {
        let output = run_spec(&dir, text).output().unwrap();
        crate::common::assert_error(&output, 2, &[words]);
    }
}
