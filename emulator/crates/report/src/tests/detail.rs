//! The parts that only an evaluation in detail has: slots, events, disagreements in words.

use commit_trace::synthetic;
use profile::{Component, Evaluator, Level, Region, Sampler, Schedule};

use super::*;

/// A synthetic stream, sampled in every cycle.
fn report() -> Report {
    let words: Vec<u32> = (0..20_000u32).map(|n| n.wrapping_mul(0x9e37_79b9)).collect();
    let samplers = [Profiler::Tip, Profiler::Nci, Profiler::Dispatch]
        .map(|p| Sampler::new(p, Schedule::every(1)));
    let mut evaluator = Evaluator::new(&samplers, Region::Whole).in_detail(4);
    synthetic::batches(&words, 4).iter().for_each(|batch| evaluator.batch(batch).unwrap());
    report_of(&evaluator.finish(), None)
}

#[test]
fn text_in_detail_is_as_blessed_and_fits() {
    let text = report().text(&Options::default());
    for line in text.lines() {
        assert!(line.chars().count() <= 120, "{line}");
    }
    golden("detail.txt", &text);
}

#[test]
fn shares_of_slots_and_of_events_add_up() {
    let report = report();
    let tree = report.sections.top_down.as_ref().unwrap();
    for row in &tree.processes {
        let cycles = report.common.processes[row.process].cycles;
        assert!((row.slots as f64 - 4.0 * cycles).abs() < 1e-3, "{}", row.name);
        let roots: f64 =
            row.shares.iter().filter(|(path, _)| !path.contains('.')).map(|(_, share)| share).sum();
        assert!((roots - 1.0).abs() < 1e-9 || row.slots == 0, "{}: {roots}", row.name);
        for path in &row.closer {
            let node = tree.nodes.iter().find(|node| node.path == *path).unwrap();
            assert!(row.shares[path] > node.threshold.unwrap());
            assert!(node.parent().is_none_or(|parent| row.closer.contains(&parent)));
        }
    }
    let of_functions: u64 = tree.functions.iter().map(|row| row.slots).sum();
    assert!(
        of_functions <= tree.processes[0].slots && of_functions > tree.processes[0].slots * 9 / 10
    );
    let tea = report.sections.tea.as_ref().unwrap();
    for row in &tea.processes {
        assert!((row.stack.values().sum::<f64>() - 1.0).abs() < 1e-9);
        // Sampled in every cycle, TEA is the reference; what names other instructions is not.
        for level in Level::ALL {
            assert_eq!(*row.errors["tea"].get(level), 0.0);
        }
        assert!(row.errors["nci-tea"].instruction > 0.0);
        let error = report.common.processes[row.process].errors[1].unwrap().instruction.error;
        assert!(row.errors["nci-tea"].instruction >= error, "events can only tell more apart");
    }
    for row in &tea.instructions {
        assert_eq!(
            row.stack.keys().collect::<Vec<_>>(),
            row.stacks["tea"].keys().collect::<Vec<_>>()
        );
    }
}

#[test]
fn sentences_name_what_was_charged_and_what_was_meant() {
    let report = report();
    assert!(!report.common.disagreements.is_empty());
    for row in &report.common.disagreements {
        assert_ne!(
            report.common.columns[row.column].profiler,
            Some(Profiler::Tip),
            "it is the Oracle here"
        );
        assert!(
            row.words.contains(&row.named.label) && row.words.contains(&row.truth.label),
            "{}",
            row.words
        );
    }
    let flush = report
        .common
        .disagreements
        .iter()
        .find(|row| row.component == Component::Flush && row.column == 1);
    assert!(flush.unwrap().words.starts_with("NCI charges `"), "{flush:?}");
    assert!(flush.unwrap().words.contains("for the flush of `"), "{flush:?}");
}

#[test]
fn the_page_has_the_parts() {
    let page = report().html("");
    super::page::check_nesting(&page);
    let (_, data) = page.split_once("id=\"data\">").unwrap();
    let data: serde_json::Value =
        serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap();
    assert_eq!(data["top_down"]["nodes"].as_array().unwrap().len(), 23);
    assert!(data["tea"]["instructions"][0]["stack"].is_object());
    let words = data["disagreements"][0]["words"].as_u64().unwrap() as usize;
    assert!(data["strings"][words].as_str().unwrap().contains(" charges "));
}

#[test]
fn bins_of_time_add_up_to_functions_and_nodes() {
    let report = report();
    let over_time = &report.common.over_time;
    assert!(over_time.bins.len() > 1, "{:?}", over_time.bins);
    let mut sums = vec![0; over_time.items.len()];
    for (item, cycles) in over_time.cycles.iter().flatten() {
        sums[*item as usize] += cycles;
    }
    // Each item is right to half a cycle.
    let check = |name: &str, whole: f64, is_in: &dyn Fn(&TimedItem) -> bool| {
        let own = || over_time.items.iter().zip(&sums).filter(|(item, _)| is_in(item));
        let sum: u64 = own().map(|(_, cycles)| cycles).sum();
        let room = 0.5 * own().count() as f64 + 8.0;
        assert!((sum as f64 - whole).abs() <= room, "{name}: {sum} of {whole}, to within {room}");
    };
    for (index, function) in report.common.functions.iter().enumerate() {
        let is_in = |item: &TimedItem| item.function == Some(index);
        check(&function.name, function.cycles, &is_in);
    }
    for (index, node) in report.common.flame.lines.iter().enumerate() {
        let whole = node.4.iter().sum::<u64>() as f64;
        let is_in = |item: &TimedItem| item.node as usize == index + 1;
        check("a node", whole, &is_in);
    }
    for (index, process) in report.common.processes.iter().enumerate().skip(1) {
        check(&process.name, process.cycles, &|item| item.process == index);
    }
}
