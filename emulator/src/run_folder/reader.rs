//! Reading results, and rewriting reports among them.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use super::folder::Folder;
use super::marker::{MARKER, Marker, State, TraceMark};
use super::room::{self, suffixed};
use super::work::{holder, lock_file, settle};
use super::{GUEST_FILES, MAX_RESULT_BYTES, RUN, STORED_UNITS, TRACE};
use crate::failure::{BadInput, bad_input, cannot_write};
use crate::host::sha256::sha256;

/// A run's results. All is read from the folder that was opened, also if another run takes its place meanwhile.
#[derive(Debug)]
pub(crate) struct Results {
    folder: Folder,
    /// None: an older simulator made it, or somebody has put it together.
    marker: Option<Marker>,
    /// Held while reports are rewritten.
    lock: Option<File>,
}

impl Results {
    /// Opens the results of a run that has ended, and that is the last one into its folder.
    ///
    /// # Errors
    /// If there are none, or the last run goes on or was killed.
    pub(crate) fn open(dir: &Path) -> Result<Self, BadInput> {
        let results = Self::open_any(dir)?;
        match results.marker.as_ref().map(|marker| marker.state) {
            Some(State::Running) => Err(bad_input(dir, unfinished(dir))),
            Some(State::Moving | State::Ended | State::Killed) => Ok(results),
            // A folder without run.json is no run's; whoever reads it tells what is missing.
            None if !results.has(RUN) => Ok(results),
            None => {
                eprintln!(
                    "tipsim: warning: {}: no {MARKER}, as if an older tipsim had made it or its files had been copied: nobody knows whether they belong to one run",
                    dir.display()
                );
                Ok(results)
            }
        }
    }

    /// Opens what a run left, or what one that was killed recorded until then.
    ///
    /// # Errors
    /// If there is none, and if a later run into the folder goes on or was killed.
    pub(crate) fn open_any(dir: &Path) -> Result<Self, BadInput> {
        let later = later(dir)?;
        let folder = match Folder::open(dir) {
            Ok(folder) => folder,
            Err(error) => {
                return Err(match (error.kind(), later) {
                    (io::ErrorKind::NotFound, Some(later)) => bad_input(dir, later),
                    _ => bad_input(dir, error),
                });
            }
        };
        let marker = Marker::read(&folder).map_err(|e| bad_input(&dir.join(MARKER), e))?;
        if let Some(later) = later {
            return Err(bad_input(dir, later));
        }
        let results = Self { folder, marker, lock: None };
        if results.is_unfinished() && holder(dir).is_some() {
            return Err(bad_input(dir, unfinished(dir)));
        }
        Ok(results)
    }

    /// Checks, before a file of a results folder is read by its own path, that the folder's last run has ended or was killed.
    ///
    /// # Errors
    /// If a later run into the folder goes on or was killed.
    pub(crate) fn check(file: &Path) -> Result<(), BadInput> {
        let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
        match later(parent.unwrap_or(Path::new(".")))? {
            Some(later) => Err(bad_input(file, later)),
            None => Ok(()),
        }
    }

    /// Makes the results of a run that begins, in its working folder, which `lock` holds.
    pub(super) fn begun(folder: Folder, marker: Marker, lock: File) -> Self {
        Self { folder, marker: Some(marker), lock: Some(lock) }
    }

    /// Writes down that all results are there, and what the guest left.
    pub(super) fn end(&mut self, part: Option<&str>) -> io::Result<()> {
        let trace = self.folder.file(TRACE, u64::MAX).ok();
        let stored_units = self.folder.file(STORED_UNITS, u64::MAX).ok();
        let guest_files = room::listed(&self.guest_files());
        let Some(marker) = &mut self.marker else {
            return Ok(());
        };
        // The results are being moved until they are in their place: whoever finds them goes on with that.
        marker.state = State::Moving;
        marker.part = part.map(str::to_owned);
        marker.trace = trace.map(TraceMark::of).transpose()?;
        marker.stored_units = stored_units.map(TraceMark::of).transpose()?;
        marker.guest_files = guest_files;
        marker.write(&self.folder)
    }

    /// Returns whether the run was killed, and no report was made of what it had recorded.
    pub(crate) fn is_unfinished(&self) -> bool {
        self.marker.as_ref().is_some_and(|marker| marker.state == State::Running)
    }

    /// The folder.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Returns what the guest left, if there is anything.
    pub(crate) fn guest_files(&self) -> PathBuf {
        self.path().join(GUEST_FILES)
    }

    /// Returns why the results are not of a whole run, if they are not.
    pub(crate) fn part(&self) -> Option<&str> {
        let marker = self.marker.as_ref()?;
        match marker.state {
            State::Running => Some("it was killed"),
            State::Moving | State::Ended | State::Killed => marker.part.as_deref(),
        }
    }

    /// The run's trace as it was when the run ended, if that is known.
    pub(crate) fn trace_mark(&self) -> Option<&TraceMark> {
        self.marker.as_ref()?.trace.as_ref()
    }

    /// Fails if the trace is there but is not the run's own.
    ///
    /// # Errors
    /// If it was cut, replaced or changed at its end since.
    pub(crate) fn check_trace(&self) -> Result<(), BadInput> {
        self.check_mark(TRACE, self.trace_mark())
    }

    /// Fails if stored units are there but are not the run's own.
    ///
    /// # Errors
    /// If they were cut, replaced or changed at their end since.
    pub(crate) fn check_stored_units(&self) -> Result<(), BadInput> {
        let mark = self.marker.as_ref().and_then(|marker| marker.stored_units.as_ref());
        self.check_mark(STORED_UNITS, mark)
    }

    /// Fails if a file is there but is not as the run left it.
    fn check_mark(&self, name: &str, mark: Option<&TraceMark>) -> Result<(), BadInput> {
        let (Some(expected), Ok(file)) = (mark, self.folder.file(name, u64::MAX)) else {
            return Ok(());
        };
        let path = self.path().join(name);
        let found = TraceMark::of(file).map_err(|e| bad_input(&path, e))?;
        if found == *expected {
            return Ok(());
        }
        let error = match found.bytes == expected.bytes {
            true => "expected the run's own, found another one of equal size".to_owned(),
            false => format!(
                "expected the {} bytes that the run wrote, found {}: it was cut or replaced",
                expected.bytes, found.bytes
            ),
        };
        Err(bad_input(&path, error))
    }

    /// Returns whether there is anything of this name, readable or not.
    pub(crate) fn has(&self, name: &str) -> bool {
        let found = self.folder.file(name, u64::MAX);
        !found.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    }

    /// Opens a file that says by itself which run it is of.
    ///
    /// # Errors
    /// If it is not there or no regular file.
    pub(crate) fn file(&self, name: &str) -> io::Result<File> {
        self.folder.file(name, u64::MAX)
    }

    /// Reads a file that the run, or a later report, wrote.
    ///
    /// # Errors
    /// If it is not there, or not what was written.
    pub(crate) fn read(&self, name: &str) -> Result<Vec<u8>, BadInput> {
        let path = self.path().join(name);
        let read = self.folder.read(name, MAX_RESULT_BYTES);
        let bytes = read.map_err(|e| bad_input(&path, e))?;
        // The marker of a run that was killed was written as the run began, and does not have its files.
        let marker = self.marker.as_ref().filter(|_| !self.is_unfinished());
        let expected = marker.map(|marker| marker.files.get(name));
        match expected {
            Some(Some(expected)) if sha256(&bytes[..]).ok().as_ref() == Some(expected) => Ok(bytes),
            Some(Some(_)) => Err(bad_input(
                &path,
                "expected the file that the run wrote, found another one, or a damaged one",
            )),
            Some(None) => Err(bad_input(
                &path,
                format!("expected a file of the run, found one that is not in its {MARKER}"),
            )),
            None => Ok(bytes),
        }
    }

    /// Reads a text.
    ///
    /// # Errors
    /// If the file is not there, is not what was written, or is no UTF-8.
    pub(crate) fn text(&self, name: &str) -> Result<String, BadInput> {
        let text = String::from_utf8(self.read(name)?);
        text.map_err(|e| bad_input(&self.path().join(name), e))
    }

    /// Reads JSON.
    ///
    /// # Errors
    /// If the file is not there, is not what was written, or is no such JSON.
    pub(crate) fn json<T: DeserializeOwned>(&self, name: &str) -> Result<T, BadInput> {
        let value = serde_json::from_slice(&self.read(name)?);
        value.map_err(|e| bad_input(&self.path().join(name), e))
    }

    /// Takes the folder for whoever rewrites reports in it; another who does so is waited for.
    ///
    /// # Errors
    /// If that fails.
    pub(crate) fn lock(&mut self) -> anyhow::Result<()> {
        let lock = lock_file(&self.folder);
        self.lock = lock.map_err(|e| cannot_write(self.path(), e))?;
        // Somebody may have rewritten reports until now.
        let marker = Marker::read(&self.folder);
        self.marker = marker.map_err(|e| bad_input(&self.path().join(MARKER), e))?;
        Ok(())
    }

    /// Replaces a file of results, or adds one; `tipsim.json` lists it after [`Self::save`].
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn write(&mut self, name: &str, content: &[u8]) -> anyhow::Result<()> {
        let mut written = self.folder.write(name, content);
        if let Some(marker) = &mut self.marker {
            written = written.and_then(|()| marker.note(name, content));
        }
        written.map_err(|e| cannot_write(&self.path().join(name), e))
    }

    /// The folder, for files that say by themselves which run they are of.
    pub(crate) fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Writes down which files belong together now. `part`: why they are not of a whole run.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn save(&mut self, part: Option<&str>) -> anyhow::Result<()> {
        let Some(marker) = &mut self.marker else {
            return Ok(());
        };
        if marker.state == State::Running {
            marker.state = State::Killed;
        }
        marker.part = part.map(str::to_owned);
        let written = marker.write(&self.folder);
        written.map_err(|e| cannot_write(&self.path().join(MARKER), e))
    }
}

/// Says what became of a later run into the folder that has not put its results there. One that was killed while it did so is gone
/// on with first.
fn later(dir: &Path) -> Result<Option<String>, BadInput> {
    let real = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    let partial = suffixed(&real, ".partial");
    let unreadable = |e: io::Error| bad_input(&partial, e);
    settle(&real).map_err(unreadable)?;
    if !room::is_ours(&partial) {
        return Ok(None);
    }
    let marker = Folder::open(&partial).and_then(|folder| Marker::read(&folder));
    // A run that was killed between two renames had put its results in place already.
    let is_before = |marker: Marker| marker.state == State::Ended;
    match marker.map_err(unreadable)?.is_none_or(is_before) {
        true => Ok(None),
        false => Ok(Some(unfinished(&partial))),
    }
}

/// Returns what to say of a working folder.
fn unfinished(partial: &Path) -> String {
    let shown = partial.display();
    match holder(partial) {
        Some(process) => format!(
            "a run into this folder goes on (process {process}): its results are not here yet"
        ),
        None => format!(
            "the last run into this folder was killed before its end: what is here is not of that run. `tipsim report {shown} --rebuild` \
             makes a report of what it recorded; run it again, or remove {shown} to go on with the results of the run before, if there are any"
        ),
    }
}
