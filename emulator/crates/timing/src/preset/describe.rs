//! A preset as a table for people and as JSON for programs.

use serde::Serialize;
use toml::{Table, Value};

use super::{Preset, load::ROOT, names};

/// Changed parameters that a title names at most.
const MOST_NAMED: usize = 2;

/// All parameters of a preset, in the order of the file that documents them.
#[derive(Clone, Debug, Serialize)]
pub struct Description {
    /// Name of the preset.
    pub name: String,
    /// What the preset stands for.
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
    /// What the embedded preset of that name has, if it is something else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<Value>,
}

impl Preset {
    /// Describes every parameter.
    pub fn describe(&self) -> Description {
        let mut parameters = self.parameters();
        if names().any(|name| name == self.name) {
            let preset = Self::load(&self.name).expect("an embedded preset is valid");
            for (parameter, unchanged) in parameters.iter_mut().zip(preset.parameters()) {
                let differs = parameter.value != unchanged.value;
                parameter.preset = differs.then_some(unchanged.value);
            }
        }
        Description { name: self.name.clone(), summary: self.summary.clone(), parameters }
    }

    fn parameters(&self) -> Vec<Parameter> {
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
                let found = key.split('.').try_fold(None, |at: Option<&Value>, part| match at {
                    None => table.get(part).map(Some),
                    Some(value) => value.get(part).map(Some),
                });
                let value = found.flatten().cloned().unwrap_or(Value::String(String::new()));
                let meaning = rest.split_once("# ").map_or("", |(_, m)| m).to_owned();
                parameters.push(Parameter { key, value, meaning, preset: None });
            }
        }
        parameters
    }
}

impl Description {
    /// Returns all of the preset but what it is called.
    fn of_the_core(&self) -> impl Iterator<Item = &Parameter> {
        self.parameters.iter().filter(|p| p.key.contains('.'))
    }

    /// Returns what the preset stands for, and what was changed of that.
    pub(super) fn title(&self) -> String {
        let changed = self.of_the_core().filter_map(|p| {
            let preset = p.preset.as_ref()?;
            Some(format!("{} = {} instead of {preset}", p.key, p.value))
        });
        let changed: Vec<_> = changed.collect();
        match changed.len() {
            0 => self.summary.clone(),
            1..=MOST_NAMED => format!("{}; but {}", self.summary, changed.join(", ")),
            many => format!("{}; but {many} parameters are changed", self.summary),
        }
    }
}

impl std::fmt::Display for Description {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{}: {}", self.name, self.title())?;
        for p in self.of_the_core() {
            writeln!(f, "{:24} {:>8}  {}", p.key, p.value.to_string(), p.meaning)?;
        }
        Ok(())
    }
}
