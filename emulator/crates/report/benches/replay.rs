//! How fast a stream is recorded, written, read and evaluated; and what an instruction costs on disk, and a
//! report on the processor.
//!
//! `scripts/bench profilers [TRACE]`, or `cargo bench -p report --bench replay [-- TRACE] [--format json]`

use std::hint::black_box;
use std::io::Cursor;
use std::path::Path;
use std::time::{Duration, Instant};

use commit_trace::{Batch, SpanBuilder, SpanSink, TraceReader, TraceWriter, synthetic};
use profile::{Evaluator, Filter, Privilege, Profiler, Region, Sampler, Schedule};
use report::{Options, Report, ReportInputs};
use serde_json::Value;
use symbols::{SymbolFiles, Symbolizer};

/// The presets' clock.
const CLOCK_HZ: u64 = 3_200_000_000;

/// The best of a few runs. Where the system tells, time on the processor: others use it too.
fn best(mut run: impl FnMut()) -> Duration {
    let times = (0..5).map(|_| {
        let (start, busy) = (Instant::now(), on_processor());
        run();
        match (busy, on_processor()) {
            (Some(before), Some(after)) => after - before,
            _ => start.elapsed(),
        }
    });
    times.min().unwrap_or_default()
}

/// This thread's time so far (Linux: the first field of `schedstat`, in nanoseconds).
fn on_processor() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(Duration::from_nanos(text.split(' ').next()?.parse().ok()?))
}

/// Measurements, by name.
#[derive(Default)]
struct Results(serde_json::Map<String, Value>);

impl Results {
    fn rate(&mut self, what: &str, instructions: u64, time: Duration) {
        let rate = instructions as f64 / time.as_secs_f64() / 1e6;
        println!("{what:28} {rate:8.1} M instructions/s");
        self.0.insert(what.replace([',', ' '], "_").replace("__", "_"), rate.into());
    }
}

struct Count(u64);

impl SpanSink for Count {
    fn span(&mut self, span: &commit_trace::Span<'_>) {
        self.0 += span.cycles;
    }
}

/// Every profiler on each of the schedules.
fn all(schedules: &[Schedule]) -> Vec<Sampler> {
    let of = |schedule: &Schedule| Profiler::ALL.map(|profiler| Sampler::new(profiler, *schedule));
    schedules.iter().flat_map(of).collect()
}

/// A run's default samplers: dense, and perf's rate.
fn sixteen() -> Vec<Sampler> {
    all(&[Schedule::every(199), Schedule::frequency(4000, CLOCK_HZ)])
}

/// The default samplers, all profilers at five more rates periodic and random, and TIP filtered by privilege.
fn hundred() -> Vec<Sampler> {
    let more = [100, 1000, 10_000, 20_000, 100_000].map(|hz| Schedule::frequency(hz, CLOCK_HZ));
    let mut samplers = sixteen();
    samplers.extend(all(&more));
    samplers.extend(all(&more.map(|schedule| schedule.randomised(1))));
    for privilege in [Privilege::User, Privilege::Kernel] {
        let filter = Filter { privilege: Some(privilege), ..Filter::NONE };
        let rates = [4000, 20_000].map(|hz| Schedule::frequency(hz, CLOCK_HZ));
        let filtered = rates.map(|rate| Sampler::new(Profiler::Tip, rate).filtered(filter.clone()));
        samplers.extend(filtered);
    }
    assert_eq!(samplers.len(), 100);
    samplers
}

fn batches(path: Option<&str>) -> Vec<Batch> {
    let Some(path) = path else {
        return synthetic::program(20_000_000, 1);
    };
    let failed = |error| -> ! {
        eprintln!("error: {error}");
        std::process::exit(2)
    };
    let mut reader = TraceReader::open(Path::new(path)).unwrap_or_else(|error| failed(error));
    let mut batches = Vec::new();
    let (mut batch, mut records) = (Batch::default(), 0);
    // This many records take 400 MB.
    while records < 25_000_000
        && reader.next_batch(&mut batch).unwrap_or_else(|error| failed(error))
    {
        records += batch.records.len();
        batches.push(std::mem::take(&mut batch));
    }
    batches
}

fn main() {
    // Cargo passes `--bench`.
    let mut args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let json = args.iter().position(|arg| arg == "--format").map(|at| {
        let format = args.drain(at..(at + 2).min(args.len())).nth(1);
        format.as_deref() == Some("json")
    });
    let mut results = Results::default();
    let batches = batches(args.first().map(String::as_str));
    let instructions: u64 = batches.iter().map(|batch| batch.records.len() as u64).sum();
    let mut bytes = Vec::new();
    let time = best(|| {
        bytes.clear();
        let mut writer = TraceWriter::new(&mut bytes, "bench".into(), "{}").expect("memory");
        batches.iter().for_each(|batch| writer.batch(batch).expect("memory"));
        writer.finish().expect("memory");
    });
    results.rate("write", instructions, time);
    println!("{:28} {:8.3} bytes/instruction", "", bytes.len() as f64 / instructions as f64);

    let mut batch = Batch::default();
    let time = best(|| {
        let mut reader = TraceReader::new(Cursor::new(&bytes), "bench".into()).expect("a trace");
        while reader.next_batch(&mut batch).expect("a whole trace") {}
    });
    results.rate("read", instructions, time);

    let time = best(|| {
        let mut count = Count(0);
        let mut spans = SpanBuilder::new();
        batches.iter().for_each(|batch| spans.batch(batch, &mut count).expect("valid"));
        black_box(count.0);
    });
    results.rate("spans", instructions, time);

    for (what, samplers, in_detail) in [
        ("oracle", Vec::new(), false),
        ("oracle, 16 samplers", sixteen(), false),
        ("oracle, 16, in detail", sixteen(), true),
        ("oracle, 100 samplers", hundred(), false),
    ] {
        let time = best(|| {
            let mut evaluator = Evaluator::new(&samplers, Region::Whole);
            if in_detail {
                evaluator = evaluator.in_detail(4);
            }
            batches.iter().for_each(|batch| evaluator.batch(batch).expect("valid"));
            black_box(evaluator.finish());
        });
        results.rate(what, instructions, time);
    }

    // A report costs what was executed, not how often: the same program run for a quarter of the time.
    for part in [batches.len() / 4, batches.len()] {
        let mut evaluator = Evaluator::new(&sixteen(), Region::Whole);
        let batches = &batches[..part];
        batches.iter().for_each(|batch| evaluator.batch(batch).expect("valid"));
        let evaluation = evaluator.finish();
        let time = best(|| {
            let symbolizer = Symbolizer::new(SymbolFiles::default());
            let hex = |raw: u32, _| format!("{raw:08x}");
            let report =
                Report::build(ReportInputs::new(&evaluation, &symbolizer, &hex, Value::Null));
            black_box((report.text(&Options::default()), report.json(), report.html("")));
        });
        println!(
            "{:28} {:8.2} s for {} instructions, {} of them static",
            "report, 16 samplers",
            time.as_secs_f64(),
            evaluation.instructions,
            evaluation.static_info.len()
        );
    }

    let time = best(|| {
        let mut reader = TraceReader::new(Cursor::new(&bytes), "bench".into()).expect("a trace");
        let mut evaluator = Evaluator::new(&sixteen(), Region::Whole);
        while reader.next_batch(&mut batch).expect("a whole trace") {
            evaluator.batch(&batch).expect("valid");
        }
        black_box(evaluator.finish());
    });
    results.rate("replay, one core", instructions, time);

    // Two threads: the clock on the wall.
    let times = (0..5).map(|_| {
        let start = Instant::now();
        let reader = TraceReader::new(Cursor::new(bytes.clone()), "bench".into()).expect("a trace");
        let mut evaluator = Evaluator::new(&sixteen(), Region::Whole);
        let mut replay = reader.replay(8);
        while let Some(batch) = replay.next() {
            let batch = batch.expect("a whole trace");
            evaluator.batch(&batch).expect("valid");
            replay.recycle(batch);
        }
        black_box(evaluator.finish());
        start.elapsed()
    });
    results.rate("replay, reading ahead", instructions, times.min().unwrap_or_default());
    if json == Some(true) {
        println!("{}", Value::Object(results.0));
    }
}
