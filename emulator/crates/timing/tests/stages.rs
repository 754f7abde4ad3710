//! The stages that a sink can ask for: in order, as the latencies say, and without changing anything.

use crate::asm::{Program, State, TEXT};
use commit_trace::{Commit, CommitSink, Redirect, StageCycles, Stages};
use timing::{Core, Preset};

#[derive(Default)]
struct Sink<const STAGED: bool> {
    commits: Vec<Commit>,
    stages: Vec<Stages>,
}

impl<const STAGED: bool> CommitSink for Sink<STAGED> {
    const STAGES: bool = STAGED;
    fn commit(&mut self, commit: &Commit) {
        self.commits.push(*commit);
    }
    fn stages(&mut self, stages: &[Stages]) {
        assert_eq!(self.commits.len(), self.stages.len(), "stages come before their commits");
        self.stages.extend_from_slice(stages);
    }
}

/// Something of everything; the load and the branch depend on what came before.
const BODY: &str = "1: addi a2,a2,1; add a3,a2,a2; mul a4,a3,a3; div a5,a4,a2; fadd.d fa0,fa0,fa0; fdiv.d fa1,fa0,fa0
    sd a2,0(a1); ld a6,0(a1); fsd fa0,8(a1); fld fa2,8(a1); amoadd.d a7,a2,(a1); csrr t0,mcycle; fence
    ecall; addi a0,a0,-1; bnez a0,1b; jalr zero,s3";

fn run<const STAGED: bool>() -> (Program, Sink<STAGED>) {
    let program = Program::new(&format!(
        "FN(f) {BODY}\nFN(trap_entry) csrr t1,mepc; addi t1,t1,4; csrw mepc,t1; mret\n"
    ));
    let preset = Preset::load("boom-4w").unwrap();
    let mut core = Core::new(&preset, Sink::default());
    program.define(&mut core);
    let mut state = State::new();
    (state.x[10], state.x[11], state.x[19], state.pc) = (50, 0x8100_0000, 0x1000, TEXT);
    program.run(&mut core, &mut state);
    (program, core.into_sink())
}

#[test]
fn stages_are_in_order_and_change_nothing() {
    let (program, staged) = run::<true>();
    let (_, plain) = run::<false>();
    assert!(plain.stages.is_empty());
    assert_eq!(format!("{:?}", plain.commits), format!("{:?}", staged.commits));
    assert_eq!(staged.commits.len(), staged.stages.len());
    let mut fetched = 0;
    let mut traps = 0;
    for (commit, stages) in staged.commits.iter().zip(&staged.stages) {
        let StageCycles { fetch, issue, complete } = stages.at(commit.commit);
        let what = || format!("{commit:?}, {:?}", stages.at(commit.commit));
        assert!(fetched <= fetch, "fetch is in order: {}", what());
        fetched = fetch;
        // README: in the fetch buffer from f + 4, decoded from f + 5.
        assert!(fetch + 5 <= commit.decode, "{}", what());
        let issues = issue.unwrap_or(commit.dispatch);
        assert!(commit.dispatch <= issues && issues <= complete, "{}", what());
        assert!(complete <= commit.commit, "{}", what());
        let action = program.insts[commit.inst.0 as usize].action;
        let latency = complete - issues;
        match action {
            crate::asm::Action::Fence => assert_eq!(issue, None),
            crate::asm::Action::AddI | crate::asm::Action::Branch { .. } => {
                assert!((4..=6).contains(&latency), "{}", what());
            }
            crate::asm::Action::Div | crate::asm::Action::Load | crate::asm::Action::Amo => {
                assert!(latency >= 5, "{}", what());
            }
            _ => assert!(issue.is_some(), "{}", what()),
        }
        traps += u32::from(commit.redirect == Redirect::Exception);
    }
    assert!(traps >= 50);
}
