//! The section as a part of the page, with pictures of iterations.

use critical_path::Cause;
use serde_json::json;

use super::{ChainLink, LoopRow, LoopsReport};
use crate::markup::{embed, escape, script, words};
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

impl LoopRow {
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
pub(super) fn page(loops: &LoopsReport, common: &Common) -> String {
    let mut out = format!(
        "<section id=\"loops\" aria-labelledby=\"loops-title\"><h2 id=\"loops-title\">Loops</h2><p class=\"lead\">{}. \
         The critical path is what each cycle waited for last (Fields et al., ISCA 2001); <i>width</i> and <i>ports</i> are the cycles \
         that an iteration takes at least if nothing but decode or the issue ports bound it.</p>\
         <div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Loops\"><table><thead><tr><th>loop</th><th class=\"number\">%</th>\
         <th>critical path</th>",
        escape(&loops.lead())
    );
    for name in ["iterations", "trips", "instructions", "cycles", "min/med/max", "width", "ports"] {
        out += &format!("<th class=\"number\">{name}</th>");
    }
    out += "<th>process</th></tr></thead><tbody>";
    for row in &loops.loops {
        let source = place("", row.source.as_deref(), row.library_source.as_deref());
        let source = source.trim_start_matches(", ");
        out += &format!(
            "<tr><td title=\"{}\"><code>{}</code> <span class=\"muted\">{}</span></td><td class=\"number\">{}</td><td class=\"words\">{}</td>",
            escape(&row.label),
            escape(&fit_label(&row.label, NAME_WIDTH)),
            escape(source),
            fixed(row.share),
            words(&row.bound()),
        );
        for cell in row.cells() {
            out += &format!("<td class=\"number\">{}</td>", escape(&cell));
        }
        let process = &common.processes[row.process].name;
        out += &format!("<td>{}</td></tr>", escape(process));
    }
    out += "</tbody></table></div>";
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
    out += "<div id=\"pipeline\"></div><script type=\"application/json\" id=\"pipeline-data\">";
    out += &embed(&data);
    out += "</script>";
    out += &script(PIPELINE_SCRIPT);
    out + "</section>"
}
