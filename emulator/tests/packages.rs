//! Debian's packages in the guest: `guest.packages`.

mod common;

use common::{assert_error, json, run_spec, scratch, stdout, succeed};

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
    let base = "[run]\nboot = \"functional\"\nregion = \"command\"\n[record]\ntrace = false\n";
    std::fs::write(dir.join("base.toml"), base).unwrap();
    succeed(&mut run_spec(&dir, SPEC));
    let out = dir.join("out");
    let files = out.join("files");
    let read = |name: &str| std::fs::read_to_string(files.join(name)).unwrap();
    assert_eq!(
        read("found"),
        "/usr/bin/dash\n/usr/bin/mawk\n/usr/bin/busybox\nwritten\n"
    );
    assert!(read("version").starts_with("bzip2, a block-sorting file compressor.  Version 1.0.8"));
    // The same program on the host, where each version writes the same.
    let host = "cd \"$0\" && bzip2 -c data | sha256sum | cut -d ' ' -f 1";
    let expected = succeed(
        std::process::Command::new("sh")
            .args(["-c", host])
            .arg(&files),
    );
    assert_eq!(read("sum").split(' ').next().unwrap(), expected.trim());
    assert!(read("stat").contains("tip:u"), "{}", read("stat"));

    let run = json(&out.join("run.json"));
    assert_eq!(run["spec"]["about"]["stands_for"], "nothing");
    let packages = run["packages"].as_array().unwrap();
    let named = |name: &str| {
        packages
            .iter()
            .any(|line| line.as_str().unwrap().starts_with(name))
    };
    assert!(
        named("bzip2 1.0.8-") && named("dash ") && named("libc6 2."),
        "{packages:?}"
    );
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

#[test]
fn what_is_no_package_is_told() {
    let dir = scratch("no-packages");
    let spec = |names: &str| format!("[guest]\npackages = [{names}]\n[run]\ncommand = 'true'\n");
    let output = run_spec(&dir, &spec("\"bzip2\", \"--update\""))
        .output()
        .unwrap();
    assert_error(
        &output,
        2,
        &[
            "spec.toml: guest.packages: expected names of Debian packages",
            "\"--update\"",
        ],
    );
    // The script's own message, then that of the spec's key.
    let output = run_spec(&dir, &spec("\"no-such-package\""))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", stdout(&output));
    let error = common::stderr(&output);
    assert!(
        error.contains("no such package in trixie: no-such-package"),
        "{error}"
    );
    assert!(error.contains("spec.toml: guest.packages:"), "{error}");
    assert!(!dir.join("out").exists(), "nothing was run");
}
