//! Every executed instruction of the hottest functions, in order of address.

use std::collections::BTreeSet;
use std::sync::Arc;

use symbols::{BuildId, ModuleId, Source, Sources, Symbols};

use super::gather::{Gathered, Rows};
use super::rows::{Function, RowBuilder, Selection};
use super::tables::{InstructionRow, Listing, ListingRow, SourceLine, StaleSource};

/// Functions with a listing.
const MAX_LISTINGS: usize = 40;
/// Lines of all listings together.
const MAX_LINES: usize = 12_000;
/// Source lines of a listing, about; and how many are shown around one that has instructions.
const MAX_SOURCE_LINES: usize = 2_000;
const AROUND: u32 = 3;
/// Source files that are looked at for whether they were changed.
const MAX_FILES: usize = 5_000;

pub(super) fn listings(
    selection: &Selection<'_>,
    gathered: &Gathered<'_>,
    functions: &[Function],
    focus: &[usize],
    stale: &[(ModuleId, StaleSource)],
    mut sources: Sources<'_>,
) -> Vec<Listing> {
    let mut builder = RowBuilder::new(selection);
    let mut room = MAX_LINES;
    let mut out = Vec::new();
    let in_focus = |index: &usize| focus.contains(&functions[*index].row.process);
    let (first, rest): (Vec<usize>, Vec<usize>) = (0..functions.len()).partition(in_focus);
    let first_count = first.len().min(MAX_LISTINGS - rest.len().min(MAX_LISTINGS / 3));
    let wanted = first[..first_count].iter().chain(&rest).take(MAX_LISTINGS);
    let mut last: Option<(usize, Rows)> = None;
    for &index in wanted {
        let function = &functions[index];
        let known = last.take().filter(|(process, _)| *process == function.process);
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
        // All code of a large library without symbols is one function.
        let Some(left) = room.checked_sub(members.len()) else {
            continue;
        };
        room = left;
        let mut next = None;
        let mut source = SourceLines::default();
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
            at.program_line().into_iter().for_each(|at| source.add(at));
            list.push(ListingRow { leader: rows.leaders[row] == here.1, gap, instruction });
        }
        let module = selection.symbols.function(function.id).module;
        let shown = source.read(&mut sources, selection.symbols.module(module).build_id.as_ref());
        let is_shown = |stale: &&StaleSource| shown.iter().any(|line| line.file == stale.file);
        let of_module = stale.iter().filter(|(of, _)| *of == module).map(|(_, stale)| stale);
        out.push(Listing {
            function: index,
            rows: list,
            stale: of_module.filter(is_shown).cloned().collect(),
            source: shown,
        });
    }
    out
}

/// Returns the source files, with their modules, that program lines of `symbols` name and whose copy on the host is not what
/// was compiled, or may not be.
pub(super) fn stale(symbols: &Symbols, sources: &Sources<'_>) -> Vec<(ModuleId, StaleSource)> {
    let mut known: BTreeSet<(ModuleId, &str)> = BTreeSet::new();
    let mut found = Vec::new();
    for at in &symbols.locations {
        let Some(source) = at.program_line() else {
            continue;
        };
        if known.len() >= MAX_FILES || !known.insert((at.module, &source.file)) {
            continue;
        }
        if let Some(why) = sources.stale(&source.file, symbols.module(at.module)) {
            let file = source.file.to_string();
            found.push((at.module, StaleSource { file, why }));
        }
    }
    found
}

/// Source lines of a listing: those with instructions, and those around them.
#[derive(Default)]
struct SourceLines {
    files: Vec<Arc<str>>,
    /// The lines: index into `files`, and line.
    lines: BTreeSet<(usize, u32)>,
}

impl SourceLines {
    fn add(&mut self, source: &Source) {
        let known = self.files.iter().position(|file| *file == source.file);
        let file = known.unwrap_or_else(|| {
            self.files.push(source.file.clone());
            self.files.len() - 1
        });
        let around = source.line.saturating_sub(AROUND).max(1)..=source.line.saturating_add(AROUND);
        if source.line > 0 && self.lines.len() < MAX_SOURCE_LINES {
            self.lines.extend(around.map(|line| (file, line)));
        }
    }

    /// Returns the lines whose source files are found, by file in order of appearance. `build_id` is that of the module which
    /// was compiled from the files.
    fn read(self, sources: &mut Sources<'_>, build_id: Option<&BuildId>) -> Vec<SourceLine> {
        let lines = self.lines.into_iter().filter_map(|(file, line)| {
            let file = self.files[file].clone();
            let at = Source { file, line };
            let text = sources.line(&at, build_id)?.to_owned();
            let file = at.file.to_string();
            Some(SourceLine { file, line, text })
        });
        lines.collect()
    }
}

/// Adds the weights of `other` to those of `row`, which has the same address.
fn add(row: &mut InstructionRow, other: &InstructionRow) {
    row.cycles += other.cycles;
    row.share += other.share;
    row.store_queue += other.store_queue;
    for (sum, part) in row.stack.iter_mut().zip(other.stack) {
        *sum += part;
    }
    for (sum, part) in row.shares.iter_mut().zip(&other.shares) {
        *sum += part;
    }
}
