//! Reads `truth.json`.

use serde_json::Value;

/// Returns the instructions of `truth.json`, with names for their entries.
pub(crate) fn instructions(truth: &Value) -> Vec<Value> {
    let named = |kind: &str, row: &Value| {
        let names = truth["columns"][kind].as_array().unwrap();
        let entries = row.as_array().into_iter().flatten();
        let pairs = names.iter().zip(entries);
        Value::Object(
            pairs.map(|(name, value)| (name.as_str().unwrap().to_owned(), value.clone())).collect(),
        )
    };
    let all = truth["instructions"].as_array().unwrap();
    let instruction = |row: &Value| {
        let mut own = named("instruction", row);
        own["counts"] = named("counts", &own["counts"]);
        own["memory"] = named("memory", &own["memory"]);
        own
    };
    all.iter().map(instruction).collect()
}
