//! Two runs as a page: what got faster or slower, and a differential flame graph.

use profile::CATEGORIES;
use serde_json::json;

use super::{STYLE, filled, part_notice, policy};
use crate::compare::{Comparison, file_now, now};
use crate::flame::{Flame, FrameKind};
use crate::markup::{embed, script};

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
            "flame": Flame::merged(before, after, name_of),
        });
        filled(PAGE, |name, out| match name {
            "part" => out.extend(self.parts.iter().map(|part| part_notice(part))),
            "style" => out.extend(STYLE),
            "policy" => out.push_str(&policy(&[&SCRIPT.concat()])),
            "script" => out.push_str(&script(&SCRIPT.concat())),
            "data" => out.push_str(&embed(&data)),
            other => unreachable!("compared.html asks for {other:?}"),
        })
    }
}
