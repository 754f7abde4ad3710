//! `[[sampler]]` of a run spec: settings, lists of settings, and the samplers that they stand for.

use std::collections::HashSet;
use std::fmt;
use std::marker::PhantomData;

use profile::{Filter, Privilege, Profiler, Sampler, Schedule};
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserializer, IntoDeserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

use crate::spec::{Region, parse_frequency};

/// Default sampling period, in cycles: a prime, so that loops do not beat against it.
const DENSE_PERIOD: u64 = 199;
/// Most samplers of a run: each keeps a profile.
const MAX_SAMPLERS: usize = 4096;

/// Samplers. Every key takes one value or a list; lists stand for all combinations.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SamplerSpec {
    /// Profilers: tip, tip-ilp, nci, nci-ilp, lci, dispatch, dispatch-op, software; "all" for every one.
    #[serde(deserialize_with = "one_or_more")]
    pub profiler: Vec<String>,
    /// Sampling frequencies, e.g. "4kHz".
    #[serde(deserialize_with = "one_or_more")]
    pub frequency: Vec<String>,
    /// Periods in cycles.
    #[serde(deserialize_with = "one_or_more")]
    pub period: Vec<u64>,
    /// Where triggers fall; none: periodic.
    #[serde(deserialize_with = "one_or_more")]
    pub mode: Vec<Mode>,
    /// Seeds of random triggers; none: the table's number, from 1.
    #[serde(deserialize_with = "one_or_more")]
    pub seed: Vec<u64>,
    /// First triggers, in cycles; none: after one whole period.
    #[serde(deserialize_with = "one_or_more")]
    pub offset: Vec<u64>,
    /// Names of processes, each with samplers that sample only there; none: all processes.
    #[serde(deserialize_with = "one_or_more")]
    pub process: Vec<String>,
    /// Names of threads, each with samplers that sample only while a thread has the name; none: all threads.
    #[serde(deserialize_with = "one_or_more")]
    pub thread: Vec<String>,
    /// Privileges, each with samplers that sample only there; none: all privileges.
    #[serde(deserialize_with = "one_or_more")]
    pub privilege: Vec<Privilege>,
    /// "command": only while the command runs; "run": as the run's own region.
    #[serde(deserialize_with = "one_or_more")]
    pub region: Vec<Region>,
}

/// Where in its period a trigger falls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mode {
    /// At the end of the period.
    #[default]
    Periodic,
    /// Anywhere in the period, by chance.
    Random,
}

/// The samplers of a spec on a core of `clock_hz`; without any, every profiler at two rates.
///
/// # Errors
/// What was expected and what was found, with the field.
pub(crate) fn samplers(specs: &[SamplerSpec], clock_hz: f64) -> Result<Vec<Sampler>, String> {
    let mut found = Vec::new();
    for (n, spec) in specs.iter().enumerate() {
        let at = |(field, problem): (&str, String)| format!("sampler[{n}]{field}: {problem}");
        found.extend(spec.samplers(n as u64 + 1, clock_hz).map_err(at)?);
        if found.len() > MAX_SAMPLERS {
            let problem = format!("expected at most {MAX_SAMPLERS} samplers, found more");
            return Err(at(("", problem)));
        }
    }
    if specs.is_empty() {
        let dense = Schedule::every(DENSE_PERIOD);
        for schedule in [dense, Schedule::frequency(4000, clock_hz as u64)] {
            found.extend(Profiler::ALL.map(|profiler| Sampler::new(profiler, schedule)));
        }
    }
    name(&mut found);
    Ok(found)
}

impl SamplerSpec {
    /// All combinations; an error is a field and a problem.
    fn samplers(&self, seed: u64, clock_hz: f64) -> Result<Vec<Sampler>, (&'static str, String)> {
        let profilers = self.profilers().map_err(|e| (".profiler", e))?;
        let schedules = self.schedules(seed, clock_hz)?;
        let filters = self.filters();
        let count = { profilers.len() * schedules.len() }.saturating_mul(filters.len());
        if count > MAX_SAMPLERS {
            let problem = format!("expected at most {MAX_SAMPLERS} samplers, found {count}");
            return Err(("", problem));
        }
        let mut all = Vec::with_capacity(count);
        for filter in &filters {
            for schedule in &schedules {
                let sampler = |profiler| Sampler::new(profiler, *schedule).filtered(filter.clone());
                all.extend(profilers.iter().copied().map(sampler));
            }
        }
        Ok(all)
    }

    fn profilers(&self) -> Result<Vec<Profiler>, String> {
        let names = || Profiler::ALL.map(Profiler::name).join(", ");
        if self.profiler.is_empty() {
            return Err(format!("expected all or some of {}; found none", names()));
        }
        let mut found = Vec::new();
        for name in &self.profiler {
            let known = Profiler::ALL.into_iter().find(|p| p.name() == name);
            match known {
                Some(profiler) => found.push(profiler),
                None if name == "all" => found.extend(Profiler::ALL),
                None => {
                    return Err(format!("expected all or one of {}; found \"{name}\"", names()));
                }
            }
        }
        Ok(found)
    }

    fn schedules(
        &self,
        default_seed: u64,
        clock_hz: f64,
    ) -> Result<Vec<Schedule>, (&'static str, String)> {
        if self.period.is_empty() == self.frequency.is_empty() {
            let found = if self.period.is_empty() { "neither" } else { "both" };
            let problem = format!("expected either `period` or `frequency`, found {found}");
            return Err(("", problem));
        }
        let mut periods = self.period.clone();
        if periods.contains(&0) {
            return Err((".period", "expected at least 1 cycle, found 0".into()));
        }
        for frequency in &self.frequency {
            let hz = parse_frequency(frequency).map_err(|e| (".frequency", e))?;
            periods.push((clock_hz / hz).round().max(1.0) as u64);
        }
        let modes = or(&self.mode, Mode::Periodic);
        if !self.seed.is_empty() && !modes.contains(&Mode::Random) {
            let problem = "expected mode = \"random\" with it, found \"periodic\"";
            return Err((".seed", problem.into()));
        }
        let mut schedules = Vec::new();
        for period in periods {
            for offset in or(&self.offset, 0) {
                let schedule = Schedule { offset, ..Schedule::every(period) };
                for mode in &modes {
                    match mode {
                        Mode::Periodic => schedules.push(schedule),
                        Mode::Random => schedules.extend(
                            or(&self.seed, default_seed)
                                .into_iter()
                                .map(|seed| schedule.randomised(seed)),
                        ),
                    }
                }
            }
        }
        Ok(schedules)
    }

    fn filters(&self) -> Vec<Filter> {
        let some = |list: &[String]| list.iter().cloned().map(Some).collect::<Vec<_>>();
        let mut filters = Vec::new();
        for region in or(&self.region, Region::Run) {
            for process in or(&some(&self.process), None) {
                let privileges: Vec<_> = self.privilege.iter().copied().map(Some).collect();
                for thread in or(&some(&self.thread), None) {
                    for privilege in or(&privileges, None) {
                        filters.push(Filter {
                            process: process.clone(),
                            thread: thread.clone(),
                            privilege,
                            marked: region.is_marked(),
                        });
                    }
                }
            }
        }
        filters
    }
}

/// The values of a key, or the one that it has where it is not given.
fn or<T: Clone>(given: &[T], default: T) -> Vec<T> {
    if given.is_empty() { vec![default] } else { given.to_vec() }
}

/// The first sampler of a profiler that sees all cycles has its plain name; the others say how they differ.
fn name(samplers: &mut [Sampler]) {
    let mut taken = HashSet::new();
    for sampler in samplers {
        let Schedule { period, offset, random } = sampler.schedule;
        let unfiltered = sampler.filter == Filter::NONE;
        let mut name = sampler.profiler.name().to_owned();
        if !unfiltered || taken.contains(&name) {
            name += &format!("@{period}");
            if random.is_some() {
                name.push('r');
            }
            if offset != 0 {
                name += &format!("+{offset}");
            }
            if !unfiltered {
                name += &format!(":{}", sampler.filter);
            }
        }
        let numbered = (2..).map(|n| format!("{name}#{n}"));
        let free = std::iter::once(name.clone()).chain(numbered);
        let name = { free }.find(|name| !taken.contains(name));
        sampler.name = name.unwrap_or_default();
        taken.insert(sampler.name.clone());
    }
}

/// A value, or a list of them.
fn one_or_more<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    struct OneOrMore<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for OneOrMore<T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a text or a number, or a list of them")
        }

        fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Vec<T>, E> {
            Ok(vec![T::deserialize(value.into_deserializer())?])
        }

        fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Vec<T>, E> {
            Ok(vec![T::deserialize(value.into_deserializer())?])
        }

        fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Vec<T>, E> {
            Ok(vec![T::deserialize(value.into_deserializer())?])
        }

        fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Vec<T>, A::Error> {
            Vec::deserialize(SeqAccessDeserializer::new(list))
        }
    }

    deserializer.deserialize_any(OneOrMore(PhantomData))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Spec;

    fn of(text: &str) -> Result<Vec<Sampler>, String> {
        let spec: Spec = toml::from_str(text).map_err(|e| e.to_string())?;
        samplers(&spec.sampler, 3.2e9)
    }

    fn names(text: &str) -> Vec<String> {
        of(text).unwrap().into_iter().map(|s| s.name).collect()
    }

    #[test]
    fn lists_stand_for_all_combinations() {
        let text = r#"
            [[sampler]]
            profiler = "tip"
            period = 199
            [[sampler]]
            profiler = ["tip", "nci"]
            frequency = ["4kHz", "1MHz"]
            mode = ["periodic", "random"]
            offset = [0, 7]
        "#;
        let all = of(text).unwrap();
        assert_eq!(all.len(), 1 + 2 * 2 * 2 * 2);
        let distinct: HashSet<_> = all.iter().map(|s| (s.profiler, s.schedule)).collect();
        assert_eq!(distinct.len(), all.len());
        let names: HashSet<_> = all.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names.len(), all.len());
        for name in ["tip", "nci", "tip@800000", "nci@3200r+7", "tip@3200+7"] {
            assert!(names.contains(name), "{name} of {names:?}");
        }
        let random = all.iter().filter_map(|s| s.schedule.random);
        assert!(random.eq([2; 8]), "the table's number is the seed");
    }

    #[test]
    fn filters_are_in_the_names() {
        let text = r#"
            [[sampler]]
            profiler = "tip"
            period = 9
            process = ["sh", "quickstart"]
            privilege = "user"
            region = "command"
        "#;
        let expected = ["tip@9:sh:user:command", "tip@9:quickstart:user:command"];
        assert_eq!(names(text), expected);
        assert!(of(text).unwrap().iter().all(|s| s.filter.marked));
    }

    #[test]
    fn seeds_repeat_an_experiment() {
        let text =
            "[[sampler]]\nprofiler = \"tip\"\nperiod = 9\nmode = \"random\"\nseed = [4, 5, 6]";
        assert_eq!(names(text), ["tip", "tip@9r", "tip@9r#2"]);
        let all = of(text).unwrap();
        let seeds: Vec<_> = all.iter().filter_map(|s| s.schedule.random).collect();
        assert_eq!(seeds, [4, 5, 6]);
    }

    #[test]
    fn the_default_is_every_profiler_at_two_rates() {
        let all = of("").unwrap();
        assert_eq!(all.len(), 16);
        assert_eq!((all[0].name.as_str(), all[0].schedule.period), ("tip", 199));
        assert_eq!(all[8].name, "tip@800000");
    }

    #[test]
    fn mistakes_name_the_field() {
        let cases = [
            ("profiler = \"tip\"", "sampler[0]: expected either"),
            ("period = 9", "sampler[0].profiler: expected all or some of tip"),
            ("profiler = \"tipp\"\nperiod = 9", "found \"tipp\""),
            ("profiler = \"tip\"\nperiod = [9, 0]", "sampler[0].period"),
            ("profiler = \"tip\"\nfrequency = \"4k\"", "sampler[0].frequency"),
            ("profiler = \"tip\"\nperiod = 9\nfrequency = \"4kHz\"", "found both"),
            ("profiler = \"tip\"\nperiod = 9\nseed = 3", "sampler[0].seed"),
            ("profiler = \"tip\"\nperiod = 9\nmode = \"sometimes\"", "`periodic` or `random`"),
            ("profiler = \"tip\"\nperiod = -9", "expected u64"),
            ("profiler = \"tip\"\nperiod = true", "a text or a number"),
            ("profiler = \"tip\"\nperiod = 9\nprivilege = \"supervisor\"", "`kernel`"),
        ];
        for (lines, expected) in cases {
            let error = of(&format!("[[sampler]]\n{lines}\n")).unwrap_err();
            assert!(error.contains(expected), "{lines}: {error}");
        }
        let many = (1..100).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
        let text = format!("[[sampler]]\nprofiler = \"all\"\nperiod = [{many}]\noffset = [{many}]");
        assert!(of(&text).unwrap_err().contains("at most 4096"));
    }
}
