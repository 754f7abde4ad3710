//! What the page's script shows, as JSON.

use maud::{Markup, html};
use profile::{CATEGORIES, Level};
use serde_json::{Value, json};

use crate::disagreements::Named;
use crate::flame::{FlameNode, FrameKind};
use crate::markup::embed;
use crate::model::Common;
use crate::over_time::{OverTime, TimedItem};
use crate::parts::Parts;
use crate::report::Report;
use crate::tables::{FunctionRow, InstructionRow, Listing};

impl Report {
    /// What the page's script shows: names once, rows as arrays.
    pub(super) fn page_data(&self) -> Value {
        let mut rows = Rows::of(&self.common);
        let functions: Vec<Value> =
            self.common.functions.iter().map(|row| rows.function(row)).collect();
        let disagreements: Vec<Value> = self
            .common
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
            "meta": self.common.meta,
            "totals": self.common.totals,
            "focus": self.common.focus().first(),
            "categories": CATEGORIES,
            "names": names(),
            "columns": self.common.columns.iter().map(|column| json!({
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
            "processes": self.common.processes.iter().map(|process| json!({
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
                        let margin = error.margin.map(|margin| digits(margin.within_95));
                        (digits(error.error), digits(error.sampling), margin)
                    })
                })).collect::<Vec<_>>(),
            })).collect::<Vec<_>>(),
            "commands": self.common.commands.iter().map(|command| json!({
                "title": command.title(),
                "members": command.members,
                "cycles": command.cycles.round(),
                "share": digits(command.share),
                "class": command.class,
                "stack": command.stack.map(digits),
            })).collect::<Vec<_>>(),
            "top_down": self.sections.top_down.as_ref().map(short),
            "tea": self.sections.tea.as_ref().map(short),
            "disagreements": disagreements,
            "modules": self.common.modules,
            "warnings": self.common.warnings,
            "functions": functions,
            "listed": self.common.listings.iter().map(|listing| listing.function).collect::<Vec<_>>(),
            "flame": self.common.flame,
            "over_time": self.common.over_time.bins,
            "strings": rows.strings.list,
        })
    }

    /// Returns what the script parses when it is asked for: the instructions, and each listing.
    pub(super) fn blocks(&self) -> Markup {
        let mut rows = Rows::of(&self.common);
        let instructions = self.common.instructions.iter();
        let list: Vec<Value> = instructions.map(|row| rows.instruction(row)).collect();
        let bins = &self.common.over_time.bins;
        html! {
            (block("instruction-data", &json!({ "rows": list, "strings": rows.strings.list })))
            @if !bins.is_empty() {
                (block("over-time-data", &over_time(&self.common.over_time)))
            }
            @for (number, listing) in self.common.listings.iter().enumerate() {
                (block(&format!("listing-data-{number}"), &Rows::of(&self.common).listing(listing)))
            }
        }
    }
}

/// Returns a `script` element with data.
fn block(id: &str, value: &Value) -> Markup {
    html! {
        script type="application/json" id=(id) { (embed(value)) }
        "\n"
    }
}

/// Declares how a row is turned into an array: the names of its fields, which the page's script finds them by, and the function that makes
/// the array, both in one order.
macro_rules! row {
    ($names:ident, $make:ident, |$rows:ident, $row:ident: $type:ty| { $($field:ident: $value:expr,)* }) => {
        const $names: &'static [&'static str] = &[$(stringify!($field)),*];

        fn $make(&mut $rows, $row: &$type) -> Value {
            json!([$($value),*])
        }
    };
}

/// Returns what the scripts of all pages find fields of arrays by: names in the order of the fields, of kinds of frames, and of the parts
/// of time.
pub(super) fn names() -> Value {
    json!({
        "function": Rows::FUNCTION_FIELDS,
        "instruction": Rows::INSTRUCTION_FIELDS,
        "node": FlameNode::FIELDS,
        "kinds": FrameKind::names(),
        "parts": Parts::names(),
    })
}

/// Turns rows into arrays; of the shares they keep the primary columns'.
struct Rows<'a> {
    strings: Strings,
    over_time: &'a OverTime,
    columns: Vec<usize>,
}

impl<'a> Rows<'a> {
    fn of(common: &'a Common) -> Self {
        Self {
            strings: Strings::default(),
            over_time: &common.over_time,
            columns: (0..common.columns.len()).filter(|c| common.columns[*c].primary).collect(),
        }
    }

    row! {
        FUNCTION_FIELDS, function, |self, row: FunctionRow| {
            process: row.process,
            name: self.strings.number(&row.name),
            module: row.module,
            cycles: row.cycles.round(),
            share: digits(row.share),
            stack: parts(row.stack, row.store_queue),
            shares: self.shares(&row.shares),
            missing: self.numbers(&row.missing),
            // With all that it calls.
            total: row.total.map(digits),
            // Margin of error of the share, and of the share of all processes' cycles.
            margin: row.margins.map(|margins| digits(margins.share.within_95)),
            margin_of_all: row.margins.map(|margins| digits(margins.of_all.within_95)),
        }
    }

    row! {
        INSTRUCTION_FIELDS, instruction, |self, row: InstructionRow| {
            process: row.process,
            pc: row.pc,
            label: self.strings.number(&row.label),
            function: self.strings.number(&row.function),
            inlined: self.numbers(&row.inlined),
            source: row.source.as_ref().map(|source| self.strings.number(source)),
            text: self.strings.number(&row.text),
            cycles: row.cycles.round(),
            share: digits(row.share),
            stack: parts(row.stack, row.store_queue),
            shares: self.shares(&row.shares),
            // Item over time.
            item: self.over_time.item(row),
            // Address in its file.
            address: row.address,
            // Source of inlined library code.
            library: row.library_source.as_ref().map(|source| self.strings.number(source)),
            // Margin of error of the share, and of the share of all processes' cycles.
            margin: row.margins.map(|margins| digits(margins.share.within_95)),
            margin_of_all: row.margins.map(|margins| digits(margins.of_all.within_95)),
        }
    }

    fn numbers(&mut self, texts: &[String]) -> Vec<usize> {
        texts.iter().map(|text| self.strings.number(text)).collect()
    }

    /// Lines of code, of source, and files that were changed.
    fn listing(mut self, listing: &Listing) -> Value {
        let lines = listing.rows.iter().map(|row| {
            let flags = u8::from(row.leader) | u8::from(row.gap) << 1;
            json!([flags, self.instruction(&row.instruction)])
        });
        let lines: Vec<Value> = lines.collect();
        let source = listing.source.iter().map(|line| {
            json!([self.strings.number(&line.file), line.line, self.strings.number(&line.text)])
        });
        let source: Vec<Value> = source.collect();
        let stale = listing.stale.iter().map(|stale| json!([stale.file, stale.why]));
        let stale: Vec<Value> = stale.collect();
        json!({ "rows": lines, "source": source, "stale": stale, "strings": self.strings.list })
    }

    fn shares(&self, shares: &[f64]) -> Vec<f64> {
        self.columns.iter().map(|column| digits(shares[*column])).collect()
    }
}

/// Process, node and function (or -1) of each item; of each bin its items, as the distance to the one before, and their cycles in turn;
/// the same of the nodes by callers, and of the processes what these do not keep apart.
fn over_time(over_time: &OverTime) -> Value {
    let items = &over_time.items;
    let function = |item: &TimedItem| item.function.map_or(-1, |function| function as i64);
    let flat = |cycles: &Vec<(u32, u64)>| {
        let mut before = 0;
        let pairs = cycles.iter().flat_map(|(item, cycles)| {
            let distance = item - std::mem::replace(&mut before, *item);
            [distance.into(), *cycles]
        });
        pairs.collect::<Vec<u64>>()
    };
    json!({
        "process": items.iter().map(|item| item.process).collect::<Vec<_>>(),
        "node": items.iter().map(|item| item.node).collect::<Vec<_>>(),
        "function": items.iter().map(function).collect::<Vec<_>>(),
        "cycles": over_time.cycles.iter().map(flat).collect::<Vec<_>>(),
        "callers": over_time.callers.iter().map(flat).collect::<Vec<_>>(),
        "other_callers": over_time.other_callers.iter().map(flat).collect::<Vec<_>>(),
    })
}

/// The shares of the parts of a published stack.
fn parts(stack: [f64; 7], store_queue: f64) -> Vec<f64> {
    let parts = Parts::new(stack, store_queue).0;
    parts.into_iter().map(digits).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The types that the scripts are checked against have the names of all fields, in their order.
    #[test]
    fn the_scripts_know_all_names() {
        let types: String = include_str!("page.d.ts").split_whitespace().collect();
        let kinds = FrameKind::names();
        for names in [Rows::FUNCTION_FIELDS, Rows::INSTRUCTION_FIELDS, &FlameNode::FIELDS, &kinds] {
            let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
            assert!(types.contains(&format!(":({})[];", quoted.join("|"))), "{names:?}");
        }
    }
}
