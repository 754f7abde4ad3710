//! `tipsim core`.

mod common;

use std::process::Stdio;

use common::{assert_error, tipsim};

fn show(args: &[&str]) -> std::process::Output {
    let show = tipsim().args(["core", "show"]).args(args).output();
    show.unwrap()
}

#[test]
fn parameters_are_set_with_and_without_the_spec_prefix() {
    for key in ["rob.entries", "core.rob.entries"] {
        let set = format!("{key}=192");
        let out = show(&["boom-4w", "--set", &set, "--format", "json"]);
        let shown: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        let rows = shown["parameters"].as_array().unwrap();
        let rob = rows.iter().find(|row| row["key"] == "rob.entries").unwrap();
        assert_eq!(rob["value"], 192);
    }
}

#[test]
fn cores_that_cannot_be_are_refused() {
    let cases = [
        ("rob.entries=97", ["rob.entries", "multiple", "97"]),
        ("core.l1d.kib=33", ["l1d.kib", "power of two", "33"]),
        (
            "decode.width=16777216",
            ["decode.width", "1 to 8", "16777216"],
        ),
        ("decode.width=three", ["decode.width", "integer", "three"]),
        ("rob.size=64", ["rob.size", "unknown", "rob"]),
    ];
    for (set, parts) in cases {
        assert_error(&show(&["boom-4w", "--set", set]), 2, &parts);
    }
}

#[test]
fn the_picture_says_the_parameters() {
    let out = show(&["mega-boom", "--set", "rob.entries=136", "--format", "svg"]);
    let svg = String::from_utf8(out.stdout).unwrap();
    assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
    for part in ["136 entries", "34 rows × 4", "TIP unit", "store queue  32"] {
        assert!(svg.contains(part), "{part}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_panic() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut show = tipsim();
    show.args(["core", "show", "boom-4w"]).stdout(writer);
    let out = show.stderr(Stdio::piped()).spawn().unwrap();
    let out = out.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&out.stderr), "");
    assert_eq!(out.status.code(), Some(141));
}
