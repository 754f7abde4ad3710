//! What a program has open.

use std::fs::File as HostFile;
use std::io::{IsTerminal, Read, Seek, SeekFrom, Write};
use std::path::Path;

use cap_std::fs::{Dir, File, OpenOptions, OpenOptionsExt as _};

use super::super::ProgramConsole;
use super::{EBADF, EINVAL, ENOENT, Failed};

/// The name of the console.
const CONSOLE: &str = ":tt";
/// The name of what says which extensions there are: `SYS_EXIT_EXTENDED`, and `:tt` for standard error.
const FEATURES: &str = ":semihosting-features";
const FEATURES_CONTENT: &[u8] = b"SHFB\x03";
/// Most files that are open at once.
const OPEN_MAX: usize = 256;

enum Handle {
    Input,
    Output,
    Error,
    Features(usize),
    File(File),
}

/// Files in one folder, or none.
pub(super) struct Files {
    /// The console, which is also the files of the name `:tt`.
    pub console: ProgramConsole,
    folder: Option<Dir>,
    open: Vec<Option<Handle>>,
    told: bool,
}

impl From<std::io::Error> for Failed {
    fn from(error: std::io::Error) -> Self {
        Self(error.raw_os_error().unwrap_or(EINVAL))
    }
}

impl Files {
    /// Returns the files of a program that has only the console.
    pub(super) fn none(console: ProgramConsole) -> Self {
        Self { console, folder: None, open: Vec::new(), told: false }
    }

    /// Returns the files of a program that may open those in `folder`.
    pub(super) fn in_folder(folder: &Path, console: ProgramConsole) -> std::io::Result<Self> {
        // Where the path leads is the user's choice; from there on, nothing leads out.
        let folder = HostFile::open(folder)?;
        if !folder.metadata()?.is_dir() {
            return Err(std::io::ErrorKind::NotADirectory.into());
        }
        Ok(Self { folder: Some(Dir::from_std_file(folder)), ..Self::none(console) })
    }

    /// Returns the folder for a path in it; without one, warns once that there are no files.
    fn folder(&mut self, name: &str) -> Result<&Dir, Failed> {
        if self.folder.is_none() && !std::mem::replace(&mut self.told, true) {
            tracing::warn!(
                "semihosting: {name}: the program has no files of the host; --semihosting DIR gives it those of a folder"
            );
        }
        self.folder.as_ref().ok_or(Failed(ENOENT))
    }

    pub(super) fn open(&mut self, name: &str, mode: u64) -> Result<u64, Failed> {
        // "r", "w" and "a", each also with "b" and "+".
        if mode > 11 {
            return Err(Failed(EINVAL));
        }
        let (kind, plus) = (mode / 4, mode & 2 != 0);
        let handle = match (name, kind) {
            (CONSOLE, 0) => Handle::Input,
            (CONSOLE, 1) => Handle::Output,
            (CONSOLE, _) => Handle::Error,
            (FEATURES, 0) => Handle::Features(0),
            _ => {
                let mut options = OpenOptions::new();
                match kind {
                    0 => options.read(true).write(plus),
                    1 => options.write(true).create(true).truncate(true).read(plus),
                    _ => options.append(true).create(true).read(plus),
                };
                // To open a pipe would wait for its other end.
                options.custom_flags(libc::O_NONBLOCK);
                let file = self.folder(name)?.open_with(name, &options)?;
                // A pipe or a device might keep the machine waiting.
                if !file.metadata()?.is_file() {
                    return Err(Failed(EINVAL));
                }
                Handle::File(file)
            }
        };
        let free = self.open.iter().position(Option::is_none);
        let place = free.unwrap_or(self.open.len());
        if place >= OPEN_MAX {
            return Err(Failed(EINVAL));
        }
        if place == self.open.len() {
            self.open.push(None);
        }
        self.open[place] = Some(handle);
        // 0 is no handle.
        Ok(place as u64 + 1)
    }

    fn handle(&mut self, handle: u64) -> Result<&mut Handle, Failed> {
        let place = handle.checked_sub(1).and_then(|n| usize::try_from(n).ok());
        let open = place.and_then(|n| self.open.get_mut(n));
        open.and_then(Option::as_mut).ok_or(Failed(EBADF))
    }

    pub(super) fn close(&mut self, handle: u64) -> Result<u64, Failed> {
        self.handle(handle)?;
        self.open[handle as usize - 1] = None;
        Ok(0)
    }

    pub(super) fn write(&mut self, handle: u64, bytes: &[u8]) -> Result<usize, Failed> {
        match self.handle(handle)? {
            Handle::Output => self.console.print(bytes),
            Handle::Error => {
                let _ = std::io::stderr().write_all(bytes);
            }
            Handle::File(file) => file.write_all(bytes)?,
            Handle::Input | Handle::Features(_) => return Err(Failed(EBADF)),
        }
        Ok(bytes.len())
    }

    pub(super) fn read(&mut self, handle: u64, most: usize) -> Result<Vec<u8>, Failed> {
        match self.handle(handle)? {
            Handle::Input => Ok(self.console.input(most)),
            Handle::Features(at) => {
                let rest = &FEATURES_CONTENT[*at..];
                let bytes = rest[..most.min(rest.len())].to_vec();
                *at += bytes.len();
                Ok(bytes)
            }
            Handle::File(file) => {
                let mut bytes = Vec::new();
                file.take(most as u64).read_to_end(&mut bytes)?;
                Ok(bytes)
            }
            Handle::Output | Handle::Error => Err(Failed(EBADF)),
        }
    }

    pub(super) fn is_terminal(&mut self, handle: u64) -> Result<bool, Failed> {
        Ok(match self.handle(handle)? {
            Handle::Input => self.console.has_terminal_input,
            Handle::Output => self.console.has_terminal_output,
            Handle::Error => std::io::stderr().is_terminal(),
            Handle::Features(_) | Handle::File(_) => false,
        })
    }

    pub(super) fn seek(&mut self, handle: u64, to: u64) -> Result<u64, Failed> {
        match self.handle(handle)? {
            Handle::File(file) => {
                file.seek(SeekFrom::Start(to))?;
            }
            Handle::Features(at) if to <= FEATURES_CONTENT.len() as u64 => *at = to as usize,
            _ => return Err(Failed(EINVAL)),
        }
        Ok(0)
    }

    pub(super) fn length(&mut self, handle: u64) -> Result<u64, Failed> {
        match self.handle(handle)? {
            Handle::File(file) => Ok(file.metadata()?.len()),
            Handle::Features(_) => Ok(FEATURES_CONTENT.len() as u64),
            _ => Err(Failed(EINVAL)),
        }
    }

    pub(super) fn remove(&mut self, name: &str) -> Result<u64, Failed> {
        self.folder(name)?.remove_file(name)?;
        Ok(0)
    }

    pub(super) fn rename(&mut self, from: &str, to: &str) -> Result<u64, Failed> {
        let folder = self.folder(from)?;
        folder.rename(from, folder, to)?;
        Ok(0)
    }
}
