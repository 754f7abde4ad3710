//! The report as one page that needs nothing else: no network, no fonts, no other files.

use profile::{CATEGORIES, Level};
use serde_json::{Value, json};

use super::model::Report;
use super::sections::{SECTIONS, TextPosition};
use super::tables::{FunctionRow, InstructionRow};
use super::text::Options;
use super::words::Named;

const PAGE: &str = include_str!("html/page.html");
const STYLE: &str = include_str!("html/style.css");
const CURVES: &str = include_str!("html/sensitivity.css");
const PIPELINE: &str = include_str!("html/pipeline.css");
const SCRIPT: &str = include_str!("html/script.js");

impl Report {
    /// The report as an HTML page; `picture` is an SVG image of the core, or nothing.
    pub fn html(&self, picture: &str) -> String {
        let title = self
            .meta
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or("Profile report");
        let mut out = String::new();
        let mut rest = PAGE;
        // `{{name}}` in the page; no value is searched for further ones.
        while let Some((before, tail)) = rest.split_once("{{") {
            out.push_str(before);
            let (name, tail) = tail.split_once("}}").unwrap_or((tail, ""));
            match name {
                "title" => out.push_str(&escape(title)),
                "style" => out.extend([STYLE, CURVES, PIPELINE]),
                "script" => out.push_str(SCRIPT),
                "first" => out.extend(self.html_sections(|place| place == TextPosition::First)),
                "sections" => out.extend(self.html_sections(|place| place != TextPosition::First)),
                "picture" => out.push_str(picture),
                "data" => out.push_str(&embed(&self.page_data())),
                "text" => out.push_str(&escape(&self.text(&Options::default()))),
                other => unreachable!("page.html asks for {other:?}"),
            }
            rest = tail;
        }
        out.push_str(rest);
        out
    }

    /// The sections of some places.
    fn html_sections(&self, of: impl Fn(TextPosition) -> bool) -> impl Iterator<Item = String> {
        { SECTIONS.iter() }
            .filter(move |section| of(section.place))
            .map(|section| (section.html)(self))
    }

    /// What the page's script shows: names once, rows as arrays.
    fn page_data(&self) -> Value {
        let mut rows = Rows {
            strings: Strings::default(),
            columns: (0..self.columns.len())
                .filter(|c| self.columns[*c].primary)
                .collect(),
        };
        let functions: Vec<Value> = self
            .functions
            .iter()
            .map(|row| rows.function(row))
            .collect();
        let instructions: Vec<Value> = self
            .instructions
            .iter()
            .map(|row| rows.instruction(row))
            .collect();
        let listings: Vec<Value> = self
            .listings
            .iter()
            .map(|listing| {
                let lines: Vec<Value> = listing
                    .rows
                    .iter()
                    .map(|row| {
                        let flags = u8::from(row.leader) | u8::from(row.gap) << 1;
                        let text = row.source_text.as_ref();
                        let text = text.map(|text| rows.strings.number(text));
                        json!([flags, rows.instruction(&row.instruction), text])
                    })
                    .collect();
                json!({ "function": listing.function, "rows": lines })
            })
            .collect();
        let disagreements: Vec<Value> = self
            .disagreements
            .iter()
            .map(|row| {
                let inst = |inst: &Named, rows: &mut Rows| {
                    json!([inst.pc, rows.strings.number(&inst.label)])
                };
                json!({
                    "process": row.process,
                    "column": row.column,
                    "named": inst(&row.named, &mut rows),
                    "truth": inst(&row.truth, &mut rows),
                    "words": rows.strings.number(&row.words),
                })
            })
            .collect();
        json!({
            "meta": self.meta,
            "totals": self.totals,
            "focus": self.focus().first(),
            "categories": CATEGORIES,
            "columns": self.columns.iter().map(|column| json!({
                "name": column.name,
                "label": column.label(),
                "short": column.short(),
                "profiler": column.profiler,
                "period": column.schedule.map(|s| s.period),
                "random": column.schedule.is_some_and(|s| s.random.is_some()),
                "samples": column.samples,
                "dropped": column.dropped,
                "unmatched": column.unmatched_cycles,
                "primary": column.primary,
                "published": Level::ALL.map(|level| match column.published.get(level) {
                    Some(published) => json!([published.value(), published.to_string()]),
                    None => Value::Null,
                }),
            })).collect::<Vec<_>>(),
            "processes": self.processes.iter().map(|process| json!({
                "name": process.name,
                "pid": process.pid,
                "cycles": process.cycles.round(),
                "share": digits(process.share),
                "class": process.class,
                "stack": process.stack.map(digits),
                "samples": process.samples.iter().map(|n| n.round()).collect::<Vec<_>>(),
                "errors": process.errors.iter().map(|errors| errors.map(|errors| {
                    Level::ALL.map(|level| {
                        let error = errors.get(level);
                        [digits(error.error), digits(error.sampling)]
                    })
                })).collect::<Vec<_>>(),
            })).collect::<Vec<_>>(),
            "top_down": self.top_down.as_ref().map(short),
            "tea": self.tea.as_ref().map(short),
            "disagreements": disagreements,
            "modules": self.modules,
            "warnings": self.warnings,
            "functions": functions,
            "instructions": instructions,
            "listings": listings,
            "strings": rows.strings.list,
        })
    }
}

/// Turns rows into arrays; of the shares they keep the primary columns'.
struct Rows {
    strings: Strings,
    columns: Vec<usize>,
}

impl Rows {
    /// [process, name, module, cycles, share, stack, shares, missing]
    fn function(&mut self, row: &FunctionRow) -> Value {
        let missing = row.missing.iter();
        let missing: Vec<usize> = missing.map(|words| self.strings.number(words)).collect();
        json!([
            row.process,
            self.strings.number(&row.name),
            row.module,
            row.cycles.round(),
            digits(row.share),
            row.stack.map(digits),
            self.shares(&row.shares),
            missing,
        ])
    }

    /// [process, address, label, function, inlined, source, text, cycles, share, stack, shares]
    fn instruction(&mut self, row: &InstructionRow) -> Value {
        json!([
            row.process,
            row.pc,
            self.strings.number(&row.label),
            self.strings.number(&row.function),
            row.inlined
                .iter()
                .map(|name| self.strings.number(name))
                .collect::<Vec<_>>(),
            row.source
                .as_ref()
                .map(|source| self.strings.number(source)),
            self.strings.number(&row.text),
            row.cycles.round(),
            digits(row.share),
            row.stack.map(digits),
            self.shares(&row.shares),
        ])
    }

    fn shares(&self, shares: &[f64]) -> Vec<f64> {
        self.columns
            .iter()
            .map(|column| digits(shares[*column]))
            .collect()
    }
}

/// A share to six decimals, which is below what a pixel shows.
fn digits(share: f64) -> f64 {
    (share * 1e6).round() / 1e6
}

/// A part of the report with its shares cut to [`digits`].
fn short(part: &impl serde::Serialize) -> Value {
    fn cut(value: &mut Value) {
        match value {
            Value::Number(number) if number.is_f64() => {
                *value = json!(number.as_f64().map(digits));
            }
            Value::Array(list) => list.iter_mut().for_each(cut),
            Value::Object(map) => map.values_mut().for_each(cut),
            _ => {}
        }
    }
    let mut value = serde_json::to_value(part).unwrap_or_default();
    cut(&mut value);
    value
}

/// Each distinct text once.
#[derive(Default)]
struct Strings {
    list: Vec<String>,
    index: std::collections::HashMap<String, usize>,
}

impl Strings {
    fn number(&mut self, text: &str) -> usize {
        if let Some(known) = self.index.get(text) {
            return *known;
        }
        self.list.push(text.to_owned());
        self.index.insert(text.to_owned(), self.list.len() - 1);
        self.list.len() - 1
    }
}

/// JSON inside a `script` element: nothing in it may look like markup.
pub(super) fn embed(value: &Value) -> String {
    value
        .to_string()
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
}

pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // What a document may not contain at all (HTML standard, "preprocessing the input stream").
            c if c.is_control() && c != '\n' && c != '\t' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
