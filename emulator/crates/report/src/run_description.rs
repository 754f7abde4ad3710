//! What reports need of a run's description (run.json).

use std::collections::BTreeMap;

use profile::Estimate;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::elapsed::Elapsed;
use crate::speedup::MemoryTraffic;

/// A run's description (run.json, or the metadata of a trace), with its facts. It is written as it was read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(from = "Value")]
pub struct RunDescription {
    content: Value,
    facts: RunFacts,
}

/// Facts of a run. One that is absent, or of another type than now, is not known: older versions have less, and so have traces.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct RunFacts {
    #[serde(deserialize_with = "if_readable")]
    name: Option<String>,
    #[serde(deserialize_with = "if_readable")]
    part: Option<String>,
    #[serde(deserialize_with = "if_readable")]
    failure: Option<String>,
    #[serde(deserialize_with = "if_readable")]
    cycles: Option<u64>,
    #[serde(deserialize_with = "if_readable")]
    regions: RegionFacts,
    #[serde(deserialize_with = "if_readable")]
    core: CoreFacts,
    #[serde(deserialize_with = "if_readable")]
    spec: SpecSettings,
    #[serde(deserialize_with = "if_readable")]
    sampling: SamplingFacts,
    #[serde(deserialize_with = "if_readable")]
    uncore: UncoreFacts,
    /// What `tipsim what-if` has found, as it stands there.
    what_if: Value,
}

/// What was counted of last-level cache and memory in the region.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct UncoreFacts {
    #[serde(deserialize_with = "if_readable")]
    memory_controller: Option<ControllerFacts>,
}

/// What was counted of memory: by event, and by hart, origin of the request and event.
#[derive(Clone, Debug, Deserialize)]
struct ControllerFacts {
    all: BTreeMap<String, u64>,
    harts: Vec<BTreeMap<String, BTreeMap<String, u64>>>,
}

/// What was profiled.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct RegionFacts {
    #[serde(deserialize_with = "if_readable")]
    cycles: Option<u64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct CoreFacts {
    #[serde(deserialize_with = "if_readable")]
    name: Option<String>,
    #[serde(deserialize_with = "if_readable")]
    clock: ClockFacts,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ClockFacts {
    #[serde(deserialize_with = "if_readable")]
    mhz: Option<f64>,
}

/// What the run spec set.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct SpecSettings {
    #[serde(deserialize_with = "if_readable")]
    guest: GuestSettings,
    #[serde(deserialize_with = "if_readable")]
    run: RunSettings,
    #[serde(deserialize_with = "if_readable")]
    record: RecordSettings,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct GuestSettings {
    #[serde(deserialize_with = "if_readable")]
    harts: Option<usize>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct RunSettings {
    #[serde(deserialize_with = "if_readable")]
    command: Option<String>,
    #[serde(deserialize_with = "if_readable")]
    region: Option<String>,
    /// The plan by which the region was sampled, if it was.
    #[serde(deserialize_with = "if_readable")]
    sampling: Option<BTreeMap<String, IgnoredAny>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct RecordSettings {
    #[serde(deserialize_with = "if_readable")]
    trace: bool,
}

/// What became of the sampling of a region, as `Sampled` of crate `simulation` writes it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct SamplingFacts {
    #[serde(deserialize_with = "if_readable")]
    in_words: Option<String>,
    #[serde(deserialize_with = "if_readable")]
    instructions: Option<u64>,
    #[serde(deserialize_with = "if_readable")]
    unit_instructions: Option<u64>,
    #[serde(deserialize_with = "if_readable")]
    weighted_instructions: Option<u64>,
    #[serde(deserialize_with = "if_readable")]
    units: Option<u64>,
    #[serde(deserialize_with = "if_readable")]
    cycles: Option<Estimate>,
    #[serde(deserialize_with = "if_readable")]
    units_alone: Option<Estimate>,
}

/// Reads a fact; one of another type counts as absent.
fn if_readable<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    Ok(T::deserialize(Value::deserialize(from)?).unwrap_or_default())
}

impl From<Value> for RunDescription {
    fn from(content: Value) -> Self {
        let facts = RunFacts::deserialize(&content).unwrap_or_default();
        Self { content, facts }
    }
}

impl Serialize for RunDescription {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.content.serialize(to)
    }
}

impl JsonSchema for RunDescription {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "RunDescription".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Value::json_schema(generator)
    }
}

impl RunDescription {
    /// Returns all that the description has.
    pub fn content(&self) -> &Value {
        &self.content
    }

    /// Returns the run's name.
    pub fn name(&self) -> Option<&str> {
        self.facts.name.as_deref()
    }

    /// Returns why these are not the results of a whole run; `None` if they are.
    pub fn part(&self) -> Option<&str> {
        self.facts.part.as_deref()
    }

    /// Returns how the guest's command failed, in words; `None` if it did not.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.facts.failure.as_deref()
    }

    /// Returns the command that was run.
    pub(crate) fn command(&self) -> Option<&str> {
        self.facts.spec.run.command.as_deref()
    }

    /// Returns the name of the core.
    pub(crate) fn core_name(&self) -> Option<&str> {
        self.facts.core.name.as_deref()
    }

    /// Returns the number of the guest's harts.
    pub(crate) fn harts(&self) -> Option<usize> {
        self.facts.spec.guest.harts
    }

    /// Returns whether the run has a trace.
    pub(crate) fn has_trace(&self) -> bool {
        self.facts.spec.record.trace
    }

    /// Returns what `tipsim what-if` has found, as it stands there.
    pub(crate) fn what_if(&self) -> &Value {
        &self.facts.what_if
    }

    /// Returns what was counted of memory in the region; `None` if nothing was.
    pub(crate) fn memory_traffic(&self) -> Option<MemoryTraffic> {
        let ControllerFacts { all, harts } = self.facts.uncore.memory_controller.as_ref()?;
        let of = |counts: &BTreeMap<String, u64>, event: &str| counts.get(event).copied();
        let of_loads = |event: &str| {
            let mut loads = harts.iter().map(|hart| of(hart.get("load")?, event));
            loads.try_fold(0_u64, |sum, count| sum.checked_add(count?))
        };
        Some(MemoryTraffic {
            bytes: of(all, "read_bytes")?.checked_add(of(all, "write_bytes")?)?,
            loads: of_loads("reads")?,
            waited: of_loads("queue_occupancy")?,
        })
    }

    /// Returns the simulated time of the region; `None` if the description is of an older version, or of a trace alone.
    pub(crate) fn elapsed(&self) -> Option<Elapsed> {
        let RunFacts { cycles: of_run, regions, core, spec, .. } = &self.facts;
        let of_region = regions.cycles?;
        // Marks are ignored in a run that is profiled whole.
        let is_whole = spec.run.region.as_deref() == Some("run");
        let cycles = of_run.filter(|_| is_whole).unwrap_or(of_region);
        let mhz = core.clock.mhz.filter(|mhz| *mhz > 0.0);
        Some(Elapsed { cycles, ms: mhz.map(|mhz| cycles as f64 / (1e3 * mhz)) })
    }

    /// Returns what became of the sampling of the region, in words; `None` if all of the region was timed.
    pub fn sampled_words(&self) -> Option<&str> {
        let RunFacts { sampling, spec, .. } = &self.facts;
        let in_words = sampling.in_words.as_deref();
        // A run that was killed knows its plan alone.
        in_words.or(spec.run.sampling.as_ref().map(|_| "units alone were timed"))
    }

    /// Returns how many times as long the region is as what was recorded of it; `None` if all of it was timed, or if a run that was killed does not say.
    pub(crate) fn sampled_scale(&self) -> Option<f64> {
        let SamplingFacts { instructions, unit_instructions, weighted_instructions, .. } =
            self.facts.sampling;
        // What was recorded counts as often as units weigh.
        let recorded = weighted_instructions.or(unit_instructions);
        let scale = instructions.zip(recorded).map(|(all, recorded)| all as f64 / recorded as f64);
        scale.filter(|scale| scale.is_finite() && *scale > 0.0)
    }

    /// Returns how many times as many cycles the region takes as what was recorded of it, as [`Self::sampled_scale`] does, with what the estimate knows
    /// beside the units.
    pub(crate) fn sampled_cycles_scale(&self) -> Option<f64> {
        let SamplingFacts { cycles, units_alone, .. } = self.facts.sampling;
        let beside = cycles.zip(units_alone).map_or(1.0, |(all, units)| all.value / units.value);
        let beside = if beside.is_finite() && beside > 0.0 { beside } else { 1.0 };
        self.sampled_scale().map(|scale| scale * beside)
    }

    /// Returns the number of units that were timed of a sampled region.
    pub(crate) fn units(&self) -> Option<u64> {
        self.facts.sampling.units
    }

    /// Returns the estimate of the region's cycles if it uses what is known beside the units.
    pub(crate) fn cycles_beside_units(&self) -> Option<Estimate> {
        self.facts.sampling.cycles.filter(|_| self.facts.sampling.units_alone.is_some())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_run_that_is_profiled_whole_took_all_its_cycles() {
        let run = |region: &str| {
            RunDescription::from(json!({
                "cycles": 3_200_000,
                "regions": {"cycles": 1_600_000},
                "spec": {"run": {"region": region}},
                "core": {"clock": {"mhz": 3200}},
            }))
        };
        let elapsed = |cycles, ms| Some(Elapsed { cycles, ms: Some(ms) });
        assert_eq!(run("run").elapsed(), elapsed(3_200_000, 1.0));
        assert_eq!(run("command").elapsed(), elapsed(1_600_000, 0.5));
        assert_eq!(RunDescription::from(json!({"cycles": 5})).elapsed(), None);
    }

    #[test]
    fn what_is_absent_or_of_another_type_is_not_known() {
        let content = json!({"name": 7, "part": "killed", "core": null, "spec": {"run": {"command": "ls", "region": 3}}});
        let run = RunDescription::from(content.clone());
        assert_eq!((run.name(), run.part(), run.command()), (None, Some("killed"), Some("ls")));
        assert_eq!((run.core_name(), run.has_trace(), run.sampled_words()), (None, false, None));
        assert_eq!(serde_json::to_value(&run).unwrap(), content);
        assert_eq!(RunDescription::from(json!([1])).name(), None);
    }
}
