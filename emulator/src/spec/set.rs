//! `--set KEY=VALUE`, and errors that name what they are of: the file or such an option.

use std::path::Path;

use timing::{Preset, PresetError};

use crate::failure::{BadInput, bad_input, nearest};

/// Where a spec comes from.
pub(crate) struct Source<'a> {
    /// The file.
    pub path: &'a Path,
    /// Assignments on the command line that replace keys of the file.
    pub set: &'a [String],
    /// Options of `tipsim profile` by key, if the file is made of them.
    pub options: &'a [(&'a str, &'a str)],
}

/// Options of `tipsim profile` by the keys that they set.
pub(crate) const PROFILE_OPTIONS: [(&str, &str); 7] = [
    ("guest.harts", "--harts"),
    ("guest.memory", "--memory"),
    ("guest.image", "--image"),
    ("guest.packages", "--package"),
    ("core.preset", "--core"),
    ("run.files", "--file"),
    ("run.env", "--env"),
];

impl Source<'_> {
    /// An error of the file, or of the option that set the key with which the error begins.
    pub(crate) fn blame(&self, error: impl std::fmt::Display) -> BadInput {
        let error = error.to_string();
        // A preset says that its parameters were set by someone; a change of them here does, too.
        let error = error.strip_prefix("override: ").unwrap_or(&error);
        let named_key = error.split([':', ' ']).next().unwrap_or_default();
        let names = |key: &str| key == named_key || error.contains(&format!("`{key}`"));
        let set = self.set.iter().rev().find(|assignment| {
            let key = assignment.split('=').next().unwrap_or_default().trim();
            // Parameters of the core are named as in a preset.
            names(key) || key.strip_prefix("core.").is_some_and(names)
        });
        let option = self.options.iter().find(|(key, _)| *key == named_key);
        match (set, option) {
            (Some(assignment), _) => BadInput(format!("--set {assignment}: {error}")),
            (None, Some((key, option))) => {
                let rest = error.strip_prefix(key).unwrap_or(error);
                BadInput(format!("{option}{rest}"))
            }
            (None, None) => bad_input(self.path, error),
        }
    }
}

/// Returns the error of an assignment that does not fit.
pub(super) fn unfit(assignment: &str, error: &toml::de::Error) -> BadInput {
    let message = toml_message(error, "");
    let (key, value) = assignment.split_once('=').unwrap_or((assignment, ""));
    if message.starts_with("unknown field") && is_of_core(key) {
        let key = key.trim();
        return BadInput(format!("--set {assignment}: unknown key; did you mean `core.{key}`?"));
    }
    let hint = if message.contains("expected a string") {
        format!("; a text of that look wants quotes: --set '{key}=\"{value}\"'")
    } else {
        String::new()
    };
    BadInput(format!("--set {assignment}: {message}{hint}"))
}

/// A parameter of the core, named as in a preset.
fn is_of_core(key: &str) -> bool {
    let tried = Preset::default().set(key.trim(), "0");
    !matches!(tried, Err(PresetError::UnknownKey { .. } | PresetError::Syntax { .. }))
}

/// Sets one dotted key of a table. The value is TOML, or a bare string.
pub(super) fn apply(table: &mut toml::Table, assignment: &str) -> Result<(), BadInput> {
    let (key, value) = assignment.split_once('=').ok_or_else(|| {
        BadInput(format!("--set {assignment}: expected KEY=VALUE, e.g. core.rob.entries=128"))
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

/// Returns an error about a value of the wrong type as all errors here are: what is expected, in a user's words, and what was found.
fn as_here(message: &str) -> String {
    let wrong = ["invalid type: ", "invalid value: "]
        .iter()
        .find_map(|start| message.strip_prefix(start)?.split_once(", expected "));
    let (found, expected) = match (wrong, message) {
        (Some((found, expected)), _) => (found, expected),
        (None, "wanted string or table") => ("another value", "string only"),
        (None, _) => return message.to_owned(),
    };
    let expected = match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number from 0 up",
        "i32" | "i64" => "a whole number",
        "f64" => "a number",
        "string only" => "a name in quotes",
        other => other,
    };
    match found {
        // serde's name of a number where one of several names is wanted.
        "unit variant" => format!("expected {expected}"),
        found => format!("expected {expected}, found {found}"),
    }
}

/// One line for a TOML error: line number, message, nearest known key.
pub(crate) fn toml_message(error: &toml::de::Error, text: &str) -> String {
    let message = as_here(&error.message().replace('\n', " "));
    let line = error
        .span()
        .filter(|_| !text.is_empty())
        .map(|s| text[..s.start.min(text.len())].matches('\n').count() + 1);
    let mut quoted = message.split('`').skip(1).step_by(2);
    let known = message.starts_with("unknown").then(|| {
        let unknown = quoted.next()?;
        nearest(unknown, quoted, 0.0)
    });
    let at = line.map(|l| format!("line {l}: ")).unwrap_or_default();
    if let Some(known) = known.flatten() {
        return format!("{at}{message}; did you mean `{known}`?");
    }
    // A bare word, which is no value of TOML.
    let start = error.span().map_or(0, |span| span.start.min(text.len()));
    let before = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
    let in_line = text[before..].lines().next().unwrap_or_default();
    let bare = in_line.split_once('=').and_then(|(key, value)| {
        let value = value.split('#').next()?.trim();
        let is_word = value.starts_with(|c: char| c.is_ascii_alphabetic())
            && value.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        (is_word && !["true", "false", "inf", "nan"].contains(&value)).then(|| (key.trim(), value))
    });
    let key = in_line.split_once('=').map(|(key, _)| key.trim());
    match (bare, key) {
        (Some((key, value)), _) => {
            format!("{at}{message}; a text wants quotes: {key} = \"{value}\"")
        }
        (None, Some(key)) if message.starts_with("expected ") => format!("{at}{key}: {message}"),
        (None, _) => format!("{at}{message}"),
    }
}
