//! Results take their place in a folder that has other files, too: entry by entry, so that those stay where they are.
//!
//! A process that is killed meanwhile leaves a journal: `tipsim.json` of the working folder lists what is to be moved, and where the
//! run before goes. Whoever comes next goes on with it ([`move_in`] once more).

use std::fs;
use std::io;
use std::path::Path;

use super::folder::Folder;
use super::marker::{MARKER, Marker, Moving, State};
use super::room::{self, LOCK};

/// Moves a run's results from its working folder into `out`, and those of the run before into a folder beside it.
pub(super) fn move_in(partial: &Path, out: &Path) -> io::Result<()> {
    let folder = Folder::open(partial)?;
    let missing = || io::Error::other(format!("no {MARKER}"));
    let mut marker = Marker::read(&folder)?.ok_or_else(missing)?;
    let moving = match marker.moving.take() {
        Some(moving) => moving,
        None => Moving {
            old: name_of(&room::old_name(out, room::is_whole(out))?),
            entries: entries(partial)?,
        },
    };
    check(&moving, out)?;
    let old = out.with_file_name(&moving.old);
    let ended = Marker { state: State::Ended, ..marker.clone() };
    let to = Folder::open(out)?;
    if entries(partial)?.is_empty() && Marker::read(&to)?.as_ref() == Some(&ended) {
        return remove(&folder);
    }
    marker.state = State::Moving;
    marker.moving = Some(moving.clone());
    marker.write(&folder)?;

    let is_moved = |name: &String| moving.entries.contains(name) && !partial.join(name).exists();
    let mut before = room::results_in(out)?;
    before.retain(|name| !is_moved(name));
    // The marker moves first: without it, the next reader does not take the folder for a run's.
    before.sort_by_key(|name| name != MARKER);
    if !before.is_empty()
        && let Err(error) = fs::create_dir(&old)
        // A killed process made it; a link is nobody's.
        && !fs::symlink_metadata(&old).is_ok_and(|found| found.is_dir())
    {
        return Err(error);
    }
    for name in before {
        fs::rename(out.join(&name), old.join(&name))?;
    }
    for name in &moving.entries {
        if fs::symlink_metadata(partial.join(name)).is_ok() {
            fs::rename(partial.join(name), out.join(name))?;
        }
    }
    ended.write(&to)?;
    remove(&folder)
}

/// Refuses a journal that no run wrote: it could lead anywhere.
fn check(moving: &Moving, out: &Path) -> io::Result<()> {
    let is_name = |name: &String| Path::new(name).file_name() == Some(name.as_ref());
    let front = format!("{}.old", name_of(out));
    if is_name(&moving.old)
        && moving.old.starts_with(&front)
        && moving.entries.iter().all(|name| room::is_name_of_results(name))
    {
        return Ok(());
    }
    let error = format!("moving: expected names of files, and a folder {front}, found others");
    Err(io::Error::other(error))
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Returns what is to be moved: the results but for the journal.
fn entries(partial: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(partial)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name != MARKER && room::is_name_of_results(&name) {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// Removes the working folder, from which everything was moved.
fn remove(partial: &Folder) -> io::Result<()> {
    partial.remove(MARKER)?;
    partial.remove(LOCK)?;
    // What others have put there stays.
    let _ = fs::remove_dir(partial.path());
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// The folder of a run with some files in it.
    fn run(path: &Path, files: &[&str]) {
        fs::create_dir_all(path.join("files")).unwrap();
        let folder = Folder::open(path).unwrap();
        let mut marker = Marker { state: State::Ended, ..Marker::running() };
        for name in files {
            let content = format!("{name} of {}", path.display());
            folder.write(name, content.as_bytes()).unwrap();
            marker.note(name, content.as_bytes()).unwrap();
        }
        marker.write(&folder).unwrap();
        let _ = folder.create(LOCK);
    }

    fn names(path: &Path) -> Vec<String> {
        let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap());
        let names = entries.map(|entry| entry.file_name().into_string().unwrap());
        let mut names: Vec<String> =
            names.filter(|name| ![MARKER, LOCK, "files"].contains(&name.as_str())).collect();
        names.sort();
        names
    }

    fn is_of(path: &Path, run: &Path) -> bool {
        fs::read_to_string(path).unwrap().ends_with(&run.display().to_string())
    }

    #[test]
    fn a_journal_leads_nowhere_else() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("victim"), "victim").unwrap();
        for (old, entry) in [
            ("out.old", "../victim"),
            ("out.old", "/etc/hostname"),
            ("out.old", "Makefile"),
            ("../elsewhere", "run.json"),
            ("elsewhere", "run.json"),
            ("out.old/..", "run.json"),
        ] {
            run(&at("out"), &["run.json"]);
            run(&at("out.partial"), &["run.json"]);
            let folder = Folder::open(&at("out.partial")).unwrap();
            let marker = Marker {
                state: State::Moving,
                moving: Some(Moving { old: old.to_owned(), entries: vec![entry.to_owned()] }),
                ..Marker::running()
            };
            marker.write(&folder).unwrap();
            let error = move_in(&at("out.partial"), &at("out")).unwrap_err();
            assert!(error.to_string().starts_with("moving: expected names"), "{error}");
        }
        assert_eq!(fs::read_to_string(at("victim")).unwrap(), "victim");
        assert!(at("out/run.json").exists() && !at("elsewhere").exists());
    }

    /// Whatever was moved when a process was killed, the next one puts everything in its place.
    #[test]
    fn a_move_that_was_cut_short_is_finished() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| -> PathBuf { dir.path().join(name) };
        let (out, partial, old) = (at("out"), at("out.partial"), at("out.old"));
        for killed_after in 0..9 {
            for path in [&out, &partial, &old] {
                let _ = fs::remove_dir_all(path);
            }
            run(&out, &["report.txt", "truth.json", "run.json"]);
            fs::write(out.join("notes"), "mine").unwrap();
            run(&partial, &["report.txt", "excerpts.zst", "run.json"]);
            // What a process does up to some step, as above.
            let mut marker = Marker::read(&Folder::open(&partial).unwrap()).unwrap().unwrap();
            let moving = Moving { old: name_of(&old), entries: entries(&partial).unwrap() };
            marker.state = State::Moving;
            marker.moving = Some(moving);
            marker.write(&Folder::open(&partial).unwrap()).unwrap();
            fs::create_dir_all(&old).unwrap();
            let steps = [
                (&out, MARKER, &old),
                (&out, "report.txt", &old),
                (&out, "files", &old),
                (&out, "truth.json", &old),
                (&out, "run.json", &old),
                (&partial, "run.json", &out),
                (&partial, "files", &out),
                (&partial, "report.txt", &out),
            ];
            for (from, name, to) in &steps[..killed_after.min(steps.len())] {
                fs::rename(from.join(name), to.join(name)).unwrap();
            }
            move_in(&partial, &out).unwrap();
            assert_eq!(names(&out), ["excerpts.zst", "notes", "report.txt", "run.json"]);
            assert_eq!(names(&old), ["report.txt", "run.json", "truth.json"]);
            assert!(is_of(&out.join("report.txt"), &partial) && is_of(&old.join("run.json"), &out));
            assert!(out.join("files").is_dir() && old.join("files").is_dir() && !partial.exists());
            let ended = Marker::read(&Folder::open(&out).unwrap()).unwrap().unwrap();
            assert_eq!((ended.state, ended.moving), (State::Ended, None));
        }
    }
}
