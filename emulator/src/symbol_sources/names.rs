//! What turns addresses into names: where the guest's symbols are, and the disassembly.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use symbols::{FileServer, Shared, SymbolFiles, Symbolizer};

use crate::cli::ReportArgs;
use crate::failure::{BadInput, bad_input};
use crate::guest_files::images::GuestFiles;
use crate::run_folder::run_json::RunJson;
use crate::run_folder::{RUN, Results};
use crate::symbol_sources::file_servers::{DebugArchive, Debuginfod};

/// Where the guest's symbols are on the host; run.json keeps it for later.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct SymbolPaths {
    /// Folders with the guest's ELF files at their guest paths.
    pub roots: Vec<PathBuf>,
    /// What of the host the run put into the guest, by its path there.
    #[serde(default)]
    pub shared: Vec<Shared>,
    /// The kernel's `vmlinux`.
    pub kernel: Option<PathBuf>,
    /// The firmware's ELF file.
    pub firmware: Option<PathBuf>,
    /// There is no kernel: the firmware is the one program.
    #[serde(default)]
    pub bare_metal: bool,
    /// Addresses of debuginfod servers, as in `DEBUGINFOD_URLS`; none if empty.
    #[serde(default)]
    pub debuginfod: String,
    /// Programs are Debian's: its debug archive may have what they were stripped of.
    #[serde(default)]
    pub debian: bool,
}

/// The folder that the guest shares with the host, in the guest.
const SHARE: &str = "/out";

impl SymbolPaths {
    /// Returns where the symbols of a guest are: in folders of the user's `own`, in the guest's, and in `files` of its shared
    /// folder.
    pub(crate) fn new(guest: &GuestFiles, own: &[PathBuf], files: &[PathBuf]) -> Self {
        let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
        let shared = files.iter().filter_map(|file| {
            let name = file.file_name()?.to_string_lossy();
            Some(Shared { guest: format!("{SHARE}/{name}"), host: absolute(file) })
        });
        Self {
            roots: own.iter().chain(&guest.debug).map(absolute).collect(),
            shared: shared.collect(),
            kernel: guest.vmlinux.as_ref().map(absolute),
            firmware: guest.firmware_elf.as_ref().map(absolute),
            bare_metal: guest.kernel.is_none(),
            ..Self::default()
        }
    }

    /// Adds what the guest of a run left in the folder that it shared.
    pub(crate) fn with_guest_files(mut self, files: PathBuf) -> Self {
        self.shared.push(Shared { guest: SHARE.to_owned(), host: files });
        self
    }

    /// Adds folders of the user's own, before the others.
    pub(crate) fn with_folders(mut self, folders: &[PathBuf]) -> Result<Self, BadInput> {
        if let Some(missing) = folders.iter().find(|dir| !dir.is_dir()) {
            return Err(bad_input(missing, "--debug-dir: expected a folder"));
        }
        self.roots.splice(0..0, folders.iter().cloned());
        Ok(self)
    }

    /// Returns the symbolizer that names addresses by these files.
    pub(crate) fn symbolizer(&self) -> Symbolizer {
        let here = std::env::current_dir();
        let mut servers: Vec<Arc<dyn FileServer>> = Vec::new();
        if !self.debuginfod.trim().is_empty() {
            servers.push(Arc::new(Debuginfod::new(&self.debuginfod)));
        }
        if self.debian {
            servers.push(Arc::new(DebugArchive));
        }
        Symbolizer::new(SymbolFiles {
            roots: self.roots.clone(),
            shared: self.shared.clone(),
            sources: self.roots.iter().cloned().chain(here).collect(),
            guest_written: self
                .shared
                .iter()
                .find(|shared| shared.guest == SHARE)
                .map(|shared| shared.host.clone()),
            kernel: self.kernel.clone(),
            kernel_physical: Some(machine::KERNEL_BASE),
            firmware: self.firmware.clone(),
            bare_metal: self.bare_metal,
            servers,
            ..SymbolFiles::default()
        })
    }
}

/// Returns where a run found its symbols.
pub(crate) fn recorded(run: &Results) -> Result<SymbolPaths, BadInput> {
    match RunJson::read(run)?.symbols {
        // The run is of a version that did not record where symbols were.
        Value::Null => Ok(SymbolPaths::default()),
        symbols => {
            let paths = serde_json::from_value(symbols);
            paths.map_err(|e| bad_input(&run.path().join(RUN), format!("symbols: {e}")))
        }
    }
}

/// Returns where the run found its symbols, or where the user says that they are. A run that was killed has not recorded it.
pub(crate) fn symbol_paths(args: &ReportArgs, run: &Results) -> anyhow::Result<SymbolPaths> {
    let recorded = match run.has(RUN) {
        true => recorded(run)?,
        false => SymbolPaths::default(),
    };
    let mut paths = match args.guest_dir.as_deref() {
        Some(dir) => {
            let files = GuestFiles::resolve(Some(dir), None, None, None)?;
            let guest = SymbolPaths::new(&files, &recorded.roots, &[]);
            SymbolPaths {
                shared: recorded.shared,
                debuginfod: recorded.debuginfod,
                debian: recorded.debian,
                ..guest
            }
        }
        None => recorded,
    };
    paths = paths.with_folders(&args.debug_dir)?;
    if let Some(urls) = &args.debuginfod {
        paths.debuginfod.clone_from(urls);
    }
    Ok(paths.with_guest_files(run.guest_files()))
}

/// Returns an instruction in assembly.
pub(crate) fn disassemble(raw: u32, pc: u64) -> String {
    isa::disasm(&isa::decode(raw), pc)
}
