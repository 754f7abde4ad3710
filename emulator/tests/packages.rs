//! Debian's packages in the guest: `guest.packages`.

use crate::common::{assert_error, json, run_spec, scratch, stdout, succeed, tipsim};

/// What the guest finds: the packages' programs before its own, links of update-alternatives, its own tools beneath.
const SPEC: &str = r#"
base = "base.toml"
[about]
stands_for = "nothing"
[guest]
packages = ["bzip2", "mawk"]
[run]
command = '''
readlink -f /bin/sh > found
readlink -f "$(command -v awk)" >> found
readlink -f "$(command -v sha256sum)" >> found
awk 'BEGIN { for (i = 0; i < 8000; i++) print i, i * i % 977 }' > data
tipsim-run bzip2 -k data
bzip2 --help 2>&1 | head -n 1 > version
sha256sum data.bz2 > sum
echo written > /usr/share/written && cat /usr/share/written >> found
perf stat -e tip:u -- true 2> stat
'''
"#;

#[test]
fn packages_lie_over_the_guests_own_files() {
    let dir = scratch("packages");
    let base = "[run]\nboot = \"functional\"\nthreads = \"one\"\nregion = \"command\"\n[record]\ntrace = false\n";
    std::fs::write(dir.join("base.toml"), base).unwrap();
    succeed(&mut run_spec(&dir, SPEC));
    let out = dir.join("out");
    let files = out.join("files");
    let read = |name: &str| std::fs::read_to_string(files.join(name)).unwrap();
    assert_eq!(read("found"), "/usr/bin/dash\n/usr/bin/mawk\n/usr/bin/busybox\nwritten\n");
    assert!(read("version").starts_with("bzip2, a block-sorting file compressor.  Version 1.0.8"));
    // The host's bzip2 writes the expected data, whatever its version is.
    let host = "cd \"$0\" && bzip2 -c data | sha256sum | cut -d ' ' -f 1";
    let expected = succeed(std::process::Command::new("sh").args(["-c", host]).arg(&files));
    assert_eq!(read("sum").split(' ').next().unwrap(), expected.trim());
    assert!(read("stat").contains("tip:u"), "{}", read("stat"));

    let run = json(&out.join("run.json"));
    assert_eq!(run["spec"]["about"]["stands_for"], "nothing");
    let packages = run["packages"].as_array().unwrap();
    let named = |name: &str| packages.iter().any(|line| line.as_str().unwrap().starts_with(name));
    assert!(named("bzip2 1.0.8-") && named("dash ") && named("libc6 2."), "{packages:?}");
    // Names of a library's functions, from the packages' own files.
    let report = json(&out.join("report.json"));
    let functions = report["functions"].as_array().unwrap();
    let named = |name: &str| functions.iter().any(|f| f["name"] == name);
    assert!(named("BZ2_compressBlock"), "{}", first_names(functions));
}

fn first_names(functions: &[serde_json::Value]) -> String {
    let names = functions.iter().take(20).map(|f| f["name"].to_string());
    names.collect::<Vec<_>>().join(" ")
}

/// Loops of one kind: `Work.heavy` has 60,000 iterations, `light` 20,000 and 10,000 more in a thread; in a child it has 15,000.
const PYTHON: &str = "\
import os, _thread

def light(n):
    s = 0
    for i in range(n):
        s += i & 7
    return s

class Work:
    def heavy(self, n):
        s = 0
        for i in range(n):
            s += i & 7
        return s

def nested(n, depth):
    if depth > 0:
        return nested(n, depth - 1)
    return Work().heavy(n)

def threaded(n, done):
    light(n)
    done.release()

def main():
    for _ in range(10):
        light(2000)
        nested(6000, 5)
    done = _thread.allocate_lock()
    done.acquire()
    _thread.start_new_thread(threaded, (10000, done))
    done.acquire()
    child = os.fork()
    if child == 0:
        light(15000)
        os._exit(0)
    os.waitpid(child, 0)

os.system('tipsim-region start')
main()
os.system('tipsim-region stop')
";

#[test]
fn functions_and_lines_of_a_python_program() {
    let dir = scratch("python");
    std::fs::write(dir.join("prog.py"), PYTHON).unwrap();
    let spec = "[guest]\npackages = [\"python3-minimal\"]\n[run]\nboot = \"functional\"\nthreads = \"one\"\nregion = \"marked\"\n\
        files = [\"prog.py\"]\ncommand = 'python3 prog.py'\n[record]\nexcerpts = false\n";
    let printed = succeed(&mut run_spec(&dir, spec));
    let out = dir.join("out");
    let report = json(&out.join("report.json"));
    let interpreted = report["interpreted"].as_array().unwrap();
    let [program, child] = &interpreted[..] else {
        panic!("{interpreted:?}");
    };
    let share = |of: &serde_json::Value, name: &str, key: &str| {
        let functions = of["functions"].as_array().unwrap();
        let row = functions.iter().find(|row| row["name"] == name);
        row.map_or(0.0, |row| row[key].as_f64().unwrap())
    };
    let own = |name: &str| share(program, name, "share");
    let total = |name: &str| share(program, name, "total");
    assert!(program["samples"].as_u64().unwrap() > 500, "{program}");
    let ratio = own("Work.heavy") / own("light");
    assert!((1.8..2.2).contains(&ratio), "{ratio}: {program}");
    assert!(own("Work.heavy") + own("light") > 0.8, "{program}");
    for (name, expected) in [("nested", 2.0 / 3.0), ("threaded", 1.0 / 9.0)] {
        let of_loops = total(name) / (total("Work.heavy") + total("light"));
        assert!((of_loops / expected - 1.0).abs() < 0.15, "{name} {of_loops}: {program}");
    }
    // All but the thread.
    assert!((0.8..0.95).contains(&total("main")), "{program}");
    assert!(share(program, "Work.heavy", "share_error") < 0.1, "{program}");
    assert!(share(child, "light", "share") > 0.5, "{child}");
    assert_eq!(share(child, "Work.heavy", "total"), 0.0, "{child}");
    // The loop's two lines, and hardly anything beside them.
    let functions = program["functions"].as_array().unwrap();
    let heavy = functions.iter().find(|row| row["name"] == "Work.heavy").unwrap();
    assert_eq!(heavy["line"], 10);
    assert!(heavy["file"].as_str().unwrap().ends_with("prog.py"), "{heavy}");
    let lines = heavy["lines"].as_array().unwrap();
    let mut hottest = [0, 1].map(|n| lines[n]["line"].as_u64().unwrap());
    hottest.sort_unstable();
    assert_eq!(hottest, [12, 13], "{heavy}");
    let sum: f64 = lines.iter().map(|line| line["share"].as_f64().unwrap()).sum();
    assert!((sum - own("Work.heavy")).abs() < 1e-9, "{heavy}");
    assert!(printed.contains("Python function Work.heavy (prog.py:10)"), "{printed}");
    let text = std::fs::read_to_string(out.join("report.txt")).unwrap();
    assert!(text.contains("Python functions of python3"), "{text}");
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("<section id=\"interpreted\">"));

    // The guest does not see that anybody looks, and the trace has what was seen.
    let seen = json(&out.join("run.json"));
    std::fs::remove_file(out.join("evaluation.zst")).unwrap();
    let mut again = tipsim();
    succeed(again.arg("report").arg(&out).arg("--rebuild"));
    assert_eq!(json(&out.join("report.json"))["interpreted"], report["interpreted"]);
    let unseen = spec.to_owned() + "interpreters = false\nprofilers = false\ntrace = false\n";
    succeed(&mut run_spec(&dir, &unseen));
    let unseen = json(&out.join("run.json"));
    for key in ["cycles", "instructions"] {
        assert_eq!(unseen[key], seen[key], "{key}");
    }
}

#[test]
fn what_is_no_package_is_told() {
    let dir = scratch("no-packages");
    let spec = |names: &str| format!("[guest]\npackages = [{names}]\n[run]\ncommand = 'true'\n");
    let output = run_spec(&dir, &spec("\"bzip2\", \"--update\"")).output().unwrap();
    assert_error(
        &output,
        2,
        &["spec.toml: guest.packages: expected names of Debian packages", "\"--update\""],
    );
    // The script's own message, then that of the spec's key.
    let output = run_spec(&dir, &spec("\"no-such-package\"")).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", stdout(&output));
    let error = crate::common::stderr(&output);
    assert!(error.contains("no such package in trixie: no-such-package"), "{error}");
    assert!(error.contains("spec.toml: guest.packages:"), "{error}");
    assert!(!dir.join("out").exists(), "nothing was run");
}
