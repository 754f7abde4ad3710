//! Programs of `precise/` in the guest.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use super::{UNTIMED_PERF_REPORTS, repo, run_spec, succeed};

/// Compiles a program of `precise/`.
pub(crate) fn compile(dir: &Path, name: &str) {
    let mut gcc = Command::new("riscv64-linux-gnu-gcc");
    let frames = ["-fno-omit-frame-pointer"];
    gcc.args(frames).args(["-O1", "-g1", "-static", "-o"]).arg(dir.join(name));
    gcc.arg(repo().join(format!("emulator/tests/precise/{name}.c")));
    assert!(gcc.status().expect("run riscv64-linux-gnu-gcc").success());
}

/// Runs a command with programs (names, between commas) in the guest under the timing core; reads a file that it left.
pub(crate) fn in_guest(
    dir: &Path,
    programs: &str,
    harts: u32,
    command: &str,
) -> impl Fn(&str) -> String {
    let programs: Vec<&str> = programs.split(',').collect();
    let spec = format!(
        "[guest]\nharts = {harts}\n[run]\nboot = \"functional\"\nthreads = \"one\"\nregion = \"command\"\n\
         max_cycles = 8000000000\nfiles = {programs:?}\ncommand = '''{UNTIMED_PERF_REPORTS}{command}'''\n\
         [record]\ntrace = false\nprofilers = false\n"
    );
    succeed(&mut run_spec(dir, &spec));
    let out = dir.join("out/files");
    move |name| {
        let path = out.join(name);
        std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }
}

/// A word in hexadecimal.
pub(crate) fn hex(word: &str) -> u64 {
    u64::from_str_radix(word.trim_start_matches("0x"), 16).unwrap_or_else(|e| panic!("{word}: {e}"))
}

/// Addresses of a program's instructions, by their names.
pub(crate) fn disassemble(program: &Path) -> HashMap<u64, String> {
    let objdump = Command::new("riscv64-linux-gnu-objdump")
        .args(["-d", "--no-show-raw-insn"])
        .arg(program)
        .output()
        .unwrap();
    let text = String::from_utf8(objdump.stdout).unwrap();
    let instruction = |line: &str| {
        let (address, rest) = line.trim().split_once(":\t")?;
        let name = rest.split_whitespace().next()?.to_owned();
        Some((u64::from_str_radix(address, 16).ok()?, name))
    };
    text.lines().filter_map(instruction).collect()
}
