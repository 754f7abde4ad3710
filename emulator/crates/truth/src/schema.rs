//! JSON Schemas of what is written by hand.

use std::borrow::Cow;

use commit_trace::Class;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

/// An address or a mask as text: see [`crate::hex`].
pub(crate) struct Hex;

impl JsonSchema for Hex {
    fn schema_name() -> Cow<'static, str> {
        "Hex".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A number in hexadecimal, as text: JSON's numbers are exact only below 2^53.",
            "type": "string",
            "pattern": "^0x[0-9a-f]+$",
        })
    }
}

/// The name of a class of instructions, as [`Class`] is written.
#[derive(Debug)]
pub struct ClassName;

impl JsonSchema for ClassName {
    fn schema_name() -> Cow<'static, str> {
        "Class".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names: Vec<String> = Class::ALL.iter().map(|class| format!("{class:?}")).collect();
        json_schema!({
            "description": "The coarse class of an instruction.",
            "type": "string",
            "enum": names,
        })
    }
}
