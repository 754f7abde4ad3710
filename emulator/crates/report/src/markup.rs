//! Markup of the pages. Sections write it with [`maud::html`], which escapes every text that is put into it: no name out of the guest can be
//! markup. This file alone makes markup out of text as it is ([`PreEscaped`]), of the page's own parts.

use std::borrow::Cow;

use maud::{Markup, PreEscaped, html};
use serde_json::Value;

/// Returns text of the page's own that is markup already: a style sheet, or a part of a page's frame.
pub(crate) fn own(markup: &'static str) -> Markup {
    PreEscaped(markup.to_owned())
}

/// Returns an image that another crate of ours drew as SVG.
pub(crate) fn drawn(svg: &str) -> Markup {
    PreEscaped(svg.to_owned())
}

/// Returns a script of the page's own as an element.
pub(crate) fn script(parts: &[&'static str]) -> Markup {
    PreEscaped(format!("<script>{}</script>", parts.concat()))
}

/// Returns JSON for the inside of a `script` element: nothing in it may look like markup.
pub(crate) fn embed(value: &Value) -> Markup {
    let text = value.to_string();
    let mut out = String::with_capacity(text.len());
    let mut rest = &*text;
    let must_be_escaped = |c: char| matches!(c, '<' | '>' | '&') || is_forbidden(c);
    while let Some(at) = rest.find(must_be_escaped) {
        let (before, after) = rest.split_at(at);
        out.push_str(before);
        let mut chars = after.chars();
        if let Some(c) = chars.next() {
            out.push_str(&format!("\\u{:04x}", u32::from(c)));
        }
        rest = chars.as_str();
    }
    out.push_str(rest);
    PreEscaped(out)
}

/// Returns a page with a value for each `{{name}}` in its frame; no value is searched for further ones.
pub(crate) fn filled(frame: &'static str, mut value: impl FnMut(&str) -> Markup) -> Markup {
    let mut out = String::new();
    let mut rest = frame;
    while let Some((before, tail)) = rest.split_once("{{") {
        out.push_str(before);
        let (name, tail) = tail.split_once("}}").unwrap_or((tail, ""));
        out.push_str(&value(name).into_string());
        rest = tail;
    }
    out.push_str(rest);
    PreEscaped(out)
}

/// Returns a whole page as a document.
pub(crate) fn document(page: Markup) -> String {
    let page = page.into_string();
    match page.contains(is_forbidden) {
        true => page.replace(is_forbidden, "\u{fffd}"),
        false => page,
    }
}

/// Returns true for what a document may not contain at all (HTML standard, "preprocessing the input stream").
fn is_forbidden(c: char) -> bool {
    c.is_control() && c != '\n' && c != '\t'
}

/// Returns words of ours in which a number and its `%` stay on one line.
pub(crate) fn words(text: &str) -> Cow<'_, str> {
    match text.contains(" %") {
        true => Cow::Owned(text.replace(" %", "\u{a0}%")),
        false => Cow::Borrowed(text),
    }
}

/// Returns texts, each in a line of its own.
pub(crate) fn lines(texts: &[String]) -> Markup {
    html! {
        @for (at, text) in texts.iter().enumerate() {
            @if at > 0 { br; }
            (text)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_name_is_no_markup_wherever_it_stands() {
        let name = "\"><script>alert('&')</script>\u{1b}\u{85}";
        let page = document(html! { p title=(name) { (name) } (script(&["run()"])) });
        let escaped = "&quot;&gt;&lt;script&gt;alert('&amp;')&lt;/script&gt;\u{fffd}\u{fffd}";
        assert_eq!(page, format!("<p title=\"{escaped}\">{escaped}</p><script>run()</script>"));
        let embedded = embed(&json!([name])).into_string();
        assert!(!embedded.contains(['<', '>', '&', '\u{85}']), "{embedded}");
        assert_eq!(serde_json::from_str::<Value>(&embedded).unwrap(), json!([name]));
    }

    #[test]
    fn no_value_of_a_page_is_searched_for_names() {
        let page = filled("<b>{{a}}</b>{{b}}", |name| html! { (name) "{{a}}" });
        assert_eq!(page.into_string(), "<b>a{{a}}</b>b{{a}}");
    }

    #[test]
    fn a_number_and_its_percent_stay_on_one_line() {
        let shown = html! { (words("1.5 % of <b>, 20 %")) }.into_string();
        assert_eq!(shown, "1.5\u{a0}% of &lt;b&gt;, 20\u{a0}%");
    }
}
