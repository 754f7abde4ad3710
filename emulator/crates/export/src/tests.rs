use commit_trace::HartId;
use profile::synthetic::evaluation;
use profile::{Context, ContextId, Contexts, Evaluation, Sample, UNITS_PER_CYCLE, Window};
use serde_json::Value;
use symbols::synthetic::guest_root;
use symbols::{SymbolFiles, Symbolizer};

use super::*;

mod binary;
mod text;

/// The report's example, with its samples and the Oracle's time in two halves.
fn example() -> (Evaluation, Vec<Window>) {
    let mut evaluation = evaluation();
    for result in &mut evaluation.samplers {
        result.log = (1..)
            .zip(result.profile.iter())
            .map(|(n, (process, inst, units))| Sample {
                cycle: 1000 * n,
                process,
                inst,
                context: ContextId::default(),
                units,
            })
            .collect();
    }
    let halves = [0, 1].map(|half| {
        let mut stacks: Vec<(_, [u64; 7])> = Vec::new();
        for (process, inst, stack) in evaluation.stacks.iter() {
            let units = stack.categories(evaluation.static_info[inst.0 as usize].class);
            match stacks.last_mut().filter(|(last, _)| *last == process) {
                Some((_, sums)) => sums.iter_mut().zip(units).for_each(|(sum, n)| *sum += n / 2),
                None => stacks.push((process, units.map(|n| n / 2))),
            }
        }
        Window {
            hart: HartId(0),
            start: half * 10_500,
            end: (half + 1) * 10_500,
            idle: 500,
            weights: evaluation.oracle.iter().map(|(p, i, units)| (p, i, units / 2)).collect(),
            by_context: Vec::new(),
            stacks,
        }
    });
    (evaluation, halves.into())
}

/// Writes the example with the Oracle and the samplers that are wanted.
fn written(format: Format, oracle: bool, samplers: &[&str]) -> io::Result<Vec<u8>> {
    let (evaluation, windows) = example();
    written_of(evaluation, &windows, format, oracle, samplers)
}

fn written_of(
    mut evaluation: Evaluation,
    windows: &[Window],
    format: Format,
    oracle: bool,
    samplers: &[&str],
) -> io::Result<Vec<u8>> {
    evaluation.samplers.retain(|result| samplers.contains(&&*result.sampler.name));
    let root = guest_root();
    let symbolizer = Symbolizer::new(SymbolFiles {
        roots: vec![root.path().to_owned()],
        ..SymbolFiles::default()
    });
    let options = Options {
        name: "example",
        notice: None,
        clock_hz: 1_000_000_000,
        oracle,
        instructions: true,
        exact: false,
        by_address: false,
        disassemble: &|raw, _| format!("op{raw:x}\ta0, a1"),
        jit_folder: None,
    };
    let mut bytes = Vec::new();
    Export::new(&evaluation, windows, &symbolizer, options).write(format, &mut bytes)?;
    Ok(bytes)
}

fn json(format: Format, oracle: bool, samplers: &[&str]) -> Value {
    serde_json::from_slice(&written(format, oracle, samplers).unwrap()).unwrap()
}

#[test]
fn cycles_that_do_not_divide_keep_their_sum() {
    let mut evaluation = evaluation();
    let third = UNITS_PER_CYCLE / 3;
    let mut profile = profile::Profile::new(UNITS_PER_CYCLE);
    for inst in 0..7 {
        let id = commit_trace::InstId(inst);
        profile.add(profile::ProcessId(1), id, 50 * UNITS_PER_CYCLE + third);
    }
    evaluation.oracle = profile;
    let options = Options {
        name: "",
        notice: None,
        clock_hz: 1,
        oracle: true,
        instructions: true,
        exact: false,
        by_address: false,
        disassemble: &|_, _| String::new(),
        jit_folder: None,
    };
    let export = Export::new(&evaluation, &[], &Symbolizer::default(), options);
    let cycles = export.cycles(&export.series()[0]);
    assert!(cycles.iter().all(|(_, cycles)| [50, 51].contains(cycles)));
    assert_eq!(cycles.iter().map(|(_, cycles)| cycles).sum::<u64>(), 352);
}

#[test]
fn small_instructions_are_charged_to_their_functions() {
    let mut evaluation = evaluation();
    evaluation.samplers.clear();
    let mut profile = profile::Profile::new(UNITS_PER_CYCLE);
    let mut smallest = true;
    for (process, inst, units) in evaluation.oracle.iter() {
        profile.add(process, inst, if smallest { 1 } else { units });
        smallest = false;
    }
    evaluation.oracle = profile;
    let cycles = |exact: bool| {
        let options = Options {
            name: "",
            notice: None,
            clock_hz: 1,
            oracle: true,
            instructions: true,
            exact,
            by_address: false,
            disassemble: &|_, _| String::new(),
            jit_folder: None,
        };
        let export = Export::new(&evaluation, &[], &Symbolizer::default(), options);
        let functions = export.rows().iter().filter(|row| row.is_function).count();
        let named = (0..export.rows().len()).filter(|row| export.instruction(*row).is_some());
        assert_eq!(named.count() + functions, export.rows().len());
        assert_eq!(functions, usize::from(!exact));
        assert_eq!(export.left_out(Format::Pprof).len(), functions);
        let cycles = export.cycles(&export.series()[0]);
        cycles.iter().map(|(_, cycles)| cycles).sum::<u64>()
    };
    assert_eq!(cycles(true), evaluation.oracle.total() / UNITS_PER_CYCLE);
    assert_eq!(cycles(false), cycles(true));
}

/// The example, in which the hottest instruction of the Oracle's first process calls all others of it, and those in turn
/// one that takes next to no time, which calls one again.
fn example_with_calls() -> Evaluation {
    let mut evaluation = evaluation();
    let mut contexts = Contexts::flat(evaluation.processes.len());
    let first = evaluation.oracle.iter().next().unwrap();
    let of_first = evaluation.oracle.iter().filter(|(process, ..)| *process == first.0);
    let hottest = of_first.max_by_key(|(.., units)| *units).unwrap();
    let mut call = |(caller, inst)| {
        let process = first.0;
        contexts.add(Context {
            process,
            thread: profile::ThreadId::NONE,
            caller: Some((caller, inst)),
        })
    };
    let inner = call((ContextId(first.0.0), hottest.1));
    let rare = call((inner, hottest.1));
    let rarest = call((rare, hottest.1));
    let context = |process: profile::ProcessId, inst| match (process, inst) {
        (process, inst) if process == first.0 && inst != hottest.1 => inner,
        _ => ContextId(process.0),
    };
    let weights = evaluation.oracle.iter();
    evaluation.by_context =
        weights.map(|(process, inst, units)| (context(process, inst), inst, units)).collect();
    evaluation.by_context.push((rarest, hottest.1, 1));
    evaluation.contexts = Some(contexts);
    evaluation
}

#[test]
fn stacks_begin_with_their_callers() {
    let evaluation = example_with_calls();
    let options = Options {
        name: "",
        notice: None,
        clock_hz: 1_000_000_000,
        oracle: true,
        instructions: true,
        exact: false,
        by_address: false,
        disassemble: &|raw, _| format!("{raw:x}"),
        jit_folder: None,
    };
    let mut evaluation = evaluation;
    evaluation.samplers.clear();
    let root = guest_root();
    let symbolizer = Symbolizer::new(SymbolFiles {
        roots: vec![root.path().to_owned()],
        ..SymbolFiles::default()
    });
    let export = Export::new(&evaluation, &[], &symbolizer, options);
    let depths: Vec<usize> =
        (0..export.rows().len()).map(|row| export.stack(row).count()).collect();
    // Rare contexts are shown as their callers: stacks are at most one call deep.
    assert_eq!(depths.iter().max(), Some(&2));
    assert!(depths.contains(&1));
    let mut folded = Vec::new();
    export.write(Format::Folded, &mut folded).unwrap();
    let folded = String::from_utf8(folded).unwrap();
    let cycles: u64 =
        folded.lines().map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum();
    assert_eq!(cycles, evaluation.oracle.total() / UNITS_PER_CYCLE);
    for format in [Format::Pprof, Format::Firefox, Format::Speedscope, Format::PerfData] {
        let mut out = Vec::new();
        export.write(format, &mut out).unwrap();
        assert!(!out.is_empty());
    }
}

#[test]
fn nothing_makes_empty_files() {
    for format in
        [Format::Pprof, Format::Firefox, Format::Speedscope, Format::PerfData, Format::Perfetto]
    {
        assert!(!written(format, false, &[]).unwrap().is_empty());
    }
    assert!(written(Format::Folded, false, &[]).is_err(), "no profiler");
    assert!(written(Format::Folded, true, &["tip"]).is_err(), "two profilers");
}
