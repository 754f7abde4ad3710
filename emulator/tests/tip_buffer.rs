//! The TIP unit's buffer in memory, on a machine of its own: against the FIFO, against the trace of the same run, and with interrupts.

use crate::common::bare_metal::{TraceRecord, run_program};

const BUFFER: &str = concat!(include_str!("tip_buffer/buffer.S"), include_str!("common/hex.S"));

const RAM: u64 = 0x8040_0000;
/// Samples in 4 KiB.
const CAPACITY: u64 = 64;
const FIFO: usize = 16;
const PERIOD: u64 = 97;

/// Bits of CONTROL.
const ENABLED: u64 = 1 | 1 << 4;
const IRQ: u64 = 1 << 5;
const FREEZE: u64 = 1 << 6;
const IN_BUFFER: u64 = 1 << 11;
/// Bits of STATUS.
const FULL: u64 = 1 << 9;
const FAULT: u64 = 1 << 10;
/// Bits of FLAGS.
const STATES: u64 = 0x1f << 8;
const WAITS: u64 = 3 << 8;

/// What the program says at the end.
#[derive(Debug, PartialEq, Eq)]
struct Totals {
    interrupts: u64,
    taken: u64,
    weight: u64,
    late: u64,
    status: u64,
    overrun: u64,
    head: u64,
    tail: u64,
}

/// A run of the program: totals, the samples that are left, and the trace.
fn run(
    name: &str,
    (control, buffer, threshold, turns): (u64, u64, u64, u64),
    threads: &str,
) -> (Totals, Vec<[u64; 8]>, Vec<TraceRecord>) {
    let values = [
        ("VALUE_CONTROL", control | ENABLED),
        ("VALUE_BUFFER", buffer),
        ("VALUE_THRESHOLD", threshold),
        ("VALUE_PERIOD", PERIOD),
        ("VALUE_TURNS", turns),
    ];
    let values = values.map(|(name, value)| (name, value.to_string()));
    let (mut lines, rows) = run_program(&format!("tip-buffer-{name}"), BUFFER, &values, threads);
    let [interrupts, taken, weight, late, status, overrun, head, tail] = lines.remove(0);
    let totals = Totals { interrupts, taken, weight, late, status, overrun, head, tail };
    (totals, lines, rows)
}

/// Returns what a sample of a cycle names by the trace: all instructions that commit in the cycle; else the next one, or the
/// last one if that emptied the ROB.
fn named(rows: &[TraceRecord], cycle: u64, flags: u64) -> Vec<u64> {
    let group = rows.iter().filter(|row| row.commit == cycle);
    let group: Vec<u64> = group.map(|row| row.pc).collect();
    match flags & STATES {
        0 => group,
        state => {
            assert!(group.is_empty(), "{state:#x} in {cycle}: {group:x?}");
            let next = rows.iter().position(|row| row.commit > cycle).unwrap();
            vec![rows[if state & WAITS != 0 { next } else { next - 1 }].pc]
        }
    }
}

#[test]
fn the_buffer_has_what_the_fifo_has_and_more_and_all_of_it_is_as_the_trace_says() {
    let mut before = None;
    for threads in ["one", "two"] {
        let (totals, queued, _) = run("fifo", (0, RAM, 1, 150), threads);
        assert_eq!((queued.len(), totals.head), (FIFO, 0));
        assert!(totals.overrun > 10);

        let (totals, samples, rows) = run("plain", (IN_BUFFER, RAM, 1, 150), threads);
        assert_eq!(samples[..FIFO], queued);
        assert_eq!(totals.head, samples.len() as u64);
        assert!(samples.len() > 30, "{}", samples.len());
        assert_eq!((totals.overrun, totals.status, totals.interrupts), (0, 0, 0));
        for &[cycle, flags, a, b, c, d, weight, _] in &samples {
            let valid = (flags & 15).count_ones() as usize;
            let addresses = &[a, b, c, d][..valid];
            assert_eq!(addresses, named(&rows, cycle, flags), "{cycle}: {flags:#x}");
            assert_eq!(weight % PERIOD, 0);
        }
        assert_eq!(*before.get_or_insert(samples.clone()), samples);
    }
}

#[test]
fn a_full_buffer_loses_samples_and_not_their_cycles() {
    let (totals, samples, _) = run("full", (IN_BUFFER, RAM, 1, 1500), "auto");
    assert_eq!(samples.len() as u64, CAPACITY);
    assert_eq!((totals.head, totals.tail), (CAPACITY, 0));
    assert!(totals.overrun > 10);
    assert_eq!(totals.status, FULL);
}

#[test]
fn samples_are_in_memory_before_the_interrupt_of_which_there_is_one_for_a_threshold_of_them() {
    for (threshold, least) in [(16, 16), (1, 1), (200, CAPACITY)] {
        let mut before = None;
        for threads in ["one", "two"] {
            let setup = (IN_BUFFER | IRQ | FREEZE, RAM, threshold, 5_000);
            // The program looks for the sample at the threshold; it is the last place if there are fewer.
            let (totals, samples, _) = run(&format!("irq-{threshold}"), setup, threads);
            assert!(totals.interrupts > 10, "{totals:?}");
            // The interrupt is taken up to 127 instructions after the sample, in which there are others.
            assert!(totals.taken >= totals.interrupts * least, "{totals:?}");
            if least < CAPACITY {
                assert!(totals.taken <= totals.interrupts * (least + 8), "{totals:?}");
                assert_eq!((totals.late, totals.overrun), (0, 0), "{totals:?}");
            }
            assert_eq!(totals.head, totals.taken + samples.len() as u64);
            assert_eq!(totals.weight % PERIOD, 0);
            assert_eq!(*before.get_or_insert(totals.weight), totals.weight);
        }
    }
}

#[test]
fn a_buffer_that_is_no_memory_is_a_fault_that_says_so() {
    // The buffer is at an address of nothing, of a device, at the end of memory, and at one that does not fit.
    for buffer in [0x1000, 0x1000_0000, u64::MAX << 12, 0x00ff_ffff_ffff_f000] {
        let (totals, _, _) = run("fault", (IN_BUFFER, buffer, 1, 100), "auto");
        assert_eq!((totals.head, totals.status), (0, FAULT), "{buffer:#x}");
        assert!(totals.overrun > 5, "{buffer:#x}: {totals:?}");
    }
}
