//! The machine-readable forms: `report.json`, `errors.json` and `flame.json`.

use std::collections::BTreeMap;

use profile::Level;
use schemars::JsonSchema;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::columns::Levels;
use super::flame::Flame;
use super::report::Report;
use super::tables::ProcessReport;
use crate::format::{FLAME_FORMAT, REPORT_FORMAT};

/// Instructions that `report.json` has at most, the most expensive ones.
const MAX_INSTRUCTIONS: usize = 1000;

/// The report of a run: what its cycles were spent on, and how well each profiler says so. Shares are fractions from 0 to 1.
#[derive(Debug, JsonSchema, Serialize)]
pub struct ReportFile<'a> {
    /// Version of the file. Within a version, keys may be added; none goes away or changes its meaning, unit or type.
    #[schemars(extend("const" = REPORT_FORMAT))]
    format: u32,
    /// Names of the categories of cycle stacks, in the order of every `stack`.
    categories: [&'static str; 7],
    #[serde(flatten)]
    report: &'a Report,
}

/// Errors of profiles by process, level and profiler, as fractions from 0 to 1. A profiler that sampled at several rates is there with
/// the first of them; `guest-tip` and others of the guest are absent for processes that perf did not sample there.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(transparent)]
pub struct ErrorsFile(BTreeMap<String, Levels<BTreeMap<String, f64>>>);

/// Trees of where the time went: by place in the code, and by callers.
#[derive(Debug, JsonSchema, Serialize)]
pub struct FlameFile<'a> {
    /// Version of the file. Within a version, keys may be added; none goes away or changes its meaning, unit or type.
    #[schemars(extend("const" = FLAME_FORMAT))]
    format: u32,
    #[serde(flatten)]
    flame: &'a Flame,
}

impl<'a> FlameFile<'a> {
    /// Returns the content of `flame.json`.
    pub fn new(flame: &'a Flame) -> Self {
        Self { format: FLAME_FORMAT, flame }
    }
}

impl Report {
    /// Returns the content of `errors.json`: `{process: {level: {profiler: error}}}`.
    pub fn errors_json(&self) -> Value {
        let of_process = |process: &ProcessReport| {
            Levels::from_fn(|level: Level| {
                let columns = self.common.columns.iter().zip(&process.errors);
                let wanted = columns.filter(|(column, _)| match column.profiler {
                    Some(profiler) => column.primary && profiler.is_in_errors_json(),
                    None => true,
                });
                let known = wanted.filter_map(|(column, error)| {
                    Some((column.label().to_owned(), error.as_ref()?.get(level).error))
                });
                known.collect()
            })
        };
        let processes = self.common.processes.iter();
        let errors = processes.map(|process| (process.name.clone(), of_process(process)));
        serde_json::to_value(ErrorsFile(errors.collect())).unwrap_or_default()
    }

    /// Returns the content of `report.json`: everything in the report except the listings, and only the first thousand instructions.
    pub fn json(&self) -> Value {
        let file =
            ReportFile { format: REPORT_FORMAT, categories: profile::CATEGORIES, report: self };
        let mut value = serde_json::to_value(file).unwrap_or_default();
        if let Some(map) = value.as_object_mut() {
            map.remove("listings");
            if let Some(Value::Array(rows)) = map.get_mut("instructions") {
                rows.truncate(MAX_INSTRUCTIONS);
            }
        }
        value
    }

    /// Returns the text of `report.json`, whose first key is its format.
    ///
    /// # Errors
    /// None: every report can be written as JSON.
    pub fn json_text(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(&FormatFirst(&self.json())).map(|text| text + "\n")
    }
}

/// A file's content, written with its format before all other keys.
struct FormatFirst<'a>(&'a Value);

impl Serialize for FormatFirst<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let keys = || self.0.as_object().into_iter().flatten();
        let mut map = serializer.serialize_map(Some(keys().count()))?;
        let (format, others): (Vec<_>, Vec<_>) = keys().partition(|(key, _)| *key == "format");
        for (key, value) in format.into_iter().chain(others) {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}
