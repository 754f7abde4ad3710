//! Events of predictors, issue ports and queues: beside what the records of random programs say, and in programs of
//! which they are known.

use crate::asm::{Program, State, TEXT};
use crate::random::program;
use commit_trace::{Commit, CommitSink, Stages, StaticInfo};
use devices::{Bus, Clock};
use isa::{InstClass, PerfEvent, PerfEvent as E, Selection, TimingModel as _};
use machine::{Hart, Limit, RunExit};
use timing::{Core, Preset};

/// Keeps everything, with the stages.
#[derive(Default)]
struct Records {
    commits: Vec<Commit>,
    stages: Vec<Stages>,
    classes: Vec<InstClass>,
}

impl CommitSink for Records {
    const STAGES: bool = true;

    fn commit(&mut self, commit: &Commit) {
        self.commits.push(*commit);
    }

    fn stages(&mut self, stages: &[Stages]) {
        self.stages.extend_from_slice(stages);
    }

    fn define(&mut self, static_info: &StaticInfo) {
        self.classes.push(isa::decode(static_info.raw).class);
    }
}

const INT_PORTS: [PerfEvent; 5] =
    [E::IssuedInt0, E::IssuedInt1, E::IssuedInt2, E::IssuedInt3, E::IssuedInt4];
const MEM_PORTS: [PerfEvent; 2] = [E::IssuedMem0, E::IssuedMem1];
const FP_PORTS: [PerfEvent; 2] = [E::IssuedFp0, E::IssuedFp1];
const QUEUES: [PerfEvent; 3] = [E::MemQueueOccupancy, E::IntQueueOccupancy, E::FpQueueOccupancy];

fn sum<S: CommitSink>(core: &Core<S>, events: &[PerfEvent]) -> u64 {
    events.iter().map(|&event| core.count(event)).sum()
}

/// Parts that make up wholes, in any program.
#[track_caller]
fn check_sums<S: CommitSink>(core: &Core<S>) {
    let wholes: [(PerfEvent, &[PerfEvent]); 8] = [
        (
            E::BranchMisses,
            &[
                E::MissesBimodal,
                E::MissesTage,
                E::MissesLoop,
                E::MissesReturns,
                E::MissesBtb,
                E::MissesMicroBtb,
                E::MissesUnknown,
            ],
        ),
        (E::CondMisses, &[E::MissesBimodal, E::MissesTage, E::MissesLoop]),
        (E::ReturnMisses, &[E::MissesReturns]),
        (E::Branches, &[E::BtbHits, E::BtbMisses]),
        (E::Branches, &[E::MicroBtbHits, E::MicroBtbMisses]),
        (E::RedirectsF2, &[E::F2Address, E::F2History]),
        (E::RedirectsF3, &[E::F3Address, E::F3History]),
        (
            E::StallsIssueQueue,
            &[E::StallsMemQueue, E::StallsIntQueue, E::StallsFpQueue, E::StallsTags],
        ),
    ];
    for (whole, parts) in wholes {
        assert_eq!(sum(core, parts), core.count(whole), "{whole:?}");
    }
    let targets = [E::MissesBtb, E::MissesMicroBtb, E::MissesUnknown];
    let indirect = [E::IndirectMisses, E::IndirectCallMisses];
    assert_eq!(sum(core, &targets), sum(core, &indirect));
    assert!(core.count(E::StallsFpRegisters) <= core.count(E::StallsRegisters));
    assert!(core.count(E::BankConflicts) <= core.count(E::BankRetries));
}

#[test]
fn what_issues_in_random_programs_is_what_their_records_say() {
    let mut seen = [false; 5];
    for seed in 0..16 {
        let mut preset = Preset::load(["boom-4w", "rtl-mega"][seed as usize % 2]).unwrap();
        if seed >= 12 {
            for queue in ["issue.int_entries", "issue.mem_entries"] {
                preset.set(queue, "8").unwrap();
            }
        }
        let mut bus = Bus::new(16 << 20, 1, Clock::new(1_600_000_000, 10_000_000)).unwrap();
        let mut hart = Hart::new(0);
        program(seed, &mut bus, &mut hart);
        let mut core = Core::new(&preset, Records::default());
        core.count_all();
        let exit = hart.run(&mut bus, &mut core, Limit::instructions(20_000));
        assert_eq!(exit, RunExit::Limit);
        check_sums(&core);
        let records = core.sink();
        let (mut int, mut mem, mut either) = (0, 0, 0);
        let mut waited = [0; 2];
        for (commit, stages) in records.commits.iter().zip(&records.stages) {
            let stages = stages.at(commit.commit);
            let Some(issue) = stages.issue else {
                continue;
            };
            // The ROB has an instruction from the cycle after its dispatch on.
            let waits = |until: u64| until + 1 - commit.dispatch;
            match records.classes[commit.inst.0 as usize] {
                InstClass::Store => {
                    // A store can commit five cycles after the later of address and data.
                    let last = stages.complete - 5;
                    mem += 1 + u64::from(last > issue);
                    either += u64::from(last == issue);
                    waited[0] += waits(last);
                }
                InstClass::Load => {
                    mem += 1;
                    waited[0] += waits(issue);
                }
                InstClass::Amo | InstClass::LoadReserved | InstClass::StoreConditional => mem += 1,
                // Serialising instructions take the machine to themselves, and no slot.
                InstClass::Csr | InstClass::Ecall | InstClass::Xret | InstClass::Wfi => int += 1,
                _ => {
                    int += 1;
                    waited[1] += waits(issue);
                }
            }
        }
        assert_eq!(sum(&core, &INT_PORTS), int, "{seed}");
        // Data that issued before the address cannot be told from data that issued with it.
        let found = sum(&core, &MEM_PORTS);
        assert!((mem..=mem + either).contains(&found), "{seed}: {found}, {mem}, {either}");
        assert_eq!(sum(&core, &FP_PORTS), 0);
        assert_eq!(QUEUES.map(|event| core.count(event)), [waited[0], waited[1], 0], "{seed}");
        for (seen, event) in seen.iter_mut().zip([
            E::StallsIssueQueue,
            E::MissesBimodal,
            E::MissesTage,
            E::F2Address,
            E::F3Address,
        ]) {
            *seen |= core.count(event) != 0;
        }
    }
    assert_eq!(seen, [true; 5]);
}

/// Runs a function once; what was counted from before its last instruction, a return to nowhere.
fn run(preset: &Preset, code: &str, counted: bool) -> Core<Records> {
    let program = Program::new(code);
    let mut core = Core::new(preset, Records::default());
    if counted {
        core.count_all();
    }
    program.define(&mut core);
    let mut state = State::new();
    let data = 0x8100_0000;
    state.poke(data, data);
    (state.x[10], state.x[11], state.x[19], state.pc) = (200, data, 0x1000, TEXT);
    program.run(&mut core, &mut state);
    if counted {
        check_sums(&core);
    }
    core
}

#[test]
fn each_unit_has_its_port() {
    let preset = Preset::load("boom-4w").unwrap();
    let n = 64;
    let lines = |line: &str| vec![line; n as usize].join("; ");
    let end = "; jalr zero,s3";
    for (line, port, queue) in [
        // A chain takes the lowest port.
        ("addi a2,a2,1", E::IssuedInt0, 1),
        ("mul a2,a2,a2", E::IssuedInt2, 1),
        ("div a2,a2,a3", E::IssuedInt3, 1),
        ("fmv.d.x fa0,a2", E::IssuedInt0, 1),
        ("ld a1,0(a1)", E::IssuedMem0, 0),
        ("fadd.d fa0,fa0,fa0", E::IssuedFp0, 2),
        ("fdiv.d fa0,fa0,fa1", E::IssuedFp0, 2),
        ("fmv.x.d a2,fa0", E::IssuedFp0, 2),
        ("csrr a2,mstatus", E::IssuedInt1, 3),
        ("amoadd.d a2,a3,(a1)", E::IssuedMem0, 3),
        ("fence", E::IssuedFp1, 3),
    ] {
        let core = run(&preset, &format!("FN(f) {}{end}", lines(line)), true);
        let others = u64::from(port == E::IssuedInt0);
        // The jump at the end goes by integer port 0.
        let expected = if line == "fence" { 0 } else { n + others };
        assert_eq!(core.count(port), expected, "{line}");
        let all = sum(&core, &INT_PORTS) + sum(&core, &MEM_PORTS) + sum(&core, &FP_PORTS);
        assert_eq!(all, if line == "fence" { 1 } else { n + 1 }, "{line}");
        for (number, event) in QUEUES.into_iter().enumerate() {
            // Each instruction waits for a cycle at least; the jump does, too.
            let least = if number == queue { n } else { 0 } + u64::from(number == 1);
            let found = core.count(event);
            assert!(found >= least, "{line}: {event:?} {found}");
            assert!(number == queue || number == 1 || found == 0, "{line}: {event:?} {found}");
        }
    }
}

#[test]
fn stores_issue_as_one_or_two() {
    let preset = Preset::load("boom-4w").unwrap();
    let n = 16;
    let count = |line: &str| {
        let lines = vec![line; n].join("; ");
        let core = run(&preset, &format!("FN(f) fence; {lines}; jalr zero,s3"), true);
        [&MEM_PORTS, &FP_PORTS].map(|ports| sum(&core, ports))
    };
    assert_eq!(count("sd a2,0(a1)"), [16, 0], "both are there");
    assert_eq!(count("div a2,a2,a3; sd a2,0(a1)"), [32, 0], "the data is late");
    assert_eq!(count("fadd.d fa0,fa0,fa0; fsd fa0,0(a1)"), [16, 32], "FP data goes by itself");
}

#[test]
fn nothing_of_issue_is_counted_while_nobody_asks() {
    let preset = Preset::load("boom-4w").unwrap();
    let code = "FN(f) 1: addi a2,a2,1; ld a3,0(a1); addi a0,a0,-1; bnez a0,1b; jalr zero,s3";
    let [without, with] = [false, true].map(|counted| run(&preset, code, counted));
    assert_eq!(without.cycle(), with.cycle());
    assert_eq!(sum(&without, &INT_PORTS) + sum(&without, &QUEUES), 0);
    assert_eq!(sum(&with, &INT_PORTS), 601);
    let mut core = Core::new(&preset, Records::default());
    core.select(3, Selection::new(E::IssuedMem0.selector().into()));
    core.select(4, Selection::new(E::Load.selector().into()));
    let program = Program::new(code);
    program.define(&mut core);
    let mut state = State::new();
    (state.x[10], state.x[11], state.x[19], state.pc) = (100, 0x8100_0000, 0x1000, TEXT);
    program.run(&mut core, &mut state);
    let mem: u64 = sum(&core, &MEM_PORTS);
    assert_eq!([mem, core.selected(4)], [100, 100]);
    core.select(3, Selection::default());
    (state.x[10], state.pc) = (100, TEXT);
    program.run(&mut core, &mut state);
    assert_eq!([sum(&core, &MEM_PORTS), core.selected(4)], [100, 200]);
}

/// Calls, one in the other, so many deep.
fn calls(depth: usize) -> String {
    let call = |n: usize| {
        let at = 8 * n;
        format!("FN(f{n}) sd ra,{at}(a1); jal ra,f{}; ld ra,{at}(a1); ret\n", n + 1)
    };
    let inner: String = (1..depth).map(call).collect();
    format!("FN(f) jal ra,f1; jalr zero,s3\n{inner}FN(f{depth}) ret\n")
}

#[test]
fn a_return_stack_is_full_and_empty() {
    let preset = Preset::load("boom-4w").unwrap();
    let size = preset.predictor.returns as usize;
    for (depth, over) in [(size - 1, 0), (size, 0), (size + 1, 1), (size + 9, 9)] {
        let core = run(&preset, &calls(depth), true);
        assert_eq!(core.count(E::DirectCalls), depth as u64);
        assert_eq!(core.count(E::Returns), depth as u64);
        let found = [E::ReturnsFull, E::ReturnsEmpty, E::MissesReturns];
        assert_eq!(found.map(|event| core.count(event)), [over; 3], "{depth}");
    }
}

#[test]
fn mispredictions_are_of_the_predictor_that_decided() {
    let preset = Preset::load("boom-4w").unwrap();
    let core = run(&preset, "FN(f) 1: addi a0,a0,-1; bnez a0,1b; jalr zero,s3", true);
    // The loop is taken 199 times, at first against what an empty bimodal table says.
    let by = [E::MissesBimodal, E::MissesTage, E::MissesLoop].map(|event| core.count(event));
    assert!(by[0] >= 1 && by.iter().sum::<u64>() <= 4, "{by:?}");
    // Nothing knows where the jump at the end goes, as it has never been there.
    assert_eq!(core.count(E::MissesUnknown), 1);
    assert_eq!([E::MissesBtb, E::MissesMicroBtb].map(|event| core.count(event)), [0, 0]);
    // A jump that goes to another place each time: the buffers know where it went before.
    let target = "addi a0,a0,-1; bnez a0,1b; jalr zero,s3";
    let jump = "li a4,1; slli a4,a4,31; addi a4,a4,128; li a6,192; 1: xor a4,a4,a6; jalr zero,a4";
    let code = format!("FN(f) {jump}\nFN(g) {target}\nFN(h) {target}\n");
    let core = run(&preset, &code, true);
    let targets = [E::MissesBtb, E::MissesMicroBtb, E::MissesUnknown];
    let [btb, micro_btb, unknown] = targets.map(|event| core.count(event));
    assert!(btb > 50 && unknown <= 12, "{btb} {micro_btb} {unknown}");
    // Without TAGE and loop predictor the bimodal table is alone.
    let mut alone = preset.clone();
    for key in ["predictor.tage", "predictor.loops"] {
        alone.set(key, "false").unwrap();
    }
    let code = "FN(f) 1: andi a2,a0,1; bnez a2,2f; nop; 2: addi a0,a0,-1; bnez a0,1b; jalr zero,s3";
    let [with, without] = [&preset, &alone].map(|preset| run(preset, code, true));
    assert_eq!(without.count(E::MissesBimodal), without.count(E::CondMisses));
    assert!(without.count(E::MissesBimodal) > 50);
    assert!(with.count(E::CondMisses) < 30);
}
