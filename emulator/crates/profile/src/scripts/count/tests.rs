use super::*;

const PROCESS: ProcessId = ProcessId(3);

fn at(cycles: u64, instructions: u64) -> Option<Profiled> {
    Some(Profiled { cycles, instructions })
}

fn frame(function: u32, line: u32) -> ScriptFrame {
    ScriptFrame { function, line }
}

fn take(samples: &mut ScriptSamples, record: &ScriptRecord, profiled: Option<Profiled>) {
    let (kind, bytes) = record.encode();
    assert!(samples.record((kind, &bytes), PROCESS, profiled, 1.0));
}

fn define(samples: &mut ScriptSamples, name: &str) {
    let record = ScriptRecord::Function { name: name.into(), file: "prog.py".into(), line: 7 };
    take(samples, &record, None);
}

/// Takes a window of 10 instructions that take `cycles` cycles, and a sample of it that stands for 100 instructions.
fn sample(samples: &mut ScriptSamples, cycles: u64, frames: &[ScriptFrame]) {
    let record = ScriptRecord::Sample { instructions: 100, frames: frames.to_vec() };
    take(samples, &ScriptRecord::Window, at(1000, 500));
    take(samples, &record, at(1000 + cycles, 510));
}

#[test]
fn samples_weigh_what_their_window_takes() {
    let mut samples = ScriptSamples::default();
    define(&mut samples, "main");
    define(&mut samples, "f");
    sample(&mut samples, 20, &[frame(1, 12), frame(0, 8)]);
    sample(&mut samples, 40, &[frame(1, 13), frame(1, 14), frame(0, 8)]);
    sample(&mut samples, 10, &[frame(0, 9)]);
    sample(&mut samples, 10, &[]);
    let scripts = samples.finish();
    let [process] = &scripts.processes[..] else {
        panic!("{scripts:?}");
    };
    assert_eq!((process.process, process.whole.samples), (PROCESS, 4));
    assert_eq!((process.whole.cycles, process.whole.squares), (800.0, 220_000.0));
    let [main, f] = &process.functions[..] else {
        panic!("{process:?}");
    };
    assert_eq!((main.own.cycles, main.total.cycles), (100.0, 700.0));
    // What calls itself counts once.
    assert_eq!((f.own.cycles, f.total.cycles, f.total.samples), (600.0, 600.0, 2));
    let lines: Vec<_> =
        process.lines.iter().map(|time| (time.function, time.line, time.own.cycles)).collect();
    assert_eq!(lines, [(0, 9, 100.0), (1, 12, 200.0), (1, 13, 400.0)]);
}

#[test]
fn windows_that_are_not_one_threads_are_left_out() {
    let mut samples = ScriptSamples::default();
    let record = ScriptRecord::Sample { instructions: 100, frames: Vec::new() };
    take(&mut samples, &record, at(10, 10));
    take(&mut samples, &ScriptRecord::Window, at(10, 10));
    samples.interrupt();
    take(&mut samples, &record, at(20, 20));
    // Outside of the region.
    take(&mut samples, &ScriptRecord::Window, None);
    take(&mut samples, &record, at(20, 20));
    take(&mut samples, &ScriptRecord::Window, at(20, 20));
    take(&mut samples, &record, None);
    // The region restarted.
    take(&mut samples, &ScriptRecord::Window, at(20, 20));
    take(&mut samples, &record, at(5, 5));
    assert!(samples.clone().finish().is_empty());
    sample(&mut samples, 10, &[]);
    samples.restart_region();
    assert!(samples.finish().is_empty());
}

#[test]
fn any_record_is_survived() {
    let mut samples = ScriptSamples::default();
    for kind in 0..=255 {
        for length in 0..40 {
            let bytes: Vec<u8> = (0..length).map(|n: u8| n.wrapping_mul(kind)).collect();
            samples.record((kind, &bytes), PROCESS, at(u64::from(kind) << 9, length.into()), 1.0);
        }
    }
    sample(&mut samples, 10, &[frame(u32::MAX, 1), frame(77, 2)]);
    let scripts = samples.finish();
    let last = scripts.functions.last().unwrap();
    assert_eq!(last.name, "", "{scripts:?}");
}

#[test]
fn harts_add_up() {
    let of_hart = |names: [&str; 2], frames: &[ScriptFrame]| {
        let mut samples = ScriptSamples::default();
        names.iter().for_each(|name| define(&mut samples, name));
        sample(&mut samples, 10, frames);
        samples.finish()
    };
    let first = of_hart(["main", "f"], &[frame(1, 12), frame(0, 8)]);
    let second = of_hart(["f", "main"], &[frame(0, 12), frame(1, 8)]);
    let mut merged = Scripts::default();
    merged.merge(&first, |_| ProcessId(5));
    merged.merge(&second, |_| ProcessId(5));
    merged.merge(&second, |_| ProcessId(4));
    assert_eq!(merged.functions, first.functions);
    let [four, five] = &merged.processes[..] else {
        panic!("{merged:?}");
    };
    assert_eq!((four.process, five.process), (ProcessId(4), ProcessId(5)));
    assert_eq!(five.whole.cycles, 200.0);
    assert_eq!(five.functions[1].own.cycles, 200.0);
    assert_eq!(five.lines[0].own.samples, 2);
    assert_eq!(four.lines[0].own.samples, 1);
}
