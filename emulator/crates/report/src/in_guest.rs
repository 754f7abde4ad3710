//! What perf sampled in the guest by a rule of the TIP unit, beside the host's model of the same rule.

mod between;
pub(crate) mod rules;

use std::fmt::{self, Write};

use guest_samples::GuestProfile;
use maud::{Markup, html};
use profile::{ErrorSums, ErrorTotals, Filter, Level, OracleWeights, Profiler};
use schemars::JsonSchema;
use serde::Serialize;

use super::columns::{Column, LevelError, Levels};
use super::gather::{Rows, SymbolMap};
use super::guest::rule;
use super::model::Common;
use super::options::Options;
use super::rows::RowBuilder;
use super::section::Section;
use super::widths::{count, fit, fit_end, fixed, percent};
use between::{Side, between};

/// Least share of a profile's samples for a process to be compared. perf's own process, before it starts the program, has less.
const NOTICEABLE: f64 = 0.05;
/// Functions, and instructions, that a comparison lists at most.
const MAX_ROWS: usize = 50;
/// Functions, and instructions, of a comparison that the text shows at most. The page shows twice as many instructions.
const SHOWN: usize = 6;

/// A profile from the guest and the host's model of the same rule, in one process. Only the privilege modes that the guest's
/// event sampled are compared.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct InGuest {
    /// Index into [`processes`](Common::processes).
    pub process: usize,
    /// The profiler whose rule both apply.
    pub rule: Profiler,
    /// The guest's file.
    pub file: String,
    /// The guest's event as it was asked for.
    pub event: String,
    /// The guest's profile, as an index into [`columns`](Common::columns).
    pub column: usize,
    /// The host's model, a sampler, as an index into [`columns`](Common::columns).
    pub model: usize,
    /// Samples of the guest's profile in this process.
    pub samples: f64,
    /// Samples of the host's model in this process.
    pub model_samples: f64,
    /// Errors of guest and model against the Oracle, and between the two.
    pub errors: Levels<InGuestError>,
    /// Functions with the largest shares by the Oracle, the guest or the model.
    pub functions: Vec<InGuestRow>,
    /// Instructions with the largest shares by the Oracle, the guest or the model.
    pub instructions: Vec<InGuestRow>,
}

/// Errors of a profile from the guest and of the host's model, as fractions from 0 to 1.
#[derive(Clone, Copy, Debug, Default, JsonSchema, Serialize)]
pub struct InGuestError {
    /// Error of the guest's profile against the Oracle.
    pub guest: LevelError,
    /// Error of the model against the Oracle.
    pub model: LevelError,
    /// Difference between guest and model; `sampling` is what is expected if both are samples of one distribution.
    pub between: LevelError,
}

/// A function or an instruction, with its share by the Oracle, the model and the guest.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct InGuestRow {
    /// The function, with the instruction's distance from its start.
    pub name: String,
    /// Disassembly of an instruction.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Share by the Oracle.
    pub oracle: f64,
    /// Share by the host's model.
    pub model: f64,
    /// Share by the guest's profile.
    pub guest: f64,
}

/// Levels that the tables show.
const SHOWN_LEVELS: [Level; 2] = [Level::Instruction, Level::Function];

/// A profile from the guest and the column of its model.
struct Pair {
    rule: Profiler,
    file: String,
    event: String,
    guest: usize,
    model: usize,
    /// Samples of the guest's profile in all processes.
    samples: f64,
    covers: [bool; 4],
}

/// Compares process by process.
pub(super) struct InGuestBuilder {
    pairs: Vec<Pair>,
    out: Vec<InGuest>,
}

impl InGuestBuilder {
    /// Finds the model of each profile from the guest: a sampler of its rule that sees all cycles, at its period, or else at the
    /// shortest one.
    pub(crate) fn new(columns: &[Column], guests: &[GuestProfile]) -> Self {
        let own = (0..columns.len()).filter(|at| columns[*at].profiler.is_none());
        let pair = |(column, guest): (usize, &GuestProfile)| {
            let rule = rule(guest)?;
            let same = (0..columns.len()).filter(|at| columns[*at].profiler == Some(rule));
            let rank = |at: &usize| {
                let column = &columns[*at];
                let period = column.schedule.map_or(u64::MAX, |schedule| schedule.period);
                let other = guest.is_frequency || period != guest.period;
                (column.filter != Filter::NONE, other, period)
            };
            Some(Pair {
                rule,
                file: guest.file.clone(),
                event: guest.event.clone(),
                guest: column,
                model: same.min_by_key(rank)?,
                samples: guest.samples.len() as f64,
                covers: [0, 1, 2, 3].map(|privilege| guest.covers(privilege)),
            })
        };
        Self { pairs: own.zip(guests).filter_map(pair).collect(), out: Vec::new() }
    }

    /// Adds the process at `process` among the gathered.
    pub(crate) fn add(&mut self, process: usize, rows: &Rows, builder: &mut RowBuilder<'_>) {
        for pair in &self.pairs {
            let samples = rows.columns[pair.guest].totals.samples;
            if samples >= 1.0 && samples >= NOTICEABLE * pair.samples {
                self.out.push(compare(pair, process, rows, builder));
            }
        }
    }

    /// Returns the comparisons, sorted by rule and process.
    pub(crate) fn finish(mut self) -> Vec<InGuest> {
        self.out.sort_by_key(|own| (own.rule, own.process));
        self.out
    }
}

fn compare(pair: &Pair, process: usize, rows: &Rows, builder: &mut RowBuilder<'_>) -> InGuest {
    let covered = |row: usize| pair.covers[usize::from(builder.privilege(rows, row) & 3)];
    let in_scope = |(row, units): (usize, u64)| if covered(row) { units } else { 0 };
    let whole = rows.insts.len();
    let oracle: Vec<u64> = rows.oracle.iter().copied().enumerate().map(in_scope).collect();
    let by_row = |column: usize| {
        let mut weights = vec![0; whole];
        for (row, units) in rows.columns[column].by_row.iter() {
            weights[row] = in_scope((row, units));
        }
        weights
    };
    let totals = rows.columns[pair.guest].totals;
    let guest = Side { weights: by_row(pair.guest), total: totals.total, samples: totals.samples };
    let weights = by_row(pair.model);
    let total = weights.iter().sum::<u64>();
    let totals = rows.columns[pair.model].totals;
    let model = Side {
        samples: totals.samples * (total as f64 / totals.total.max(1) as f64),
        weights,
        total,
    };
    let errors = Levels::from_fn(|level| {
        let keys = rows.keys(level);
        let sum = |weights: &[u64]| keys.sum(weights.iter().copied().enumerate());
        let side = |side: &Side| Side { weights: sum(&side.weights), ..*side };
        let truth = OracleWeights::new(sum(&oracle));
        let (guest, model) = (side(&guest), side(&model));
        let against_oracle = |side: &Side| {
            let whole = ErrorTotals {
                oracle: oracle.iter().sum(),
                profile: side.total,
                samples: side.samples,
            };
            let mut sums = ErrorSums::default();
            sums.add(&whole, &truth, &side.weights);
            LevelError::of(&sums, &whole)
        };
        InGuestError {
            guest: against_oracle(&guest),
            model: against_oracle(&model),
            between: between(&guest, &model),
        }
    });
    let total = oracle.iter().sum();
    let all = [(&oracle, total), (&model.weights, model.total), (&guest.weights, guest.total)];
    InGuest {
        process: process + 1,
        rule: pair.rule,
        file: pair.file.clone(),
        event: pair.event.clone(),
        column: pair.guest,
        model: pair.model,
        samples: guest.samples,
        model_samples: model.samples,
        errors,
        functions: largest(&rows.function, all)
            .map(|(row, shares)| named(builder.function(rows, row), String::new(), shares))
            .collect(),
        instructions: largest(&rows.instruction, all)
            .map(|(row, shares)| {
                let row = builder.instruction(rows, process, row);
                named(row.label, row.text, shares)
            })
            .collect(),
    }
}

fn named(name: String, text: String, [oracle, model, guest]: [f64; 3]) -> InGuestRow {
    InGuestRow { name, text, oracle, model, guest }
}

/// Returns the symbols with the largest share by any of the three profiles: a row of each symbol, and the symbol's shares.
fn largest(
    keys: &SymbolMap,
    all: [(&Vec<u64>, u64); 3],
) -> impl Iterator<Item = (usize, [f64; 3])> {
    let shares = all.map(|(weights, total)| {
        let sums = keys.sum(weights.iter().copied().enumerate());
        let share = move |units: &u64| *units as f64 / total.max(1) as f64;
        sums.iter().map(share).collect::<Vec<f64>>()
    });
    let mut rows = vec![0; keys.count];
    for (row, key) in keys.of_row.iter().enumerate().rev() {
        rows[*key as usize] = row;
    }
    let own = |key: usize| [0, 1, 2].map(|which: usize| shares[which][key]);
    let mut out: Vec<_> = (0..keys.count).map(|key| (rows[key], own(key))).collect();
    out.retain(|(_, shares)| shares.iter().any(|share| *share > 0.0));
    let most = |(_, shares): &(usize, [f64; 3])| shares.iter().copied().fold(0.0, f64::max);
    out.sort_by(|a, b| most(b).total_cmp(&most(a)).then(a.0.cmp(&b.0)));
    out.truncate(MAX_ROWS);
    out.into_iter()
}

impl Section for Vec<InGuest> {
    fn write(&self, common: &Common, _: &Options, out: &mut String) -> fmt::Result {
        if self.is_empty() {
            return Ok(());
        }
        writeln!(
            out,
            "\nSampled in the guest, and by the host's model of the same rule: errors against the Oracle, and between the two;\n\
             sampling: what is expected between two profiles of one distribution with so many samples"
        )?;
        writeln!(
            out,
            "{:<44}{:>18} |{:^27} |{:>19}",
            "", "samples", "instruction, %", "function, %"
        )?;
        write!(out, "{:<18}{:<10}{:<16}", "Process", "rule", "file")?;
        write!(out, "{:>9}{:>9}", "guest", "model")?;
        for _ in 0..2 {
            write!(out, " |{:>6}{:>6}{:>6}{:>9}", "guest", "model", "betw.", "sampling")?;
        }
        writeln!(out)?;
        for own in self {
            write!(
                out,
                "{:<18}{:<10}{:<16}{:>9}{:>9}",
                fit(&common.processes[own.process].name, 17),
                own.rule,
                fit(&own.file, 15),
                count(own.samples),
                count(own.model_samples),
            )?;
            for level in SHOWN_LEVELS {
                let error = own.errors.get(level);
                write!(
                    out,
                    " |{:>6}{:>6}{:>6}{:>9}",
                    fixed(error.guest.error),
                    fixed(error.model.error),
                    fixed(error.between.error),
                    fixed(error.between.sampling),
                )?;
            }
            writeln!(out)?;
        }
        for own in self {
            let title = format!("{}, {}", common.processes[own.process].name, own.rule);
            writeln!(out, "\n{:<70}{:>8}{:>8}{:>8}", fit(&title, 69), "Oracle", "model", "guest")?;
            for row in own.functions.iter().take(SHOWN) {
                line(out, &fit(&row.name, 69), "", row)?;
            }
            for row in own.instructions.iter().take(SHOWN) {
                line(out, &fit_end(&row.name, 37), &row.text.replace('\t', " "), row)?;
            }
        }
        Ok(())
    }

    /// Returns the comparisons as tables; empty if there is nothing to compare.
    fn page(&self, common: &Common) -> Markup {
        if self.is_empty() {
            return html! {};
        }
        html! {
            section id="in-guest" {
                h2 { "In the guest" }
                p {
                    "What perf sampled in the guest, beside the host's model of the same rule: errors against the Oracle and between \
                     the two, in %. Sampling: what is expected between two profiles of one distribution with so many samples."
                }
                table {
                    thead {
                        tr {
                            @for title in ["process", "rule", "file", "samples", "model's"] {
                                th { (title) }
                            }
                            @for level in SHOWN_LEVELS {
                                @for what in ["guest", "model", "between", "sampling"] {
                                    th { (level.name()) ": " (what) }
                                }
                            }
                        }
                    }
                    tbody {
                        @for own in self {
                            tr {
                                td { (common.processes[own.process].name) }
                                td { (own.rule.name()) }
                                td { (own.file) }
                                td { (count(own.samples)) }
                                td { (count(own.model_samples)) }
                                @for level in SHOWN_LEVELS {
                                    @for value in own.errors.get(level).shown() {
                                        td { (fixed(value)) }
                                    }
                                }
                            }
                        }
                    }
                }
                @for own in self {
                    (own.shares(&common.processes[own.process].name))
                }
            }
        }
    }
}

impl InGuestError {
    /// Returns the errors that the tables show: of guest, of model, between the two, and what of that is expected.
    fn shown(&self) -> [f64; 4] {
        [self.guest.error, self.model.error, self.between.error, self.between.sampling]
    }
}

impl InGuest {
    /// Returns the table of functions and instructions of the process.
    fn shares(&self, process: &str) -> Markup {
        let functions = self.functions.iter().take(SHOWN);
        html! {
            table {
                thead {
                    tr { th { (process) ", " (self.rule.name()) } th {} th { "Oracle" } th { "model" } th { "guest" } }
                }
                tbody {
                    @for part in functions.chain(self.instructions.iter().take(2 * SHOWN)) {
                        tr {
                            td { (part.name) }
                            td { (part.text) }
                            @for share in [part.oracle, part.model, part.guest] {
                                td { (percent(share)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A row of the text, of which the name or the disassembly may be empty.
fn line(out: &mut String, name: &str, text: &str, row: &InGuestRow) -> fmt::Result {
    let left = match text {
        "" => name.to_owned(),
        _ => format!("  {name:<38}{}", fit(text, 29)),
    };
    let [oracle, model, guest] = [row.oracle, row.model, row.guest].map(percent);
    writeln!(out, "{left:<70}{oracle:>8}{model:>8}{guest:>8}")
}
