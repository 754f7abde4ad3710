//! Runs litmus tests of RVWMO on the machine, and prints which outcomes occur.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::bail;
use clap::{Parser, ValueEnum};
use litmus::{Judged, Mode, Program, Results, TestResult, Verdict, catalog, run};
use timing::Preset;

/// Litmus tests of the memory model RVWMO on several harts: allowed outcomes, and those that occur.
#[derive(Parser)]
#[command(after_help = "Examples:
  cargo run --release -p litmus -- --iterations 2400          all tests in all modes; a million iterations in each
  cargo run --release -p litmus -- --only SB,MP+fence.rw.rws --mode timing --iterations 100k
  cargo run --release -p litmus -- --only 'IRIW*'             the tests whose names begin so
  cargo run --release -p litmus -- --list                     the tests with what the model says, without running any
  cargo run --release -p litmus -- --format markdown          one line for each family of tests

The exit status is 1 if an outcome occurred that the model forbids.")]
struct Args {
    /// Tests to run, with commas between them; a name with * at its end stands for all that begin so.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Iterations of each test in each mode.
    #[arg(long, default_value = "320", value_parser = number)]
    iterations: u64,
    /// Modes [default: both].
    #[arg(long, value_enum)]
    mode: Option<ModeName>,
    /// Seed of delays and of the lengths of turns.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Core preset of timing mode: a name or a file.
    #[arg(long, default_value = "boom-4w")]
    core: String,
    /// Form of the results.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Print the tests and what the model says of their cycles, and run none.
    #[arg(long)]
    list: bool,
}

/// How the machine executes, in the words of `tipsim`.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ModeName {
    /// Interpreted, and translated to host code.
    Functional,
    /// Under timing cores.
    Timing,
}

/// Form of the results.
#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// A line for each test.
    Text,
    /// A line for each family.
    Markdown,
    /// All outcomes.
    Json,
}

/// Parses a number with an optional suffix `k` or `M`.
fn number(text: &str) -> Result<u64, String> {
    let (digits, factor) = match text.strip_suffix(['M', 'k']) {
        Some(digits) if text.ends_with('M') => (digits, 1_000_000),
        Some(digits) => (digits, 1000),
        None => (text, 1),
    };
    let digits: u64 = digits.parse().map_err(|e| format!("{e}"))?;
    match digits.checked_mul(factor) {
        Some(0) => Err("expected at least 1".into()),
        Some(number) => Ok(number),
        None => Err("too large".into()),
    }
}

fn main() -> anyhow::Result<ExitCode> {
    let args = Args::parse();
    let programs = choose(catalog(), &args.only)?;
    if args.list {
        for program in programs {
            let test = Judged::new(program);
            let cycle = match test.verdict_of_condition() {
                Verdict::Forbidden => "forbidden",
                _ => "allowed",
            };
            println!("{} {} harts {cycle}", test.program.name, test.program.harts.len());
        }
        return Ok(ExitCode::SUCCESS);
    }
    let preset = Preset::load(&args.core)?;
    let modes: Vec<Mode> = Mode::ALL
        .into_iter()
        .filter(|mode| match args.mode {
            Some(ModeName::Timing) => *mode == Mode::Timing,
            Some(ModeName::Functional) => *mode != Mode::Timing,
            None => true,
        })
        .collect();
    let judged = programs.into_iter().map(Judged::new);
    let mut tests: Vec<TestResult> =
        judged.map(|test| TestResult { test, histograms: Vec::new() }).collect();
    let mut seconds = Vec::new();
    for &mode in &modes {
        let start = Instant::now();
        for result in &mut tests {
            let histogram = run(&result.test.program, mode, &preset, args.iterations, args.seed)?;
            result.histograms.push(histogram);
        }
        seconds.push(start.elapsed().as_secs_f64());
    }
    let results = Results { modes, tests, seconds };
    match args.format {
        Format::Text => print!("{}", results.text()),
        Format::Markdown => print!("{}", results.markdown()),
        Format::Json => println!("{:#}", results.json()),
    }
    let forbidden = results.forbidden();
    if forbidden != 0 {
        eprintln!("litmus: {forbidden} iterations had outcomes that the memory model forbids");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the programs that are asked for, all of them if none is.
fn choose(programs: Vec<Program>, only: &[String]) -> anyhow::Result<Vec<Program>> {
    let matches = |pattern: &str, name: &str| match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == pattern,
    };
    for pattern in only {
        if !programs.iter().any(|program| matches(pattern, &program.name)) {
            bail!("--only: no test is named '{pattern}' (--list shows the names)");
        }
    }
    let is_chosen = |program: &Program| {
        only.is_empty() || only.iter().any(|pattern| matches(pattern, &program.name))
    };
    Ok(programs.into_iter().filter(is_chosen).collect())
}
