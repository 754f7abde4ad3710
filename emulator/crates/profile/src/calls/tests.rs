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
/// `jr t0`, by which Go's `gogo` goes to a goroutine.
const JR_T0: u32 = 0x0002_8067;
/// `ld sp, 0(a0)` and `add sp, sp, a4`.
const LD_SP: u32 = 0x0005_3103;
const ADD_SP: u32 = 0x00e1_0133;
/// Where the kernel's code begins.
const KERNEL: u64 = 0x8000;

fn static_info(id: u32, pc: u64, raw: u32) -> StaticInfo {
    StaticInfo {
        id: InstId(id),
        space: 1,
        pc,
        raw,
        len: if raw & 3 == 3 { 4 } else { 2 },
        privilege: u8::from(pc >= KERNEL),
        class: Class::Int,
        target: None,
    }
}

fn trapped(inst: u32, tea: TeaEvents) -> CommitRecord {
    let redirect = Redirect::Exception;
    CommitRecord::new(InstId(inst), 1, 1, 1, redirect, true, CycleClass::Alu, tea)
}

/// A timer interrupt's handler in the kernel, which calls a function.
const TIMER_INTERRUPT_HANDLER: [(u64, u32); 4] = [
    (KERNEL + 0x2000, JAL),
    (KERNEL + 0x2100, NOP),
    (KERNEL + 0x2104, RET),
    (KERNEL + 0x2004, SRET),
];

/// Returns the callers of each instruction of `order` as it is executed, outermost first. A negative number is an
/// instruction that traps. Checks that a timer interrupt before any of the instructions changes nothing.
fn callers(program: &[(u64, u32)], order: &[i32]) -> Vec<Vec<u32>> {
    let found = callers_if_interrupted(program, order, usize::MAX);
    // The middle of a very long order is left out.
    let is_tried = |before: &usize| *before < 32 || before + 32 >= order.len();
    for before in (0..order.len()).filter(is_tried) {
        let interrupted = callers_if_interrupted(program, order, before);
        let differs = interrupted.iter().zip(&found).position(|(is, was)| is != was);
        assert_eq!(differs, None, "interrupted before step {before}: the first step that differs");
    }
    found
}

/// Returns the callers of each instruction of `order`, with a timer interrupt before step `interrupted`.
fn callers_if_interrupted(
    program: &[(u64, u32)],
    order: &[i32],
    interrupted: usize,
) -> Vec<Vec<u32>> {
    let numbered = (0..).zip(program.iter().chain(&TIMER_INTERRUPT_HANDLER));
    let static_info: Vec<_> = numbered.map(|(id, (pc, raw))| static_info(id, *pc, *raw)).collect();
    let handler = program.len() as u32;
    let mut calls = Calls::default();
    calls.select(ProcessId(3), ThreadId(7), 7);
    let visit = |(step, inst): (usize, &i32)| {
        let number = inst.unsigned_abs();
        if step == interrupted {
            calls.trap(8, &trapped(number, TeaEvents::default()), &static_info);
            for inst in handler..handler + TIMER_INTERRUPT_HANDLER.len() as u32 {
                calls.enter(InstId(inst), &static_info);
            }
        }
        match *inst < 0 {
            true => calls.trap(9, &trapped(number, TeaEvents::default()), &static_info),
            false => calls.enter(InstId(number), &static_info),
        }
        let mut at = calls.contexts.get(calls.context(ProcessId(3), InstId(number)));
        let mut stack = Vec::new();
        while let Some((context, inst)) = at.caller {
            assert_eq!(at.process, ProcessId(3));
            stack.insert(0, inst.0);
            at = calls.contexts.get(context);
        }
        stack
    };
    order.iter().enumerate().map(visit).collect()
}

#[test]
fn calls_and_returns_are_told_by_their_registers() {
    let step = |raw| StackEffect::of(&static_info(4, 0x100, raw));
    let call = |back| StackEffect::Call { inst: InstId(4), back };
    assert_eq!([JAL, JALR].map(step), [call(0x104); 2]);
    assert_eq!(step(C_JALR), call(0x102));
    assert_eq!([RET, C_RET].map(step), [StackEffect::Return; 2]);
    assert_eq!(step(SRET), StackEffect::TrapReturn { machine: false });
    assert_eq!([JR, C_JR].map(step), [StackEffect::Jump { from: 0x100 }; 2]);
    // `ebreak` is where `jalr zero` would be.
    assert_eq!([NOP, JUMP, ECALL, 0x9002].map(step), [StackEffect::None; 4]);
}

#[test]
fn how_the_stack_pointer_is_written_is_told_by_the_encoding() {
    let written = |raw| Pointer::Kept.after(&static_info(0, 0x100, raw));
    // `addi sp, sp, -32`, `addi sp, s0, -96`, `c.addi16sp`, `c.addi sp`, `c.mv sp, s0`, `ld ra, 0(sp)`, `sd sp, 0(a0)`.
    let kept = [0xfe01_0113, 0xfa04_0113, 0x7139, 0x1141, 0x8122, 0x0001_3083, 0x0025_3023];
    assert_eq!(kept.map(written), [Pointer::Kept; 7]);
    // `add sp, sp, a4`, `add sp, t0, sp`, `c.add sp, t0`.
    let added = [ADD_SP, 0x0022_8133, 0x9116];
    assert_eq!(added.map(written), [Pointer::Added; 3]);
    // `ld sp, 0(a0)`, `mv sp, a1`, `c.mv sp, a1`, `c.ldsp sp, 8(sp)`.
    let loaded = [LD_SP, 0x0005_8113, 0x812e, 0x6122];
    assert_eq!(loaded.map(written), [Pointer::Loaded; 4]);
    // `ld sp, 56(s11)`, as in Go's `systemstack`.
    assert_eq!(written(0x038d_b103), Pointer::Kept);
    // What says more stays.
    assert_eq!(Pointer::Loaded.after(&static_info(0, 0x100, ADD_SP)), Pointer::Loaded);
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
    let expected: [&[u32]; 9] =
        [&[], &[0], &[0, 2], &[0, 2, 4], &[0, 2, 4, 6], &[0, 2, 4], &[0, 2], &[0], &[]];
    assert_eq!(callers(&program, &order), expected);
    // An exception that is handled in `f`, past `g` and what `g` called; a return to nobody is a jump.
    let program =
        [(0x100, JAL), (0x104, NOP), (0x200, JAL), (0x300, JAL), (0x400, C_RET), (0x888, NOP)];
    let expected: [&[u32]; 6] = [&[], &[0], &[0, 2], &[0, 2, 3], &[], &[]];
    assert_eq!(callers(&program, &[0, 2, 3, 4, 1, 1]), expected);
    assert_eq!(callers(&program, &[0, 2, 3, 4, 5])[4], [0, 2, 3]);
}

#[test]
fn a_signal_s_handler_is_on_top_of_what_it_interrupts() {
    let program = [
        (0x100, JAL),   // 0: main calls f
        (0x200, NOP),   // 1: f, interrupted
        (KERNEL, SRET), // 2
        (0x400, JAL),   // 3: the handler calls h
        (0x500, RET),   // 4: h
        (0x404, RET),   // 5: the handler goes to what ends it
        (0x600, ECALL), // 6
        (0x204, RET),   // 7: f
        (0x104, NOP),   // 8: main
        (0x700, NOP),   // 9: another handler
        (0x704, RET),   // 10
    ];
    let order = [0, -1, 2, 3, 4, 5, -6, 2, 1, 7, 8];
    let expected: [&[u32]; 11] =
        [&[], &[0], &[0, 1], &[0, 1], &[0, 1, 3], &[0, 1], &[0, 1], &[0, 1, 6], &[0], &[0], &[]];
    assert_eq!(callers(&program, &order), expected);
    // A handler within the handler, which is itself interrupted by a trap that is none of theirs.
    let order = [0, -1, 2, 3, -4, 2, -9, 2, 9, 10, -6, 2, 4, 5, -6, 2, 1, 7, 8];
    let found = callers(&program, &order);
    assert_eq!(found[8], [0, 1, 3, 4]);
    assert_eq!(found[12], [0, 1, 3]);
    assert_eq!(found[16..], [vec![0], vec![0], vec![]]);
}

#[test]
fn longjmp_goes_back_to_who_called_setjmp() {
    let program = [
        (0x50, JAL),    // 0: main calls f
        (0x100, JAL),   // 1: f calls setjmp
        (0x200, RET),   // 2: setjmp
        (0x104, JAL),   // 3: f calls dig
        (0x300, JAL),   // 4: dig calls itself, or longjmp
        (0x400, LD_SP), // 5: longjmp
        (0x404, RET),   // 6
    ];
    let deep = std::iter::repeat_n(4, 3 * MAX_DEPTH);
    let order: Vec<i32> = [0, 1, 2, 3].into_iter().chain(deep).chain([5, 6, 3]).collect();
    let found = callers(&program, &order);
    assert_eq!(found[6], [0, 3, 4, 4]);
    assert_eq!(found.last().unwrap(), &[0]);
}

#[test]
fn an_exception_goes_back_to_the_function_that_catches_it() {
    let program = [
        (0x100, JAL),    // 0: main calls f
        (0x200, JAL),    // 1: f calls g
        (0x300, JAL),    // 2: g calls itself, or the unwinder
        (0x800, ADD_SP), // 3: the unwinder
        (0x804, RET),    // 4
        (0x220, NOP),    // 5: f, which catches
        (0x40, NOP),     // 6: a part of f that lies elsewhere
        (0x44, JUMP),    // 7
    ];
    let found = callers(&program, &[0, 1, 2, 2, 2, 3, 4, 5]);
    assert_eq!(found[6], [0, 1, 2, 2, 2]);
    assert_eq!(found[7], [0]);
    // Where the function is not known at once, nothing goes until it is.
    let found = callers(&program, &[0, 1, 2, 2, 2, 3, 4, 6, 7, 5]);
    assert_eq!(found[7..], [vec![0, 1, 2, 2, 2], vec![0, 1, 2, 2, 2], vec![0]]);
}

#[test]
fn coroutines_have_stacks_of_their_own() {
    let program = [
        (0x100, JAL),   // 0: main calls switch
        (0x800, LD_SP), // 1: switch
        (0x804, JR),    // 2
        (0x300, JAL),   // 3: the left one calls its own
        (0x400, JAL),   // 4: that calls switch, twice
        (0x404, JAL),   // 5
        (0x500, JAL),   // 6: the right one calls its own
        (0x600, JAL),   // 7: that calls switch
        (0x604, RET),   // 8
        (0x504, JAL),   // 9: the right one calls switch
        (0x104, NOP),   // 10: main
    ];
    let order = [0, 1, 2, 3, 4, 1, 2, 6, 7, 1, 2, 5, 1, 2, 8, 9, 1, 2, 10];
    let found = callers(&program, &order);
    let at = |index: usize| (order[index], &found[index][..]);
    let expected: [(usize, (i32, &[u32])); 8] = [
        (3, (3, &[])),
        (4, (4, &[3])),
        (7, (6, &[])),
        (8, (7, &[6])),
        (11, (5, &[3])),
        (14, (8, &[6])),
        (15, (9, &[])),
        (18, (10, &[])),
    ];
    for (index, expected) in expected {
        assert_eq!(at(index), expected, "step {index}");
    }
}

#[test]
fn of_coroutines_that_wait_at_one_address_a_return_tells_which_goes_on() {
    let program = [
        (0x100, JAL),   // 0: the left one calls f
        (0x200, JAL),   // 1: f calls wait
        (0x800, JAL),   // 2: wait calls switch
        (0x900, LD_SP), // 3: switch
        (0x904, JR),    // 4
        (0x804, RET),   // 5: wait
        (0x204, NOP),   // 6: f
        (0x300, JAL),   // 7: the right one calls g
        (0x400, JAL),   // 8: g calls wait
        (0x404, JAL),   // 9: g calls switch
        (0x500, JAL),   // 10: a third one calls switch
    ];
    // The right one goes on first, though the left one waits longer.
    let order = [0, 1, 2, 3, 4, 7, 8, 2, 3, 4, 10, 3, 4, 5, 9, 3, 4, 5, 6];
    let found = callers(&program, &order);
    assert_eq!(found[14], [7], "g");
    assert_eq!(found[17], [0, 1], "wait");
    assert_eq!(found[18], [0], "f");
}

/// Go's runtime on one of several harts: goroutines that sleep here, and one that ran on another hart before.
#[test]
fn a_goroutine_from_another_hart_is_not_below_one_that_sleeps() {
    let program = [
        (0x100, JAL),   // 0: the sleeper calls gopark
        (0x200, JAL),   // 1: gopark calls mcall
        (0x300, JALR),  // 2: mcall calls the scheduler
        (0x400, LD_SP), // 3: the scheduler goes to a goroutine
        (0x404, JR_T0), // 4
        (0x204, RET),   // 5: gopark
        (0x604, JAL),   // 6: a worker, which called gopark on another hart, calls f
        (0x700, NOP),   // 7: f
        (0x104, NOP),   // 8: the sleeper
    ];
    let found = callers(&program, &[0, 1, 2, 3, 4, 5, 6, 7, 3, 4, 5, 8]);
    let expected: [&[u32]; 12] = [
        &[],
        &[0],
        &[0, 1],
        &[0, 1, 2],
        &[0, 1, 2],
        &[0],
        &[],
        &[6],
        &[6],
        &[6],
        // The sleeper still waits where it did.
        &[0],
        &[],
    ];
    assert_eq!(found, expected);
}

#[test]
fn of_two_goroutines_that_wait_at_one_call_each_keeps_its_callers() {
    let program = [
        (0x100, JAL),   // 0: the first one calls read
        (0x180, JAL),   // 1: the second one calls read
        (0x200, JAL),   // 2: read calls gopark
        (0x300, JAL),   // 3: gopark calls the scheduler
        (0x400, LD_SP), // 4: the scheduler goes to a goroutine
        (0x404, JR_T0), // 5
        (0x304, RET),   // 6: gopark
        (0x204, RET),   // 7: read
        (0x104, JAL),   // 8: the first one calls f
        (0x184, JAL),   // 9: the second one calls f
        (0x700, NOP),   // 10: f
        (0x800, JAL),   // 11: a third one calls the scheduler
    ];
    // The first two wait. The second one goes on before the first.
    let order = [0, 2, 3, 4, 5, 1, 2, 3, 4, 5, 11, 4, 5, 6, 7, 9, 10, 4, 5, 6, 7, 8, 10];
    let found = callers(&program, &order);
    assert_eq!(found[15..=16], [vec![], vec![9]], "the second one");
    assert_eq!(found[21..=22], [vec![], vec![8]], "the first one");
}

#[test]
fn a_goroutine_begins_with_no_callers_though_its_function_was_called() {
    let program = [
        (0x100, JAL),   // 0: main calls f
        (0x200, NOP),   // 1: f
        (0x204, JAL),   // 2: f calls the scheduler
        (0x400, LD_SP), // 3: the scheduler goes to a goroutine
        (0x404, JR_T0), // 4
    ];
    let found = callers(&program, &[0, 1, 2, 3, 4, 1]);
    assert_eq!((&*found[1], &*found[5]), (&[0][..], &[][..]));
}

#[test]
fn a_thread_that_ran_on_another_hart_is_not_below_its_callers_from_before() {
    let program = [
        (0x100, JAL),       // 0: f calls wait
        (0x200, ECALL),     // 1: wait
        (KERNEL, NOP),      // 2
        (KERNEL + 4, SRET), // 3
        (0x204, RET),       // 4: wait
        (0x80, NOP),        // 5: g, which called wait on another hart
    ];
    let static_info: Vec<_> =
        (0..).zip(program).map(|(id, (pc, raw))| static_info(id, pc, raw)).collect();
    for switched in [false, true] {
        let mut calls = Calls::default();
        calls.select(ProcessId(1), ThreadId(1), 10);
        calls.enter(InstId(0), &static_info);
        calls.trap(9, &trapped(1, TeaEvents::default()), &static_info);
        calls.enter(InstId(2), &static_info);
        if switched {
            calls.select(ProcessId(1), ThreadId(2), 11);
            calls.select(ProcessId(1), ThreadId(1), 10);
        }
        for inst in [3, 4, 5] {
            calls.enter(InstId(inst), &static_info);
        }
        let at = calls.contexts.get(calls.context(ProcessId(1), InstId(5)));
        let caller = at.caller.map(|(_, inst)| inst);
        assert_eq!(caller, (!switched).then_some(InstId(0)));
    }
}

#[test]
fn the_kernel_s_callers_are_those_of_the_system_call() {
    let program = [(0x100, JAL), (0x200, ECALL), (KERNEL, JAL), (KERNEL + 0x100, NOP)];
    let static_info: Vec<_> =
        (0..).zip(program).map(|(id, (pc, raw))| static_info(id, pc, raw)).collect();
    let mut calls = Calls::default();
    calls.select(ProcessId(1), ThreadId(1), 10);
    calls.enter(InstId(0), &static_info);
    assert_eq!(calls.kernel_entry(), None);
    calls.trap(9, &trapped(1, TeaEvents::default()), &static_info);
    calls.enter(InstId(2), &static_info);
    calls.enter(InstId(3), &static_info);
    let entry = calls.contexts.get(calls.kernel_entry().unwrap());
    let (program, inst) = entry.caller.unwrap();
    let caller = calls.contexts.get(program).caller.map(|(_, inst)| inst);
    assert_eq!((inst, caller), (InstId(1), Some(InstId(0))));
}

#[test]
fn endless_goroutines_are_bounded() {
    let program = [
        (0x80, JAL),  // 0: where each begins
        (0x300, JAL), // 1, 2: what each calls in an order of its own
        (0x380, JAL),
        (0x400, LD_SP), // 3: the scheduler goes to a new one
        (0x404, JR_T0), // 4
    ];
    let static_info: Vec<_> =
        (0..).zip(program).map(|(id, (pc, raw))| static_info(id, pc, raw)).collect();
    let mut calls = Calls::default();
    calls.select(ProcessId(1), ThreadId(1), 10);
    for (goroutines, stacks) in [(1500, 1024), (1024, 1024)] {
        for number in 0..goroutines {
            let calls_of = (0..11).map(|bit| 1 + (number >> bit & 1));
            let order = std::iter::once(0).chain(calls_of).chain([3, 4]);
            order.for_each(|inst| calls.enter(InstId(inst), &static_info));
        }
        assert_eq!(calls.parked[&ProcessId(1)].len(), stacks);
    }
    // Equal ones are one.
    let mut calls = Calls::default();
    calls.select(ProcessId(1), ThreadId(1), 10);
    for inst in std::iter::repeat_n([0, 1, 2, 3, 4], 1500).flatten() {
        calls.enter(InstId(inst), &static_info);
    }
    assert_eq!(calls.parked[&ProcessId(1)].len(), 1);
}

#[test]
fn a_return_that_nobody_called_is_a_jump() {
    let program = [
        (0x100, JAL), // 0: main calls f
        (0x200, RET), // 1: f goes on by a return
        (0x208, JAL), // 2: f calls g
        (0x300, RET), // 3: g returns past what follows its call
        (0x210, RET), // 4: f
        (0x104, NOP), // 5: main
    ];
    let expected: [&[u32]; 6] = [&[], &[0], &[0], &[0, 2], &[0], &[]];
    assert_eq!(callers(&program, &[0, 1, 2, 3, 4, 5]), expected);
}

#[test]
fn a_forked_child_begins_with_its_parent_s_frames() {
    let program = [(0x100, JAL), (0x200, ECALL), (KERNEL, NOP), (KERNEL + 4, SRET), (0x204, NOP)];
    let static_info: Vec<_> =
        (0..).zip(program).map(|(id, (pc, raw))| static_info(id, pc, raw)).collect();
    for own_stack in [false, true] {
        let mut calls = Calls::default();
        calls.select(ProcessId(1), ThreadId(1), 10);
        calls.enter(InstId(0), &static_info);
        calls.trap(9, &trapped(1, TeaEvents::default()), &static_info);
        calls.enter(InstId(2), &static_info);
        calls.fork(10, 11, own_stack);
        calls.select(ProcessId(2), ThreadId(2), 11);
        calls.enter(InstId(3), &static_info);
        calls.enter(InstId(4), &static_info);
        let at = calls.contexts.get(calls.context(ProcessId(2), InstId(4)));
        assert_eq!((at.process, at.thread), (ProcessId(2), ThreadId(2)));
        let caller = at.caller.map(|(_, inst)| inst);
        assert_eq!(caller, (!own_stack).then_some(InstId(0)));
    }
}

#[test]
fn a_replayed_load_is_no_trap() {
    let static_info = [static_info(0, 0x100, NOP)];
    let mut calls = Calls::default();
    calls.select(ProcessId::BOOT, ThreadId(0), 0);
    calls.trap(9, &trapped(0, TeaEvents::FL_MO), &static_info);
    calls.enter(InstId(0), &static_info);
    assert_eq!(calls.stack.frames.len(), 0);
}

#[test]
fn threads_have_their_own_stacks() {
    let static_info = [static_info(0, 0x100, JAL), static_info(1, 0x200, NOP)];
    let mut calls = Calls::default();
    let deep =
        |calls: &Calls| calls.contexts.get(calls.context(ProcessId(1), InstId(1))).caller.is_some();
    calls.select(ProcessId(1), ThreadId(0), 10);
    calls.enter(InstId(0), &static_info);
    calls.enter(InstId(1), &static_info);
    assert!(deep(&calls));
    calls.select(ProcessId(1), ThreadId(1), 11);
    calls.enter(InstId(1), &static_info);
    assert!(!deep(&calls));
    calls.select(ProcessId(1), ThreadId(0), 10);
    calls.enter(InstId(1), &static_info);
    assert!(deep(&calls));
    // Another program: its stack is new.
    calls.select(ProcessId(2), ThreadId(2), 10);
    calls.select(ProcessId(1), ThreadId(3), 10);
    calls.enter(InstId(1), &static_info);
    assert!(!deep(&calls));
}

#[test]
fn endless_recursion_is_bounded() {
    let static_info = [static_info(0, 0x100, JAL)];
    let mut calls = Calls::default();
    calls.select(ProcessId::BOOT, ThreadId(0), 0);
    (0..2 * MAX_FRAMES).for_each(|_| {
        // The instruction calls itself: what is executed next is not what follows it in memory.
        calls.last = StackEffect::Call { inst: InstId(0), back: 0x104 };
        calls.enter(InstId(0), &static_info);
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
