//! The page of a fleet: nothing is wider than its place, however long the names of programs, parameters and counters are.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::common::browser::Browser;
use crate::common::{scratch, stderr};

const PROGRAM: &str =
    "the-very-long-name-of-a-program-that-somebody-made-of-all-of-its-arguments-and-of-its-input";
const COUNTERS: [&str; 3] =
    ["CACHE.L1.RD.DATA.MISS", "MEM.L2.ACCESS.PREFETCH", "BR.FETCH.F2.ADDRESS"];

/// Folder of a fleet of two programs and eight points, one of which failed with a long reason.
fn fleet() -> std::path::PathBuf {
    let folder = scratch("page-fleet");
    let write = |path: &Path, value: &Value| {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("make a folder");
        std::fs::write(path, value.to_string()).expect("write a file");
    };
    let mut tasks = serde_json::Map::new();
    for program in [PROGRAM, "b"] {
        for entries in [32, 64, 96, 128] {
            for command in
                ["true", "seq 1 300 | sort --reverse --numeric-sort > a-file-with-a-long-name"]
            {
                let task = format!("{program}+{entries}+{}", command.len());
                let failed = program == "b" && entries == 128;
                let place = folder.join(if failed { "failed" } else { "tasks" }).join(&task);
                let cycles = 123_456_789_012_u64 / entries;
                let counters: Value =
                    COUNTERS.map(|name| (name, json!(cycles / 7))).into_iter().collect();
                write(&place.join("report.json"), &json!({"counters": {"events": counters}}));
                write(&place.join("report.html"), &json!(null));
                let result = json!({
                    "status": if failed { "failed" } else { "done" },
                    "reason": format!("/a/path/without/any/space/{} is not there", "x".repeat(300)),
                    "instructions": cycles, "cycles": cycles, "elapsed_cycles": cycles, "elapsed_ms": 12_345.678, "region_instructions": cycles,
                    "ipc": 1.0, "host_seconds": 1.0, "mips": 1.0, "peak_memory_mb": 100.0, "errors": {"tip": {"instruction": 0.123}},
                    "cycle_stack": {"Execution": 0.5, "Load stall": 0.5},
                });
                write(&place.join("result.json"), &result);
                let axes = json!({"spec": program, "rob.entries": entries.to_string(), "run.command": command});
                tasks.insert(task, json!({"spec": program, "axes": axes, "set": []}));
            }
        }
    }
    let matrix = json!({"id": "1", "commit": "c".repeat(40), "retries": 1, "tasks": tasks, "asked": {"specs": {}, "tipsim": "t", "guest": "g"}});
    write(&folder.join("matrix.json"), &matrix);
    folder
}

#[test]
fn a_fleets_page_fits_at_all_widths() {
    let folder = fleet();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/fleet");
    let output = Command::new(script)
        .arg("report")
        .arg(&folder)
        .args(["--sampler", "tip", "--show", &COUNTERS.join(",")])
        .output()
        .expect("start scripts/fleet");
    assert!(output.status.success(), "{}", stderr(&output));
    let page = std::fs::read_to_string(folder.join("fleet.html")).expect("a page");
    // The page has no scripts, and its policy allows none.
    let (start, rest) = page.split_once("<meta http-equiv").expect("a policy");
    let (_, end) = rest.split_once('>').expect("the end of an element");
    let page = (start.to_owned() + end).replacen("<html ", "<html data-ready=\"true\" ", 1);
    for (width, height) in [(800, 900), (1440, 900), (2560, 1300)] {
        let seen = Browser {
            window: (width, height),
            steps: "const root = document.documentElement;
                say('page', root.scrollWidth - root.clientWidth);
                const right = (at) => at.getBoundingClientRect().right;
                const wide = [...document.querySelectorAll('section *')].filter((at) => !at.closest('.wide, svg'))
                  .filter((at) => right(at) > right(at.closest('section')) + 1);
                say('wide', wide.map((at) => at.outerHTML.slice(0, 200)));
                // What cells hold is inside of them.
                const cut = [...document.querySelectorAll('th, td')].filter((at) => at.scrollWidth > at.clientWidth + 1);
                say('cut', cut.map((at) => at.outerHTML.slice(0, 200)));
                const curves = [...document.querySelectorAll('svg.curve')];
                say('curves', curves.length);
                const outside = (svg) => [...svg.querySelectorAll('text')].filter((at) => {
                  const [own, all] = [at.getBoundingClientRect(), svg.getBoundingClientRect()];
                  return own.left < all.left || own.right > all.right || own.bottom > all.bottom || own.top < all.top;
                });
                say('outside', curves.flatMap(outside).map((at) => at.textContent));
                say('letters', Math.min(...curves.flatMap((svg) => [...svg.querySelectorAll('text')]).map((at) => at.getBoundingClientRect().height)));
                say('links', document.querySelectorAll('td.links a').length);
                const table = document.querySelector('table.all');
                say('first', [...table.querySelectorAll('td.links a')].every((at) => right(at) < right(at.closest('.wide'))));",
            ..Browser::default()
        }
        .open(&format!("page-fleet-{width}"), &page);
        assert_eq!(*seen.get("page"), 0, "at {width} pixels: {:?}", seen.get("wide"));
        for nothing in ["wide", "cut", "outside"] {
            assert_eq!(*seen.get(nothing), json!([]), "{nothing} at {width} pixels");
        }
        // Each of two programs has curves of cycles, IPC and three counters.
        assert_eq!(*seen.get("curves"), 10);
        assert_eq!(
            (seen.get("links"), seen.get("first")),
            (&json!(14), &json!(true)),
            "at {width} pixels"
        );
        assert!(seen.get("letters").as_f64() > Some(9.0), "{:?}", seen.get("letters"));
    }
}
