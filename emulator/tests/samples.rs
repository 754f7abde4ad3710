//! `tipsim samples` on files that need no guest.

use std::path::{Path, PathBuf};
use std::process::Output;

use crate::common::{assert_error, scratch, stderr, stdout, tipsim};
use guest_samples::synthetic::{SyntheticFile, SyntheticSample};
use serde_json::{Value, json};

fn file(name: &str) -> PathBuf {
    let mut file = SyntheticFile::new(&[("cycles", 1000, 0), ("pdis/load=1,ldlat=3/upp", 100, 2)]);
    file.command(42, "work");
    file.mapping(42, 0x10000, 0x2000, 0x1000, "/bin/work");
    file.sample(&SyntheticSample::hitm());
    file.sample(&SyntheticSample {
        time: 7,
        pid: 42,
        ip: 0xffff_ffff_8000_0000,
        misc: 1,
        period: 1000,
        ..SyntheticSample::default()
    });
    let path = scratch(name).join("perf.data");
    std::fs::write(&path, file.bytes()).unwrap();
    path
}

fn run(file: &Path, args: &[&str]) -> Output {
    tipsim().arg("samples").arg(file).args(args).output().unwrap()
}

#[test]
fn one_line_a_sample() {
    let output = run(&file("samples-csv"), &[]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let expected = "\
time,comm,pid,tid,cpu,event,period,ip,exact,symbol,addr,phys_addr,op,level,snoop,tlb,lock,weight,ins_lat,retire_lat
5.000000123,work,42,42,1,\"pdis/load=1,ldlat=3/upp\",100,0x10010,1,work+0x1010,0x7fff0008,0x80000008,load,L3 hit,HITM,hit L1,locked,66,70,3
0.000000007,work,42,42,0,cycles,1000,0xffffffff80000000,0,[kernel]+0xffffffff80000000,0x0,0x0,,,,,,0,0,0
";
    assert_eq!(stdout(&output), expected);
}

#[test]
fn names_are_neither_obeyed_nor_computed() {
    let evil = "=A1+\u{1b}[31m\u{9b}2J";
    let mut file = SyntheticFile::new(&[("cycles", 1000, 0)]);
    file.command(42, evil);
    file.sample(&SyntheticSample { pid: 42, ..SyntheticSample::default() });
    let path = scratch("samples-names").join("perf.data");
    std::fs::write(&path, file.bytes()).unwrap();
    let csv = stdout(&run(&path, &[]));
    assert!(csv.contains(",'=A1+?[31m?2J,42,"), "{csv}");
    let json = stdout(&run(&path, &["--format", "json"]));
    assert!(!json.contains(|c: char| c.is_control() && c != '\n'), "{json}");
    let rows: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(rows[0]["comm"], json!(evil), "JSON is exact");
}

#[test]
fn the_same_as_json() {
    let out = scratch("samples-json-out").join("samples.json");
    let output = run(&file("samples-json"), &["--format", "json", "-o", out.to_str().unwrap()]);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), ""));
    let samples: Value = serde_json::from_str(&std::fs::read_to_string(out).unwrap()).unwrap();
    let first = &samples[0];
    assert_eq!(samples.as_array().map(Vec::len), Some(2));
    assert_eq!((&first["ip"], &first["exact"]), (&json!("0x10010"), &json!(true)));
    assert_eq!((&first["level"], &first["weight"]), (&json!("L3 hit"), &json!(66)));
    assert_eq!(samples[1].get("level"), None, "not known");
}

#[test]
fn the_same_as_tables() {
    let out = scratch("samples-tables-out").join("samples");
    for (format, (begin, end)) in [
        ("parquet", (&b"PAR1"[..], &b"PAR1"[..])),
        ("arrow", (&[0xff; 4][..], &[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0][..])),
    ] {
        let args = ["--format", format, "-o", out.to_str().unwrap()];
        let output = run(&file("samples-tables"), &args);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let bytes = std::fs::read(&out).unwrap();
        assert!(bytes.starts_with(begin) && bytes.ends_with(end), "{format}");
    }
}

#[test]
fn bad_files_are_named() {
    let folder = scratch("samples-bad");
    let path = folder.join("perf.data");
    assert_error(&run(&path, &[]), 2, &["perf.data", "No such file"]);
    std::fs::write(&path, "text").unwrap();
    assert_error(
        &run(&path, &[]),
        2,
        &["not a perf.data file (expected it to begin with PERFILE2)"],
    );
    let good = file("samples-good");
    assert_error(&run(&good, &["--kernel", "/nowhere"]), 2, &["--kernel"]);
    assert_error(&run(&good, &["--debug-dir", "/nowhere"]), 2, &["--debug-dir: expected a folder"]);
}
