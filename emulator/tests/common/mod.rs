//! Runs the built `tipsim` and reads what it left.

pub(crate) mod bare_metal;
pub(crate) mod browser;
pub(crate) mod debugger;
pub(crate) mod precise;
pub(crate) mod truth;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;
use std::thread::ThreadId;

/// The simulator.
pub(crate) fn tipsim() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tipsim"));
    command.env("TIPSIM_GUEST_SW", repo().join("guest-sw"));
    // Nobody outside is asked for names.
    command.env_remove("DEBUGINFOD_URLS");
    command.env("TIPSIM_DEBUG_MIRROR", "none");
    command
}

/// Directory of the built guest. The end-to-end tests cannot do without.
pub(crate) fn guest() -> PathBuf {
    let guest = std::env::var_os("TIPSIM_GUEST");
    PathBuf::from(guest.expect("TIPSIM_GUEST is not set: run scripts/test, which builds the guest"))
}

/// The repository.
pub(crate) fn repo() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in the repository")
}

/// A directory of this test's own, empty. A test may ask for it again.
///
/// # Panics
/// If another test has a directory of this name: both may run at the same time.
#[track_caller]
pub(crate) fn scratch(name: &str) -> PathBuf {
    static TAKEN: Mutex<BTreeMap<String, ThreadId>> = Mutex::new(BTreeMap::new());
    let this = std::thread::current().id();
    let owner = *TAKEN.lock().unwrap().entry(name.to_owned()).or_insert(this);
    assert_eq!(owner, this, "another test has the scratch directory {name}");
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).expect("make a scratch directory");
    dir
}

/// `tipsim run` of a spec, which is written to `dir/spec.toml`, with the built guest; its output folder is `dir/out`.
pub(crate) fn run_spec(dir: &Path, spec: &str) -> Command {
    let path = dir.join("spec.toml");
    std::fs::write(&path, spec).expect("write the spec");
    let mut command = tipsim();
    command.arg("run").arg(&path).arg("--guest-dir").arg(guest());
    command.arg("--out").arg(dir.join("out"));
    command
}

/// Commands for the guest, before a test's own: perf's subcommands that read files and print them are executed without timing from there on, as most of
/// a test's time would go into them. `perf.real` is perf itself. For run specs with `region = "command"`.
pub(crate) const UNTIMED_PERF_REPORTS: &str = "\
    perf=$(command -v perf); mv $perf $perf.real\n\
    cat > $perf << 'END'\n\
#!/bin/sh\n\
case $1 in script | report | annotate | list | evlist) ;; *) exec $0.real \"$@\" ;; esac\n\
tipsim-region stop\n\
$0.real \"$@\"\n\
status=$?\n\
tipsim-region start\n\
exit $status\n\
END\n\
    chmod +x $perf\n";

/// Returns what a command wrote to standard error.
pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns what a command wrote to standard output.
pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs a command and gives its output.
#[track_caller]
pub(crate) fn succeed(command: &mut Command) -> String {
    let name = command.get_program().to_owned();
    let output = command
        .output()
        .unwrap_or_else(|e| panic!("{}: {e}: run scripts/test, which installs it", name.display()));
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    stdout(&output)
}

/// Checks that a command failed with `status` and one line on standard error that holds all `words`.
#[track_caller]
pub(crate) fn assert_error(output: &Output, status: i32, words: &[&str]) {
    let text = stderr(output);
    assert_eq!(output.status.code(), Some(status), "{text}");
    assert_eq!(text.trim_end().lines().count(), 1, "one line expected: {text}");
    for word in words {
        assert!(text.contains(word), "no \"{word}\" in: {text}");
    }
}

/// Assembles a bare-metal program at the start of RAM.
pub(crate) fn assemble(dir: &Path, name: &str, source: &str) -> PathBuf {
    let (s, elf) = (dir.join(format!("{name}.S")), dir.join(format!("{name}.elf")));
    std::fs::write(&s, source).expect("write source");
    let status = Command::new("riscv64-linux-gnu-gcc")
        .args(["-nostdlib", "-static", "-no-pie", "-march=rv64gc", "-mabi=lp64d"])
        .args(["-Wl,-N", "-Wl,-Ttext=0x80000000", "-Wl,--build-id=none", "-o"])
        .args([&elf, &s])
        .status()
        .expect("run riscv64-linux-gnu-gcc");
    assert!(status.success(), "{name} does not assemble");
    elf
}

/// Compiles a C program for the guest as `work` in a folder.
pub(crate) fn compile_work(dir: &Path, source: &str, options: &[&str]) {
    let file = dir.join("work.c");
    std::fs::write(&file, source).expect("write source");
    let mut gcc = Command::new("riscv64-linux-gnu-gcc");
    gcc.args(["-O1", "-static"]).args(options);
    succeed(gcc.arg("-o").arg(dir.join("work")).arg(&file));
}

/// Runs a spec in a folder, which has to succeed; gives run.json.
pub(crate) fn run_of_spec(dir: &Path, spec: &str) -> serde_json::Value {
    let output = run_spec(dir, spec).output().expect("run tipsim");
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    json(&dir.join("out/run.json"))
}

/// Reads a JSON file of a run.
pub(crate) fn json(path: &Path) -> serde_json::Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// A program with the HTIF symbols around `body`, which ends with an exit code in a0.
pub(crate) fn htif(body: &str) -> String {
    format!(
        ".globl _start\n_start:\n{body}\n  slli a0, a0, 1\n  ori a0, a0, 1\n  la t0, tohost\n\
         1: sd a0, 0(t0)\n  j 1b\n\
         .section .tohost, \"aw\", @progbits\n.align 6\n.globl tohost\ntohost: .dword 0\n\
         .align 6\n.globl fromhost\nfromhost: .dword 0\n\
         .data\n.align 4\n.globl begin_signature\nbegin_signature:\n.word 0x11223344, 0x55667788\n\
         .dword 0\n.globl end_signature\nend_signature:\n"
    )
}
