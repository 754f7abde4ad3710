//! The report as one page that needs nothing else: no network, no fonts, no other files.
//!
//! The page's script reads its data from JSON in `script` elements. What a reader sees first is in the first, before the script; the
//! instructions and each listing are in elements of their own behind it, which the script parses when they are asked for.

mod compared;
mod data;
mod several;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use maud::{Markup, html};
use sha2::{Digest as _, Sha256};

use super::loops::PIPELINE_SCRIPT;
use super::markup::{document, drawn, embed, filled, own, script};
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
    /// Returns the report as an HTML page; `picture` is an SVG image of the core, or nothing.
    pub fn html(&self, picture: &str) -> String {
        let title = self.common.meta.name().unwrap_or("Profile report");
        let at = |place| self.html_sections(place);
        let page = filled(PAGE, |name| match name {
            "title" => html! { (title) },
            "part" => notices(&self.common.notices()),
            "style" => style(),
            "policy" => policy(&[&SCRIPT.concat(), PIPELINE_SCRIPT]),
            "script" => script(&SCRIPT),
            "first" => at(TextPosition::First),
            "code" => at(TextPosition::Code),
            "head" => at(TextPosition::Head),
            "tail" => at(TextPosition::Tail),
            "picture" => drawn(picture),
            "data" => embed(&self.page_data()),
            "blocks" => self.blocks(),
            "text" => html! { (self.text(&Options::default())) },
            other => unreachable!("page.html asks for {other:?}"),
        });
        document(page)
    }

    /// Returns the parts of the sections of a place.
    fn html_sections(&self, place: TextPosition) -> Markup {
        html! {
            @for section in self.sections.at(place) {
                (section.page(&self.common))
            }
        }
    }
}

/// Returns what a page of runs that are not whole, or whose regions were sampled, says above everything else.
fn part_notices(parts: &[String], sampled: &[String]) -> Markup {
    let parts = parts.iter().map(|part| part_line(part));
    let lines: Vec<String> = parts.chain(sampled.iter().cloned()).collect();
    notices(&lines)
}

/// Returns lines above everything else.
fn notices(lines: &[String]) -> Markup {
    html! {
        @for line in lines {
            p class="part" role="alert" { (line) }
            "\n"
        }
    }
}

/// Returns the pages' style sheets.
fn style() -> Markup {
    html! {
        @for sheet in STYLE {
            (own(sheet))
        }
    }
}

/// What a browser may do on a page, as a second line of defence (Content Security Policy Level 3): execute these scripts, which are
/// known by their hashes, and nothing that a name of the guest brought in; and load nothing. Styles are in attributes, too, which have no
/// hashes.
fn policy(scripts: &[&str]) -> Markup {
    let hash = |script: &&str| format!("'sha256-{}'", BASE64.encode(Sha256::digest(script)));
    let hashes: Vec<String> = scripts.iter().map(hash).collect();
    html! {
        meta http-equiv="Content-Security-Policy"
            content={
                "default-src 'none'; script-src " (hashes.join(" "))
                "; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
            };
    }
}
