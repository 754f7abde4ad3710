//! Functional boots are alike: the first saves the machine when the guest mounts the shared folder, where the command waits
//! for it, and later runs go on from there.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;

use super::Plan;
use super::description::guest;
use super::progress::Console;
use crate::checkpoint::{self, Checkpoint};
use crate::failure::{BadInput, bad_input};
use crate::sha256::sha256;
use crate::spec::Mode;
use crate::system::{Engine, System};

/// Checkpoints that are kept: tens of megabytes each.
const MAX_CHECKPOINTS: usize = 8;

/// The checkpoint of a run's boot.
pub struct Boot {
    path: PathBuf,
    /// The run goes on from it.
    restored: bool,
}

impl Boot {
    /// Boots from a checkpoint if there is one of such a boot, else from reset. `None`: the run has none.
    pub fn start(
        plan: &Plan,
        system: &mut System,
        console: &mut Console,
    ) -> anyhow::Result<Option<Self>> {
        let run = &plan.spec.run;
        // What a network answers is not in a checkpoint, and no boot comes again at the same time of the host.
        let same = run.boot == Mode::Functional && plan.spec.deterministic();
        let Some(folder) = folder().filter(|_| run.checkpoint && same) else {
            system.load_guest(&plan.files, &plan.bootargs)?;
            return Ok(None);
        };
        let path = folder.join(format!("{}.ckpt", key(plan)?));
        let restored = path.exists();
        if restored {
            let load = |saved: Checkpoint| saved.load(system, Mode::Functional, &plan.preset);
            let (_, printed) = Checkpoint::open(&path).and_then(load).map_err(|error| {
                let _ = std::fs::remove_file(&path);
                BadInput(format!("{error} (removed: the next run boots anew)"))
            })?;
            console.restore(&printed)?;
            // The ones in use are kept.
            let now = std::fs::File::open(&path).and_then(|f| f.set_modified(SystemTime::now()));
            now.map_err(|e| tracing::warn!("{}: {e}", path.display()))
                .ok();
        } else {
            system.load_guest(&plan.files, &plan.bootargs)?;
        }
        Ok(Some(Self { path, restored }))
    }

    /// The guest has come to where the next run goes on. That there is no room for a checkpoint is no error.
    pub fn save(&self, plan: &Plan, system: &mut System, console: &Console) {
        if self.restored || self.path.exists() {
            return;
        }
        let mut save = || -> anyhow::Result<()> {
            let folder = self.path.parent().unwrap_or(Path::new("."));
            std::fs::create_dir_all(folder).map_err(|e| bad_input(folder, e))?;
            let printed = console.printed()?;
            let mut functional = Engine::FUNCTIONAL;
            checkpoint::save(&self.path, system, &mut functional, &plan.preset, &printed)?;
            prune(folder)
        };
        if let Err(error) = save() {
            tracing::warn!("no checkpoint of the boot: {error:#}");
        }
    }
}

/// Beside the guests that `guest-sw/build` made.
fn folder() -> Option<PathBuf> {
    Some(crate::guest::cache()?.join("checkpoints"))
}

/// Everything that a boot depends on: simulator, guest, and what of the configuration the guest can see.
fn key(plan: &Plan) -> anyhow::Result<String> {
    let simulator = std::env::current_exe().and_then(File::open)?;
    let drives = plan.spec.guest.drive.iter().map(|drive| {
        let metadata = std::fs::metadata(drive).map_err(|e| bad_input(drive, e))?;
        let changed = metadata.modified()?.duration_since(UNIX_EPOCH)?;
        anyhow::Ok(json!([drive.canonicalize()?, metadata.len(), changed]))
    });
    let described = json!({
        "simulator": sha256(simulator)?,
        "guest": guest(plan)?,
        // Which they are the boot does not see.
        "packages": plan.packages.is_some(),
        "drives": drives.collect::<Result<Vec<_>, _>>()?,
        "bootargs": plan.bootargs,
        "memory": plan.memory,
        "harts": plan.spec.guest.harts,
        "clock": plan.epoch,
        "mhz": plan.preset.clock.mhz,
        "isa": plan.preset.isa,
        "width": plan.preset.decode.width,
    });
    let mut key = sha256(described.to_string().as_bytes())?;
    key.truncate(16);
    Ok(key)
}

/// Removes the checkpoints that were not used for longest.
fn prune(folder: &Path) -> anyhow::Result<()> {
    let mut saved = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        saved.push((entry.metadata()?.modified()?, entry.path()));
    }
    saved.sort();
    for (_, path) in saved.iter().rev().skip(MAX_CHECKPOINTS) {
        std::fs::remove_file(path)?;
    }
    Ok(())
}
