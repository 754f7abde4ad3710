//! The text of source lines.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use md5::{Digest as _, Md5};

use super::BuildId;
use super::files::{SymbolFiles, resolve_in};
use super::symbols::{Module, Source};

/// Longest file and line that are shown, in bytes and characters.
const MAX_FILE: u64 = 4 << 20;
const MAX_LINE: usize = 200;
/// Extensions of source files. Other files are not shown: the guest gives the names, and must not expose files of the host.
const EXTENSIONS: [&str; 20] = [
    "adb", "c", "C", "c++", "cc", "cpp", "cxx", "d", "f90", "go", "h", "hh", "hpp", "inc", "inl",
    "rs", "s", "S", "swift", "zig",
];

/// Source files, each read once.
pub struct Sources<'a> {
    files: &'a SymbolFiles,
    read: HashMap<Arc<str>, Option<Vec<String>>>,
    /// What servers were asked for.
    asked: HashSet<(Arc<str>, BuildId)>,
}

impl<'a> Sources<'a> {
    pub(super) fn new(files: &'a SymbolFiles) -> Self {
        Self { files, read: HashMap::new(), asked: HashSet::new() }
    }

    /// The text of a line, if its file is on the host, or a server has it for the program of a build ID.
    pub fn line(&mut self, source: &Source, build_id: Option<&BuildId>) -> Option<&str> {
        let read = || lines(&find(self.files, &source.file)?);
        let found = self.read.entry(source.file.clone()).or_insert_with(read);
        if let (None, Some(id)) = (&found, build_id)
            && self.asked.insert((source.file.clone(), id.clone()))
        {
            *found = ask(self.files, &source.file, id).and_then(|file| lines(&file));
        }
        let index = (source.line as usize).checked_sub(1)?;
        found.as_ref()?.get(index).map(String::as_str)
    }
}

impl Sources<'_> {
    /// Says why a source file is not the one that was compiled into a module, or may not be; `None` if it is, if that cannot be told, or if
    /// there is no such file on the host.
    pub fn stale(&self, file: &Arc<str>, module: &Module) -> Option<String> {
        let path = find(self.files, file)?;
        if let Some(compiled) = module.checksums.get(file) {
            let found = md5(&read(&path)?);
            let hex = |sum: &[u8; 16]| -> String {
                sum.iter().map(|byte| format!("{byte:02x}")).collect()
            };
            return (found != *compiled).then(|| {
                format!(
                    "{} is not what {} was compiled from: its MD5 is {}, expected {}: its lines are others than those that ran",
                    path.display(),
                    module.name(),
                    hex(&found),
                    hex(compiled)
                )
            });
        }
        let program = module.file.as_ref()?;
        let is_guests =
            |path: &Path| self.files.guest_written.iter().any(|folder| path.starts_with(folder));
        if is_guests(program) || is_guests(&path) {
            return None;
        }
        let changed = |path: &Path| fs::metadata(path).ok()?.modified().ok();
        (changed(&path)? > changed(program)?).then(|| {
            format!(
                "{} was changed after {} was built: its lines may be others than those that ran",
                path.display(),
                module.name()
            )
        })
    }
}

/// The file that the compiler called `path`: at that path, at that path below a folder, or below a folder at the longest end
/// of the path that exists there, which has at least two names.
fn find(files: &SymbolFiles, path: &str) -> Option<PathBuf> {
    let path = Path::new(path);
    if !is_source(path) {
        return None;
    }
    if path.is_absolute()
        && let Some(real) = real_source(path)
    {
        return Some(real);
    }
    let mut names = Vec::new();
    for name in path.components() {
        match name {
            Component::Normal(name) => names.push(name),
            Component::ParentDir => _ = names.pop(),
            _ => {}
        }
    }
    let ends = (0..names.len().saturating_sub(1)).map(|from| names[from..].iter().collect());
    let ends: Vec<PathBuf> = ends.collect();
    let below = |folder: &PathBuf| ends.iter().find_map(|end| resolve_in(folder, end));
    files.sources.iter().find_map(below)
}

/// Folders of files that are none: reading them may do something, or never end.
const NO_FILES: [&str; 3] = ["/proc", "/sys", "/dev"];

/// The source file that a path leads to. A program names its sources as it likes, and may be an enemy's: its names reach nothing
/// else, not by links either.
fn real_source(path: &Path) -> Option<PathBuf> {
    let is_none = |path: &Path| NO_FILES.iter().any(|folder| path.starts_with(folder));
    if is_none(path) {
        return None;
    }
    let real = path.canonicalize().ok()?;
    (is_source(&real) && !is_none(&real) && real.is_file()).then_some(real)
}

/// What servers have of that file.
fn ask(files: &SymbolFiles, path: &str, build_id: &BuildId) -> Option<PathBuf> {
    if !path.starts_with('/') || !is_source(Path::new(path)) {
        return None;
    }
    let mut servers = files.servers.iter();
    servers.find_map(|server| server.source(build_id, path).ok())
}

fn is_source(path: &Path) -> bool {
    let extension = path.extension().and_then(OsStr::to_str);
    extension.is_some_and(|extension| EXTENSIONS.contains(&extension))
}

fn md5(bytes: &[u8]) -> [u8; 16] {
    Md5::digest(bytes).into()
}

/// Reads a file of at most [`MAX_FILE`] bytes.
fn read(file: &Path) -> Option<Vec<u8>> {
    if fs::metadata(file).ok()?.len() > MAX_FILE {
        return None;
    }
    let mut text = Vec::new();
    let file = fs::File::open(file).ok()?;
    file.take(MAX_FILE).read_to_end(&mut text).ok()?;
    Some(text)
}

fn lines(file: &Path) -> Option<Vec<String>> {
    let text = read(file)?;
    let text = String::from_utf8_lossy(&text);
    let shown = |line: &str| line.trim_end().chars().take(MAX_LINE).collect();
    Some(text.lines().map(shown).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn names_that_a_program_chose_lead_to_sources_alone() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("secret"), "secret").unwrap();
        fs::write(at("real.c"), "text").unwrap();
        std::os::unix::fs::symlink(at("secret"), at("link.c")).unwrap();
        std::os::unix::fs::symlink("/proc/self/status", at("status.c")).unwrap();
        std::os::unix::fs::symlink(at("real.c"), at("good.c")).unwrap();
        let files = SymbolFiles::default();
        let found = |path: &Path| find(&files, path.to_str().unwrap());
        assert_eq!(found(&at("good.c")), found(&at("real.c")));
        assert!(found(&at("real.c")).is_some());
        for name in ["link.c", "status.c", "secret"] {
            assert_eq!(found(&at(name)), None, "{name}");
        }
        let opened = fs::File::open(dir.path()).unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&opened);
        let by_descriptor = format!("/proc/self/fd/{number}/real.c");
        assert_eq!(found(Path::new(&by_descriptor)), None);
    }

    #[test]
    fn a_source_that_was_changed_after_the_program_was_built_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let written = |name: &str, seconds: u64| {
            fs::write(at(name), "int main;").unwrap();
            let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
            let file = fs::File::options().write(true).open(at(name)).unwrap();
            file.set_modified(time).unwrap();
            Arc::<str>::from(at(name).to_str().unwrap())
        };
        let old = written("old.c", 1_000);
        written("program", 2_000);
        let young = written("young.c", 3_000);
        let mut module = Module {
            path: "/out/program".into(),
            file: Some(at("program")),
            build_id: None,
            checksums: BTreeMap::new(),
            missing: Vec::new(),
            nameless: None,
        };
        let files = SymbolFiles::default();
        let sources = Sources::new(&files);
        assert_eq!(sources.stale(&old, &module), None);
        let why = sources.stale(&young, &module).unwrap();
        assert!(why.contains("young.c was changed after program was built"), "{why}");
        // What was compiled says more than when a file was written.
        module.checksums.insert(young.clone(), md5(b"int main;"));
        module.checksums.insert(old.clone(), md5(b"int other;"));
        assert_eq!(sources.stale(&young, &module), None);
        let why = sources.stale(&old, &module).unwrap();
        assert!(why.contains("old.c is not what program was compiled from: its MD5 is"), "{why}");
        // The guest has a clock of its own.
        module.checksums.clear();
        let files =
            SymbolFiles { guest_written: Some(folder.path().to_owned()), ..SymbolFiles::default() };
        assert_eq!(Sources::new(&files).stale(&young, &module), None);
        let nowhere: Arc<str> = "/nowhere/x.c".into();
        assert_eq!(sources.stale(&nowhere, &module), None);
    }

    fn text(files: &SymbolFiles, file: &str, line: u32) -> Option<String> {
        let file = file.into();
        let mut sources = Sources::new(files);
        sources.line(&Source { file, line }, None).map(str::to_owned)
    }

    #[test]
    fn lines_of_files_where_they_were_and_below_folders() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("src/deep")).unwrap();
        fs::write(at("src/deep/a.c"), "one\n\ttwo  \r\nthree").unwrap();
        fs::write(at("src/secret"), "x\n").unwrap();
        fs::write(at("a.c"), "another\n").unwrap();
        let none = SymbolFiles::default();
        let here = at("src/deep/a.c");
        let here = here.to_str().unwrap();
        assert_eq!(text(&none, here, 2).unwrap(), "\ttwo");
        assert_eq!(text(&none, here, 0), None);
        assert_eq!(text(&none, here, 4), None);
        let below = SymbolFiles { sources: vec![at("nowhere"), at("")], ..SymbolFiles::default() };
        for moved in ["/build/x/src/deep/a.c", "deep/../src/deep/a.c", "src/deep/a.c"] {
            assert_eq!(text(&below, moved, 3).as_deref(), Some("three"), "{moved}");
        }
        for bare in ["/build/a.c", "src/../a.c"] {
            assert_eq!(text(&below, bare, 1), None, "{bare}: any a.c would do");
        }
        assert_eq!(text(&below, "/build/src/secret", 1), None);
        assert_eq!(text(&none, "/etc/passwd", 1), None);
    }
}
