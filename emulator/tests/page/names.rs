//! Names of C++ and Rust with hundreds of letters: nothing is wider than its place, and the whole name can be had.

use super::common::browser::Browser;
use super::report;

const NAME: &str = "std::_Hashtable<std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >, std::pair<std::__cxx11::\
    basic_string<char, std::char_traits<char>, std::allocator<char> > const, unsigned long>, std::allocator<unsigned long>, \
    std::__detail::_Select1st, std::hash<int> >::_M_find_before_node(unsigned long, std::__cxx11::basic_string<char> const&, bool) const";
const SHORT: &str = "std::_Hashtable<…>::_M_find_before_node(…) const";

#[test]
fn long_names_are_shortened_and_nothing_is_wider_than_the_page() {
    let mut report = report(true, 60_000);
    let long = |name: &str| format!("{NAME}::{name}");
    for function in &mut report.functions {
        function.name = long(&function.name);
    }
    for row in &mut report.instructions {
        row.function = long(&row.function);
        row.label = format!("{}+0x1a2", row.function);
    }
    for place in report
        .verdict
        .iter_mut()
        .flat_map(|verdict| &mut verdict.places)
    {
        place.function = long(&place.function);
        place.label = format!("{}+0x1a2", place.function);
    }
    for name in &mut report.flame.names {
        if name.starts_with("0x") || name.contains('+') {
            *name = long(name);
        }
    }
    let page = report.html("");
    for (width, height) in [(800, 900), (1440, 900), (2560, 1300)] {
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
        assert_eq!(
            *seen.get("page"),
            0,
            "at {width} pixels: {:?}",
            seen.get("wide")
        );
        assert_eq!(
            *seen.get("wide"),
            serde_json::json!([]),
            "at {width} pixels"
        );
        let text = |name: &str| seen.get(name).as_str().unwrap_or_default().to_owned();
        for name in ["shown", "instruction", "chosen"] {
            assert!(text(name).contains(SHORT), "{name}: {}", text(name));
        }
        assert!(
            text("instruction").contains("+0x1a2"),
            "{}",
            text("instruction")
        );
        for name in ["title", "verdict"] {
            assert!(text(name).contains(NAME), "{name}: {}", text(name));
        }
        assert!(
            seen.get("room").as_f64() > Some(120.0),
            "{:?}",
            seen.get("room")
        );
    }
}
