//! `tipsim profile`: from a command to the verdict.

mod common;

use std::path::Path;
use std::process::Command;

use common::{assert_error, json, repo, scratch, stdout, succeed, tipsim};

/// A program whose loads wait for each other.
fn chase(dir: &Path) {
    let mut gcc = Command::new("riscv64-linux-gnu-gcc");
    gcc.args(["-O1", "-g1", "-static", "-o"])
        .arg(dir.join("chase"))
        .arg(repo().join("emulator/tests/precise/chase.c"));
    assert!(gcc.status().expect("run riscv64-linux-gnu-gcc").success());
}

#[test]
fn a_program_of_the_host_is_profiled_by_its_name() {
    let dir = scratch("profile");
    chase(&dir);
    let mut command = tipsim();
    command.current_dir(&dir).args(["profile", "./chase"]);
    let text = succeed(&mut command);
    assert!(text.contains("chase: "), "{text}");
    let place = text
        .lines()
        .position(|line| line.starts_with("  ") && line.contains("% waiting for data of the "));
    let place = place.unwrap_or_else(|| panic!("{text}"));
    let said: Vec<&str> = text.lines().skip(place).take(6).collect();
    assert!(said.concat().contains("chase.c:"), "{text}");
    assert!(said.iter().any(|line| line.contains("try: ")), "{text}");
    assert!(
        text.contains("report: out/profile-chase/report.html"),
        "{text}"
    );
    let out = dir.join("out/profile-chase");
    let report = json(&out.join("report.json"));
    let verdict = &report["verdict"][0];
    let name = &report["processes"][verdict["process"].as_u64().unwrap() as usize]["name"];
    assert_eq!(name, "chase");
    let place = &verdict["places"][0];
    assert_eq!(place["function"], "chase");
    let component = place["cause"]["component"].as_str().unwrap();
    assert!(component.starts_with("load-"), "{place}");
    assert!(
        place["text"].as_str().unwrap().starts_with("ld "),
        "{place}"
    );
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("<section id=\"verdict\""));
    // Its loop is bound by the loads, one after the other.
    assert!(text.contains("the loop at chase+"), "{text}");
    let hottest = &report["loops"]["loops"][0];
    assert_eq!(hottest["function"], "chase");
    assert!(hottest["measured"].as_u64().unwrap() > 100, "{hottest}");
    let causes = hottest["causes"].as_array().unwrap();
    assert!(
        causes[0]["cause"].as_str().unwrap().starts_with("load_"),
        "{hottest}"
    );
    let sum: f64 = causes
        .iter()
        .map(|part| part["cycles"].as_f64().unwrap())
        .sum();
    let mean = hottest["cycles_per_iteration"].as_f64().unwrap();
    assert!((sum / mean - 1.0).abs() < 1e-9, "{hottest}");

    // Its spec says the same.
    let mut again = tipsim();
    again.arg("run").arg(out.join("profile.toml"));
    let text = succeed(again.arg("--out").arg(dir.join("again")));
    assert!(text.contains("chase: "), "{text}");
}

#[test]
fn words_and_scripts_reach_the_guest_and_its_status_comes_back() {
    let dir = scratch("profile-words");
    std::fs::write(dir.join("data"), "2\n1\n").unwrap();
    let mut command = tipsim();
    command.current_dir(&dir);
    command.args(["profile", "--file", "data", "--out", "o"]);
    command.arg("sort data > 'a b' && exit 7");
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{}", stdout(&output));
    assert_eq!(
        std::fs::read_to_string(dir.join("o/files/a b")).unwrap(),
        "1\n2\n"
    );
}

/// As a server: it is started, answers once to be warm, and is measured from the mark on.
#[test]
fn a_program_that_waits_is_profiled_from_a_mark() {
    let dir = scratch("profile-waits");
    let script = "mkfifo in out
        awk '{ for (i = 0; i < $1; i++) s += i % 7; print s; fflush() }' < in > out & exec 3> in 4< out
        ask() { echo $1 >&3; read -r answer <&4; echo answer $answer; }
        ask 30000; tipsim-region start; ask 7; ask 700; tipsim-region stop; exec 3>&-; wait";
    let mut command = tipsim();
    command.current_dir(&dir).args(["profile", "--marked"]);
    command.args(["--out", "o", script]);
    let text = succeed(&mut command);
    assert!(text.contains("awk: "), "{text}");
    let console = std::fs::read_to_string(dir.join("o/console.log")).unwrap();
    assert!(console.contains("answer 89995"), "{console}");
    assert!(console.contains("answer 92116"), "{console}");
    let run = json(&dir.join("o/run.json"));
    assert_eq!(run["regions"]["count"], 1, "{}", run["regions"]);
    // Not the first answer, which takes more than all that is left.
    let timed = run["cycles"].as_u64().unwrap();
    assert!(timed < 20_000_000, "{timed}");
    let before = run["functional"]["instructions"].as_u64().unwrap();
    assert!(before > 20_000_000, "{before}");
}

#[test]
fn what_cannot_run_is_told_before_anything_boots() {
    let dir = scratch("profile-wrong");
    let mut command = tipsim();
    command.current_dir(&dir).args(["profile", "/bin/true"]);
    let output = command.output().unwrap();
    assert_error(&output, 2, &["/bin/true", "expected a program for RISC-V"]);
    assert!(!dir.join("out").exists());
    let mut command = tipsim();
    command.current_dir(&dir);
    command.args(["profile", "--file", "nothing", "--", "true"]);
    assert_error(&command.output().unwrap(), 2, &["nothing: No such file"]);
}
