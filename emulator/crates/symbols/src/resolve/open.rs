//! The file of a module: which of the candidates is what the guest ran.

use std::path::{Path, PathBuf};

use super::{Origin, Resolution};
use crate::check::{Opened, Wanted};
use crate::elf::{self, Elf};
use crate::embedded;

impl Resolution<'_> {
    /// Opens the file of a module: the first candidate that the guest ran. The error is a sentence on what to hand in.
    pub(crate) fn open(
        &mut self,
        source: &Origin,
        name: &str,
        wanted: &Wanted<'_>,
    ) -> Result<Opened, Option<String>> {
        let files = &self.symbolizer.files;
        let own = |file: &Option<PathBuf>| -> Vec<(PathBuf, bool)> {
            file.iter().map(|path| (path.clone(), false)).collect()
        };
        let candidates = match source {
            Origin::Path(path, _) if path.starts_with('/') && !path.starts_with("//") => {
                let found = files.candidates(path, wanted.build_id).into_iter();
                found.map(|file| (file.path, file.needs_proof)).collect()
            }
            Origin::Path(..) | Origin::Unknown => return Err(None),
            Origin::Vdso(_) => own(&files.vdso),
            Origin::Kernel { .. } => own(&files.kernel),
            Origin::Firmware => own(&files.firmware),
        };
        let mut refused = Vec::new();
        for (path, needs_proof) in candidates {
            match wanted.open(&path, needs_proof) {
                Ok(opened) => return Ok(opened),
                Err(why) => refused.push(why),
            }
        }
        if let (Origin::Vdso(_), Some(kernel)) = (source, &files.kernel)
            && let Some(image) = vdso_in(kernel)
        {
            match wanted.check(kernel, image, false) {
                Ok(opened) => return Ok(opened),
                Err(why) => refused.push(why),
            }
        }
        if let Origin::Path(path, _) = source {
            let path = path.strip_suffix(" (deleted)").unwrap_or(path);
            let index = self.symbolizer.index();
            let by_id = wanted.build_id.and_then(|id| index.with_build_id(id));
            let named = index.named(path).iter();
            for file in by_id.into_iter().chain(named) {
                match wanted.open(file, true) {
                    Ok(opened) => return Ok(opened),
                    Err(why) if !refused.contains(&why) => refused.push(why),
                    Err(_) => {}
                }
            }
        }
        let programs =
            files.servers.iter().zip(wanted.build_id).map(|(server, id)| server.program(id));
        for program in programs {
            match program.and_then(|path| wanted.open(&path, false)) {
                Ok(opened) => return Ok(opened),
                Err(why) => refused.push(why),
            }
        }
        if refused.is_empty() {
            refused.push("no file found on the host".to_owned());
        }
        let mut missing = format!("no symbols: {}", refused.join("; "));
        if let Origin::Path(..) = source {
            let id = wanted.build_id.map_or(String::new(), |id| format!(" with build ID {id}"));
            missing += &format!("; hand in the folder of the file{id} (--debug-dir)");
        }
        self.warn(format!("{name}: {missing}"));
        Err(Some(missing))
    }
}

/// The vDSO within the kernel's file.
fn vdso_in(kernel: &Path) -> Option<Vec<u8>> {
    let bytes = elf::read(kernel).ok()?;
    embedded::vdso(&Elf::parse(&bytes).ok()?)
}
