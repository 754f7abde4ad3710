//! Markup of the pages: nothing in it that came from the guest is taken for markup.

use serde_json::Value;

/// A script of the page's own.
pub(crate) fn script(script: &str) -> String {
    format!("<script>{script}</script>")
}

/// JSON inside a `script` element: nothing in it may look like markup.
pub(crate) fn embed(value: &Value) -> String {
    let text = value.to_string();
    let mut out = String::with_capacity(text.len());
    let mut rest = &*text;
    while let Some(at) = rest.find(['<', '>', '&']) {
        out.push_str(&rest[..at]);
        out.push_str(match rest.as_bytes()[at] {
            b'<' => "\\u003c",
            b'>' => "\\u003e",
            _ => "\\u0026",
        });
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
    out
}

/// Words of ours, as markup: a number and its `%` stay on one line.
pub(crate) fn words(text: &str) -> String {
    escape(text).replace(" %", "\u{a0}%")
}

pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // What a document may not contain at all (HTML standard, "preprocessing the input stream").
            c if c.is_control() && c != '\n' && c != '\t' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
