//! Demangling, with a bound on what a hostile symbol may expand to.

use std::fmt::{self, Write};

/// Longest name that is shown; mangled names with back references can expand exponentially.
const MAX_NAME: usize = 1000;

/// Collects up to [`MAX_NAME`] bytes, then stops its writer with an error.
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > MAX_NAME {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

/// A name that is safe to print: control characters, which could end lines, are replaced, and long names are cut.
pub(super) fn shown(name: &str) -> String {
    let name = cut(name);
    match name.contains(char::is_control) {
        true => name.replace(char::is_control, "\u{fffd}"),
        false => name.to_owned(),
    }
}

/// The source-level name of a symbol: Rust or C++ demangled, anything else as it is.
/// A name that expands beyond 1,000 bytes stays mangled; longer ones are cut.
pub(super) fn demangle(symbol: &str) -> String {
    let mut out = Bounded(String::new());
    if let Ok(name) = rustc_demangle::try_demangle(symbol) {
        if write!(out, "{name:#}").is_ok() {
            return out.0;
        }
    } else if symbol.starts_with("_Z") && symbol.len() <= MAX_NAME {
        let options = cpp_demangle::DemangleOptions::new().recursion_limit(64);
        if let Ok(parsed) = cpp_demangle::Symbol::new(symbol)
            && parsed.structured_demangle(&mut out, &options).is_ok()
        {
            return out.0;
        }
    }
    shown(symbol)
}

fn cut(name: &str) -> &str {
    match name.char_indices().find(|(at, c)| at + c.len_utf8() > MAX_NAME) {
        Some((end, _)) => &name[..end],
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::demangle;

    #[test]
    fn rust_cpp_and_plain_names() {
        assert_eq!(demangle("_ZN4core3fmt5write17h0123456789abcdefE"), "core::fmt::write");
        assert_eq!(demangle("_RNvC6_123foo3bar"), "123foo::bar");
        assert_eq!(demangle("_ZN3foo3barEi"), "foo::bar(int)");
        assert_eq!(demangle("memcpy"), "memcpy");
        assert_eq!(demangle("_Z"), "_Z");
        assert_eq!(demangle(&"x".repeat(5000)).len(), 1000);
    }

    #[test]
    fn names_of_clones_and_of_newer_languages() {
        for (symbol, name) in [
            ("_ZN3foo3barEi.isra.0.cold", "foo::bar(int) [clone .isra.0] [clone .cold]"),
            ("_Z3fooi.llvm.123", "foo(int) [clone .llvm.123]"),
            ("_ZN4core3fmt5write17h0123456789abcdefE.llvm.123", "core::fmt::write"),
            ("_RINvC3foo3barmE", "foo::bar::<u32>"),
            ("_Z4callIXtlZ4mainEUliE0_EEEii", "int call<main::{lambda(int)#2}{}>(int)"),
            ("_Z11abbreviatedIiiEDaT_T0_", "auto abbreviated<int, int>(int, int)"),
            ("_Z4packIJiiiEEDaDpT_", "auto pack<int, int, int>(int, int, int)"),
            ("_Z5twiceITk3NumiET_S0_", "_Z5twiceITk3NumiET_S0_"),
            ("$s4main3fooyyF", "$s4main3fooyyF"),
        ] {
            assert_eq!(demangle(symbol), name);
        }
    }

    #[test]
    fn exponential_names_are_bounded() {
        let bomb = format!("_Z1fI{}S_S_EvT_", "1AS0_S0_".repeat(100));
        assert!(demangle(&bomb).len() <= 1000);
    }
}
