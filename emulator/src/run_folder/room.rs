//! What may be removed to make room: only what a run of tipsim made.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::folder::Folder;
use super::marker::{MARKER, Marker};
use super::remove_tree::remove_tree;
use super::{
    CONSOLE, EXEC_SPEC, GUEST_FILES, PHASES, PHASES_POINTS, PHASES_VECTORS, PHASES_WEIGHTS,
    PROFILE_SPEC, RUN, STORED_UNITS, SWEEP, TRACE, TRIALS, UNITS,
};
use crate::experiment::input::MADE_INPUT;
use crate::host::sha256::sha256;
use crate::run_folder::evaluation::{EVALUATION, EXCERPTS};

/// Files that runs, reports and `tipsim profile` write, here and in the folder of each hart.
const RESULT_FILES: [&str; 23] = [
    MARKER,
    LOCK,
    RUN,
    CONSOLE,
    TRACE,
    EVALUATION,
    EXCERPTS,
    "report.txt",
    "report.json",
    "report.html",
    "errors.json",
    "flame.json",
    "truth.json",
    UNITS,
    STORED_UNITS,
    SWEEP,
    PHASES,
    PHASES_VECTORS,
    PHASES_POINTS,
    PHASES_WEIGHTS,
    PROFILE_SPEC,
    EXEC_SPEC,
    MADE_INPUT,
];
/// What the lock of a folder is on.
pub(super) const LOCK: &str = ".lock";
/// Bytes of the list of what a guest left, which chooses the names.
const MAX_LIST_BYTES: usize = if cfg!(test) { 64 << 10 } else { 16 << 20 };
/// Files and folders that are looked at; a folder with more is kept.
const MAX_ENTRIES: usize = 1 << 20;

/// Returns whether there is a folder that a run made.
pub(super) fn is_ours(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
        && Folder::open(path).is_ok_and(|folder| matches!(Marker::read(&folder), Ok(Some(_))))
}

/// Returns whether a folder has the results of a whole run.
pub(super) fn is_whole(path: &Path) -> bool {
    let marker = Folder::open(path).and_then(|folder| Marker::read(&folder));
    matches!(marker, Ok(Some(Marker { state, part: None, .. })) if state.is_over())
}

/// Removes a folder that a run made, if it holds nothing else; `false`: it does, and nothing was removed.
pub(super) fn remove(path: &Path) -> io::Result<bool> {
    let mut found = Found::default();
    if !found.run(path)? {
        return Ok(false);
    }
    // Nothing but what was looked at is removed: a folder to which somebody adds something meanwhile stays.
    for tree in &found.trees {
        remove_tree(tree)?;
    }
    for file in &found.files {
        fs::remove_file(file)?;
    }
    for folder in found.folders.iter().rev() {
        fs::remove_dir(folder)?;
    }
    Ok(true)
}

/// The name under which the run before is kept: `DIR.old`, or with a number if something that no run made is there, or
/// has been put into it. The results of a whole run do not make room for those of one that was cut short.
pub(super) fn old_name(out: &Path, is_whole_run: bool) -> io::Result<PathBuf> {
    for n in 0.. {
        let name = match n {
            0 => suffixed(out, ".old"),
            n => suffixed(out, &format!(".old.{n}")),
        };
        let free = fs::symlink_metadata(&name).is_err();
        // What cannot be removed, such as a tree that is too deep, stays as well.
        let is_worth_less = || is_whole_run || !is_whole(&name);
        if free || (is_ours(&name) && is_worth_less() && remove(&name).unwrap_or(false)) {
            return Ok(name);
        }
    }
    unreachable!("there are endless names")
}

/// A path with more at its end.
pub(super) fn suffixed(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Returns what a run left in `files/`: paths of files and links, and of folders, which end in `/`. What cannot be listed is
/// left out, and everything if the list were too long.
pub(super) fn listed(files: &Path) -> Vec<String> {
    let mut found = Found::default();
    // What is not in the list is never removed.
    let _ = found.all(files);
    let within =
        |path: &PathBuf| Some(path.strip_prefix(files).ok()?.to_string_lossy().into_owned());
    let folders = found.folders.iter().filter(|folder| *folder != files);
    let folders = folders.filter_map(|folder| Some(within(folder)? + "/"));
    let mut list: Vec<_> = found.files.iter().filter_map(within).chain(folders).collect();
    list.sort();
    if list.iter().map(String::len).sum::<usize>() > MAX_LIST_BYTES {
        list.clear();
    }
    list
}

/// What was found, each folder before what is in it.
#[derive(Default)]
struct Found {
    /// Folders that are a run's with all that is in them.
    trees: Vec<PathBuf>,
    files: Vec<PathBuf>,
    folders: Vec<PathBuf>,
}

impl Found {
    /// Adds the folder of a run. False: there is something in it that no run made.
    fn run(&mut self, path: &Path) -> io::Result<bool> {
        let Some(marker) = Marker::read(&Folder::open(path)?)? else {
            return Ok(false);
        };
        self.folders.push(path.to_owned());
        for (name, kind, path) in entries(path)? {
            let is_own = match kind.is_dir() {
                // Whoever has changed it may want it, once it is among results.
                false if (name == PROFILE_SPEC || name == EXEC_SPEC) && marker.state.is_over() => {
                    is_as_written(&marker, &name, &path)
                }
                false => is_result(&name) || marker.files.contains_key(&name),
                true if name == GUEST_FILES && !marker.state.is_over() => {
                    self.trees.push(path.clone());
                    true
                }
                true if name == GUEST_FILES => {
                    let listed = marker.guest_files.iter().map(String::as_str).collect();
                    self.folders.push(path.clone());
                    self.listed(&path, "", &listed)?
                }
                true if name == TRIALS => self.trials(&path)?,
                true if is_hart(&name) => self.hart(&path)?,
                true => false,
            };
            if !is_own {
                return Ok(false);
            }
            if !kind.is_dir() {
                self.files.push(path);
            }
        }
        Ok(self.files.len() + self.folders.len() <= MAX_ENTRIES)
    }

    /// Adds the reports of a hart.
    fn hart(&mut self, path: &Path) -> io::Result<bool> {
        self.folders.push(path.to_owned());
        for (name, kind, path) in entries(path)? {
            if kind.is_dir() || !is_result(&name) {
                return Ok(false);
            }
            self.files.push(path);
        }
        Ok(true)
    }

    /// Adds the runs of `tipsim what-if`, each with its spec.
    fn trials(&mut self, path: &Path) -> io::Result<bool> {
        self.folders.push(path.to_owned());
        for (name, kind, path) in entries(path)? {
            match kind.is_dir() {
                true if self.run(&path)? => {}
                false if name.ends_with(".toml") => self.files.push(path),
                _ => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Adds everything in a folder.
    fn all(&mut self, path: &Path) -> io::Result<bool> {
        let mut next = vec![path.to_owned()];
        while let Some(folder) = next.pop() {
            if self.files.len() + self.folders.len() > MAX_ENTRIES {
                return Ok(false);
            }
            make_listable(&folder)?;
            for (_, kind, path) in entries(&folder)? {
                match kind.is_dir() {
                    true => next.push(path),
                    false => self.files.push(path),
                }
            }
            self.folders.push(folder);
        }
        Ok(true)
    }

    /// Adds what is in a folder below `files/`, if the list has all of it.
    fn listed(&mut self, path: &Path, front: &str, list: &HashSet<&str>) -> io::Result<bool> {
        let mut next = vec![(path.to_owned(), front.to_owned())];
        while let Some((folder, front)) = next.pop() {
            for (name, kind, path) in entries(&folder)? {
                let name = format!("{front}{name}{}", if kind.is_dir() { "/" } else { "" });
                if !list.contains(name.as_str()) {
                    return Ok(false);
                }
                match kind.is_dir() {
                    true => {
                        self.folders.push(path.clone());
                        next.push((path, name));
                    }
                    false => self.files.push(path),
                }
            }
        }
        Ok(true)
    }
}

/// Gives the host's user the rights to list a folder, to move it and to remove from it: the guest may have taken them.
fn make_listable(folder: &Path) -> io::Result<()> {
    let mode = fs::metadata(folder)?.permissions().mode();
    match mode & 0o700 {
        0o700 => Ok(()),
        _ => fs::set_permissions(folder, fs::Permissions::from_mode(mode | 0o700)),
    }
}

/// Name, kind and path of what is in a folder. What is no UTF-8 in a name is replaced, as in the list.
fn entries(folder: &Path) -> io::Result<Vec<(String, fs::FileType, PathBuf)>> {
    let entry = |entry: io::Result<fs::DirEntry>| {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        Ok((name, entry.file_type()?, entry.path()))
    };
    fs::read_dir(folder)?.map(entry).collect()
}

/// Returns whether a file is what a run wrote.
fn is_as_written(marker: &Marker, name: &str, path: &Path) -> bool {
    let found = fs::File::open(path).and_then(sha256).ok();
    found.is_some() && found.as_ref() == marker.files.get(name)
}

/// Names in a folder that results have, but for the lock, which all runs into it share.
pub(super) fn results_in(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for (name, ..) in entries(folder)? {
        if is_name_of_results(&name) {
            names.push(name);
        }
    }
    Ok(names)
}

/// Returns whether something is called as results are, but for the lock, which all runs into a folder share.
pub(super) fn is_name_of_results(name: &str) -> bool {
    let is_folder = name == GUEST_FILES || name == TRIALS || is_hart(name);
    is_folder || (is_result(name) && name != LOCK)
}

/// Returns whether nothing is in a folder but what a run made.
pub(super) fn is_only_ours(path: &Path) -> bool {
    Found::default().run(path).unwrap_or(false)
}

fn is_result(name: &str) -> bool {
    RESULT_FILES.contains(&name.strip_suffix(".partial").unwrap_or(name))
}

fn is_hart(name: &str) -> bool {
    let number = name.strip_prefix("hart").unwrap_or_default();
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::super::marker::State;
    use super::*;

    fn run(path: &Path, state: State, guest_files: &[&str]) {
        fs::create_dir_all(path.join("files")).unwrap();
        let marker = Marker {
            state,
            guest_files: guest_files.iter().map(|&name| name.to_owned()).collect(),
            ..Marker::running()
        };
        marker.write(&Folder::open(path).unwrap()).unwrap();
        for name in [LOCK, "report.txt", "trace.tip", "report.html.partial"] {
            fs::write(path.join(name), "").unwrap();
        }
    }

    #[test]
    fn only_what_a_run_made_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        run(&at("whole"), State::Ended, &["a", "sub/", "sub/b", "link"]);
        fs::create_dir(at("whole/files/sub")).unwrap();
        for name in ["a", "sub/b"] {
            fs::write(at("whole/files").join(name), "").unwrap();
        }
        fs::write(at("victim"), "victim").unwrap();
        std::os::unix::fs::symlink(at("victim"), at("whole/files/link")).unwrap();
        fs::create_dir(at("whole/hart0")).unwrap();
        fs::write(at("whole/hart0/report.txt"), "").unwrap();
        run(&at("whole/what-if/1"), State::Ended, &[]);
        fs::write(at("whole/what-if/1.toml"), "").unwrap();
        for added in ["notes", "files/more", "hart0/more", "what-if/more"] {
            fs::write(at("whole").join(added), "").unwrap();
            assert!(!remove(&at("whole")).unwrap(), "{added}");
            assert!(at("whole/report.txt").exists() && at("whole/files/a").exists());
            fs::remove_file(at("whole").join(added)).unwrap();
        }
        assert!(remove(&at("whole")).unwrap() && !at("whole").exists());
        assert_eq!(fs::read_to_string(at("victim")).unwrap(), "victim");
        // A killed run has not said what the guest left.
        run(&at("killed"), State::Running, &[]);
        fs::create_dir_all(at("killed/files/any/thing")).unwrap();
        assert!(remove(&at("killed")).unwrap() && !at("killed").exists());
        fs::create_dir(at("another's")).unwrap();
        assert!(!remove(&at("another's")).unwrap() && !is_ours(&at("another's")));
    }

    #[test]
    fn all_that_a_guest_left_is_listed() {
        use std::os::unix::ffi::OsStrExt as _;
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        run(&at("run"), State::Ended, &[]);
        let files = at("run/files");
        fs::create_dir_all(files.join("sub/empty")).unwrap();
        fs::write(files.join(std::ffi::OsStr::from_bytes(b"\xff")), "").unwrap();
        std::os::unix::fs::symlink("/", files.join("sub/root")).unwrap();
        let list = listed(&files);
        assert_eq!(list, ["sub/", "sub/empty/", "sub/root", "\u{fffd}"]);
        let list: Vec<&str> = list.iter().map(String::as_str).collect();
        run(&at("run"), State::Ended, &list);
        assert!(remove(&at("run")).unwrap() && !at("run").exists());
    }

    #[test]
    fn a_guest_decides_neither_how_long_the_list_is_nor_whether_it_can_be_made() {
        let dir = tempfile::tempdir().unwrap();
        let files = dir.path().join("files");
        fs::create_dir_all(files.join("closed/inner")).unwrap();
        for folder in ["closed/inner", "closed", ""] {
            let closed = fs::Permissions::from_mode(0o000);
            fs::set_permissions(files.join(folder), closed).unwrap();
        }
        assert_eq!(listed(&files), ["closed/", "closed/inner/"]);
        let mode = |name: &str| fs::metadata(files.join(name)).unwrap().permissions().mode();
        assert_eq!((mode("") & 0o777, mode("closed") & 0o777), (0o700, 0o700));
        // Names that are longer than all lists may be.
        let long = "x".repeat(250);
        for n in 0..=MAX_LIST_BYTES / 250 {
            fs::write(files.join(format!("{n:04}{}", &long[..246])), "").unwrap();
        }
        assert_eq!(listed(&files), [""; 0]);
    }
}
