//! Translated code does what the interpreter does, instruction for instruction.

use devices::{CLINT_BASE, RAM_BASE};
use isa::{Interrupt, TimingModel, TransferKind, Untimed};

use super::Machine;
use super::asm::*;
use super::model::{InRuns, Logs, Warms};
use crate::csr::number::MEPC;
use crate::csr::status;
use crate::{Limit, Translate};

const DATA: i32 = 0x4000;

/// Runs a program from its start for each of some numbers of instructions, interpreted and translated, with register
/// 1 pointing to data, and compares everything. Gives the last machine.
fn same(prepare: impl Fn(&mut Machine), program: &[u32]) -> Machine {
    let mut last = None;
    // The translator stays out of the last 2,048 instructions of a run: in the second half it has to stop in time.
    for steps in (0..40).chain(5000..5100) {
        let machines = [Translate::Nothing, Translate::Everything].map(|what| {
            let mut machine = Machine::new(program);
            machine.hart.set_translate(what).unwrap();
            machine.hart.set_reg(1, RAM_BASE + DATA as u64);
            prepare(&mut machine);
            machine.hart.run(&mut machine.bus, &mut Untimed, Limit::instructions(steps));
            machine
        });
        let [interpreted, translated] = machines.each_ref().map(|m| {
            let data = m.bus.ram.slice(RAM_BASE, 0x8000).unwrap().to_vec();
            let hart = &m.hart;
            let registers: Vec<u64> = (0..64).map(|reg| hart.reg(reg)).collect();
            (hart.pc(), hart.cycle(), hart.instructions(), hart.arch.csrs.mepc, registers, data)
        });
        assert_eq!(interpreted, translated, "after {steps} instructions");
        last = machines.into_iter().last();
    }
    same_in_warming(&prepare, program);
    same_in_runs(prepare, program);
    last.unwrap()
}

/// Checks that a model which is kept warm is told of the same accesses and the same path, in the same order, of interpreted and of translated code, and
/// of several runs after one another. Its filters show each line once it was accessed.
fn same_in_warming(prepare: impl Fn(&mut Machine), program: &[u32]) {
    let run = |what, steps: &[u64]| {
        let mut machine = Machine::new(program);
        machine.hart.set_translate(what).unwrap();
        machine.hart.set_reg(1, RAM_BASE + DATA as u64);
        prepare(&mut machine);
        let mut model = Warms::new(true);
        for steps in steps {
            machine.hart.run(&mut machine.bus, &mut model, Limit::instructions(*steps));
        }
        model.take_path_log();
        let hart = &machine.hart;
        let registers: Vec<u64> = (0..64).map(|reg| hart.reg(reg)).collect();
        assert!(model.path.len() as u64 >= hart.instructions());
        (hart.pc(), hart.cycle(), hart.instructions(), registers, model.told, model.path)
    };
    let interpreted = run(Translate::Nothing, &[5000]);
    assert_eq!(run(Translate::Everything, &[5000]), interpreted);
    assert_eq!(run(Translate::Everything, &[2700, 1, 99, 2200]), interpreted);
    same_in_logs(prepare, program);
}

/// Checks that a model that only has the path logged is told of the same path of interpreted and of translated code.
fn same_in_logs(prepare: impl Fn(&mut Machine), program: &[u32]) {
    let run = |what| {
        let mut machine = Machine::new(program);
        machine.hart.set_translate(what).unwrap();
        machine.hart.set_reg(1, RAM_BASE + DATA as u64);
        prepare(&mut machine);
        let mut model = Logs(Warms::new(true));
        for steps in [2700, 1, 99, 2200] {
            machine.hart.run(&mut machine.bus, &mut model, Limit::instructions(steps));
        }
        model.take_path_log();
        assert!(
            model.0.told.is_empty() && model.0.path.len() as u64 >= machine.hart.instructions()
        );
        model.0.path
    };
    assert!(run(Translate::Nothing) == run(Translate::Everything));
}

#[test]
fn the_path_has_what_was_executed() {
    // A call, a loop of two turns and a return; then a trap, whose handler is at 0x100, and more than a segment holds.
    let mut program = vec![jal(1, 16), 0x0000_0073, jal(0, 20), addi(0, 0, 0)];
    program.extend([addi(2, 2, -1), bne(2, 0, -4), jalr(0, 1, 0)]);
    program.extend([addi(3, 3, 1); 70]);
    program.push(jal(0, -4 * 77));
    let handler = [csrrs(5, MEPC, 0), addi(5, 5, 4), csrrw(0, MEPC, 5), MRET];
    let prepare = |machine: &mut Machine| {
        machine.write(RAM_BASE + 0x200, &handler);
        machine.hart.arch.csrs.mtvec = RAM_BASE + 0x200;
        machine.hart.set_reg(2, 2);
    };
    same_in_warming(prepare, &program);
    let mut machine = Machine::new(&program);
    prepare(&mut machine);
    let mut model = Warms::new(true);
    machine.hart.run(&mut machine.bus, &mut model, Limit::instructions(8));
    model.take_path_log();
    let at = |offset| RAM_BASE + offset;
    let branch = |taken| Some((TransferKind::Branch, taken, at(16)));
    assert_eq!(
        model.path,
        [
            (at(0), 4, Some((TransferKind::DirectCall, false, at(16)))),
            (at(16), 4, None),
            (at(20), 4, branch(true)),
            (at(16), 4, None),
            (at(20), 4, branch(false)),
            (at(24), 4, Some((TransferKind::Return, false, at(4)))),
            (at(4), 2, Some((TransferKind::Flush, false, at(0x200)))),
            (at(0x200), 4, Some((TransferKind::Flush, false, at(0x204)))),
        ]
    );
}

#[test]
fn accesses_are_told_once_if_their_line_is_shown() {
    // Accesses of two lines, over and over; the code has two lines, too.
    let mut program = vec![ld(5, 1, 8), sd(5, 1, 16), ld(6, 1, 72), amoadd_d(7, 5, 1)];
    program.extend([addi(2, 2, 1); 20]);
    program.push(jal(0, -4 * 24));
    same_in_warming(|_| (), &program);
    let told = |shows, what| {
        let mut machine = Machine::new(&program);
        machine.hart.set_translate(what).unwrap();
        machine.hart.set_reg(1, RAM_BASE + DATA as u64);
        let mut model = Warms::new(shows);
        machine.hart.run(&mut machine.bus, &mut model, Limit::instructions(25 * 100));
        let (code, data): (Vec<_>, Vec<_>) =
            model.told.into_iter().partition(|(.., kind)| kind.is_none());
        (data.len(), code.len())
    };
    for what in [Translate::Nothing, Translate::Everything] {
        assert_eq!(told(false, what).0, 4 * 100, "{what:?}");
        // A store shows the line for loads, too, but a load not for stores.
        assert_eq!(told(true, what), (3, 2), "{what:?}");
    }
}

/// Checks that a timing model is told the same of interpreted and of translated code, in the same runs.
fn same_in_runs(prepare: impl Fn(&mut Machine), program: &[u32]) {
    for steps in [39, 300, 5000] {
        let [interpreted, translated] = [Translate::Nothing, Translate::Everything].map(|what| {
            let mut machine = Machine::new(program);
            machine.hart.set_translate(what).unwrap();
            machine.hart.set_reg(1, RAM_BASE + DATA as u64);
            prepare(&mut machine);
            let mut model = InRuns::new();
            let limit = Limit::instructions(steps);
            machine.hart.run(&mut machine.bus, &mut model, limit);
            let hart = &machine.hart;
            assert_eq!(what == Translate::Everything, hart.regions() > 0);
            let registers: Vec<u64> = (0..64).map(|reg| hart.reg(reg)).collect();
            let retired: Vec<_> =
                model.model.retired.iter().map(|executed| format!("{executed:?}")).collect();
            let data = machine.bus.ram.slice(RAM_BASE, 0x8000).unwrap().to_vec();
            let end = (hart.pc(), hart.cycle(), hart.instructions(), registers);
            (retired, model.model.interrupts, model.lengths, end, data)
        });
        assert_eq!(interpreted, translated, "after {steps} instructions");
    }
}

#[test]
fn runs_have_the_same_accesses_and_operands() {
    // One access goes over the end of a page.
    let program = [
        ld(5, 1, 8),
        addi(5, 5, 77),
        sd(5, 1, 0),
        ld(6, 1, 2),
        divu(7, 5, 6),
        sw(7, 1, 16),
        divu(8, 5, 7),
        sd(8, 1, -4),
        addi(9, 9, 1),
        ld(4, 1, -4),
        jal(0, -40),
    ];
    same_in_runs(|_| (), &program);
}

#[test]
fn runs_end_where_code_leaves_the_page() {
    // To a function in another page and back, by way of a jump within the page.
    let program = [
        addi(2, 2, 1),
        jal(0, 8),
        addi(4, 4, 100),
        auipc(6, 0x1000),
        jalr(5, 6, 20),
        add(3, 3, 2),
        jal(0, -24),
    ];
    let function = [sd(2, 1, 0), addi(4, 4, 1), jalr(0, 5, 0)];
    let prepare = |machine: &mut Machine| machine.write(RAM_BASE + 0x1020, &function);
    same_in_runs(prepare, &program);
}

#[test]
fn devices_are_accessed_between_runs() {
    let program = [addi(2, 2, 1), ld(3, 8, 0), sd(2, 1, 0), sd(2, 8, 0), jal(0, -16)];
    let prepare = |machine: &mut Machine| machine.hart.set_reg(8, CLINT_BASE + 0x4000);
    same_in_runs(prepare, &program);
}

#[test]
fn loops_stop_where_the_limit_is() {
    let program = [addi(2, 2, 1), add(3, 3, 2), sd(3, 1, 8), ld(4, 1, 8), jal(0, -16)];
    let machine = same(|_| (), &program);
    assert!(machine.hart.instructions() > 5000 && machine.x(4) != 0);
}

#[test]
fn a_loop_that_overwrites_itself_runs_anew() {
    // Each turn stores one of two instructions over the one at 12, in turn.
    let (one, other) = (addi(3, 3, 1), addi(3, 3, 100));
    let program = [
        ld(5, 1, 0),
        ld(6, 1, 8),
        sw(5, 2, 12),
        addi(0, 0, 0),
        sd(5, 1, 8),
        sd(6, 1, 0),
        jal(0, -24),
    ];
    let machine = same(
        |machine| {
            machine.hart.set_reg(2, RAM_BASE);
            machine.bus.ram.store(RAM_BASE + DATA as u64, 8, one.into());
            machine.bus.ram.store(RAM_BASE + DATA as u64 + 8, 8, other.into());
        },
        &program,
    );
    assert!(machine.x(3) > 700 * 50);
}

#[test]
fn interrupts_come_after_the_same_instruction() {
    // The handler sets the timer 4 ticks on.
    let handler = [ld(7, 8, 0), addi(7, 7, 4), sd(7, 8, 0), addi(9, 9, 1), MRET];
    let machine = same(
        |machine| {
            machine.write(RAM_BASE + 0x1000, &handler);
            machine.hart.set_reg(8, CLINT_BASE + 0x4000);
            machine.bus.store(CLINT_BASE + 0x4000, 8, 1).unwrap();
            machine.hart.arch.csrs.mtvec = RAM_BASE + 0x1000;
            machine.hart.arch.csrs.mie = 1 << Interrupt::MachineTimer as u64;
            machine.hart.arch.csrs.mstatus |= status::MIE;
        },
        &[addi(2, 2, 1), add(3, 3, 2), jal(0, -8)],
    );
    assert!(machine.x(9) > 0);
}

#[test]
fn a_trap_in_the_middle_of_a_block_leaves_what_came_before() {
    // The store faults from the end of memory on; the handler goes on after it.
    let handler = [csrr(7, 0x341), addi(7, 7, 4), csrrw(0, 0x341, 7), addi(9, 9, 1), MRET];
    let machine = same(
        |machine| {
            machine.write(RAM_BASE + 0x1000, &handler);
            machine.hart.arch.csrs.mtvec = RAM_BASE + 0x1000;
            machine.hart.set_reg(1, RAM_BASE + (1 << 20) - 64);
        },
        &[addi(2, 2, 1), sd(2, 1, 0), addi(1, 1, 8), add(3, 3, 2), jal(0, -16)],
    );
    assert!(machine.x(9) > 100);
}

/// The doubles, and singles and halves as registers hold them, whose pairs FP operations are tried on.
fn odd_numbers() -> Vec<u64> {
    let doubles = [
        0.0,
        -0.0,
        1.5,
        -2.5,
        0.3,
        1e300,
        f64::MIN_POSITIVE,
        5e-324,
        f64::INFINITY,
        f64::NAN,
        4294967295.5,
        -2147483649.0,
        9.3e18,
    ];
    let singles = [-0.0, 1.5, 3e9, 1e-40, f32::MAX, f32::NEG_INFINITY, f32::NAN];
    let singles = singles.map(|value| !0 << 32 | u64::from(value.to_bits()));
    let signaling = [0x7ff0_0000_0000_0001, !0 << 32 | 0x7f80_0001];
    let numbers = doubles.map(f64::to_bits).into_iter();
    let halves = [0x3e00, 0xbc01, 0x0001, 0xfc00, 0x7e00].map(|bits: u64| !0 << 16 | bits);
    numbers.chain(singles).chain(halves).chain(signaling).collect()
}

/// Registers, flags, and memory after an FP operation on all pairs.
fn after_pairs(operation: u32, what: Translate, flags: u8) -> (Vec<u64>, u8, Vec<u8>) {
    let numbers = odd_numbers();
    let pairs = numbers.iter().flat_map(|a| numbers.iter().map(move |b| [*a, *b]));
    let pairs: Vec<u64> = pairs.flatten().collect();
    let body = [
        ld(7, 1, 0),
        fld(7, 1, 0),
        fld(8, 1, 8),
        operation,
        sd(5, 2, 0),
        fsd(5, 2, 8),
        addi(1, 1, 16),
        addi(2, 2, 16),
    ];
    let steps = (body.len() + 1) * pairs.len() / 2;
    let program = [&body[..], &[bne(1, 3, -4 * body.len() as i32), jal(0, 0)]].concat();
    let mut machine = Machine::new(&program);
    machine.hart.set_translate(what).unwrap();
    let data = RAM_BASE + DATA as u64;
    let out = data + 8 * pairs.len() as u64;
    for (reg, value) in [(1, data), (2, out), (3, out)] {
        machine.hart.set_reg(reg, value);
    }
    for (n, &bits) in pairs.iter().enumerate() {
        machine.bus.ram.store(data + 8 * n as u64, 8, bits);
    }
    machine.hart.arch.csrs.mstatus |= status::FS;
    machine.hart.arch.csrs.fflags = flags;
    // The translator stays out of the last 2,048.
    let limit = Limit::instructions(steps as u64 + 3000);
    machine.hart.run(&mut machine.bus, &mut Untimed, limit);
    assert_eq!(machine.x(1), out, "all pairs were done");
    let hart = &machine.hart;
    let memory = machine.bus.ram.slice(out, 8 * pairs.len() as u64).unwrap();
    let registers = (0..64).map(|reg| hart.reg(reg)).collect();
    (registers, hart.arch.csrs.fflags, memory.to_vec())
}

#[test]
fn floating_point_of_odd_numbers() {
    const NX: u8 = 1;
    // Add, subtract, multiply, divide, square root; signs, extrema; comparisons; moves and classes.
    let plain = [0x00, 0x04, 0x08, 0x0c].map(|funct7| (funct7, 8, 0));
    let injected = [(0x10, 0), (0x10, 1), (0x10, 2), (0x14, 0), (0x14, 1), (0x14, 2), (0x14, 3)];
    let compared = [0, 1, 2, 4, 5].map(|funct3| (0x50, 8, funct3));
    // Square root, moves and classes; from Zfa, constants and rounding to integers.
    let others = [
        (0x2c, 0, 0),
        (0x70, 0, 0),
        (0x70, 0, 1),
        (0x78, 0, 0),
        (0x78, 1, 0),
        (0x20, 4, 0),
        (0x20, 5, 0),
    ];
    let mut operations = [&plain[..], &compared, &others].concat();
    operations.extend(injected.map(|(funct7, funct3)| (funct7, 8, funct3)));
    // Conversions to and from the four integers in all rounding modes, and to the other format.
    for mode in [0, 1, 2, 3, 4, 7] {
        operations.extend((0..4).map(|integer| (0x60, integer, mode)));
        operations.extend((0..4).map(|integer| (0x68, integer, mode)));
    }
    let mut words: Vec<u32> = Vec::new();
    for (funct7, rs2, funct3) in operations {
        words.extend([0, 1, 2].map(|format| fp(funct7 | format, rs2, funct3)));
    }
    for (to, from) in [(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)] {
        words.extend([0, 1, 4, 7].map(|mode| fp(0x20 | to, from, mode)));
    }
    // `fcvtmod.w.d`.
    words.push(fp(0x61, 8, 1));
    for word in words {
        for flags in [NX, 0] {
            let [interpreted, translated] = [Translate::Nothing, Translate::Everything]
                .map(|what| after_pairs(word, what, flags));
            assert!(interpreted == translated, "{word:#010x}, flags {flags}");
        }
    }
}
