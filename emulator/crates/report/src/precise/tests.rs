use commit_trace::Class;
use commit_trace::DataSource;
use guest_samples::synthetic::{SyntheticFile, SyntheticSample};
use profile::synthetic::evaluation;
use sampling_units::pdis::header;
use truth::{
    Columns, Counts, Exchange, ExchangeCounts, Executions, FORMAT, Instruction, LINE_BYTES,
    LatencyCount, LeftOut, Line, LineAccess, LineUse, Memory, Metric, Process, RecordFilter,
    Sharing, Truth, UnitTotals, step,
};

use super::*;
use crate::tests::{inputs, symbolizer};
use crate::{Options, Report, ReportInputs, TruthInputs};

/// The program, and one that runs beside it.
const PID: u32 = 42;

fn instruction(at: u64, class: Class, process: u32, counts: Counts) -> Instruction {
    Instruction {
        hart: 0,
        id: at as u32,
        pc: 0x1000 * u64::from(process + 1) + 4 * at,
        // Four bytes, but for the number.
        raw: (at as u32) << 2 | 3,
        target: None,
        class,
        privilege: 0,
        process: Some(process),
        function: (at / 10) as u32,
        offset: 4 * (at % 10),
        oracle_cycles: 0.0,
        counts,
    }
}

fn executed(executed: u64, mispredicted: u64) -> Counts {
    Counts { executed, mispredicted, ..Counts::default() }
}

/// Loads of a latency, half of them from the L1 cache and the others from memory, and decoded in two slots, one of them three times as often.
fn loads(loads: u64, cycles: u64) -> Counts {
    let record = |source: DataSource, missed: u64| {
        let latency =
            vec![LatencyCount { from: step(cycles / loads), times: loads / 2, weight: cycles / 2 }];
        Executions {
            header: 1 | missed | (source as u64) << header::DSRC_SHIFT,
            latencies: std::array::from_fn(|_| latency.clone()),
        }
    };
    Counts {
        executed: loads,
        execution_cycles: cycles,
        slots: [loads / 4, 0, 3 * loads / 4, 0, 0, 0, 0, 0],
        records: vec![
            record(DataSource::L1, 0),
            record(DataSource::Memory, header::L1MISS | header::LLMISS),
        ],
        memory: Some(Box::new(Memory { loads, ..Memory::default() })),
        ..Counts::default()
    }
}

fn line(pa: u64, va: u64, object: &str, loads: u64) -> Line {
    Line {
        pa,
        object: object.to_owned(),
        sharing: Sharing::None,
        uses: vec![LineAccess {
            hart: 0,
            process: Some(0),
            counts: LineUse { loads, va, ..LineUse::default() },
        }],
        exchanges: Vec::new(),
    }
}

/// Two functions: in the first, instruction 2 is a branch that is mispredicted 300 times, and instruction 12 of the second 100 times.
fn truth() -> Truth {
    let mut instructions: Vec<Instruction> = (0..20)
        .map(|at| match at {
            2 => instruction(at, Class::Branch, 0, executed(1000, 300)),
            12 => instruction(at, Class::Branch, 0, executed(1000, 100)),
            5 => instruction(at, Class::Load, 0, loads(600, 6000)),
            15 => instruction(at, Class::Load, 0, loads(400, 40_000)),
            _ => instruction(at, Class::Int, 0, executed(1000, 0)),
        })
        .collect();
    // A branch of a program that nobody samples.
    instructions.push(instruction(2, Class::Branch, 1, executed(9000, 9000)));
    let process = |pid| Process { pid: Some(pid), processes: None, name: format!("program {pid}") };
    Truth {
        format: FORMAT,
        line_bytes: LINE_BYTES,
        columns: Columns,
        functions: vec!["first".into(), "second".into()],
        processes: vec![process(PID), process(77)],
        instructions,
        units: vec![UnitTotals {
            overflows: 1000,
            samples: 700,
            collisions: 200,
            filtered: 90,
            dropped: 9,
            hart: 0,
        }],
        lines: vec![
            line(0x8000, 0x4000, "table", 500),
            line(0x8040, 0x4040, "table+0x40", 100),
            line(0x9000, 0x5000, "", 400),
        ],
        lines_left_out: LeftOut::default(),
    }
}

fn sample(at: u64) -> SyntheticSample {
    SyntheticSample {
        pid: PID,
        ip: 0x1000 + 4 * at,
        misc: 1 << 14 | 2,
        period: 10,
        ..SyntheticSample::default()
    }
}

/// Returns a file with one event and these samples.
fn file(event: &str, samples: &[SyntheticSample]) -> SampleFile {
    let mut file = SyntheticFile::new(&[(event, 10, 2)]);
    samples.iter().for_each(|sample| file.sample(sample));
    let mut read = SampleFile::parse(&file.bytes()).unwrap();
    read.file = "perf.data".to_owned();
    read
}

fn judged(metric: Metric, samples: &[SyntheticSample]) -> PreciseProfile {
    let truth = truth();
    let text = |raw: u32, _: u64| format!("op{}", raw >> 2);
    TruthIndex::new(&truth)
        .judge(&file("event:upp", samples), 0, metric, &text)
        .expect("something to judge")
}

#[test]
fn exact_samples_have_no_error() {
    let samples = [vec![sample(2); 30], vec![sample(12); 10]].concat();
    let found = judged(Metric::Mispredicts, &samples);
    assert_eq!((found.instruction.error, found.function.error), (0.0, 0.0));
    assert_eq!((found.samples, found.exact, found.wrong), (40, 40, 0.0));
    assert_eq!((found.truth, found.estimate), (400.0, 400.0));
    assert_eq!(found.skid, Some(Skid { mean: 0.0, known: 1.0 }));
    let [row, ..] = &found.instructions[..] else {
        panic!("no rows");
    };
    assert_eq!((row.name.as_str(), row.text.as_str()), ("first+0x8", "op2"));
    assert_eq!((row.truth, row.sampled), (0.75, 0.75));
    assert_eq!(found.line, None, "no addresses");
}

#[test]
fn skid_is_seen_at_instructions_and_not_at_functions() {
    // The samples are three instructions behind.
    let samples = [vec![sample(5); 30], vec![sample(15); 10]].concat();
    let found = judged(Metric::Mispredicts, &samples);
    assert_eq!((found.instruction.error, found.function.error), (1.0, 0.0));
    // The branch ends its block.
    assert_eq!((found.block.error, found.wrong), (1.0, 1.0));
    assert_eq!(found.skid, Some(Skid { mean: 3.0, known: 1.0 }));
    let [branches, loads] = [Class::Branch, Class::Load].map(|class| {
        let bias = found.classes.iter().find(|bias| bias.class == class);
        bias.map(|bias| (bias.truth, bias.sampled))
    });
    assert_eq!((branches, loads), (Some((1.0, 0.0)), Some((0.0, 1.0))));
}

#[test]
fn skid_into_the_next_function_is_not_known() {
    let samples = [vec![sample(2); 10], vec![sample(11); 10]].concat();
    let found = judged(Metric::Mispredicts, &samples);
    assert_eq!(found.skid, Some(Skid { mean: 0.0, known: 0.5 }));
    assert_eq!(found.instruction.error, 0.5);
}

#[test]
fn addresses_never_executed_are_wrong_and_other_programs_are_not_judged() {
    let other = SyntheticSample { pid: 77, ..sample(2) };
    // Too few of the other program to judge it.
    let samples = [vec![sample(2); 30], vec![sample(500); 10], vec![other]].concat();
    let found = judged(Metric::Mispredicts, &samples);
    assert_eq!((found.samples, found.wrong), (40, 0.25));
    assert_eq!(found.truth, 400.0, "of the sampled program");
    // A quarter is nowhere, and the second branch has nothing.
    assert_eq!(found.instruction.error, 0.25);
}

#[test]
fn addresses_are_judged_by_line_and_object() {
    let at = |at, pa, addr, weight| SyntheticSample { addr, phys_addr: pa, weight, ..sample(at) };
    let samples = [
        vec![at(5, 0x8008, 0x4008, 10); 30],
        // The wrong line of the right object, by its virtual address alone.
        vec![at(5, 0, 0x4048, 10); 30],
        vec![at(15, 0x9000, 0x5000, 100); 40],
    ]
    .concat();
    let found = judged(Metric::Loads, &samples);
    assert_eq!(found.instruction.error, 0.0);
    let (line, object) = (found.line.unwrap(), found.object.unwrap());
    assert!((line.error - 0.2).abs() < 1e-9, "{line:?}");
    assert_eq!(object.error, 0.0);
    // The samples have the true latencies: 10 cycles at one load, 100 at the other.
    let latency = found.latency.unwrap();
    assert!((latency.sampled - 46.0).abs() < 1e-9 && (latency.truth - 46.0).abs() < 1e-9);
}

#[test]
fn events_that_most_instructions_have_have_no_skid() {
    let samples: Vec<_> = (0..20).map(sample).collect();
    let found = judged(Metric::Instructions, &samples);
    assert_eq!((found.skid, found.wrong), (None, 0.0));
}

#[test]
fn the_report_has_both_sections() {
    let mut truth = truth();
    let mut shared = line(0xa000, 0x6000, "counters", 0);
    shared.sharing = Sharing::False;
    let own = |hart, written| LineAccess {
        hart,
        process: Some(0),
        counts: LineUse {
            stores: 50,
            written,
            peer_modified: 40,
            false_sharing: 40,
            cycles: 4000,
            peer_cycles: 4000,
            va: 0x6000,
            ..LineUse::default()
        },
    };
    shared.uses = vec![own(0, 0xff), own(1, 0xff00)];
    shared.exchanges = vec![Exchange {
        hart: 0,
        id: 5,
        counts: ExchangeCounts { stores: 40, cycles: 4000, ..ExchangeCounts::default() },
    }];
    truth.lines.push(shared);
    let hitm = SyntheticSample { addr: 0x6008, data_src: 16 << 19, ..sample(5) };
    let samples = [vec![sample(2); 150], vec![sample(12); 50]].concat();
    let mut skidding = file("branch-misses:u", &[vec![sample(3); 200], vec![hitm]].concat());
    skidding.file = "skid.data".to_owned();
    let other = file("cpu-clock", &[sample(2)]);
    let follows = file("dummy:u", &[sample(2)]);
    let files = [skidding, file("branch-misses:upp", &samples), other, follows];
    let metric = |event: &SampledEvent| match event.name.as_str() {
        "cpu-clock" | "dummy:u" => Err("the truth has no such event"),
        _ => Ok(Metric::Mispredicts),
    };
    let (_root, symbolizer) = symbolizer();
    let report = Report::build(ReportInputs {
        truth: Some(TruthInputs { truth: &truth, files: &files, metric: &metric }),
        ..inputs(&evaluation(), &symbolizer)
    });
    let precise = report.sections.precise.as_ref().unwrap();
    assert_eq!((precise.profiles.len(), precise.trust[0].profile), (2, 1));
    let text = report.text(&Options::default());
    let section = &text[text.find("\nPrecise sampling").expect("a section")..];
    for line in section.lines() {
        assert!(line.chars().count() <= 120, "{line}");
    }
    for wanted in [
        "  mispredictions: branch-misses:upp (perf.data)",
        "  cpu-clock (perf.data): the truth has no such event",
        "  hart 0: 1,000 overflows = 700 recorded + 200 collisions + 90 filtered + 9 dropped + 1 under way",
        "  by class: branch 100.0 / 100.0",
        "Contended lines",
        "counters ",
        "hart 1, program 42: writes bytes 8-15 (50 times)",
        "hart 0 waits at first+0x14: 0 loads, 40 stores, 4,000 cycles",
    ] {
        assert!(section.contains(wanted), "no {wanted:?} in:\n{section}");
    }
    assert!(!section.contains("dummy"), "{section}");
    let contended = report.sections.contended.as_ref().unwrap();
    assert_eq!((contended.cycles, contended.hitm_samples), (8000, 1));
    assert_eq!(contended.lines[0].hitm_samples, 1);
    let page = report.html("");
    assert!(page.contains("id=\"precise\"") && page.contains("id=\"contended\""));
    // Every number has an explanation.
    let json = report.json();
    for path in [
        "precise.profiles.0.skid.mean",
        "precise.profiles.0.block.error",
        "precise.units.0.dropped",
        "contended.lines.0.false_sharing",
    ] {
        assert!(crate::explain(&json, path).is_ok(), "{path}");
    }
}

#[test]
fn basic_blocks_end_at_branches() {
    // One behind the branch, and one before it.
    let found = |at| judged(Metric::Mispredicts, &vec![sample(at); 40]);
    assert_eq!(found(3).block.error, 1.0);
    // The second function's branch is a quarter.
    assert_eq!((found(1).instruction.error, found(1).block.error), (1.0, 0.25));
}

#[test]
fn instructions_count_for_their_slots() {
    let found = judged(Metric::Loads, &vec![sample(5); 40]);
    let [first, second, third] = &found.slots[..] else {
        panic!("{:?}", found.slots);
    };
    assert_eq!((first.slot, first.truth, first.sampled), (0, 0.25, 0.25));
    assert_eq!((second.truth, second.sampled), (0.0, 0.0));
    assert_eq!((third.truth, third.sampled), (0.75, 0.75));
}

/// What a load's sample says of where its line was.
fn source(level: u64) -> u64 {
    2 | 2 << 5 | level << 33
}

#[test]
fn what_passes_a_filter_is_judged_by_events_and_latencies() {
    let missed = RecordFilter {
        select: 1,
        mask: header::LLMISS,
        matches: header::LLMISS,
        latency: 3,
        threshold: 50,
        ..RecordFilter::default()
    };
    // Loads of 100 cycles from memory: only those of the second function.
    let long = SyntheticSample { weight: 110, data_src: source(13), ..sample(15) };
    let found = judged(Metric::Filtered(missed), &[vec![long; 30], vec![sample(5); 10]].concat());
    assert_eq!((found.truth, found.wrong), (200.0, 0.25));
    assert_eq!(found.instruction.error, 0.25);
    let latency = Latency { sampled: 110.0, truth: 100.0 };
    assert_eq!(found.latency, Some(latency));
    assert_eq!(found.instructions[0].latency, Some(latency));
    assert_eq!(found.instructions[1].latency, None);
    let [ram] = &found.sources[..] else {
        panic!("{:?}", found.sources);
    };
    assert_eq!((ram.source.as_str(), ram.truth, ram.sampled), ("RAM", 1.0, 1.0));
}

#[test]
fn data_sources_are_compared() {
    let hit = SyntheticSample { data_src: source(1), ..sample(5) };
    let found = judged(Metric::Loads, &vec![hit; 40]);
    let sources: Vec<_> =
        found.sources.iter().map(|bias| (bias.source.as_str(), bias.truth, bias.sampled)).collect();
    assert_eq!(sources, [("L1", 0.5, 1.0), ("RAM", 0.5, 0.0)]);
    assert_eq!(judged(Metric::Mispredicts, &[sample(2)]).sources, []);
}
