//! `tipsim report --format pprof` and the others that other tools read: the trace is replayed.

use std::collections::BTreeSet;
use std::io::{BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use commit_trace::TraceEnd;
use export::{Export, Format, Holds, Options};
use profile::{Evaluation, Evaluator, Sampler, Timeline, Window};
use report::{part_line, sampled_notice};

use crate::cli::ReportArgs;
use crate::commands::trace::{metadata, open, profiled, replay, run_description};
use crate::failure::{BadInput, bad_input, cannot_write, is_replaceable, whole};
use crate::host::progress_bar::Percent;
use crate::host::terminal::written;
use crate::run_folder::{Results, TRACE};
use crate::spec::MAX_HARTS;
use crate::symbol_sources::names::{disassemble, symbol_paths};

const ORACLE: &str = "oracle";
/// Windows of the cycle stacks.
const STACK_WINDOWS: u64 = 1000;
/// Windows of the Oracle's time, in each of which every instruction that ran has a sample.
const ORACLE_WINDOWS: u64 = 200;

/// The profilers to export.
#[derive(Default)]
struct Choice {
    oracle: bool,
    samplers: Vec<Sampler>,
}

/// Writes the profiles of a run.
pub(crate) fn export(args: &ReportArgs, run: &Results, format: Format) -> anyhow::Result<()> {
    let path = run.path().join(TRACE);
    if let Err(error) = run.file(TRACE) {
        let why = "an export replays the trace (run with record.trace = true)";
        return Err(bad_input(&path, format!("{error}; {why}")).into());
    }
    run.check_trace()?;
    if let Some(output) = &args.output {
        can_be_written(output)?;
    }
    let reader = open(&path)?;
    let meta = metadata(&path, &reader)?;
    let (samplers, region) = profiled(&path, &meta)?;
    let choice = choose(&args.profiler, samplers, format)?;
    let symbols = symbol_paths(args, run)?;

    let recorded: BTreeSet<u32> = reader.chunks().iter().map(|chunk| chunk.hart.0).collect();
    if recorded.len() > MAX_HARTS as usize {
        let error = format!("expected at most {MAX_HARTS} harts, found {}", recorded.len());
        return Err(bad_input(&path, error).into());
    }
    let harts: Vec<u32> = match args.one_hart {
        None => recorded.into_iter().collect(),
        Some(hart) => vec![hart],
    };
    let records = reader
        .chunks()
        .iter()
        .filter(|chunk| harts.contains(&chunk.hart.0))
        .map(|chunk| u64::from(chunk.records));
    let mut progress = Percent::new("reading the trace", records.sum());
    let mut evaluate = |hart: u32| {
        let mut evaluator = Evaluator::new(&choice.samplers, region);
        if format.is_timed() {
            evaluator = evaluator.keep_samples();
        }
        evaluator = match format.holds() {
            Holds::CycleStacks => evaluator,
            _ if args.no_call_stacks => evaluator.with_threads(),
            _ => evaluator.with_call_stacks(),
        };
        if !choice.oracle {
            evaluator = evaluator.without_oracle_contexts();
        }
        let mut chunks = reader.chunks().iter().filter(|chunk| chunk.hart.0 == hart);
        let start = chunks.next().map_or(0, |first| first.start_cycle);
        let cycles = chunks.next_back().map_or(0, |last| last.end_cycle.saturating_sub(start));
        let windows = match format.holds() {
            Holds::CycleStacks => STACK_WINDOWS,
            _ if format.is_timed() && choice.oracle => ORACLE_WINDOWS,
            _ => 1,
        };
        let mut timeline = Timeline::new(evaluator, cycles / windows);
        replay(&path, hart, |batch| {
            progress.add(batch.records.len() as u64);
            timeline.batch(batch)
        })?;
        anyhow::Ok(timeline.finish())
    };
    let evaluated = harts.iter().map(|hart| evaluate(*hart)).collect::<Result<Vec<_>, _>>()?;
    let (evaluations, windows): (Vec<_>, Vec<_>) = evaluated.into_iter().unzip();

    progress.then("naming and writing");
    let evaluation = Evaluation::merged(&evaluations).unwrap_or_default();
    let windows: Vec<Window> = match &windows[..] {
        _ if !format.is_timed() => Vec::new(),
        [_] => windows.into_iter().flatten().collect(),
        _ => windows
            .into_iter()
            .zip(Evaluation::merged_numbers(&evaluations))
            .flat_map(|(windows, numbers)| {
                let of_hart = windows.into_iter();
                of_hart.map(move |window| window.renumbered(&numbers))
            })
            .collect(),
    };
    let cut =
        (reader.end() != TraceEnd::Complete).then(|| format!("the trace is {}", reader.end()));
    let part = run.part().map(str::to_owned).or(cut);
    let run_of_trace = run_description(&reader);
    let notices: Vec<String> = part
        .iter()
        .map(|part| part_line(part))
        .chain(run_of_trace.sampled_words().map(sampled_notice))
        .collect();
    let notice = notices.join(": ");
    let folder = jit_folder(args.output.as_deref())?;
    let options = Options {
        name: meta.name.as_deref().unwrap_or("tipsim"),
        notice: Some(notice.as_str()).filter(|notice| !notice.is_empty()),
        clock_hz: meta.clock_hz,
        oracle: choice.oracle,
        instructions: args.instructions || args.exact,
        exact: args.exact,
        by_address: format.is_by_address(),
        disassemble: &disassemble,
        jit_folder: folder.as_deref(),
    };
    let export = Export::new(&evaluation, &windows, &symbols.symbolizer(), options);
    for warning in export.warnings() {
        eprintln!("tipsim: warning: {warning}");
    }
    for left_out in export.left_out(format) {
        eprintln!("tipsim: {left_out}");
    }
    if format.names_jit_by_files() {
        let place = folder.as_deref().unwrap_or(Path::new(""));
        for warning in export.write_jit().map_err(|e| bad_input(place, e))? {
            eprintln!("tipsim: warning: {warning}");
        }
    }
    write(&export, format, args.output.as_deref())
}

/// Beside a file: the folder of code that was made at run time.
fn jit_folder(output: Option<&Path>) -> anyhow::Result<Option<PathBuf>> {
    let Some(output) = output else {
        return Ok(None);
    };
    let mut folder = std::path::absolute(output).map_err(|e| bad_input(output, e))?;
    folder.as_mut_os_string().push(".jit");
    Ok(Some(folder))
}

fn write(export: &Export<'_>, format: Format, output: Option<&Path>) -> anyhow::Result<()> {
    let Some(path) = output else {
        let out = std::io::stdout().lock();
        if out.is_terminal() && !format.is_text() {
            return Err(
                BadInput("this format is not for terminals: expected -o FILE".into()).into()
            );
        }
        return written(None, finish(export, format, out));
    };
    whole(path, |file| finish(export, format, file)).map_err(|e| cannot_write(path, e))
}

/// Checks that a file can be written at `path`, before the trace is replayed, which may take minutes.
fn can_be_written(path: &Path) -> anyhow::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    match parent.metadata() {
        Ok(found) if found.is_dir() && !path.is_dir() => can_be_made(path),
        Ok(found) if found.is_dir() => {
            Err(bad_input(path, "expected a file, found a folder").into())
        }
        Ok(_) => Err(bad_input(parent, "expected a folder, found a file").into()),
        Err(error) => Err(cannot_write(path, error)),
    }
}

/// Makes a file beside what is to be written, as that will be, and removes it again. What is no file takes what it gets.
fn can_be_made(path: &Path) -> anyhow::Result<()> {
    if !is_replaceable(path) {
        return Ok(());
    }
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let made = std::fs::File::create(&partial);
    made.map_err(|e| cannot_write(path, e))?;
    // Another process may have taken the partial file away.
    let _ = std::fs::remove_file(&partial);
    Ok(())
}

fn finish(export: &Export<'_>, format: Format, out: impl Write) -> std::io::Result<()> {
    let mut out = BufWriter::new(out);
    export.write(format, &mut out).and_then(|()| out.flush())
}

/// The profilers by name. A profiler's own name means its first sampler.
fn choose(names: &[String], samplers: Vec<Sampler>, format: Format) -> Result<Choice, BadInput> {
    if names.is_empty() && format.holds() == Holds::All {
        let first = |at: &usize| {
            let profiler = samplers[*at].profiler;
            samplers[..*at].iter().all(|s| s.profiler != profiler)
        };
        let firsts = (0..samplers.len()).filter(first);
        return Ok(Choice {
            oracle: true,
            samplers: firsts.map(|at| samplers[at].clone()).collect(),
        });
    }
    let refused = |what| Err(BadInput(format!("--profiler: {} {what}", format.name())));
    match (format.holds(), names) {
        (Holds::One, [_, _, ..]) => return refused("holds one profiler"),
        (Holds::CycleStacks, []) => return Ok(Choice::default()),
        (Holds::CycleStacks, _) => return refused("has the Oracle's cycle stacks only"),
        _ => {}
    }
    let default = [ORACLE.to_owned()];
    let names = if names.is_empty() { &default } else { names };
    let mut choice = Choice::default();
    for name in names {
        if name == ORACLE {
            choice.oracle = true;
            continue;
        }
        let named = samplers.iter().find(|s| s.name == *name);
        let sampler = named.or_else(|| samplers.iter().find(|s| s.profiler.name() == name));
        let sampler = sampler.ok_or_else(|| {
            let known: Vec<&str> = samplers.iter().map(|s| s.name.as_str()).collect();
            let known = known.join(", ");
            BadInput(format!(
                "--profiler: expected {ORACLE} or a sampler of the run ({known}), found \"{name}\""
            ))
        })?;
        if !choice.samplers.contains(sampler) {
            choice.samplers.push(sampler.clone());
        }
    }
    Ok(choice)
}
