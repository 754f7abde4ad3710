//! `tipsim schema`: JSON Schemas of the files of a run.

use report::{ErrorsFile, FlameFile, ReportFile};
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema};
use serde_json::Value;
use simulation::SampledUnits;
use truth::Truth;

use crate::cli::SchemaArgs;
use crate::commands::phases::PhasesFile;
use crate::commands::retime::SweepFile;
use crate::commands::schemes::SchemesFile;
use crate::failure::{BadInput, nearest};
use crate::run_folder::report_files::{FLAME, REPORT};
use crate::run_folder::run_json::RunJson;
use crate::run_folder::trace_metadata::TraceMetadata;
use crate::run_folder::{PHASES, RUN, SWEEP, TRACE, UNITS};

/// A file of a run that has a schema.
struct SchemaRow {
    /// The file's name in the folder of a run.
    file: &'static str,
    /// What the file holds, in a line.
    about: &'static str,
    /// Makes the file's schema.
    schema: fn() -> Schema,
}

/// The files that have schemas. To add one, derive [`JsonSchema`] for the type that is written, and add a row.
const SCHEMAS: [SchemaRow; 10] = [
    SchemaRow { file: RUN, about: "how a run went, and with what", schema: schema_of::<RunJson> },
    SchemaRow {
        file: REPORT,
        about: "the report of a run, or of a hart: every number that its text and page show",
        schema: schema_of::<ReportFile<'_>>,
    },
    SchemaRow {
        file: "errors.json",
        about: "errors of the profiles by process, level and profiler",
        schema: schema_of::<ErrorsFile>,
    },
    SchemaRow {
        file: FLAME,
        about: "trees of where the time went, by place in the code and by callers",
        schema: schema_of::<FlameFile<'_>>,
    },
    SchemaRow {
        file: UNITS,
        about: "units of a region that was sampled, with run.sampling",
        schema: schema_of::<SampledUnits>,
    },
    SchemaRow {
        file: SWEEP,
        about: "cores compared by the stored units of a run, of `tipsim retime` with several cores",
        schema: schema_of::<SweepFile>,
    },
    SchemaRow {
        file: PHASES,
        about: "phases of a program, of `tipsim phases`",
        schema: schema_of::<PhasesFile>,
    },
    SchemaRow {
        file: "schemes.json",
        about: "what `tipsim schemes --json` prints of schemes of sampling",
        schema: schema_of::<SchemesFile>,
    },
    SchemaRow {
        file: "truth.json",
        about: "exact counts by instruction and by cache line, with record.truth = true",
        schema: schema_of::<Truth>,
    },
    SchemaRow {
        file: TRACE,
        about: "the metadata of a trace, which `tipsim trace info --format json` shows",
        schema: schema_of::<TraceMetadata>,
    },
];

/// Prints the names of the files that have schemas, or the schema of one.
pub(crate) fn schema(args: &SchemaArgs) -> anyhow::Result<()> {
    match &args.name {
        None => print!("{}", list()),
        Some(name) => {
            let schema = row(name)?.titled();
            println!("{}", serde_json::to_string_pretty(&schema)?);
        }
    }
    Ok(())
}

fn list() -> String {
    SCHEMAS.iter().map(|row| format!("{:<12} {}\n", row.file, row.about)).collect()
}

impl SchemaRow {
    /// Returns the file's schema, whose title is the file's name.
    fn titled(&self) -> Schema {
        let mut schema = (self.schema)();
        schema.insert("title".to_owned(), self.file.into());
        schema
    }
}

/// Returns the row of a file, which may be named without its extension.
fn row(name: &str) -> Result<&'static SchemaRow, BadInput> {
    let plain = |file: &'static str| file.strip_suffix(".json").unwrap_or(file);
    let known = SCHEMAS.iter().find(|row| row.file == name || plain(row.file) == name);
    known.ok_or_else(|| {
        let files = || SCHEMAS.iter().map(|row| row.file);
        let nearest = nearest(name, files(), 0.7);
        let nearest = nearest.map_or(String::new(), |file| format!("; did you mean {file}?"));
        let files: Vec<&str> = files().collect();
        BadInput(format!("{name}: expected one of {}{nearest}", files.join(", ")))
    })
}

/// Returns the schema (draft 2020-12) of a type as it is written.
fn schema_of<T: JsonSchema>() -> Schema {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    RecursiveTransform(describe).transform(&mut schema);
    schema
}

/// Takes out of a description what only documentation of Rust code has.
fn describe(schema: &mut Schema) {
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = plain(text);
    }
}

/// Returns documentation as text for readers of JSON: lines of a paragraph joined, items of code by their names alone, and `null` where
/// Rust has `None`.
fn plain(text: &str) -> String {
    let joined = text.replace("\n\n", "\0").replace('\n', " ").replace('\0', "\n\n");
    let mut out = String::new();
    let mut rest = joined.as_str();
    while let Some((before, after)) = rest.split_once('[') {
        let Some((inside, behind)) = after.split_once(']') else {
            break;
        };
        out += before;
        match inside.strip_prefix('`').and_then(|item| item.strip_suffix('`')) {
            Some(item) => {
                let name = item.rsplit("::").next().unwrap_or(item);
                out += &format!("`{name}`");
                // The item's place in the code.
                let link = behind.strip_prefix('(').and_then(|link| link.split_once(')'));
                rest = link.map_or(behind, |(_, behind)| behind);
            }
            None => {
                out += &format!("[{inside}]");
                rest = behind;
            }
        }
    }
    (out + rest).replace("`None`", "`null`")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls `check` with each property of every object of a schema.
    fn each_property(value: &Value, path: &str, check: &mut impl FnMut(&str, &Value)) {
        if let Value::Object(map) = value {
            if let Some(Value::Object(properties)) = map.get("properties") {
                // The description of a variant with content is that of the variant.
                let is_variant = map.get("additionalProperties") == Some(&Value::Bool(false));
                for (name, property) in properties.iter().filter(|_| !is_variant) {
                    check(&format!("{path}.{name}"), property);
                }
            }
            for (key, below) in map {
                each_property(below, &format!("{path}.{key}"), check);
            }
        }
    }

    #[test]
    fn every_key_of_every_file_is_described() {
        for row in &SCHEMAS {
            let schema = row.titled().to_value();
            assert_eq!(schema["title"], row.file);
            assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
            let text = serde_json::to_string(&schema).unwrap();
            for rust in ["[`", "`None`", "::"] {
                assert!(!text.contains(rust), "{}: {rust} in {text}", row.file);
            }
            each_property(&schema, row.file, &mut |path, property| {
                // What tells the variants of a type apart describes itself.
                let is_described =
                    property["description"].is_string() || property.get("const").is_some();
                assert!(is_described, "{path}: no description: {property}");
            });
        }
    }

    #[test]
    fn the_schema_of_a_report_tells_what_is_written() {
        let schema = (row("report").unwrap().schema)().to_value();
        assert_eq!(schema["properties"]["format"]["const"], report::REPORT_FORMAT);
        let required = schema["required"].as_array().unwrap();
        for (key, is_required) in [("totals", true), ("harts", true), ("interpreted", false)] {
            assert_eq!(required.contains(&key.into()), is_required, "{key}");
        }
        assert!(schema["properties"].get("listings").is_none());
    }

    #[test]
    fn files_are_found_by_name() {
        assert_eq!(row("truth.json").unwrap().file, row("truth").unwrap().file);
        assert_eq!(list().lines().count(), SCHEMAS.len());
        let error = row("reports.json").err().unwrap().to_string();
        assert!(error.contains("flame.json") && error.contains("did you mean report.json?"));
        assert!(!row("x").err().unwrap().to_string().contains("did you mean"));
    }

    #[test]
    fn descriptions_are_for_readers_of_json() {
        let text = "Index into [`processes`](crate::Common::processes) or\n[`Truth::lines`], `None`\nif [sic] none.\n\nMore [";
        assert_eq!(
            plain(text),
            "Index into `processes` or `lines`, `null` if [sic] none.\n\nMore ["
        );
    }
}
