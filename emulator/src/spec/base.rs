//! `base = "FILE"`: a spec takes the keys that it does not have from another one.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::{MAX_SPEC_BYTES, toml_message};
use crate::failure::{BadInput, bad_input, read_at_most};
use timing::Preset;

/// Most specs in a chain: more is a circle.
const MAX_BASES: usize = 16;

/// Keys that name files, which are relative to the spec that has them.
pub(super) const PATH_KEYS: [&str; 10] = [
    "guest.kernel",
    "guest.firmware",
    "guest.initrd",
    "guest.program",
    "guest.semihosting",
    "guest.drive",
    "guest.symbols",
    "run.files",
    "run.input",
    "run.sampling.points",
];

/// Returns the spec at `path` with the keys of its base, of the base's own base, and so on. Tables are merged, lists replaced.
pub(super) fn with_bases(path: &Path, mut table: Table) -> Result<Table, BadInput> {
    let folder = path.parent().unwrap_or(Path::new(""));
    // The folder of the base at hand, relative to the folder of the spec.
    let mut base_folder = PathBuf::new();
    for _ in 0..MAX_BASES {
        let Some(base) = table.remove("base") else {
            return Ok(table);
        };
        let relative = base_folder.join(base.as_str().unwrap_or_default());
        let base = folder.join(&relative);
        let error = |e: &dyn Display| bad_input(path, format!("base: {}: {e}", base.display()));
        let bytes = read_at_most(&base, MAX_SPEC_BYTES).map_err(|e| error(&e))?;
        let text = String::from_utf8(bytes).map_err(|e| error(&e))?;
        let mut found: Table =
            toml::from_str(&text).map_err(|e| bad_input(&base, toml_message(&e, &text)))?;
        // An error of the base is told with the base's own lines.
        toml::from_str::<super::Spec>(&text)
            .map_err(|e| bad_input(&base, toml_message(&e, &text)))?;
        base_folder = relative.parent().unwrap_or(Path::new("")).to_owned();
        anchor(&mut found, &relative, &base_folder);
        merge(&mut table, found);
    }
    let error = format!("base: expected at most {MAX_BASES} specs one upon another");
    Err(bad_input(path, error))
}

/// Makes the files that the base `file` in `folder` names relative to the spec that is built on it.
fn anchor(table: &mut Table, file: &Path, folder: &Path) {
    let join = |value: &mut Value| {
        if let Value::String(path) = value {
            *path = folder.join(&*path).to_string_lossy().into_owned();
        }
    };
    for key in PATH_KEYS {
        let (section, key) = key.rsplit_once('.').unwrap_or(("", key));
        let mut sections = section.split('.');
        let section = sections.next().and_then(|section| table.get_mut(section));
        let section = sections.try_fold(section, |of, section| Some(of?.get_mut(section)));
        match section.flatten().and_then(|table| table.get_mut(key)) {
            Some(Value::Array(paths)) => paths.iter_mut().for_each(join),
            Some(path) => join(path),
            None => {}
        }
    }
    if let Some(Value::String(preset)) = table.get_mut("core").and_then(|c| c.get_mut("preset")) {
        *preset = Preset::beside(&file.to_string_lossy(), preset);
    }
}

/// Adds the keys of `base` that `table` lacks.
fn merge(table: &mut Table, base: Table) {
    for (key, value) in base {
        match (table.get_mut(&key), value) {
            (Some(Value::Table(own)), Value::Table(value)) => merge(own, value),
            (Some(_), _) => {}
            (None, value) => {
                table.insert(key, value);
            }
        }
    }
}
