//! What harts, devices and debuggers write reaches every hart: its code, and its reservation.

use devices::{AccessFault, Cx, Device, RAM_BASE};
use isa::DmaLines;
use snapshot::{Archive, Snapshot};

use super::asm::*;
use super::model::{InRuns, Model};
use super::together::Machine;
use crate::{Hart, Limit, RunExit, Translate, run_timed_together};

const MODES: [Translate; 3] = [Translate::Nothing, Translate::Hot, Translate::Everything];
const DATA: u64 = RAM_BASE + 0x1_0000;

/// Writes the next instruction of `code` to `place` every `period` cycles.
struct Writer {
    period: u64,
    place: u64,
    code: Vec<u32>,
    written: usize,
}

impl Snapshot for Writer {
    fn snapshot(&mut self, _: &mut Archive<'_>) -> snapshot::Result {
        Ok(())
    }
}

impl Device for Writer {
    fn read(&mut self, _: u64, _: u8, _: &mut Cx<'_>) -> Result<u64, AccessFault> {
        Err(AccessFault)
    }

    fn write(&mut self, _: u64, _: u8, _: u64, _: &mut Cx<'_>) -> Result<(), AccessFault> {
        Err(AccessFault)
    }

    fn start(&mut self, cx: &mut Cx<'_>) {
        cx.schedule(self.period);
    }

    fn event(&mut self, cx: &mut Cx<'_>) {
        if let Some(inst) = self.code.get(self.written) {
            cx.ram.write(self.place, &inst.to_le_bytes()).unwrap();
            self.written += 1;
            cx.schedule(cx.now + self.period);
        }
    }
}

const PERIOD: u64 = 40_000;
const TIMES: u64 = 50;

/// Harts that all execute one loop, one of whose instructions a device replaces again and again. After each time, all
/// of them have executed the new one.
fn overwritten_loop(
    harts: usize,
    translate: Translate,
    mut run: impl FnMut(&mut Machine, u64) -> RunExit,
) {
    let looping = [addi(3, 0, 0), addi(2, 2, 1), jal(0, -8)];
    let mut programs: Vec<&[u32]> = vec![&[]; harts];
    programs[0] = &looping;
    let mut machine = Machine::new(&programs, translate);
    machine.harts.iter_mut().for_each(|hart| hart.set_pc(RAM_BASE));
    let writer = Writer {
        period: PERIOD,
        place: RAM_BASE,
        code: (1..=TIMES as i32).map(|n| addi(3, 0, n)).collect(),
        written: 0,
    };
    machine.bus.add_device(0x5000_0000, 0x1000, None, Box::new(writer)).unwrap();
    for n in 0..=TIMES {
        // Before it is written again, whatever a hart is ahead, and some turns after it was.
        assert_eq!(run(&mut machine, (n + 1) * PERIOD - 700), RunExit::Limit);
        for hart in &machine.harts {
            assert_eq!(hart.reg(3), n, "{translate:?}, hart {} of {harts}", hart.id());
        }
    }
}

#[test]
fn code_that_a_device_writes_is_new_to_every_hart() {
    for harts in [1, 2, 4, 8] {
        for translate in MODES {
            overwritten_loop(harts, translate, Machine::run);
        }
    }
}

#[test]
fn code_that_a_device_writes_is_new_to_every_timed_hart() {
    for harts in [1, 2, 4, 8] {
        for translate in MODES {
            let mut models: Vec<_> = (1..=harts as u64)
                .map(|latency| InRuns { model: Model::with_latency(latency), lengths: Vec::new() })
                .collect();
            overwritten_loop(harts, translate, |machine, cycle| {
                let mut pairs: Vec<_> = machine.harts.iter_mut().zip(&mut models).collect();
                run_timed_together(&mut pairs, &mut machine.bus, Limit::cycle(cycle))
            });
            // One of the harts' models is told, once for each time.
            let told: Vec<_> = models.iter().flat_map(|model| &model.model.dma).copied().collect();
            assert_eq!(told, [DmaLines { first: RAM_BASE >> 6, count: 1 }; TIMES as usize]);
        }
    }
}

#[test]
fn code_that_a_debugger_writes_is_new_to_every_hart() {
    for translate in MODES {
        let looping = [addi(3, 0, 0), addi(2, 2, 1), jal(0, -8)];
        let mut machine = Machine::new(&[&looping, &[], &[]], translate);
        machine.harts.iter_mut().for_each(|hart| hart.set_pc(RAM_BASE));
        for n in 1..20 {
            machine.run(n * PERIOD);
            let inst = addi(3, 0, n as i32).to_le_bytes();
            let Machine { harts, bus } = &mut machine;
            assert!(harts[n as usize % 3].debug_write(bus, RAM_BASE, &inst));
            machine.run(n * PERIOD + 1000);
            assert!(machine.harts.iter().all(|hart| hart.reg(3) == n), "{translate:?} {n}");
        }
    }
}

/// More code than a hart keeps decoded: all is forgotten at once, and others still hear what is written there.
#[test]
fn a_hart_that_forgets_its_code_does_not_hide_stores_from_others() {
    let looping = [addi(3, 0, 0), addi(2, 2, 1), jal(0, -8)];
    // The last instruction of its loop overwrites the first of the other hart's.
    let writer = [sw(4, 5, 0), addi(2, 2, 1), jal(0, -8)];
    let mut machine = Machine::new(&[&looping, &writer], Translate::Nothing);
    for (reg, value) in [(4, addi(3, 0, 0).into()), (5, RAM_BASE)] {
        machine.harts[1].set_reg(reg, value);
    }
    for n in 1..10 {
        machine.run(n * PERIOD);
        let Machine { harts, bus } = &mut machine;
        harts[1].host.fetch_tlb.flush();
        harts[1].decoded.code.clear(&mut bus.ram);
        harts[1].set_reg(4, addi(3, 0, n as i32).into());
        machine.run(n * PERIOD + 20_000);
        assert_eq!(machine.harts[0].reg(3), n);
    }
}

/// Hart 0 loads and reserves; hart 1 executes `between`, in its turn; hart 0 stores conditionally. Hart 1 has stored to
/// the page before, so that it need not look anything up. Gives the result of store-conditional.
fn reservation(between: &[u32]) -> u64 {
    let mut owner = vec![addi(9, 9, 1); 5];
    owner.extend([lr_d(5, 1), addi(9, 9, 1), addi(9, 9, 1)]);
    owner.extend([addi(9, 9, 1), addi(9, 9, 1), sc_d(6, 2, 1), WFI]);
    let mut other = vec![sd(0, 1, 0x100), sd(0, 1, 0x100), addi(9, 9, 1)];
    other.extend([addi(9, 9, 1), addi(9, 9, 1)]);
    other.extend(between);
    other.push(WFI);
    let mut machine = Machine::new(&[&owner, &other], Translate::Nothing);
    for hart in &mut machine.harts {
        hart.set_reg(1, DATA);
        hart.set_reg(4, DATA + 56);
        hart.set_reg(3, DATA + 64);
        hart.set_reg(7, 7);
    }
    machine.run(5);
    machine.run(10);
    machine.run(1000);
    assert!(machine.harts.iter().all(|hart| hart.arch.waiting));
    machine.harts[0].reg(6)
}

#[test]
fn a_reservation_ends_by_what_another_hart_writes_to_its_line_even_the_same_value() {
    assert_eq!(reservation(&[]), 0);
    assert_eq!(reservation(&[ld(8, 1, 0), sd(7, 1, 64), sd(7, 1, 0x800)]), 0);
    let writes: [&[u32]; 8] = [
        &[sd(0, 1, 0)],
        &[sd(7, 1, 0), sd(0, 1, 0)],
        &[sd(0, 1, 56)],
        &[sw(0, 1, 4)],
        // The store reaches in from the line before.
        &[sd(0, 3, -4)],
        &[amoadd_d(8, 0, 1)],
        &[amoadd_d(8, 0, 4)],
        &[lr_d(8, 1), sc_d(8, 8, 1)],
    ];
    for write in writes {
        assert_eq!(reservation(write), 1, "{write:x?}");
    }
    // An `sc.d` of the other hart without a reservation fails, and writes nothing.
    assert_eq!(reservation(&[sc_d(8, 0, 1)]), 0);
}

#[test]
fn a_reservation_ends_by_what_a_device_writes() {
    for (offset, result) in [(0, 1), (63, 1), (64, 0), (-1i64, 0)] {
        let program = [lr_d(5, 1), addi(9, 9, 1), sc_d(6, 2, 1), WFI];
        for harts in [1, 2] {
            let mut programs = vec![&[WFI][..]; harts];
            programs[0] = &program;
            let mut machine = Machine::new(&programs, Translate::Nothing);
            machine.harts[0].set_reg(1, DATA);
            machine.run(2);
            machine.bus.ram.write(DATA.wrapping_add_signed(offset), &[0]).unwrap();
            machine.run(100);
            assert_eq!(machine.harts[0].reg(6), result, "{offset}");
        }
    }
}

#[test]
fn a_reservation_that_is_not_used_does_not_slow_others_down_for_ever() {
    let mut owner = vec![lr_d(5, 1)];
    owner.extend([addi(9, 9, 1), jal(0, -4)]);
    let other = [sd(0, 1, 0x100), jal(0, -4)];
    let mut machine = Machine::new(&[&owner, &other], Translate::Nothing);
    machine.harts.iter_mut().for_each(|hart| hart.set_reg(1, DATA));
    machine.run(10);
    assert_ne!(machine.bus.ram.page_flags(DATA), 0);
    machine.run(200);
    machine.run(300);
    assert_eq!(machine.bus.ram.page_flags(DATA), 0);
    assert_eq!(machine.harts[0].arch.reservation, None);
}

/// A stack of nodes, its head at x1: each hart takes one off and puts it back, again and again. A pop that compares
/// values takes a head that came back meanwhile, with a successor that is somebody's by now.
#[test]
fn a_lock_free_stack_loses_nothing() {
    const NODES: u64 = 6;
    const ROUNDS: u64 = 300;
    let program = [
        // Pop: x5 is the node.
        lr_d(5, 1),
        bne(5, 0, 8),
        jal(0, -8),
        ld(6, 5, 0),
        sc_d(7, 6, 1),
        bne(7, 0, -20),
        // The node must be nobody else's now.
        addi(9, 5, 8),
        amoadd_d(8, 4, 9),
        bne(8, 0, 44),
        sd(0, 9, 0),
        // Push.
        lr_d(10, 1),
        sd(10, 5, 0),
        sc_d(7, 5, 1),
        bne(7, 0, -12),
        addi(2, 2, 1),
        bne(2, 3, -60),
        sd(2, 12, 0),
        WFI,
        addi(0, 0, 0),
        // The node was taken twice.
        sd(4, 11, 0),
        WFI,
    ];
    let stack = |harts: usize, translate, spacing: u64| {
        let mut programs = vec![&[][..]; harts];
        programs[0] = &program;
        let mut machine = Machine::new(&programs, translate);
        let node = |n: u64| DATA + 0x1000 + spacing * n;
        for n in 0..NODES {
            let next = if n + 1 < NODES { node(n + 1) } else { 0 };
            machine.bus.ram.store(node(n), 8, next).unwrap();
        }
        machine.bus.ram.store(DATA, 8, node(0)).unwrap();
        for (n, hart) in machine.harts.iter_mut().enumerate() {
            hart.set_pc(RAM_BASE);
            let done = DATA + 0x80 + 8 * n as u64;
            for (reg, value) in [(1, DATA), (3, ROUNDS), (4, 1), (11, DATA + 0x40), (12, done)] {
                hart.set_reg(reg, value);
            }
        }
        machine
    };
    let check = |machine: &Machine, what: &str| {
        let load = |pa| machine.bus.ram.load(pa, 8).unwrap();
        assert_eq!(load(DATA + 0x40), 0, "{what}: a node had two owners");
        for n in 0..machine.harts.len() as u64 {
            assert_eq!(load(DATA + 0x80 + 8 * n), ROUNDS, "{what}: hart {n} is not done");
        }
        let mut nodes = Vec::new();
        let mut at = load(DATA);
        while at != 0 && nodes.len() < 20 {
            nodes.push(at);
            at = load(at);
        }
        nodes.sort_unstable();
        nodes.dedup();
        assert_eq!(nodes.len() as u64, NODES, "{what}");
    };
    for harts in [2, 3, 8] {
        for spacing in [16, 64, 0x1000] {
            for translate in MODES {
                for turn in [3, 7, 50, 1000] {
                    let mut machine = stack(harts, translate, spacing);
                    let mut cycle = 0;
                    while machine.harts.iter().any(|hart| !hart.arch.waiting) && cycle < 10_000_000
                    {
                        cycle += turn;
                        machine.run(cycle);
                    }
                    check(&machine, &format!("{harts} harts, {spacing}, {translate:?}, {turn}"));
                }
            }
            let mut machine = stack(harts, Translate::Nothing, spacing);
            let mut models: Vec<_> = (1..=harts as u64).map(Model::with_latency).collect();
            let mut pairs: Vec<_> = machine.harts.iter_mut().zip(&mut models).collect();
            run_timed_together(&mut pairs, &mut machine.bus, Limit::cycle(10_000_000));
            check(&machine, &format!("{harts} timed harts, {spacing}"));
        }
    }
}

/// The state between runs says whether the reservation was lost since: a machine that goes on from it does the same.
#[test]
fn a_saved_hart_knows_that_its_reservation_is_lost() {
    for (between, lost) in [(sd(0, 1, 0), true), (sd(0, 1, 64), false)] {
        let owner = [lr_d(5, 1), addi(9, 9, 1), addi(9, 9, 1), sc_d(6, 2, 1), WFI];
        let mut machine = Machine::new(&[&owner, &[between, WFI]], Translate::Nothing);
        machine.harts.iter_mut().for_each(|hart| hart.set_reg(1, DATA));
        machine.run(2);
        assert_eq!(machine.harts[0].arch.reservation.is_none(), lost);
        let mut archive = Archive::saving();
        machine.harts[0].snapshot(&mut archive).unwrap();
        let mut again = Hart::new(0);
        again.snapshot(&mut Archive::loading(&archive.into_bytes())).unwrap();
        machine.harts[0] = again;
        machine.run(100);
        assert_eq!(machine.harts[0].reg(6), u64::from(lost));
    }
}
