//! Names of code that the guest's programs made at run time: `perf-PID.map` and `jit-PID.dump`. The guest's init brings those of
//! its `/tmp` into the shared folder; those of a command that has a shared folder as its root are in that one's.

use std::path::{Path, PathBuf};

use symbols::is_jit_file;

/// Folders below a root where programs leave them.
const FOLDERS: [&str; 3] = ["tmp", "out", ""];

/// The files in a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let named = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_jit_file));
    let files = named.map(|entry| entry.path());
    files.filter(|path| path.is_file()).collect()
}

/// Removes those of an earlier run into the same folder: its process ids are this one's, too.
pub fn remove(out: &Path) {
    for file in files(out) {
        let _ = std::fs::remove_file(file);
    }
}

/// Takes out of the host's shared folders what the command left there, before they are removed.
pub fn keep(shared: &[PathBuf], share: &Path) {
    for source in shared {
        let Some(name) = source.file_name() else {
            continue;
        };
        let root = share.join(name);
        for (folder, file) in { FOLDERS.iter() }.flat_map(|folder| {
            files(&root.join(folder))
                .into_iter()
                .map(move |file| (folder, file))
        }) {
            let name = file.file_name().unwrap_or_default();
            let to = share.join(name);
            // What was in there before is of another run.
            let before = std::fs::read(source.join(folder).join(name)).ok();
            let is_new = before.is_none() || before != std::fs::read(&file).ok();
            if is_new
                && !to.exists()
                && let Err(error) = std::fs::copy(&file, &to)
            {
                tracing::warn!("{}: {error}", file.display());
            }
        }
    }
}
