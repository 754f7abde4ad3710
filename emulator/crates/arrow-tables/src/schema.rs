//! Columns of tables: names, types, units and meanings.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};

use crate::catalog::CYCLE_STACK;

/// Type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// Unsigned, 64 bits: addresses.
    U64,
    /// Signed, 64 bits: cycles and counts, whose differences may be negative.
    I64,
    /// Unsigned, 32 bits.
    U32,
    /// Unsigned, 8 bits.
    U8,
    /// Double.
    F64,
    /// True or false.
    Bool,
    /// Text.
    Text,
    /// Text of which there are few different ones: a dictionary.
    Name,
    /// Lists of unsigned numbers of 32 bits.
    U32s,
    /// Lists of texts.
    Texts,
}

impl ColumnType {
    /// Returns Arrow's type for the column.
    pub fn data_type(self) -> DataType {
        let list = |item| DataType::List(Arc::new(Field::new("item", item, false)));
        match self {
            Self::U64 => DataType::UInt64,
            Self::I64 => DataType::Int64,
            Self::U32 => DataType::UInt32,
            Self::U8 => DataType::UInt8,
            Self::F64 => DataType::Float64,
            Self::Bool => DataType::Boolean,
            Self::Text => DataType::Utf8,
            // pandas has no unsigned keys.
            Self::Name => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
            Self::U32s => list(DataType::UInt32),
            Self::Texts => list(DataType::Utf8),
        }
    }

    /// Returns the type's name in documentation.
    pub const fn name(self) -> &'static str {
        match self {
            Self::U64 => "uint64",
            Self::I64 => "int64",
            Self::U32 => "uint32",
            Self::U8 => "uint8",
            Self::F64 => "double",
            Self::Bool => "bool",
            Self::Text => "string",
            Self::Name => "dictionary of strings",
            Self::U32s => "list of uint32",
            Self::Texts => "list of strings",
        }
    }
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Name of the column.
    pub name: &'static str,
    /// Type of the column's values.
    pub column_type: ColumnType,
    /// True if a value is null where it is not known or there is none.
    pub optional: bool,
    /// Unit; empty for numbers and names of things.
    pub unit: &'static str,
    /// What the column says.
    pub about: &'static str,
}

/// A table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Name of the table and of its file.
    pub name: &'static str,
    /// What a row is.
    pub about: &'static str,
    /// Columns, in order.
    pub columns: &'static [Column],
    /// True if a column for each category of the cycle stack ([`CYCLE_STACK`]) follows `columns`.
    pub has_cycle_stack: bool,
    /// Columns that depend on the run, behind all others.
    pub run_columns: Option<RunColumns>,
}

/// Columns of which each run has its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunColumns {
    /// What stands for the columns' names in documentation.
    pub names: &'static str,
    /// Unit of the columns; empty if they have none.
    pub unit: &'static str,
    /// What the columns say.
    pub about: &'static str,
}

impl Table {
    /// Returns the columns that the table has for every run, in order.
    pub fn fixed_columns(&self) -> impl Iterator<Item = &'static Column> {
        let stack: &[Column] = match self.has_cycle_stack {
            true => &CYCLE_STACK,
            false => &[],
        };
        self.columns.iter().chain(stack)
    }

    /// Returns Arrow's schema; `more` are the names of the columns that depend on the run, whose values are doubles, null where
    /// there is none. Metadata: `about` of the table, `unit` and `about` of each column.
    pub fn schema(&self, more: &[String]) -> SchemaRef {
        let own = self.fixed_columns().map(|column| {
            let data_type = column.column_type.data_type();
            field(Field::new(column.name, data_type, column.optional), column.unit, column.about)
        });
        let more = more.iter().map(|name| {
            let (unit, about) = self.run_columns.map_or(("", ""), |more| (more.unit, more.about));
            field(Field::new(name, DataType::Float64, true), unit, about)
        });
        let fields: Vec<Field> = own.chain(more).collect();
        let metadata = HashMap::from([
            ("table".to_owned(), self.name.to_owned()),
            ("about".to_owned(), self.about.to_owned()),
        ]);
        Arc::new(Schema::new_with_metadata(fields, metadata))
    }
}

fn field(field: Field, unit: &str, about: &str) -> Field {
    let mut metadata = HashMap::from([("about".to_owned(), about.to_owned())]);
    if !unit.is_empty() {
        metadata.insert("unit".to_owned(), unit.to_owned());
    }
    field.with_metadata(metadata)
}
