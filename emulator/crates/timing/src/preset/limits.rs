//! What a parameter may be, whatever the others are.

use super::schema::DramModel;

/// A parameter and what it may be.
pub(super) struct Limit {
    /// Path of the parameter in a preset: `l1d.mshrs`.
    pub key: String,
    /// Value that the preset has.
    pub found: u32,
    pub kind: LimitKind,
    pub low: u32,
    pub high: u32,
}

/// Which of the values between the limits are allowed: all, powers of two, or powers of two and 0.
#[derive(Clone, Copy)]
pub(super) enum LimitKind {
    Range,
    PowerOfTwo,
    ZeroOrPowerOfTwo,
}

impl Limit {
    pub(super) fn holds(&self) -> bool {
        let fits = (self.low..=self.high).contains(&self.found);
        match self.kind {
            LimitKind::Range => fits,
            LimitKind::PowerOfTwo => fits && self.found.is_power_of_two(),
            LimitKind::ZeroOrPowerOfTwo => self.found == 0 || fits && self.found.is_power_of_two(),
        }
    }

    /// Returns what is allowed, for messages.
    pub(super) fn expected(&self) -> String {
        let (low, high) = (self.low, self.high);
        match self.kind {
            LimitKind::Range => format!("{low} to {high}"),
            LimitKind::PowerOfTwo => format!("a power of two, {low} to {high}"),
            LimitKind::ZeroOrPowerOfTwo => format!("0, or a power of two, {low} to {high}"),
        }
    }
}

/// Checks parameters of a preset by their limits: those of a table, or a single one.
pub(super) trait HasLimits {
    /// Adds the limits of the parameters of the table, which is at `path`.
    fn limits(&self, _path: &str, _limits: &mut Vec<Limit>) {}
}

impl HasLimits for u32 {}
impl HasLimits for bool {}
impl HasLimits for String {}
impl HasLimits for Vec<String> {}
impl HasLimits for DramModel {}

/// Returns the path of a key below a section.
pub(super) fn key_path(path: &str, key: &str) -> String {
    match path {
        "" => key.to_owned(),
        _ => format!("{path}.{key}"),
    }
}
