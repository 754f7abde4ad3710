//! Bad input gives one clear line, the right exit status, and loses nothing.

use crate::common::{assemble, assert_error, scratch, stderr, tipsim};

#[test]
fn missing_files_are_named() {
    let dir = scratch("bad-missing");
    let spec = dir.join("absent.toml");
    let out = tipsim().arg("run").arg(&spec).arg("--out").arg(&dir).output().unwrap();
    assert_error(&out, 2, &["absent.toml", "No such file"]);

    let out = tipsim().args(["exec", "absent.elf"]).output().unwrap();
    assert_error(&out, 2, &["absent.elf", "No such file"]);

    let out = tipsim().args(["trace", "info", "absent.tip"]).output().unwrap();
    assert_error(&out, 2, &["absent.tip", "No such file"]);

    let out = tipsim()
        .args(["boot", "--firmware", "absent-fw", "--kernel", "absent-kernel"])
        .output()
        .unwrap();
    assert_error(&out, 2, &["absent-", "No such file"]);
}

#[test]
fn missing_kernel_of_a_spec_is_named() {
    let dir = scratch("bad-kernel");
    let spec = dir.join("spec.toml");
    std::fs::write(&spec, "[guest]\nkernel = \"gone/Image\"\nfirmware = \"gone/fw\"\n").unwrap();
    let out = tipsim().arg("run").arg(&spec).arg("--out").arg(dir.join("out")).output().unwrap();
    assert_error(&out, 2, &["gone/", "No such file"]);
}

#[test]
fn bad_networks_are_refused() {
    let dir = scratch("bad-network");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let forward = format!("{port}:22");
    let cases: [(&str, &str, &[&str]); 4] = [
        ("none", "2222:22", &["guest.hostfwd", "guest.net"]),
        ("user", "2222", &["guest.hostfwd", "HOST:GUEST"]),
        ("user", "2222:0", &["guest.hostfwd", "HOST:GUEST"]),
        ("router", "", &["expected `none` or `user`"]),
    ];
    for (net, forward, words) in cases {
        let spec = dir.join("spec.toml");
        let text = format!("[guest]\nnet = \"{net}\"\nhostfwd = [\"{forward}\"]\n");
        std::fs::write(&spec, text).unwrap();
        let mut run = tipsim();
        run.arg("run").arg(&spec).arg("--out").arg(dir.join("out"));
        assert_error(&run.output().unwrap(), 2, words);
    }
    let mut boot = tipsim();
    boot.args(["boot", "--firmware", "fw", "--kernel", "k", "--net", "user"]);
    boot.args(["--hostfwd", &forward]);
    assert_error(&boot.output().unwrap(), 2, &[&port, "in use"]);
}

#[test]
fn hostile_elfs_are_refused() {
    let dir = scratch("bad-elf");
    let elf = crate::common::assemble(&dir, "good", ".globl _start\n_start: j _start\n");
    let whole = std::fs::read(elf).unwrap();
    for (name, bytes) in [
        ("empty", Vec::new()),
        ("text", b"#!/bin/sh\n".to_vec()),
        ("cut-header", whole[..40].to_vec()),
        ("cut-segment", whole[..0x1001.min(whole.len() / 2)].to_vec()),
    ] {
        let path = dir.join(name);
        std::fs::write(&path, bytes).unwrap();
        let out = tipsim().arg("exec").arg(&path).output().unwrap();
        assert_error(&out, 2, &[name]);
    }
}

#[test]
fn unknown_keys_name_the_nearest() {
    let dir = scratch("bad-keys");
    let spec = dir.join("spec.toml");
    for (text, words) in [
        ("[guest]\nmemroy = \"1G\"\n", ["memroy", "memory"]),
        ("[core.rob]\nentires = 64\n", ["entires", "entries"]),
        ("[core]\npreset = \"boom-5w\"\n", ["boom-5w", "boom-4w"]),
        ("[core.rob]\nentries = 63\n", ["rob.entries", "63"]),
        ("[[sampler]]\nprofiler = \"tipp\"\nperiod = 10\n", ["tipp", "tip"]),
        ("[[sampler]]\nprofiler = \"tip\"\n", ["sampler[0]", "period"]),
        ("[guest]\nmemory = \"lots\"\n", ["guest.memory", "lots"]),
        ("[guest]\nmemory = \"64\"\n", ["guest.memory", "64M"]),
        ("[run]\nboot = functional\n", ["line 2", "boot = \"functional\""]),
        ("[run]\nenv = { \"A B\" = \"1\" }\n", ["run.env", "\"A B\""]),
        ("[guest\n", ["spec.toml", "line 1"]),
        (" \n", ["spec.toml", "expected a run spec (TOML), found nothing"]),
        ("\u{7f}ELF", ["tipsim profile", "tipsim exec"]),
    ] {
        std::fs::write(&spec, text).unwrap();
        let out = tipsim().arg("run").arg(&spec).arg("--out").arg(dir.join("o")).output().unwrap();
        assert_error(&out, 2, &words);
        assert!(!dir.join("o/trace.tip").exists(), "nothing may be written for: {text}");
    }
}

#[test]
fn bad_presets_name_file_and_field() {
    let dir = scratch("bad-preset");
    let preset = dir.join("mine.toml");
    std::fs::write(&preset, "[rob]\nentires = 64\n").unwrap();
    let out = tipsim().args(["core", "show"]).arg(&preset).output().unwrap();
    assert_error(&out, 2, &["mine.toml", "entires"]);
    let out = tipsim().args(["core", "show", "boom-4w", "--set", "l1d.kib=63"]).output().unwrap();
    assert_error(&out, 2, &["--set l1d.kib=63", "l1d.kib"]);
    for command in [&["boot", "--core", "boom4w"][..], &["core", "show", "boom4w"]] {
        let out = tipsim().args(command).output().unwrap();
        assert_error(&out, 2, &["boom4w: neither a preset", "did you mean `boom-4w`?"]);
    }
}

#[test]
fn a_file_that_is_no_trace_is_refused() {
    let dir = scratch("bad-trace");
    let path = dir.join("noise.tip");
    std::fs::write(&path, vec![0x5a; 4096]).unwrap();
    for verb in ["info", "verify", "evaluate"] {
        let out = tipsim().args(["trace", verb]).arg(&path).output().unwrap();
        assert_error(&out, 2, &["noise.tip"]);
    }
}

/// Breaks a rule of virtio a thousand times, on its first device, and switches off.
const FLOOD: &str = "
    .globl _start
_start:
    li t0, 0x10001000
    li t1, 1000
1:  sw zero, 0x30(t0)
    li t2, 3
    sw t2, 0x38(t0)
    li t2, 1
    sw t2, 0x44(t0)
    addi t1, t1, -1
    bnez t1, 1b
    li t0, 0x100000
    li t1, 0x5555
    sw t1, 0(t0)
2:  j 2b
";

#[test]
fn a_guest_cannot_flood_the_terminal() {
    let dir = scratch("bad-flood");
    let elf = assemble(&dir, "flood", FLOOD);
    let spec = dir.join("spec.toml");
    let text = format!("[guest]\nfirmware = \"{}\"\n[run]\nmax_cycles = 20000000\n", elf.display());
    std::fs::write(&spec, text).unwrap();
    let out = tipsim().arg("run").arg(&spec).arg("--out").arg(dir.join("out")).output().unwrap();
    let said = stderr(&out);
    let lines: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("virtio device stops: queue size is not a power of two"))
        .collect();
    assert_eq!(lines.len(), 11, "{said}");
    assert!(lines[..10].iter().all(|line| line.starts_with(" WARN devices::")), "{said}");
    assert!(lines[10].starts_with(" WARN … and 990 more like devices::"), "{said}");
}
