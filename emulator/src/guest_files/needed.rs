//! What a command needs of the guest, looked at before anything boots: the program, its interpreter and its shared libraries.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use object::LittleEndian;
use object::elf::{DT_NEEDED, FileHeader64};
use object::read::elf::{Dyn, FileHeader, ProgramHeader};

use crate::failure::{BadInput, bad_input};
use crate::guest_files::images::GuestFiles;
use crate::guest_files::packages::Packages;

/// ELF's number of RISC-V.
const EM_RISCV: u16 = 243;

/// Libraries that compilers link programs with, and the Debian packages that have them.
const LIBRARIES: [(&str, &str); 18] = [
    ("libstdc++.so.6", "libstdc++6"),
    ("libgcc_s.so.1", "libgcc-s1"),
    ("libgomp.so.1", "libgomp1"),
    ("libatomic.so.1", "libatomic1"),
    ("libgfortran.so.5", "libgfortran5"),
    ("libasan.so.8", "libasan8"),
    ("libtsan.so.2", "libtsan2"),
    ("libubsan.so.1", "libubsan1"),
    ("libc++.so.1", "libc++1"),
    ("libomp.so.5", "libomp5"),
    ("libcrypt.so.1", "libcrypt1"),
    ("libncursesw.so.6", "libncursesw6"),
    ("libtinfo.so.6", "libtinfo6"),
    ("ld-musl-riscv64.so.1", "musl"),
    ("libpthread.so.0", "libc6"),
    ("libdl.so.2", "libc6"),
    ("librt.so.1", "libc6"),
    ("libresolv.so.2", "libc6"),
];
/// Folders in which the guest's dynamic linker looks.
const LIBRARY_FOLDERS: [&str; 3] = ["usr/lib/riscv64-linux-gnu", "usr/lib", "usr/local/lib"];
/// Folders in which the guest's shell looks for commands.
const COMMAND_FOLDERS: [&str; 4] = ["usr/bin", "usr/sbin", "usr/games", "usr/local/bin"];
/// Commands that are the shell's own.
const BUILTINS: [&str; 44] = [
    ".", ":", "[", "alias", "bg", "break", "case", "cd", "command", "continue", "echo", "eval",
    "exec", "exit", "export", "false", "fg", "for", "getopts", "hash", "help", "if", "jobs",
    "kill", "local", "printf", "pwd", "read", "readonly", "return", "set", "shift", "source",
    "test", "times", "trap", "true", "type", "ulimit", "umask", "unalias", "unset", "until",
    "while",
];

/// What an ELF file or a script needs to start.
#[derive(Debug, Default, PartialEq, Eq)]
struct Needs {
    /// The program that starts it: a dynamic linker, or a script's.
    interpreter: Option<String>,
    /// Names of shared libraries.
    libraries: Vec<String>,
}

impl Needs {
    /// Returns what a file needs; nothing if it is neither an ELF file nor a script. A program for another machine is an error.
    fn of(path: &Path) -> Result<Self, BadInput> {
        let mut start = [0; 256];
        let mut file = File::open(path).map_err(|e| bad_input(path, e))?;
        let mut length = 0;
        while length < start.len() {
            match file.read(&mut start[length..]).map_err(|e| bad_input(path, e))? {
                0 => break,
                more => length += more,
            }
        }
        let start = &start[..length];
        if let Some(line) = start.strip_prefix(b"#!") {
            let line = String::from_utf8_lossy(line);
            let words = line.lines().next().unwrap_or_default().split_whitespace();
            return Ok(Self {
                interpreter: words.map(str::to_owned).next(),
                libraries: Vec::new(),
            });
        }
        if !start.starts_with(b"\x7fELF") || length < 20 {
            return Ok(Self::default());
        }
        let machine = u16::from_le_bytes([start[18], start[19]]);
        if machine != EM_RISCV {
            return Err(bad_input(
                path,
                format!(
                    "expected a program for RISC-V (ELF machine {EM_RISCV}), found machine {machine}: build it with riscv64-linux-gnu-gcc, \
                     or take Debian's (--package)"
                ),
            ));
        }
        let bytes = std::fs::read(path).map_err(|e| bad_input(path, e))?;
        // The guest itself says that a file is damaged.
        Ok(Self::of_elf(&bytes).unwrap_or_default())
    }

    fn of_elf(bytes: &[u8]) -> object::read::Result<Self> {
        let header = FileHeader64::<LittleEndian>::parse(bytes)?;
        let endian = header.endian()?;
        let mut needs = Self::default();
        for segment in header.program_headers(endian, bytes)? {
            if let Some(interpreter) = segment.interpreter(endian, bytes)? {
                needs.interpreter = Some(String::from_utf8_lossy(interpreter).into_owned());
            }
        }
        let sections = header.sections(endian, bytes)?;
        if let Some((entries, names)) = sections.dynamic(endian, bytes)? {
            let names = sections.strings(endian, bytes, names)?;
            for entry in entries.iter().filter(|entry| entry.tag(endian) == DT_NEEDED) {
                let name = entry.string(endian, names)?;
                needs.libraries.push(String::from_utf8_lossy(name).into_owned());
            }
        }
        Ok(needs)
    }
}

/// Checks that a file of the host, if it is a program, is one for RISC-V.
pub(crate) fn check_machine(program: &Path) -> Result<(), BadInput> {
    Needs::of(program).map(drop)
}

/// What the guest's file system has.
pub(crate) struct GuestPaths {
    /// Paths in the initial RAM file system, without the slash at the beginning.
    initramfs: HashSet<String>,
    /// Root of Debian's packages, which lie over it.
    packages: Option<PathBuf>,
}

impl GuestPaths {
    /// Paths of a built guest with these packages; `None` if its file system cannot be looked into.
    pub(crate) fn of(guest: &GuestFiles, packages: &[String]) -> Result<Option<Self>, BadInput> {
        let initramfs = guest.initrd.as_deref().map(cpio_paths);
        let Some(Ok(initramfs)) = initramfs else {
            return Ok(None);
        };
        let packages = match packages {
            [] => None,
            names => Some(Packages::find(names)?.root),
        };
        Ok(Some(Self { initramfs, packages }))
    }

    /// The guest has this absolute path.
    fn has(&self, path: &str) -> bool {
        let path = path.trim_start_matches('/');
        // Today's Debian has these folders in `/usr`, and links to them.
        let path = match path.split_once('/') {
            Some(("bin" | "sbin", name)) => format!("usr/bin/{name}"),
            Some(("lib", name)) => format!("usr/lib/{name}"),
            _ => path.to_owned(),
        };
        let unpacked = |root: &PathBuf| root.join(&path).symlink_metadata().is_ok();
        self.initramfs.contains(&path) || self.packages.as_ref().is_some_and(unpacked)
    }

    fn has_in(&self, folders: &[&str], name: &str) -> bool {
        folders.iter().any(|folder| self.has(&format!("{folder}/{name}")))
    }

    /// Checks that a command, which is no file of the host, is one of the guest's.
    pub(crate) fn check_command(&self, name: &str) -> Result<(), BadInput> {
        let is_there = match name.starts_with('/') {
            true => self.has(name),
            false => BUILTINS.contains(&name) || self.has_in(&COMMAND_FOLDERS, name),
        };
        if is_there {
            return Ok(());
        }
        let here = match Path::new(name).is_file() {
            true => format!("./{name}, if the file here is meant; else "),
            false => String::new(),
        };
        Err(BadInput(format!(
            "{name}: the guest has no such command: {here}--package with the Debian package that has it"
        )))
    }

    /// Debian packages with what files of the host need and the guest lacks. What no known package has is an error.
    pub(crate) fn packages_for(
        &self,
        files: &[PathBuf],
    ) -> Result<Vec<(String, String)>, BadInput> {
        let mut given = HashSet::new();
        for file in files {
            add_names(file, 0, &mut given);
        }
        let mut found: Vec<(String, String)> = Vec::new();
        for file in files.iter().filter(|file| file.is_file()) {
            let needs = Needs::of(file)?;
            let interpreter = needs.interpreter.filter(|path| !self.has(path));
            let libraries = needs
                .libraries
                .into_iter()
                .filter(|name| !self.has_in(&LIBRARY_FOLDERS, name) && !given.contains(name));
            for missing in interpreter.into_iter().chain(libraries) {
                let base = missing.rsplit('/').next().unwrap_or(&missing);
                let package = LIBRARIES.iter().find(|(library, _)| *library == base);
                let Some((_, package)) = package else {
                    return Err(bad_input(file, lacks(&missing)));
                };
                if found.iter().all(|(library, _)| *library != missing) {
                    found.push((missing, (*package).to_owned()));
                }
            }
        }
        Ok(found)
    }
}

/// Adds the names of a file, or of a folder's files, that the user takes along: a program may find its libraries among them.
fn add_names(path: &Path, depth: usize, names: &mut HashSet<String>) {
    const DEEPEST: usize = 16;
    if let Some(name) = path.file_name().and_then(OsStr::to_str) {
        names.insert(name.to_owned());
    }
    let is_link = path.is_symlink() && depth > 0;
    if depth == DEEPEST || is_link {
        return;
    }
    for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
        add_names(&entry.path(), depth + 1, names);
    }
}

/// Returns what to do about something that the guest lacks.
fn lacks(missing: &str) -> String {
    match missing.contains(".so") {
        true => format!(
            "it needs {missing}, which the guest does not have: give the Debian package that has it (--package), link with -static, or \
             take a library of yours along (--file {missing} --env LD_LIBRARY_PATH=.)"
        ),
        false => format!(
            "it is started by {missing}, which the guest does not have: give the Debian package that has it (--package)"
        ),
    }
}

/// The paths in an archive of cpio's "newc" format, as the kernel takes it.
fn cpio_paths(path: &Path) -> io::Result<HashSet<String>> {
    let bad = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let mut archive = BufReader::new(File::open(path)?);
    let mut paths = HashSet::new();
    loop {
        // Magic number, and thirteen fields of eight hexadecimal digits; the file's size and that of its name are the seventh and twelfth.
        let mut header = [0; 110];
        archive.read_exact(&mut header)?;
        if !header.starts_with(b"070701") {
            return Err(bad("no cpio archive"));
        }
        let field = |n: usize| {
            let digits = std::str::from_utf8(&header[6 + 8 * n..14 + 8 * n]).ok();
            digits.and_then(|digits| u32::from_str_radix(digits, 16).ok())
        };
        let (Some(size), Some(name_size)) = (field(6), field(11)) else {
            return Err(bad("no number"));
        };
        if name_size > 4096 {
            return Err(bad("a long name"));
        }
        // Names and files are padded to four bytes, the former together with the header.
        let mut name = vec![0; (110 + name_size as usize).next_multiple_of(4) - 110];
        archive.read_exact(&mut name)?;
        let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
        let name = String::from_utf8_lossy(name);
        if name == "TRAILER!!!" {
            return Ok(paths);
        }
        paths.insert(name.trim_start_matches(['.', '/']).to_owned());
        let padded = u64::from(size).next_multiple_of(4);
        archive.seek_relative(padded as i64)?;
    }
}
