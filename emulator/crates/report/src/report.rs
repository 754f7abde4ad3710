//! The report: what all sections share, and the sections.

use schemars::JsonSchema;
use serde::Serialize;

use crate::model::Common;
use crate::options::Options;
use crate::section::Section as _;
use crate::sections::Sections;

/// A whole report. [`Report::build`] makes it; [`Report::text`], [`Report::json`] and [`Report::html`] are its forms.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Report {
    /// What is said of the whole run, its processes and its code: what every section may read.
    #[serde(flatten)]
    pub common: Common,
    /// Sections, each with content of its own.
    #[serde(flatten)]
    pub sections: Sections,
}

impl Report {
    /// Writes what takes the cycles of the commands in focus.
    ///
    /// # Errors
    /// None: `out` is a string.
    pub fn write_verdict(&self, out: &mut String, options: &Options) -> std::fmt::Result {
        self.sections.verdict.write(&self.common, options, out)
    }
}
