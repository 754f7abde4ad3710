use commit_trace::{
    Batch, Commit, CommitSink, CycleClass, HartId, InstId, Recorder, Redirect, TeaEvents, recording,
};

use super::*;
use crate::{Component, Evaluation, Evaluator, ProcessId, Region, UNITS_PER_CYCLE};

/// Address of the first instruction.
const CODE: u64 = 0x1_0000;

/// `1: lw a5,0(a4); beq a5,a3,1b`.
const FLAG: [u32; 2] = [0x0007_2783, 0xfed7_8ee3];

fn static_info((number, raw): (u32, u32)) -> StaticInfo {
    let inst = isa::decode(raw);
    let pc = CODE + 4 * u64::from(number);
    let class = match inst.class {
        isa::InstClass::Branch => Class::Branch,
        isa::InstClass::Jal => Class::Jump,
        _ => Class::Int,
    };
    let target = matches!(class, Class::Branch | Class::Jump)
        .then(|| pc.wrapping_add_signed(inst.imm.into()));
    let id = InstId(number);
    StaticInfo { id, space: 2, pc, raw, len: 4, privilege: 0, class, target }
}

/// Returns the numbers of the instructions in a loop that only waits.
fn waiting(code: &[u32]) -> Vec<u32> {
    let mut loops = SpinLoops::default();
    (0..).zip(code.iter().copied()).for_each(|inst| loops.define(&static_info(inst)));
    loops.settle();
    let is_in = |number: &u32| loops.place[*number as usize].of != 0;
    (0..code.len() as u32).filter(is_in).collect()
}

#[test]
fn loops_that_wait_for_memory_spin() {
    assert_eq!(waiting(&FLAG), [0, 1]);
    // amoswap.w.aq a5,a3,(a4); bnez a5,1b
    assert_eq!(waiting(&[0x0cd7_27af, 0xfe07_9ee3]), [0, 1]);
    // lr.w a5,(a4); bnez a5,1b; sc.w a6,a3,(a4); bnez a6,1b: what may write is not of the loop
    assert_eq!(waiting(&[0x1007_27af, 0xfe07_9ee3, 0x18d7_282f, 0xfe08_1ae3]), [0, 1]);
    // The kernel's cpu_relax: div a5,a5,zero; pause; lw a5,0(a4); bnez a5,1b
    let relax = [0x0207_c7b3, 0x0100_000f, 0x0007_2783, 0xfe07_9ae3];
    assert_eq!(waiting(&relax), [0, 1, 2, 3]);
    // lw a5,0(a4); beqz a5,2f; pause; j 1b; 2: sw a5,0(a3); ret
    let store_behind =
        [0x0007_2783, 0x0007_8663, 0x0100_000f, 0xff5f_f06f, 0x00f6_a023, 0x0000_8067];
    assert_eq!(waiting(&store_behind), [0, 1, 2, 3]);
}

#[test]
fn a_limit_of_the_waiting_may_be_counted_and_time_be_read() {
    // lw a5,0(a4); bne a5,a3,2f; addi a2,a2,-1; bnez a2,1b; 2: nop
    let limit = [0x0007_2783, 0x00d7_9663, 0xfff6_0613, 0xfe06_1ae3, 0x0000_0013];
    assert_eq!(waiting(&limit), [0, 1, 2, 3]);
    // rdtime a0; bgeu a0,a2,2f; lw a5,0(a4); bnez a5,1b; 2: nop
    let time = [0xc010_2573, 0x00c5_7663, 0x0007_2783, 0xfe07_9ae3, 0x0000_0013];
    assert_eq!(waiting(&time), [0, 1, 2, 3]);
    // pause; addi a2,a2,-1; bnez a2,1b
    assert_eq!(waiting(&[0x0100_000f, 0xfff6_0613, 0xfe06_1ce3]), [0, 1, 2]);
    // A delay without pause: addi a2,a2,-1; bnez a2,1b
    assert!(waiting(&[0xfff6_0613, 0xfe06_1ee3]).is_empty());
    // Reads on which nothing depends: lw a5,0(a4); addi a2,a2,-1; bnez a2,1b
    assert!(waiting(&[0x0007_2783, 0xfff6_0613, 0xfe06_1ce3]).is_empty());
}

#[test]
fn loops_that_work_do_not_spin() {
    for (what, code) in [
        // lbu a5,0(a4); addi a4,a4,1; bnez a5,1b
        ("strlen", &[0x0007_4783, 0x0017_0713, 0xfe07_9ce3][..]),
        // ld a4,8(a4); bnez a4,1b
        ("a list", &[0x0087_3703, 0xfe07_1ee3]),
        // lw a5,0(a4); add a0,a0,a5; addi a4,a4,4; bne a4,a3,1b
        ("a sum", &[0x0007_2783, 0x00f5_0533, 0x0047_0713, 0xfed7_1ae3]),
        // lw a5,0(a4); sw a5,0(a3); bnez a5,1b
        ("a store", &[0x0007_2783, 0x00f6_a023, 0xfe07_9ce3]),
        // amoadd.w a5,a3,(a4); bltu a5,a2,1b
        ("a count in memory", &[0x00d7_27af, 0xfec7_eee3]),
        // lr.w a5,(a4); addi a5,a5,1; sc.w a6,a5,(a4); bnez a6,1b; addi a2,a2,-1; bnez a2,1b
        (
            "atomic increments",
            &[0x1007_27af, 0x0017_8793, 0x18f7_282f, 0xfe08_1ae3, 0xfff6_0613, 0xfe06_16e3],
        ),
        // jal ra,f; lw a5,0(a4); bnez a5,1b
        ("a call", &[0xf61f_f0ef, 0x0007_2783, 0xfe07_9ce3]),
        // lw a5,0(a4); beqz a5,2f; li a6,1; 2: add a0,a6,a3; bne a0,a2,1b
        (
            "a register that one way alone writes",
            &[0x0007_2783, 0x0007_8463, 0x0010_0813, 0x00d8_0533, 0xfec5_18e3],
        ),
    ] {
        assert!(waiting(code).is_empty(), "{what}");
    }
    // Both ways write it: li a6,1; j 3f; 2: li a6,2; 3: add a0,a6,a3; bne a5,a2,1b
    let both =
        [0x0007_2783, 0x0007_8663, 0x0010_0813, 0x0080_006f, 0x0020_0813, 0x00d8_0533, 0xfec7_94e3];
    assert_eq!(waiting(&both), [0, 1, 2, 3, 4, 5, 6]);
}

/// A flag that is waited for between other instructions, 100 of them: the wait goes round so many times, one instruction in `each` cycles.
fn recorded(turns: usize, each: u64, flush: impl Fn(usize) -> bool) -> Vec<Batch> {
    let nop = 0x0000_0013;
    let code: Vec<u32> = FLAG.into_iter().chain([nop; 100]).collect();
    let work = 2..102;
    let waits = [0, 1].repeat(turns);
    let executed: Vec<u32> = work.clone().chain(waits).chain(work).collect();
    let (mut recorder, stream) = recording(HartId(0), 0, executed.len() + 1);
    (0..).zip(code).for_each(|inst| recorder.define(&static_info(inst)));
    for (at, inst) in executed.into_iter().enumerate() {
        let commit = 100 + each * at as u64;
        recorder.commit(&Commit {
            inst: InstId(inst),
            decode: commit - 6,
            dispatch: commit - 4,
            commit,
            redirect: Redirect::None,
            first_of_row: true,
            class: CycleClass::from_bits(0),
            tea: TeaEvents(0),
        });
        if flush(at) {
            Recorder::flush(&mut recorder);
        }
    }
    recorder.finish().unwrap();
    stream.collect()
}

fn evaluate(batches: &[Batch], call_stacks: bool) -> Evaluation {
    let mut evaluator = Evaluator::new(&[], Region::Whole).in_detail(4);
    if call_stacks {
        evaluator = evaluator.with_call_stacks();
    }
    batches.iter().for_each(|batch| evaluator.batch(batch).unwrap());
    evaluator.finish()
}

fn spun(evaluation: &Evaluation) -> u64 {
    let units = evaluation.spinning.iter().map(|(_, _, stack)| stack.total());
    units.sum::<u64>() / UNITS_PER_CYCLE
}

#[test]
fn a_wait_spins_from_its_sixteenth_instruction_on_however_it_is_cut() {
    for turns in [1, 2, 5, 8, 9, 20, 50, 1000] {
        for each in [1, 3] {
            let expected = (2 * turns as u64).saturating_sub(LEAST_RUN.into()) * each;
            for cut in [1, 7, 64, 1 << 20] {
                let batches = recorded(turns, each, |at| at % cut == cut - 1);
                let [by_blocks, by_spans] = [false, true].map(|calls| evaluate(&batches, calls));
                assert_eq!(spun(&by_blocks), expected, "{turns} {each} {cut}");
                assert_eq!(by_spans.spinning, by_blocks.spinning);
                assert_eq!(by_blocks.check(), Ok(()));
            }
        }
    }
}

#[test]
fn what_spins_is_a_part_of_the_stack_and_no_longer_work() {
    use crate::SpeedupComponent as Of;
    let of = |evaluation: &Evaluation, component: Of| evaluation.hart_cycles(1)[component as usize];
    let evaluation = evaluate(&recorded(1000, 3, |_| false), false);
    for (process, inst, stack) in evaluation.spinning.iter() {
        assert_eq!(process, ProcessId::BOOT);
        let whole = evaluation.stacks.get(process, inst);
        for component in Component::ALL {
            assert!(stack[component] <= whole[component]);
        }
    }
    assert_eq!(of(&evaluation, Of::Spinning), 3 * (2000 - 16));
    let sum = of(&evaluation, Of::Spinning) + of(&evaluation, Of::Base);
    assert_eq!(sum, evaluation.cycles);
    let kernel = {
        let mut evaluation = evaluation;
        evaluation.static_info.iter_mut().for_each(|info| info.privilege = 1);
        evaluation
    };
    assert_eq!(of(&kernel, Of::KernelSpinning), 3 * (2000 - 16));
    assert_eq!(of(&kernel, Of::Spinning) + of(&kernel, Of::Base), 0);
    let two = Evaluation::merged(&[kernel.clone(), kernel]).unwrap().into_owned();
    assert_eq!(of(&two, Of::KernelSpinning), 2 * 3 * (2000 - 16));
}
