//! States of a machine that were never one: a state with some bytes changed, cut anywhere, loads or is refused. What loads is
//! run for a while, functionally.
#![no_main]

use commit_trace::NullSink;
use devices::virtio::{Fs, Latency, Rng};
use devices::{Clock, Output, RAM_BASE};
use libfuzzer_sys::fuzz_target;
use machine::{Board, Hart, Limit};
use snapshot::{Archive, Snapshot};
use timing::{Core, Preset};

struct Machine {
    board: Board,
    hart: Hart,
    core: Core<NullSink>,
}

impl Machine {
    fn new(folder: &std::path::Path) -> Self {
        let mut board = Board::new(1 << 20, 1, Clock::default(), 0).unwrap();
        let output = Output::new(Box::new(std::io::sink()));
        board.add_uart(output, None).unwrap();
        let folder = Fs::new(folder, "out", false, 0).unwrap();
        board.add_virtio(Box::new(Rng::new(1)), Latency::BUFFER).unwrap();
        board.add_virtio(Box::new(folder), Latency::BUFFER).unwrap();
        // A loop that counts, stores and branches.
        let program = [0x0015_0513, 0x0000_0597, 0x00a5_b023, 0xfe05_1ae3, 0x1050_0073];
        for (n, word) in program.into_iter().enumerate() {
            board.bus.ram.store(RAM_BASE + 4 * n as u64, 4, word).unwrap();
        }
        Self {
            board,
            hart: Hart::new(0),
            core: Core::new(&Preset::load("rtl-large").unwrap(), NullSink),
        }
    }

    fn snapshot(&mut self, archive: &mut Archive<'_>) -> snapshot::Result {
        self.board.bus.snapshot(archive)?;
        self.hart.snapshot(archive)?;
        self.core.snapshot(archive)?;
        archive.end()
    }
}

fuzz_target!(|input: (Vec<(u32, u8)>, Option<u32>)| {
    let (changes, cut) = input;
    let folder = tempfile::tempdir().unwrap();
    let mut machine = Machine::new(folder.path());
    machine.hart.run(&mut machine.board.bus, &mut machine.core, Limit::instructions(500));
    let mut archive = Archive::saving();
    machine.snapshot(&mut archive).unwrap();
    let mut state = archive.into_bytes();
    let length = state.len();
    for (at, value) in changes {
        state[at as usize % length] ^= value;
    }
    if let Some(cut) = cut {
        state.truncate(cut as usize % length);
    }
    let mut loaded = Machine::new(folder.path());
    if loaded.snapshot(&mut Archive::loading(&state)).is_ok() {
        let Machine { board, hart, .. } = &mut loaded;
        hart.run(&mut board.bus, &mut isa::Untimed, Limit::instructions(2000));
    }
});
