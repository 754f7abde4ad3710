//! `tipsim boot --command`: the guest runs a command and switches itself off.

use std::io::Read;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::experiment::command;
use crate::experiment::input::standard_input;
use crate::failure::cannot_write;

/// A command in the folder that the guest mounts.
pub(super) struct Scripted {
    /// The folder that the guest mounts, unless the user gave one.
    folder: TempDir,
    share: Option<PathBuf>,
}

impl Scripted {
    /// Puts the command where the guest's init finds it, with what standard input has for it.
    pub(super) fn give(command: &str, share: Option<&Path>) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir().map_err(|e| cannot_write(&std::env::temp_dir(), e))?;
        let scripted = Self { folder, share: share.map(Path::to_owned) };
        let input = standard_input()?;
        let mut input = input.as_deref();
        let input = input.as_mut().map(|input| input as &mut dyn Read);
        command::give(scripted.share(), Some(command), input)?;
        Ok(scripted)
    }

    /// The folder that the guest mounts.
    pub(super) fn share(&self) -> &Path {
        self.share.as_deref().unwrap_or(self.folder.path())
    }

    /// The command's exit status, of a guest that has ended.
    pub(super) fn status(&self) -> anyhow::Result<u8> {
        let status = command::status(self.share());
        let status =
            status.ok_or_else(|| anyhow::anyhow!("the guest ended before its command did"))?;
        Ok(u8::try_from(status).unwrap_or(255))
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        command::take_back(self.share());
    }
}
