//! Streams made by hand.

use commit_trace::{
    AccessKind, Class, CommitRecord, CycleClass, DataAccess, DataSource, Detail, Event, InstId,
    PacketFetch, Redirect, StaticInfo, TeaEvents, Translation,
};

use profile::ProcessId;

use crate::*;

mod processes;
mod records;

/// Each instruction enters the ROB in the cycle after decode, and leaves it ten cycles later.
struct Hart {
    collector: Collector,
    cycle: u64,
}

impl Hart {
    fn new(hart: usize, lines: &SharedLines) -> Self {
        let mut collector = Collector::new(hart, lines.clone());
        collector.open();
        Self { collector, cycle: 100 }
    }

    fn leaves(&mut self, inst: u32, redirect: Redirect, tea: TeaEvents, detail: Detail) {
        let start = self.cycle;
        let detail = Detail { decode: start, slot: 3, dispatch: start + 1, ..detail };
        let class = CycleClass::Alu;
        let record = CommitRecord::new(InstId(inst), 10, 9, 1, redirect, true, class, tea);
        self.collector.commits(start, &[record], &[detail]);
        self.cycle += 10;
    }

    fn accesses(&mut self, inst: u32, access: DataAccess, latency: u64) {
        let issue = self.cycle + 2;
        let detail = Detail { issue, complete: issue + latency, access, ..Detail::default() };
        self.leaves(inst, Redirect::None, TeaEvents::default(), detail);
    }

    fn load(&mut self, pa: u64, source: DataSource) {
        self.accesses(1, access(AccessKind::Load, pa, source), 30);
    }

    fn store(&mut self, pa: u64, source: DataSource) {
        self.accesses(2, access(AccessKind::Store, pa, source), 30);
    }
}

fn access(kind: AccessKind, pa: u64, source: DataSource) -> DataAccess {
    DataAccess { kind, size: 8, va: 0x4000_0000 + pa, pa, source, ..DataAccess::default() }
}

/// Returns what was counted, by the instruction's number.
fn by_number(collector: Collector) -> Vec<Counted> {
    let mut found: Vec<Counted> = Vec::new();
    for own in collector.finish(|_| true).instructions {
        while found.len() <= own.inst.0 as usize {
            found.push(Counted {
                inst: InstId(found.len() as u32),
                static_info: None,
                mapped_in: None,
                process: None,
                counts: Counts::default(),
            });
        }
        let inst = own.inst.0 as usize;
        found[inst] = own;
    }
    found
}

fn counts(hart: Hart, inst: usize) -> Counts {
    by_number(hart.collector)[inst].counts.clone()
}

#[test]
fn how_an_instruction_leaves_is_counted() {
    let mut hart = Hart::new(0, &SharedLines::new(1));
    let flushing = Detail { flushed: 7, ..Detail::default() };
    hart.leaves(0, Redirect::None, TeaEvents::default(), Detail::default());
    hart.leaves(0, Redirect::Mispredict, TeaEvents::FL_MB, flushing);
    hart.leaves(0, Redirect::Exception, TeaEvents::FL_MO, Detail::default());
    hart.leaves(0, Redirect::Exception, TeaEvents::FL_EX, Detail::default());
    hart.leaves(0, Redirect::Interrupt, TeaEvents::default(), Detail::default());
    let expected = Counts {
        executed: 2,
        trapped: 2,
        replayed: 1,
        mispredicted: 1,
        flushed: 7,
        total_cycles: 50,
        head_cycles: 45,
        slots: [0, 0, 0, 5, 0, 0, 0, 0],
        ..Counts::default()
    };
    assert_eq!(counts(hart, 0), expected);
}

#[test]
fn of_a_commit_group_the_first_was_the_oldest() {
    let mut collector = Collector::new(0, SharedLines::new(1));
    collector.open();
    let detail = |decode| Detail { decode, dispatch: decode + 2, ..Detail::default() };
    let details = [detail(10), detail(10), detail(40)];
    let record = |inst, delta| CommitRecord::from_packed(InstId(inst), delta, 0, 0);
    // Cycles 30, 30 and 50.
    collector.commits(20, &[record(0, 10), record(1, 0), record(2, 20)], &details);
    let found = by_number(collector);
    let cycles = |n: usize| (found[n].counts.head_cycles, found[n].counts.total_cycles);
    assert_eq!([cycles(0), cycles(1), cycles(2)], [(10, 20), (0, 20), (8, 10)]);
}

#[test]
fn accesses_are_told_apart_by_source_translation_and_latency() {
    let mut hart = Hart::new(0, &SharedLines::new(1));
    hart.load(0x1000, DataSource::L1);
    hart.load(0x1000, DataSource::InFlight);
    let mut walked = access(AccessKind::Load, 0x2000, DataSource::Memory);
    walked.translation = Translation::Walk;
    walked.translating = 44;
    hart.accesses(1, walked, 200);
    let mut written = access(AccessKind::Store, 0x3000, DataSource::Llc);
    written.written = hart.cycle + 102;
    hart.accesses(2, written, 1);
    let mut atomic = access(AccessKind::Atomic, 0x3000, DataSource::L1);
    atomic.translation = Translation::L2;
    hart.accesses(3, atomic, 5);
    let found = by_number(hart.collector);
    let memory = |n: usize| found[n].counts.memory.clone().unwrap();
    let loads = memory(1);
    assert_eq!((loads.loads, loads.stores, loads.translating), (3, 0, 44));
    assert_eq!(loads.sources, [0, 1, 0, 1, 0, 0, 1, 0, 0, 0, 0]);
    assert_eq!(loads.translations, [2, 0, 1]);
    assert_eq!((loads.latencies[bucket(30)], loads.latencies[bucket(200)]), (2, 1));
    assert_eq!(found[2].counts.execution_cycles, 100, "until it is written");
    assert_eq!((memory(3).loads, memory(3).stores), (1, 1));

    let instruction = |n: usize, class| Instruction {
        hart: 0,
        id: n as u32,
        pc: 0,
        raw: 0,
        target: None,
        class,
        privilege: 0,
        process: None,
        function: 0,
        offset: 0,
        oracle_cycles: 0.0,
        counts: found[n].counts.clone(),
    };
    let (load, store) = (instruction(1, Class::Load), instruction(2, Class::Store));
    let of = |metric: Metric| [metric.of(&load), metric.of(&store)];
    assert_eq!(of(Metric::L1dMisses), [1.0, 1.0], "in flight is no miss");
    assert_eq!(of(Metric::L1dLoadMisses), [1.0, 0.0]);
    assert_eq!(of(Metric::L1dStoreMisses), [0.0, 1.0]);
    assert_eq!(of(Metric::LlcMisses), [1.0, 0.0]);
    assert_eq!(of(Metric::DtlbMisses), [1.0, 0.0]);
    assert_eq!(of(Metric::Branches), [0.0, 0.0]);
}

#[test]
fn fetches_are_counted_of_the_first_instruction_of_a_packet() {
    let mut hart = Hart::new(0, &SharedLines::new(1));
    let packet = PacketFetch {
        asked: 1,
        delivered: 9,
        pa: 0x1000,
        source: DataSource::L2,
        translation: Translation::Walk,
        translating: 3,
    };
    let first = Detail { packet, ..Detail::default() };
    hart.leaves(0, Redirect::None, TeaEvents::default(), first);
    hart.leaves(0, Redirect::None, TeaEvents::default(), Detail::default());
    let found = counts(hart, 0);
    assert_eq!((found.executed, found.l1i_misses, found.itlb_misses), (2, 1, 1));
}

#[test]
fn only_the_region_counts() {
    let lines = SharedLines::new(1);
    let mut hart = Hart::new(0, &lines);
    hart.load(0x1000, DataSource::L1);
    hart.collector.event(&Event::Region(false));
    hart.load(0x1000, DataSource::L1);
    hart.collector.event(&Event::Region(true));
    hart.load(0x1000, DataSource::L1);
    assert_eq!(lines.with(|lines| lines.lines[&0x40].uses[0].counts.loads), 2);
    hart.collector.event(&Event::RegionAnew);
    hart.load(0x1000, DataSource::L1);
    assert_eq!(lines.with(|lines| lines.lines[&0x40].uses[0].counts.loads), 1);
    assert_eq!(counts(hart, 1).executed, 1);
}

/// Two harts, and the lines that they share.
fn two_harts() -> (SharedLines, Hart, Hart) {
    let lines = SharedLines::new(2);
    let (one, other) = (Hart::new(0, &lines), Hart::new(1, &lines));
    (lines, one, other)
}

fn only_line(lines: SharedLines) -> Line {
    let (found, left_out) =
        lines.with(|lines| std::mem::take(lines).into_file(|_, _| None, |_, inst| inst));
    assert_eq!(left_out, LeftOut::default());
    assert_eq!(found.len(), 1);
    found[0].clone()
}

#[test]
fn words_of_one_line_are_shared_falsely() {
    let (lines, mut one, mut other) = two_harts();
    one.store(0x1000, DataSource::Memory);
    other.store(0x1008, DataSource::PeerModified);
    for _ in 0..10 {
        one.store(0x1000, DataSource::PeerModified);
        one.load(0x1000, DataSource::L1);
        other.store(0x1008, DataSource::PeerModified);
    }
    let line = only_line(lines);
    assert!(line.is_contended());
    assert_eq!(line.sharing, Sharing::False);
    // The first access of each is neither.
    assert_eq!(line.sum(|own| own.false_sharing), 20);
    assert_eq!(line.sum(|own| own.true_sharing), 0);
    let [first, second] = &line.uses[..] else {
        panic!("two harts: {line:?}");
    };
    assert_eq!((first.counts.read, first.counts.written), (0xff, 0xff));
    assert_eq!((second.counts.read, second.counts.written), (0, 0xff00));
    assert_eq!(first.counts.va, 0x4000_1000);
    assert_eq!((first.counts.peer_modified, second.counts.peer_modified), (10, 11));
    assert_eq!(second.counts.peer_cycles, 11 * 30);
    let [most, least] = &line.exchanges[..] else {
        panic!("two instructions: {:?}", line.exchanges);
    };
    assert_eq!((most.hart, most.id, most.counts.stores), (1, 2, 11));
    assert_eq!((least.hart, least.counts.cycles), (0, 300));
}

#[test]
fn a_word_that_is_handed_over_is_shared_truly() {
    let (lines, mut one, mut other) = two_harts();
    one.store(0x1000, DataSource::Memory);
    other.load(0x1000, DataSource::PeerModified);
    for _ in 0..10 {
        one.store(0x1000, DataSource::Upgrade);
        other.load(0x1000, DataSource::PeerModified);
    }
    let line = only_line(lines);
    assert_eq!(line.sharing, Sharing::True);
    assert_eq!(line.sum(|own| own.true_sharing), 10);
    assert_eq!(line.sum(|own| own.false_sharing), 0);
    assert_eq!(line.sum(|own| own.upgrades), 10);
}

#[test]
fn the_byte_may_be_accessed_later_than_the_miss() {
    let (lines, mut one, mut other) = two_harts();
    one.load(0x1008, DataSource::Memory);
    other.store(0x1000, DataSource::PeerClean);
    // The miss is for another word, but then it reads what was written.
    one.load(0x1008, DataSource::PeerModified);
    one.load(0x1000, DataSource::L1);
    let line = only_line(lines);
    assert_eq!((line.sharing, line.sum(|own| own.true_sharing)), (Sharing::True, 1));
}

#[test]
fn programs_are_told_apart_though_the_hart_is_the_same() {
    let lines = SharedLines::new(1);
    let mut hart = Hart::new(0, &lines);
    for (id, space) in [(1, 7), (2, 1)] {
        hart.collector.define(&StaticInfo {
            id: InstId(id),
            space,
            pc: 0,
            raw: 0,
            len: 4,
            privilege: 0,
            class: Class::Load,
            target: None,
        });
    }
    // The kernel clears the page.
    let clearing = DataAccess {
        va: 0xffff_ffff_0000_1000,
        size: 64,
        ..access(AccessKind::Store, 0x1000, DataSource::Memory)
    };
    hart.accesses(2, clearing, 30);
    hart.load(0x1008, DataSource::L1);
    hart.load(0x1010, DataSource::L1);
    let process = |_, id: ProcessId| Some(id.0);
    let (found, _) = lines.with(|lines| std::mem::take(lines).into_file(process, |_, inst| inst));
    let uses: Vec<_> = found[0]
        .uses
        .iter()
        .map(|own| (own.process, own.counts.va, own.counts.read, own.counts.written))
        .collect();
    let expected =
        [(None, 0xffff_ffff_0000_1000, 0, u64::MAX), (Some(0), 0x4000_1000, 0xff_ff00, 0)];
    assert_eq!(uses, expected);
}

#[test]
fn an_access_over_two_lines_touches_both() {
    let lines = SharedLines::new(1);
    let mut hart = Hart::new(0, &lines);
    hart.store(0x103c, DataSource::Memory);
    let (found, _) =
        lines.with(|lines| std::mem::take(lines).into_file(|_, _| Some(3), |_, inst| inst));
    let masks: Vec<_> = found
        .iter()
        .map(|line| (line.pa, line.sum(|own| own.written), line.sum(|own| own.stores)))
        .collect();
    // The access is the first one's.
    assert_eq!(masks, [(0x1000, 0xf << 60, 1), (0x1040, 0xf, 0)]);
    assert_eq!(found[0].uses[0].process, None);
}

#[test]
fn registers_of_devices_and_nothing_are_no_lines() {
    let lines = SharedLines::new(1);
    let mut hart = Hart::new(0, &lines);
    hart.load(0x1000_0000, DataSource::Device);
    hart.accesses(1, DataAccess::default(), 3);
    assert!(lines.with(|lines| lines.lines.is_empty()));
}

#[test]
fn the_file_reads_back() {
    let (lines, mut one, mut other) = two_harts();
    one.collector.define(&records::defined(2, records::STORE));
    one.store(0x1000, DataSource::Memory);
    other.store(0x1008, DataSource::PeerModified);
    let (lines, lines_left_out) =
        lines.with(|lines| std::mem::take(lines).into_file(|_, _| None, |_, inst| inst));
    let info = StaticInfo {
        id: InstId(2),
        space: 1,
        pc: 0xffff_ffff_8000_1234,
        raw: 0x13,
        len: 4,
        privilege: 1,
        class: Class::Store,
        target: None,
    };
    let truth = Truth {
        format: FORMAT,
        line_bytes: LINE_BYTES,
        columns: Columns,
        functions: vec!["memcpy".into()],
        processes: vec![Process::default()],
        instructions: vec![Instruction {
            hart: 0,
            id: info.id.0,
            pc: info.pc,
            raw: info.raw,
            target: Some(0x80),
            class: info.class,
            privilege: info.privilege,
            process: None,
            function: 0,
            offset: 4,
            oracle_cycles: 1.5,
            counts: counts(one, 2),
        }],
        units: vec![UnitTotals {
            overflows: 9,
            samples: 4,
            collisions: 3,
            filtered: 1,
            ..UnitTotals::default()
        }],
        lines,
        lines_left_out,
    };
    let text = serde_json::to_string(&truth).unwrap();
    assert!(text.contains(r#"[0,2,"0xffffffff80001234",19,"Store",1,null,0,4,1.5,[1,10,9,30],[0,1,0,[0,0,0,0,0,0,1],[1],[0,0,0,0,1]],"0x80",[0,0,0,1],[[2,111105,[10,1,30],[1,1,30],[1,1,30],[30,1,30],[9,1,30]]]]"#), "{text}");
    assert!(text.contains(r#""overflows":9,"samples":4"#), "{text}");
    assert_eq!(truth.units[0].under_way(), 1);
    let back: Truth = serde_json::from_str(&text).unwrap();
    assert_eq!(back, truth);
    let error =
        serde_json::from_str::<Truth>(&text.replace("0xffffffff80001234", "12")).unwrap_err();
    assert!(error.to_string().contains("expected an address such as"), "{error}");
}

#[test]
fn slow_accesses_are_counted_by_line() {
    let lines = SharedLines::new(1);
    let mut hart = Hart::new(0, &lines);
    hart.load(0x1000, DataSource::L1);
    // Decoded thirty cycles before it leaves, and twenty-nine.
    for before in [20, 19] {
        for kind in [AccessKind::Load, AccessKind::Store] {
            let detail = Detail {
                decode: hart.cycle - before,
                access: access(kind, 0x1000, DataSource::L1),
                ..Detail::default()
            };
            let record = CommitRecord::from_packed(InstId(1), 10, 0, 0);
            hart.collector.commits(hart.cycle, &[record], &[detail]);
        }
    }
    let line = only_line(lines);
    assert_eq!((line.sum(|own| own.slow), line.sum(|own| own.slow_loads)), (2, 1));
    let perf_mem = |select, threshold| {
        Metric::Filtered(RecordFilter { select, threshold, ..RecordFilter::default() })
            .of_line(&line.uses[0].counts)
    };
    assert_eq!([perf_mem(1, 30), perf_mem(3, 30)], [Some(1), Some(2)]);
    assert_eq!([perf_mem(1, 31), perf_mem(2, 30)], [None, None]);
}

#[test]
fn a_file_that_does_not_hold_together_is_refused() {
    let instruction = || Instruction {
        hart: 0,
        id: 0,
        pc: 0x1000,
        raw: 0,
        target: None,
        class: Class::Int,
        privilege: 0,
        process: Some(0),
        function: 0,
        offset: 0,
        oracle_cycles: 0.0,
        counts: Counts::default(),
    };
    let truth = || Truth {
        format: FORMAT,
        line_bytes: LINE_BYTES,
        functions: vec!["main".into()],
        processes: vec![Process::default()],
        instructions: vec![instruction()],
        ..Truth::default()
    };
    assert_eq!(truth().check(), Ok(()));
    let error = |change: fn(&mut Truth)| {
        let mut changed = truth();
        change(&mut changed);
        // Through a file, as it comes.
        let text = serde_json::to_string(&changed).unwrap();
        serde_json::from_str::<Truth>(&text).unwrap().check().unwrap_err()
    };
    assert_eq!(error(|t| t.format = 1), "format: expected 2, found 1");
    assert_eq!(error(|t| t.line_bytes = 0), "line_bytes: expected 64, found 0");
    assert_eq!(
        error(|t| t.instructions[0].function = 1),
        "instructions.function: expected a number below 1, found 1"
    );
    assert_eq!(
        error(|t| t.instructions[0].process = Some(7)),
        "instructions.process: expected a number below 1, found 7"
    );
    let line = |process| Line {
        pa: 0,
        object: String::new(),
        sharing: Sharing::None,
        uses: vec![LineAccess { hart: 0, process, counts: LineUse::default() }],
        exchanges: Vec::new(),
    };
    let mut used = truth();
    used.lines = vec![line(None), line(Some(0))];
    assert_eq!(used.check(), Ok(()));
    used.lines.push(line(Some(1)));
    assert_eq!(used.check(), Err("lines.uses.process: expected a number below 1, found 1".into()));
}
