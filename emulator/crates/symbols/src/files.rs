//! The host's files that stand for the guest's.

use std::fmt;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::FileServer;

/// A GNU build ID: the bytes of the note, normally 20.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BuildId(pub Vec<u8>);

impl BuildId {
    /// The build ID of a file of the host, if that is an ELF file and has one.
    pub fn of(file: &Path) -> Option<Self> {
        super::elf::build_id_of(file)
    }

    /// Path of the debug file of this build ID, below a folder of such files: `.build-id/ab/cdef.debug`.
    pub(super) fn debug_path(&self) -> Option<PathBuf> {
        let hex = self.to_string();
        let (front, rest) = hex.split_at_checked(2)?;
        Some(PathBuf::from(format!(".build-id/{front}/{rest}.debug")))
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
    /// Files and folders of the host that the guest saw, by their paths there.
    pub shared: Vec<Shared>,
    /// The kernel's `vmlinux`.
    pub kernel: Option<PathBuf>,
    /// Physical address that the kernel is loaded at: its first instructions run untranslated.
    pub kernel_physical: Option<u64>,
    /// The firmware's ELF (OpenSBI), or the one program of a bare-metal run.
    pub firmware: Option<PathBuf>,
    /// The firmware is all that the machine executes, in supervisor mode, too: there is no kernel.
    pub bare_metal: bool,
    /// Address that a position-independent firmware is loaded at; 0x8000_0000 if not given.
    pub firmware_base: Option<u64>,
    /// Folders with source files, which lie there at their paths or at any end of those; the preferred folder first.
    pub sources: Vec<PathBuf>,
    /// Folder that the guest wrote: times of files there are those of the guest's clock.
    pub guest_written: Option<PathBuf>,
    /// The vDSO with debug information (`vdso.so.dbg`); if none, the vDSO image in `kernel` is used.
    pub vdso: Option<PathBuf>,
    /// Servers that are asked, in this order, for files that are in none of the folders.
    pub servers: Vec<Arc<dyn FileServer>>,
}

/// A file or folder of the host that the guest saw.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Shared {
    /// The absolute path in the guest.
    pub guest: String,
    /// The path on the host.
    pub host: PathBuf,
}

impl Shared {
    /// Returns the host's file that is `path` in the guest.
    fn find(&self, path: &str) -> Option<PathBuf> {
        match path.strip_prefix(self.guest.trim_end_matches('/'))? {
            "" => self.host.is_file().then(|| self.host.clone()),
            rest if rest.starts_with('/') => resolve_in(&self.host, Path::new(rest)),
            _ => None,
        }
    }
}

/// A file of the host that may be the wanted one.
#[derive(Debug)]
pub(super) struct Candidate {
    pub path: PathBuf,
    /// Only a part of its path matches: it is used if the executed instructions agree with it.
    pub needs_proof: bool,
}

/// Symbolic links followed in one path, as Linux does (`MAXSYMLINKS`).
const MAX_LINKS: usize = 40;
/// Linux's suffix to the path of a mapped file that was removed.
const DELETED: &str = " (deleted)";

impl SymbolFiles {
    /// Host files that may be `path` in the guest, best first: what the run shared, then at the guest path, then by
    /// build ID under `.build-id`, then at as much of the path's end as a folder has.
    pub(super) fn candidates(&self, path: &str, build_id: Option<&BuildId>) -> Vec<Candidate> {
        let stripped = path.strip_suffix(DELETED);
        let names: Vec<&str> = [Some(path), stripped].into_iter().flatten().collect();
        let mut found = Vec::new();
        for name in &names {
            found.extend(self.shared.iter().filter_map(|shared| shared.find(name)));
            found.extend(self.folders().filter_map(|root| resolve_in(root, Path::new(name))));
        }
        found.extend(build_id.iter().flat_map(|id| self.debug_files(id)));
        // The file of this name that replaced a removed one may have other contents.
        let exact = if stripped.is_some() { 0 } else { found.len() };
        for name in &names {
            let ends = Path::new(name).ancestors().skip(1);
            // In a folder that is not the guest's root, `/out/system/usr/bin/xz` is `usr/bin/xz` of the folder `system`.
            let ends = ends.filter_map(|front| Path::new(name).strip_prefix(front).ok());
            let mut ends: Vec<&Path> = ends.collect();
            ends.reverse();
            for end in ends {
                found.extend(self.folders().filter_map(|root| resolve_in(root, end)));
            }
        }
        let mut known: Vec<Candidate> = Vec::new();
        for (at, path) in found.into_iter().enumerate() {
            if known.iter().all(|candidate| candidate.path != path) {
                let needs_proof = at >= exact;
                known.push(Candidate { path, needs_proof });
            }
        }
        known
    }

    /// Folders that hold files at their guest paths: those given, and those that the run shared, as a command may have had one
    /// of them as its root.
    pub(super) fn folders(&self) -> impl Iterator<Item = &PathBuf> {
        let shared = self.shared.iter().map(|shared| &shared.host);
        self.roots.iter().chain(shared.filter(|host| host.is_dir()))
    }

    /// Files of debug information by build ID, at the places where GDB looks for them.
    pub(super) fn debug_files(&self, build_id: &BuildId) -> Vec<PathBuf> {
        let Some(name) = build_id.debug_path() else {
            return Vec::new();
        };
        let names = [name.clone(), Path::new("usr/lib/debug").join(&name)];
        let places = self.folders().flat_map(|root| names.iter().map(move |name| (root, name)));
        places.filter_map(|(root, name)| resolve_in(root, name)).collect()
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
        assert_eq!(resolve_in(root, Path::new("/../../usr/bin/../bin/real")), real);
        assert_eq!(resolve_in(root, Path::new("/loop")), None);
        assert_eq!(resolve_in(root, Path::new("/usr/bin")), None);
        assert_eq!(resolve_in(root, Path::new("/etc/passwd")), None);
    }
}
