//! Debug information that lies in files of its own: what stripping took out of a program (`.build-id`, `.gnu_debuglink`),
//! what dwz shares between files (`.gnu_debugaltlink`, `.debug_sup`), and what was never linked (`.dwo`, `.dwp`).

use std::borrow::Cow;
use std::cell::RefCell;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use object::Object;

use super::check::{Opened, Wanted};
use super::elf::{self, Elf};
use super::files::resolve_in;
use super::{BuildId, Symbolizer};

/// Looks for the parts of one module.
pub(super) struct DebugFiles<'a> {
    pub symbolizer: &'a Symbolizer,
    /// The module's path in the guest.
    pub guest: &'a str,
    /// The module's file on the host.
    pub file: &'a Path,
    /// Sentences on what was not found, each of which names the file to hand in.
    missing: RefCell<Vec<String>>,
    /// Sentences on what is not as exact as it could be.
    notes: RefCell<Vec<String>>,
    /// Why servers did not give what they were asked for.
    answers: RefCell<Vec<String>>,
}

/// The file that a file shares debug information with, by name and build ID.
struct Supplementary<'data> {
    name: Cow<'data, [u8]>,
    id: BuildId,
}

impl<'a> DebugFiles<'a> {
    pub(crate) fn new(symbolizer: &'a Symbolizer, guest: &'a str, file: &'a Path) -> Self {
        Self {
            symbolizer,
            guest,
            file,
            missing: RefCell::default(),
            notes: RefCell::default(),
            answers: RefCell::default(),
        }
    }

    pub(crate) fn missing(&self, what: String) {
        let mut missing = self.missing.borrow_mut();
        if !missing.contains(&what) {
            missing.push(what);
        }
    }

    pub(crate) fn note(&self, what: &str) {
        let mut notes = self.notes.borrow_mut();
        if !notes.iter().any(|note| note == what) {
            notes.push(what.to_owned());
        }
    }

    /// Returns the messages about missing debug files, then the other notes.
    pub(crate) fn into_messages(self) -> (Vec<String>, Vec<String>) {
        (self.missing.into_inner(), self.notes.into_inner())
    }

    /// Returns the debug file of a stripped file, if there is one.
    pub(crate) fn debug_file(&self, elf: &Elf<'_>) -> Option<Opened> {
        let id = elf.build_id();
        if let Some(id) = &id {
            let wanted = Wanted { build_id: Some(id), code: Vec::new() };
            let places = self.symbolizer.files.debug_files(id);
            // A look into every file, if it comes to that.
            let scanned =
                std::iter::once_with(|| self.symbolizer.index().with_build_id(id).cloned());
            let scanned = scanned.flatten().filter(|path| path != self.file);
            let asked = std::iter::once_with(|| self.ask(id)).flatten();
            let mut files = places.into_iter().chain(scanned).chain(asked);
            if let Some(found) = files.find_map(|path| wanted.open(&path, false).ok()) {
                return Some(found);
            }
        }
        let (name, crc) = elf.object.gnu_debuglink().ok().flatten()?;
        let mut refused = Vec::new();
        // A name, not a path: a program chooses it as it likes.
        let name = Path::new(OsStr::from_bytes(name)).file_name()?.as_bytes();
        for path in self.candidate_paths(name) {
            let Ok(bytes) = elf::read(&path) else {
                continue;
            };
            let found = crc32fast::hash(&bytes);
            if found == crc && Elf::parse(&bytes).is_ok() {
                return Some(Opened { path, bytes });
            }
            refused
                .push(format!("{} has checksum {found:08x}, expected {crc:08x}", path.display()));
        }
        if id.is_some() && elf.has_no_symbols() && refused.is_empty() {
            // The build ID says more.
            return None;
        }
        let of_id = id.map_or(String::new(), |id| format!(" (build ID {id})"));
        self.missing(missing(
            "names and source lines",
            &format!("{}{of_id}", shown(name)),
            &refused,
        ));
        None
    }

    /// The file that `elf` shares debug information with, if it does with one. Its name may be relative to that of the debug
    /// file, if `elf` is one.
    pub(crate) fn supplementary(&self, elf: &Elf<'_>, debug: Option<&Path>) -> Option<Opened> {
        let Supplementary { name, id } = supplementary(elf)?;
        let folder = debug.and_then(Path::parent);
        let beside = folder.map(|folder| folder.join(OsStr::from_bytes(&name)));
        let by_id = self.symbolizer.files.debug_files(&id).into_iter().chain(beside);
        let scanned = || self.symbolizer.index().with_build_id(&id).cloned();
        let elsewhere =
            std::iter::once_with(|| scanned().into_iter().chain(self.candidate_paths(&name)));
        let asked = std::iter::once_with(|| self.ask(&id)).flatten();
        let mut refused = Vec::new();
        for path in by_id.chain(elsewhere.flatten()).chain(asked) {
            let Ok(bytes) = elf::read(&path) else {
                continue;
            };
            let found = Elf::parse(&bytes).ok().and_then(|elf| own_id(&elf));
            if found.as_ref() == Some(&id) {
                return Some(Opened { path, bytes });
            }
            let found = found.map_or("none".to_owned(), |id| id.to_string());
            refused.push(format!("{} has build ID {found}", path.display()));
        }
        self.missing(missing(
            "inlined functions, and some names and lines",
            &format!("{} (build ID {id})", shown(&name)),
            &refused,
        ));
        None
    }

    /// Asks servers for the debug file of a build ID. The kernel and the firmware are the guest's own: no server has them.
    fn ask(&self, id: &BuildId) -> Option<PathBuf> {
        if self.guest.starts_with('[') {
            return None;
        }
        let mut answers = self.symbolizer.files.servers.iter().map(|s| s.debug_file(id));
        answers.find_map(|answer| answer.map_err(|why| self.answers.borrow_mut().push(why)).ok())
    }

    /// Returns why servers did not give what they were asked for: clauses to end a sentence with, each with its semicolon.
    pub(crate) fn answers(&self) -> String {
        let answers = self.answers.borrow();
        answers.iter().map(|why| format!("; {why}")).collect()
    }

    /// Returns the paths at which a `.dwo` file may be.
    pub(crate) fn split_files(&self, folder: &[u8], name: &[u8]) -> Vec<PathBuf> {
        let name = Path::new(OsStr::from_bytes(name));
        let compiled = Path::new(OsStr::from_bytes(folder)).join(name);
        let mut found = self.candidate_paths(compiled.as_os_str().as_bytes());
        found.extend(self.candidate_paths(name.as_os_str().as_bytes()));
        found
    }

    /// Returns the paths at which a package of `.dwo` files may be: it is called like the program, or like the program's debug
    /// file.
    pub(crate) fn packages(&self, debug: Option<&Path>) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for file in [Some(self.file), debug, Some(Path::new(self.guest))] {
            let Some(file) = file else { continue };
            let mut longer = file.as_os_str().to_owned();
            longer.push(".dwp");
            found.extend([PathBuf::from(longer), file.with_extension("dwp")]);
        }
        let named = found.clone();
        for path in named {
            found.extend(self.candidate_paths(path.file_name().unwrap_or_default().as_bytes()));
        }
        found.retain(|path| path.is_file());
        found.sort();
        found.dedup();
        found
    }

    /// Returns the paths at which GDB looks for a file that another file names, and those below the given folders by its name.
    fn candidate_paths(&self, name: &[u8]) -> Vec<PathBuf> {
        let path = Path::new(OsStr::from_bytes(name));
        let beside = self.file.parent().unwrap_or(Path::new("."));
        let mut found = vec![beside.join(path), beside.join(".debug").join(path)];
        let folder = Path::new(self.guest).parent().unwrap_or(Path::new("/"));
        let inside = folder.strip_prefix("/").unwrap_or(folder);
        for root in self.symbolizer.files.folders() {
            for at in [
                path.to_owned(),
                inside.join(path),
                inside.join(".debug").join(path),
                Path::new("usr/lib/debug").join(path.strip_prefix("/").unwrap_or(path)),
                Path::new("usr/lib/debug").join(inside).join(path),
            ] {
                found.extend(resolve_in(root, &at));
            }
        }
        found.extend_from_slice(self.symbolizer.index().named(&path.to_string_lossy()));
        found.retain(|path| path.is_file());
        found
    }
}

/// Returns the sentence on a part that was not found.
pub(super) fn missing(what: &str, file: &str, refused: &[String]) -> String {
    let mut text = format!("{what} are in {file}: not found");
    if !refused.is_empty() {
        text = format!("{text} ({})", refused.join("; "));
    }
    text + ", hand in its folder (--debug-dir)"
}

/// Bytes of a path as text.
pub(super) fn shown(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name);
    name.chars().filter(|c| !c.is_control()).collect()
}

/// Reads `.gnu_debugaltlink`, or `.debug_sup` (DWARF 5, section 7.3.6) of a file that is not itself the shared one.
fn supplementary<'data>(elf: &Elf<'data>) -> Option<Supplementary<'data>> {
    if let Some((name, id)) = elf.object.gnu_debugaltlink().ok().flatten() {
        return Some(Supplementary { name: name.into(), id: BuildId(id.to_vec()) });
    }
    let section = elf.section(".debug_sup");
    let (is_shared, name, id) = debug_sup(&section)?;
    (!is_shared).then(|| Supplementary { name: name.to_vec().into(), id: BuildId(id.to_vec()) })
}

/// The identifier by which other files refer to a supplementary debug file: its build ID, or that of its `.debug_sup`.
fn own_id(elf: &Elf<'_>) -> Option<BuildId> {
    elf.build_id().or_else(|| {
        let section = elf.section(".debug_sup");
        let (_, _, id) = debug_sup(&section)?;
        Some(BuildId(id.to_vec()))
    })
}

/// Version, "is the shared file", name, checksum.
fn debug_sup(bytes: &[u8]) -> Option<(bool, &[u8], &[u8])> {
    let (head, rest) = bytes.split_at_checked(3)?;
    let end = rest.iter().position(|byte| *byte == 0)?;
    let (name, rest) = (&rest[..end], &rest[end + 1..]);
    // Checksums have a few bytes: one of LEB128 holds their length.
    let (len, rest) = rest.split_first()?;
    Some((head[2] != 0, name, rest.get(..usize::from(*len))?))
}
