//! The machine-readable forms.

use profile::Level;
use serde_json::{Map, Value, json};

use super::report::Report;

impl Report {
    /// Returns `{process: {level: {profiler: error}}}`, errors as fractions from 0 to 1. A profiler that
    /// sampled at several rates is there with the first of them; `guest-tip` and others of the guest are absent for
    /// processes that perf did not sample there.
    pub fn errors_json(&self) -> Value {
        let mut processes = Map::new();
        for process in &self.common.processes {
            let mut levels = Map::new();
            for level in Level::ALL {
                let mut errors = Map::new();
                for (column, error) in self.common.columns.iter().zip(&process.errors) {
                    let name = column.label();
                    let wanted = match column.profiler {
                        Some(profiler) => column.primary && profiler.is_in_errors_json(),
                        None => true,
                    };
                    if let (true, Some(error)) = (wanted, error) {
                        errors.insert(name.to_owned(), json!(error.get(level).error));
                    }
                }
                levels.insert(level.name().to_owned(), errors.into());
            }
            processes.insert(process.name.clone(), levels.into());
        }
        processes.into()
    }

    /// Returns everything in the report except the listings, and only the first thousand instructions.
    pub fn json(&self) -> Value {
        let mut value = serde_json::to_value(self).unwrap_or_default();
        if let Some(map) = value.as_object_mut() {
            map.remove("listings");
            map.insert("categories".to_owned(), json!(profile::CATEGORIES));
            if let Some(Value::Array(rows)) = map.get_mut("instructions") {
                rows.truncate(1000);
            }
        }
        value
    }
}
