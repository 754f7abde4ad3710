//! Programs whose bounds follow from the machine's parameters, on the real hart and core: excerpts, paths and loops.

use std::collections::BTreeMap;

use commit_trace::{Commit, CommitRecord, CommitSink, Detail, InstId, StaticInfo};
use critical_path::{
    Cause, Code, Collector, CoreDescription, CriticalPath, Delays, Excerpts, Graph, Iterations,
    Widths, find_loops,
};
use devices::{Bus, Clock, RAM_BASE};
use machine::{Hart, Limit};
use timing::{Core, Preset};

const TEXT: u64 = RAM_BASE + 0x1000;
const DATA: u64 = RAM_BASE + 0x10_0000;

fn i_type(opcode: u32, funct3: u32, rd: u32, rs1: u32, imm: i32) -> u32 {
    (imm as u32 & 0xfff) << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode
}

fn r_type(funct3: u32, rd: u32, rs1: u32, rs2: u32, funct7: u32) -> u32 {
    funct7 << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | 0x33
}

fn addi(rd: u32, rs1: u32, imm: i32) -> u32 {
    i_type(0x13, 0, rd, rs1, imm)
}

fn add(rd: u32, rs1: u32, rs2: u32) -> u32 {
    r_type(0, rd, rs1, rs2, 0)
}

fn srli(rd: u32, rs1: u32, bits: i32) -> u32 {
    i_type(0x13, 5, rd, rs1, bits)
}

fn mul(rd: u32, rs1: u32, rs2: u32) -> u32 {
    r_type(0, rd, rs1, rs2, 1)
}

fn divu(rd: u32, rs1: u32, rs2: u32) -> u32 {
    r_type(5, rd, rs1, rs2, 1)
}

fn ld(rd: u32, rs1: u32, imm: i32) -> u32 {
    i_type(3, 3, rd, rs1, imm)
}

fn sd(rs2: u32, rs1: u32, imm: u32) -> u32 {
    (imm >> 5 & 0x7f) << 25 | rs2 << 20 | rs1 << 15 | 3 << 12 | (imm & 31) << 7 | 0x23
}

/// `funct3` 0: if equal; 1: if not. `by`: instructions.
fn branch(funct3: u32, rs1: u32, rs2: u32, by: i32) -> u32 {
    let offset = (4 * by) as u32;
    let bits = (offset >> 12 & 1) << 31 | (offset >> 5 & 63) << 25 | (offset >> 1 & 15) << 8;
    bits | (offset >> 11 & 1) << 7 | rs2 << 20 | rs1 << 15 | funct3 << 12 | 0x63
}

/// Always, to `by` instructions from here.
fn jump(by: i32) -> u32 {
    let offset = (4 * by) as u32;
    let bits = (offset >> 20 & 1) << 31 | (offset >> 1 & 0x3ff) << 21;
    bits | (offset >> 11 & 1) << 20 | (offset >> 12 & 0xff) << 12 | 0x6f
}

/// Takes excerpts, and the commit cycles of all.
struct Sink {
    collector: Collector,
    static_info: Vec<StaticInfo>,
    details: Vec<Detail>,
    commits: Vec<(InstId, u64)>,
}

impl CommitSink for Sink {
    fn commit(&mut self, _: &Commit) {}

    fn commits(&mut self, from: u64, records: &[CommitRecord], _: u64) {
        self.collector.commits(from, records, &self.details);
        self.details.clear();
        let mut cycle = from;
        for record in records {
            cycle += u64::from(record.commit_delta);
            self.commits.push((record.inst, cycle));
        }
    }

    fn details(&mut self, details: &[Detail]) {
        self.details.extend_from_slice(details);
    }

    fn begin_excerpt(&mut self) {
        self.collector.begin();
    }

    fn end_excerpt(&mut self, cycle: u64) -> u64 {
        self.collector.end();
        self.collector.next(cycle)
    }

    fn define(&mut self, static_info: &StaticInfo) {
        self.static_info.push(*static_info);
    }
}

/// A linked list that no L2 holds: nodes of a cache line each, in an order without strides.
const LIST: u64 = RAM_BASE + 0x40_0000;
const NODES: u64 = 1 << 16;
/// The register that points to its first node.
const NODE: u32 = 13;

const INSTRUCTIONS: u64 = 400_000;

/// Runs a program that does not end; with excerpts or without.
fn run(text: &[u32], excerpts: bool) -> Sink {
    let mut bus = Bus::new(16 << 20, 1, Clock::new(1_600_000_000, 10_000_000)).unwrap();
    for (at, &word) in (TEXT..).step_by(4).zip(text) {
        bus.ram.store(at, 4, word.into()).unwrap();
    }
    let mut hart = Hart::new(0);
    hart.set_pc(TEXT);
    hart.set_reg(10, DATA);
    hart.set_reg(11, 0x9e37_79b9_7f4a_7c15);
    hart.set_reg(12, 3);
    // A pointer to itself.
    bus.ram.store(DATA, 8, DATA).unwrap();
    hart.set_reg(NODE as u8, LIST);
    for node in 0..NODES {
        let next = (node * 40_693 + 12_289) % NODES;
        bus.ram.store(LIST + 64 * node, 8, LIST + 64 * next).unwrap();
    }
    let preset = Preset::load("boom-4w").unwrap();
    let description = CoreDescription {
        widths: Widths { decode: 4, int: 4, mem: 2, fp: 2 },
        delays: Delays {
            load_search: timing::delays::LOAD_SEARCH,
            store_data: timing::delays::STORE_DATA,
            branch_tag: timing::delays::BRANCH_TAG,
            register: timing::delays::REGISTER,
        },
    };
    let sink = Sink {
        collector: Collector::new(description),
        static_info: Vec::new(),
        details: Vec::new(),
        commits: Vec::new(),
    };
    let mut core = Core::new(&preset, sink);
    if excerpts {
        core.excerpts_from(10_000);
    }
    hart.run(&mut bus, &mut core, Limit::instructions(INSTRUCTIONS));
    core.into_sink()
}

/// A loop as excerpts have it.
struct Found {
    iterations: Iterations,
    /// Cycles per iteration, by cause.
    causes: BTreeMap<Cause, f64>,
    per_iteration: f64,
}

impl Found {
    fn share(&self, cause: Cause) -> f64 {
        self.causes.get(&cause).copied().unwrap_or(0.0) / self.per_iteration
    }
}

/// The loops of a program, the innermost first.
fn loops(text: &[u32]) -> Vec<Found> {
    let sink = run(text, true);
    let excerpts: Excerpts = sink.collector.finish();
    assert!(excerpts.list.len() > 1, "{}", excerpts.list.len());
    let code = Code::new(&sink.static_info);
    let graphs: Vec<Graph<'_>> =
        excerpts.list.iter().map(|excerpt| Graph::new(&code, excerpts.delays, excerpt)).collect();
    for (excerpt, graph) in excerpts.list.iter().zip(&graphs) {
        let rows = &excerpt.rows;
        let path = CriticalPath::new(graph, 0..rows.len());
        assert_eq!(path.cycles(), rows.last().unwrap().commit - excerpt.from);
        for pair in path.edges().windows(2) {
            assert_eq!(pair[0].to, pair[1].from, "without a gap");
        }
        for (at, row) in rows.iter().enumerate() {
            let waits = row.issue != 0 && row.issue < graph.ready(at);
            assert!(!waits || row.class == commit_trace::CycleClass::Store, "{row:?}");
        }
    }
    let insts = sink.static_info.iter().map(|info| info.id).collect();
    let found = find_loops(&code, &excerpts, &[(0, insts)].into());
    let measured = found.iter().map(|found| {
        let iterations = Iterations::of(found, &code, &excerpts, &graphs, &|_| 0);
        let count = iterations.list.len().max(1) as f64;
        let mut causes = BTreeMap::new();
        for ((_, cause), cycles) in &iterations.path {
            *causes.entry(*cause).or_insert(0.0) += *cycles as f64 / count;
        }
        let per_iteration = iterations.cycles() as f64 / count;
        let sum: f64 = causes.values().sum();
        assert!((sum - per_iteration).abs() < 1e-6, "{sum} of {per_iteration}: {causes:?}");
        Found { iterations, causes, per_iteration }
    });
    measured.collect()
}

/// The only loop: a body, and a jump back.
fn endless(body: &[u32]) -> Found {
    let mut text = body.to_vec();
    text.push(jump(-(body.len() as i32)));
    let mut found = loops(&text);
    assert_eq!(found.len(), 1);
    let found = found.remove(0);
    assert!(found.iterations.list.len() > 20);
    assert_eq!(found.iterations.exits + found.iterations.entries, 0);
    assert_eq!(found.iterations.trips(), None);
    found
}

#[test]
fn a_chain_of_additions_takes_a_cycle_each() {
    let found = endless(&[addi(5, 5, 1); 12]);
    assert!((found.per_iteration - 12.0).abs() < 0.1, "{}", found.per_iteration);
    assert!(found.share(Cause::Integer) > 0.95, "{:?}", found.causes);
}

#[test]
fn a_chain_of_multiplications_takes_its_latency() {
    let found = endless(&[mul(5, 5, 11), addi(6, 6, 1), mul(5, 5, 11)]);
    assert!((found.per_iteration - 12.0).abs() < 0.1, "{}", found.per_iteration);
    assert!(found.share(Cause::Multiply) > 0.95, "{:?}", found.causes);
    // Two instructions are on it.
    let insts: Vec<u32> = found
        .iterations
        .path
        .iter()
        .filter(|(_, cycles)| **cycles as f64 > 0.1 * found.iterations.cycles() as f64)
        .map(|((inst, _), _)| inst.0)
        .collect();
    assert_eq!(insts, [0, 2]);
}

#[test]
fn a_pointer_chase_in_the_l1_takes_its_latency() {
    let found = endless(&[ld(10, 10, 0), addi(6, 6, 1)]);
    // Two from issue to S0, three to the answer, one less by the early wake-up.
    assert!((found.per_iteration - 4.0).abs() < 0.1, "{}", found.per_iteration);
    assert!(found.share(Cause::LoadL1) > 0.95, "{:?}", found.causes);
}

#[test]
fn a_load_of_a_line_in_flight_waits_for_who_answers() {
    // The first load of a node asks for its line; the one that the next node depends on finds it on its way.
    let found = endless(&[ld(6, NODE, 8), ld(NODE, NODE, 0)]);
    assert!(found.per_iteration > 40.0, "{}", found.per_iteration);
    let below = [Cause::LoadL2, Cause::LoadLlc, Cause::LoadMemory];
    let below: f64 = below.into_iter().map(|cause| found.share(cause)).sum();
    assert!(below > 0.95, "{:?}", found.causes);
}

#[test]
fn steps_of_a_list_wait_for_each_other_and_those_of_an_array_do_not() {
    let waits = |text: &[u32], inst: u32| {
        let sink = run(text, true);
        let excerpts: Excerpts = sink.collector.finish();
        let code = Code::new(&sink.static_info);
        let excerpt = &excerpts.list[1];
        let graph = Graph::new(&code, excerpts.delays, excerpt);
        let mut rows = excerpt.rows.iter();
        let at = rows.rposition(|row| row.inst == InstId(inst)).unwrap();
        graph.waits_for_itself(at)
    };
    assert!(waits(&[ld(5, NODE, 0), add(NODE, 5, 0), jump(-2)], 0));
    assert!(!waits(&[ld(5, 10, 0), addi(10, 10, 8), jump(-2)], 0));
    // A sum waits for itself, but not the load that it adds.
    let sum = [ld(5, 10, 0), addi(10, 10, 8), add(6, 6, 5), jump(-3)];
    assert!(!waits(&sum, 0));
    assert!(waits(&sum, 2));
}

#[test]
fn independent_divisions_wait_for_the_unit() {
    let found = endless(&[divu(5, 11, 12), divu(6, 11, 12), divu(7, 11, 12)]);
    assert!(found.per_iteration > 3.0 * 60.0, "{}", found.per_iteration);
    assert!(found.share(Cause::DividerBusy) > 0.9, "{:?}", found.causes);
    let chain = endless(&[divu(11, 11, 0), divu(11, 11, 0)]);
    assert!(chain.share(Cause::Divide) > 0.9, "{:?}", chain.causes);
}

#[test]
fn independent_work_is_bound_by_width_and_multiplications_by_their_port() {
    let body: Vec<u32> = (0..23).map(|n| addi(5 + n % 4, 10, 1)).collect();
    let found = endless(&body);
    // Two fetch packets of up to four at least, which a taken jump ends.
    assert!((6.0..8.5).contains(&found.per_iteration), "{}", found.per_iteration);
    let front = found.share(Cause::Width) + found.share(Cause::Fetch);
    assert!(front > 0.9, "{:?}", found.causes);
    let body: Vec<u32> = (0..12).map(|n| mul(5 + n % 4, 11, 12)).collect();
    let found = endless(&body);
    assert!((found.per_iteration - 12.0).abs() < 0.5, "{}", found.per_iteration);
    assert!(found.share(Cause::Port) > 0.9, "{:?}", found.causes);
}

/// Pseudo-random bits in x5, of a multiplicative generator in x11.
fn random_bit() -> [u32; 3] {
    [mul(11, 11, 13), addi(11, 11, 1), srli(5, 11, 63)]
}

#[test]
fn an_unpredictable_branch_is_the_bound() {
    let mut body = vec![addi(13, 0, 0x5d5)];
    body.extend(random_bit());
    body.extend([branch(0, 5, 0, 2), addi(6, 6, 1), addi(7, 7, 1)]);
    let found = endless(&body);
    assert!(found.share(Cause::Mispredict) > 0.3, "{:?}", found.causes);
    let [best, _, worst] = found.iterations.typical().unwrap();
    let list = &found.iterations.list;
    assert!(list[worst].cycles > list[best].cycles + 8);
}

#[test]
fn a_load_behind_a_store_waits_for_its_data() {
    // Through memory from one iteration to the next.
    let found = endless(&[ld(5, 10, 64), addi(5, 5, 1), sd(5, 10, 64)]);
    assert!(found.per_iteration > 5.0, "{}", found.per_iteration);
    let through =
        found.share(Cause::LoadForward) + found.share(Cause::Store) + found.share(Cause::Flush);
    assert!(through > 0.5, "{:?}", found.causes);
}

/// The store's address comes late, so that the load reads what was there before, and is executed anew. The loop goes on all the same, whether the load
/// is its first instruction or not.
#[test]
fn a_load_that_overtook_a_store_is_the_bound() {
    let late = [mul(5, 11, 0), mul(5, 5, 11), add(5, 5, 10), sd(6, 5, 64)];
    let load = [ld(7, 10, 64), addi(6, 7, 1)];
    for body in [[&late[..], &load].concat(), [&load[..], &late].concat()] {
        let found = endless(&body);
        assert!(found.share(Cause::MemoryOrdering) > 0.4, "{:?}", found.causes);
        assert_eq!(found.share(Cause::Flush), 0.0, "{:?}", found.causes);
        // Each iteration has each instruction once, and the load a second time.
        let list = &found.iterations.list;
        let rows = |at: usize| list[at].rows.len();
        assert!((1..list.len()).all(|at| rows(at) == body.len() + 2), "{:?}", rows(1));
    }
}

#[test]
fn nested_loops_are_told_apart() {
    // x6 = 5; do { x5 = x5 * x11; } while (--x6); for ever.
    let found =
        loops(&[addi(6, 0, 5), mul(5, 5, 11), addi(6, 6, -1), branch(1, 6, 0, -2), jump(-4)]);
    let [inner, outer] = &found[..] else {
        panic!("{} loops", found.len());
    };
    let trips = inner.iterations.trips().unwrap();
    assert!((trips - 5.0).abs() < 0.1, "{trips}");
    // Without those that leave the loop.
    assert!((inner.per_iteration - 6.0).abs() < 0.2, "{}", inner.per_iteration);
    assert!((outer.per_iteration - 30.0).abs() < 0.3, "{}", outer.per_iteration);
    assert!(outer.share(Cause::Multiply) > 0.9, "{:?}", outer.causes);
    assert_eq!(outer.iterations.trips(), None);
}

#[test]
fn excerpts_change_nothing() {
    let mut body = vec![addi(13, 0, 0x5d5)];
    body.extend(random_bit());
    body.extend([branch(0, 5, 0, 2), ld(7, 10, 0), sd(5, 10, 8), add(6, 6, 7)]);
    body.push(jump(-(body.len() as i32)));
    let (with, without) = (run(&body, true), run(&body, false));
    assert_eq!(with.commits.len(), INSTRUCTIONS as usize);
    assert!(with.commits == without.commits);
    assert!(without.collector.finish().list.is_empty());
    let again = run(&body, true);
    assert_eq!(with.collector.finish(), again.collector.finish());
}
