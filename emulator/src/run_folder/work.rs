//! The folder in which a run works, until its results take their place.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use simulation::SimulationError;

use super::GUEST_FILES;
use super::folder::Folder;
use super::marker::{Marker, State};
use super::move_in::move_in;
use super::reader::Results;
use super::room::{self, LOCK, suffixed};
use crate::failure::{BadInput, bad_input, cannot_write};

/// What another process takes at most to mark a folder as its own that it has just made.
const TIME_TO_MARK: Duration = Duration::from_secs(1);

/// Creates a file when it is called.
pub(super) type CreateFile = Box<dyn FnOnce() -> Result<File, SimulationError>>;

/// A run's working folder, `DIR.partial`. Dropped before [`Self::publish`], it is removed.
pub(crate) struct Work {
    /// What is there so far, under the folder's lock.
    results: Results,
    /// Where the results belong.
    out: PathBuf,
    published: bool,
}

impl Work {
    /// Checks whether results may take their place at `out`. Makes nothing, but goes on with what a killed run had begun there.
    ///
    /// # Errors
    /// If something is there that no run made, or that cannot be replaced.
    pub(crate) fn check(out: &Path) -> Result<(), BadInput> {
        let real = out.canonicalize().unwrap_or_else(|_| out.to_owned());
        settle(&real).map_err(|e| bad_input(&suffixed(&real, ".partial"), e))?;
        place(out).map(drop)
    }

    /// Makes the working folder beside `out`, and holds it.
    ///
    /// # Errors
    /// If something is at `out` that no run made or that cannot be replaced, and if another run works for `out`.
    pub(crate) fn begin(out: &Path) -> anyhow::Result<Self> {
        let parent = out.parent().filter(|parent| !parent.as_os_str().is_empty());
        if let Some(parent) = parent {
            fs::create_dir_all(parent).map_err(|e| cannot_write(parent, e))?;
        }
        let out = place(out)?;
        let path = suffixed(&out, ".partial");
        let (folder, lock) = make(&path)?;
        let marker = Marker::running();
        marker.write(&folder).and_then(|()| fs::create_dir(path.join(GUEST_FILES))).map_err(
            |e| {
                let _ = room::remove(&path);
                remove_new(&path);
                cannot_write(&path, e)
            },
        )?;
        Ok(Self { results: Results::begun(folder, marker, lock), out, published: false })
    }

    /// Returns the results that are there so far.
    pub(crate) fn results(&mut self) -> &mut Results {
        &mut self.results
    }

    /// Returns the path of the working folder.
    pub(crate) fn path(&self) -> &Path {
        self.results.path()
    }

    /// The folder that the guest shares with the host.
    pub(crate) fn guest_files(&self) -> PathBuf {
        self.results.guest_files()
    }

    /// Creates a file that is written while the run goes on.
    ///
    /// # Errors
    /// If it cannot be created.
    pub(crate) fn create(&self, name: &str) -> anyhow::Result<File> {
        let created = self.results.folder().create(name);
        created.map_err(|e| cannot_write(&self.path().join(name), e))
    }

    /// Returns what creates a file that is written while the run goes on, at a later time.
    ///
    /// # Errors
    /// If the process can open no more files.
    pub(crate) fn creator(&self, name: &'static str) -> anyhow::Result<CreateFile> {
        let path = self.path().join(name);
        let folder = self.results.folder().try_clone();
        let folder = folder.map_err(|e| bad_input(self.path(), e))?;
        Ok(Box::new(move || {
            folder.create(name).map_err(|e| SimulationError::cannot_write(&path, e))
        }))
    }

    /// Puts the results in their place, in one step; the run before is kept as `DIR.old`. `part`: why they are not of a whole run.
    /// Returns where they are, and what went wrong.
    pub(crate) fn publish(mut self, part: Option<&str>) -> (PathBuf, anyhow::Result<()>) {
        self.published = true;
        let path = self.path().to_owned();
        match self.finish(part) {
            Ok(()) => (self.out.clone(), Ok(())),
            Err(error) => {
                let (shown, out) = (path.display(), self.out.display());
                let error = format!(
                    "{shown}: cannot take the place of {out}, the results stay here: {error}"
                );
                (path, Err(anyhow::anyhow!(error)))
            }
        }
    }

    fn finish(&mut self, part: Option<&str>) -> io::Result<()> {
        self.results.end(part)?;
        put(self.path(), &self.out)
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        if !self.published {
            let _ = room::remove(self.path());
        }
    }
}

/// Puts results that are all written from the working folder `path`, whose lock the caller has, into their place.
fn put(path: &Path, out: &Path) -> io::Result<()> {
    // A run that was killed while it moved has left files of two runs in `out`.
    if is_being_moved(path)? {
        return move_in(path, out);
    }
    // What is there may have changed since the run began.
    place(out).map_err(io::Error::other)?;
    let here = std::env::current_dir().is_ok_and(|here| here.starts_with(out));
    if !here && (!out.exists() || fs::remove_dir(out).is_ok()) {
        rename(path, out, RenameFlags::NOREPLACE)?;
        return in_place(out);
    }
    // A report that is being rebuilt there is waited for.
    let _lock = lock_file(&Folder::open(out)?)?;
    // What others have put there stays where it is, and so does a shell that was called there.
    if here || !room::is_only_ours(out) {
        return move_in(path, out);
    }
    let old = room::old_name(out, room::is_whole(out))?;
    match rename(path, out, RenameFlags::EXCHANGE) {
        Ok(()) => {
            in_place(out)?;
            rename(path, &old, RenameFlags::NOREPLACE)
        }
        // Some file systems cannot exchange.
        Err(_) => move_in(path, out),
    }
}

/// Returns whether some of the results in a working folder may have been moved out of it.
fn is_being_moved(path: &Path) -> io::Result<bool> {
    let marker = Marker::read(&Folder::open(path)?)?;
    Ok(marker.is_some_and(|marker| marker.moving.is_some()))
}

/// Writes down that results are in their place.
fn in_place(out: &Path) -> io::Result<()> {
    let folder = Folder::open(out)?;
    if let Some(mut marker) = Marker::read(&folder)? {
        marker.state = State::Ended;
        marker.write(&folder)?;
    }
    Ok(())
}

/// The path at which results take their place, without links, if they may.
fn place(out: &Path) -> Result<PathBuf, BadInput> {
    let refused = |error: &str| Err(bad_input(out, format!("--out: {error}")));
    let Ok(found) = fs::symlink_metadata(out) else {
        let Some(name) = out.file_name() else {
            return refused("expected a folder with a name");
        };
        let parent = out.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        // Where there is no parent yet it is made later.
        let parent = parent.canonicalize().unwrap_or_else(|_| parent.to_owned());
        return Ok(parent.join(name));
    };
    let real = out.canonicalize().map_err(|e| {
        let what = if found.is_symlink() { "a link that leads nowhere: " } else { "" };
        bad_input(out, format!("--out: {what}{e}"))
    })?;
    if !real.is_dir() {
        return refused("expected a folder, found a file");
    }
    let Some(parent) = real.parent() else {
        return refused("expected a folder for the results, found the root of the file system");
    };
    let taken = room::results_in(&real);
    let taken = taken.map_err(|e| bad_input(out, format!("--out: {e}")))?;
    if let Some(name) = taken.first()
        && !room::is_ours(&real)
    {
        return refused(&format!(
            "expected a folder without files that are named as results, or the results of an earlier run; found \"{name}\", which no run made"
        ));
    }
    let device = |path: &Path| fs::metadata(path).map(|found| found.dev()).ok();
    if device(&real) != device(parent) {
        return refused(
            "expected a folder that can be renamed, found a mounted file system; try a folder in it",
        );
    }
    Ok(real)
}

/// Makes a working folder and takes its lock. What a killed run left there is removed, or kept under a number.
fn make(path: &Path) -> anyhow::Result<(Folder, File)> {
    let begun = Instant::now();
    loop {
        match fs::create_dir(path) {
            Ok(()) => {
                let locked = lock_new(path);
                return locked.map_err(|e| {
                    remove_new(path);
                    cannot_write(path, e)
                });
            }
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(cannot_write(path, error));
            }
            Err(_) => {}
        }
        if let Some(process) = holder(path) {
            let error =
                format!("in use by process {process}: another run is going on for the same --out");
            return Err(bad_input(path, error).into());
        }
        if room::is_ours(path) {
            make_room(path).map_err(|e| cannot_write(path, e))?;
        } else if begun.elapsed() > TIME_TO_MARK && fs::remove_dir(path).is_err() {
            // A killed run leaves an empty one, if it was killed then.
            let error = "expected nothing of this name, or what a run left that was killed; found something else";
            return Err(bad_input(path, error).into());
        } else {
            std::thread::sleep(TIME_TO_MARK / 20);
        }
    }
}

/// Opens and locks a folder that was just made.
fn lock_new(path: &Path) -> io::Result<(Folder, File)> {
    let folder = Folder::open(path)?;
    let mut lock = folder.create(LOCK)?;
    // A reader has it for a moment at most.
    lock.lock()?;
    lock.write_all(std::process::id().to_string().as_bytes())?;
    Ok((folder, lock))
}

/// Removes a folder that was just made and could not be marked, so that it is in nobody's way.
fn remove_new(path: &Path) {
    let _ = fs::remove_file(path.join(LOCK));
    let _ = fs::remove_dir(path);
}

/// Goes on with putting results into their place, if the process that did so was killed.
pub(super) fn settle(out: &Path) -> io::Result<()> {
    let partial = suffixed(out, ".partial");
    if !room::is_ours(&partial) {
        return Ok(());
    }
    let folder = Folder::open(&partial)?;
    match Marker::read(&folder)? {
        Some(marker) if marker.state == State::Moving && holder(&partial).is_none() => {
            let _lock = lock_file(&folder)?;
            put(&partial, out)
        }
        _ => Ok(()),
    }
}

/// Takes away what lies where a run is to work.
fn make_room(path: &Path) -> io::Result<()> {
    let marker = Marker::read(&Folder::open(path)?)?;
    if marker.as_ref().is_some_and(|marker| marker.state == State::Moving) {
        return put(path, &path.with_extension(""));
    }
    // A run that was killed between two renames had put its results in place already: this is the run before.
    let is_before = marker.is_some_and(|marker| marker.state == State::Ended);
    // What cannot be removed is kept under a number.
    if !is_before && room::remove(path).unwrap_or(false) {
        eprintln!("tipsim: removed {}, which a run left that was killed", path.display());
        return Ok(());
    }
    let out = path.with_extension("");
    let old = room::old_name(if is_before { &out } else { path }, room::is_whole(path))?;
    rename(path, &old, RenameFlags::NOREPLACE)
}

/// The process that holds a folder, if one does.
pub(super) fn holder(path: &Path) -> Option<String> {
    let folder = Folder::open(path).ok()?;
    let lock = folder.file(LOCK, 100).ok()?;
    match lock.try_lock_shared() {
        Err(TryLockError::WouldBlock) => {
            let process = folder.read(LOCK, 100).unwrap_or_default();
            Some(String::from_utf8_lossy(&process).into_owned())
        }
        _ => None,
    }
}

/// Takes the lock of a folder of results; waits for whoever has it.
pub(super) fn lock_file(folder: &Folder) -> io::Result<Option<File>> {
    let lock = match folder.file(LOCK, 100) {
        Ok(lock) => lock,
        // A folder that can only be read cannot be changed, either.
        Err(error) if error.kind() == io::ErrorKind::NotFound => match folder.create(LOCK) {
            Ok(lock) => lock,
            Err(_) => return Ok(None),
        },
        Err(error) => return Err(error),
    };
    if let Err(TryLockError::WouldBlock) = lock.try_lock() {
        eprintln!("tipsim: {}: another process works on it: waiting", folder.path().display());
        lock.lock()?;
    }
    Ok(Some(lock))
}

fn rename(from: &Path, to: &Path, flags: RenameFlags) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, flags) {
        // Some file systems know no flags. Nobody else renames to a name that the lock is for.
        Err(rustix::io::Errno::INVAL) if flags == RenameFlags::NOREPLACE => {
            if fs::symlink_metadata(to).is_ok() {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            fs::rename(from, to)
        }
        done => Ok(done?),
    }
}

#[cfg(test)]
mod tests {
    use super::super::marker::Moving;
    use super::*;

    /// Killed with everything written and nothing moved, in a fresh folder (1) and in a used one (2, 3): the next command, be it a
    /// reader or a run, finishes that, and the run is not lost.
    #[test]
    fn results_that_are_written_come_to_their_place() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        for n in 1..=4 {
            let mut work = Work::begin(&out).unwrap();
            let content = format!("run {n}");
            work.results.write("report.txt", content.as_bytes()).unwrap();
            match n {
                1..=3 => {
                    work.results.end(None).unwrap();
                    work.published = true;
                    drop(work);
                }
                _ => work.publish(None).1.unwrap(),
            }
            if n == 2 {
                continue;
            }
            let run = Results::open(&out).unwrap();
            assert_eq!(run.text("report.txt").unwrap(), content);
            assert!(!suffixed(&out, ".partial").exists());
        }
        let before = Results::open(&suffixed(&out, ".old")).unwrap();
        assert_eq!(before.text("report.txt").unwrap(), "run 3");
    }

    /// Killed with half of the results moved: a run finishes that, too, before it looks for what others have in its folder.
    #[test]
    fn a_run_goes_on_with_a_move_before_it_begins() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        for n in 1..=2 {
            let mut work = Work::begin(&out).unwrap();
            work.results.write("report.txt", &[b'0' + n]).unwrap();
            work.results.write("run.json", &[b'0' + n]).unwrap();
            work.publish(None).1.unwrap();
            fs::write(out.join("notes"), "mine").unwrap();
        }
        let mut work = Work::begin(&out).unwrap();
        work.results.write("report.txt", b"3").unwrap();
        work.results.write("run.json", b"3").unwrap();
        work.results.end(None).unwrap();
        let mut marker = Marker::read(work.results.folder()).unwrap().unwrap();
        marker.moving = Some(Moving {
            old: "out.old.1".to_owned(),
            entries: ["files", "report.txt", "run.json"].map(str::to_owned).into(),
        });
        marker.write(work.results.folder()).unwrap();
        let (partial, old) = (work.path().to_owned(), suffixed(&out, ".old.1"));
        work.published = true;
        drop(work);
        fs::create_dir(&old).unwrap();
        for name in ["tipsim.json", "files", "report.txt"] {
            fs::rename(out.join(name), old.join(name)).unwrap();
        }
        fs::rename(partial.join("report.txt"), out.join("report.txt")).unwrap();
        Work::check(&out).unwrap();
        let text = |folder: &Path, name: &str| fs::read_to_string(folder.join(name)).unwrap();
        for name in ["report.txt", "run.json"] {
            assert_eq!((text(&out, name), text(&old, name)), ("3".into(), "2".into()));
        }
        assert_eq!(text(&out, "notes"), "mine");
        assert!(Work::begin(&out).is_ok());
    }

    /// What is whole is kept until something whole comes after it.
    #[test]
    fn parts_do_not_take_the_place_of_a_whole_run_before() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let run = |name: &str, part: Option<&str>| {
            let mut work = Work::begin(&at("out")).unwrap();
            work.results.write("report.txt", name.as_bytes()).unwrap();
            work.publish(part).1.unwrap();
        };
        let text = |name: &str| fs::read_to_string(at(name).join("report.txt")).unwrap();
        run("whole", None);
        for name in ["first part", "second part", "third part"] {
            run(name, Some("it was interrupted"));
        }
        assert_eq!(
            (text("out"), text("out.old"), text("out.old.1")),
            ("third part".into(), "whole".into(), "second part".into())
        );
        run("another whole", None);
        run("one more", None);
        assert_eq!((text("out"), text("out.old")), ("one more".into(), "another whole".into()));
    }
}
