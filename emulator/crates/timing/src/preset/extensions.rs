//! The section `isa`: a key for each extension of [`isa::Extension`], true if the core has it.

use std::fmt;

use isa::{Extension, Extensions};
use serde::de::{Error, MapAccess, Visitor};
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::limits::HasLimits;

/// Extensions beyond RV64GC that a core has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Isa(Extensions);

impl Isa {
    /// Returns the extensions as a set.
    pub const fn extensions(&self) -> Extensions {
        self.0
    }

    /// Returns the first extension that lacks one that it needs, if there is one.
    pub(super) fn incomplete(&self) -> Option<Extension> {
        Extension::ALL.iter().copied().find(|&e| self.0.has(e) && !self.0.has_all(e.needs()))
    }
}

impl HasLimits for Isa {}

impl Serialize for Isa {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut section = serializer.serialize_struct("Isa", Extension::ALL.len())?;
        for extension in Extension::ALL {
            section.serialize_field(extension.name(), &self.0.has(*extension))?;
        }
        section.end()
    }
}

impl<'de> Deserialize<'de> for Isa {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_struct("Isa", Extension::NAMES, Section)
    }
}

/// Reads the section. Each extension must have its key, once.
struct Section;

impl<'de> Visitor<'de> for Section {
    type Value = Isa;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("struct Isa")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Isa, A::Error> {
        let (mut found, mut set) = (Extensions::NONE, Extensions::NONE);
        while let Some(key) = map.next_key::<String>()? {
            let extension = Extension::named(&key)
                .ok_or_else(|| A::Error::unknown_field(&key, Extension::NAMES))?;
            if found.has(extension) {
                return Err(A::Error::duplicate_field(extension.name()));
            }
            found = found.with(extension, true);
            set = set.with(extension, map.next_value()?);
        }
        match Extension::ALL.iter().find(|extension| !found.has(**extension)) {
            Some(missing) => Err(A::Error::missing_field(missing.name())),
            None => Ok(Isa(set)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn error(value: serde_json::Value) -> String {
        serde_json::from_value::<Isa>(value).unwrap_err().to_string()
    }

    #[test]
    fn what_was_written_is_read() {
        for set in [Extensions::ALL, Extensions::NONE.with(Extension::Zfa, true)] {
            let written = serde_json::to_value(Isa(set)).unwrap();
            assert_eq!(written.as_object().unwrap().len(), Extension::ALL.len());
            assert_eq!(serde_json::from_value::<Isa>(written).unwrap(), Isa(set));
        }
    }

    #[test]
    fn keys_that_are_missing_or_unknown_are_errors() {
        let mut section = serde_json::to_value(Isa(Extensions::ALL)).unwrap();
        section["zfb"] = json!(true);
        assert!(
            error(section.clone()).starts_with("unknown field `zfb`, expected one of `zicbom`")
        );
        section.as_object_mut().unwrap().remove("zfb");
        section["zfa"] = json!(1);
        assert_eq!(error(section.clone()), "invalid type: integer `1`, expected a boolean");
        section.as_object_mut().unwrap().remove("zfa");
        assert_eq!(error(section), "missing field `zfa`");
        assert_eq!(error(json!(1)), "invalid type: integer `1`, expected struct Isa");
    }
}
