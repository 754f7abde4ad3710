//! `tipsim profile`: from a command to the verdict.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::common::{assert_error, json, repo, scratch, stdout, succeed, tipsim};

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
    assert!(text.contains("report: out/profile-chase/report.html"), "{text}");
    let out = dir.join("out/profile-chase");
    let report = json(&out.join("report.json"));
    let verdict = &report["verdict"][0];
    let name = &report["processes"][verdict["process"].as_u64().unwrap() as usize]["name"];
    assert_eq!(name, "chase");
    let place = &verdict["places"][0];
    assert_eq!(place["function"], "chase");
    let component = place["cause"]["component"].as_str().unwrap();
    assert!(component.starts_with("load-"), "{place}");
    assert!(place["text"].as_str().unwrap().starts_with("ld "), "{place}");
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("<section id=\"verdict\""));
    // The program's loop is bound by the loads, one after the other.
    assert!(text.contains("the loop at chase+"), "{text}");
    let hottest = &report["loops"]["loops"][0];
    assert_eq!(hottest["function"], "chase");
    assert!(hottest["measured"].as_u64().unwrap() > 100, "{hottest}");
    let causes = hottest["causes"].as_array().unwrap();
    assert!(causes[0]["cause"].as_str().unwrap().starts_with("load_"), "{hottest}");
    let sum: f64 = causes.iter().map(|part| part["cycles"].as_f64().unwrap()).sum();
    let mean = hottest["cycles_per_iteration"].as_f64().unwrap();
    assert!((sum / mean - 1.0).abs() < 1e-9, "{hottest}");

    // The spec that the profile wrote runs the same program.
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
    assert_eq!(std::fs::read_to_string(dir.join("o/files/a b")).unwrap(), "1\n2\n");
}

/// Profiles a program that serves requests: it is started, answers once to be warm, and is measured from the mark on.
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
    // The first answer, which takes more than all the rest, is not timed.
    let timed = run["cycles"].as_u64().unwrap();
    assert!(timed < 20_000_000, "{timed}");
    let before = run["functional"]["instructions"].as_u64().unwrap();
    assert!(before > 20_000_000, "{before}");
}

/// Compiles a program of one file, with these arguments behind it; it is `dir/program`.
fn compile(dir: &Path, source: &str, arguments: &[&str]) {
    std::fs::write(dir.join("program.c"), source).unwrap();
    let mut gcc = Command::new("riscv64-linux-gnu-gcc");
    gcc.current_dir(dir).args(["-O1", "program.c", "-o", "program"]);
    let status = gcc.args(arguments).status();
    assert!(status.expect("run riscv64-linux-gnu-gcc").success());
}

#[test]
fn libraries_of_compilers_are_brought_along() {
    let dir = scratch("profile-libraries");
    let source = "#include <stdio.h>\nint main(void) { puts(\"ran\"); }";
    compile(&dir, source, &["-Wl,--no-as-needed", "-lgcc_s", "-latomic"]);
    let mut command = tipsim();
    command.current_dir(&dir).args(["profile", "--out", "o", "./program"]);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    for (library, package) in [("libgcc_s.so.1", "libgcc-s1"), ("libatomic.so.1", "libatomic1")] {
        let line = format!(
            "{library} is not in the guest by itself: brought along, as by --package {package}"
        );
        assert!(said.contains(&line), "{said}");
    }
    let console = std::fs::read_to_string(dir.join("o/console.log")).unwrap();
    assert!(console.contains("ran"), "{console}");
    // The spec says the same.
    let spec = std::fs::read_to_string(dir.join("o/profile.toml")).unwrap();
    assert!(spec.contains("libgcc-s1"), "{spec}");
}

/// A library of one's own is not found; taken along, and with the variable that says where, it is.
#[test]
fn variables_reach_the_command() {
    let dir = scratch("profile-variables");
    std::fs::write(dir.join("own.c"), "int own(void) { return 42; }").unwrap();
    let mut gcc = Command::new("riscv64-linux-gnu-gcc");
    gcc.current_dir(&dir);
    gcc.args(["-shared", "-fPIC", "-Wl,-soname,libown.so.7", "own.c", "-o", "libown.so.7"]);
    assert!(gcc.status().unwrap().success());
    let source = "#include <stdio.h>\n#include <stdlib.h>\nint own(void);\n
        int main(void) { const char *more = getenv(\"MORE\"); printf(\"%d %s\\n\", own(), more ? more : \"unset\"); }";
    compile(&dir, source, &["libown.so.7"]);
    let profile = |arguments: &[&str]| {
        let mut command = tipsim();
        command.current_dir(&dir).env("MORE", "it's on");
        command.args(["profile", "--out", "a b"]).args(arguments);
        command.arg("./program");
        command
    };
    let refused = profile(&[]).output().unwrap();
    assert_error(
        &refused,
        2,
        &["program: it needs libown.so.7", "--package", "-static", "--env LD_LIBRARY_PATH=."],
    );
    assert!(!dir.join("a b").exists());
    let own = ["--file", "libown.so.7", "--env", "LD_LIBRARY_PATH=."];
    let text = succeed(&mut profile(&own));
    assert!(text.contains("again: tipsim run 'a b/profile.toml'"), "{text}");
    let printed = || std::fs::read_to_string(dir.join("a b/console.log")).unwrap();
    assert!(printed().contains("42 unset"), "{}", printed());
    succeed(&mut profile(&[&own[..], &["--env", "MORE"]].concat()));
    assert!(printed().contains("42 it's on"), "{}", printed());
    let run = json(&dir.join("a b/run.json"));
    assert_eq!(run["spec"]["run"]["env"]["MORE"], "it's on");
    let refused = profile(&[&own[..], &["--env", "A B=c"]].concat()).output().unwrap();
    assert_error(&refused, 2, &["--env A B=c", "the name of a variable"]);
}

#[test]
fn a_program_may_have_spaces_in_its_name() {
    let dir = scratch("profile-spaces");
    let inner = dir.join("my dir");
    std::fs::create_dir(&inner).unwrap();
    compile(&inner, "int main(void) { return 3; }", &["-static"]);
    std::fs::rename(inner.join("program"), inner.join("my prog")).unwrap();
    let mut command = tipsim();
    command.current_dir(&dir).args(["profile", "./my dir/my prog"]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", stdout(&output));
    // What failed is said first, in each form of the answer.
    let failed = "the guest's command ended with 3";
    let text = stdout(&output);
    assert!(text.starts_with(&format!("FAILED: {failed}")), "{text}");
    let out = dir.join("out/profile-myprog");
    let report = std::fs::read_to_string(out.join("report.txt")).unwrap();
    assert!(report.starts_with(&format!("FAILED: {failed}")), "{report}");
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("role=\"alert\">FAILED: the guest"));
    assert_eq!(json(&out.join("run.json"))["failure"], failed);
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
    let refused = |arguments: &[&str], words: &[&str]| {
        let mut command = tipsim();
        command.current_dir(&dir).arg("profile").args(arguments);
        assert_error(&command.output().unwrap(), 2, words);
        assert!(!dir.join("out").exists());
    };
    refused(&["./nosuch"], &["./nosuch: no such file here"]);
    refused(&["--file", ".", "other/nosuch", "x"], &["other/nosuch: no such file"]);
    refused(&["/usr/bin/nosuch"], &["/usr/bin/nosuch", "--package"]);
    refused(&["nosuch", "1"], &["nosuch: the guest has no such command", "--package"]);
    refused(&["--core", "boom4w", "true"], &["--core boom4w", "did you mean `boom-4w`?"]);
    refused(&["--memory", "64", "true"], &["--memory: ", "64 bytes", "did you mean 64M?"]);
    refused(
        &["--set", "core.preset=\"x\"", "true"],
        &["--set core.preset=\"x\"", "neither a preset"],
    );
    refused(
        &["--set", "rob.entries=128", "true"],
        &["--set rob.entries=128", "`core.rob.entries`"],
    );
    let script = dir.join("script");
    std::fs::write(&script, "#!/usr/bin/nosuch -x\n").unwrap();
    refused(&["./script"], &["script: expected a file that may be executed", "chmod +x"]);
    std::fs::write(dir.join("two.py"), "print(1)\n").unwrap();
    refused(&["./two.py"], &["two.py", "--file FILE python3 FILE"]);
    refused(&["--core", "/dev/zero", "true"], &["/dev/zero", "at most 16777216 bytes"]);
    refused(&["--file", "/dev/null", "true"], &["/dev/null: expected a file or a folder"]);
    refused(&[" "], &["expected a command, found an empty word"]);
    refused(&["./folder"], &["./folder: no such file here"]);
    std::fs::create_dir(dir.join("folder")).unwrap();
    refused(&["./folder"], &["./folder: expected a program, found a folder"]);
    refused(
        &["--hart", "2", "true"],
        &["--hart: no option of tipsim profile; did you mean --harts?"],
    );
    refused(&["--zzz=2", "true"], &["--zzz: no option of tipsim profile (tipsim profile --help"]);
    std::fs::set_permissions(&script, Permissions::from_mode(0o755)).unwrap();
    refused(&["./script"], &["script: it is started by /usr/bin/nosuch", "--package"]);
    let mut command = tipsim();
    command.current_dir(&dir).args(["profile", "--memory", "8M", "true"]);
    assert_error(&command.output().unwrap(), 2, &["not in memory", "to load these files takes"]);
}
