//! The report as one page that needs nothing else: no network, no fonts, no other files.
//!
//! The page's script reads its data from JSON in `script` elements. What a reader sees first is in the first, before the script; the
//! instructions and each listing are in elements of their own behind it, which the script parses when they are asked for.

mod compared;
mod data;
mod several;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::loops::PIPELINE_SCRIPT;
use super::markup::{embed, escape, script};
use super::model::part_line;
use super::options::Options;
use super::report::Report;
use super::section::TextPosition;

const PAGE: &str = include_str!("html/page.html");
const STYLE: [&str; 4] = [
    include_str!("html/style.css"),
    include_str!("html/flame.css"),
    include_str!("html/sensitivity.css"),
    include_str!("html/pipeline.css"),
];
/// The page's script, in the order of its parts.
const SCRIPT: [&str; 13] = [
    include_str!("html/base.js"),
    include_str!("html/table.js"),
    include_str!("html/flame.js"),
    include_str!("html/calltree.js"),
    include_str!("html/timeline.js"),
    include_str!("html/range.js"),
    include_str!("html/functions.js"),
    include_str!("html/code.js"),
    include_str!("html/threads.js"),
    include_str!("html/processes.js"),
    include_str!("html/stacks.js"),
    include_str!("html/errors.js"),
    include_str!("html/main.js"),
];

impl Report {
    /// The report as an HTML page; `picture` is an SVG image of the core, or nothing.
    pub fn html(&self, picture: &str) -> String {
        let title =
            self.common.meta.get("name").and_then(Value::as_str).unwrap_or("Profile report");
        filled(PAGE, |name, out| match name {
            "title" => out.push_str(&escape(title)),
            "part" => out.extend(self.common.notices().iter().map(|line| notice(line))),
            "style" => out.extend(STYLE),
            "policy" => out.push_str(&policy(&[&SCRIPT.concat(), PIPELINE_SCRIPT])),
            "script" => out.push_str(&script(&SCRIPT.concat())),
            "first" => out.extend(self.html_sections(TextPosition::First)),
            "code" => out.extend(self.html_sections(TextPosition::Code)),
            "head" => out.extend(self.html_sections(TextPosition::Head)),
            "tail" => out.extend(self.html_sections(TextPosition::Tail)),
            "picture" => out.push_str(picture),
            "data" => out.push_str(&embed(&self.page_data())),
            "blocks" => self.blocks(out),
            "text" => out.push_str(&escape(&self.text(&Options::default()))),
            other => unreachable!("page.html asks for {other:?}"),
        })
    }

    /// Returns the parts of the sections of a place.
    fn html_sections(&self, place: TextPosition) -> impl Iterator<Item = String> {
        self.sections.at(place).map(|section| section.page(&self.common))
    }
}

/// What a page of a part of a run says above everything else.
pub(super) fn part_notice(part: &str) -> String {
    notice(&part_line(part))
}

/// A line above everything else.
fn notice(line: &str) -> String {
    format!("<p class=\"part\" role=\"alert\">{}</p>\n", escape(line))
}

/// A page with a value for each `{{name}}` in it; no value is searched for further ones.
fn filled(page: &str, mut value: impl FnMut(&str, &mut String)) -> String {
    let mut out = String::new();
    let mut rest = page;
    while let Some((before, tail)) = rest.split_once("{{") {
        out.push_str(before);
        let (name, tail) = tail.split_once("}}").unwrap_or((tail, ""));
        value(name, &mut out);
        rest = tail;
    }
    out.push_str(rest);
    out
}

/// What a browser may do on a page, as a second line of defence (Content Security Policy Level 3): execute these scripts, which are
/// known by their hashes, and nothing that a name of the guest brought in; and load nothing. Styles are in attributes, too, which have no
/// hashes.
fn policy(scripts: &[&str]) -> String {
    let hash = |script: &&str| format!("'sha256-{}'", BASE64.encode(Sha256::digest(script)));
    let hashes: Vec<String> = scripts.iter().map(hash).collect();
    format!(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src {}; \
         style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'\">",
        hashes.join(" ")
    )
}
