//! Where the host's time goes: a run samples itself (`tipsim run --self-profile`).

use std::collections::BTreeMap;

use pprof::{ProfilerGuard, ProfilerGuardBuilder, Symbol};

/// Samples per second of processor time: a prime, so that nothing beats against it, and few enough to cost
/// well below a hundredth.
const FREQUENCY: i32 = 199;

/// Parts of the simulator: name, and where its sources lie. The first that fits counts.
const PARTS: [(&str, &[&str]); 5] = [
    ("front_end", &["timing/src/front", "timing/src/predict"]),
    ("memory", &["timing/src/lsu", "timing/src/mem"]),
    ("rename_and_issue", &["timing/src"]),
    ("execute", &["machine/src", "isa/src"]),
    (
        "records",
        &[
            "commit-trace/src",
            "tip-device/src",
            "emulator/src/stream.rs",
        ],
    ),
];

/// What lies in no part, or in the system.
const OTHER: &str = "other";

/// Samples the processor time of the hart's thread while it lives.
pub struct SelfProfile {
    guard: ProfilerGuard<'static>,
}

impl SelfProfile {
    /// Starts.
    pub fn start() -> anyhow::Result<Self> {
        let guard = ProfilerGuardBuilder::default()
            .frequency(FREQUENCY)
            // Their code cannot be unwound from a signal handler.
            .blocklist(&["libc", "libgcc", "pthread", "vdso"])
            .build()?;
        Ok(Self { guard })
    }

    /// Ends; the share of the hart's time that each part took.
    pub fn finish(self) -> anyhow::Result<BTreeMap<&'static str, f64>> {
        let report = self.guard.report().build()?;
        let mut parts: BTreeMap<_, f64> = PARTS.iter().map(|&(name, _)| (name, 0.0)).collect();
        let mut total = 0.0;
        for (frames, &count) in &report.data {
            if frames.thread_name == super::host::THREAD {
                continue;
            }
            let part = frames
                .frames
                .iter()
                .flatten()
                .find_map(part_of)
                .unwrap_or(OTHER);
            *parts.entry(part).or_default() += count as f64;
            total += count as f64;
        }
        parts
            .values_mut()
            .for_each(|share| *share /= f64::max(total, 1.0));
        Ok(parts)
    }
}

/// The part whose source the frame is in; inlined functions are frames of their own. None for a library.
fn part_of(symbol: &Symbol) -> Option<&'static str> {
    let file = symbol.filename.as_ref()?.to_str()?;
    let within = |places: &[&str]| places.iter().any(|place| file.contains(place));
    PARTS
        .iter()
        .find(|(_, places)| within(places))
        .map(|&(name, _)| name)
}
