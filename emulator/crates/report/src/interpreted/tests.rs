use profile::synthetic::{QUICKSTART, evaluation};

use super::*;
use crate::tests::report_of;
use crate::{Answer, explain};

fn sum(samples: u64) -> SampleSum {
    SampleSum { samples, cycles: samples as f64 * 10.0, squares: samples as f64 * 100.0 }
}

/// A process with `<module>`, `work` and a function of a hostile name.
fn sampled() -> Evaluation {
    let mut evaluation = evaluation();
    let function = |name: &str, line| ScriptFunction {
        name: name.into(),
        file: "/home/me/a b/prog.py".into(),
        line,
    };
    let time =
        |function, own, total| ScriptFunctionTime { function, own: sum(own), total: sum(total) };
    let line = |function, line, own| ScriptLineTime { function, line, own: sum(own) };
    evaluation.scripts = Scripts {
        functions: vec![
            function("<module>", 1),
            function("Class.work", 10),
            function("<script>\u{1b}[2Jalert(1)", 20),
            function("", 0),
        ],
        processes: vec![ScriptProcess {
            process: QUICKSTART,
            whole: sum(1000),
            functions: vec![
                time(0, 20, 950),
                time(1, 500, 900),
                time(2, 400, 400),
                time(3, 30, 30),
            ],
            lines: vec![
                line(0, 2, 20),
                line(1, 12, 100),
                line(1, 13, 400),
                line(2, 0, 400),
                line(3, 0, 30),
            ],
        }],
    };
    assert_eq!(evaluation.check(), Ok(()));
    evaluation
}

#[test]
fn functions_have_shares_with_errors() {
    let report = report_of(&sampled(), None);
    let [process] = &report.sections.interpreted[..] else {
        panic!("{:?}", report.sections.interpreted);
    };
    assert_eq!(report.common.processes[process.process].name, "quickstart");
    assert_eq!(process.samples, 1000);
    assert!((process.outside - 0.05).abs() < 1e-9);
    let work = &process.functions[0];
    assert_eq!((&*work.name, work.line, work.samples), ("Class.work", 10, 500));
    assert!((work.share - 0.5).abs() < 1e-9 && (work.total - 0.9).abs() < 1e-9);
    assert!((work.share_error - 1.96 * (0.25f64 / 1000.0).sqrt()).abs() < 1e-9);
    assert!((work.cycles - 0.5 * report.common.processes[process.process].cycles).abs() < 1e-6);
    let lines: Vec<u32> = work.lines.iter().map(|line| line.line).collect();
    assert_eq!(lines, [13, 12]);
    assert_eq!(process.functions[2].name, "(other functions)");
    let verdict = report.sections.verdict.iter().find(|of| of.command == "quickstart");
    let words: Vec<String> =
        verdict.unwrap().interpreted.iter().map(InterpretedFunction::in_words).collect();
    assert_eq!(words.len(), 2, "{words:?}");
    assert_eq!(
        words[0],
        "50.0 % ± 3.1 %  Python function Class.work (prog.py:10), most at line 13: 40.0 % ± 3.0 %; \
         90.0 % ± 1.9 % with what it calls"
    );
    let json = report.json();
    assert_eq!(json["interpreted"][0]["functions"][0]["name"], "Class.work");
}

#[test]
fn text_and_page_have_them_and_obey_no_name() {
    let report = report_of(&sampled(), None);
    let text = report.text(&Options::default());
    assert!(text.contains("Python functions of quickstart"), "{text}");
    assert!(text.contains("Class.work") && text.contains("prog.py:13"), "{text}");
    assert!(!text.contains('\u{1b}'));
    for line in text.lines() {
        assert!(line.chars().count() <= 120, "{line}");
    }
    let page = report.html("");
    assert!(page.contains("<section id=\"interpreted\">"));
    assert!(!page.contains("<script>\u{1b}") && !page.contains("alert(1)</title>"));
    assert!(page.contains("&lt;script&gt;"));
    let without = report_of(&evaluation(), None);
    assert!(!without.html("").contains("id=\"interpreted\""));
    assert!(without.sections.interpreted.is_empty());
}

#[test]
fn each_number_is_explained() {
    let json = report_of(&sampled(), None).json();
    for path in [
        "interpreted.0.samples",
        "interpreted.0.outside",
        "interpreted.0.functions.0.share",
        "interpreted.0.functions.0.total_error",
        "interpreted.0.functions.0.lines.0.share",
    ] {
        match explain(&json, path).unwrap() {
            Answer::Explained(list) => {
                assert!(!list[0].meaning.contains("no rule"), "{path}: {list:?}");
            }
            Answer::Many(list) => panic!("{path}: {list:?}"),
        }
    }
}

#[test]
fn what_does_not_hold_together_is_refused() {
    let mut evaluation = sampled();
    evaluation.scripts.processes[0].functions[3].function = 4;
    assert!(evaluation.check().unwrap_err().contains("scripts"));
    let mut evaluation = sampled();
    evaluation.scripts.processes[0].whole.cycles = f64::NAN;
    assert!(evaluation.check().is_err());
    let mut evaluation = sampled();
    evaluation.scripts.processes[0].process = profile::ProcessId(3);
    assert!(evaluation.check().is_err());
}
