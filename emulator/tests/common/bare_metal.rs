//! Programs that have a machine to themselves, under the timing core, and the trace of their run.

use std::path::Path;

use super::{assemble, scratch, succeed, tipsim};

/// A record of the trace.
#[derive(Debug)]
pub(crate) struct TraceRecord {
    pub decode: u64,
    pub dispatch: u64,
    pub commit: u64,
    pub supervisor: bool,
    pub pc: u64,
    pub class: String,
    pub wait: String,
    pub redirect: String,
    pub tea: String,
    pub instruction: String,
}

/// The words that a program prints, and the trace of its run.
pub(crate) fn run_program<const WORDS: usize>(
    name: &str,
    source: &str,
    values: &[(&str, String)],
    threads: &str,
) -> (Vec<[u64; WORDS]>, Vec<TraceRecord>) {
    let dir = scratch(&format!("{name}-{threads}"));
    let source =
        values.iter().fold(source.to_owned(), |source, (name, value)| source.replace(name, value));
    let elf = assemble(&dir, "program", &source);
    let spec = format!(
        "[guest]\nfirmware = \"{}\"\n[run]\nmax_cycles = 20000000\nthreads = \"{threads}\"\n[record]\ntrace = true\n",
        elf.display()
    );
    let path = dir.join("spec.toml");
    std::fs::write(&path, spec).unwrap();
    let mut command = tipsim();
    command.arg("run").arg(&path);
    succeed(command.arg("--out").arg(dir.join("out")));
    let console = std::fs::read_to_string(dir.join("out/console.log")).unwrap();
    let words = |line: &str| {
        let word = |word| u64::from_str_radix(word, 16).unwrap();
        let words: Vec<u64> = line.split_whitespace().map(word).collect();
        <[u64; WORDS]>::try_from(words).unwrap()
    };
    (console.lines().map(words).collect(), trace(&dir, 0))
}

/// Returns what a hart left in the trace of the run in `dir/out`.
pub(crate) fn trace(dir: &Path, hart: usize) -> Vec<TraceRecord> {
    let csv = dir.join("trace.csv");
    let mut expand = tipsim();
    expand.args(["trace", "expand", "--format", "csv"]);
    expand.args(["--hart", &hart.to_string()]);
    succeed(expand.arg(dir.join("out/trace.tip")).arg("-o").arg(&csv));
    let text = std::fs::read_to_string(csv).unwrap();
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let row = |line: &str| {
        let field: Vec<&str> = line.splitn(names.len(), ',').collect();
        let named = |name: &str| field[names.iter().position(|&n| n == name).unwrap()];
        let number = |name: &str| named(name).parse::<u64>().unwrap();
        TraceRecord {
            decode: number("decode"),
            dispatch: number("dispatch"),
            commit: number("commit"),
            supervisor: named("privilege") == "1",
            pc: u64::from_str_radix(&named("pc")[2..], 16).unwrap(),
            class: named("class").to_owned(),
            wait: named("wait").to_owned(),
            redirect: named("redirect").to_owned(),
            tea: named("tea").to_owned(),
            instruction: named("instruction").to_owned(),
        }
    };
    lines.map(row).collect()
}
