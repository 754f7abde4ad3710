//! The functions of a module, sorted by address.

use std::borrow::Cow;

use object::elf::{SHF_ALLOC, SHF_EXECINSTR, STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE};
use object::{Object, ObjectSection, ObjectSymbol, SectionFlags, SymbolFlags, SymbolKind};

use super::elf::{self, Elf};
use super::go::GoTable;

/// A function as its module names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry<'data> {
    pub start: u64,
    pub end: u64,
    /// Mangled name; `None` if only unwind tables or calls tell the function.
    pub name: Option<Cow<'data, str>>,
}

/// Address ranges that do not overlap, in order.
pub(super) struct Table<'data>(Vec<Entry<'data>>);

/// Ranks the symbols at one address: the greatest is used.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    is_function: bool,
    sized: bool,
    /// Aliases for internal use start with underscores: `malloc` rather than `__libc_malloc`.
    fewer_underscores: std::cmp::Reverse<usize>,
    global: bool,
    strong: bool,
    shorter: std::cmp::Reverse<usize>,
}

struct Candidate<'data> {
    start: u64,
    size: u64,
    limit: u64,
    name: Cow<'data, str>,
    rank: Rank,
}

impl Candidate<'_> {
    /// Gives the symbol the size of its range in the unwind tables, if there is one. Otherwise a label of a stripped file would
    /// extend over all functions after it that have lost their names.
    fn take_size_from(&mut self, ranges: &[(u64, u64)]) -> bool {
        let after = ranges.partition_point(|&(start, _)| start <= self.start);
        let range = ranges[..after].last();
        self.size = range.map_or(0, |(_, end)| end.saturating_sub(self.start));
        self.size != 0
    }
}

impl<'data> Table<'data> {
    /// The table from the symbol table of the file or of its debug file, or from the dynamic one, Go's own, the unwind tables and the calls
    /// in the code if the file is stripped.
    pub(crate) fn build(
        elf: &Elf<'data>,
        debug: Option<&Elf<'data>>,
        go: Option<&GoTable<'data>>,
    ) -> Self {
        let sections = code_sections(elf);
        let mut found = candidates(elf.object.symbols(), &sections);
        if let (true, Some(debug)) = (found.is_empty(), debug) {
            found = candidates(debug.object.symbols(), &sections);
            // `.gnu_debugdata` does not repeat the dynamic symbols.
            found.extend(candidates(elf.object.dynamic_symbols(), &sections));
        }
        let stripped = found.is_empty();
        let mut frames = Vec::new();
        if stripped {
            frames = super::frames::functions(elf);
            found = candidates(elf.object.dynamic_symbols(), &sections);
            found.retain_mut(|label| label.size != 0 || label.take_size_from(&frames));
            found.extend(go.into_iter().flat_map(|go| go_functions(go, &sections)));
        }
        // Best of each address first; names last so that the order never depends on the file's.
        found.sort_by(|a, b| {
            a.start.cmp(&b.start).then(b.rank.cmp(&a.rank)).then(a.name.cmp(&b.name))
        });
        found.dedup_by_key(|c| c.start);
        let mut table = Self(non_overlapping(found));
        if stripped {
            table.fill_gaps(frames);
            table.split_rest(&super::calls::functions(elf));
        }
        table
    }

    /// The function at an address.
    pub(crate) fn find(&self, address: u64) -> Option<&Entry<'data>> {
        let after = self.0.partition_point(|entry| entry.start <= address);
        self.0[..after].last().filter(|entry| address < entry.end)
    }

    /// Adds ranges that no entry covers.
    fn fill_gaps(&mut self, ranges: Vec<(u64, u64)>) {
        let mut extra: Vec<Entry<'data>> = ranges
            .into_iter()
            .filter(|&(start, end)| {
                let before = self.0.partition_point(|e| e.end <= start);
                self.0.get(before).is_none_or(|e| e.start >= end)
            })
            .map(|(start, end)| Entry { start, end, name: None })
            .collect();
        self.0.append(&mut extra);
        self.0.sort_by_key(|e| e.start);
    }

    /// Parts what no entry covers by these ranges, which are in order.
    fn split_rest(&mut self, ranges: &[(u64, u64)]) {
        let mut extra = Vec::new();
        for &(start, end) in ranges {
            let mut from = start;
            let first = self.0.partition_point(|entry| entry.end <= start);
            let inside = self.0[first..].iter().take_while(|entry| entry.start < end);
            for entry in inside {
                extra.push((from, entry.start));
                from = entry.end.max(from);
            }
            extra.push((from, end));
        }
        let extra = extra.into_iter().filter(|(start, end)| start < end);
        self.0.extend(extra.map(|(start, end)| Entry { start, end, name: None }));
        self.0.sort_by_key(|entry| entry.start);
    }
}

/// `(start, end)` of the sections that hold instructions.
fn code_sections(elf: &Elf<'_>) -> Vec<(u64, u64)> {
    elf.object
        .sections()
        .filter(|s| match s.flags() {
            SectionFlags::Elf { sh_flags, .. } => {
                let wanted = SHF_EXECINSTR.0 | SHF_ALLOC.0;
                sh_flags.0 & wanted == wanted
            }
            _ => false,
        })
        .map(|s| (s.address(), s.address().saturating_add(s.size())))
        .collect()
}

fn candidates<'data: 'file, 'file>(
    symbols: impl Iterator<Item = object::Symbol<'data, 'file>>,
    sections: &[(u64, u64)],
) -> Vec<Candidate<'data>> {
    symbols
        .filter(|s| {
            s.is_definition() || s.kind() == SymbolKind::Label || s.kind() == SymbolKind::Unknown
        })
        .filter_map(|s| {
            let SymbolFlags::Elf { st_info, .. } = s.flags() else {
                return None;
            };
            let kind = st_info.st_type();
            let is_function = kind == STT_FUNC || kind == STT_GNU_IFUNC;
            let name = elf::name_of(&s)?;
            // Assembly labels count, the assembler's own do not: `.L…`, and `$x`, `$d` which mark
            // code and data (RISC-V ELF psABI, "Mapping Symbol").
            if !is_function && kind != STT_NOTYPE
                || name.is_empty()
                || !is_function && name.starts_with(['$', '\u{1}'])
                || name.starts_with(".L")
            {
                return None;
            }
            let start = s.address();
            let &(_, limit) = sections.iter().find(|(from, to)| (*from..*to).contains(&start))?;
            Some(Candidate {
                start,
                size: s.size(),
                limit,
                rank: Rank {
                    is_function,
                    sized: s.size() != 0,
                    global: s.is_global(),
                    strong: !s.is_weak(),
                    fewer_underscores: std::cmp::Reverse(
                        name.len() - name.trim_start_matches('_').len(),
                    ),
                    shorter: std::cmp::Reverse(name.len()),
                },
                name,
            })
        })
        .collect()
}

/// Functions from a Go program's own table.
fn go_functions<'data>(
    table: &GoTable<'data>,
    sections: &[(u64, u64)],
) -> impl Iterator<Item = Candidate<'data>> {
    let functions = table.functions().into_iter();
    functions.filter_map(|(start, end, name)| {
        let inside = |(from, to): &&(u64, u64)| (*from..*to).contains(&start);
        let &(_, limit) = sections.iter().find(inside)?;
        let rank = Rank {
            is_function: true,
            sized: true,
            fewer_underscores: std::cmp::Reverse(0),
            global: true,
            strong: true,
            shorter: std::cmp::Reverse(name.len()),
        };
        Some(Candidate { start, size: end - start, limit, name: name.into(), rank })
    })
}

/// Sized symbols keep their size (cut where the next begins), others reach to the next symbol.
/// Labels inside a sized function are part of it.
fn non_overlapping(found: Vec<Candidate<'_>>) -> Vec<Entry<'_>> {
    let mut entries: Vec<Entry<'_>> = Vec::with_capacity(found.len());
    let mut sized_until = 0;
    for candidate in found {
        let inside = candidate.start < sized_until;
        if inside && !candidate.rank.is_function {
            continue;
        }
        if let Some(last) = entries.last_mut() {
            last.end = last.end.min(candidate.start);
        }
        let end = match candidate.size {
            0 => candidate.limit,
            size => candidate.start.saturating_add(size).min(candidate.limit),
        };
        if candidate.size != 0 {
            sized_until = end;
        }
        entries.push(Entry { start: candidate.start, end, name: Some(candidate.name) });
    }
    entries
}
