//! Exports of several harts.

use std::process::Output;

use serde_json::Value;

/// An export of a run of two harts has what those of each hart have. `report` makes one with these arguments.
pub(super) fn have_all_harts(report: &dyn Fn(&[&str]) -> Output) {
    let folded = |hart: &[&str]| {
        let of = "--format folded --profiler oracle --no-call-stacks";
        let of: Vec<&str> = of.split(' ').collect();
        String::from_utf8(report(&[&of, hart].concat()).stdout).unwrap()
    };
    let [first, second] = ["0", "1"].map(|hart| folded(&["--hart", hart]));
    assert!(first.contains("md5sum-") && second.contains("md5sum-"));
    assert_ne!(first, second);
    let cycles = |folded: &str| -> f64 {
        let stacks = folded.lines().map(|line| line.rsplit(' ').next().unwrap());
        stacks.map(|cycles| cycles.parse::<f64>().unwrap()).sum()
    };
    let (all, each) = (cycles(&folded(&[])), cycles(&first) + cycles(&second));
    assert!((all / each - 1.0).abs() < 1e-3, "{all} {each}");
    let over_time = |hart: &[&str]| -> u64 {
        let of = ["--format", "firefox", "--profiler", "oracle"];
        let profile: Value = serde_json::from_slice(&report(&[&of, hart].concat()).stdout).unwrap();
        let threads = profile["threads"].as_array().unwrap().iter();
        let weights = threads.flat_map(|thread| thread["samples"]["weight"].as_array().unwrap());
        weights.map(|cycles| cycles.as_u64().unwrap()).sum()
    };
    let [all, first, second] = [&[][..], &["--hart", "0"], &["--hart", "1"]].map(over_time);
    // Each sum is of whole cycles.
    assert!(all.abs_diff(first + second) <= 2, "{all} {first} {second}");
}
