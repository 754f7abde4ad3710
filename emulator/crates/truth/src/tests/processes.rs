//! Processes: which of them executed what, and how many rows are held of very many.

use super::*;

/// Bytes of side-band records, see `profile::GuestContext`.
fn comm(name: &str) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..name.len()].copy_from_slice(name.as_bytes());
    bytes
}

impl Hart {
    fn side_band(&mut self, kind: u8, words: &[u32], name: &str) {
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.extend(comm(name));
        self.collector.event(&Event::SideBand { kind, bytes });
    }

    fn switches_to(&mut self, pid: u32, name: &str) {
        self.side_band(1, &[pid, pid], name);
    }

    fn ends(&mut self, pid: u32) {
        self.side_band(4, &[pid, pid], "");
    }

    /// Maps a file's code at `start`.
    fn maps(&mut self, pid: u32, start: u64, path: &str) {
        let mut bytes: Vec<u8> = [pid, pid].iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.extend([start, 0x10_0000, 0].iter().flat_map(|word: &u64| word.to_le_bytes()));
        bytes.extend(0u32.to_le_bytes());
        bytes.extend([0; 20]);
        bytes.extend(path.as_bytes());
        self.collector.event(&Event::SideBand { kind: 3, bytes });
    }

    fn defines(&mut self, inst: u32, space: u32, pc: u64) {
        self.collector.define(&StaticInfo {
            id: InstId(inst),
            space,
            pc,
            raw: 0x13,
            len: 4,
            privilege: 0,
            class: Class::Int,
            target: None,
        });
    }

    fn executes(&mut self, inst: u32, times: u32) {
        for _ in 0..times {
            self.leaves(inst, Redirect::None, TeaEvents::default(), Detail::default());
        }
    }
}

fn hart() -> Hart {
    Hart::new(0, &SharedLines::new(1))
}

/// Process, number and executions of each row.
fn rows(found: &HartCounts) -> Vec<(Option<String>, u32, u64)> {
    let name = |own: &Counted| {
        let process = &found.processes[own.process? as usize];
        Some(match (process.pid, process.stands_for) {
            (Some(pid), _) => pid.to_string(),
            (None, others) => format!("{} {others:?}", process.name),
        })
    };
    found.instructions.iter().map(|own| (name(own), own.inst.0, own.counts.executed)).collect()
}

#[test]
fn processes_that_share_a_number_are_told_apart() {
    let mut hart = hart();
    hart.defines(1, 70, 0x1_0000);
    hart.defines(2, 1, u64::MAX - 0xfff);
    for (pid, times) in [(5, 3), (6, 4), (5, 2)] {
        hart.switches_to(pid, "sh");
        hart.executes(1, times);
        hart.executes(2, 1);
    }
    assert_eq!(hart.collector.held(100), 2);
    let found = hart.collector.finish(|_| true);
    let expected = [(Some("5".to_owned()), 1, 5), (Some("6".to_owned()), 1, 4), (None, 2, 3)];
    assert_eq!(rows(&found), expected);
}

#[test]
fn what_is_held_of_very_many_processes_is_bounded() {
    const LIMIT: usize = 40;
    let mut hart = hart();
    hart.collector.held(LIMIT);
    // Each runs twice, and executes other code then: five instructions, at other addresses and with other numbers in each
    // process.
    for turn in 0..2 {
        for process in 0..500u32 {
            let (pid, space) = (100 + process, 2 + process);
            let start = 0x1_0000 * u64::from(1 + process % 7);
            hart.switches_to(pid, "seq");
            if turn == 0 {
                hart.maps(pid, start, "/bin/seq");
            }
            for at in 5 * turn..5 * turn + 5 {
                let inst = process * 10 + at;
                hart.defines(inst, space, start + 4 * u64::from(at));
                hart.executes(inst, 1 + at);
            }
            // Some end, the others live on.
            if turn == 1 && process % 2 == 0 {
                hart.ends(pid);
            }
            let held = hart.collector.held(LIMIT);
            assert!(held <= LIMIT + 20, "{held} after {process}");
        }
    }
    hart.switches_to(1, "init");
    let found = hart.collector.finish(|_| false);
    let all: u64 = found.instructions.iter().map(|own| own.counts.executed).sum();
    assert_eq!(all, 500 * 55);
    let merged = rows(&found);
    assert_eq!(merged.len(), 10, "{merged:?}");
    for (at, (name, _, executed)) in (0..).zip(&merged) {
        assert!(name.as_ref().unwrap().starts_with("seq "), "{name:?}");
        assert_eq!(*executed, (1 + at) * 500);
    }
}

#[test]
fn processes_that_nobody_sampled_are_told_as_one() {
    let mut hart = hart();
    for pid in [5, 6, 7, 8] {
        let name = if pid == 8 { "other" } else { "prog" };
        hart.switches_to(pid, name);
        hart.maps(pid, 0x1_0000, name);
        hart.defines(pid, pid, 0x1_0010);
        hart.accesses(pid, access(AccessKind::Load, 0x1000, DataSource::L1), 3);
    }
    let found = hart.collector.finish(|process| process.pid == Some(6));
    let expected = [
        (Some("prog Some(2)".to_owned()), 5, 2),
        (Some("6".to_owned()), 6, 1),
        (Some("8".to_owned()), 8, 1),
    ];
    assert_eq!(rows(&found), expected);
    let merged = &found.instructions[0].counts;
    assert_eq!(merged.memory.as_ref().unwrap().loads, 2);
    assert_eq!(merged.records.iter().map(|own| own.all().0).sum::<u64>(), 2);
    assert_eq!(found.aliases.get(&7), Some(&5));
}
