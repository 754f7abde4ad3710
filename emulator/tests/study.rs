//! `scripts/study`: killed at any time, it goes on, and its result is the same.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::{guest, json, repo, scratch, stderr, succeed};
use serde_json::Value;

/// A small program of the study, by busybox.
fn spec(name: &str, command: &str) -> String {
    format!(
        "base = \"common.toml\"\nname = \"{name}\"\n\
         [about]\nstands_for = \"{name}\"\ngroup = \"integer\"\nfit = \"none\"\n\
         [guest]\npackages = [\"mawk\"]\n\
         [run]\ncommand = '''\n{command}\nsha256sum data > result.txt\n'''\n"
    )
}

fn specs(folder: &Path) {
    std::fs::create_dir_all(folder).unwrap();
    let common = repo().join("workloads/study/common.toml");
    std::fs::copy(common, folder.join("common.toml")).unwrap();
    for (name, step) in [("one", 7), ("two", 11), ("three", 13)] {
        let loops = format!("for (i = 0; i < 9000; i++) print i * {step} % 977");
        let text = spec(name, &format!("tipsim-run mawk 'BEGIN {{ {loops} }}' > data"));
        std::fs::write(folder.join(format!("{name}.toml")), text).unwrap();
    }
}

fn study(specs: &Path, out: &Path) -> Command {
    let mut command = Command::new(repo().join("scripts/study"));
    command.arg("--specs").arg(specs).arg("--out").arg(out);
    command.args(["--tipsim", env!("CARGO_BIN_EXE_tipsim")]);
    command.arg("--guest-dir").arg(guest());
    command
}

/// Returns what does not depend on the host.
fn result(out: &Path) -> Value {
    let mut study = json(&out.join("study.json"));
    for program in study["programs"].as_array_mut().unwrap() {
        let program = program.as_object_mut().unwrap();
        for key in ["mips", "host_seconds", "peak_memory_mb"] {
            program.remove(key).unwrap();
        }
    }
    study
}

#[test]
#[ignore = "scripts/test --long"]
fn a_study_that_is_killed_goes_on() {
    let dir = scratch("study");
    let of = dir.join("specs");
    specs(&of);
    let (whole, pieces) = (dir.join("whole"), dir.join("pieces"));
    succeed(&mut study(&of, &whole));
    for milliseconds in [1500, 4000, 2500] {
        let mut command = study(&of, &pieces);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut running = command.spawn().unwrap();
        std::thread::sleep(Duration::from_millis(milliseconds));
        // The study may have ended already.
        let _ = running.kill();
        running.wait().unwrap();
    }
    succeed(&mut study(&of, &pieces));
    assert_eq!(result(&whole), result(&pieces));

    let found = result(&whole);
    let programs = found["programs"].as_array().unwrap();
    assert_eq!(programs.len(), 3);
    for program in programs {
        let of = |who: &str| &program["errors"][who]["instruction"]["periodic"];
        let error = |who: &str| of(who)["error"].as_f64().unwrap();
        let chance = of("tip")["noise"].as_f64().unwrap();
        assert!(error("tip") < chance, "TIP has no bias: {}", of("tip"));
        assert!(error("tip") < error("nci") && error("nci") < error("lci"), "{program}");
        // The error is smaller with more samples.
        let at = |rate: &str| of("tip")["rates"][rate]["error"].as_f64().unwrap();
        assert!(at("20kHz") < at("1kHz"), "{}", of("tip"));
    }
    for file in ["study.txt", "study.html"] {
        assert!(whole.join(file).metadata().unwrap().len() > 1000, "{file}");
    }
    // With --report nothing is run, and the report is the same; a name that is no program is told.
    succeed(study(&of, &whole).arg("--report"));
    assert_eq!(result(&whole), found);
    let output = study(&of, &whole).arg("nothing").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("nothing: no such program; expected one of one, three, two"));
}
