//! Waits for lines that other harts have.

use crate::asm::{Commits, Program, State, TEXT};
use commit_trace::{Commit, CycleClass, TeaEvents};
use isa::{DmaLines, TimingModel};
use timing::{Core, Preset, SharedMemory};

const DATA: u64 = 0x8100_0000;

/// What `line` committed as on a second hart, its first instruction, after the first hart executed `first`.
fn after(first: &str, line: &str) -> Commit {
    after_on(&Preset::load("boom-4w").unwrap(), first, line)
}

/// What `line` committed as on a core of this preset; see [`after`].
fn after_on(preset: &Preset, first: &str, line: &str) -> Commit {
    let memory = SharedMemory::new(preset, 2);
    let mut cores = [0, 1].map(|hart| Core::sharing(&memory, hart, preset, Commits::default()));
    execute(&mut cores[0], first);
    let [one, two] = &mut cores;
    two.idle_until(one.cycle() + 1000);
    two.other_harts_executed();
    execute(two, line);
    two.sink().0[0]
}

/// Executes instructions on a core, with the address of the data in `a1`.
fn execute(core: &mut Core<Commits>, source: &str) {
    let program = Program::new(&format!("FN(f) {source}\n jalr zero,s3\n"));
    program.define(core);
    let mut state = State::new();
    (state.x[11], state.x[19], state.pc) = (DATA, 0x1000, TEXT);
    program.run(core, &mut state);
}

#[test]
fn a_line_of_another_hart_is_a_wait_for_that() {
    let load = "ld a2,0(a1)";
    let class = |first: &str, line: &str| after(first, line).class;
    assert_eq!(class("sd a2,0(a1); fence", load), CycleClass::LoadPeer, "it modified it");
    assert_eq!(class("addi a2,a2,1", load), CycleClass::LoadDram, "nobody has it");
    let waits = after("sd a2,0(a1); fence", "amoadd.d a2,a3,(a1)");
    assert_eq!(waits.class, CycleClass::LoadPeer);
    assert!(waits.tea.contains(TeaEvents::ST_L1 | TeaEvents::ST_PEER));
    let atomic = "addi a4,a4,1; ld a2,0(a1); fence";
    assert_eq!(class(atomic, "amoadd.d a2,a3,(a1)"), CycleClass::LoadPeer, "it has to give it up");
    assert_eq!(class("addi a2,a2,1", "amoadd.d a2,a3,(a1)"), CycleClass::Serialize);
}

#[test]
fn data_of_a_padded_line_are_on_lines_of_their_own() {
    let mut padded = Preset::load("boom-4w").unwrap();
    padded.set("what_if.padded", &format!("[\"{DATA:#x}\"]")).unwrap();
    let class = |line: &str| after_on(&padded, "sd a2,0(a1); fence", line).class;
    assert_eq!(class("ld a2,0(a1)"), CycleClass::LoadPeer, "the datum is shared");
    assert_eq!(class("ld a2,8(a1)"), CycleClass::LoadDram, "only the line was");
    assert_eq!(class("amoadd.d a2,a3,(a1)"), CycleClass::LoadPeer);
    assert_eq!(class("ld a2,64(a1)"), CycleClass::LoadDram);
    assert_eq!(after("sd a2,0(a1); fence", "ld a2,8(a1)").class, CycleClass::LoadPeer);
}

#[test]
fn what_a_device_wrote_is_in_the_last_level_cache_alone() {
    let preset = Preset::load("boom-4w").unwrap();
    for (harts, reader) in [(1, 0), (2, 0), (2, 1)] {
        let memory = SharedMemory::new(&preset, harts);
        let mut cores: Vec<_> = (0..harts)
            .map(|hart| Core::sharing(&memory, hart, &preset, Commits::default()))
            .collect();
        let mut now = 0;
        let mut run = |core: &mut Core<Commits>, line: &str| {
            now += 100_000;
            core.idle_until(now);
            core.other_harts_executed();
            let before = core.sink().0.len();
            execute(core, line);
            core.sink().0[before].class
        };
        // The hart modifies three lines, of which a device then writes the second and the third.
        run(&mut cores[0], "sd a2,0(a1); sd a2,64(a1); sd a2,128(a1); fence");
        run(&mut cores[0], "addi a2,a2,1");
        cores[0].dma_write(DmaLines { first: (DATA >> 6) + 1, count: 2 });
        let mut load = |offset: u32| run(&mut cores[reader], &format!("ld a2,{offset}(a1)"));
        // The prefetcher fetches the line after one that missed.
        assert_eq!([load(128), load(64)], [CycleClass::LoadLlc; 2], "hart {reader} of {harts}");
        let hit = if reader == 0 { CycleClass::LoadL1 } else { CycleClass::LoadPeer };
        assert_eq!(load(0), hit, "hart {reader} of {harts}: no device wrote it");
    }
}

#[test]
fn bytes_that_a_device_writes_are_on_whole_lines() {
    let of =
        |pa, len| DmaLines::of(pa, len).map(|lines| (lines.first, lines.count)).collect::<Vec<_>>();
    assert_eq!(of(0x80, 64), [(2, 1)]);
    assert_eq!(of(0xbf, 2), [(2, 2)]);
    assert_eq!(of(64, (1 << 18) + 1), [(1, DmaLines::MAX_COUNT), (4097, 1)]);
}
