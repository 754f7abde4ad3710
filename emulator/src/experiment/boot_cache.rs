//! Functional boots are alike: the first saves the machine when the guest mounts the shared folder, where the command waits
//! for it, and later runs go on from there.
//!
//! Whoever may write into the cache decides what the guest is after its boot: a checkpoint is trusted as much as a kernel image there is.
//! It is not trusted with the host. It names no file, and all that it says is data of the machine: registers and devices check what they
//! load (a wrong value is an error), pages go into the guest's memory or are an error, and what was printed goes where the guest's
//! console goes.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::json;
use simulation::checkpoint::PARTIAL_SUFFIX;
use simulation::{Checkpoint, CheckpointContext, Mode, Session, SimulationError, System};

use super::Plan;
use super::description::guest;
use super::progress::Console;
use crate::failure::bad_input;
use crate::guest_files::images::cache;
use crate::host::sha256::sha256;

/// Checkpoints that are kept: tens of megabytes each.
const MAX_CHECKPOINTS: usize = 8;
/// Time since its last use for which a further checkpoint is kept, too: another process, perhaps on another host, may be
/// reading or writing it.
const IN_USE_PERIOD: Duration = Duration::from_secs(600);

/// The checkpoint of a run's boot.
pub(super) struct Boot {
    path: PathBuf,
    found: Found,
    /// What the core was taught by the boot of the checkpoint, if it was kept warm.
    warmed_state: Vec<u8>,
}

/// What became of the checkpoint that an earlier run may have left.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    /// There is no checkpoint.
    Nothing,
    /// The run goes on from the checkpoint.
    Restored,
    /// The checkpoint is damaged, or may not be read: it is replaced when this run's boot is over.
    Unusable,
}

impl Boot {
    /// Boots from a checkpoint if there is one of such a boot, else from reset. `None`: the run has none. A checkpoint that cannot be used
    /// is a warning. As it may have been loaded in part by then, `make` makes the machine anew.
    pub(super) fn start(
        plan: &Plan,
        system: &mut System,
        console: &mut Console,
        mut make: impl FnMut() -> anyhow::Result<System>,
    ) -> anyhow::Result<Option<Self>> {
        let run = &plan.spec.run;
        // What a network answers is not in a checkpoint, and no boot comes again at the same time of the host.
        let same = run.boot == Mode::Functional && plan.spec.deterministic();
        let Some(folder) = folder().filter(|_| run.checkpoint && same) else {
            plan.load_guest(system)?;
            return Ok(None);
        };
        let path = folder.join(format!("{}.ckpt", key(plan)?));
        let loaded = opened(&path).map_err(|e| SimulationError::file(&path, e));
        let loaded = loaded.and_then(|file| match file {
            Some(file) => load(plan, &path, file, system).map(Some),
            None => Ok(None),
        });
        let mut warmed_state = Vec::new();
        let found = match loaded {
            Ok(Some(context)) => {
                console.restore(&context.printed)?;
                warmed_state = context.warmed_state;
                Found::Restored
            }
            Ok(None) => Found::Nothing,
            Err(error) => {
                tracing::warn!("{error}: the guest boots anew");
                *system = make()?;
                Found::Unusable
            }
        };
        if found != Found::Restored {
            plan.load_guest(system)?;
        }
        Ok(Some(Self { path, found, warmed_state }))
    }

    /// Takes what the core was taught by the boot of the checkpoint; empty if there is none, or the core is not kept warm.
    pub(super) fn take_warmed_state(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.warmed_state)
    }

    /// Returns whether the run goes on from where an earlier one saved the machine.
    pub(super) fn is_restored(&self) -> bool {
        self.found == Found::Restored
    }

    /// Saves the machine, which has come to where the next run goes on. That there is no room for a checkpoint is no error.
    pub(super) fn save(&self, session: &mut Session, console: &Console) {
        match self.found {
            Found::Restored => return,
            // Another run made the checkpoint meanwhile.
            Found::Nothing if self.path.exists() => return,
            Found::Nothing | Found::Unusable => {}
        }
        let mut save = || -> anyhow::Result<()> {
            let folder = self.path.parent().unwrap_or(Path::new("."));
            std::fs::create_dir_all(folder).map_err(|e| bad_input(folder, e))?;
            let printed = console.printed()?;
            session.save(&self.path, printed, Vec::new())?;
            prune(folder)
        };
        if let Err(error) = save() {
            tracing::warn!("no checkpoint of the boot: {error:#}");
        }
    }
}

/// Returns the folder of the checkpoints, beside the guests that `guest-sw/build` made.
fn folder() -> Option<PathBuf> {
    Some(cache()?.join("checkpoints"))
}

/// Returns a hash of everything that a boot depends on: simulator, guest, and what of the configuration the guest can see.
fn key(plan: &Plan) -> anyhow::Result<String> {
    let simulator = std::env::current_exe().and_then(File::open)?;
    let drives = plan.drives.iter().map(|drive| {
        let metadata = std::fs::metadata(drive).map_err(|e| bad_input(drive, e))?;
        let changed = metadata.modified()?.duration_since(UNIX_EPOCH)?;
        anyhow::Ok(json!([drive.canonicalize()?, metadata.len(), changed]))
    });
    let described = json!({
        "simulator": sha256(simulator)?,
        "guest": guest(plan)?,
        // The boot sees whether there are packages, but not which.
        "packages": plan.packages.is_some(),
        "drives": drives.collect::<Result<Vec<_>, _>>()?,
        "bootargs": plan.bootargs,
        "memory": plan.memory,
        "harts": plan.spec.guest.harts,
        "clock": plan.epoch,
        "mhz": plan.preset.clock.mhz,
        "isa": plan.preset.isa,
        "width": plan.preset.decode.width,
        // What was kept warm is of one core.
        "warm": plan.spec.run.warm.then_some(&plan.preset),
    });
    let mut key = sha256(described.to_string().as_bytes())?;
    key.truncate(16);
    Ok(key)
}

/// Opens a checkpoint, if there is one.
fn opened(path: &Path) -> io::Result<Option<File>> {
    let Some(metadata) = existing(std::fs::metadata(path))? else {
        return Ok(None);
    };
    // Opening a pipe would wait for whoever writes to it.
    if !metadata.is_file() {
        return Err(io::Error::other("expected a file, found something else"));
    }
    existing(File::open(path))
}

/// Loads a checkpoint into a machine that has not run. Returns what it has beside the machine.
fn load(
    plan: &Plan,
    path: &Path,
    file: File,
    system: &mut System,
) -> Result<CheckpointContext, SimulationError> {
    // The time tells that the checkpoint is in use, and is to be kept.
    let now = file.set_modified(SystemTime::now());
    now.map_err(|e| tracing::warn!("{}: {e}", path.display())).ok();
    let saved = Checkpoint::of(path, file)?;
    let (_, context) = saved.load(system, Mode::Functional, &plan.preset)?;
    Ok(context)
}

/// Returns `None` if there is no such file, or another process has just removed it.
fn existing<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    }
}

/// Removes the checkpoints that were not used for longest, and what writers left that were killed.
fn prune(folder: &Path) -> anyhow::Result<()> {
    let mut saved = Vec::new();
    let mut unwanted = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let Some(metadata) = existing(entry.metadata())? else {
            continue;
        };
        let file = (metadata.modified()?, entry.path());
        match file.1.extension().is_some_and(|e| e == PARTIAL_SUFFIX) {
            true => unwanted.push(file),
            false => saved.push(file),
        }
    }
    saved.sort();
    saved.truncate(saved.len().saturating_sub(MAX_CHECKPOINTS));
    unwanted.append(&mut saved);
    for (used, path) in unwanted {
        // A time in the future is of another host's clock, and was just now.
        if used.elapsed().is_ok_and(|age| age > IN_USE_PERIOD) {
            existing(std::fs::remove_file(path))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_in_use_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, minutes: u64| {
            let file = File::create(folder.path().join(name)).unwrap();
            let used = SystemTime::now() - Duration::from_secs(60 * minutes);
            file.set_modified(used).unwrap();
        };
        for n in 0..12 {
            file(&format!("old{n:02}.ckpt"), 100 - n);
        }
        file("new.ckpt", 1);
        file("left.ckpt.0.partial", 100);
        file("being-written.ckpt.1.partial", 0);
        prune(folder.path()).unwrap();
        let mut left: Vec<_> = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        let old = (5..12).map(|n| format!("old{n:02}.ckpt"));
        let expected = ["being-written.ckpt.1.partial".to_owned(), "new.ckpt".to_owned()];
        assert_eq!(left, expected.into_iter().chain(old).collect::<Vec<_>>());
        for n in 12..24 {
            file(&format!("used{n:02}.ckpt"), 1);
        }
        prune(folder.path()).unwrap();
        let kept = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(kept, 14, "all but the old ones");
    }
}
