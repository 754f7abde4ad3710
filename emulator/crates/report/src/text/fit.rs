//! Fitting numbers and names into columns.

/// At most `width` characters; a cut name ends in `…`. Control characters become `?`: names come
/// from the guest, and the terminal must not obey them.
pub(crate) fn fit(text: &str, width: usize) -> String {
    let clean = |c: char| if c.is_control() { '?' } else { c };
    if text.chars().count() <= width {
        return text.chars().map(clean).collect();
    }
    let mut out: String = text
        .chars()
        .take(width.saturating_sub(1))
        .map(clean)
        .collect();
    out.push('…');
    out
}

/// As [`fit`], but keeps the end.
pub(crate) fn fit_end(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return fit(text, width);
    }
    let tail: String = text
        .chars()
        .skip(length - width.saturating_sub(1))
        .collect();
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

/// A fraction as per cent with one decimal.
pub(crate) fn fixed(share: f64) -> String {
    format!("{:.1}", share * 100.0)
}

/// As [`fixed`], but `·` for nothing at all.
pub(crate) fn percent(share: f64) -> String {
    if share == 0.0 {
        "·".to_owned()
    } else {
        fixed(share)
    }
}

/// Lines of at most `width` characters, broken at spaces where there are any.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
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
        assert_eq!(count(1_234_567.2), "1,234,567");
        assert_eq!(count(12.0), "12");
        assert_eq!(wrap("aa bb cc", 5), ["aa bb", "cc"]);
        assert_eq!(wrap("abcdefg h", 3), ["abc", "def", "g h"]);
    }
}
