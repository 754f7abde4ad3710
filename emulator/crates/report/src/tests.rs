use std::fs;
use std::path::Path;

use commit_trace::InstId;
use guest_samples::{GuestProfile, GuestSample};
use profile::synthetic::{QUICKSTART, evaluation, sampled_evaluation};
use profile::{
    CycleStacks, Evaluation, Level, Profile, Profiler, Thread, ThreadId, UNITS_PER_CYCLE,
};
use serde_json::json;
use symbols::synthetic::guest_root;
use symbols::{SymbolFiles, Symbolizer};
use tempfile::TempDir;

use super::*;

mod detail;
mod elapsed;
mod flame;
pub(crate) mod page;
mod speedup;
mod thread_path;
mod waiting;

/// Names of the code of the synthetic evaluation, by files that are there as long as the folder is.
pub(crate) fn symbolizer() -> (TempDir, Symbolizer) {
    let root = guest_root();
    let files = SymbolFiles { roots: vec![root.path().to_owned()], ..SymbolFiles::default() };
    (root, Symbolizer::new(files))
}

/// The inputs of a report of an evaluation alone.
pub(crate) fn inputs<'a>(
    evaluation: &'a Evaluation,
    symbolizer: &'a Symbolizer,
) -> ReportInputs<'a> {
    let meta = json!({ "name": "a <small> run", "core": { "preset": "boom-4w" } });
    ReportInputs::new(evaluation, symbolizer, &|raw, _| format!("op{raw:x}\ta0, a1"), meta)
}

pub(crate) fn report_of(evaluation: &Evaluation, guest: Option<&GuestProfile>) -> Report {
    let (_root, symbolizer) = symbolizer();
    let guests = guest.map_or(&[][..], std::slice::from_ref);
    Report::build(ReportInputs { guests, ..inputs(evaluation, &symbolizer) })
}

/// Compares with a golden file; `BLESS=1` writes it. Cargo executes tests in their package's folder.
fn golden(name: &str, text: &str) {
    let path = Path::new("tests/golden").join(name);
    if std::env::var_os("BLESS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(expected == text, "{} differs (BLESS=1 accepts):\n{text}", path.display());
}

#[test]
fn text_is_as_blessed_and_fits() {
    let text = report_of(&evaluation(), None).text(&Options::default());
    for line in text.lines() {
        assert!(line.chars().count() <= 120, "{line}");
    }
    golden("report.txt", &text);
}

#[test]
fn a_sampled_run_has_margins() {
    let evaluation = sampled_evaluation();
    evaluation.check().unwrap();
    let report = report_of(&evaluation, None);
    let text = report.text(&Options::default());
    for line in text.lines() {
        assert!(line.chars().count() <= 120, "{line}");
    }
    golden("sampled.txt", &text);
    let json = serde_json::to_value(&report).unwrap();
    let hot = &json["instructions"][0];
    // Four subsamples have 1500 of 2750 cycles each, the other four 500 of 1750: by Student's t with seven degrees of freedom.
    let share = 8.0 / 18.0;
    let residual = 1500.0 - share * 2750.0;
    let error = f64::sqrt(8.0 * residual * residual / 7.0 / 8.0) / (18_000.0 / 8.0);
    // Some 3 / 200 of the region may have been in no unit.
    let unseen = 1.0 - 0.05f64.powf(1.0 / 200.0);
    let margin = hot["margins"]["share"]["within_95"].as_f64().unwrap();
    let expected = f64::hypot(2.3646 * error, share * unseen);
    assert!((margin / expected - 1.0).abs() < 1e-3, "{margin} {expected}");
    // 1500 and 500 cycles of as many instructions.
    let cycles = hot["margins"]["cycles"]["within_95"].as_f64().unwrap();
    let error = f64::sqrt(8.0 * 500.0 * 500.0 / 7.0 / 8.0) * 8.0;
    let expected = f64::hypot(2.3646 * error, 8000.0 * unseen);
    assert!((cycles / expected - 1.0).abs() < 1e-3, "{cycles} {expected}");
    // TIP by instruction: it gives instructions 0, 2 and 8 of the Oracle's 8000, 2500 and 1500 cycles too much, of as many in all. Without a subsample,
    // 13/16 or 15/16 of instruction 0 is left, and 7/8 of all else.
    let without = |of_0: f64| {
        let all = |cycles: f64, first: f64| 7.0 / 8.0 * (cycles - first) + of_0 * first;
        let (truth, tip) = (all(18_000.0, 8000.0), all(18_000.0, 9000.0));
        let more = |oracle: f64, found: f64, left: f64| (found / tip - oracle / truth) * left;
        let rest = more(2500.0, 3000.0, 7.0 / 8.0) + more(1500.0, 2000.0, 7.0 / 8.0);
        let equal = more(3000.0, 3000.0, 7.0 / 8.0) + more(1000.0, 1000.0, 7.0 / 8.0);
        more(8000.0, 9000.0, of_0) + rest + equal.max(0.0)
    };
    let error = 7f64.sqrt() * (without(13.0 / 16.0) - without(15.0 / 16.0)).abs() / 2.0;
    let quickstart = json["processes"].as_array().unwrap();
    let quickstart = quickstart.iter().find(|process| process["name"] == "quickstart").unwrap();
    let tip = &quickstart["errors"][0]["instruction"];
    let expected = f64::hypot(2.3646 * error, tip["error"].as_f64().unwrap() * unseen);
    let margin = tip["margin"]["within_95"].as_f64().unwrap();
    assert!((margin / expected - 1.0).abs() < 0.02, "{margin} {expected}");
    assert!(quickstart["errors"][2]["instruction"].get("margin").is_none(), "not by subsample");
    let shares = &hot["share_margins"];
    assert!(shares["0"]["within_95"].as_f64().unwrap() > 0.0 && shares["2"].is_null(), "{shares}");
    let plain = serde_json::to_value(report_of(&profile::synthetic::evaluation(), None)).unwrap();
    assert!(plain["instructions"][0].get("margins").is_none());
    assert!(plain["instructions"][0].get("share_margins").is_none());
    assert!(plain["processes"][1]["errors"][0]["instruction"].get("margin").is_none());
    assert!(plain["processes"][0].get("stack_margins").is_none());
}

#[test]
fn errors_are_half_the_distance_per_level() {
    let errors = report_of(&evaluation(), None).errors_json();
    let of = |level: &str, profiler: &str| errors["quickstart"][level][profiler].as_f64().unwrap();
    // Per mille of 18,000 cycles; TIP is wrong by what it gives too much: 1000 + 500 + 500.
    assert!((of("instruction", "tip") - 2000.0 / 18_000.0).abs() < 1e-9);
    // The loop's block gets 13,000 instead of 12,500; the kernel's block is right.
    assert!((of("block", "tip") - 500.0 / 18_000.0).abs() < 1e-9);
    // `length` gets 16,000 instead of 15,750.
    assert!((of("function", "tip") - 250.0 / 18_000.0).abs() < 1e-9);
    assert!(of("instruction", "software") > 0.9);
    assert!((of("block", "software") - 750.0 / 18_000.0).abs() < 1e-9);
    assert!(errors["quickstart"]["block"].get("guest-tip").is_none());
    assert_eq!(errors["sh"]["function"]["tip"], json!(0.25));
    assert!(errors["all"]["instruction"]["tip"].as_f64().unwrap() > 0.1);
    assert!(errors.get("boot").is_none(), "no cycles, no errors");
}

#[test]
fn a_profiler_that_says_what_the_oracle_says_has_no_error() {
    let report = report_of(&evaluation(), None);
    let column = report.common.columns.iter().position(|c| c.name == "tip-fast").unwrap();
    for process in &report.common.processes {
        for level in Level::ALL {
            assert_eq!(process.errors[column].unwrap().get(level).error, 0.0);
        }
    }
    assert!(!report.common.columns[column].primary);
}

fn guest() -> GuestProfile {
    let sample = |pid, period, addresses: &[u64]| GuestSample {
        pid,
        tid: pid,
        period,
        cycle: Some(100),
        privilege: Some(0),
        addresses: addresses.to_vec(),
    };
    GuestProfile {
        event: "tip".to_owned(),
        samples: vec![
            sample(42, 900, &[0x10150, 0x10154, 0x10158]),
            sample(42, 800, &[0xffff_ffff_8000_1000]),
            sample(42, 300, &[0x6666]),
            sample(99, 500, &[0x10150]),
        ],
        ..GuestProfile::default()
    }
}

#[test]
fn samples_from_the_guest_are_a_column() {
    let report = report_of(&evaluation(), Some(&guest()));
    let column = report.common.columns.last().unwrap();
    assert_eq!((column.name.as_str(), column.samples), ("guest-tip", 4));
    assert_eq!(column.unmatched_cycles, 800.0);
    let errors = report.errors_json();
    // 300 + 300 + 300 of 2000 fall on user code, 800 on the kernel, 300 nowhere.
    let error = errors["quickstart"]["function"]["guest-tip"].as_f64().unwrap();
    let correct = 900.0 / 2000.0 + 2000.0 / 18_000.0;
    assert!((error - (1.0 - correct)).abs() < 1e-9, "{error}");
    assert!(errors["sh"]["function"].get("guest-tip").is_none());
    assert!(errors["all"]["function"].get("guest-tip").is_none(), "sh was not sampled");
    assert_eq!(report.common.warnings.len(), 3, "{:?}", report.common.warnings);
}

#[test]
fn a_profile_from_the_guest_is_beside_the_model_of_its_rule() {
    let report = report_of(&evaluation(), Some(&guest()));
    let [own] = &report.sections.in_guest[..] else {
        panic!("{:?}", report.sections.in_guest);
    };
    assert_eq!((own.rule, own.samples), (Profiler::Tip, 3.0));
    assert_eq!(report.common.processes[own.process].name, "quickstart");
    assert_eq!(report.common.columns[own.model].profiler, Some(Profiler::Tip));
    let errors = own.errors.function;
    let column = &report.common.processes[own.process].errors[own.column];
    assert_eq!(errors.guest, column.unwrap().function);
    assert!(errors.between.error > 0.3 && errors.between.sampling > 0.0);
    let text = report.text(&Options::default());
    assert!(text.contains("by the host's model of the same rule"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
    assert!(report.html("").contains("<h2>In the guest</h2>"));
    assert_eq!(report.json()["in_guest"][0]["rule"], "tip");
    // A rule without a sampler of the host is a column alone.
    let mut other = guest();
    other.heuristic = 3;
    let report = report_of(&evaluation(), Some(&other));
    assert_eq!(report.common.columns.last().unwrap().name, "guest-nci-ilp");
    assert!(report.sections.in_guest.iter().all(|own| own.rule == Profiler::NciIlp));
}

#[test]
fn a_user_mode_profile_is_compared_with_user_mode() {
    let mut guest = guest();
    guest.exclude_kernel = true;
    guest.exclude_machine = true;
    guest.samples.truncate(1);
    let errors = report_of(&evaluation(), Some(&guest)).errors_json();
    let error = errors["quickstart"]["function"]["guest-tip"].as_f64().unwrap();
    assert!((error - 250.0 / 16_000.0).abs() < 1e-9, "{error}");
}

#[test]
fn processes_of_one_name_are_told_apart() {
    let mut evaluation = evaluation();
    for process in &mut evaluation.processes[1..] {
        process.name = "all".to_owned();
    }
    let errors = report_of(&evaluation, None).errors_json();
    let names: Vec<&String> = errors.as_object().unwrap().keys().collect();
    assert_eq!(names, ["all", "all?-42", "all?-43"]);
    evaluation.processes[2].pid = Some(42);
    evaluation.processes[2].generation = 1;
    let errors = report_of(&evaluation, None).errors_json();
    assert!(errors.get("all?-42.0").is_some() && errors.get("all?-42.1").is_some());
}

#[test]
fn an_empty_evaluation_is_an_empty_report() {
    let mut empty = evaluation();
    empty.oracle = Profile::new(UNITS_PER_CYCLE);
    empty.stacks = CycleStacks::default();
    empty.samplers.iter_mut().for_each(|s| s.profile = Profile::new(UNITS_PER_CYCLE));
    let report = report_of(&empty, None);
    assert_eq!(report.common.processes.len(), 1);
    assert!(report.text(&Options::default()).contains("all"));
    assert!(report.html("").contains("</html>"));
}

#[test]
fn cycle_stacks_and_listings() {
    let report = report_of(&evaluation(), None);
    let quickstart = &report.common.processes[1];
    assert_eq!((quickstart.name.as_str(), quickstart.class), ("quickstart", "flush"));
    assert!((quickstart.stack.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    let listing = &report.common.listings[0];
    assert_eq!(report.common.functions[listing.function].name, "length");
    let shape: Vec<(&str, bool, bool)> =
        listing.rows.iter().map(|r| (&*r.instruction.pc, r.leader, r.gap)).collect();
    assert_eq!(shape[0], ("10150", true, false));
    assert_eq!(shape[5], ("1015e", true, false));
    assert_eq!(listing.rows[2].instruction.inlined, ["square", "sum_of_squares"]);
    assert_eq!(report.json()["functions"][0]["name"], json!("length"));
}

/// All code of a library without symbols is one function, larger than all listings together.
#[test]
fn a_function_that_is_too_large_leaves_the_others_their_listings() {
    let mut evaluation = evaluation();
    let units = evaluation.oracle.units_per_cycle();
    let first = evaluation.static_info.len() as u32;
    for id in first..first + 13_000 {
        let mut info = evaluation.static_info[0];
        info.id = InstId(id);
        info.pc = 0x4000_0000 + 4 * u64::from(id);
        evaluation.static_info.push(info);
        evaluation.oracle.add(QUICKSTART, InstId(id), 2 * units);
    }
    let report = report_of(&evaluation, None);
    assert_eq!(report.common.functions[0].name, "[unknown]");
    let listed: Vec<&str> = report
        .common
        .listings
        .iter()
        .map(|listing| &*report.common.functions[listing.function].name)
        .collect();
    assert!(listed.contains(&"length"), "{listed:?}");
    assert!(!listed.contains(&"[unknown]"), "{listed:?}");
}

#[test]
fn threads_of_one_name_are_one_row_of_every_report() {
    let mut evaluation = evaluation();
    let thread = |(id, tid, name, cycles): (u32, u32, &str, u64)| {
        let mut thread = Thread::new(ThreadId(id), QUICKSTART, tid, 0, name.to_owned());
        thread.cycles = cycles;
        thread
    };
    let passing = (2..40).map(|id| (id, 100 + id, "<passing>", 50));
    let threads = [(0, 100, "quickstart", 9000), (1, 101, "idle", 0)];
    evaluation.threads = threads.into_iter().chain(passing).map(thread).collect();
    let report = report_of(&evaluation, None);
    let rows: Vec<_> =
        report.sections.threads.iter().map(|row| (&*row.name, row.count, row.cycles)).collect();
    assert_eq!(rows, [("quickstart", 1, 9000.0), ("<passing>", 38, 1900.0)]);
    let text = report.text(&Options::default());
    let line = text.lines().find(|line| line.contains("<passing>")).unwrap();
    assert!(line.contains("1,900") && line.ends_with("102 103 104 105 106 107 …"), "{line}");
    let page = report.html("");
    assert!(page.contains("<td>quickstart</td><td>&lt;passing&gt;</td><td>1,900</td>"), "{page}");
    assert_eq!(json!(report)["threads"][1]["count"], 38);
}

#[test]
fn processes_of_one_command_are_one_row() {
    let mut evaluation = evaluation();
    for process in &mut evaluation.processes {
        if process.name == "sh" {
            process.name = "quickstart".into();
        }
    }
    let report = report_of(&evaluation, None);
    let both = report.common.commands.iter().find(|row| row.name == "quickstart").unwrap();
    assert_eq!((both.count, both.members.len()), (2, 2));
    let members = both.members.iter().map(|&at| report.common.processes[at].cycles);
    assert!((both.cycles - members.sum::<f64>()).abs() < 1e-6);
    let text = report.text(&Options::default());
    assert!(text.contains("\nquickstart (2)  "), "{text}");
    assert_eq!(both.short_title(24), "quickstart (2 processes)");
    // The verdict is on both together.
    let verdict = text.lines().find(|line| line.starts_with("quickstart (2 processes): "));
    let cycles = format!("{:.1} M cycles", both.cycles / 1e6);
    assert!(verdict.is_some_and(|line| line.contains(&cycles)), "{text}");
    assert!(text.contains("is the most expensive of the 2 processes of quickstart"), "{text}");
    let json = report.json();
    assert_eq!(json["commands"][0]["members"], json!([1, 2]));
    assert_eq!(json["processes"][1]["command"], "quickstart");
}

#[test]
fn elapsed_time_comes_first() {
    let mut report = report_of(&evaluation(), None);
    assert_eq!(report.common.totals.elapsed, None);
    let meta = json!({"regions": {"cycles": 36_734_211}, "core": {"clock": {"mhz": 1600}}});
    report.common.totals.elapsed = RunDescription::from(meta).elapsed();
    let text = report.text(&Options::default());
    assert!(text.contains("\n36,734,211 cycles elapsed, 22.959 ms\n"), "{text}");
}
