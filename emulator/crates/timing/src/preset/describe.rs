//! A preset as a table for people and as JSON for programs.

use serde::Serialize;
use toml::{Table, Value};

use super::{Preset, load::ROOT};

/// All parameters of a preset, in the order of the file that documents them.
#[derive(Clone, Debug, Serialize)]
pub struct Description {
    /// Name of the preset.
    pub name: String,
    /// What it stands for.
    pub summary: String,
    /// Parameters.
    pub parameters: Vec<Parameter>,
}

/// One parameter.
#[derive(Clone, Debug, Serialize)]
pub struct Parameter {
    /// Dotted key, as `--set` takes it.
    pub key: String,
    /// Value.
    pub value: Value,
    /// Meaning and unit.
    pub meaning: String,
}

impl Preset {
    /// Describes every parameter.
    pub fn describe(&self) -> Description {
        let table = Table::try_from(self).expect("a preset is a TOML table");
        let mut section = String::new();
        let mut parameters = Vec::new();
        for line in ROOT.lines() {
            if let Some((name, _)) = line.strip_prefix('[').and_then(|l| l.split_once(']')) {
                section = format!("{name}.");
            } else if let Some((key, rest)) =
                line.split_once(" = ").filter(|_| !line.starts_with('#'))
            {
                let key = format!("{section}{key}");
                let found = key
                    .split('.')
                    .try_fold(None, |at: Option<&Value>, part| match at {
                        None => table.get(part).map(Some),
                        Some(value) => value.get(part).map(Some),
                    });
                let value = found
                    .flatten()
                    .cloned()
                    .unwrap_or(Value::String(String::new()));
                let meaning = rest.split_once("# ").map_or("", |(_, m)| m).to_owned();
                parameters.push(Parameter {
                    key,
                    value,
                    meaning,
                });
            }
        }
        Description {
            name: self.name.clone(),
            summary: self.summary.clone(),
            parameters,
        }
    }
}

impl std::fmt::Display for Description {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{}: {}", self.name, self.summary)?;
        for p in self.parameters.iter().filter(|p| p.key.contains('.')) {
            writeln!(f, "{:24} {:>8}  {}", p.key, p.value.to_string(), p.meaning)?;
        }
        Ok(())
    }
}
