//! Fitting numbers and names into columns.

use crate::printable::printable;

/// Returns at most `width` characters of a [`printable()`] name; a cut name ends in `…`.
pub(crate) fn fit(text: &str, width: usize) -> String {
    let text = printable(text);
    if text.chars().count() <= width {
        return text.into_owned();
    }
    let mut out: String = text.chars().take(width.saturating_sub(1)).collect();
    out.push('…');
    out
}

/// Returns a function's name in at most `width` characters. A longer name loses the arguments of its templates, then its
/// parameters, and then its end.
pub fn fit_name(name: &str, width: usize) -> String {
    let fits = |name: &str| name.chars().count() <= width;
    if fits(name) {
        return fit(name, width);
    }
    let without_arguments = without(name, '<', '>');
    match fits(&without_arguments) {
        true => fit(&without_arguments, width),
        false => fit(&without(&without_arguments, '(', ')'), width),
    }
}

/// Returns a place, `function+0x12`, in at most `width` characters: [`fit_name`] shortens the function, and the offset stays.
pub(crate) fn fit_label(label: &str, width: usize) -> String {
    let (name, offset) = label.split_at(label.rfind("+0x").unwrap_or(label.len()));
    fit_name(name, width.saturating_sub(offset.len())) + &fit(offset, width)
}

/// Returns a name with an ellipsis in place of what is between the brackets `open` and `close`.
fn without(name: &str, open: char, close: char) -> String {
    let mut out = String::new();
    let mut depth = 0_usize;
    let mut before = ' ';
    for (at, c) in name.char_indices() {
        // `operator<<`, `operator->`, and the one pair of parentheses that is a name.
        let is_name = out.trim_end_matches([open, close]).ends_with("operator")
            || name[at..].starts_with("(anonymous");
        if c == open && !(depth == 0 && is_name) {
            if depth == 0 {
                out.push(open);
                if !name[at + 1..].starts_with(close) {
                    out.push('…');
                }
            }
            depth += 1;
        } else if c == close && depth > 0 && before != '-' {
            depth -= 1;
        }
        if depth == 0 {
            out.push(c);
        }
        before = c;
    }
    out
}

/// Returns at most `width` characters of a [`printable()`] name; a cut name begins with `…` and keeps its end.
pub(crate) fn fit_end(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return fit(text, width);
    }
    let tail: String = text.chars().skip(length - width.saturating_sub(1)).collect();
    format!("…{}", fit(&tail, width))
}

/// A whole number with separators: `1,234,567`.
pub(crate) fn count(value: f64) -> String {
    let digits = format!("{:.0}", value.max(0.0));
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Parts of a whole as bars, from next to nothing to all of it.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', FULL_BAR];
/// The bar of a whole.
pub(crate) const FULL_BAR: char = '█';

/// Returns a part of a whole, from 0 to 1, as a bar.
pub(crate) fn bar(part: f64) -> char {
    BARS[((8.0 * part) as usize).min(7)]
}

/// Returns a fraction as per cent with one decimal.
pub(crate) fn fixed(share: f64) -> String {
    format!("{:.1}", share * 100.0)
}

/// Returns a fraction as per cent with one decimal; `·` for 0.
pub(crate) fn percent(share: f64) -> String {
    if share == 0.0 { "·".to_owned() } else { fixed(share) }
}

/// Returns lines of at most `width` characters, broken at spaces where there are any, but not between a number and its `%`.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match words.last_mut() {
            Some(number) if word.starts_with('%') => *number += &format!(" {word}"),
            _ => words.push(word.to_owned()),
        }
    }
    for word in words {
        let mut rest: Vec<char> = word.chars().collect();
        let line = lines.last_mut().expect("begins with one");
        if !line.is_empty() && line.chars().count() + 1 + rest.len() > width {
            lines.push(String::new());
        } else if !line.is_empty() {
            line.push(' ');
        }
        while rest.len() > width {
            let tail = rest.split_off(width);
            lines.last_mut().expect("begins with one").extend(rest);
            lines.push(String::new());
            rest = tail;
        }
        lines
            .last_mut()
            .expect("begins with one")
            .push_str(&fit(&rest.iter().collect::<String>(), width));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_kept() {
        assert_eq!(fit("abcdef", 4), "abc…");
        assert_eq!(fit("a\x1b[0m", 9), "a?[0m");
        assert_eq!(fit_end("path/to/file.c:10", 9), "…ile.c:10");
        let name = "boost::perl_matcher<std::allocator<boost::sub_match<char const*> >, char>::match_all(std::vector<int>, bool)";
        assert_eq!(fit_name(name, 70), "boost::perl_matcher<…>::match_all(std::vector<…>, bool)");
        assert_eq!(fit_name(name, 40), "boost::perl_matcher<…>::match_all(…)");
        assert_eq!(fit_name(name, 200), name);
        let name = "std::ostream& operator<< <char>(std::ostream&, char const*)";
        assert_eq!(fit_name(name, 50), "std::ostream& operator<< <…>(…)");
        let name = "(anonymous namespace)::Tree<int>::at(unsigned long) const";
        assert_eq!(fit_name(name, 50), "(anonymous namespace)::Tree<…>::at(…) const");
        assert_eq!(fit_name("f<a->b>()", 8), "f<…>()");
        assert_eq!(fit_label("a::f<b, c>(d)+0x1f", 16), "a::f<…>(d)+0x1f");
        assert_eq!(fit_label("a::f<b, c>(d)+0x1f", 13), "a::f<…>…+0x1f");
        assert_eq!(fit_label("main+0x1f", 40), "main+0x1f");
        assert_eq!(fit_label("abcdef", 4), "abc…");
        assert_eq!(count(1_234_567.2), "1,234,567");
        assert_eq!(count(12.0), "12");
        assert_eq!(wrap("aa bb cc", 5), ["aa bb", "cc"]);
        assert_eq!(wrap("aa 3 % bb", 5), ["aa", "3 %", "bb"]);
        assert_eq!(wrap("abcdefg h", 3), ["abc", "def", "g h"]);
    }
}
