//! Names of code that the guest's programs made at run time: `perf-PID.map` and `jit-PID.dump`. The guest's init brings those of
//! its `/tmp` into the shared folder; those of a command that has a shared folder as its root are in that one's.

use std::io;
use std::path::{Path, PathBuf};

use symbols::is_jit_file;

use crate::run_folder::Folder;

/// Folders below a root where programs leave them.
const FOLDERS: [&str; 3] = ["tmp", "out", ""];
/// Bytes of the largest one, of which the guest decides.
const MAX_BYTES: u64 = 1 << 30;

/// Takes out of the host's shared folders what the command left there, before they are removed.
pub(super) fn keep(shared: &[PathBuf], share: &Path) {
    let Ok(to) = Folder::open(share) else {
        return;
    };
    for source in shared {
        let Some(name) = source.file_name().and_then(|name| name.to_str()) else {
            continue;
        };
        for inner in FOLDERS {
            // The guest may have put links in their place.
            let folder = to.sub(name).and_then(|root| match inner {
                "" => Ok(root),
                inner => root.sub(inner),
            });
            if let Ok(folder) = folder {
                keep_of(&folder, &source.join(inner), &to);
            }
        }
    }
}

/// Copies what is new in a folder; `source` is the host's, which the guest had a copy of.
fn keep_of(folder: &Folder, source: &Path, to: &Folder) {
    let entries = std::fs::read_dir(folder.path()).into_iter().flatten();
    let names = entries.flatten().map(|entry| entry.file_name());
    let names = names.filter_map(|name| name.into_string().ok());
    for name in names.filter(|name| is_jit_file(name)) {
        let copied = folder.read(&name, MAX_BYTES).and_then(|found| {
            // A file that was in the folder before is of another run.
            match std::fs::read(source.join(&name)) {
                Ok(before) if before == found => Ok(()),
                _ => match to.file(&name, MAX_BYTES) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {
                        to.write(&name, &found)
                    }
                    _ => Ok(()),
                },
            }
        });
        if let Err(error) = copied {
            tracing::warn!("{}: {error}", folder.path().join(&name).display());
        }
    }
}
