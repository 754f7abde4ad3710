//! Names of code that was made while its program ran: `perf-PID.map` files (the kernel's `tools/perf/Documentation/jit-interface.txt`)
//! and jitdump files (`jit-PID.dump`, see `jitdump`).
//!
//! What cannot be told: a map has no times, so that of several functions at one address the last one written names all; of jitdump's
//! the one whose bytes were executed does, and of several with the same bytes the last.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::check::Code;
use super::jitdump;

/// Largest file that is read; that of a large node program has some 10 MiB.
const MAX_BYTES: u64 = 1 << 30;
/// Addresses are looked up by blocks of so many bytes.
const BLOCK: u64 = 4096;
/// Blocks of all functions together, which a file could make more than there is memory for: 16 GiB of code.
const MAX_BLOCKS: usize = 1 << 22;
/// Folders below a given one that may hold such files.
const FOLDERS: [&str; 3] = ["", "tmp", "out"];

/// A function that was made at run time.
#[derive(Clone, Debug, Default)]
pub(super) struct Function {
    pub start: u64,
    pub size: u64,
    pub name: Vec<u8>,
    /// Its instructions; empty where the file has none.
    pub bytes: Vec<u8>,
    /// Source lines: address, file, line; by address.
    pub lines: Vec<(u64, Arc<str>, u32)>,
}

/// What is known of one process's code.
#[derive(Debug)]
pub(super) struct JitCode {
    /// The files, and the functions that each has, in order of time.
    pub files: Vec<PathBuf>,
    functions: Vec<(usize, Function)>,
    by_block: HashMap<u64, Vec<usize>>,
    /// What is wrong with its files.
    pub warnings: Vec<String>,
}

/// Two kinds of files.
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
    map.map(|pid| (Kind::Map, pid))
        .or_else(|| Some((Kind::Dump, dump()?)))
}

/// The files below some folders by the process that they name, the preferred one of each name alone.
pub(super) fn files<'a>(folders: impl Iterator<Item = &'a PathBuf>) -> HashMap<u32, Vec<PathBuf>> {
    let mut found: HashMap<u32, Vec<PathBuf>> = HashMap::new();
    for folder in folders.flat_map(|folder| FOLDERS.map(|inner| folder.join(inner))) {
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        let mut names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
        names.sort();
        for name in names {
            let Some((kind, pid)) = name.to_str().and_then(parse_name) else {
                continue;
            };
            let same = |path: &PathBuf| {
                let name = path.file_name().and_then(|name| name.to_str());
                name.and_then(parse_name)
                    .is_some_and(|(known, _)| known == kind)
            };
            let path = folder.join(&name);
            let of_process = found.entry(pid).or_default();
            if path.is_file() && !of_process.iter().any(same) {
                of_process.push(path);
            }
        }
    }
    found
}

impl JitCode {
    /// Reads the files of a process.
    pub fn read(files: &[PathBuf]) -> Self {
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
            code.functions
                .extend(functions.into_iter().map(|function| (file, function)));
        }
        let mut room = MAX_BLOCKS;
        for (index, (_, function)) in code.functions.iter().enumerate() {
            let (first, last) = (
                function.start / BLOCK,
                function.end().saturating_sub(1) / BLOCK,
            );
            for block in (first..=last).take(room) {
                code.by_block.entry(block).or_default().push(index);
                room -= 1;
            }
        }
        if room == 0 {
            let files: Vec<String> = files
                .iter()
                .map(|path| path.display().to_string())
                .collect();
            code.warnings.push(format!(
                "{}: expected less than 16 GiB of functions, found more: not all of them are named",
                files.join(" and ")
            ));
        }
        code
    }

    /// The function that an address was of when `code` was executed there: its number, its file's, and itself.
    pub fn find(&self, address: u64, code: Option<Code>) -> Option<(usize, usize, &Function)> {
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
        // Code that its maker changed in place has the name of the last one there.
        let found = { holding.clone() }
            .find(executed)
            .or_else(|| holding.next())?;
        let (file, function) = &self.functions[*found];
        Some((*found, *file, function))
    }
}

impl Function {
    /// The address after it.
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.size)
    }
}

fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    if fs::metadata(path)?.len() > MAX_BYTES {
        return Err(std::io::Error::other("larger than 1 GiB"));
    }
    fs::read(path)
}

/// Lines of `START SIZE NAME`; how many are something else.
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
    Some(Function {
        start,
        size,
        name,
        ..Function::default()
    })
}
