//! Every executed instruction of the hottest functions, in order of address.

use symbols::Sources;

use super::gather::{Gathered, Rows};
use super::rows::{Function, RowBuilder, Selection};
use super::tables::{InstructionRow, Listing, ListingRow};

/// Functions with a listing.
const MAX_LISTINGS: usize = 40;
/// Lines of all listings together.
const MAX_LINES: usize = 12_000;

pub(super) fn listings(
    selection: &Selection<'_>,
    gathered: &Gathered<'_>,
    functions: &[Function],
    focus: &[usize],
    mut sources: Sources<'_>,
) -> Vec<Listing> {
    let mut builder = RowBuilder::new(selection);
    let mut lines = 0;
    let mut out = Vec::new();
    let in_focus = |index: &usize| focus.contains(&functions[*index].row.process);
    let (first, rest): (Vec<usize>, Vec<usize>) = (0..functions.len()).partition(in_focus);
    let first_count = first
        .len()
        .min(MAX_LISTINGS - rest.len().min(MAX_LISTINGS / 3));
    let wanted = first[..first_count].iter().chain(&rest).take(MAX_LISTINGS);
    let mut last: Option<(usize, Rows)> = None;
    for &index in wanted {
        let function = &functions[index];
        let known = last
            .take()
            .filter(|(process, _)| *process == function.process);
        let known = known.unwrap_or_else(|| (function.process, gathered.rows(function.process)));
        let (_, rows) = last.insert(known);
        let rows = &*rows;
        let fact = |row: usize| &selection.evaluation.static_info[rows.insts[row].0 as usize];
        let mut members: Vec<usize> = (0..rows.insts.len())
            .filter(|row| {
                let at = &selection.symbols.locations[rows.places[*row] as usize];
                at.function == function.id
            })
            .collect();
        // A fetch that faulted has no encoding: it comes after the instruction that was then executed.
        let faulted = |row: usize| fact(row).raw == 0;
        members.sort_by_key(|&row| (fact(row).space, fact(row).pc, faulted(row), rows.insts[row]));
        lines += members.len();
        if lines > MAX_LINES {
            break;
        }
        let mut next = None;
        let mut line = None;
        let mut list: Vec<ListingRow> = Vec::with_capacity(members.len());
        let mut last_at = None;
        for &row in &members {
            let here = (fact(row).space, fact(row).pc);
            let instruction = builder.instruction(rows, function.process, row);
            if let (true, true, Some(last)) = (faulted(row), last_at == Some(here), list.last_mut())
            {
                add(&mut last.instruction, &instruction);
                continue;
            }
            last_at = Some(here);
            let gap = next.is_some_and(|next| next != here);
            next = Some((here.0, here.1.wrapping_add(fact(row).len.into())));
            let at = &selection.symbols.locations[rows.places[row] as usize];
            let before = std::mem::replace(&mut line, at.source.as_ref());
            let changed = at.source.as_ref().filter(|_| line != before);
            list.push(ListingRow {
                leader: rows.leaders[row] == here.1,
                gap,
                source_text: changed.and_then(|s| sources.line(s)).map(str::to_owned),
                instruction,
            });
        }
        out.push(Listing {
            function: index,
            rows: list,
        });
    }
    out
}

/// Adds the weights of a row to those of another of the same address.
fn add(row: &mut InstructionRow, other: &InstructionRow) {
    row.cycles += other.cycles;
    row.share += other.share;
    for (sum, part) in row.stack.iter_mut().zip(other.stack) {
        *sum += part;
    }
    for (sum, part) in row.shares.iter_mut().zip(&other.shares) {
        *sum += part;
    }
}
