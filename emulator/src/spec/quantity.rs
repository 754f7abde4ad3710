//! Sizes, frequencies and durations with their units.

/// Bytes of a size such as "512M", "2G".
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let expected = || format!("expected a size such as 512M or 2G, found \"{text}\"");
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match &text[digits.len()..] {
        "" => 0,
        "K" | "KiB" => 10,
        "M" | "MiB" => 20,
        "G" | "GiB" => 30,
        _ => return Err(expected()),
    };
    let n: u64 = digits.parse().map_err(|_| expected())?;
    n.checked_mul(1 << shift).filter(|&b| b > 0).ok_or_else(expected)
}

/// Bytes of a machine's memory: a size of at least 1 MiB, less being a number whose unit is missing.
pub(crate) fn parse_memory(text: &str) -> Result<u64, String> {
    let bytes = parse_size(text)?;
    match bytes < 1 << 20 {
        true if text.bytes().all(|c| c.is_ascii_digit()) => Err(format!(
            "expected a size such as 512M or 2G, found \"{text}\", which is {text} bytes: did you mean {text}M?"
        )),
        true => Err(format!("expected at least 1M, found \"{text}\"")),
        false => Ok(bytes),
    }
}

/// Hertz of a frequency such as "4kHz".
pub(crate) fn parse_frequency(text: &str) -> Result<f64, String> {
    let expected = || format!("expected a frequency such as 4kHz, found \"{text}\"");
    let number = text.strip_suffix("Hz").ok_or_else(expected)?;
    let (number, factor) = match number.as_bytes().last() {
        Some(b'k') => (&number[..number.len() - 1], 1e3),
        Some(b'M') => (&number[..number.len() - 1], 1e6),
        _ => (number, 1.0),
    };
    let n: f64 = number.trim().parse().map_err(|_| expected())?;
    if n.is_finite() && n > 0.0 { Ok(n * factor) } else { Err(expected()) }
}

/// Seconds of a duration such as "90s", "10min" or "2h".
pub(crate) fn parse_duration(text: &str) -> Result<u64, String> {
    let expected = || format!("expected a duration such as 90s, 10min or 2h, found \"{text}\"");
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &text[digits.len()..] {
        "s" => 1,
        "min" => 60,
        "h" => 3600,
        _ => return Err(expected()),
    };
    let number: u64 = digits.parse().map_err(|_| expected())?;
    number.checked_mul(factor).ok_or_else(expected)
}
