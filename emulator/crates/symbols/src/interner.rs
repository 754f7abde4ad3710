//! Keeps each distinct text once.

use std::collections::HashMap;
use std::sync::Arc;

/// Shares equal strings.
#[derive(Default)]
pub(super) struct Interner {
    plain: HashMap<Box<str>, Arc<str>>,
    derived: HashMap<Box<str>, Arc<str>>,
}

impl Interner {
    pub(crate) fn get(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.plain.get(text) {
            return known.clone();
        }
        self.plain.entry(text.into()).or_insert_with(|| text.into()).clone()
    }

    /// The result of `derive`, computed once per distinct input.
    pub(crate) fn get_with(&mut self, text: &str, derive: impl Fn(&str) -> String) -> Arc<str> {
        if let Some(known) = self.derived.get(text) {
            return known.clone();
        }
        self.derived.entry(text.into()).or_insert_with(|| derive(text).into()).clone()
    }
}
