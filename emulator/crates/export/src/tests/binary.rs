//! pprof, perf.data, Perfetto.

use std::io::Read;

use flate2::read::GzDecoder;
use guest_samples::GuestProfile;
use prost::Message;

use super::*;
use crate::{perfetto, pprof};

#[test]
fn pprof_is_consistent() {
    let bytes = written(Format::Pprof, true, &["tip", "software"]).unwrap();
    let mut message = Vec::new();
    GzDecoder::new(&*bytes).read_to_end(&mut message).unwrap();
    let profile = pprof::proto::Profile::decode(&*message).unwrap();
    let text = |index: i64| profile.string_table[index as usize].as_str();
    assert_eq!(text(0), "");
    let types: Vec<_> =
        profile.sample_type.iter().map(|t| (text(t.r#type), text(t.unit))).collect();
    assert_eq!(types, [("oracle", "cycles"), ("tip", "cycles"), ("software", "cycles")]);
    for at in 0..3 {
        let sum: i64 = profile.sample.iter().map(|sample| sample.value[at]).sum();
        assert_eq!(sum, 20_000);
    }
    // Numbers are from 1, without gaps, so that they can be indices.
    assert!((1..).zip(&profile.location).all(|(n, location)| location.id == n));
    assert!((1..).zip(&profile.function).all(|(n, function)| function.id == n));
    assert!((1..).zip(&profile.mapping).all(|(n, mapping)| mapping.id == n));
    for location in &profile.location {
        assert!(location.mapping_id <= profile.mapping.len() as u64);
        let lines = location.line.iter();
        assert!(lines.clone().count() > 0);
        assert!(lines.clone().all(|l| l.function_id <= profile.function.len() as u64));
    }
    let hottest = &profile.sample[0];
    assert_eq!(hottest.value, [8000, 9000, 0]);
    let process = hottest.label.iter().find(|label| text(label.key) == "process").unwrap();
    assert_eq!(text(process.str), "quickstart");
    // Leaf first: what was inlined, then the function around it.
    let inlined = profile.location.iter().find(|location| location.address == 0x10154).unwrap();
    let names: Vec<_> = inlined
        .line
        .iter()
        .map(|line| text(profile.function[line.function_id as usize - 1].name))
        .collect();
    assert_eq!(names, ["square", "sum_of_squares", "length"]);
    let mapping = &profile.mapping[inlined.mapping_id as usize - 1];
    assert_eq!((mapping.memory_start, mapping.memory_limit), (0x10000, 0x11000));
    assert!(text(mapping.filename).ends_with("/usr/bin/quickstart"));
}

#[test]
fn perf_data_has_an_event_per_profiler() {
    let bytes = written(Format::PerfData, true, &["tip", "software"]).unwrap();
    for name in ["oracle", "tip", "software"] {
        // The reader was written for perf's own files.
        let profile = GuestProfile::parse(&bytes, name).unwrap().remove(0);
        assert_eq!(profile.total_cycles(), 20_000, "{name}");
        assert_eq!((profile.malformed, profile.lost), (0, 0));
        assert_eq!(profile.commands[&42], "quickstart");
        assert_eq!(profile.period, if name == "oracle" { 1 } else { 1000 });
        let hot = profile.samples.iter().find(|s| s.addresses == [0x1015e]);
        assert_eq!(hot.is_some(), name != "software");
        assert!(hot.is_none_or(|sample| sample.pid == 42));
    }
}

/// Counters of a file of [`Format::Perfetto`].
struct Counters(perfetto::proto::Trace);

impl Counters {
    /// A track's number; 0, if there is none.
    fn named(&self, name: &str, parent: u64) -> u64 {
        let mut tracks = self.0.packet.iter().filter_map(|packet| packet.track.as_ref());
        let found = tracks.find(|track| track.name == name && track.parent == parent);
        found.map_or(0, |track| track.id)
    }

    /// Values of a counter with their times.
    fn values(&self, track: u64) -> Vec<(u64, f64)> {
        let packets = self.0.packet.iter();
        packets
            .filter_map(|packet| Some((packet.timestamp, packet.event.as_ref()?)))
            .filter(|(_, event)| event.track == track)
            .map(|(time, event)| (time, event.value))
            .collect()
    }
}

#[test]
fn perfetto_counts_every_category() {
    let bytes = written(Format::Perfetto, false, &[]).unwrap();
    let trace = Counters(perfetto::proto::Trace::decode(&*bytes).unwrap());
    let all = trace.named("cycle stack of example", 0);
    let close = |found: f64, expected: f64| (found - expected).abs() < 1e-9;
    let first = |name: &str| trace.values(trace.named(name, all)).first().copied();
    let busy: f64 =
        profile::CATEGORIES.iter().filter_map(|name| first(name).map(|(_, value)| value)).sum();
    assert!(close(busy, 100.0 * 20_000.0 / 21_000.0), "{busy}");
    let idle = trace.values(trace.named("idle", all));
    assert!(close(idle[0].1, 100.0 * 1_000.0 / 21_000.0), "{idle:?}");
    // Both halves are alike: the value changes at the end only.
    assert_eq!(idle[1..], [(21_000, 0.0)]);
    let sh = trace.values(trace.named("Load stall", trace.named("sh", 0)));
    assert!(close(sh[0].1, 100.0 * 375.0 / 21_000.0), "{sh:?}");
}

#[test]
fn perfetto_has_tracks_for_each_hart() {
    let (evaluation, mut windows) = example();
    // The second half is of another hart.
    windows[1].hart = HartId(3);
    let bytes = written_of(evaluation, &windows, Format::Perfetto, false, &[]).unwrap();
    let trace = Counters(perfetto::proto::Trace::decode(&*bytes).unwrap());
    let idle = |hart: u32| {
        let all = trace.named(&format!("cycle stack of example, hart {hart}"), 0);
        trace.values(trace.named("idle", all))
    };
    let times = |hart| idle(hart).iter().map(|(time, _)| *time).collect::<Vec<_>>();
    assert_eq!(times(0), [0, 10_500]);
    assert_eq!(times(3), [10_500, 21_000]);
    let tracks = trace.0.packet.iter().filter_map(|packet| Some(packet.track.as_ref()?.id));
    let mut tracks: Vec<u64> = tracks.collect();
    let count = tracks.len();
    tracks.sort_unstable();
    tracks.dedup();
    assert_eq!(tracks.len(), count);
    assert!(trace.named("sh, hart 0", 0) != 0 && trace.named("sh, hart 3", 0) != 0);
}
