//! What a section of the report is: its three forms, and its place.

use std::fmt;

use maud::{Markup, html};

use crate::model::Common;
use crate::options::Options;

/// A section's content, which knows its own lines of the text and its own part of the page. In report.json the content is as it
/// serializes. Each section reads its own content and what is common to all, and no other section.
pub(crate) trait Section {
    /// Writes the section's lines of the text; none if there is nothing to say.
    fn write(&self, common: &Common, options: &Options, out: &mut String) -> fmt::Result;

    /// Returns the section's part of the page; empty if there is nothing to say.
    fn page(&self, common: &Common) -> Markup;
}

/// A section that the run may not have.
impl<S: Section> Section for Option<S> {
    fn write(&self, common: &Common, options: &Options, out: &mut String) -> fmt::Result {
        self.as_ref().map_or(Ok(()), |section| section.write(common, options, out))
    }

    fn page(&self, common: &Common) -> Markup {
        html! {
            @if let Some(section) = self {
                (section.page(common))
            }
        }
    }
}

/// A place in the text, and on the page.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextPosition {
    /// Before all but the totals; on the page, too.
    First,
    /// After the sections of [`Self::First`]; on the page after the code.
    Code,
    /// After the processes.
    Head,
    /// After all that is said of single processes.
    Tail,
}
