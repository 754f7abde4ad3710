//! Output formats.

use arrow_tables::FileFormat;
use clap::ValueEnum;
use clap::builder::PossibleValue;

/// Output formats of tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A table.
    #[default]
    Text,
    /// The text's content as JSON.
    Json,
}

/// Output formats of samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum SamplesFormat {
    /// Comma-separated values (RFC 4180) with a line of names.
    #[default]
    Csv,
    /// An array of objects.
    Json,
    /// Apache Parquet: a table for DuckDB, polars, pandas.
    Parquet,
    /// Apache Arrow's IPC stream: a table for DuckDB, polars, pandas.
    Arrow,
}

/// Output formats of a core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum CoreFormat {
    /// A table.
    #[default]
    Text,
    /// The text's content as JSON.
    Json,
    /// A block diagram.
    Svg,
}

/// Output formats of performance events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum EventsFormat {
    /// A table.
    #[default]
    Text,
    /// The text's content as JSON.
    Json,
    /// perf's JSON files of a core's events and metrics, by name.
    Perf,
    /// A C header.
    C,
    /// The guide's chapter.
    Markdown,
}

/// Formats of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReportFormat {
    /// A table.
    Text,
    /// The text's content as JSON.
    Json,
    /// One self-contained page.
    Html,
    /// Tables of Arrow.
    Tables(FileFormat),
    /// Another tool's.
    Tool(export::Format),
}

const REPORT_FORMATS: [ReportFormat; 5 + export::Format::ALL.len()] = {
    let mut all = [ReportFormat::Text; 5 + export::Format::ALL.len()];
    all[1] = ReportFormat::Json;
    all[2] = ReportFormat::Html;
    all[3] = ReportFormat::Tables(FileFormat::Parquet);
    all[4] = ReportFormat::Tables(FileFormat::Arrow);
    let mut n = 5;
    while n < all.len() {
        all[n] = ReportFormat::Tool(export::Format::ALL[n - 5]);
        n += 1;
    }
    all
};

impl ValueEnum for ReportFormat {
    fn value_variants<'a>() -> &'a [Self] {
        &REPORT_FORMATS
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let (name, help) = match self {
            Self::Text => ("text", "A table"),
            Self::Json => ("json", "The same as JSON"),
            Self::Html => ("html", "One self-contained page"),
            Self::Tables(format) => (format.name(), format.help()),
            Self::Tool(format) => (format.name(), format.help()),
        };
        Some(PossibleValue::new(name).help(help))
    }
}

/// Formats of other tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExpandFormat {
    /// The published token of 64 bytes per cycle: what the ROB's head shows.
    Token512,
    /// A Kanata 0004 log for Konata: instructions and their stages over time.
    Konata,
    /// gem5's O3PipeView.
    O3pipeview,
    /// One line per record.
    Csv,
    /// Apache Parquet: a table for DuckDB, polars, pandas.
    Parquet,
    /// Apache Arrow's IPC stream: a table for DuckDB, polars, pandas.
    Arrow,
}

/// Output formats of the tables' schemas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum TablesFormat {
    /// A list.
    #[default]
    Text,
    /// The text's content as JSON.
    Json,
    /// The guide's chapter.
    Markdown,
}
