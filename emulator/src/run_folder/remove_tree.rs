//! Removes what a guest may have left.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Removes a file, a link, or a folder with all that is in it, however deep: a folder that is in another one first becomes one beside it
/// (each level of a recursion takes a descriptor and a part of the stack, and the guest chooses how many levels there are). Nothing that
/// a link leads to is touched.
pub(crate) fn remove_tree(path: &Path) -> io::Result<()> {
    if !fs::symlink_metadata(path)?.is_dir() {
        return fs::remove_file(path);
    }
    let beside = path.parent().unwrap_or(Path::new("."));
    let mut left = vec![path.to_owned()];
    let mut moved = 0u64;
    while let Some(folder) = left.pop() {
        // The guest may have taken the right to list it or to remove from it.
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700))?;
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            if !entry.file_type()?.is_dir() {
                fs::remove_file(entry.path())?;
                continue;
            }
            // A folder that is to be moved must be writable: its `..` changes.
            fs::set_permissions(entry.path(), fs::Permissions::from_mode(0o700))?;
            let to = loop {
                let to = beside.join(format!(".tipsim-removed-{}-{moved}", std::process::id()));
                moved += 1;
                if !to.try_exists()? {
                    break to;
                }
            };
            fs::rename(entry.path(), &to)?;
            left.push(to);
        }
        fs::remove_dir(&folder)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};

    use super::*;

    #[test]
    fn a_tree_that_is_deeper_than_any_stack_goes() {
        let outer = tempfile::tempdir().unwrap();
        let path = |name: &str| outer.path().join(name);
        fs::write(path("kept"), "kept").unwrap();
        fs::create_dir_all(path("share/wide/a")).unwrap();
        fs::create_dir_all(path("share/wide/b")).unwrap();
        symlink("../kept", path("share/link")).unwrap();
        symlink(outer.path(), path("share/wide/a/up")).unwrap();
        fs::set_permissions(path("share/wide"), fs::Permissions::from_mode(0o000)).unwrap();
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let mut folder = openat(CWD, path("share"), flags, Mode::empty()).unwrap();
        for _ in 0..30_000 {
            mkdirat(&folder, "d", Mode::from_raw_mode(0o755)).unwrap();
            folder = openat(&folder, "d", flags, Mode::empty()).unwrap();
        }
        remove_tree(&path("share")).unwrap();
        assert!(remove_tree(&path("share")).is_err(), "it is gone");
        symlink("kept", path("link")).unwrap();
        remove_tree(&path("link")).unwrap();
        let names: Vec<_> =
            fs::read_dir(outer.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["kept"]);
    }
}
