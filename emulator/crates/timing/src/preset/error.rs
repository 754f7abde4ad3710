//! What can be wrong with a preset.

/// An unusable preset: names the file, the key, what was expected and what was found.
#[derive(Debug, thiserror::Error)]
pub enum PresetError {
    /// No embedded preset of that name, and no such file.
    #[error("{name}: neither a preset ({known}) nor a readable file: {source}")]
    NotFound {
        /// What was asked for.
        name: String,
        /// Names of the embedded presets.
        known: String,
        /// Why the file could not be read.
        source: std::io::Error,
    },
    /// Not TOML.
    #[error("{file}: {message}")]
    Syntax {
        /// File, or `override`.
        file: String,
        /// The parser's message, with line and column.
        message: String,
    },
    /// A key that no preset has.
    #[error("{file}: unknown key `{key}`; the nearest known key is `{nearest}`")]
    UnknownKey {
        /// File, or `override`.
        file: String,
        /// The key, dotted.
        key: String,
        /// The known key with the smallest edit distance.
        nearest: String,
    },
    /// A value of the wrong type or out of range.
    #[error("{file}: `{key}`: expected {expected}, found {found}")]
    Value {
        /// File, or `override`.
        file: String,
        /// The key, dotted.
        key: String,
        /// What would be accepted.
        expected: String,
        /// What was found.
        found: String,
    },
}
