//! Places in the code, in words: `function+0x12, file.c:10`.

use crate::widths::fit_label;

/// Returns a label with the line of the program there, and the line of library code that is inlined there.
pub(crate) fn place(label: &str, source: Option<&str>, library: Option<&str>) -> String {
    match (source, library) {
        (Some(source), Some(library)) => {
            format!("{label}, {} ({})", short(source), short(library))
        }
        (Some(source), None) => format!("{label}, {}", short(source)),
        _ => label.to_owned(),
    }
}

/// Returns a [`place`] of at most `width` characters, if its source leaves room for the name.
pub(crate) fn fit_place(
    label: &str,
    source: Option<&str>,
    library: Option<&str>,
    width: usize,
) -> String {
    let tail = place("", source, library).chars().count();
    let label = fit_label(label, width.saturating_sub(tail).max(12));
    place(&label, source, library)
}

/// Returns the file's own name, with its line.
pub(crate) fn short(source: &str) -> &str {
    source.rsplit('/').next().unwrap_or(source)
}
