//! Where the guest's files lie on the host.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// A GNU build ID: the bytes of the note, normally 20.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BuildId(pub Vec<u8>);

impl BuildId {
    /// The build ID of a file of the host, if that is an ELF file and has one.
    pub fn of(file: &Path) -> Option<Self> {
        super::elf::build_id_of(file)
    }
}

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BuildId({self})")
    }
}

/// Host files that stand for guest files.
#[derive(Debug, Default)]
pub struct SymbolFiles {
    /// Folders that hold files at their guest paths (a root file system, a tree of unstripped
    /// files), the preferred one first.
    pub roots: Vec<PathBuf>,
    /// The kernel's `vmlinux`.
    pub kernel: Option<PathBuf>,
    /// Physical address that the kernel is loaded at: its first instructions run untranslated.
    pub kernel_physical: Option<u64>,
    /// The firmware's ELF (OpenSBI), or the one program of a bare-metal run.
    pub firmware: Option<PathBuf>,
    /// Address that a position-independent firmware is loaded at; 0x8000_0000 if not given.
    pub firmware_base: Option<u64>,
    /// Folders with source files, at any part of their paths, the preferred one first.
    pub sources: Vec<PathBuf>,
    /// The kernel's user-space library (`vdso.so.dbg`); without, what `kernel` has of it.
    pub vdso: Option<PathBuf>,
}

/// Entries looked at when a root is searched for a build ID; a root file system has about 10,000.
const MAX_SCANNED: usize = 200_000;
/// Symbolic links followed in one path, as Linux does (`MAXSYMLINKS`).
const MAX_LINKS: usize = 40;

impl SymbolFiles {
    /// Host files that may be `path` in the guest, best first: at the guest path, then by build ID
    /// under `.build-id`.
    pub(super) fn candidates(&self, path: &str, build_id: Option<&BuildId>) -> Vec<PathBuf> {
        let by_path = self
            .roots
            .iter()
            .filter_map(|root| resolve_in(root, Path::new(path)));
        let mut found: Vec<PathBuf> = by_path.collect();
        found.extend(build_id.iter().flat_map(|id| self.debug_files(id)));
        found
    }

    /// Files of debug information by build ID, at the places where GDB looks for them.
    pub(super) fn debug_files(&self, build_id: &BuildId) -> Vec<PathBuf> {
        let hex = build_id.to_string();
        let Some((front, rest)) = hex.split_at_checked(2) else {
            return Vec::new();
        };
        let folders = [".build-id", "usr/lib/debug/.build-id"];
        let names = folders.map(|folder| PathBuf::from(format!("{folder}/{front}/{rest}.debug")));
        let places = self
            .roots
            .iter()
            .flat_map(|root| names.iter().map(move |name| (root, name)));
        places
            .filter_map(|(root, name)| resolve_in(root, name))
            .collect()
    }
}

/// Follows `path` below `root` as a process whose root directory is `root` would: `..` stops at the
/// root and absolute links start there, so that a guest path never leaves the folder.
pub(super) fn resolve_in(root: &Path, path: &Path) -> Option<PathBuf> {
    let mut rest: Vec<std::ffi::OsString> = components(path);
    let mut at: Vec<std::ffi::OsString> = Vec::new();
    let mut links = 0;
    while let Some(name) = rest.pop() {
        if name == ".." {
            at.pop();
            continue;
        }
        let here = root.join(at.iter().collect::<PathBuf>()).join(&name);
        let kind = fs::symlink_metadata(&here).ok()?.file_type();
        if kind.is_symlink() {
            links += 1;
            if links > MAX_LINKS {
                return None;
            }
            let target = fs::read_link(&here).ok()?;
            if target.is_absolute() {
                at.clear();
            }
            rest.extend(components(&target));
        } else {
            at.push(name);
        }
    }
    let file = root.join(at.iter().collect::<PathBuf>());
    fs::metadata(&file).ok()?.is_file().then_some(file)
}

/// The normal and `..` components, last first.
fn components(path: &Path) -> Vec<std::ffi::OsString> {
    path.components()
        .rev()
        .filter(|c| matches!(c, Component::Normal(_) | Component::ParentDir))
        .map(|c| c.as_os_str().to_owned())
        .collect()
}

/// Every ELF file below the roots that has a build ID.
pub(super) fn scan(roots: &[PathBuf]) -> HashMap<BuildId, PathBuf> {
    let mut found = HashMap::new();
    let mut folders: Vec<PathBuf> = roots.iter().rev().cloned().collect();
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        // Sorted, so that the same tree gives the same answer on every host.
        let mut entries: Vec<_> = entries.flatten().collect();
        entries.sort_by_key(|entry| entry.file_name());
        for entry in entries {
            seen += 1;
            if seen > MAX_SCANNED {
                return found;
            }
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                Ok(kind) if kind.is_file() => {
                    if let Some(id) = super::elf::build_id_of(&entry.path()) {
                        found.entry(id).or_insert_with(|| entry.path());
                    }
                }
                _ => {}
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guest_paths_stay_below_the_root() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        fs::create_dir_all(root.join("usr/bin")).unwrap();
        fs::write(root.join("usr/bin/real"), b"x").unwrap();
        std::os::unix::fs::symlink("usr/bin", root.join("bin")).unwrap();
        std::os::unix::fs::symlink("/usr/bin/real", root.join("usr/bin/absolute")).unwrap();
        std::os::unix::fs::symlink("loop", root.join("loop")).unwrap();
        let real = Some(root.join("usr/bin/real"));
        assert_eq!(resolve_in(root, Path::new("/bin/real")), real);
        assert_eq!(resolve_in(root, Path::new("/bin/absolute")), real);
        assert_eq!(
            resolve_in(root, Path::new("/../../usr/bin/../bin/real")),
            real
        );
        assert_eq!(resolve_in(root, Path::new("/loop")), None);
        assert_eq!(resolve_in(root, Path::new("/usr/bin")), None);
        assert_eq!(resolve_in(root, Path::new("/etc/passwd")), None);
    }
}
