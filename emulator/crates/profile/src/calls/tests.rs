use commit_trace::{Class, CycleClass, Redirect};
use proptest::prelude::*;

use super::*;
use crate::{Evaluation, Evaluator, Profiler, Region, Sampler, Schedule};

const ECALL: u32 = 0x73;
const SRET: u32 = 0x1020_0073;
const NOP: u32 = 0x13;
/// `jal ra, .`, `jalr ra, t1`, `ret`, `j .`, `jr t1`, and compressed `jalr a0`, `ret`, `jr a5`.
const JAL: u32 = 0xef;
const JALR: u32 = 0x0003_00e7;
const RET: u32 = 0x8067;
const JUMP: u32 = 0x6f;
const JR: u32 = 0x0003_0067;
const C_JALR: u32 = 0x9502;
const C_RET: u32 = 0x8082;
const C_JR: u32 = 0x8782;

fn facts(id: u32, pc: u64, raw: u32) -> InstFacts {
    InstFacts {
        id: InstId(id),
        space: 1,
        pc,
        raw,
        len: if raw & 3 == 3 { 4 } else { 2 },
        privilege: 1,
        class: Class::Int,
        target: None,
    }
}

fn trapped(inst: u32, tea: TeaEvents) -> CommitRecord {
    let redirect = Redirect::Exception;
    CommitRecord::new(InstId(inst), 1, 1, 1, redirect, true, CycleClass::Alu, tea)
}

/// What called each of these, in turn, outermost first. A negative number is an instruction that traps.
fn callers(program: &[(u64, u32)], order: &[i32]) -> Vec<Vec<u32>> {
    let numbered = (0..).zip(program);
    let facts: Vec<_> = numbered
        .map(|(id, (pc, raw))| facts(id, *pc, *raw))
        .collect();
    let mut calls = Calls::default();
    calls.select(ProcessId(3), 7);
    let visit = |inst: &i32| {
        let number = inst.unsigned_abs();
        match *inst < 0 {
            true => calls.trap(9, &trapped(number, TeaEvents::default()), &facts),
            false => calls.enter(InstId(number), &facts),
        }
        let mut at = calls
            .contexts
            .get(calls.context(ProcessId(3), InstId(number)));
        let mut stack = Vec::new();
        while let Some((context, inst)) = at.caller {
            assert_eq!(at.process, ProcessId(3));
            stack.insert(0, inst.0);
            at = calls.contexts.get(context);
        }
        stack
    };
    order.iter().map(visit).collect()
}

#[test]
fn calls_and_returns_are_told_by_their_registers() {
    let step = |raw| Step::of(&facts(4, 0x100, raw));
    let call = |back| Step::Call {
        inst: InstId(4),
        back,
    };
    assert_eq!([JAL, JALR].map(step), [call(0x104); 2]);
    assert_eq!(step(C_JALR), call(0x102));
    assert_eq!([RET, C_RET].map(step), [Step::Return; 2]);
    assert_eq!(step(SRET), Step::TrapReturn);
    // `ebreak` is where `jalr zero` would be.
    assert_eq!(
        [NOP, JUMP, JR, C_JR, ECALL, 0x9002].map(step),
        [Step::None; 6]
    );
}

#[test]
fn a_stack_goes_through_calls_and_traps() {
    let program = [
        (0x100, JAL),   // 0: main calls f
        (0x104, NOP),   // 1
        (0x200, JALR),  // 2: f calls g
        (0x204, C_RET), // 3
        (0x300, ECALL), // 4: g traps
        (0x304, RET),   // 5
        (0x900, JAL),   // 6: the handler calls h
        (0x904, SRET),  // 7
        (0xa00, RET),   // 8: h
    ];
    let order = [0, 2, -4, 6, 8, 7, 5, 3, 1];
    let expected: [&[u32]; 9] = [
        &[],
        &[0],
        &[0, 2],
        &[0, 2, 4],
        &[0, 2, 4, 6],
        &[0, 2, 4],
        &[0, 2],
        &[0],
        &[],
    ];
    assert_eq!(callers(&program, &order), expected);
    // An exception that is handled in `f`, past `g` and what `g` called; a return to nobody leaves one function.
    let program = [
        (0x100, JAL),
        (0x104, NOP),
        (0x200, JAL),
        (0x300, JAL),
        (0x400, C_RET),
        (0x888, NOP),
    ];
    let expected: [&[u32]; 6] = [&[], &[0], &[0, 2], &[0, 2, 3], &[], &[]];
    assert_eq!(callers(&program, &[0, 2, 3, 4, 1, 1]), expected);
    assert_eq!(callers(&program, &[0, 2, 3, 4, 5])[4], [0, 2]);
}

#[test]
fn a_replayed_load_is_no_trap() {
    let facts = [facts(0, 0x100, NOP)];
    let mut calls = Calls::default();
    calls.select(ProcessId::BOOT, 0);
    calls.trap(9, &trapped(0, TeaEvents::FL_MO), &facts);
    calls.enter(InstId(0), &facts);
    assert_eq!(calls.stack.frames.len(), 0);
}

#[test]
fn threads_have_their_own_stacks() {
    let facts = [facts(0, 0x100, JAL), facts(1, 0x200, NOP)];
    let mut calls = Calls::default();
    let deep = |calls: &Calls| {
        calls
            .contexts
            .get(calls.context(ProcessId(1), InstId(1)))
            .caller
            .is_some()
    };
    calls.select(ProcessId(1), 10);
    calls.enter(InstId(0), &facts);
    calls.enter(InstId(1), &facts);
    assert!(deep(&calls));
    calls.select(ProcessId(1), 11);
    calls.enter(InstId(1), &facts);
    assert!(!deep(&calls));
    calls.select(ProcessId(1), 10);
    calls.enter(InstId(1), &facts);
    assert!(deep(&calls));
    // Another program: its stack is new.
    calls.select(ProcessId(2), 10);
    calls.select(ProcessId(1), 10);
    calls.enter(InstId(1), &facts);
    assert!(!deep(&calls));
}

#[test]
fn endless_recursion_is_bounded() {
    let facts = [facts(0, 0x100, JAL)];
    let mut calls = Calls::default();
    calls.select(ProcessId::BOOT, 0);
    (0..2 * MAX_FRAMES).for_each(|_| {
        // Its target is not what follows it.
        calls.last = Step::Call {
            inst: InstId(0),
            back: 0x104,
        };
        calls.enter(InstId(0), &facts);
    });
    assert_eq!(calls.stack.frames.len(), MAX_FRAMES);
    assert_eq!(calls.contexts.0.len(), 1 + MAX_DEPTH);
}

fn evaluated(words: &[u32], samplers: &[Sampler], region: Region) -> Evaluation {
    let mut evaluator = Evaluator::new(samplers, region).with_call_stacks();
    for batch in &commit_trace::synthetic::batches(words, 4) {
        evaluator.batch(batch).unwrap();
    }
    evaluator.finish()
}

proptest! {
    #[test]
    fn contexts_add_up_to_the_profiles(words in prop::collection::vec(any::<u32>(), 1..3000), period in 1u64..40) {
        let samplers = Profiler::ALL.map(|profiler| Sampler::new(profiler, Schedule::every(period)));
        for region in [Region::Whole, Region::Marked] {
            let evaluation = evaluated(&words, &samplers, region);
            let contexts = evaluation.contexts.as_ref().unwrap();
            let results = evaluation.samplers.iter().map(|result| (&result.profile, &result.by_context));
            for (profile, by_context) in results.chain([(&evaluation.oracle, &evaluation.by_context)]) {
                let mut sum = crate::Profile::new(profile.units_per_cycle());
                for (context, inst, units) in by_context {
                    sum.add(contexts.get(*context).process, *inst, *units);
                }
                prop_assert_eq!(&sum, profile);
            }
        }
    }
}
