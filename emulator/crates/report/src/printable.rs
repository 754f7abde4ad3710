//! Text for terminals. Names come from the guest and from files, and a terminal must show them, not obey them.

use std::borrow::Cow;

/// Whether a terminal may act on a character instead of showing it: control characters (C0, DEL, C1), and those that change the direction
/// of the text after them, with which a line reads as something else ("Trojan Source", CVE-2021-42574).
pub fn is_obeyed(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A name, with `?` for each character that a terminal would obey.
pub fn printable(name: &str) -> Cow<'_, str> {
    replaced(name, is_obeyed)
}

/// A text of several lines, with `?` for each character that a terminal would obey other than its layout: tabs and ends of lines.
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    match text.contains("\r\n") {
        // What is for a terminal in raw mode.
        true => {
            let lines: Vec<_> = text.split("\r\n").map(printable_lines).collect();
            Cow::Owned(lines.join("\r\n"))
        }
        false => replaced(text, |c| is_obeyed(c) && !matches!(c, '\n' | '\t')),
    }
}

fn replaced(text: &str, is_wrong: impl Fn(char) -> bool) -> Cow<'_, str> {
    match text.contains(&is_wrong) {
        true => Cow::Owned(text.replace(is_wrong, "?")),
        false => Cow::Borrowed(text),
    }
}

/// JSON of the same value, with what a terminal would obey as escapes (RFC 8259, section 7): outside of strings there is none but the
/// ends of lines.
pub fn printable_json(json: &str) -> Cow<'_, str> {
    let is_wrong = |c| is_obeyed(c) && c != '\n';
    if !json.contains(is_wrong) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match is_wrong(c) {
            true => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            false => out.push(c),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_replaced() {
        let hostile = "\u{1b}[31mred\u{7f}\u{9b}2J\u{202e}abc\u{2066}\r\n\tx\u{0}é→";
        assert_eq!(printable(hostile), "?[31mred??2J?abc????x?é→");
        assert_eq!(printable_lines(hostile), "?[31mred??2J?abc?\r\n\tx?é→");
        assert_eq!(printable_lines("10 %\rover\n"), "10 %?over\n");
        assert!(matches!(printable_lines("a\n\tb"), Cow::Borrowed(_)));
    }

    #[test]
    fn json_says_what_it_said() {
        let value = serde_json::json!({ "\u{9b}2J": ["\u{202e}x", "\u{1b}\u{7f}é"] });
        for json in [value.to_string(), format!("{value:#}")] {
            let shown = printable_json(&json);
            assert!(!shown.contains(|c| is_obeyed(c) && c != '\n'));
            assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
        }
        assert!(printable_json(&value.to_string()).contains("\\u009b2J"));
    }
}
