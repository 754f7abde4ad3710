//! Two runs as a page: what got faster or slower, and a differential flame graph.

use maud::html;
use profile::CATEGORIES;
use serde_json::json;

use super::data::names;
use super::{part_notices, policy, style};
use crate::compare::{Comparison, file_now, now};
use crate::flame::{Flame, FrameKind};
use crate::markup::{document, embed, filled, script};

const PAGE: &str = include_str!("compared.html");
/// Parts of the page's script. All but `compared.js` are parts of the script of the report's page, too.
const SCRIPT: [&str; 4] = [
    include_str!("base.js"),
    include_str!("table.js"),
    include_str!("flame.js"),
    include_str!("compared.js"),
];

impl Comparison {
    /// The comparison as an HTML page, with the flame graphs of both; `map` as for [`Comparison::new`].
    pub fn html(&self, before: &Flame, after: &Flame, map: &[(String, String)]) -> String {
        let name_of = |is_before: bool, kind: FrameKind, name: &str| match kind {
            FrameKind::Process => {
                let command = self.command(is_before, name);
                if is_before { now(command, map) } else { command.to_owned() }
            }
            FrameKind::Module if is_before => file_now(name, map),
            _ => name.to_owned(),
        };
        let data = json!({
            "comparison": self,
            "categories": CATEGORIES,
            "names": names(),
            "flame": Flame::merged(before, after, self.scales, name_of),
        });
        let page = filled(PAGE, |name| match name {
            "part" => part_notices(&self.parts, &self.sampled),
            "speedup" => html! {
                @if let Some(speedup) = &self.speedup {
                    (speedup.page())
                }
            },
            "style" => style(),
            "policy" => policy(&[&SCRIPT.concat()]),
            "script" => script(&SCRIPT),
            "data" => embed(&data),
            other => unreachable!("compared.html asks for {other:?}"),
        });
        document(page)
    }
}
