//! What `perf record` wrote into the folder that the guest shared.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use guest_samples::{GuestProfile, PerfDataError, SampleFile};

/// The name of the TIP unit's PMU in the guest.
const PMU: &str = "tip";

/// `perf.data`, and then other files of perf's (`*.data`) by their names.
fn files(folder: &Path) -> Vec<PathBuf> {
    let first = folder.join("perf.data");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
        // No link: the guest may have made it.
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "data"))
        .collect();
    files.sort_by_key(|path| (*path != first, path.clone()));
    files
}

/// The TIP unit's profiles, one of each heuristic. What cannot be read is said on standard error.
pub(crate) fn read(folder: &Path) -> Vec<GuestProfile> {
    let first = folder.join("perf.data");
    let mut profiles: Vec<GuestProfile> = Vec::new();
    for path in &files(folder) {
        let found = match GuestProfile::read(path, PMU) {
            Ok(found) => found,
            // Other tools' files may have such names, too, and perf records other events.
            Err(PerfDataError::NotPerfData | PerfDataError::NoEvent { .. }) if *path != first => {
                continue;
            }
            Err(error) => {
                let name = path.file_name().unwrap_or_default().display();
                eprintln!("tipsim: warning: {name}: {error}");
                continue;
            }
        };
        for profile in found {
            let known = |other: &GuestProfile| other.heuristic == profile.heuristic;
            if !profiles.iter().any(known) {
                profiles.push(profile);
            }
        }
    }
    profiles
}

/// The samples of all events, of files that can be read.
pub(crate) fn samples(folder: &Path) -> Vec<SampleFile> {
    let read = |path: &PathBuf| SampleFile::read(path).ok();
    files(folder).iter().filter_map(read).collect()
}

/// Kernel's numbers of the processes that have samples in files that can be read.
pub(crate) fn processes(folder: &Path) -> HashSet<u32> {
    let files = samples(folder);
    let samples = files.iter().flat_map(|file| &file.samples);
    samples.filter_map(|sample| sample.pid).collect()
}
