//! The section as a part of the page, with pictures of iterations.

use critical_path::Cause;
use maud::{Markup, html};
use serde_json::json;

use super::{ChainLink, LoopRow, LoopsReport};
use crate::markup::{embed, script, words};
use crate::model::Common;
use crate::places::{fit_place, place};
use crate::widths::{count, fit_label, fixed};

pub(crate) const PIPELINE_SCRIPT: &str = include_str!("../html/pipeline.js");

/// Characters of a name in a table or a choice; the whole name is its title.
const NAME_WIDTH: usize = 60;

impl ChainLink {
    /// What JSON has of the instruction, and its place as the table shows it.
    fn for_page(&self) -> serde_json::Value {
        let mut link = json!(self);
        link["shown"] = fit_label(&self.label, NAME_WIDTH).into();
        link
    }
}

/// Titles of the columns of [`LoopRow::cells`].
const NUMBERS: [&str; 7] =
    ["iterations", "trips", "instructions", "cycles", "min/med/max", "width", "ports"];

impl LoopRow {
    /// Returns the loop's row of the table.
    fn row(&self, process: &str) -> Markup {
        let source = place("", self.source.as_deref(), self.library_source.as_deref());
        html! {
            tr {
                td title=(self.label) {
                    code { (fit_label(&self.label, NAME_WIDTH)) }
                    " "
                    span class="muted" { (source.trim_start_matches(", ")) }
                }
                td class="number" { (fixed(self.share)) }
                td class="words" { (words(&self.bound())) }
                @for cell in self.cells() {
                    td class="number" { (cell) }
                }
                td { (process) }
            }
        }
    }

    fn cells(&self) -> [String; 7] {
        [
            count(self.iterations),
            self.trips_in_words(),
            format!("{:.1}", self.instructions_per_iteration),
            format!("{:.2}", self.cycles_per_iteration),
            self.range_in_words(),
            format!("{:.2}", self.least.decode),
            format!("{:.2}", self.least.ports()),
        ]
    }
}

/// Returns the table of loops, and the data and the script of the pipeline view.
pub(super) fn page(loops: &LoopsReport, common: &Common) -> Markup {
    let viewed: Vec<_> = loops.loops.iter()
        .filter(|row| !row.views.is_empty())
        .map(|row| {
            json!({
                "name": row.place(),
                "shown": format!("{} ({} %)", fit_place(&row.label, row.source.as_deref(), row.library_source.as_deref(), NAME_WIDTH), fixed(row.share)),
                "mean": row.cycles_per_iteration,
                "causes": row.causes,
                "chain": row.chain.iter().map(ChainLink::for_page).collect::<Vec<_>>(),
                "views": row.views.iter().map(|view| view.json()).collect::<Vec<_>>(),
            })
        })
        .collect();
    let causes: Vec<_> = Cause::ALL.iter().map(|cause| (cause, cause.name())).collect();
    let data = json!({ "causes": causes, "loops": viewed });
    html! {
        section id="loops" aria-labelledby="loops-title" {
            h2 id="loops-title" { "Loops" }
            p class="lead" {
                (loops.lead()) ". The critical path is what each cycle waited for last (Fields et al., ISCA 2001); " i { "width" }
                " and " i { "ports" } " are the cycles that an iteration takes at least if nothing but decode or the issue ports \
                 bound it."
            }
            div class="scroll" tabindex="0" role="region" aria-label="Loops" {
                table {
                    thead {
                        tr {
                            th { "loop" }
                            th class="number" { "%" }
                            th { "critical path" }
                            @for title in NUMBERS {
                                th class="number" { (title) }
                            }
                            th { "process" }
                        }
                    }
                    tbody {
                        @for row in &loops.loops {
                            (row.row(&common.processes[row.process].name))
                        }
                    }
                }
            }
            div id="pipeline" {}
            script type="application/json" id="pipeline-data" { (embed(&data)) }
            (script(&[PIPELINE_SCRIPT]))
        }
    }
}
