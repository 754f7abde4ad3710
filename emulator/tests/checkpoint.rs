//! A machine that goes on from a checkpoint is the machine that never stopped.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::{assert_error, guest, json, scratch, stderr, stdout, tipsim};

/// `tipsim boot` up to an instruction; saved then.
fn boot(from: Option<&Path>, more: &[&str], until: u64, save: &Path) -> Output {
    let mut command = tipsim();
    command.arg("boot").arg("--guest-dir").arg(guest()).args(more);
    if let Some(from) = from {
        command.arg("--restore").arg(from);
    }
    command.args(["--max-insts", &until.to_string(), "--save"]);
    let output = command.arg(save).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    output
}

/// Two ways to the same instruction, one over a checkpoint: same console, and same state to the last bit.
#[track_caller]
fn same(name: &str, from: Option<&Path>, more: &[&str], middle: u64, end: u64) -> PathBuf {
    let dir = scratch(&format!("checkpoint-{name}"));
    let [half, resumed, whole] = ["half", "resumed", "whole"].map(|f| dir.join(f));
    let first = boot(from, more, middle, &half);
    let mode: Vec<&str> = more.windows(2).filter(|w| w[0] == "--mode").flatten().copied().collect();
    let second = boot(Some(&half), &mode, end, &resumed);
    let unbroken = boot(from, more, end, &whole);
    assert_eq!(stdout(&first) + &stdout(&second), stdout(&unbroken));
    // Instructions and cycles; the speed is another.
    let counts = |output: &Output| stderr(output).split(" cycles").next().map(str::to_owned);
    assert_eq!(counts(&second), counts(&unbroken));
    let [resumed, whole] = [resumed, whole].map(|f| std::fs::read(f).unwrap());
    assert!(resumed == whole, "{name}: the states differ");
    half
}

#[test]
fn functional() {
    same("functional", None, &[], 20_000_000, 40_000_000);
}

#[test]
fn functional_on_several_harts() {
    same("harts", None, &["--harts", "3"], 20_000_000, 40_000_000);
}

#[test]
fn under_the_timing_core() {
    same("timing", None, &["--mode", "timing"], 3_000_000, 6_000_000);
}

#[test]
fn under_the_timing_cores_of_several_harts() {
    // Long enough for decoded code, which is not saved, to matter if it decided where turns end.
    let three = ["--mode", "timing", "--harts", "3"];
    same("timing-harts", None, &three, 45_000_000, 50_000_000);
}

/// The unit's timer, its FIFO and what committed last are part of it: perf's samples are the same.
#[test]
fn while_perf_samples() {
    let dir = scratch("checkpoint-perf");
    let script = "perf record -q -e tip -c 2003 -o perf.data -- seq 1 500 > /dev/null; \
        perf script -i perf.data -F period,ip | md5sum";
    let command = format!("quiet tipsim.command={}", base64(script));
    let booted = dir.join("booted");
    boot(None, &["--append", &command], 70_000_000, &booted);
    let timing = ["--mode", "timing"];
    let half = same("sampling", Some(&booted), &timing, 100_000_000, 104_000_000);
    let ends = [&half, &booted].map(|from| {
        let mut command = tipsim();
        command.args(["boot", "--restore"]).arg(from).args(timing);
        stdout(&command.output().unwrap())
    });
    let sum = |text: &str| text.lines().find(|line| line.ends_with("  -")).map(str::to_owned);
    assert_eq!(sum(&ends[0]), sum(&ends[1]));
    let empty = "d41d8cd98f00b204e9800998ecf8427e  -";
    assert!(sum(&ends[0]).is_some_and(|sum| sum != empty), "{}", ends[0]);
}

fn base64(text: &str) -> String {
    let mut child = Command::new("base64")
        .args(["-w", "0"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), text.as_bytes()).unwrap();
    stdout(&child.wait_with_output().unwrap())
}

/// `tipsim run` with a cache of its own.
fn run(dir: &Path, out: &str, set: &[&str]) -> PathBuf {
    let out = dir.join(out);
    let mut command = tipsim();
    command.arg("run").arg(dir.join("spec.toml"));
    command.arg("--guest-dir").arg(guest()).arg("--out").arg(&out);
    set.iter().for_each(|set| {
        command.args(["--set", set]);
    });
    let output = command.env("TIPSIM_CACHE", dir).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    out
}

#[test]
fn runs_boot_once() {
    let dir = scratch("checkpoint-run");
    let spec = "[run]\nboot = \"functional\"\nregion = \"command\"\ncommand = \"uname -a; date\"\n";
    std::fs::write(dir.join("spec.toml"), spec).unwrap();
    let count = || std::fs::read_dir(dir.join("checkpoints")).map_or(0, Iterator::count);
    let bare = run(&dir, "bare", &["run.checkpoint=false"]);
    assert_eq!(count(), 0);
    let [first, second] = ["first", "second"].map(|out| run(&dir, out, &[]));
    assert_eq!(count(), 1);
    for (a, b, files) in [
        (&first, &second, &["console.log", "trace.tip", "errors.json"][..]),
        // A trace names the spec that it is of.
        (&first, &bare, &["console.log", "errors.json"]),
    ] {
        for file in files {
            let [a, b] = [a, b].map(|out| std::fs::read(out.join(file)).unwrap());
            assert!(a == b, "{file} differs");
        }
    }
    let [a, b, c] = [&first, &second, &bare].map(|out| json(&out.join("run.json")));
    for key in ["cycles", "instructions", "stats"] {
        assert!(a[key] == b[key] && a[key] == c[key], "{key} differs");
    }
    let restored = |run: &serde_json::Value| run["functional"]["restored_instructions"].as_u64();
    assert_eq!((restored(&a), restored(&c)), (Some(0), Some(0)));
    assert!(restored(&b) > Some(10_000_000));
    assert_eq!(a["functional"]["instructions"], b["functional"]["instructions"]);

    // A damaged one is as none, but for a warning, and is replaced. The machine is loaded in part before the damage is seen.
    let saved = dir.join("checkpoints").read_dir().unwrap().next().unwrap();
    let saved = saved.unwrap().path();
    let whole = std::fs::read(&saved).unwrap();
    let without = |why: &str| {
        let mut run = tipsim();
        run.arg("run").arg(dir.join("spec.toml"));
        run.arg("--guest-dir").arg(guest());
        let out = dir.join("damaged");
        let output = run.arg("--out").arg(&out).env("TIPSIM_CACHE", &dir);
        let output = output.output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        for expected in ["WARN", why, "boots anew"] {
            assert!(stderr(&output).contains(expected), "{}", stderr(&output));
        }
        for file in ["console.log", "trace.tip", "errors.json"] {
            let [a, b] = [&first, &out].map(|out| std::fs::read(out.join(file)).unwrap());
            assert!(a == b, "{file} differs");
        }
        assert_eq!(restored(&json(&out.join("run.json"))), Some(0));
    };
    std::fs::write(&saved, &whole[..whole.len() - 100]).unwrap();
    without("damaged or cut short");
    assert!(std::fs::read(&saved).unwrap() == whole, "it is there again");
    assert_eq!(count(), 1);
    // A pipe in the checkpoint's place is neither read, which would wait for a writer, nor replaced.
    std::fs::remove_file(&saved).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &saved,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    without("expected a file");
    std::fs::remove_file(&saved).unwrap();
    std::fs::write(&saved, whole).unwrap();

    // Another command goes on from the same boot, another machine boots by itself.
    let other = run(&dir, "other", &["run.command='echo other'"]);
    assert!(restored(&json(&other.join("run.json"))) > Some(10_000_000));
    assert_eq!(count(), 1);
    run(&dir, "larger", &["guest.memory=600M"]);
    assert_eq!(count(), 2);
}

#[test]
fn bad_checkpoints_are_refused() {
    let dir = scratch("checkpoint-bad");
    let good = dir.join("good");
    boot(None, &["--mode", "timing"], 1_000_000, &good);
    let bytes = std::fs::read(&good).unwrap();
    let restored = |bytes: &[u8], more: &[&str]| {
        let path = dir.join("bad");
        std::fs::write(&path, bytes).unwrap();
        let mut command = tipsim();
        command.args(["boot", "--max-insts", "1", "--restore"]).arg(&path).args(more);
        command.output().unwrap()
    };
    for cut in [0, 5, 11, 12, 40, 5000, bytes.len() / 2, bytes.len() - 1] {
        assert_error(&restored(&bytes[..cut], &[]), 2, &["bad", "damaged or cut short"]);
    }
    for at in [0, 9, 20, 1000, bytes.len() / 2, bytes.len() - 2] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        assert_error(&restored(&damaged, &[]), 2, &["bad: "]);
    }
    let mut newer = bytes.clone();
    newer[8] += 1;
    let versions = format!("expected a checkpoint of version {}, found {}", bytes[8], newer[8]);
    assert_error(&restored(&newer, &[]), 2, &[&versions]);
    let other_core = ["--mode", "timing", "--core", "rtl-large"];
    assert_error(&restored(&bytes, &other_core), 2, &["timing core is another one"]);
    let drive = dir.join("drive");
    std::fs::write(&drive, [0; 4096]).unwrap();
    let with_drive = ["--drive", drive.to_str().unwrap()];
    assert_error(&restored(&bytes, &with_drive), 2, &["virtio device type: expected \"2\", found"]);
    assert!(restored(&bytes, &["--mode", "timing"]).status.success());
    assert!(restored(&bytes, &["--mode", "functional"]).status.success());
}
