use super::*;
use crate::compare::scaling;
use crate::speedup::{MemoryTraffic, SpeedupRow};

/// Returns the stack of so many harts with these cycles of the first components.
fn stack(harts: usize, cycles: &[u64]) -> SpeedupStack {
    let whole: u64 = cycles.iter().sum();
    let given = cycles.iter().copied().chain(std::iter::repeat(0));
    let components = SpeedupComponent::ALL.into_iter().zip(given).map(|(component, cycles)| {
        SpeedupRow { component, cycles, share: cycles as f64 / whole.max(1) as f64 }
    });
    SpeedupStack { harts, cycles: whole, components: components.collect(), memory: None }
}

#[test]
fn the_sentence_names_what_takes_most() {
    let one = stack(1, &[800_000, 50_000, 150_000]);
    let four = stack(4, &[820_000, 0, 150_000, 220_000, 0, 0, 10_000, 0, 0, 400_000]);
    let found = Speedup::new(&one, &four).unwrap();
    assert_eq!(
        found.verdict,
        "4 harts are 2.50 times as fast as one: 1.00 of the 4 is lost to waiting for locks, 0.55 to lines of other harts and 0.05 to user-mode work; \
         0.12 of the 4 is gained in loads from the shared cache."
    );
    let mut text = String::new();
    found.write(&mut text).unwrap();
    assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
    let row = "waiting for locks                0.000       0.400      +0.400   +1.000";
    assert!(text.contains(row), "{text}");
    assert!(text.contains("speed-up: with what is lost, 4 harts"), "{text}");
    assert!(found.page().into_string().contains("2.50 times as fast"));
}

#[test]
fn what_loads_wait_in_memory_is_told_beside_it() {
    let [mut one, mut four] = [stack(1, &[900]), stack(4, &[1000, 0, 500])];
    assert_eq!(Speedup::new(&one, &four).unwrap().memory_wait, None);
    one.memory = Some(MemoryTraffic { bytes: 640, loads: 10, waited: 25 });
    four.memory = Some(MemoryTraffic { bytes: 640, loads: 10, waited: 333 });
    let found = Speedup::new(&one, &four).unwrap();
    let words = "memory: a line that a load reads waits 2.5 cycles in its queues on one hart, 33.3 on 4 harts";
    let mut text = String::new();
    found.write(&mut text).unwrap();
    assert!(text.ends_with(&format!("{words}\n")), "{text}");
    assert!(found.page().into_string().contains(words));
    // The one hart has no loads from memory.
    one.memory = Some(MemoryTraffic { bytes: 0, loads: 0, waited: 0 });
    assert_eq!(Speedup::new(&one, &four).unwrap().memory_wait, Some([0.0, 33.3]));
}

#[test]
fn only_one_hart_is_compared_with_several() {
    let (one, four) = (stack(1, &[100]), stack(4, &[400]));
    assert!(Speedup::new(&one, &four).is_some());
    for (before, after) in [(&one, &one), (&four, &four), (&four, &one), (&stack(1, &[]), &four)] {
        assert!(Speedup::new(before, after).is_none());
    }
    assert!(Speedup::new(&one, &stack(4, &[])).is_none());
}

#[test]
fn the_speedup_and_what_is_lost_are_the_number_of_harts() {
    let mut random = 0x2012_u64;
    let mut cycles = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        random >> (24 + random % 32)
    };
    for harts in (2..9).cycle().take(200) {
        let [one, several] =
            [1, harts].map(|harts| stack(harts, &SpeedupComponent::ALL.map(|_| cycles())));
        let found = Speedup::new(&one, &several).unwrap();
        // In whole cycles, the parts add up exactly.
        let more =
            found.components.iter().map(|row| i128::from(row.after) - i128::from(row.before));
        assert_eq!(i128::from(found.before) + more.sum::<i128>(), i128::from(several.cycles));
        let lost: f64 = found.components.iter().map(|row| row.lost).sum();
        let rounding = 1e-12 * (found.speedup + harts as f64);
        assert!((lost - found.lost).abs() <= rounding, "{lost} {}", found.lost);
        assert!((found.speedup + lost - harts as f64).abs() <= rounding, "{lost} {harts}");
    }
}

#[test]
fn runs_on_more_and_more_harts_are_columns() {
    let one = stack(1, &[900_000, 0, 100_000]);
    let several =
        [stack(2, &[900_000, 0, 100_000, 200_000]), stack(4, &[1_000_000, 0, 100_000, 900_000])];
    let runs: Vec<Speedup> = several.iter().filter_map(|run| Speedup::new(&one, run)).collect();
    let mut text = String::new();
    scaling::write(&runs, &mut text).unwrap();
    let lines: Vec<Vec<&str>> =
        text.lines().map(|line| line.split_whitespace().collect()).collect();
    let expected = [
        "",
        "Speed-up, and what is lost to, in harts 2 harts 4 harts",
        "speed-up 1.667 2.000",
        "base 0.000 0.200",
        "lines of other harts 0.333 1.800",
        "all 2.000 4.000",
    ];
    assert_eq!(lines, expected.map(|line| line.split_whitespace().collect::<Vec<_>>()));
    let page = scaling::page(&runs).into_string();
    assert!(page.contains("1.800") && page.contains("4 harts"), "{page}");
    assert_eq!(scaling::page(&[]).into_string(), "");
}
