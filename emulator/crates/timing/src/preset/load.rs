//! Reading presets: a table is laid over its base, key by key, so that an unknown key or a wrong
//! type is reported with what the base knows.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use toml::{Table, Value};

use super::{Preset, PresetError};

const EMBEDDED: [(&str, &str); 5] = [
    ("boom-4w", include_str!("../../presets/boom-4w.toml")),
    ("mega-boom", include_str!("../../presets/mega-boom.toml")),
    ("large-boom", include_str!("../../presets/large-boom.toml")),
    ("rtl-mega", include_str!("../../presets/rtl-mega.toml")),
    ("rtl-large", include_str!("../../presets/rtl-large.toml")),
];

/// Preset that states every key.
pub(super) const ROOT: &str = EMBEDDED[0].1;

/// Bases may form a chain of at most this many files; a cycle is longer.
const MAX_CHAIN: u32 = 8;
/// Bytes of a preset that are read at most.
const MAX_PRESET_BYTES: u64 = 16 << 20;

/// Names of the embedded presets, the default first.
pub fn names() -> impl Iterator<Item = &'static str> {
    EMBEDDED.iter().map(|(name, _)| *name)
}

impl Default for Preset {
    /// `boom-4w`.
    fn default() -> Self {
        Self::load("boom-4w").expect("the embedded default preset is valid")
    }
}

impl Preset {
    /// Loads an embedded preset by name, or a TOML file by path.
    ///
    /// # Errors
    /// The file is missing, is not TOML, has an unknown key, or a value that no core can have.
    pub fn load(name_or_path: &str) -> Result<Self, PresetError> {
        let table = resolve(name_or_path, MAX_CHAIN)?;
        from_table(table, name_or_path)
    }

    /// Returns the preset that a file names: an embedded one, or a file relative to that file.
    pub fn beside(file: &str, named: &str) -> String {
        let folder = Path::new(file).parent();
        match folder.filter(|_| names().all(|name| name != named)) {
            Some(folder) => folder.join(named).display().to_string(),
            None => named.to_owned(),
        }
    }

    /// Changes one parameter: `set("rob.entries", "96")`.
    ///
    /// # Errors
    /// The key is unknown, or the value does not fit it; `self` is unchanged.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), PresetError> {
        self.set_all([(key, value)])
    }

    /// Changes several parameters at once: what holds between them is checked when all have their values.
    ///
    /// # Errors
    /// A key is unknown, a value does not fit it, or the values do not fit each other; `self` is unchanged.
    pub fn set_all<'a>(
        &mut self,
        settings: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<(), PresetError> {
        let file = "override";
        let mut table = Table::try_from(&*self).expect("a preset is a TOML table");
        let known = table.clone();
        for (key, value) in settings {
            // A bare word is a string, so that `dram.model=fixed` needs no quotes.
            let value = toml::from_str::<Table>(&format!("v = {value}"))
                .ok()
                .and_then(|mut t| t.remove("v"))
                .unwrap_or_else(|| Value::String(value.to_owned()));
            let over = key.rsplit('.').fold(value, |inner, part| {
                Value::Table(Table::from_iter([(part.to_owned(), inner)]))
            });
            if let Value::Table(over) = over {
                overlay(&mut table, over, "", &known, file)?;
            }
        }
        *self = from_table(table, file)?;
        Ok(())
    }
}

fn from_table(table: Table, file: &str) -> Result<Preset, PresetError> {
    let preset: Preset = table.try_into().map_err(|e: toml::de::Error| PresetError::Syntax {
        file: file.to_owned(),
        message: e.to_string(),
    })?;
    preset.check(file)?;
    Ok(preset)
}

/// Reads a preset's file, if it is not longer than presets are: a device may have no end.
fn read(name: &str) -> io::Result<String> {
    let mut text = String::new();
    File::open(name)?.take(MAX_PRESET_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_PRESET_BYTES {
        return Err(io::Error::other(format!(
            "expected at most {MAX_PRESET_BYTES} bytes, found more"
        )));
    }
    Ok(text)
}

/// Returns the full table of a preset: its base's, overlaid.
fn resolve(name: &str, depth: u32) -> Result<Table, PresetError> {
    let text = match EMBEDDED.iter().find(|(n, _)| *n == name) {
        Some((_, text)) => (*text).to_owned(),
        None => read(name).map_err(|source| PresetError::NotFound {
            name: name.to_owned(),
            known: names().collect::<Vec<_>>().join(", "),
            source,
        })?,
    };
    let mut over: Table = toml::from_str(&text)
        .map_err(|e| PresetError::Syntax { file: name.to_owned(), message: e.to_string() })?;
    let base = match over.remove("base") {
        None if name == "boom-4w" => return Ok(over),
        None => "boom-4w".to_owned(),
        Some(Value::String(base)) if depth > 0 => base,
        Some(found) => {
            return Err(PresetError::Value {
                file: name.to_owned(),
                key: "base".to_owned(),
                expected: format!("the name or path of a preset, at most {MAX_CHAIN} deep"),
                found: found.to_string(),
            });
        }
    };
    let mut table = resolve(&Preset::beside(name, &base), depth.saturating_sub(1))?;
    let known = table.clone();
    overlay(&mut table, over, "", &known, name)?;
    Ok(table)
}

/// Lays `over` onto `base`; both below the dotted path `at`.
fn overlay(
    base: &mut Table,
    over: Table,
    at: &str,
    known: &Table,
    file: &str,
) -> Result<(), PresetError> {
    for (key, value) in over {
        let path = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
        let Some(old) = base.get_mut(&key) else {
            let nearest = nearest(&path, known);
            return Err(PresetError::UnknownKey { file: file.to_owned(), key: path, nearest });
        };
        match (old, value) {
            (Value::Table(old), Value::Table(new)) => overlay(old, new, &path, known, file)?,
            (Value::Integer(_), Value::Integer(new)) if u32::try_from(new).is_err() => {
                return Err(PresetError::Value {
                    file: file.to_owned(),
                    key: path,
                    expected: format!("0 to {}", u32::MAX),
                    found: new.to_string(),
                });
            }
            (old, new) if old.same_type(&new) => *old = new,
            (old, new) => {
                return Err(PresetError::Value {
                    file: file.to_owned(),
                    key: path,
                    expected: format!("{} {}", article(old.type_str()), old.type_str()),
                    found: new.to_string(),
                });
            }
        }
    }
    Ok(())
}

fn article(noun: &str) -> &'static str {
    if noun.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" }
}

fn nearest(key: &str, known: &Table) -> String {
    let mut keys = Vec::new();
    collect(known, "", &mut keys);
    let last = |key: &str| key.rsplit('.').next().unwrap_or_default().to_owned();
    let likeness = |known: &str| {
        let by_name = strsim::jaro_winkler(&last(known), &last(key));
        strsim::jaro_winkler(known, key).max(0.9 * by_name)
    };
    keys.into_iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b))).unwrap_or_default()
}

fn collect(table: &Table, at: &str, keys: &mut Vec<String>) {
    for (key, value) in table {
        let path = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
        match value {
            Value::Table(inner) => collect(inner, &path, keys),
            _ => keys.push(path),
        }
    }
}
