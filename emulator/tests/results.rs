//! The folder of a run's results: what a guest cannot do to it, what an earlier run leaves, what a run that was cut short looks like.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::common::{assert_error, guest, json, scratch, stderr, stdout, succeed, tipsim};

/// A short command in a Linux guest, under the timing core.
fn spec(dir: &Path, name: &str, command: &str) -> PathBuf {
    let path = dir.join(format!("{name}.toml"));
    let text = format!(
        "[run]\nboot = \"functional\"\nthreads = \"one\"\nregion = \"command\"\ncommand = '''\n{command}\n'''\n"
    );
    fs::write(&path, text).unwrap();
    path
}

fn run(spec: &Path, out: &Path, more: &[&str]) -> Command {
    let mut command = tipsim();
    command.arg("run").arg(spec).arg("--guest-dir").arg(guest());
    command.arg("--out").arg(out).args(more);
    command
}

fn report(folder: &Path, more: &[&str]) -> Output {
    let mut command = tipsim();
    command.arg("report").arg(folder).args(more);
    command.output().unwrap()
}

fn read(path: PathBuf) -> String {
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn first_line(output: &Output) -> String {
    stdout(output).lines().next().unwrap_or_default().to_owned()
}

/// The results of a whole run, shared by the tests that only read them.
fn whole() -> &'static Path {
    static OUT: OnceLock<PathBuf> = OnceLock::new();
    OUT.get_or_init(|| {
        let dir = scratch("results-whole");
        let out = dir.join("out");
        succeed(&mut run(&spec(&dir, "whole", "seq 2000 | md5sum"), &out, &[]));
        out
    })
}

/// A copy of them.
fn copy(name: &str) -> PathBuf {
    let to = scratch(name).join("out");
    succeed(Command::new("cp").arg("-a").arg(whole()).arg(&to));
    to
}

/// Starts a run of a long command, and waits until it has recorded something.
fn started(spec: &Path, out: &Path) -> std::process::Child {
    let child = run(spec, out, &[]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let trace = out.with_extension("partial").join("trace.tip");
    let begun = Instant::now();
    while fs::metadata(&trace).map_or(0, |found| found.len()) < 1 << 17 {
        assert!(begun.elapsed() < Duration::from_secs(120), "no trace");
        std::thread::sleep(Duration::from_millis(10));
    }
    child
}

const LONG: &str = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";

fn signal(child: &std::process::Child, name: &str) {
    let id = child.id().to_string();
    succeed(Command::new("kill").args([&format!("-{name}"), &id]));
}

/// Names of results, as links to a file of the host, as files and as folders; links that are read without end; and a second run.
#[test]
fn what_a_guest_makes_is_no_result_and_leads_nowhere() {
    let dir = scratch("results-guest");
    let (victim, out) = (dir.join("victim"), dir.join("out"));
    fs::write(&victim, "victim").unwrap();
    let links = "report.txt report.html.partial run.json tipsim.json.partial .lock report.json hart0 ../report.txt";
    let command = format!(
        "for name in {links}; do ln -s {victim} $name; done\n\
         echo mine > trace.tip; echo mine > console.log; echo mine > truth.json; echo mine > evaluation.zst\n\
         mkdir -p errors.json/below share/below files made; echo new > made/new\n\
         ln -s /dev/zero perf.data; ln -s / tmp; mkfifo perf-1.map; dd if=/dev/zero of=big.data bs=1 count=1 seek=40000000000 2> /dev/null\n\
         ls -a > list",
        victim = victim.display()
    );
    let spec = spec(&dir, "guest", &command);
    for _ in 0..2 {
        let output = run(&spec, &out, &[]).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!(read(victim.clone()), "victim");
        assert!(read(out.join("report.txt")).contains("cycles"));
        assert_eq!(json(&out.join("run.json"))["part"], serde_json::Value::Null);
        assert_ne!(read(out.join("console.log")), "mine\n");
        assert!(fs::metadata(out.join("trace.tip")).unwrap().len() > 1000);
        assert_eq!(read(out.join("files/trace.tip")), "mine\n");
        assert_eq!(read(out.join("files/made/new")), "new\n");
        assert!(read(out.join("files/list")).contains("errors.json"));
        for rebuild in [&[][..], &["--rebuild"]] {
            let again = report(&out, rebuild);
            assert_eq!(again.status.code(), Some(0), "{}", stderr(&again));
        }
        assert_eq!(read(victim.clone()), "victim");
    }
    assert_eq!(read(dir.join("out.old/files/made/new")), "new\n");
    // A third run finds room, too: the oldest results are removed.
    succeed(&mut run(&spec, &out, &[]));
    let mut names: Vec<String> = fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["guest.toml", "out", "out.old", "victim"]);
}

#[test]
fn what_others_made_is_never_taken_for_a_result() {
    let dir = scratch("results-foreign");
    let spec = spec(&dir, "foreign", "true");
    let (out, file) = (dir.join("out"), dir.join("file"));
    fs::create_dir(&out).unwrap();
    fs::write(out.join("report.txt"), "precious").unwrap();
    fs::write(&file, "").unwrap();
    symlink("nowhere", dir.join("link")).unwrap();
    for (place, words) in [
        (&out, ["which no run made", "report.txt"]),
        (&file, ["expected a folder", "found a file"]),
        (&dir.join("link"), ["a link that leads nowhere", "--out"]),
        (&PathBuf::from("/"), ["--out", "root of the file system"]),
    ] {
        assert_error(&run(&spec, place, &[]).output().unwrap(), 2, &words);
    }
    assert_eq!(read(out.join("report.txt")), "precious");
    // Beside the results nothing of another's is touched, either.
    let results = dir.join("results");
    fs::create_dir(dir.join("results.partial")).unwrap();
    fs::write(dir.join("results.partial/mine"), "").unwrap();
    let output = run(&spec, &results, &[]).output().unwrap();
    assert_error(&output, 2, &["results.partial", "found something else"]);
    assert!(dir.join("results.partial/mine").exists() && !results.exists());
}

/// Other files in the folder stay there, whatever they are called but for the names of results; a shell that was called there stays, too.
#[test]
fn results_come_beside_what_others_have_in_the_folder() {
    let dir = scratch("results-beside");
    let out = dir.join("out");
    fs::create_dir_all(out.join("share")).unwrap();
    fs::write(out.join("share/thesis.txt"), "precious").unwrap();
    fs::write(out.join("run.log"), "mine").unwrap();
    for n in 1..=3 {
        let spec = spec(&out, "own", &format!("echo run {n} > which"));
        let mut here = run(&spec, Path::new("."), &[]);
        succeed(here.current_dir(&out));
        assert_eq!(read(out.join("files/which")), format!("run {n}\n"));
        assert_eq!(report(&out, &[]).status.code(), Some(0));
    }
    for (name, content) in [("share/thesis.txt", "precious"), ("run.log", "mine")] {
        assert_eq!(read(out.join(name)), content);
        assert!(!dir.join("out.old").join(name).exists());
    }
    assert_eq!(read(dir.join("out.old/files/which")), "run 2\n");
    assert_eq!(report(&dir.join("out.old"), &[]).status.code(), Some(0));
    assert!(!dir.join("out.partial").exists() && !dir.join("out.old.1").exists());
}

#[test]
fn the_run_before_is_kept_with_what_was_added_to_it() {
    let dir = scratch("results-before");
    let out = dir.join("out");
    for n in 1..=4 {
        let command = format!("echo run {n} > which");
        succeed(&mut run(&spec(&dir, "before", &command), &out, &[]));
        assert_eq!(read(out.join("files/which")), format!("run {n}\n"));
        match n {
            1 => fs::write(out.join("notes.txt"), "mine").unwrap(),
            // The second is the run before; with a note among its files it stays.
            3 => fs::write(dir.join("out.old/files/added"), "mine").unwrap(),
            _ => {}
        }
    }
    let which = |folder: &str| read(dir.join(folder).join("files/which"));
    assert_eq!(read(out.join("notes.txt")), "mine");
    assert_eq!(which("out.old"), "run 2\n");
    assert_eq!(which("out.old.1"), "run 3\n");
    assert!(!dir.join("out.old.2").exists() && !dir.join("out.partial").exists());
    assert_eq!(report(&dir.join("out.old"), &[]).status.code(), Some(0));
}

#[test]
fn a_second_run_into_a_folder_in_use_is_refused() {
    let dir = scratch("results-two");
    let (out, spec) = (dir.join("out"), spec(&dir, "two", LONG));
    let mut first = started(&spec, &out);
    let process = format!("in use by process {}", first.id());
    let second = run(&spec, &out, &[]).output().unwrap();
    assert_error(&second, 2, &["out.partial", &process]);
    assert_error(&report(&out, &[]), 2, &["a run into this folder goes on"]);
    signal(&first, "TERM");
    assert_eq!(first.wait().unwrap().code(), Some(1));
    assert!(out.join("report.txt").exists() && !dir.join("out.partial").exists());
}

/// Killed in a used folder: what is there is of the run before, which no reader takes for the killed run.
#[test]
fn a_killed_run_is_told_from_the_run_before() {
    let out = copy("results-killed");
    let dir = out.parent().unwrap();
    let spec = spec(dir, "killed", LONG);
    let mut child = started(&spec, &out);
    child.kill().unwrap();
    child.wait().unwrap();
    let partial = dir.join("out.partial");
    let killed = ["killed before its end", "out.partial --rebuild"];
    for more in [&[][..], &["--rebuild"], &["--format", "folded"], &["--level", "function"]] {
        assert_error(&report(&out, more), 2, &killed);
    }
    let compared = report(&out, &[whole().to_str().unwrap()]);
    assert_error(&compared, 2, &killed);
    let mut info = tipsim();
    let info = info.args(["trace", "info"]).arg(out.join("trace.tip"));
    assert_error(&info.output().unwrap(), 2, &killed);
    let mut asked = tipsim();
    assert_error(&asked.arg("what-if").arg(&out).output().unwrap(), 2, &killed);
    // What was recorded can be seen, as what it is.
    assert_error(&report(&partial, &[]), 2, &["killed before its end"]);
    let part = report(&partial, &["--rebuild"]);
    assert_error(&part, 1, &["not whole", "killed"]);
    assert!(first_line(&part).starts_with("NOT WHOLE: it was killed"));
    assert_eq!(report(&partial, &[]).status.code(), Some(1));
    assert_error(&report(&out, &[]), 2, &killed);
    // The next run clears it away, and keeps the run before.
    let before = read(out.join("report.txt"));
    let next = run(&spec, &out, &["--set", "run.command='true'"]).output().unwrap();
    assert_eq!(next.status.code(), Some(0), "{}", stderr(&next));
    assert!(stderr(&next).contains("out.partial, which a run left"));
    assert!(!partial.exists());
    assert_eq!(read(dir.join("out.old/report.txt")), before);
    assert_eq!(report(&out, &[]).status.code(), Some(0));
}

#[test]
fn an_interrupted_run_says_so_wherever_it_is_shown() {
    let dir = scratch("results-interrupted");
    let out = dir.join("out");
    let child = started(&spec(&dir, "interrupted", LONG), &out);
    signal(&child, "TERM");
    let output = child.wait_with_output().unwrap();
    assert_error(&output, 1, &["interrupted"]);
    let shown = report(&out, &[]);
    assert_error(&shown, 1, &["not whole: it was interrupted, after"]);
    let line = "NOT WHOLE: it was interrupted, after ";
    assert!(first_line(&shown).starts_with(line), "{}", stdout(&shown));
    for more in [
        &["--rebuild"][..],
        &["--level", "function"],
        &["--explain", "totals.cycles"],
        &["--format", "folded"],
    ] {
        let shown = report(&out, more);
        assert_eq!(shown.status.code(), Some(1), "{more:?}");
        let said = stderr(&shown);
        assert!(said.contains("not whole: it was interrupted"), "{said}");
        let found = first_line(&shown);
        assert!(found.trim_start_matches("# ").starts_with(line), "{more:?}: {found}");
    }
    assert!(read(out.join("report.html")).contains(&format!("role=\"alert\">{line}")));
    assert!(json(&out.join("report.json"))["meta"]["part"].is_string());
    let firefox = stdout(&report(&out, &["--format", "firefox"]));
    assert!(firefox.contains(&format!("\"product\":\"{line}")), "{firefox}");
    // A comparison with a whole run is no improvement.
    let after = out.to_str().unwrap();
    let compared = report(whole(), &[after]);
    assert_error(&compared, 1, &["not whole"]);
    assert!(first_line(&compared).starts_with("NOT WHOLE: after: it was interrupted"));
    let page = stdout(&report(whole(), &[after, "--format", "html"]));
    assert!(page.contains("role=\"alert\">NOT WHOLE: after: it was"));
    let mut info = tipsim();
    let info = info.args(["trace", "info"]).arg(out.join("trace.tip"));
    let info = info.output().unwrap();
    assert_error(&info, 1, &["not whole"]);
    assert!(first_line(&info).starts_with("NOT WHOLE: "));
}

#[test]
fn a_run_that_profiled_nothing_fails() {
    let dir = scratch("results-nothing");
    let (out, spec) = (dir.join("out"), spec(&dir, "nothing", "true"));
    let output = run(&spec, &out, &["--set", "run.region=marked"]).output().unwrap();
    assert_error(&output, 1, &["nothing was profiled"]);
    assert!(json(&out.join("run.json"))["part"].as_str().unwrap().contains("nothing was profiled"));
    // No report of an earlier run is in its place.
    let shown = report(&out, &[]);
    assert_error(&shown, 1, &["not whole: nothing was profiled"]);
    assert!(first_line(&shown).starts_with("NOT WHOLE: nothing was profiled"));
    let page = report(&out, &["--format", "html"]);
    assert_error(&page, 1, &["there is no report: nothing was profiled"]);
}

#[test]
fn files_of_another_run_or_damaged_ones_are_not_shown() {
    let out = copy("results-mixed");
    let other = scratch("results-other").join("out");
    succeed(&mut run(&spec(other.parent().unwrap(), "other", "seq 10"), &other, &[]));
    let put = |name: &str| _ = fs::copy(other.join(name), out.join(name)).unwrap();
    for (name, more) in [
        ("report.txt", &[][..]),
        ("report.json", &["--format", "json"]),
        ("report.html", &["--format", "html"]),
        ("errors.json", &["--level", "function"]),
    ] {
        put(name);
        assert_error(&report(&out, more), 2, &[name, "the file that the run wrote"]);
    }
    // A rebuild writes them anew.
    assert_eq!(report(&out, &["--rebuild"]).status.code(), Some(0));
    assert_eq!(read(out.join("report.txt")), read(whole().join("report.txt")));
    put("trace.tip");
    for more in [&["--rebuild"][..], &["--format", "pprof", "-o", "/dev/null"]] {
        assert_error(&report(&out, more), 2, &["trace.tip", "cut or replaced"]);
    }
    assert_eq!(read(out.join("report.txt")), read(whole().join("report.txt")));
}

#[test]
fn a_report_of_a_cut_trace_does_not_replace_that_of_the_whole() {
    let out = copy("results-cut");
    let trace = fs::OpenOptions::new().write(true).open(out.join("trace.tip")).unwrap();
    trace.set_len(trace.metadata().unwrap().len() / 2).unwrap();
    let kept =
        ["report.txt", "report.json", "report.html", "errors.json", "flame.json", "evaluation.zst"];
    let contents = || kept.map(|name| fs::read(out.join(name)).unwrap());
    let before = contents();
    assert_error(&report(&out, &["--rebuild"]), 2, &["trace.tip", "the reports stay"]);
    assert!(contents() == before);
    assert_eq!(report(&out, &[]).status.code(), Some(0));
}

#[test]
fn damaged_excerpts_are_told() {
    let out = copy("results-excerpts");
    let excerpts = fs::OpenOptions::new().write(true).open(out.join("excerpts.zst")).unwrap();
    excerpts.set_len(1000).unwrap();
    let shown = report(&out, &["--rebuild"]);
    assert_error(&shown, 1, &["excerpts.zst", "no section Loops"]);
    assert!(first_line(&shown).starts_with("NOT WHOLE: excerpts.zst: "));
}

/// A results folder from somebody else: its links and devices are neither written nor read through.
#[test]
fn a_hostile_results_folder_leads_nowhere() {
    let out = copy("results-hostile");
    let victim = out.parent().unwrap().join("victim");
    fs::write(&victim, "victim").unwrap();
    for name in ["report.txt", "report.html", "report.json.partial"] {
        let _ = fs::remove_file(out.join(name));
        symlink(&victim, out.join(name)).unwrap();
    }
    assert_error(&report(&out, &[]), 2, &["report.txt", "found a link"]);
    assert_eq!(report(&out, &["--rebuild"]).status.code(), Some(0));
    assert_eq!(read(victim.clone()), "victim");
    assert!(!out.join("report.txt").is_symlink());
    for name in ["truth.json", "trace.tip", "run.json"] {
        let _ = fs::remove_file(out.join(name));
        succeed(Command::new("mkfifo").arg(out.join(name)));
        assert_error(&report(&out, &["--rebuild"]), 2, &[name, "expected a regular file"]);
    }
}

#[test]
fn a_mistake_in_an_option_leaves_the_results() {
    let dir = scratch("results-mistake");
    let profile = |more: &[&str]| {
        let mut command = tipsim();
        command.args(["profile", "--guest-dir"]).arg(guest()).arg("--out").arg(dir.join("out"));
        command.args(more).args(["--", "seq 5"]).output().unwrap()
    };
    let first = profile(&[]);
    assert_eq!(first.status.code(), Some(0), "{}", stderr(&first));
    let text = read(dir.join("out/profile.toml"));
    let memory = profile(&["--memory", "nonsense"]);
    assert_error(&memory, 2, &["memory", "nonsense"]);
    assert_eq!(profile(&["--harts", "17"]).status.code(), Some(2));
    assert_eq!(read(dir.join("out/profile.toml")), text);
    assert_eq!(report(&dir.join("out"), &[]).status.code(), Some(0));
    assert!(!dir.join("out.old").exists());
    let second = profile(&["--core", "large-boom"]);
    assert_eq!(second.status.code(), Some(0), "{}", stderr(&second));
    assert_eq!(read(dir.join("out.old/profile.toml")), text);
    assert_ne!(read(dir.join("out/profile.toml")), text);
}

/// A limit on the size of files stands for a full disk.
#[test]
fn a_full_disk_leaves_the_older_file() {
    let file = scratch("results-full").join("export");
    for (format, kib) in [("firefox", 8), ("speedscope", 8), ("pprof", 1), ("perf-data", 8)] {
        fs::write(&file, "older").unwrap();
        let mut export = tipsim();
        export
            .arg("report")
            .arg(whole())
            .args(["--format", format, "--profiler", "oracle", "-o"])
            .arg(&file);
        let output = Command::new("sh")
            .arg("-c")
            .arg(format!("ulimit -f {}; exec \"$0\" \"$@\"", kib * 2))
            .arg(export.get_program())
            .args(export.get_args())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1), "{format}: {}", stderr(&output));
        assert!(stderr(&output).contains("cannot write"), "{}", stderr(&output));
        assert_eq!(read(file.clone()), "older", "{format}");
    }
}

#[test]
fn runs_are_compared_by_what_a_user_waits() {
    let out = whole();
    let folder = out.to_str().unwrap();
    let cycles = json(&out.join("run.json"))["regions"]["cycles"].as_u64().unwrap();
    let own = json(&out.join("report.json"));
    assert_eq!(own["totals"]["elapsed"]["cycles"], cycles);
    let pair = report(out, &[folder]);
    let text = stdout(&pair);
    assert!(first_line(&pair).contains("seq 2000 | md5sum (boom-4w, 1 hart, "), "{text}");
    let first = text.lines().position(|line| line.contains("before       after")).unwrap();
    let elapsed = text.lines().nth(first + 1).unwrap();
    let expected = format!("{:.3}", cycles as f64 / 1e6);
    assert!(elapsed.starts_with("M cycles elapsed ") && elapsed.contains(&expected), "{text}");
    let more = stdout(&report(out, &[folder, folder]));
    assert!(more.contains("run 3      ") && more.contains("+0.0 %"), "{more}");
    let json = stdout(&report(out, &[folder, folder, "--format", "json"]));
    let compared: serde_json::Value = serde_json::from_str(&json).unwrap();
    let totals = compared["totals"].as_array().unwrap();
    assert_eq!(totals.len(), 3);
    assert!(totals.iter().all(|run| run["elapsed"]["cycles"] == cycles), "{totals:?}");
    let page = stdout(&report(out, &[folder, folder, "--format", "html"]));
    assert!(page.contains("<h1>Runs compared</h1>") && page.contains("ms elapsed"));
    for (more, why) in [
        (&["--map", "md5sum=md5sum"][..], "--map: expected two runs to compare, found 3"),
        (&["--rebuild"], "--rebuild: expected one run, found 3 to compare"),
    ] {
        let refused = report(out, &[&[folder, folder], more].concat());
        assert_error(&refused, 2, &[why]);
    }
}
