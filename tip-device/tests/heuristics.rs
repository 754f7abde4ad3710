//! The unit's heuristics: each on a stream small enough to follow by hand, and all against the host's profilers on random ones.

use commit_trace::synthetic::SyntheticCore;
use commit_trace::{
    Commit, CommitSink, CycleClass, Event, HartId, InstId, Recorder, Redirect, StaticInfo,
    TeaEvents, recording,
};
use proptest::prelude::*;
use register_table::{field, in_field};
use sampling_rules::Heuristic;
use snapshot::{Archive, Snapshot};
use tip_device::regs::HEURISTICS;
use tip_device::{Origin, Reg, Sample, TipUnit, control, flags, status};

use Heuristic::{Dispatch, Lci, Nci, NciIlp, Software, Tip, TipIlp};
use Redirect::{Mispredict, None as No};

/// One instruction: (decode, dispatch, commit, redirect).
type TimedInst = (u64, u64, u64, Redirect);

/// The stream of the profilers' tests, after figure 4 of the paper. 0 to 3 commit together; 4 is a load that stalls, 5 and 6
/// commit with it; 7 is a mispredicted branch; 8, of the right path, enters the ROB late; 9 commits with it; 10 arrives after
/// an instruction cache miss, and 11 long after it.
const FIGURE: &[TimedInst] = &[
    (2, 4, 10, No),
    (2, 4, 10, No),
    (2, 4, 10, No),
    (2, 4, 10, No),
    (3, 5, 50, No),
    (3, 5, 50, No),
    (3, 5, 50, No),
    (4, 6, 51, Mispredict),
    (55, 57, 62, No),
    (55, 57, 62, No),
    (90, 92, 97, No),
    (300, 302, 307, No),
];

fn commit(inst: usize, (decode, dispatch, commit, redirect): TimedInst) -> Commit {
    Commit {
        inst: InstId(inst as u32),
        decode,
        dispatch,
        commit,
        redirect,
        first_of_row: true,
        class: CycleClass::Alu,
        tea: TeaEvents::default(),
    }
}

fn origin(inst: InstId) -> Origin {
    Origin { pc: 0x1000 + 4 * u64::from(inst.0), privilege: 0, trap_return: false }
}

/// The value of CONTROL for a heuristic in all modes.
fn asked(heuristic: Heuristic) -> u64 {
    let number = HEURISTICS.iter().position(|known| *known == heuristic);
    let number = number.unwrap() as u64;
    control::ENABLE | control::U | control::S | control::M | in_field(control::HEURISTIC, number)
}

/// A unit that triggers in `cycle` and then every `period` cycles.
fn armed(heuristic: Heuristic, cycle: u64, period: u64) -> TipUnit {
    let mut tip = TipUnit::new(4, 1_000_000_000);
    tip.write(Reg::Period, period, 0);
    tip.write(Reg::Count, cycle, 0);
    tip.write(Reg::Control, asked(heuristic), 0);
    tip
}

fn feed(tip: &mut TipUnit, rows: &[TimedInst]) {
    for (inst, row) in rows.iter().enumerate() {
        tip.commit(&commit(inst, *row), &origin);
    }
}

fn pop(tip: &mut TipUnit) -> Option<Sample> {
    if tip.read(Reg::Status, 0) as u8 == 0 {
        return None;
    }
    let mut read = |reg| tip.read(reg, 0);
    let sample = Sample {
        cycle: read(Reg::Cycle),
        flags: read(Reg::Flags),
        address: [Reg::Address0, Reg::Address1, Reg::Address2, Reg::Address3].map(&mut read),
        weight: read(Reg::Weight),
    };
    tip.write(Reg::Pop, 1, 0);
    Some(sample)
}

fn named(sample: &Sample) -> Vec<u64> {
    let valid = (0..4).filter(|at| sample.flags >> at & 1 != 0);
    valid.map(|at| (sample.address[at] - 0x1000) / 4).collect()
}

/// Whom the sample of a trigger in this cycle of the figure names; nobody if there is none.
fn sampled(heuristic: Heuristic, cycle: u64) -> Vec<u64> {
    let mut tip = armed(heuristic, cycle, 1 << 40);
    feed(&mut tip, FIGURE);
    let sample = pop(&mut tip);
    assert_eq!(pop(&mut tip), None);
    sample.map_or(Vec::new(), |sample| {
        assert_eq!(sample.cycle, cycle);
        named(&sample)
    })
}

#[test]
fn each_heuristic_names_what_the_profiler_of_its_name_does() {
    for (cycle, tip, nci, lci) in [
        (7, &[0][..], &[0, 1, 2, 3][..], &[][..]),
        (10, &[0, 1, 2, 3], &[0, 1, 2, 3], &[]),
        (30, &[4], &[4, 5, 6], &[3]),
        (50, &[4, 5, 6], &[4, 5, 6], &[3]),
        (51, &[7], &[7], &[6]),
        (54, &[7], &[8, 9], &[7]),
        (60, &[8], &[8, 9], &[7]),
        (70, &[10], &[10], &[9]),
    ] {
        assert_eq!(sampled(Tip, cycle), tip, "{cycle}");
        assert_eq!(sampled(TipIlp, cycle), tip[..1], "{cycle}");
        assert_eq!(sampled(NciIlp, cycle), nci, "{cycle}");
        assert_eq!(sampled(Nci, cycle), nci[..1], "{cycle}");
        assert_eq!(sampled(Lci, cycle), lci, "{cycle}");
    }
    // The load is tagged as it is dispatched, in the cycle before the ROB holds it. Behind the branch the wrong path
    // dispatches, and is squashed with its tags.
    for (cycle, dispatch, software) in [
        (1, &[0][..], 0),
        (3, &[0], 4),
        (4, &[4], 7),
        (5, &[7], 8),
        (30, &[], 8),
        (54, &[8], 8),
        (70, &[10], 10),
    ] {
        assert_eq!(sampled(Dispatch, cycle), dispatch, "{cycle}");
        assert_eq!(sampled(Software, cycle), [software], "{cycle}");
    }
}

#[test]
fn the_state_is_told_by_those_that_see_it() {
    for heuristic in HEURISTICS {
        let mut tip = armed(*heuristic, 20, 1 << 40);
        feed(&mut tip, FIGURE);
        let Some(sample) = pop(&mut tip) else {
            assert_eq!(*heuristic, Dispatch);
            continue;
        };
        let stalled = sample.flags & flags::STALLED != 0;
        assert_eq!(stalled, matches!(heuristic, Tip | TipIlp), "{heuristic:?}");
        assert_eq!(sample.flags & !(flags::STALLED | 0xf), 0);
    }
}

#[test]
fn a_dropped_sample_leaves_its_cycles_to_the_next() {
    // What is tagged in cycle 30 is squashed with the wrong path, as the commit of 8 in cycle 62 shows.
    let mut tip = armed(Dispatch, 30, 30);
    feed(&mut tip, FIGURE);
    let sample = pop(&mut tip).unwrap();
    assert_eq!((sample.cycle, named(&sample)), (90, vec![10]));
    // The trigger in 60 came while the first waited.
    assert_eq!(sample.weight, 90);
}

#[test]
fn a_sample_that_waits_is_pending_until_its_instruction_has_committed() {
    let mut tip = armed(Software, 12, 1000);
    assert_eq!(tip.read(Reg::Status, 12), 0);
    // Pending before any commit shows the trigger.
    assert_eq!(tip.read(Reg::Status, 13), status::PENDING);
    feed(&mut tip, &FIGURE[..5]);
    assert!(tip.needs_every_commit());
    // The sample goes on waiting when the timer stops, and by the rule of its trigger.
    tip.write(Reg::Control, 0, 50);
    tip.write(Reg::Control, asked(Lci) & !control::ENABLE, 50);
    for (inst, row) in FIGURE.iter().enumerate().skip(5) {
        let before = tip.read(Reg::Status, row.2);
        assert_eq!(before, if inst < 11 { status::PENDING } else { 1 });
        tip.commit(&commit(inst, *row), &origin);
    }
    assert_eq!(named(&pop(&mut tip).unwrap()), [8]);
    assert!(!tip.needs_every_commit());
}

#[test]
fn a_pending_sample_can_be_given_up_and_its_cycles_are_kept() {
    let mut tip = armed(Software, 12, 70);
    feed(&mut tip, &FIGURE[..5]);
    tip.write(Reg::Status, status::PENDING, 50);
    assert_eq!(tip.read(Reg::Status, 50), 0);
    for (inst, row) in FIGURE.iter().enumerate().skip(5) {
        tip.commit(&commit(inst, *row), &origin);
    }
    let sample = pop(&mut tip).unwrap();
    assert_eq!((sample.cycle, named(&sample)), (82, vec![10]));
    assert_eq!(sample.weight, 140);
}

#[test]
fn a_value_without_a_heuristic_is_tip_and_the_id_tells_which_there_are() {
    let mut tip = TipUnit::new(4, 1_000_000_000);
    for value in 0..16 {
        tip.write(Reg::Control, in_field(control::HEURISTIC, value), 0);
        let read = field(tip.read(Reg::Control, 0), control::HEURISTIC);
        let known = (value as usize) < HEURISTICS.len();
        assert_eq!(read, if known { value } else { 0 });
        assert_eq!(tip.read(Reg::Id, 0) >> 56 >> value & 1 != 0, known);
    }
}

#[test]
fn a_checkpoint_has_the_pending_sample() {
    for heuristic in HEURISTICS {
        let mut tip = armed(*heuristic, 20, 25);
        feed(&mut tip, &FIGURE[..8]);
        let mut archive = Archive::saving();
        tip.snapshot(&mut archive).unwrap();
        let bytes = archive.into_bytes();
        let mut loaded = TipUnit::new(4, 1_000_000_000);
        loaded.snapshot(&mut Archive::loading(&bytes)).unwrap();
        let recent: Vec<Commit> =
            FIGURE[..8].iter().enumerate().map(|(inst, row)| commit(inst, *row)).collect();
        loaded.recall(recent.into_iter().rev());
        for unit in [&mut tip, &mut loaded] {
            for (inst, row) in FIGURE.iter().enumerate().skip(8) {
                unit.commit(&commit(inst, *row), &origin);
            }
        }
        for _ in 0..8 {
            assert_eq!(pop(&mut tip), pop(&mut loaded), "{heuristic:?}");
        }
    }
}

/// A stream on its way to both.
struct Both {
    unit: TipUnit,
    recorder: Recorder,
    samples: Vec<Sample>,
}

impl CommitSink for Both {
    fn commit(&mut self, commit: &Commit) {
        self.unit.commit(commit, &origin);
        let fresh = std::iter::from_fn(|| pop(&mut self.unit));
        self.samples.extend(fresh);
        self.recorder.commit(commit);
    }

    fn define(&mut self, static_info: &StaticInfo) {
        self.recorder.define(static_info);
    }

    fn event(&mut self, cycle: u64, event: Event) {
        if let Event::Idle { cycles } = event {
            self.unit.slept(cycles, &origin);
        }
        self.recorder.event(cycle, event);
    }
}

/// Each sample as the instructions that it names and the weight of each.
type Samples = Vec<(Vec<u64>, u64)>;

/// The samples of the unit and of the host's profiler with the same triggers.
fn both(words: &[u32], width: usize, heuristic: Heuristic, period: u64) -> (Samples, Samples) {
    let (recorder, stream) = recording(HartId(0), 0, words.len() + 1);
    let mut both = Both { unit: armed(heuristic, period, period), recorder, samples: Vec::new() };
    let mut core = SyntheticCore::new(width);
    for word in words {
        // Neither changes of privilege, which the unit's timer follows, nor regions.
        let rare = matches!(word >> 24, 252..=254);
        core.step(if rare { word & 0xff_ffff } else { *word }, &mut both);
    }
    both.recorder.finish().unwrap();

    let profiler = profile::Profiler::of_name(heuristic.name()).unwrap();
    let sampler = profile::Sampler::new(profiler, profile::Schedule::every(period));
    let mut evaluator = profile::Evaluator::new(&[sampler], profile::Region::Whole).keep_samples();
    stream.into_iter().for_each(|batch| evaluator.batch(&batch).unwrap());
    let units = evaluator.finish();
    let units_per_cycle = units.oracle.units_per_cycle();
    let log = &units.samplers[0].log;
    let host = log.chunk_by(|a, b| a.cycle == b.cycle).map(|parts| {
        let insts = parts.iter().map(|part| u64::from(part.inst.0));
        (insts.collect(), parts[0].units)
    });
    let unit = both.samples.iter().map(|sample| {
        let insts = named(sample);
        let share = units_per_cycle / insts.len() as u64;
        (insts, sample.weight * share)
    });
    (unit.collect(), host.collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// One rule, two drivers: with the same triggers, the same samples of the same weights.
    #[test]
    fn the_unit_takes_the_samples_of_the_hosts_profiler(
        words in prop::collection::vec(any::<u32>(), 1..600),
        width in 1usize..=4,
        period in 17u64..300,
    ) {
        for heuristic in HEURISTICS {
            let (unit, host) = both(&words, width, *heuristic, period);
            // The unit waits for the end of a commit group: at the end, for one that waited and one of the last cycle.
            prop_assert!(unit.len() <= host.len() && host.len() <= unit.len() + 2);
            prop_assert_eq!(&unit[..], &host[..unit.len()], "{:?}", heuristic);
        }
    }
}
