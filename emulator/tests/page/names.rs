//! Names of C++ and Rust with hundreds of letters: nothing is wider than its place, and the whole name can be had.

use report::{Compared, Comparison, Report, Run};

use super::report;
use crate::common::browser::Browser;

const NAME: &str = "std::_Hashtable<std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >, std::pair<std::__cxx11::\
    basic_string<char, std::char_traits<char>, std::allocator<char> > const, unsigned long>, std::allocator<unsigned long>, \
    std::__detail::_Select1st, std::hash<int> >::_M_find_before_node(unsigned long, std::__cxx11::basic_string<char> const&, bool) const";
const SHORT: &str = "std::_Hashtable<…>::_M_find_before_node(…) const";

/// A report in which all functions have such names.
fn with_long_names(count: u32) -> Report {
    let mut report = report(true, count);
    let long = |name: &str| format!("{NAME}::{name}");
    for function in &mut report.common.functions {
        function.name = long(&function.name);
    }
    for row in &mut report.common.instructions {
        row.function = long(&row.function);
        row.label = format!("{}+0x1a2", row.function);
    }
    for place in report.sections.verdict.iter_mut().flat_map(|verdict| &mut verdict.places) {
        place.function = long(&place.function);
        place.label = format!("{}+0x1a2", place.function);
    }
    for name in &mut report.common.flame.names {
        if name.starts_with("0x") || name.contains('+') {
            *name = long(name);
        }
    }
    report
}

/// Says what of a page is not in its place.
const FITS: &str = "const root = document.documentElement;
    const shown = (at) => at.getClientRects().length > 0;
    const right = (at) => at.getBoundingClientRect().right;
    const start = (at) => at.outerHTML.slice(0, 200);
    say('page', root.scrollWidth - root.clientWidth);
    // A box that scrolls may hold more than it shows; what is in no such box is inside of its section.
    const scrolls = (at) => at.closest('.scroll, #flame-graph, .time, pre, svg, details:not([open]), dialog, [hidden]');
    const wide = [...document.querySelectorAll('main *, header *, nav *')].filter((at) => shown(at) && !scrolls(at))
      .filter((at) => right(at) > right(at.closest('section, header, nav')) + 1);
    say('wide', wide.map(start));
    // Numbers and the heads of columns are whole.
    const whole = [...document.querySelectorAll('.number, thead th, .tile b, .tile span')].filter((at) => shown(at) && at.clientWidth);
    say('cut', whole.filter((at) => at.scrollWidth > at.clientWidth + 1).map(start));
    // What is cut can be had as a tooltip, but for the code itself.
    const cut = [...document.querySelectorAll('td:not(.source), .name, dd, option')].filter((at) => shown(at) && at.scrollWidth > at.clientWidth + 1);
    const told = (at) => at.title || at.querySelector('[title]') || getComputedStyle(at).overflow === 'visible';
    say('untold', cut.filter((at) => !told(at)).map(start));
    const names = [...document.querySelectorAll('table.fixed')].filter(shown).map((at) => at.querySelector('tbody tr:not(.space) td:first-child'));
    say('narrow', names.filter((at) => at && at.textContent.length > 20 && at.offsetWidth < 120).map(start));
    // Words of a plot are beside each other, and inside of its section.
    const words = [...document.querySelectorAll('main svg')].filter(shown)
      .map((svg) => [...svg.querySelectorAll('text')].filter((at) => at.getBoundingClientRect().width > 0));
    say('outside', words.flat().filter((at) => right(at) > right(at.closest('section')) + 1).map(start));
    const over = (a, b) => a.left + 1 < b.right && b.left + 1 < a.right && a.top + 2 < b.bottom && b.top + 2 < a.bottom;
    const boxes = words.map((list) => list.map((at) => [at.textContent, at.getBoundingClientRect()]));
    say('overlap', boxes.flatMap((list) => list.flatMap(([text, box], at) =>
      list.slice(at + 1).filter(([, other]) => over(box, other)).map(([other]) => [text, other]))));";
/// What `FITS` says that must be nothing.
const NOTHING: [&str; 6] = ["wide", "cut", "untold", "narrow", "outside", "overlap"];
/// Widths and heights of windows.
const WINDOWS: [(u32, u32); 3] = [(800, 900), (1440, 900), (2560, 1300)];

/// A page has everything in its place, in windows of all widths, after some steps.
fn fits(name: &str, page: &str, steps: &str) {
    for (width, height) in WINDOWS {
        let seen = Browser {
            window: (width, height),
            steps: &format!("{steps}\n{FITS}"),
            ..Browser::default()
        }
        .open(&format!("{name}-{width}"), page);
        assert_eq!(*seen.get("page"), 0, "{name}, {width} pixels");
        for nothing in NOTHING {
            assert_eq!(
                *seen.get(nothing),
                serde_json::json!([]),
                "{name}, {width} pixels: {nothing}"
            );
        }
    }
}

#[test]
fn everything_that_opens_is_in_its_place() {
    let page = with_long_names(60_000).html("");
    let open = "for (const box of document.querySelectorAll('main details')) box.open = true; await later(100);";
    fits("page-names-open", &page, open);
    let more = "chosen.profilers = byId('profilers').checked = true; chosen.process = 0; await refresh(); await later(100);";
    fits("page-names-profilers", &page, &format!("{open}\n{more}"));
    let tree = "press('t', document.body); await later(100);";
    fits("page-names-tree", &page, tree);
}

#[test]
fn pages_of_several_runs_are_in_their_place() {
    let reports = [60_000, 70_000, 80_000].map(with_long_names);
    let runs: Vec<Run> =
        reports.iter().map(|report| serde_json::from_value(report.json()).unwrap()).collect();
    let comparison = Comparison::new(&runs[0], &runs[1], &[]).unwrap();
    let page = comparison.html(&reports[0].common.flame, &reports[1].common.flame, &[]);
    fits("page-names-compared", &page, "");
    let seen = Browser {
        steps: "const cell = (id) => byId(id).querySelector('tbody tr:not(.space) td');
            say('shown', [cell('function-table').textContent, cell('instruction-table').textContent]);
            say('titles', [cell('function-table').title, cell('instruction-table').title]);",
        ..Browser::default()
    }
    .open("page-names-compared-names", &page);
    for which in 0..2 {
        let text = |name: &str| seen.get(name)[which].as_str().unwrap_or_default().to_owned();
        assert!(text("shown").contains(SHORT), "{}", text("shown"));
        assert!(text("titles").contains(NAME), "{}", text("titles"));
    }
    // This page has no scripts of its own.
    let page = Compared::new(&runs).html().replacen("<html ", "<html data-ready=\"true\" ", 1);
    let (start, rest) = page.split_once("<meta http-equiv").expect("a policy");
    let (_, end) = rest.split_once('>').expect("the end of an element");
    fits("page-names-several", &(start.to_owned() + end), "");
}

#[test]
fn long_names_are_shortened_and_nothing_is_wider_than_the_page() {
    let report = with_long_names(60_000);
    let page = report.html("");
    for (width, height) in WINDOWS {
        let seen = Browser {
            window: (width, height),
            steps: "const root = document.documentElement;
                say('page', root.scrollWidth - root.clientWidth);
                // A box that scrolls may hold more than it shows; what is in no such box is inside of its section.
                const scrolls = (at) => at.closest('.scroll, #flame-graph, .time, pre, svg, details:not([open]), dialog, [hidden]');
                const wide = [...document.querySelectorAll('main *')].filter((at) => !scrolls(at) && at.getClientRects().length)
                  .filter((at) => at.getBoundingClientRect().right > at.closest('section').getBoundingClientRect().right + 1);
                say('wide', wide.map((at) => at.outerHTML.slice(0, 200)));
                const cell = byId('function-table').querySelector('tbody tr:not(.space) td');
                say('shown', cell.textContent);
                say('title', cell.title);
                const instruction = byId('instruction-table').querySelector('tbody tr:not(.space) td');
                say('instruction', instruction.textContent);
                say('room', Math.min(cell.offsetWidth, instruction.offsetWidth));
                say('verdict', byId('verdict').textContent.includes('_Select1st') ? 'long' : byId('verdict').querySelector('a').title);
                say('chosen', byId('listed').selectedOptions[0].textContent);",
            ..Browser::default()
        }
        .open(&format!("page-names-{width}"), &page);
        assert_eq!(*seen.get("page"), 0, "at {width} pixels: {:?}", seen.get("wide"));
        assert_eq!(*seen.get("wide"), serde_json::json!([]), "at {width} pixels");
        let text = |name: &str| seen.get(name).as_str().unwrap_or_default().to_owned();
        for name in ["shown", "instruction", "chosen"] {
            assert!(text(name).contains(SHORT), "{name}: {}", text(name));
        }
        assert!(text("instruction").contains("+0x1a2"), "{}", text("instruction"));
        for name in ["title", "verdict"] {
            assert!(text(name).contains(NAME), "{name}: {}", text(name));
        }
        assert!(seen.get("room").as_f64() > Some(120.0), "{:?}", seen.get("room"));
    }
}
