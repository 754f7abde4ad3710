//! Tables of Arrow.

use arrow_tables::{REPORT_TABLES, TRACE_TABLES, Table, tables};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use super::format::TablesFormat;

/// `tipsim tables`.
#[derive(Debug, Args)]
pub(crate) struct TablesArgs {
    /// Only this table.
    #[arg(value_parser = any_table())]
    pub table: Option<&'static Table>,
    /// Format.
    #[arg(long, value_enum, default_value = "text")]
    pub format: TablesFormat,
}

fn parser(
    tables: impl Iterator<Item = &'static Table> + Clone + Send + Sync + 'static,
) -> impl TypedValueParser<Value = &'static Table> {
    let names = tables.map(|table| PossibleValue::new(table.name).help(table.about));
    PossibleValuesParser::new(names).try_map(|name| {
        let mut all = arrow_tables::tables();
        all.find(|table| table.name == name).ok_or("no such table")
    })
}

fn any_table() -> impl TypedValueParser<Value = &'static Table> {
    parser(tables().collect::<Vec<_>>().into_iter())
}

/// A table of a trace, by its name.
pub(super) fn trace_table() -> impl TypedValueParser<Value = &'static Table> {
    parser(TRACE_TABLES.into_iter())
}

/// A table of a report, by its name.
pub(super) fn report_table() -> impl TypedValueParser<Value = &'static Table> {
    parser(REPORT_TABLES.into_iter())
}
