//! `tipsim trace` on a trace that needs no guest.

use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::OnceLock;

use crate::common::{assert_error, scratch, stderr, stdout, tipsim};
use commit_trace::synthetic::{SyntheticCore, batches_of, staged};
use commit_trace::{
    Class, Commit, CommitSink, CycleClass, HartId, InstId, Redirect, StaticInfo, TeaEvents,
    TraceReader, TraceWriter, recording,
};

const METADATA: &str = r#"{"name": "synthetic", "clock_hz": 1000000000, "stages": true,
    "core": {"name": "small", "rob": {"entries": 64}, "decode": {"width": 4}},
    "samplers": [{"name": "tip", "profiler": "tip", "schedule": {"period": 199, "offset": 0, "random": null}}]}"#;

/// Several chunks.
fn trace() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        let path = scratch("trace").join("run.tip");
        // The words leave out those that mean sleep or the end of a batch.
        let words: Vec<u32> = (0..700_000u32).map(|n| n.wrapping_mul(2_654_435_761) >> 3).collect();
        let mut writer = TraceWriter::create(&path, METADATA).unwrap();
        for batch in batches_of(SyntheticCore::by_rows(4), &words) {
            writer.batch(&staged(batch)).unwrap();
        }
        writer.finish().unwrap();
        path
    })
}

fn run(verb: &str, trace: &Path, args: &[&str]) -> Output {
    tipsim().args(["trace", verb]).arg(trace).args(args).output().unwrap()
}

#[track_caller]
fn text(verb: &str, args: &[&str]) -> String {
    let output = run(verb, trace(), args);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stderr(&output), "");
    stdout(&output)
}

/// The commit column of a dump's records.
fn commits(dump: &str) -> Vec<u64> {
    let records = dump.lines().filter(|line| line.contains("0x"));
    records.map(|line| line.split_whitespace().nth(3).unwrap().parse().unwrap()).collect()
}

#[test]
fn dump_finds_records_cycles_and_guest_time() {
    let dump = text("dump", &["--from", "500000", "--count", "30"]);
    let found = commits(&dump);
    assert_eq!(found.len(), 30);
    let middle = found[20];
    let by_cycle = commits(&text("dump", &["--from", &format!("{middle}c"), "--count", "10"]));
    assert_eq!(by_cycle[0], middle);
    // At 1 GHz a cycle is a nanosecond.
    let end = by_cycle[9];
    let (first, last) = (format!("{middle}ns"), format!("{end}ns"));
    let by_time = commits(&text("dump", &["--from", &first, "--to", &last]));
    let expected = by_cycle.iter().filter(|cycle| **cycle < end);
    assert!(by_time.iter().eq(expected), "{by_time:?}");
    assert!(commits(&text("dump", &["--count", "0"])).is_empty());
}

#[test]
fn expand_writes_every_format() {
    let part = |format| {
        let args = ["--format", format, "--from", "400000", "--to", "400100"];
        text("expand", &args)
    };
    let csv = part("csv");
    assert_eq!(csv.lines().count(), 101);
    assert!(csv.starts_with("record,fetch,decode,dispatch,issue,complete,commit,"));
    let konata = part("konata");
    assert!(konata.starts_with("Kanata\t0004\nC=\t"));
    assert_eq!(konata.lines().filter(|l| l.starts_with("R\t")).count(), 100);
    let view = part("o3pipeview");
    assert_eq!(view.lines().count(), 700);

    let out = scratch("trace-tokens").join("tokens.bin");
    let found = commits(&text("dump", &["--from", "400000", "--to", "400101"]));
    let args = ["--format", "token512", "--from", "400000", "--to", "400100", "-o"];
    let output = run("expand", trace(), &[&args[..], &[out.to_str().unwrap()]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let tokens = std::fs::read(out).unwrap();
    assert_eq!(tokens.len() as u64, 64 * (found[100] - found[0]));
    assert_eq!(tokens[..8], found[0].to_le_bytes());
}

/// A pipeline view's arrows are from the instruction that wrote a register last to the one that reads it.
#[test]
fn konata_has_the_dependences_of_registers() {
    let code: [(u32, Class); 6] = [
        (0x0010_0793, Class::Int),   // li a5,1
        (0x0007_a703, Class::Load),  // lw a4,0(a5)
        (0x00e7_87b3, Class::Int),   // add a5,a5,a4
        (0x00f7_3023, Class::Store), // sd a5,0(a4)
        (0x86be, Class::Int),        // mv a3,a5, compressed
        (0x02f7_77d3, Class::Int), // fadd.d fa5,fa4,fa5: other registers, though of the same numbers
    ];
    let (mut recorder, stream) = recording(HartId(0), 0, 4);
    for (id, (raw, class)) in (0..).zip(code) {
        recorder.define(&StaticInfo {
            id: InstId(id),
            space: 2,
            pc: 0x1_0000 + 4 * u64::from(id),
            raw,
            len: if raw & 3 == 3 { 4 } else { 2 },
            privilege: 0,
            class,
            target: None,
        });
    }
    for at in 0..code.len() as u64 {
        recorder.commit(&Commit {
            inst: InstId(at as u32),
            decode: at,
            dispatch: at + 2,
            commit: at + 9,
            redirect: Redirect::None,
            first_of_row: true,
            class: CycleClass::Alu,
            tea: TeaEvents::default(),
        });
    }
    recorder.finish().unwrap();
    let path = scratch("trace-dependences").join("run.tip");
    let mut writer = TraceWriter::create(&path, METADATA).unwrap();
    for batch in stream {
        writer.batch(&batch).unwrap();
    }
    writer.finish().unwrap();
    let output = run("expand", &path, &["--format", "konata"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let log = stdout(&output);
    let found = log.lines().filter_map(|line| line.strip_prefix("W\t"));
    let expected = ["1\t0\t0", "2\t0\t0", "2\t1\t0", "3\t1\t0", "3\t2\t0", "4\t2\t0"];
    assert!(found.eq(expected), "{log}");
}

#[test]
fn a_part_may_begin_at_an_address() {
    let dump = text("dump", &["--from", "400000", "--count", "50"]);
    let records: Vec<&str> = dump.lines().filter(|line| line.contains("0x")).collect();
    let column = |line: &str, n: usize| line.split_whitespace().nth(n).unwrap().to_owned();
    // An address that is executed here for the first time since then.
    let at = records.iter().position(|line| column(line, 4) != column(records[0], 4)).unwrap();
    let pc = column(records[at], 4);
    let first = records.iter().position(|line| column(line, 4) == pc).unwrap();
    let found = text("dump", &["--from", "400000", "--pc", &pc, "--count", "3"]);
    let lines: Vec<&str> = found.lines().filter(|line| line.contains("0x")).collect();
    assert_eq!(lines, records[first..first + 3]);
    let konata = text("expand", &["--format", "konata", "--from", "400000", "--pc", &pc]);
    assert_eq!(konata.lines().filter(|line| line.starts_with("R\t")).count(), 1000);
    let nowhere = run("dump", trace(), &["--pc", "0x3"]);
    assert_error(&nowhere, 2, &["--pc 0x3", "no instruction"]);
    let no_report = run("dump", trace(), &["--function", "main"]);
    assert_error(&no_report, 2, &["--function", "report.json", "--pc"]);
    let bad = run("dump", trace(), &["--pc", "main"]);
    assert!(stderr(&bad).contains("an address in hexadecimal"), "{}", stderr(&bad));
}

#[test]
fn expand_writes_tables() {
    let dir = scratch("trace-tables");
    let write = |format: &str, table: &str| {
        let out = dir.join(table).with_extension(format);
        let args = ["--format", format, "--table", table, "-o"];
        let args = [&args[..], &[out.to_str().unwrap()]].concat();
        let output = run("expand", trace(), &args);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        std::fs::read(out).unwrap()
    };
    for table in ["records", "spans", "static_instructions"] {
        let parquet = write("parquet", table);
        assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
        // An end of stream after as many rows.
        let arrow = write("arrow", table);
        assert!(
            arrow.starts_with(&[0xff; 4]) && arrow.ends_with(&[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0])
        );
    }
    let part = ["--format", "parquet", "--from", "5", "--table", "spans"];
    let refused = run("expand", trace(), &part);
    assert_error(&refused, 2, &["run.tip", "expected cycles or times"]);
    let refused = run("expand", trace(), &["--format", "csv", "--table", "spans"]);
    assert_error(&refused, 2, &["--table", "parquet"]);
}

#[test]
fn other_samplers_are_evaluated_on_the_same_trace() {
    let spec = scratch("trace-samplers").join("spec.toml");
    let samplers = "[[sampler]]\nprofiler = [\"tip\", \"nci\"]\nfrequency = \"1MHz\"\nmode = [\"periodic\", \"random\"]\n\
        [[sampler]]\nprofiler = \"tip\"\nperiod = 199\nprivilege = [\"user\", \"machine\"]\n";
    std::fs::write(&spec, samplers).unwrap();
    let spec = spec.to_str().unwrap();
    let found = text("evaluate", &["--samplers", spec]);
    let names = ["tip ", "nci ", "tip@1000r", "nci@1000r", "tip@199:user", "tip@199:machine"];
    for name in names {
        assert!(found.lines().any(|l| l.starts_with(name)), "{name}: {found}");
    }
    // The synthetic core runs in machine mode alone.
    let own = text("evaluate", &["--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&own).unwrap();
    let others = text("evaluate", &["--samplers", spec, "--format", "json"]);
    let others: serde_json::Value = serde_json::from_str(&others).unwrap();
    let print = |json: &serde_json::Value, name: &str| json["fingerprint"][name].clone();
    assert_eq!(print(&json, "tip"), print(&others, "tip@199:machine"));
    assert_eq!(print(&json, "oracle"), print(&others, "oracle"));
    assert_ne!(print(&json, "tip"), print(&others, "tip"));

    std::fs::write(spec, "[[sampler]]\nprofiler = \"tip\"\nperiod = 0\n").unwrap();
    let output = run("evaluate", trace(), &["--samplers", spec]);
    assert_error(&output, 2, &["spec.toml", "sampler[0].period", "found 0"]);
}

#[test]
fn bad_arguments_name_what_is_expected() {
    let same = run("expand", trace(), &["--format", "csv", "-o", trace().to_str().unwrap()]);
    assert_error(&same, 2, &["run.tip", "the trace itself"]);
    assert!(TraceReader::open(trace()).is_ok());
    let beyond = run("dump", trace(), &["--from", "99s"]);
    assert_error(&beyond, 2, &["run.tip", "no cycle 99000000000"]);
    let hart = run("dump", trace(), &["--hart", "3", "--from", "5"]);
    assert_error(&hart, 2, &["--hart", "the only hart, found 3"]);
    for (from, to) in [("10", "5"), ("100c", "10c"), ("2us", "1us")] {
        let backwards = run("dump", trace(), &["--from", from, "--to", to]);
        assert_error(&backwards, 2, &["--to: expected a place that is not before --from"]);
    }
    let bad = run("dump", trace(), &["--from", "5 parsecs"]);
    assert_eq!(bad.status.code(), Some(2));
    assert!(stderr(&bad).contains("a time (1.5ms)"), "{}", stderr(&bad));
}

#[test]
fn cut_damaged_and_newer_traces_are_read_as_far_as_they_go() {
    let dir = scratch("trace-broken");
    let whole = std::fs::read(trace()).unwrap();
    let second = TraceReader::open(trace()).unwrap().chunks()[1];
    let write = |name: &str, bytes: &[u8]| {
        let path = dir.join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let at = second.offset as usize + 3000;
    let cut = write("cut.tip", &whole[..at]);
    let mut bytes = whole.clone();
    bytes[at] ^= 1;
    let damaged = write("damaged.tip", &bytes);
    let offset = format!("at offset {}", second.offset);

    for (trace, status) in [(&cut, 1), (&damaged, 2)] {
        let csv = run("expand", trace, &["--format", "csv"]);
        assert_error(&csv, status, &[&offset]);
        assert_eq!(stdout(&csv).lines().count() as u64, second.first_seq.0 + 1);
        let table = dir.join("records.parquet");
        let args = ["--format", "parquet", "-o", table.to_str().unwrap()];
        assert_error(&run("expand", trace, &args), status, &[&offset]);
        assert!(std::fs::read(&table).unwrap().ends_with(b"PAR1"));
        std::fs::remove_file(&table).unwrap();
        let evaluated = run("evaluate", trace, &[]);
        assert_error(&evaluated, status, &[&offset]);
        assert!(stdout(&evaluated).contains("tip"), "{}", stdout(&evaluated));
        let verified = run("verify", trace, &[]);
        assert_error(&verified, 2, &[&offset]);
        assert!(stdout(&verified).starts_with("not whole; up to there: "));
    }

    let beyond = run("dump", &cut, &["--from", "690000"]);
    assert_error(&beyond, 2, &["no record 690000", &offset]);

    let mut bytes = whole;
    bytes[8] = 99;
    let newer = write("newer.tip", &bytes);
    let words = ["newer.tip", "version 99 at offset 8"];
    assert_error(&run("verify", &newer, &[]), 2, &words);
    assert_error(&run("dump", &newer, &[]), 2, &words);
    assert_error(&run("dump", &newer, &["--from", "5"]), 2, &words);
}
