//! The axioms in the manual's words, against the relations without cycles in which the model has them: all global memory orders are
//! enumerated.

use std::collections::BTreeSet;

use super::*;
use crate::catalog::catalog;

/// Returns all outcomes of global memory orders that the axioms accept.
fn outcomes_of_global_orders(program: &Program) -> BTreeSet<Outcome> {
    let mut found = BTreeSet::new();
    for failed in 0..1_u32 << count_conditionals(program) {
        let events = Events::new(program, failed);
        extend(&events, program, &mut Vec::new(), &mut found);
    }
    found
}

/// Puts another operation behind those of a global order that begins so, as far as preserved program order lets it, and judges complete
/// orders.
fn extend(
    events: &Events,
    program: &Program,
    order: &mut Vec<usize>,
    found: &mut BTreeSet<Outcome>,
) {
    let count = events.events.len();
    if order.len() == count {
        found.extend(judge(events, program, order));
        return;
    }
    for next in (0..count).filter(|n| !order.contains(n)).collect::<Vec<_>>() {
        let waits = |before: usize| !order.contains(&before) && events.preserved.has(before, next);
        if (0..count).any(waits) {
            continue;
        }
        order.push(next);
        extend(events, program, order, found);
        order.pop();
    }
}

/// Returns the outcome of a global memory order; `None` if an axiom refuses it.
fn judge(events: &Events, program: &Program, order: &[usize]) -> Option<Outcome> {
    let count = events.events.len();
    let access = |n: usize| &events.events[n].access;
    let place = |n: usize| order.iter().position(|m| *m == n).expect("the order is complete");
    let stores_to = |word| {
        order
            .iter()
            .copied()
            .filter(move |n| access(*n).kind.writes() && access(*n).location == word)
    };
    // Load value axiom: the latest, in global memory order, of the stores before the load in global memory order or in program order.
    let mut source = vec![None; count];
    for load in (0..count).filter(|n| access(*n).kind.reads()) {
        let stores = stores_to(access(load).location);
        let before = |store: &usize| {
            *store != load && (place(*store) < place(load) || events.order.has(*store, load))
        };
        source[load] = stores.rev().find(before);
    }
    // Preserved program order, as far as it depends on which store a load reads.
    let preserved = events.preserved_by_sources(&source);
    let respects = |a: usize, b: usize| !preserved.has(a, b) || place(a) < place(b);
    if !(0..count).all(|a| (0..count).all(|b| respects(a, b))) {
        return None;
    }
    // Atomicity axiom: the store that is read precedes that of the pair, and no other hart's store is between them.
    for &(load, store) in &events.pairs {
        let read = source[load].map(place);
        if read.is_some_and(|read| read >= place(store)) {
            return None;
        }
        let between = |other: usize| {
            events.events[other].hart != events.events[load].hart
                && place(other) < place(store)
                && read.is_none_or(|read| place(other) > read)
        };
        if stores_to(access(load).location).any(between) {
            return None;
        }
    }
    let words = program.locations();
    let coherence: Vec<Vec<usize>> = (0..words).map(|word| stores_to(word).collect()).collect();
    events.outcome(program, &coherence, &source)
}

#[test]
fn global_memory_orders_have_the_same_outcomes() {
    let mut compared = 0;
    for program in catalog() {
        let instructions = program.harts.iter().flatten();
        let accesses = instructions.filter(|i| matches!(i, Instruction::Access(_))).count();
        // Eight operations have up to 40,320 orders.
        if accesses > 8 {
            continue;
        }
        compared += 1;
        assert_eq!(
            outcomes_of_global_orders(&program),
            allowed_outcomes(&program, Model::Rvwmo),
            "{}",
            program.name
        );
    }
    assert!(compared > 400, "{compared}");
}
