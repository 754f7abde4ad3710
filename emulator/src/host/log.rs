//! Events of `tracing` on standard error, a line each: warnings by default, or what `TIPSIM_LOG` asks for.
//!
//! A guest can cause warnings, each in one way, as fast as it executes. So of the warnings from one place of the source a few are shown,
//! and at the end how many more there were. What the user asked for (information and below) is not limited.

use std::collections::HashMap;
use std::fmt;
use std::io::IsTerminal as _;
use std::sync::{Arc, Mutex, PoisonError};

use report::printable;
use tracing::callsite::Identifier;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// Warnings from one place of the source that are shown.
const SHOWN: u64 = 10;

/// Warnings from one place of the source so far.
struct Seen {
    count: u64,
    /// The last one that was shown, with where it comes from.
    last: String,
}

/// What became of all warnings.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<HashMap<Identifier, Seen>>>);

/// Shows events from here on.
pub(crate) fn start() -> Log {
    let log = Log::default();
    let filter = EnvFilter::try_from_env("TIPSIM_LOG").unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        // Colours are for terminals.
        .with_ansi(std::io::stderr().is_terminal())
        .event_format(log.clone())
        .init();
    log
}

impl Log {
    /// Says what was not shown.
    pub(crate) fn end(&self) {
        for line in self.not_shown() {
            eprintln!("{line}");
        }
    }

    /// A line for each place of the source with more warnings than were shown, in the order of the lines.
    fn not_shown(&self) -> Vec<String> {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let more = seen.values().filter(|seen| seen.count > SHOWN);
        let lines =
            more.map(|seen| format!(" WARN … and {} more like {}", seen.count - SHOWN, seen.last));
        let mut lines: Vec<String> = lines.collect();
        lines.sort();
        lines
    }
}

impl<S, N> FormatEvent<S, N> for Log
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let metadata = event.metadata();
        let level = *metadata.level();
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = (level <= Level::WARN).then(|| {
            let of_place =
                seen.entry(metadata.callsite()).or_insert(Seen { count: 0, last: String::new() });
            of_place.count += 1;
            of_place
        });
        if seen.as_ref().is_some_and(|seen| seen.count > SHOWN) {
            return Ok(());
        }
        let mut fields = String::new();
        context.format_fields(Writer::new(&mut fields), event)?;
        // A message may have a name that the guest chose.
        let line = format!("{}: {}", metadata.target(), printable(&fields));
        let colour = match level {
            Level::ERROR => "31",
            Level::WARN => "33",
            Level::INFO => "32",
            Level::DEBUG => "34",
            Level::TRACE => "35",
        };
        match writer.has_ansi_escapes() {
            true => writeln!(writer, "\x1b[{colour}m{level:>5}\x1b[0m {line}")?,
            false => writeln!(writer, "{level:>5} {line}")?,
        }
        if let Some(seen) = seen {
            seen.last = line;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};

    use super::*;

    /// What was written.
    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_flood_is_ten_lines_and_their_number() {
        let (log, written) = (Log::default(), Written::default());
        let writer = written.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(Level::INFO)
            .with_writer(move || writer.clone())
            .with_ansi(false)
            .event_format(log.clone())
            .finish();
        tracing::subscriber::with_default(subscriber, || {
            for n in 0..1000 {
                tracing::warn!("queue {n} of \u{1b}[31m{}", "a\nb\u{202e}");
                tracing::info!("asked for");
            }
            tracing::warn!("another");
            tracing::error!(code = 7, "and an error");
        });
        let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        // tracing-subscriber itself writes escapes in words.
        let of = |start: &str| text.lines().filter(|line| line.starts_with(start)).count();
        assert_eq!((of(" WARN"), of(" INFO"), of("ERROR")), (11, 1000, 1));
        assert_eq!(text.lines().count(), 1012);
        assert!(
            text.contains(" WARN tipsim::host::log::tests: queue 9 of \\x1b[31ma?b?\n"),
            "{text}"
        );
        assert!(text.contains("ERROR tipsim::host::log::tests: and an error code=7\n"), "{text}");
        assert_eq!(
            log.not_shown(),
            [" WARN … and 990 more like tipsim::host::log::tests: queue 9 of \\x1b[31ma?b?"]
        );
    }
}
