//! What a parameter may be, whatever the others are.

use super::schema::DramModel;

/// A parameter and what it may be.
pub(super) struct Limit {
    /// Its path in a preset: `l1d.mshrs`.
    pub key: String,
    pub found: u32,
    pub kind: Kind,
    pub low: u32,
    pub high: u32,
}

/// Which of the values between the limits.
#[derive(Clone, Copy)]
#[expect(non_camel_case_types, reason = "as the schema writes them")]
pub(super) enum Kind {
    range,
    power,
    zero_or_power,
}

impl Limit {
    pub fn holds(&self) -> bool {
        let fits = (self.low..=self.high).contains(&self.found);
        match self.kind {
            Kind::range => fits,
            Kind::power => fits && self.found.is_power_of_two(),
            Kind::zero_or_power => self.found == 0 || fits && self.found.is_power_of_two(),
        }
    }

    /// For messages.
    pub fn expected(&self) -> String {
        let (low, high) = (self.low, self.high);
        match self.kind {
            Kind::range => format!("{low} to {high}"),
            Kind::power => format!("a power of two, {low} to {high}"),
            Kind::zero_or_power => format!("0, or a power of two, {low} to {high}"),
        }
    }
}

/// What has parameters, or is one.
pub(super) trait Limited {
    /// Adds the limits of what is in it.
    fn limits(&self, _path: &str, _limits: &mut Vec<Limit>) {}
}

impl Limited for u32 {}
impl Limited for bool {}
impl Limited for String {}
impl Limited for DramModel {}

pub(super) fn join(path: &str, key: &str) -> String {
    match path {
        "" => key.to_owned(),
        _ => format!("{path}.{key}"),
    }
}
