//! `--set KEY=VALUE`, and errors that name what they are of: the file or such an option.

use std::path::Path;

use crate::failure::{BadInput, bad_input};

/// Where a spec comes from.
pub struct Source<'a> {
    /// The file,
    pub path: &'a Path,
    /// and what was set instead of its keys.
    pub set: &'a [String],
}

impl Source<'_> {
    /// An error of the file, or of the option that set the key with which the error begins.
    pub fn blame(&self, error: impl std::fmt::Display) -> BadInput {
        let error = error.to_string();
        // As a preset says that its parameters were set by someone.
        let error = error.strip_prefix("override: ").unwrap_or(&error);
        let named_key = error.split([':', ' ']).next().unwrap_or_default();
        let names = |key: &str| key == named_key || error.contains(&format!("`{key}`"));
        let set = self.set.iter().rev().find(|assignment| {
            let key = assignment.split('=').next().unwrap_or_default().trim();
            // Parameters of the core are named as in a preset.
            names(key) || key.strip_prefix("core.").is_some_and(names)
        });
        match set {
            Some(assignment) => BadInput(format!("--set {assignment}: {error}")),
            None => bad_input(self.path, error),
        }
    }
}

/// What was set does not fit.
pub(super) fn unfit(assignment: &str, error: &toml::de::Error) -> BadInput {
    let message = toml_message(error, "");
    let (key, value) = assignment.split_once('=').unwrap_or((assignment, ""));
    let hint = if message.contains("expected a string") {
        format!("; a text of that look wants quotes: --set '{key}=\"{value}\"'")
    } else {
        String::new()
    };
    BadInput(format!("--set {assignment}: {message}{hint}"))
}

/// Sets one dotted key of a table. The value is TOML, or a bare string.
pub(super) fn apply(table: &mut toml::Table, assignment: &str) -> Result<(), BadInput> {
    let (key, value) = assignment.split_once('=').ok_or_else(|| {
        BadInput(format!(
            "--set {assignment}: expected KEY=VALUE, e.g. core.rob.entries=128"
        ))
    })?;
    let value = toml::from_str::<toml::Table>(&format!("v = {value}"))
        .ok()
        .and_then(|mut t| t.remove("v"))
        .unwrap_or_else(|| toml::Value::String(value.to_owned()));
    let mut at = table;
    let mut parts = key.split('.').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            at.insert(part.to_owned(), value);
            return Ok(());
        }
        at = at
            .entry(part)
            .or_insert_with(|| toml::Value::Table(toml::Table::new()))
            .as_table_mut()
            .ok_or_else(|| BadInput(format!("--set {assignment}: {part} is not a table")))?;
    }
    Ok(())
}

/// One line for a TOML error: line number, message, nearest known key.
pub fn toml_message(error: &toml::de::Error, text: &str) -> String {
    let message = error.message().replace('\n', " ");
    let line = { error.span() }
        .filter(|_| !text.is_empty())
        .map(|s| text[..s.start.min(text.len())].matches('\n').count() + 1);
    let mut quoted = message.split('`').skip(1).step_by(2);
    let nearest = message.starts_with("unknown").then(|| {
        let unknown = quoted.next()?;
        quoted.max_by(|a, b| {
            strsim::jaro_winkler(a, unknown).total_cmp(&strsim::jaro_winkler(b, unknown))
        })
    });
    let at = line.map(|l| format!("line {l}: ")).unwrap_or_default();
    match nearest.flatten() {
        Some(known) => format!("{at}{message}; did you mean `{known}`?"),
        None => format!("{at}{message}"),
    }
}
