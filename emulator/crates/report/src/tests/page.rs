//! The page is well formed and gives the guest no say in it.

use super::*;

/// Elements without an end tag (HTML standard, "void elements").
const VOID: [&str; 4] = ["meta", "input", "br", "link"];

/// Checks that tags nest. Enough for a page whose markup is ours; scripts and styles are skipped as a
/// browser skips them.
pub(crate) fn check_nesting(page: &str) {
    let mut open: Vec<String> = Vec::new();
    let mut rest = page;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        if rest.starts_with('!') {
            continue;
        }
        let end = rest.find('>').expect("every tag ends");
        let tag = &rest[..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "</{name}>");
            continue;
        }
        let name = tag.split([' ', '\n']).next().unwrap();
        assert!(name.chars().all(|c| c.is_ascii_alphanumeric()) && !name.is_empty(), "<{tag}>");
        if VOID.contains(&name) {
            continue;
        }
        if name == "script" || name == "style" {
            let close = format!("</{name}>");
            let end = rest.find(&close).expect("raw text ends");
            rest = &rest[end + close.len()..];
            continue;
        }
        open.push(name.to_owned());
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn the_page_is_well_formed_and_stands_alone() {
    let page = report_of(&evaluation(), None).html("");
    check_nesting(&page);
    assert!(page.contains("<title>a &lt;small&gt; run</title>"));
    assert!(!page.contains("{{"));
    for outside in ["http://", "https://", "src=", "@import", "url("] {
        let found = page.replace("http://www.w3.org/2000/svg", "");
        assert!(!found.contains(outside), "{outside}");
    }
}

#[test]
fn the_guest_cannot_write_markup() {
    let mut evaluation = evaluation();
    let evil = "</script><script>alert(1)</script><!--";
    evaluation.processes[1].name = evil.to_owned();
    evaluation.processes[1].mappings[0].path = format!("/x/{evil}{{{{data}}}}");
    let page = report_of(&evaluation, None).html("");
    check_nesting(&page);
    assert!(!page.contains("<script>alert") && !page.contains("<!--"));
    // Data, script, instructions, and a listing for each function with one.
    let listings = report_of(&evaluation, None).common.listings.len();
    assert_eq!(page.matches("</script>").count(), 3 + listings);
}

#[test]
fn the_data_is_json() {
    let page = report_of(&evaluation(), Some(&guest())).html("");
    let (_, data) = page.split_once("id=\"data\">").unwrap();
    let (data, _) = data.split_once("</script>").unwrap();
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    let names = data["names"]["function"].as_array().unwrap();
    assert_eq!(data["functions"][0].as_array().unwrap().len(), names.len());
    let shares = names.iter().position(|name| name == "shares").unwrap();
    assert_eq!(data["functions"][0][shares].as_array().unwrap().len(), 3, "primary columns only");
    let (_, instructions) = page.split_once("id=\"instruction-data\">").unwrap();
    let (instructions, _) = instructions.split_once("</script>").unwrap();
    let instructions: serde_json::Value = serde_json::from_str(instructions).unwrap();
    assert_eq!(instructions["rows"].as_array().unwrap().len(), 13);
}
