//! A page of 10,000 functions and 100 MB.

use report::{FlameNode, FrameKind, Report, SourceLine, TimedItem};
use serde_json::json;

use super::range::VIEWS;
use super::report;
use crate::common::browser::{Browser, NONCE};

const FUNCTIONS: usize = 10_000;

/// A report with so many functions, each with a listing and source lines, that its page has 100 MB. Each function has all of its time
/// in one bin.
fn large() -> Report {
    let mut report = report(false, 60_000);
    let function = report.common.functions[0].clone();
    let mut listing = report.common.listings[0].clone();
    listing.rows = listing.rows.iter().cycle().take(60).cloned().collect();
    let line = |line| SourceLine {
        file: "/home/user/program/source/file.cc".to_owned(),
        line,
        text: format!("    value[{line}] = combine(value[{line} - 1], table[index & mask]);"),
    };
    listing.source = (1..=30).map(line).collect();
    let bins = report.common.over_time.bins.len();
    report.common.over_time.cycles = vec![Vec::new(); bins];
    report.common.functions.clear();
    report.common.listings.clear();
    let (module, names) =
        (report.common.flame.lines.len() as u32, report.common.flame.names.len() as u32);
    report.common.flame.names.push("module".to_owned());
    report.common.flame.lines.push(FlameNode(
        1,
        FrameKind::Module,
        names,
        0,
        Vec::new(),
        Vec::new(),
    ));
    for n in 0..FUNCTIONS {
        let mut function = function.clone();
        function.name = format!("namespace::type::function_{n}<int, long>(int, char const*)");
        function.cycles = 1e7 / (n + 1) as f64;
        let cycles = function.cycles as u64;
        report.common.flame.names.push(function.name.clone());
        let name = names + 1 + n as u32;
        let node = FlameNode(module + 1, FrameKind::Function, name, 0, vec![cycles], Vec::new());
        report.common.flame.lines.push(node);
        let item = report.common.over_time.items.len() as u32;
        report.common.over_time.items.push(TimedItem {
            process: function.process,
            node: report.common.flame.lines.len() as u32,
            function: Some(n),
        });
        report.common.over_time.cycles[n % bins].push((item, cycles));
        report.common.functions.push(function);
        listing.function = n;
        for row in &mut listing.rows {
            row.instruction.label = format!("function_{n}+0x10");
        }
        report.common.listings.push(listing.clone());
    }
    report
}

#[test]
fn a_page_of_100_mb_opens_at_once() {
    let page = large().html("");
    assert!(page.len() > 100_000_000, "{} bytes", page.len());
    // The page says what is there when the script has come to its end, before the rest is read.
    let marked = page.replacen(
        "sectionLinks();\nrefresh();",
        "sectionLinks();\nrefresh();\nsay(\"rows\", byId('function-table').querySelectorAll('tr').length);\n\
         say(\"frames\", byId('flame-graph').children.length);\nsay(\"script\", performance.now());",
        1,
    );
    // The page's policy does not know the script that was changed.
    let changed = marked.find("say(\"rows\"").expect("the script's end");
    let tag = marked[..changed].rfind("<script>").expect("the script");
    let (before, after) = (&marked[..tag], &marked[tag + "<script>".len()..]);
    let marked = format!("{before}<script nonce=\"{NONCE}\">{after}");
    let browser = Browser { virtual_time: false, ..Browser::default() };
    let seen = browser.open("page-large", &marked);
    let ms = |name: &str| seen.get(name).as_f64().unwrap();
    println!(
        "{} MB: first paint after {:.0} ms, usable after {:.0} ms, all of it read after {:.0} ms",
        page.len() / 1_000_000,
        ms("first-paint"),
        ms("script"),
        ms("loaded"),
    );
    // Far more than it takes: the machine may have other work.
    assert!(ms("first-paint") < 10_000.0 && ms("script") < 10_000.0);
    assert!(ms("frames") > 20.0, "{:?}", seen.said);
    // Only rows in sight are elements.
    assert!((20.0..200.0).contains(&ms("rows")), "{:?}", seen.said);
}

#[test]
fn a_listing_of_a_large_page_is_read_when_it_is_asked_for() {
    let seen = Browser {
        steps: "say('before', blocks.size);
            openCode(9876, null);
            await later(200);
            say('listed', byId('listed').selectedOptions[0].text);
            say('after', blocks.size);
            say('code', byId('listing-table').textContent.includes('op'));
            byId('function-table').scrollTop = 1e9;
            byId('function-table').dispatchEvent(new Event('scroll'));
            await later(200);
            say('last', byId('function-table').textContent.includes('function_9999<'));
            say('rows', byId('function-table').querySelectorAll('tr').length);",
        ..Browser::default()
    }
    .open("page-large-listing", &large().html(""));
    assert_eq!(*seen.get("before"), json!(2), "instructions, and the first function");
    assert_eq!(*seen.get("after"), json!(3));
    assert!(seen.get("listed").as_str().unwrap().contains("function_9876<"));
    assert_eq!((seen.get("code"), seen.get("last")), (&json!(true), &json!(true)));
    assert!(seen.get("rows").as_u64().unwrap() < 200);
}

#[test]
fn a_range_of_a_large_page_has_the_functions_of_its_bins() {
    let report = large();
    let bins = report.common.over_time.bins.clone();
    assert!(bins.len() > 4, "{bins:?}");
    let steps = format!(
        "{VIEWS}
        for (const [from, to] of [[0.1, 0.3], [0.5, 0.9]]) {{
          await brushed(from, to);
          say('seen', {{
            range: chosen.range,
            first: byId('function-table').querySelector('tbody tr:not(.space)').textContent,
            count: byId('function-count').textContent,
            cycles: sum(data.functions.map((row) => cyclesOf(row, F))),
            flame: flameRoot().total,
            frames: [...document.querySelectorAll('.frame')].filter((frame) => frame.node.name.includes('function_')).length,
            scope: byId('functions').querySelector('.scope').textContent,
          }});
        }}"
    );
    let browser = Browser { steps: &steps, ..Browser::default() };
    let seen = browser.open("page-large-range", &report.html(""));
    let seen: Vec<_> =
        seen.said.iter().filter(|(name, _)| name == "seen").map(|(_, seen)| seen).collect();
    assert_eq!(seen.len(), 2);
    for seen in seen {
        let [start, end]: [u64; 2] = serde_json::from_value(seen["range"].clone()).unwrap();
        let is_in = |n: &usize| {
            let bin = bins[n % bins.len()];
            bin.0 >= start && bin.1 <= end
        };
        let inside: Vec<usize> = (0..FUNCTIONS).filter(is_in).collect();
        assert!(inside.len() > 100 && inside.len() < FUNCTIONS, "{seen}");
        let cycles: u64 = inside.iter().map(|n| 10_000_000 / (*n as u64 + 1)).sum();
        assert_eq!(seen["cycles"], json!(cycles), "{seen}");
        assert_eq!(seen["flame"], json!(cycles), "{seen}");
        let first = seen["first"].as_str().unwrap();
        assert!(first.contains(&format!("function_{}<", inside[0])), "{seen}");
        let count = seen["count"].as_str().unwrap().replace(',', "");
        assert!(count.starts_with(&format!("{} functions", inside.len())), "{seen}");
        assert!(seen["frames"].as_u64().unwrap() > 20, "{seen}");
        assert_eq!(seen["scope"], json!("of the chosen range"));
    }
}
