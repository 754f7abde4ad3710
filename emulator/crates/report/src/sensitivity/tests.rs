use profile::synthetic::evaluation;
use profile::{Evaluation, Sampler};

use super::*;
use crate::Report;
use crate::tests::report_of;

/// The samplers of the report's tests at several periods: exact ones, and ones that are half a sample off.
fn swept() -> Evaluation {
    let mut evaluation = evaluation();
    let (right, wrong) = (evaluation.samplers[2].clone(), evaluation.samplers[1].clone());
    evaluation.samplers.clear();
    for period in [100, 1000, 10_000] {
        for random in [None, Some(1), Some(2)] {
            let schedule = Schedule { random, ..Schedule::every(period) };
            let mut one = right.clone();
            one.sampler = Sampler::new(Profiler::Tip, schedule);
            if period == 10_000 && random == Some(2) {
                one.profile = wrong.profile.clone();
            }
            one.sampler.name = format!("tip@{period}{random:?}");
            evaluation.samplers.push(one);
        }
        let mut one = wrong.clone();
        one.sampler = Sampler::new(Profiler::TipIlp, Schedule::every(period));
        one.sampler.name = format!("tip-ilp@{period}");
        evaluation.samplers.push(one);
    }
    evaluation
}

fn report() -> Report {
    report_of(&swept(), None)
}

#[test]
fn a_curve_has_a_point_per_period_and_the_range_of_its_samplers() {
    let report = report();
    let all = &report.sections.sensitivity;
    let first = &all[0];
    assert_eq!(first.process, "quickstart");
    assert_eq!(all.last().unwrap().process, "all");
    let shapes: Vec<_> =
        first.curves.iter().map(|c| (c.profiler, c.random, c.points.len())).collect();
    let (tip, ilp) = (Profiler::Tip, Profiler::TipIlp);
    assert_eq!(shapes, [(tip, false, 3), (tip, true, 3), (ilp, false, 3)]);
    assert!(first.curves[0].points.is_sorted_by_key(|p| p.period));
    assert!(first.curves[0].points.iter().all(|p| p.error.instruction == 0.0));
    let last = &first.curves[1].points[2];
    assert_eq!((last.period, last.samplers), (10_000, 2));
    let (least, mean, greatest) =
        (last.least.instruction, last.error.instruction, last.greatest.instruction);
    assert_eq!(least, 0.0);
    assert!(greatest > 0.9 && (mean - greatest / 2.0).abs() < 1e-12);
}

#[test]
fn two_periods_and_filtered_samplers_are_no_curve() {
    let mut evaluation = swept();
    evaluation.samplers.retain(|s| s.sampler.schedule.period < 10_000);
    assert!(report_of(&evaluation, None).sections.sensitivity.is_empty());
    let mut evaluation = swept();
    for result in &mut evaluation.samplers {
        result.sampler.filter.process = Some("quickstart".into());
        result.processes = Some(vec![profile::ProcessId(1)]);
    }
    assert!(report_of(&evaluation, None).sections.sensitivity.is_empty());
}

#[test]
fn the_curves_are_in_text_json_and_page() {
    let report = report();
    let text = report.text(&crate::Options::default());
    let row = text.lines().find(|line| line.trim_start().starts_with("10,000"));
    assert!(row.unwrap().contains("0.0/"), "{row:?}");
    assert!(text.lines().all(|line| line.chars().count() <= 120));
    let json = report.json();
    let point = &json["sensitivity"][0]["curves"][0]["points"][0];
    assert_eq!(point["period"], 100);
    assert_eq!(point["error"]["instruction"], 0.0);
    let page = report.html("");
    let charts = page.matches("<svg class=\"curves\" viewBox=\"0 0 440").count();
    assert_eq!(charts, 3);
    assert!(page.contains("tip random, every 10000 cycles"));
    crate::tests::page::check_nesting(&page);
}

#[test]
fn splitting_a_sample_is_judged_in_words() {
    let report = report();
    let words = split(&report.common, 1, Profiler::TipIlp, Profiler::Tip).unwrap();
    assert!(words.starts_with("tip-ilp: 90.3 %") && words.contains("(tip): 0.0 %"), "{words}");
    assert!(words.contains("is worth it here. Published: 7.2 and 1.6 %"), "{words}");
    assert_eq!(split(&report.common, 1, Profiler::Nci, Profiler::NciIlp), None);
}
