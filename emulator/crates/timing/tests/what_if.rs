//! A core without a cause of lost cycles is as fast as the plain core on a program that does not have it.

use crate::asm::{Commits, Program, State, TEXT};
use commit_trace::{Commit, Redirect};
use timing::{Cause, Core, Preset};

const DATA: u64 = 0x8100_0000;
/// Lines of a ring that only memory holds: every other page, so that the TLBs miss, too.
const LINES: u64 = 4096;
const STRIDE: u64 = 8192 + 64;

/// Runs a program without a cause at all of its instructions; it finds a ring of pointers that `a1` points to. Returns
/// all that committed.
fn run(source: &str, without: Option<Cause>, ring: u64) -> Vec<Commit> {
    let program = Program::new(&format!("FN(f) {source}\n jalr zero,s3\n"));
    let mut preset = Preset::load("rtl-mega").unwrap();
    if let Some(cause) = without {
        let all = program.insts.iter().map(|inst| inst.pc);
        let all = all.map(|pc| format!("{:?}", format!("{} {pc:#x}", cause.name())));
        let all = all.collect::<Vec<_>>().join(",");
        preset.set("what_if.without", &format!("[{all}]")).unwrap();
    }
    let mut core = Core::new(&preset, Commits::default());
    program.define(&mut core);
    let mut state = State::new();
    state.translated = true;
    for i in 0..ring {
        state.poke(DATA + i * STRIDE, DATA + (i + 1) % ring * STRIDE);
    }
    (state.x[11], state.x[13], state.x[19], state.pc) = (DATA, 3, 0x1000, TEXT);
    program.run(&mut core, &mut state);
    core.into_sink().0
}

/// Returns the cycles of the second half of what a program commits.
fn cycles(source: &str, without: Option<Cause>, ring: u64) -> f64 {
    let commits = run(source, without, ring);
    (commits[commits.len() - 1].commit - commits[commits.len() / 2].commit) as f64
}

/// A loop of 2000 rounds.
fn rounds(body: &str) -> String {
    format!("li a0,2000\n 1: {body}\n addi a0,a0,-1; bnez a0,1b")
}

/// A program without a cause takes what the other program takes, and more with it.
#[track_caller]
fn is_like(source: &str, cause: Cause, without_it: &str, tolerance: f64) {
    let lines = if cause == Cause::Miss { LINES } else { 1 };
    let [with, ideal] = [None, Some(cause)].map(|without| cycles(source, without, lines));
    let wanted = cycles(without_it, None, 1);
    assert!(with > 1.2 * wanted, "{with} with the cause, {wanted} if the program has it not");
    assert!(
        (ideal / wanted - 1.0).abs() <= tolerance,
        "{ideal} without the cause, {wanted} if the program has it not; {with} with it"
    );
}

#[test]
fn a_chase_without_misses_is_one_in_the_l1() {
    let chase = rounds("ld a1,0(a1)");
    is_like(&chase, Cause::Miss, &chase, 0.01);
    let stores = rounds("ld a1,0(a1); sd a1,8(a1); sd a1,16(a1)");
    is_like(&stores, Cause::Miss, &stores, 0.05);
}

#[test]
fn an_access_that_does_not_flush_is_like_any_other_instruction() {
    let plain = rounds("addi a2,a3,1; add a4,a4,a2; add a5,a5,a4");
    let csr = plain.replacen("addi a2,a3,1", "csrr a2,mstatus", 1);
    is_like(&csr, Cause::Flush, &plain, 0.1);
    let fence = plain.replacen("addi a2,a3,1", "fence", 1);
    is_like(&fence, Cause::Flush, &plain, 0.1);
    let atomic = rounds("amoadd.d a2,a3,(a1); add a4,a4,a2");
    is_like(&atomic, Cause::Flush, &rounds("ld a2,0(a1); add a4,a4,a2"), 0.05);
}

#[test]
fn a_division_is_like_a_multiplication() {
    let divide = rounds("div a2,a0,a3; add a3,a2,a4; addi a3,a3,3");
    is_like(&divide, Cause::Division, &divide.replacen("div", "mul", 1), 0.01);
    let sqrt = rounds("fsqrt.d fa1,fa2; fadd.d fa2,fa1,fa3");
    is_like(
        &sqrt,
        Cause::Division,
        &sqrt.replacen("fsqrt.d fa1,fa2", "fadd.d fa1,fa2,fa2", 1),
        0.01,
    );
}

#[test]
fn without_its_chain_a_sum_has_many_accumulators() {
    let adds = |to: &[&str]| {
        let add = |n: usize| format!("fadd.d {0},{0},fa0", to[n % to.len()]);
        rounds(&(0..12).map(add).collect::<Vec<_>>().join("; "))
    };
    let many = ["fa1", "fa2", "fa3", "fa4", "fa5", "fa6", "fa7", "ft0", "ft1", "ft2", "ft3", "ft4"];
    // Two ports: 6 cycles a round. Sums that wait four cycles for themselves now and then miss their turn.
    let ideal = cycles(&adds(&["fa1"]), Some(Cause::Chain), 1);
    assert!((ideal / 6000.0 - 1.0).abs() < 0.01, "{ideal}");
    is_like(&adds(&["fa1"]), Cause::Chain, &adds(&many), 0.15);
}

#[test]
fn what_waits_for_another_instruction_is_no_chain() {
    let unchanged = |source: &str| {
        let [with, ideal] = [None, Some(Cause::Chain)].map(|without| cycles(source, without, 1));
        assert!((ideal / with - 1.0).abs() < 0.01, "{ideal}, {with}: {source}");
    };
    // Each instruction but the loop's counter writes the register that it reads, and that another one has written: a
    // load, whose own address is chased; what follows a load; and two operations in turn, as in a generator of
    // pseudo-random numbers.
    unchanged(&rounds("ld a1,0(a1)"));
    unchanged(&rounds("ld a1,0(a1); xor a1,a1,zero; xor a1,a1,zero"));
    unchanged(&rounds("ld a5,0(a1); sub a5,a5,a1; add a1,a1,a5"));
    unchanged(&rounds("mul a2,a2,a3; addi a2,a2,3"));
}

/// A branch on random bits, which skips six additions or none.
fn random(branch: &str) -> String {
    format!(
        "li a0,4000; li a2,0x1234567
 1: slli a3,a2,13; xor a2,a2,a3; srli a3,a2,7; xor a2,a2,a3; slli a3,a2,17; xor a2,a2,a3
 {branch}
 addi t1,t1,1; addi t1,t1,1; addi t1,t1,1; addi t1,t1,1; addi t1,t1,1; addi t1,t1,1
 2: addi a0,a0,-1; bnez a0,1b"
    )
}

#[test]
fn a_foreseen_branch_costs_what_it_skips() {
    let branch = random("andi a4,a2,1; beqz a4,2f");
    let always = cycles(&random("andi a4,a2,0; beqz a4,2f"), None, 1);
    let never = cycles(&random("andi a4,a2,0; bnez a4,2f"), None, 1);
    let [with, ideal] = [None, Some(Cause::Mispredict)].map(|without| cycles(&branch, without, 1));
    let mean = (always + never) / 2.0;
    assert!(with > 1.5 * mean, "{with}, {always}, {never}");
    assert!((ideal / mean - 1.0).abs() < 0.15, "{ideal}, {always}, {never}");
    let missed = |commit: &&Commit| commit.redirect == Redirect::Mispredict;
    assert_eq!(run(&branch, Some(Cause::Mispredict), 1).iter().filter(missed).count(), 0);
}

/// Runs a program with a select in the place of its first branch, whose sides write `t1` and meet at the label `join`;
/// cycles of its second half.
fn cycles_of_select(source: &str) -> f64 {
    let text = format!("FN(f) {source}\n jalr zero,s3\n");
    let program = Program::new(&text);
    let branch = program
        .insts
        .iter()
        .find(|inst| matches!(inst.action, crate::asm::Action::Branch { .. }))
        .unwrap();
    let (pc, join, t1) = (branch.pc, program.labels["join"], 1_u64 << 6);
    let mut preset = Preset::load("rtl-mega").unwrap();
    let select = format!("select {pc:#x} {:#x} {join:#x} {t1:#x}", branch.decoded.raw);
    preset.set("what_if.without", &format!("[{select:?}]")).unwrap();
    let mut core = Core::new(&preset, Commits::default());
    program.define(&mut core);
    let mut state = State::new();
    (state.x[11], state.x[13], state.x[19], state.pc) = (DATA, 3, 0x1000, TEXT);
    program.run(&mut core, &mut state);
    let commits = core.into_sink().0;
    let missed = |commit: &Commit| commit.redirect == Redirect::Mispredict;
    let half = commits.len() / 2;
    assert!(!commits[half..commits.len() - 4].iter().any(missed));
    (commits[commits.len() - 1].commit - commits[half].commit) as f64
}

/// A random bit decides what is added to `t1`, by `decide`; `then` may use the sum.
fn random_sum(decide: &str, then: &str) -> String {
    format!(
        "li a0,4000; li a2,0x1234567; li t2,5
 1: slli a3,a2,13; xor a2,a2,a3; srli a3,a2,7; xor a2,a2,a3; slli a3,a2,17; xor a2,a2,a3
 andi a4,a2,1
 {decide}
 {then}
 addi a0,a0,-1; bnez a0,1b"
    )
}

#[test]
fn a_select_costs_what_branchless_code_does() {
    let branch = "beqz a4,join; add t1,t1,t2; join: add t3,t3,t1";
    // `xor` takes as long as the `and` of a mask.
    let mask = "sub a4,zero,a4; xor a4,a4,t2; add t1,t1,a4; add t3,t3,t1";
    let foreseen = |then: &str| {
        [None, Some(Cause::Mispredict)].map(|without| cycles(&random_sum(branch, then), without, 1))
    };
    // The next round does not need the sum: branchless code gains what foresight does.
    let [with, ideal] = foreseen("");
    let select = cycles_of_select(&random_sum(branch, ""));
    assert!(ideal < 0.7 * with, "{ideal}, {with}");
    assert!((select / ideal - 1.0).abs() < 0.1, "{select}, {ideal}");
    // The next round begins with the sum: who foresees the branch need not wait for the condition, branchless code must.
    let then = "add a2,a2,t1";
    let [_, ideal] = foreseen(then);
    let select = cycles_of_select(&random_sum(branch, then));
    let branchless = cycles(&random_sum(mask, then), None, 1);
    assert!(ideal < 0.85 * branchless, "{ideal}, {branchless}");
    assert!((select / branchless - 1.0).abs() < 0.1, "{select}, {branchless}");
}

#[test]
fn only_the_named_instruction_changes() {
    let source = rounds("csrr a2,mstatus; csrr a2,mepc");
    let mut preset = Preset::load("rtl-mega").unwrap();
    let flushes = |preset: &Preset| {
        let program = Program::new(&format!("FN(f) {source}\n jalr zero,s3\n"));
        let mut core = Core::new(preset, Commits::default());
        program.define(&mut core);
        let mut state = State::new();
        (state.x[19], state.pc) = (0x1000, TEXT);
        program.run(&mut core, &mut state);
        let access =
            program.insts.iter().find(|inst| matches!(inst.action, crate::asm::Action::Csr(_)));
        (core.stats().flushes, access.unwrap().pc, access.unwrap().decoded.raw)
    };
    let (all, pc, raw) = flushes(&preset);
    assert_eq!(all, 4000);
    let mut without = |text: &str| {
        preset.set("what_if.without", &format!("[{text:?}]")).unwrap();
        flushes(&preset).0
    };
    assert_eq!(without(&format!("flush {pc:#x} {raw:#x}")), 2000);
    assert_eq!(
        without(&format!("flush {pc:#x} {:#x}", raw ^ 1)),
        4000,
        "another instruction at its address"
    );
    assert_eq!(without(&format!("miss {pc:#x}")), 4000, "it misses nothing");
}

#[test]
fn what_is_no_cause_is_told() {
    let mut preset = Preset::default();
    for bad in [
        "",
        "miss",
        "miss 12",
        "mis 0x12",
        "miss 0x12 0x12 0x12",
        "miss 0x12 0x123456789",
        "miss 0x12 x",
        "miss 0x12 0x12 0x12 0x12",
        "select 0x12 0x12",
        "select 0x12 0x12 0x12 x",
    ] {
        let error = preset.set("what_if.without", &format!("[{bad:?}]"));
        let text = error.unwrap_err().to_string();
        assert!(text.contains("what_if.without") && text.contains("mispredict, miss"), "{text}");
    }
}
