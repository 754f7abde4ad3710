//! An index of the ELF files below the given folders, by build ID and by name.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::BuildId;

/// Entries looked at; a root file system has about 10,000.
const MAX_SCANNED: usize = 200_000;
/// Files of one name that are kept.
const MAX_EQUAL: usize = 64;

/// Every ELF file below some folders.
#[derive(Debug, Default)]
pub(super) struct Index {
    by_build_id: HashMap<BuildId, PathBuf>,
    /// Names as the guest reports them: bytes that are not UTF-8 are replaced.
    by_name: HashMap<String, Vec<PathBuf>>,
}

impl Index {
    /// Looks into every file of the folders, the preferred one first.
    pub(crate) fn of<'a>(folders: impl Iterator<Item = &'a PathBuf>) -> Self {
        let mut index = Self::default();
        let mut folders: Vec<PathBuf> = folders.cloned().collect();
        folders.reverse();
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
                    return index;
                }
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                    Ok(kind) if kind.is_file() => index.add(&entry.path()),
                    _ => {}
                }
            }
        }
        index
    }

    fn add(&mut self, path: &Path) {
        if !super::elf::is_elf(path) {
            return;
        }
        if let Some(id) = super::elf::build_id_of(path) {
            self.by_build_id.entry(id).or_insert_with(|| path.into());
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let equal = self.by_name.entry(name.into_owned()).or_default();
        if equal.len() < MAX_EQUAL {
            equal.push(path.into());
        }
    }

    /// The file with a build ID.
    pub(crate) fn with_build_id(&self, id: &BuildId) -> Option<&PathBuf> {
        self.by_build_id.get(id)
    }

    /// The files that are called like the end of a path.
    pub(crate) fn named(&self, path: &str) -> &[PathBuf] {
        let name = path.rsplit('/').next().unwrap_or(path);
        self.by_name.get(name).map_or(&[], |files| files)
    }
}
