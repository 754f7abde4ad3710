use super::*;
use crate::{Evaluator, ProcessTime, Profiler, Region, Sampler, Schedule};

fn evaluation() -> Evaluation {
    evaluation_of(20_000)
}

/// Returns the evaluation of a stream of so many instructions.
fn evaluation_of(instructions: usize) -> Evaluation {
    let often = Schedule::frequency(40_000_000, 3_200_000_000);
    let mut evaluator = Evaluator::new(&[Sampler::new(Profiler::Tip, often)], Region::Whole)
        .in_detail(4)
        .with_call_stacks();
    for batch in commit_trace::synthetic::program(instructions, 7) {
        evaluator.batch(&batch).unwrap();
    }
    evaluator.finish()
}

#[test]
fn a_hart_beside_itself_has_everything_twice() {
    let one = evaluation();
    let both = [one.clone(), one.clone()];
    let two = Evaluation::merged(&both).unwrap().into_owned();
    assert_eq!(two.static_info.len(), one.static_info.len());
    assert_eq!((two.processes.len(), two.spaces.len()), (one.processes.len(), one.spaces.len()));
    assert_eq!(
        (two.cycles, two.idle, two.instructions),
        (2 * one.cycles, 2 * one.idle, 2 * one.instructions)
    );
    let twice = |profile: &Profile| -> Vec<_> {
        profile.iter().map(|(process, inst, units)| (process, inst, 2 * units)).collect()
    };
    assert_eq!(two.oracle.iter().collect::<Vec<_>>(), twice(&one.oracle));
    let [single, double] = [&one, &two].map(|evaluation| &evaluation.samplers[0]);
    assert_eq!(double.profile.iter().collect::<Vec<_>>(), twice(&single.profile));
    assert_eq!(double.samples, 2 * single.samples);
    let total = |evaluation: &Evaluation| -> u64 {
        evaluation.stacks.iter().map(|(.., stack)| stack.total()).sum()
    };
    assert_eq!(total(&two), 2 * total(&one));
    let slots = |evaluation: &Evaluation| -> u64 {
        let top_down = evaluation.top_down.as_ref().unwrap();
        let of = |id: u32| top_down.of(ProcessId(id)).map(|(.., slots)| slots).sum::<u64>();
        (0..evaluation.processes.len() as u32).map(of).sum()
    };
    assert!(slots(&one) > 0);
    assert_eq!(slots(&two), 2 * slots(&one));
    let cycles = |evaluation: &Evaluation| -> u64 {
        evaluation.top_down.iter().flat_map(|t| &t.windows).map(|window| window.cycles).sum()
    };
    assert_eq!(cycles(&two), 2 * cycles(&one));
    let bins = |evaluation: &Evaluation, spent: fn(&ProcessTime) -> u64| -> Vec<_> {
        evaluation
            .over_time
            .iter()
            .map(|bin| (bin.start, bin.processes.iter().map(spent).sum::<u64>()))
            .collect()
    };
    let by_inst = |time: &ProcessTime| {
        let weights = time.weights().map(|(_, units)| units).sum::<u64>();
        weights + time.others
    };
    let by_context = |time: &ProcessTime| {
        let weights = time.by_context().map(|(_, _, units)| units).sum::<u64>();
        weights + time.other_contexts
    };
    for spent in [by_inst, by_context] {
        let twice: Vec<_> =
            bins(&one, spent).into_iter().map(|(start, units)| (start, 2 * units)).collect();
        assert!(twice.iter().any(|(_, units)| *units > 0));
        assert_eq!(bins(&two, spent), twice);
    }
    assert_eq!(one.contexts.as_ref().map(|c| c.len()), two.contexts.as_ref().map(|c| c.len()));
    assert!(Evaluation::merged(&[]).is_none());
}

#[test]
fn stretches_that_reach_into_the_next_ones_end_there() {
    let one = evaluation_of(200_000);
    let mut later = one.clone();
    let windows = &mut later.top_down.as_mut().unwrap().windows;
    assert!(windows.len() > 8 && later.over_time.len() > 2);
    // The other hart's begin where those of the first are half over.
    for window in windows {
        let shift = (window.end - window.start) / 2;
        (window.start, window.end) = (window.start + shift, window.end + shift);
    }
    for bin in &mut later.over_time {
        let shift = (bin.end - bin.start) / 2;
        (bin.start, bin.end) = (bin.start + shift, bin.end + shift);
    }
    let merged = Evaluation::merged(&[one.clone(), later]).unwrap().into_owned();
    let windows = &merged.top_down.as_ref().unwrap().windows;
    assert!(windows.windows(2).all(|pair| pair[0].end <= pair[1].start), "{windows:?}");
    assert!(merged.over_time.windows(2).all(|pair| pair[0].end <= pair[1].start));
    assert_eq!(merged.check(), Ok(()));
}

#[test]
fn one_hart_is_itself() {
    let one = evaluation();
    let merged = Evaluation::merge(&one, std::slice::from_ref(&one));
    assert_eq!(merged.oracle, one.oracle);
    assert_eq!(merged.stacks, one.stacks);
    assert_eq!(merged.signatures, one.signatures);
    assert_eq!(merged.samplers, one.samplers);
    assert_eq!(merged.top_down, one.top_down);
}

/// The Oracle's units by what processes and instructions are, whatever their numbers.
fn by_name(evaluation: &Evaluation) -> BTreeMap<(Option<u32>, u32, u64), u64> {
    let mut units = BTreeMap::new();
    for (process, inst, weight) in evaluation.oracle.iter() {
        let process = &evaluation.processes[process.0 as usize];
        let fact = &evaluation.static_info[inst.0 as usize];
        *units.entry((process.pid, process.generation, fact.pc)).or_default() += weight;
    }
    units
}

/// Returns an evaluation with the Oracle of `one`, its processes, instructions and address spaces numbered from the other end.
fn numbered_backwards(one: &Evaluation) -> Evaluation {
    let process = |id: ProcessId| ProcessId(one.processes.len() as u32 - 1 - id.0);
    let inst = |id: InstId| InstId(one.static_info.len() as u32 - 1 - id.0);
    let space = |space: u32| if space < 2 { space } else { 1000 - space };
    let mut other = Evaluation {
        oracle: Profile::new(one.oracle.units_per_cycle()),
        processes: one.processes.iter().rev().cloned().collect(),
        static_info: one.static_info.iter().rev().copied().collect(),
        first_use: one.first_use.iter().rev().copied().collect(),
        ..Evaluation::default()
    };
    for (id, of) in (0..).zip(&mut other.processes) {
        of.id = ProcessId(id);
    }
    for (id, fact) in (0..).zip(&mut other.static_info) {
        (fact.id, fact.space) = (InstId(id), space(fact.space));
    }
    other.spaces = one.spaces.iter().map(|(&own, &of)| (space(own), process(of))).collect();
    for (of, id, units) in one.oracle.iter() {
        other.oracle.add(process(of), inst(id), units);
    }
    other
}

#[test]
fn what_is_the_same_has_one_number_whatever_its_harts_gave_it() {
    let one = crate::synthetic::evaluation();
    assert!(one.processes.len() > 2 && one.spaces.len() > 1);
    let harts = [one.clone(), numbered_backwards(&one)];
    assert_eq!(by_name(&harts[1]), by_name(&one));
    let merged = Evaluation::merged(&harts).unwrap();
    assert_eq!(merged.processes.len(), one.processes.len());
    assert_eq!(merged.static_info.len(), one.static_info.len());
    let twice = by_name(&one).into_iter().map(|(of, units)| (of, 2 * units));
    assert!(twice.eq(by_name(&merged)));
}
