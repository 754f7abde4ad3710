//! Several harts.

use devices::{Bus, CLINT_BASE, Clock, RAM_BASE};
use isa::Interrupt;

use super::asm::*;
use super::model::{InRuns, Model, Warms};
use crate::{
    Hart, Limit, RunExit, Translate, run_paced_together, run_timed_together, run_together,
};

const DATA: u64 = RAM_BASE + 0x4000;

pub(super) struct Machine {
    pub harts: Vec<Hart>,
    pub bus: Bus,
}

impl Machine {
    /// Each hart starts at its own program, with register 1 set to `DATA`.
    pub(super) fn new(programs: &[&[u32]], translate: Translate) -> Self {
        let mut bus = Bus::new(1 << 20, programs.len(), Clock::default()).unwrap();
        let mut harts = Vec::new();
        for (id, program) in programs.iter().enumerate() {
            let start = RAM_BASE + 0x1000 * id as u64;
            for (n, &word) in program.iter().enumerate() {
                bus.ram.store(start + 4 * n as u64, 4, word.into()).unwrap();
            }
            let mut hart = Hart::new(id);
            hart.set_translate(translate).unwrap();
            hart.set_pc(start);
            hart.set_reg(1, DATA);
            harts.push(hart);
        }
        Self { harts, bus }
    }

    pub(super) fn run(&mut self, cycle: u64) -> RunExit {
        let mut harts: Vec<&mut Hart> = self.harts.iter_mut().collect();
        run_together(&mut harts, &mut self.bus, Limit::cycle(cycle))
    }

    fn data(&self, offset: u64) -> u64 {
        self.bus.ram.load(DATA + offset, 8).unwrap()
    }
}

#[test]
fn no_increment_is_lost() {
    // Ten thousand by each hart; then it sleeps for good.
    let load_store = [
        lr_d(5, 1),
        addi(5, 5, 1),
        sc_d(6, 5, 1),
        bne(6, 0, -12),
        addi(2, 2, 1),
        bne(2, 3, -20),
        WFI,
    ];
    let amo = [addi(4, 0, 1), amoadd_d(0, 4, 1), addi(2, 2, 1), bne(2, 3, -12), WFI];
    for translate in [Translate::Nothing, Translate::Everything] {
        let run = |slice: u64| {
            let mut machine = Machine::new(&[&load_store, &amo, &load_store], translate);
            machine.harts.iter_mut().for_each(|hart| hart.set_reg(3, 10_000));
            let mut cycle = 0;
            while machine.data(0) < 30_000 && cycle < 1_000_000 {
                cycle += slice;
                assert_eq!(machine.run(cycle), RunExit::Limit);
            }
            (machine.data(0), machine.harts.iter().map(|h| h.reg(2)).collect::<Vec<_>>())
        };
        // Whatever the turns.
        for slice in [100, 777, 200_000] {
            assert_eq!(run(slice), (30_000, vec![10_000; 3]), "{translate:?} {slice}");
        }
    }
}

#[test]
fn an_interrupt_from_another_hart_wakes_a_sleeper() {
    // Hart 1 counts what wakes it; hart 0 computes for a while before it sends the interrupt, then sleeps.
    let sender = [addi(2, 2, 1), bne(2, 3, -4), addi(4, 0, 1), sw(4, 5, 4), WFI];
    let sleeper = [WFI, addi(2, 2, 1), sw(0, 5, 4), jal(0, -12)];
    let mut machine = Machine::new(&[&sender, &sleeper], Translate::Nothing);
    machine.harts[0].set_reg(3, 20_000);
    for hart in &mut machine.harts {
        hart.set_reg(5, CLINT_BASE);
        hart.arch.csrs.mie = 1 << Interrupt::MachineSoftware as u64;
    }
    assert_eq!(machine.run(u64::MAX), RunExit::Idle, "both sleep for good");
    assert_eq!(machine.harts[1].reg(2), 1);
    let [sender, sleeper] = [0, 1].map(|n| machine.harts[n].cycle());
    assert!(sender > 40_000 && sleeper.abs_diff(sender) < 20_000, "{sender} {sleeper}");
}

#[test]
fn code_that_another_hart_wrote_is_executed() {
    // Hart 0 overwrites the first instruction of hart 1's loop.
    let patch = addi(3, 3, 100);
    let writer = [addi(2, 2, 1), bne(2, 3, -4), sw(4, 5, 0), WFI];
    let looping = [addi(3, 3, 1), jal(0, -4)];
    for translate in [Translate::Nothing, Translate::Everything] {
        let mut machine = Machine::new(&[&writer, &looping], translate);
        for (reg, value) in [(3, 20_000), (4, patch.into()), (5, RAM_BASE + 0x1000)] {
            machine.harts[0].set_reg(reg, value);
        }
        machine.run(30_000);
        let before = machine.harts[1].reg(3);
        assert!((10_000..=16_000).contains(&before), "{before}");
        machine.run(60_000);
        let then = machine.harts[1].reg(3);
        machine.run(70_000);
        assert_eq!(machine.harts[1].reg(3), then + 100 * 5000, "{translate:?}");
    }
}

#[test]
fn time_never_goes_back_between_harts() {
    // Each hart compares the time with what one of them stored before; a step back ends in an endless loop.
    let program = [
        ld(6, 1, 0),
        csrr(5, 0xc01),
        sltu(7, 5, 6),
        bne(7, 0, 0),
        sd(5, 1, 0),
        addi(2, 2, 1),
        jal(0, -24),
    ];
    let mut machine = Machine::new(&[&program, &program, &program], Translate::Nothing);
    machine.run(200_000);
    for hart in &machine.harts {
        assert!(hart.reg(2) > 20_000, "{}", hart.reg(2));
    }
}

/// Runs under timing models until nobody can go on, or to `cycle`.
fn run_timed(machine: &mut Machine, models: &mut [Model], cycle: u64) -> RunExit {
    let mut pairs: Vec<_> = machine.harts.iter_mut().zip(models).collect();
    run_timed_together(&mut pairs, &mut machine.bus, Limit::cycle(cycle))
}

#[test]
fn timed_harts_stay_close_to_each_other() {
    // The first executes an instruction a cycle, the second one in three.
    let program = [addi(2, 2, 1), jal(0, -4)];
    let mut machine = Machine::new(&[&program, &program], Translate::Nothing);
    let mut models = [Model::new(), Model::with_latency(3)];
    for cycle in [1000, 5000, 5100, 9000] {
        let exit = run_timed(&mut machine, &mut models, cycle);
        assert_eq!(exit, RunExit::Limit);
        for model in &models {
            assert!((cycle..cycle + 1050).contains(&model.now), "{}", model.now);
        }
    }
    let [fast, slow] = [0, 1].map(|n| machine.harts[n].reg(2));
    // One hart is at most 528 cycles ahead of the other, and a pass takes the first one two cycles.
    assert!(fast.abs_diff(3 * slow) < 270, "{fast} {slow}");
}

/// Two harts take a lock, add to a word, do something for sixty cycles, give the lock back, and do something else for thirty. Each sees that the other
/// one has the lock.
#[test]
fn timed_harts_contend_for_a_lock_in_order() {
    // Until the lock is free.
    let mut program = vec![lr_d(5, 1), bne(5, 0, -4), sc_d(6, 10, 1), bne(6, 0, -12)];
    program.extend([ld(5, 11, 0), addi(5, 5, 1), sd(5, 11, 0)]);
    program.extend((0..60).map(|_| addi(7, 7, 1)));
    program.extend([sd(0, 1, 0), addi(2, 2, 1)]);
    program.extend((0..30).map(|_| addi(7, 7, 1)));
    program.push(jal(0, -4 * program.len() as i32));
    let mut machine = Machine::new(&[&program, &program], Translate::Nothing);
    for hart in &mut machine.harts {
        let lock = hart.reg(1);
        hart.set_reg(10, 1);
        hart.set_reg(11, lock + 64);
    }
    let mut models = [InRuns::new(), InRuns::new()];
    let mut pairs: Vec<_> = machine.harts.iter_mut().zip(&mut models).collect();
    run_timed_together(&mut pairs, &mut machine.bus, Limit::cycle(100_000));
    let [first, second] = [0, 1].map(|n| machine.harts[n].reg(2));
    let counted = machine.data(64);
    assert!((first + second..=first + second + 2).contains(&counted), "{counted}");
    // Harts that never found the lock taken would take it every 100 cycles each.
    assert!((1300..1600).contains(&(first + second)), "{first} {second}");
    assert!(first > 400 && second > 400, "{first} {second}");
}

#[test]
fn timed_runs_are_the_same_wherever_they_stop() {
    let program =
        [lr_d(5, 1), addi(5, 5, 1), sc_d(6, 5, 1), bne(6, 0, -12), addi(2, 2, 1), jal(0, -20)];
    let run = |step: u64| {
        let mut machine = Machine::new(&[&program, &program, &program], Translate::Nothing);
        let mut models = [1, 2, 3].map(Model::with_latency);
        for n in 1..=12_000 / step {
            run_timed(&mut machine, &mut models, n * step);
        }
        let harts = machine.harts.iter().map(|hart| hart.reg(2));
        let counts: Vec<u64> = harts.collect();
        (machine.data(0), counts, models.map(|model| model.now))
    };
    let whole = run(12_000);
    assert!(whole.1.iter().all(|&count| count > 100), "{whole:?}");
    assert_eq!(run(100), whole);
    assert_eq!(run(4000), whole);
}

#[test]
fn paced_runs_are_the_same_wherever_they_stop_and_whatever_is_translated() {
    let program =
        [lr_d(5, 1), addi(5, 5, 1), sc_d(6, 5, 1), bne(6, 0, -12), addi(2, 2, 1), jal(0, -20)];
    let run = |step: u64, translate: Translate| {
        let mut machine = Machine::new(&[&program, &program, &[WFI]], translate);
        let mut models = [true, false, true].map(Warms::new);
        for n in 1..=12_000 / step {
            let mut pairs: Vec<_> = machine.harts.iter_mut().zip(&mut models).collect();
            let limit = Limit::cycle(n * step);
            assert_eq!(run_paced_together(&mut pairs, &mut machine.bus, limit).0, RunExit::Limit);
        }
        let harts =
            machine.harts.iter().map(|hart| (hart.reg(2), hart.cycle(), hart.instructions()));
        (machine.data(0), harts.collect::<Vec<_>>())
    };
    let whole = run(12_000, Translate::Nothing);
    // Some 12,000 cycles of two harts, at 0.72 cycles for each instruction. Each may have stopped between an increment and its count.
    let counted: u64 = whole.1.iter().map(|hart| hart.0).sum();
    assert!((counted..=counted + 2).contains(&whole.0), "increments are lost: {whole:?}");
    assert!(whole.1[..2].iter().all(|hart| hart.2 > 16_000), "{whole:?}");
    assert!(whole.1.iter().all(|hart| (12_000..12_100).contains(&hart.1)), "{whole:?}");
    for translate in [Translate::Nothing, Translate::Everything] {
        for step in [100, 4000, 12_000] {
            assert_eq!(run(step, translate), whole, "{step} {translate:?}");
        }
    }
}

#[test]
fn cycles_in_which_all_paced_harts_sleep_are_counted() {
    let mut machine = Machine::new(&[&[WFI], &[WFI]], Translate::Nothing);
    let mut models = [Warms::new(true), Warms::new(true)];
    let mut pairs: Vec<_> = machine.harts.iter_mut().zip(&mut models).collect();
    let (exit, slept) = run_paced_together(&mut pairs, &mut machine.bus, Limit::cycle(50_000));
    assert_eq!(exit, RunExit::Limit);
    assert!((49_000..=50_000).contains(&slept), "{slept}");
}

#[test]
fn a_paced_hart_that_waits_for_others_executes_less() {
    let program = [addi(2, 2, 1), jal(0, -4)];
    let run = |step: u64| {
        let mut machine = Machine::new(&[&program, &program], Translate::Nothing);
        let mut models = [Warms::new(true), Warms::new(true)];
        // Each turn of 64 cycles, and as many in which the hart waits.
        models[1].delay = 64;
        for n in 1..=64_000 / step {
            let mut pairs: Vec<_> = machine.harts.iter_mut().zip(&mut models).collect();
            run_paced_together(&mut pairs, &mut machine.bus, Limit::cycle(n * step));
        }
        machine.harts.iter().map(|hart| (hart.cycle(), hart.instructions())).collect::<Vec<_>>()
    };
    let whole = run(64_000);
    let [(cycles, instructions), (_, waited)] = whole[..] else { panic!("{whole:?}") };
    assert!((64_000..64_100).contains(&cycles), "{whole:?}");
    assert!(waited.abs_diff(instructions / 2) < 200, "{whole:?}");
    assert_eq!(run(100), whole);
}

/// Drops decoded code between runs, as a checkpoint does. Harts lose increments to each other, depending on where turns end.
#[test]
fn turns_end_in_the_same_place_whatever_is_decoded() {
    let mut program = vec![ld(5, 1, 0)];
    program.extend((0..40).map(|_| addi(2, 2, 1)));
    program.extend([addi(5, 5, 1), sd(5, 1, 0), jal(0, -4 * 43)]);
    let run = |forget: bool| {
        let programs = [&program[..]; 3];
        let mut machine = Machine::new(&programs, Translate::Nothing);
        let mut models = [1, 2, 3]
            .map(|latency| InRuns { model: Model::with_latency(latency), lengths: Vec::new() });
        for n in 1..=40 {
            let mut pairs: Vec<_> = machine.harts.iter_mut().zip(&mut models).collect();
            run_timed_together(&mut pairs, &mut machine.bus, Limit::cycle(n * 300));
            if forget {
                for hart in &mut machine.harts {
                    hart.host.fetch_tlb.flush();
                    hart.decoded.code.clear(&mut machine.bus.ram);
                }
            }
        }
        let counts = machine.harts.iter().map(|hart| hart.reg(2));
        let counts: Vec<u64> = counts.collect();
        let nows = models.map(|model| model.model.now);
        (machine.data(0), counts, nows)
    };
    let whole = run(false);
    let passes: u64 = whole.1.iter().map(|count| count / 40).sum();
    assert!(0 < whole.0 && whole.0 < passes, "{whole:?}");
    assert_eq!(run(true), whole);
}

#[test]
fn a_timed_sleeper_wakes_when_the_interrupt_is_sent() {
    let sender = [addi(2, 2, 1), bne(2, 3, -4), addi(4, 0, 1), sw(4, 5, 4), WFI];
    let sleeper = [WFI, csrr(6, 0xb00), sw(0, 5, 4), jal(0, -12)];
    let mut machine = Machine::new(&[&sender, &sleeper], Translate::Nothing);
    machine.harts[0].set_reg(3, 20_000);
    for hart in &mut machine.harts {
        hart.set_reg(5, CLINT_BASE);
        hart.arch.csrs.mie = 1 << Interrupt::MachineSoftware as u64;
    }
    let mut models = [Model::new(), Model::new()];
    let exit = run_timed(&mut machine, &mut models, u64::MAX);
    assert_eq!(exit, RunExit::Idle, "both sleep for good");
    // Two cycles a pass of the loop, then the interrupt.
    let woken = machine.harts[1].reg(6);
    assert!((40_000..40_010).contains(&woken), "{woken}");
}
