//! Properties of runs: equal inputs give equal results, recording is invisible, nothing is lost.

mod exports;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::common::{assert_error, guest, json, scratch, stderr, stdout, succeed, tipsim};
use serde_json::Value;

/// A spec that boots and runs a short command.
fn spec(dir: &Path, extra: &str) -> PathBuf {
    let path = dir.join("spec.toml");
    let text = format!("[run]\ncommand = \"echo hello; uname -r\"\n{extra}");
    std::fs::write(&path, text).unwrap();
    path
}

fn run(spec: &Path, out: &Path) -> Command {
    let mut command = tipsim();
    command.arg("run").arg(spec).arg("--guest-dir").arg(guest()).arg("--out").arg(out);
    command
}

fn finished(mut command: Command) -> Output {
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    output
}

#[test]
fn equal_runs_are_equal_and_recording_is_invisible() {
    let dir = scratch("runs-equal");
    let spec = spec(&dir, "");
    let (a, b, bare) = (dir.join("a"), dir.join("b"), dir.join("bare"));
    for (out, threads) in [(&a, "one"), (&b, "two")] {
        let mut command = run(&spec, out);
        command.args(["--set", &format!("run.threads={threads}")]);
        finished(command);
    }
    let mut unrecorded = run(&spec, &bare);
    unrecorded.args(["--set", "record.trace=false", "--set", "record.profilers=false"]);
    finished(unrecorded);

    let [run_a, run_b, run_bare] = [&a, &b, &bare].map(|out| json(&out.join("run.json")));
    for key in ["cycles", "instructions", "stats"] {
        assert_eq!(run_a[key], run_b[key], "two equal runs differ in {key}");
        assert_eq!(run_a[key], run_bare[key], "recording changed {key}");
    }
    let trace = |out: &Path| std::fs::read(out.join("trace.tip")).unwrap();
    assert!(trace(&a) == trace(&b), "two equal runs left different traces");
    let excerpts = |out: &Path| std::fs::read(out.join("excerpts.zst")).unwrap();
    assert!(excerpts(&a) == excerpts(&b), "two equal runs left different excerpts");
    assert!(!bare.join("trace.tip").exists());
    let console = |out: &Path| std::fs::read_to_string(out.join("console.log")).unwrap();
    assert_eq!(console(&a), console(&bare), "recording changed what the guest printed");
    assert!(console(&a).contains("hello"));
}

#[test]
fn the_hosts_umask_is_not_the_guests_to_see() {
    let dir = scratch("runs-umask");
    let text = "[run]\nboot = \"functional\"\nregion = \"command\"\nfiles = [\"data\", \"tool\", \"folder\"]\n\
        command = \"ls -laR /out; umask; mkdir made; touch made/file; ls -ld made made/file\"\n";
    std::fs::write(dir.join("spec.toml"), text).unwrap();
    let mode = |name: &str, mode| {
        let path = dir.join(name);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    std::fs::create_dir_all(dir.join("folder")).unwrap();
    for name in ["data", "tool", "folder/in"] {
        std::fs::write(dir.join(name), name).unwrap();
    }
    // What others may do on the host is not the guest's either.
    let run_under = |mask: &str, data, tool, folder| {
        mode("data", data);
        mode("tool", tool);
        mode("folder", folder);
        let out = dir.join(mask);
        let script = format!("umask {mask}; exec \"$0\" \"$@\"");
        let whole = run(&dir.join("spec.toml"), &out);
        let mut under = Command::new("sh");
        under.args(["-c", &script]).arg(whole.get_program());
        under.args(whole.get_args());
        finished(under);
        let read = |name: &str| std::fs::read(out.join(name)).unwrap();
        let cycles = json(&out.join("run.json"))["cycles"].clone();
        (read("console.log"), read("trace.tip"), cycles)
    };
    let first = run_under("022", 0o644, 0o755, 0o755);
    assert!(run_under("077", 0o600, 0o700, 0o700) == first);
    assert!(run_under("000", 0o666, 0o4775, 0o777) == first);
    let console = String::from_utf8(first.0).unwrap();
    let shown = |mode: &str, name: &str| {
        let of_file = |line: &str| line.trim_end().ends_with(&format!(" {name}"));
        let line = console.lines().find(|line| of_file(line)).expect(name);
        assert!(line.starts_with(mode), "{line}");
    };
    shown("-rw-r--r--", "data");
    shown("-rwxr-xr-x", "tool");
    shown("drwxr-xr-x", "folder");
    shown("-rw-r--r--", "in");
    shown("-rw-r--r--", ".tipsim-command");
    shown("drwxr-xr-x", "made");
    shown("-rw-r--r--", "made/file");
}

#[test]
fn the_guests_status_is_the_runs() {
    let dir = scratch("runs-status");
    let spec = spec(&dir, "");
    let mut command = run(&spec, &dir.join("out"));
    command.args(["--set", "run.command=exit 42", "--set", "record.trace=false"]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(42), "{}", stderr(&output));
}

#[test]
fn functional_mode_runs_the_same_command() {
    let dir = scratch("runs-functional");
    let spec = spec(&dir, "boot = \"functional\"\n");
    let output = finished(run(&spec, &dir.join("out")));
    assert!(stdout(&output).contains("functional"));
    let console = std::fs::read_to_string(dir.join("out/console.log")).unwrap();
    assert!(console.contains("hello"), "{console}");
}

#[test]
fn linux_has_several_harts_and_each_run_is_the_same() {
    let dir = scratch("runs-harts");
    let path = dir.join("spec.toml");
    let text = "guest.harts = 4\n[run]\nboot = \"functional\"\ncommand = \"nproc; \
        for n in 1 2 3 4 5 6; do (seq 2000 | sort -n | md5sum) & done; wait\"\n";
    std::fs::write(&path, text).unwrap();
    let [interpreted, translated] = ["off", "auto"].map(|translator| {
        let out = dir.join(translator);
        let mut command = run(&path, &out);
        command.args(["--set", &format!("run.translator={translator}")]);
        finished(command);
        let run = json(&out.join("run.json"));
        let console = std::fs::read_to_string(out.join("console.log")).unwrap();
        (run["cycles"].clone(), run["instructions"].clone(), console)
    });
    assert_eq!(interpreted, translated);
    let console = translated.2;
    assert!(console.lines().any(|line| line == "4"), "{console}");
    let sums = console.lines().filter(|line| line.ends_with("  -"));
    let sums: Vec<&str> = sums.collect();
    assert!(sums.len() == 6 && sums.iter().all(|sum| *sum == sums[0]), "{console}");
}

#[test]
fn linux_boots_on_two_timed_harts() {
    let dir = scratch("runs-timed-boot");
    let (path, out) = (dir.join("spec.toml"), dir.join("out"));
    let text = "guest.harts = 2\n[run]\ncommand = \"nproc; for n in 1 2 3 4; do \
        (seq 200 | sort -n | md5sum) & done; wait\"\n[record]\ntrace = false\nprofilers = false\n";
    std::fs::write(&path, text).unwrap();
    finished(run(&path, &out));
    let console = std::fs::read_to_string(out.join("console.log")).unwrap();
    assert!(console.lines().any(|line| line == "2"), "{console}");
    let sums: Vec<&str> = console.lines().filter(|l| l.ends_with("  -")).collect();
    assert_eq!(sums, vec![sums[0]; 4]);
    let run = json(&out.join("run.json"));
    for hart in run["harts"].as_array().unwrap() {
        assert_ne!(hart["stats"]["upgrades"], 0);
    }
}

#[test]
fn each_of_several_harts_is_timed_and_profiled() {
    let dir = scratch("runs-timed-harts");
    let (path, out) = (dir.join("spec.toml"), dir.join("out"));
    let text = "guest.harts = 2\n[run]\nboot = \"functional\"\nregion = \"command\"\n\
        command = \"nproc; perf record -q -a -e tip -c 20011 -o perf.data -- \
        sh -c '(seq 300 | taskset 1 md5sum) & (seq 300 | taskset 2 md5sum) & wait'; \
        tipsim-region stop; perf script -i perf.data -F cpu\"\n";
    std::fs::write(&path, text).unwrap();
    finished(run(&path, &out));
    let console = std::fs::read_to_string(out.join("console.log")).unwrap();
    for said in ["2", "[000]", "[001]"] {
        let lines = console.lines().filter(|line| line.trim() == said);
        assert_ne!(lines.count(), 0, "{said}: {console}");
    }
    let run = json(&out.join("run.json"));
    let harts = run["harts"].as_array().unwrap();
    assert_eq!(harts.len(), 2);
    for (hart, folder) in harts.iter().zip([out.join("hart0"), out.join("hart1")]) {
        assert!(hart["instructions"].as_u64().unwrap() > 1_000_000, "{hart}");
        assert_ne!(hart["stats"]["transfers"], 0);
        assert!(json(&folder.join("errors.json"))["all"]["function"]["tip"].is_f64());
    }
    all_harts_are_one(&out);
    let trace = out.join("trace.tip");
    let whole = succeed(tipsim().args(["trace", "verify"]).arg(&trace));
    assert!(whole.starts_with("whole"), "{whole}");
    let mut evaluate = tipsim();
    evaluate.args(["trace", "evaluate", "--format", "json", "--hart", "1"]);
    let again: Value = serde_json::from_str(&succeed(evaluate.arg(&trace))).unwrap();
    assert_eq!(again["fingerprint"], harts[1]["fingerprint"]);
    let none = tipsim().args(["trace", "evaluate", "--hart", "2"]).arg(&trace).output().unwrap();
    assert_error(&none, 2, &["trace.tip", "--hart", "0 to 1", "2 harts"]);

    // A report of all and of each, from what the run kept and from the trace; exports of them.
    let report = |arguments: &[&str]| {
        let mut command = tipsim();
        command.arg("report").arg(&out).args(arguments);
        command.output().unwrap()
    };
    let second = out.join("hart1");
    let own = std::fs::read_to_string(second.join("report.txt")).unwrap();
    let all = std::fs::read_to_string(out.join("report.txt")).unwrap();
    for from in ["what was kept", "the trace"] {
        let rebuilt = String::from_utf8(report(&["--rebuild", "--hart", "1"]).stdout);
        assert_eq!(rebuilt.unwrap(), own, "from {from}");
        let rebuilt = std::fs::read_to_string(out.join("report.txt")).unwrap();
        assert_eq!(rebuilt, all, "from {from}");
        std::fs::remove_file(second.join("evaluation.zst")).unwrap();
    }
    exports::have_all_harts(&report);
    let none = report(&["--hart", "2"]);
    assert_error(&none, 2, &["--hart", "0 to 1", "found 2"]);
    let none = report(&["--format", "folded", "--hart", "2"]);
    assert_error(&none, 2, &["--hart", "0 to 1", "2 harts"]);
}

/// The report of a run of two harts is their sum, whatever of it is of a process or an instruction.
fn all_harts_are_one(out: &Path) {
    let report = |folder: &str| json(&out.join(folder).join("report.json"));
    let (all, each) = (report(""), ["hart0", "hart1"].map(report));
    let sum = |of: &dyn Fn(&Value) -> f64| each.iter().map(of).sum::<f64>();
    for total in ["cycles", "idle", "instructions", "traps"] {
        let of = |report: &Value| report["totals"][total].as_f64().unwrap();
        assert_eq!(of(&all), sum(&of), "{total}");
    }
    for (hart, report) in all["harts"].as_array().unwrap().iter().zip(&each) {
        assert_eq!(hart["cycles"], report["totals"]["cycles"]);
        assert_eq!(hart["stack"], report["processes"][0]["stack"]);
        let windows = hart["windows"].as_array().unwrap();
        assert!(windows.len() > 1, "{hart}");
    }
    // Each hart had one of them.
    let cycles = |report: &Value| {
        let rows = report["processes"].as_array().unwrap().iter();
        rows.filter(|row| row["name"].as_str().unwrap().starts_with("md5sum"))
            .map(|row| row["cycles"].as_f64().unwrap())
            .sum::<f64>()
    };
    assert!((cycles(&all) - sum(&cycles)).abs() < 1.0 && each.iter().all(|one| cycles(one) > 1e5));
    // What perf sampled on all harts is beside it.
    let columns = all["columns"].as_array().unwrap();
    assert!(columns.iter().any(|column| column["name"] == "guest-tip"));
    let text = std::fs::read_to_string(out.join("report.txt")).unwrap();
    assert!(text.contains("\nhart ") && text.contains("guest-tip"), "{text}");
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(
        page.contains("<section id=\"harts\"")
            && page.contains("aria-label=\"processes by hart over time\"")
    );
}

#[test]
fn a_functional_boot_times_the_command_alone() {
    let dir = scratch("runs-functional-boot");
    let tool = dir.join("tool");
    std::fs::create_dir(&tool).unwrap();
    std::fs::write(tool.join("words"), "from the host\n").unwrap();
    let extra = "boot = \"functional\"\nregion = \"command\"\nfiles = [\"tool\"]\n";
    let spec = spec(&dir, extra);
    let (a, b) = (dir.join("a"), dir.join("b"));
    for out in [&a, &b] {
        let mut command = run(&spec, out);
        // The timing core leaves off and goes on; what passes in between is not its.
        let script =
            "tipsim-region stop; cat tool/words; tipsim-region start; cat tool/words > copy";
        command.args(["--set", &format!("run.command='{script}'"), "--self-profile"]);
        let output = finished(command);
        assert!(stdout(&output).contains("functional"), "{}", stdout(&output));
    }
    let [run_a, run_b] = [&a, &b].map(|out| json(&out.join("run.json")));
    for key in ["cycles", "instructions", "stats", "oracle_cycles"] {
        assert_eq!(run_a[key], run_b[key], "two equal runs differ in {key}");
    }
    let number = |run: &Value, key: &str| run[key].as_u64().unwrap_or_else(|| panic!("{key}"));
    assert_eq!(
        number(&run_a, "oracle_cycles") + number(&run_a, "idle_cycles"),
        number(&run_a, "cycles")
    );
    let functional = number(&run_a["functional"], "instructions");
    assert!(functional > 10 * number(&run_a, "instructions"), "boot was functional");
    assert_eq!(number(&run_a["stats"], "instructions"), number(&run_a, "instructions"));
    assert!(run_a["host_ns_per_instruction"]["front_end"].is_f64());
    let console = std::fs::read_to_string(a.join("console.log")).unwrap();
    assert!(console.contains("from the host"), "{console}");
    assert_eq!(std::fs::read_to_string(a.join("files/copy")).unwrap(), "from the host\n");
    assert!(!a.join("files/tool").exists(), "what the host gave is not a result");
}

/// Returns where a run works until it is over.
fn partial(out: &Path) -> PathBuf {
    out.with_extension("partial")
}

/// Starts a run and waits until its trace has grown to some chunks.
fn started(spec: &Path, out: &Path) -> Child {
    let child = run(spec, out).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let start = Instant::now();
    let size = || std::fs::metadata(partial(out).join("trace.tip")).map_or(0, |m| m.len());
    while size() < 1 << 20 {
        assert!(start.elapsed() < Duration::from_secs(120), "no trace after two minutes");
        std::thread::sleep(Duration::from_millis(20));
    }
    child
}

/// Returns what `trace info` says, with the exit status of a trace of a part.
fn info(trace: &Path) -> Value {
    let out = tipsim().args(["trace", "info", "--format", "json"]).arg(trace).output().unwrap();
    assert_error(&out, 1, &["trace", "not whole"]);
    serde_json::from_slice(&out.stdout).unwrap()
}

#[test]
fn interrupted_run_leaves_a_whole_trace() {
    let dir = scratch("runs-interrupted");
    let out = dir.join("out");
    let child = started(&spec(&dir, ""), &out);
    assert!(
        Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success()
    );
    let output = child.wait_with_output().unwrap();
    assert_error(&output, 1, &["interrupted"]);
    let info = info(&out.join("trace.tip"));
    assert!(info["end"].as_str().unwrap().contains("before its time"), "{info}");
    assert_eq!(info["cycles"], json(&out.join("run.json"))["cycles"]);
}

#[test]
fn killed_run_leaves_a_readable_trace() {
    let dir = scratch("runs-killed");
    let out = dir.join("out");
    let mut child = started(&spec(&dir, ""), &out);
    child.kill().unwrap();
    child.wait().unwrap();
    let trace = partial(&out).join("trace.tip");
    let info = info(&trace);
    assert!(info["end"].as_str().unwrap().starts_with("cut at offset"), "{info}");
    assert!(info["chunks"].as_u64().unwrap() > 0);
    let dump = tipsim().args(["trace", "dump", "--count", "10"]).arg(&trace).output().unwrap();
    assert_eq!(stdout(&dump).lines().filter(|l| l.contains("0x")).count(), 10, "{}", stderr(&dump));
}

#[test]
fn cut_and_damaged_traces_are_reported_with_the_offset() {
    let dir = scratch("runs-cut");
    let out = dir.join("out");
    finished(run(&spec(&dir, ""), &out));
    let whole = std::fs::read(out.join("trace.tip")).unwrap();

    let cut = dir.join("cut.tip");
    std::fs::write(&cut, &whole[..whole.len() / 2]).unwrap();
    assert!(info(&cut)["end"].as_str().unwrap().starts_with("cut at offset"));
    let verify = tipsim().args(["trace", "verify"]).arg(&cut).output().unwrap();
    assert_error(&verify, 2, &["cut.tip", "cut at offset"]);

    let damaged = dir.join("damaged.tip");
    let mut bytes = whole;
    let middle = bytes.len() / 2;
    bytes[middle..middle + 64].fill(0xa5);
    std::fs::write(&damaged, bytes).unwrap();
    let verify = tipsim().args(["trace", "verify"]).arg(&damaged).output().unwrap();
    assert_error(&verify, 2, &["damaged.tip", "damaged at offset"]);
}

#[test]
fn full_disk_keeps_what_was_recorded() {
    let dir = scratch("runs-full");
    let (spec, out) = (spec(&dir, ""), dir.join("out"));
    // A limit on file sizes (8 MiB in 512-byte blocks) stands for the full disk: half of the trace, twice a report.
    let simulator = run(&spec, &out);
    let output = Command::new("sh")
        .arg("-c")
        .arg("ulimit -f 16384; exec \"$0\" \"$@\"")
        .arg(simulator.get_program())
        .args(simulator.get_args())
        .output()
        .unwrap();
    assert_error(&output, 1, &["trace.tip", "cannot write at offset"]);
    let info = info(&out.join("trace.tip"));
    assert!(info["end"].as_str().unwrap().starts_with("cut at offset"), "{info}");
    assert!(info["records"].as_u64().unwrap() > 0);
}

/// The clock that a guest starts with: the fixed one, a given time, or the host's.
#[test]
fn the_guests_clock_is_what_the_spec_says() {
    let dir = scratch("runs-clock");
    let path = dir.join("spec.toml");
    let text = "[run]\nboot = \"functional\"\ncheckpoint = false\ncommand = \"date -u +now=%s\"\n";
    std::fs::write(&path, text).unwrap();
    let host = || {
        let now = std::time::SystemTime::now();
        now.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
    };
    let before = host();
    let date = |clock: &str| {
        let out = dir.join(clock);
        let mut command = run(&path, &out);
        command.args(["--set", &format!("guest.clock={clock}")]);
        finished(command);
        let console = std::fs::read_to_string(out.join("console.log")).unwrap();
        let now = console.split("now=").nth(1).expect("a time");
        let seconds = now.split_whitespace().next().unwrap();
        (seconds.parse::<u64>().unwrap(), json(&out.join("run.json"))["deterministic"].clone())
    };
    assert_eq!(date("fixed"), (1_767_225_600, true.into()));
    assert_eq!(date("2001-09-09T01:46:40Z"), (1_000_000_000, true.into()));
    let (now, deterministic) = date("host");
    assert!((before..=host()).contains(&now), "{now}");
    assert_eq!(deterministic, Value::Bool(false));

    let mut wrong = run(&path, &dir.join("wrong"));
    wrong.args(["--set", "guest.clock=yesterday"]);
    assert_error(&wrong.output().unwrap(), 2, &["clock", "\"fixed\", \"host\"", "yesterday"]);
}
