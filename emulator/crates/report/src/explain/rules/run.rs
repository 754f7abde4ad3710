//! What a run recorded of itself, and of its samplers.

use crate::rule::{RUN, ReportPath, Rule, SAMPLERS, TIP, rule};

pub(super) fn meta(path: &ReportPath<'_>) -> Rule {
    match path.keys.get(1).copied().unwrap_or("") {
        "core" => rule(
            "A parameter of the core.",
            "as the preset and the run spec set it",
            RUN,
            "timing/presets/",
        ),
        "spec" => rule(
            "A setting of the run spec.",
            "as written, or its default",
            RUN,
            "emulator/guide/src/run-specs.md",
        ),
        "stats" => rule(
            "A counter of the timing core, over the timed part of the run.",
            "counted as the event happens, or the sum of such cycles",
            "timing/src/stats.rs, from the timing core itself and not from the stream",
            "none",
        ),
        "mips" => rule(
            "Speed: millions of instructions per second of host time.",
            "instructions / host_seconds / 10^6",
            RUN,
            "none",
        )
        .from("meta.instructions", path.at(&["meta", "instructions"]))
        .from("meta.host_seconds", path.at(&["meta", "host_seconds"]))
        .check(path.ratio(&["meta", "instructions"], &["meta", "host_seconds"]).map(|r| r / 1e6)),
        "ipc" => rule(
            "Instructions per cycle of the whole timed run, boot and sleep included.",
            "instructions / cycles",
            RUN,
            "none",
        )
        .from("meta.instructions", path.at(&["meta", "instructions"]))
        .from("meta.cycles", path.at(&["meta", "cycles"]))
        .check(path.ratio(&["meta", "instructions"], &["meta", "cycles"])),
        _ => rule(
            "A fact that the run recorded about itself.",
            "as measured on the host or read from the guest",
            RUN,
            "none",
        ),
    }
}

pub(super) fn elapsed(path: &ReportPath<'_>, field: &str) -> Rule {
    let (cycles, mhz) =
        (path.at(&["meta", "regions", "cycles"]), path.at(&["meta", "core", "clock", "mhz"]));
    match field {
        "ms" => rule(
            "Simulated milliseconds of the region: what a user of the program waits, however many harts work meanwhile.",
            "cycles of the region / (clock in MHz * 1000)",
            "report/src/elapsed.rs, from run.json",
            "none",
        )
        .from("meta.regions.cycles", cycles)
        .from("meta.core.clock.mhz", mhz)
        .check(cycles.zip(mhz).map(|(cycles, mhz)| cycles / (1e3 * mhz))),
        _ => rule(
            "Simulated cycles from the begin of the region to its end, or of its stretches if there are several.",
            "counted once, however many harts there are",
            "report/src/elapsed.rs, from run.json",
            "none",
        )
        .from("meta.regions.cycles", cycles)
        .check(cycles),
    }
}

pub(super) fn totals(path: &ReportPath<'_>, field: &str) -> Rule {
    let stream = "profile/src/evaluate.rs, from the commit stream";
    let total = |meaning: &str, formula: &str| rule(meaning, formula, stream, TIP);
    match field {
        "cycles" => total(
            "Cycles in the region of interest, those in which the hart slept included.",
            "profiled cycles + idle cycles",
        )
        .from("processes.all.cycles", path.at(&["processes", "0", "cycles"]))
        .from("totals.idle", path.at(&["totals", "idle"]))
        .check(Some(
            path.at(&["processes", "0", "cycles"]).unwrap_or(f64::NAN)
                + path.at(&["totals", "idle"]).unwrap_or(f64::NAN),
        )),
        "idle" => total(
            "Cycles in which the hart slept in wfi; not profiled.",
            "sum of the stream's idle events in the region",
        ),
        "instructions" => total(
            "Instructions that committed in the region.",
            "records of the stream less its traps",
        ),
        "traps" => total(
            "Exceptions and interrupts taken in the region.",
            "records that trapped, replays of memory-ordering failures left out",
        ),
        _ => total("Instructions per cycle that was not idle.", "instructions / (cycles - idle)")
            .from("totals.instructions", path.at(&["totals", "instructions"]))
            .from("totals.cycles", path.at(&["totals", "cycles"]))
            .from("totals.idle", path.at(&["totals", "idle"]))
            .check(
                path.at(&["totals", "instructions"])
                    .zip(path.at(&["totals", "cycles"]))
                    .zip(path.at(&["totals", "idle"]))
                    .map(|((instructions, cycles), idle)| instructions / (cycles - idle).max(1.0)),
            ),
    }
}

pub(super) fn column(field: &str) -> Rule {
    match field {
        "samples" => rule(
            "Samples that the sampler took.",
            "triggers whose sample named an instruction; a trigger while one is pending adds its cycles to that",
            SAMPLERS,
            TIP,
        ),
        "dropped" => rule(
            "Samples without an instruction; their cycles are in the next sample.",
            "tagged rows that were squashed, samples pending at the region's end; for the guest's, samples lost or malformed",
            SAMPLERS,
            TIP,
        ),
        "tail_cycles" => rule(
            "Cycles after the last sample's trigger, in no sample.",
            "profiled cycles - cycles in samples",
            SAMPLERS,
            TIP,
        ),
        "unmatched_cycles" => rule(
            "Cycles that samples gave to addresses that never executed; they count as wrong.",
            "sum of the periods of such samples",
            "report/src/guest.rs, from the guest's perf.data",
            TIP,
        ),
        "period" | "offset" | "random" => rule(
            "The sampling clock, in profiled cycles: its period, the first trigger's cycle (0: after one period), the seed of random triggers.",
            "as the run spec sets it (period = clock / frequency, rounded)",
            "profile/src/sampler.rs",
            TIP,
        ),
        _ => rule(
            "The published mean error of this profiler at this level, or its bound, over 27 SPEC CPU2017 and PARSEC programs at 4 kHz.",
            "copied from the paper",
            "profile/src/profilers.rs",
            TIP,
        ),
    }
}
