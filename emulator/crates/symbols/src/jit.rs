//! Names of code that was made while its program ran: `perf-PID.map` files (the kernel's `tools/perf/Documentation/jit-interface.txt`)
//! and jitdump files (`jit-PID.dump`, see `jitdump`).
//!
//! A map has no times: of several functions at one address the one written last is taken for all executions. Of a jitdump file's
//! functions at one address, the one whose bytes were executed is taken, and of several with the same bytes the last.

use std::collections::{HashMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::check::Code;
use super::files::SymbolFiles;
use super::jitdump;

/// Largest file that is read; that of a large node program has some 10 MiB.
const MAX_BYTES: u64 = 1 << 30;
/// Bytes of a block, by which functions are indexed.
const BLOCK: u64 = 4096;
/// Limit on the blocks of all functions, 16 GiB of code: a damaged file could otherwise exhaust the host's memory.
const MAX_BLOCKS: usize = 1 << 22;
/// Folders below a given one that may hold such files.
const FOLDERS: [&str; 3] = ["", "tmp", "out"];

/// A function that was made at run time.
#[derive(Clone, Debug, Default)]
pub(super) struct Function {
    pub start: u64,
    pub size: u64,
    pub name: Vec<u8>,
    /// The function's machine code; empty where the file has none.
    pub bytes: Vec<u8>,
    /// Source lines (address, file, line), sorted by address.
    pub lines: Vec<(u64, Arc<str>, u32)>,
}

/// The code that one process made at run time, as its files describe it.
#[derive(Debug)]
pub(super) struct JitCode {
    pub files: Vec<PathBuf>,
    /// The index of the file that each function is from, and the function; in order of time.
    functions: Vec<(usize, Function)>,
    by_block: HashMap<u64, Vec<usize>>,
    /// What could not be read of the files, a sentence each.
    pub warnings: Vec<String>,
}

/// The kind of a file: a map or a jitdump file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Map,
    Dump,
}

/// True if a file of this name has names of code that was made at run time.
pub fn is_jit_file(name: &str) -> bool {
    parse_name(name).is_some()
}

/// `perf-PID.map`, `jit-PID.dump`.
fn parse_name(name: &str) -> Option<(Kind, u32)> {
    let number = |name: &str| {
        let digits = name.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| name.parse().ok()).flatten()
    };
    let inside = |front, back| name.strip_prefix(front)?.strip_suffix(back);
    let map = inside("perf-", ".map").and_then(number);
    let dump = || inside("jit-", ".dump").and_then(number);
    map.map(|pid| (Kind::Map, pid)).or_else(|| Some((Kind::Dump, dump()?)))
}

/// Depth of folders below those that a run shared, and entries of all of them: a container's root may lie in one.
const MAX_DEPTH: usize = 6;
const MAX_ENTRIES: usize = 20_000;

/// The folders in which such files of a guest may lie: a few of each folder given, and then all below those that a run shared.
fn folders(files: &SymbolFiles) -> Vec<PathBuf> {
    let near = files.folders().flat_map(|folder| FOLDERS.map(|inner| folder.join(inner)));
    let mut found: Vec<PathBuf> = near.collect();
    let shared = files.shared.iter().map(|shared| (shared.host.clone(), 0));
    let mut open: VecDeque<(PathBuf, usize)> = shared.collect();
    let mut room = MAX_ENTRIES;
    while let Some((folder, depth)) = open.pop_front() {
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        let mut entries: Vec<fs::DirEntry> = entries.take(room).collect();
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            room = room.saturating_sub(1);
            // The guest may have made links, which lead out of the folder.
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_folder && depth < MAX_DEPTH && room > 0 {
                open.push_back((entry.path(), depth + 1));
            }
        }
        if !found.contains(&folder) {
            found.push(folder);
        }
    }
    found
}

/// The files of a guest by the process id in their names; of each kind only the one in the first folder.
pub(super) fn files(of: &SymbolFiles) -> HashMap<u32, Vec<PathBuf>> {
    let mut found: HashMap<u32, Vec<PathBuf>> = HashMap::new();
    for folder in folders(of) {
        if fs::symlink_metadata(&folder).is_ok_and(|found| found.is_symlink()) {
            continue;
        }
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        let mut names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
        names.sort();
        for name in names {
            let Some((kind, pid)) = name.to_str().and_then(parse_name) else {
                continue;
            };
            let same = |path: &PathBuf| {
                let name = path.file_name().and_then(|name| name.to_str());
                name.and_then(parse_name).is_some_and(|(known, _)| known == kind)
            };
            let path = folder.join(&name);
            let of_process = found.entry(pid).or_default();
            // The guest may have made links, which lead out of the folder.
            let is_file = fs::symlink_metadata(&path).is_ok_and(|found| found.is_file());
            if is_file && !of_process.iter().any(same) {
                of_process.push(path);
            }
        }
    }
    found
}

impl JitCode {
    /// Reads the files of a process.
    pub(crate) fn read(files: &[PathBuf]) -> Self {
        let mut code = Self {
            files: files.to_vec(),
            functions: Vec::new(),
            by_block: HashMap::new(),
            warnings: Vec::new(),
        };
        for (file, path) in files.iter().enumerate() {
            let mut bad = |why: String| code.warnings.push(format!("{}: {why}", path.display()));
            let bytes = match read(path) {
                Ok(bytes) => bytes,
                Err(error) => {
                    bad(error.to_string());
                    continue;
                }
            };
            let name = path.file_name().and_then(|name| name.to_str());
            let functions = match name.and_then(parse_name) {
                Some((Kind::Dump, _)) => {
                    let (functions, error) = jitdump::functions(&bytes);
                    error.map(bad);
                    functions
                }
                _ => {
                    let (functions, skipped) = map(&bytes);
                    if skipped > 0 {
                        bad(format!(
                            "lines that were not read: {skipped} (expected START SIZE NAME, the numbers in hexadecimal)"
                        ));
                    }
                    functions
                }
            };
            code.functions.extend(functions.into_iter().map(|function| (file, function)));
        }
        let mut room = MAX_BLOCKS;
        for (index, (_, function)) in code.functions.iter().enumerate() {
            let (first, last) = (function.start / BLOCK, function.end().saturating_sub(1) / BLOCK);
            for block in (first..=last).take(room) {
                code.by_block.entry(block).or_default().push(index);
                room -= 1;
            }
        }
        if room == 0 {
            let files: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
            code.warnings.push(format!(
                "{}: expected less than 16 GiB of functions, found more: not all of them are named",
                files.join(" and ")
            ));
        }
        code
    }

    /// The function at an address when `code` was executed there: the function's number, its file's number, and the function.
    pub(crate) fn find(
        &self,
        address: u64,
        code: Option<Code>,
    ) -> Option<(usize, usize, &Function)> {
        let of_block = self.by_block.get(&(address / BLOCK))?.iter().rev();
        let holds = |at: &&usize| {
            let function = &self.functions[**at].1;
            address.wrapping_sub(function.start) < function.size
        };
        let executed = |at: &&usize| {
            let function = &self.functions[**at].1;
            let from = usize::try_from(address - function.start).unwrap_or(usize::MAX);
            let bytes = function.bytes.get(from..);
            code.is_some_and(|code| bytes.is_some_and(|bytes| code.is_at(bytes)))
        };
        let mut holding = of_block.filter(holds);
        // Code that was changed in place has the name of the last function there.
        let found = holding.clone().find(executed).or_else(|| holding.next())?;
        let (file, function) = &self.functions[*found];
        Some((*found, *file, function))
    }
}

impl Function {
    /// The address after it.
    pub(crate) fn end(&self) -> u64 {
        self.start.saturating_add(self.size)
    }
}

fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    if fs::metadata(path)?.len() > MAX_BYTES {
        return Err(std::io::Error::other("larger than 1 GiB"));
    }
    fs::read(path)
}

/// The functions of a map, whose lines are `START SIZE NAME`, and the number of lines that are not.
fn map(bytes: &[u8]) -> (Vec<Function>, usize) {
    let mut functions = Vec::new();
    let mut skipped = 0;
    for line in bytes.split(|byte| *byte == b'\n') {
        let line = line.trim_ascii();
        if line.is_empty() {
            continue;
        }
        match parse_line(line) {
            Some(function) => functions.push(function),
            None => skipped += 1,
        }
    }
    (functions, skipped)
}

fn parse_line(line: &[u8]) -> Option<Function> {
    let mut words = line.splitn(3, |byte| *byte == b' ');
    let mut number = || {
        let text = std::str::from_utf8(words.next()?).ok()?;
        u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
    };
    let (start, size) = (number()?, number()?);
    let name = words.next().unwrap_or_default().trim_ascii().to_vec();
    Some(Function { start, size, name, ..Function::default() })
}
