//! Debian's packages for the guest: the folder that they are unpacked in, which `guest-sw/debian` makes once, or the disk with all of
//! Debian that they are installed on, which `guest-sw/debian-image` makes.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::failure::{BadInput, bad_input};
use crate::guest_files::images;
use crate::host::sha256::sha256;

/// The script that downloads and unpacks packages.
const UNPACK_SCRIPT: &str = "debian";
/// The script that makes a disk with Debian; [`BUILD_SCRIPT`] builds the guest that boots it.
const IMAGE_SCRIPT: &str = "debian-image";
const BUILD_SCRIPT: &str = "build";
/// The name of the link that [`BUILD_SCRIPT`] leaves to the guest that it built last.
const LATEST_SYSTEMD: &str = "latest-systemd";

/// Debian's `/bin/sh`, which is always there: the guest's own would run its own tools instead of the packages'.
const SHELL: &str = "dash";

/// Packages with all that they depend on, unpacked.
#[derive(Clone, Debug)]
pub(crate) struct Packages {
    /// The folder, a root of its own: files are at their paths in Debian.
    pub root: PathBuf,
    /// Name, version and SHA-256 of each package.
    pub list: Vec<String>,
}

impl Packages {
    /// Returns the packages of these names from the cache, where [`UNPACK_SCRIPT`] puts them if they are not there yet.
    pub(crate) fn find(names: &[String]) -> Result<Self, BadInput> {
        let shell = std::iter::once(SHELL.to_owned());
        let names: Vec<String> = names.iter().cloned().chain(shell).collect();
        let key = "guest.packages";
        let link = link(key, "packages", &names)?;
        if !link.exists() {
            make(key, UNPACK_SCRIPT, &names)?;
        }
        // The link may lead to newer versions before the run is over.
        let folder = link.canonicalize().map_err(|e| bad_input(&link, e))?;
        Ok(Self { root: folder.join("root"), list: list(&folder)? })
    }
}

/// Debian as it is, with systemd.
#[derive(Clone, Debug)]
pub(crate) struct DebianImage {
    /// Directory of the guest whose kernel boots it.
    pub guest: PathBuf,
    /// The image's disk.
    pub disk: PathBuf,
    /// Folder with the files of the image's packages, at their paths in Debian.
    pub root: PathBuf,
    /// Name, version and SHA-256 of each package.
    pub list: Vec<String>,
}

impl DebianImage {
    /// Returns the image with the packages of these names from the cache, where scripts put it if it is not there yet.
    pub(crate) fn find(names: &[String]) -> Result<Self, BadInput> {
        let key = "guest.image";
        let (image, guest) =
            (link(key, "images", names)?, cache(key)?.join("guest").join(LATEST_SYSTEMD));
        if !guest.exists() {
            make(key, BUILD_SCRIPT, &["--systemd".to_owned()])?;
        }
        if !image.exists() {
            let this = std::env::current_exe().map_err(|e| BadInput(format!("{key}: {e}")))?;
            let this = ["--tipsim".to_owned(), this.display().to_string()];
            make(key, IMAGE_SCRIPT, &[&this, names].concat())?;
        }
        let real = |link: PathBuf| link.canonicalize().map_err(|e| bad_input(&link, e));
        let (image, guest) = (real(image)?, real(guest)?);
        Ok(Self {
            guest,
            disk: image.join("disk.img"),
            root: image.join("root"),
            list: list(&image)?,
        })
    }
}

/// Reads the list of the packages in a folder that a script made.
fn list(folder: &Path) -> Result<Vec<String>, BadInput> {
    let path = folder.join("packages.lock");
    let text = std::fs::read_to_string(&path).map_err(|e| bad_input(&path, e))?;
    Ok(text.lines().map(str::to_owned).collect())
}

fn cache(key: &str) -> Result<PathBuf, BadInput> {
    images::cache()
        .ok_or_else(|| BadInput(format!("{key}: no cache: neither TIPSIM_CACHE nor HOME is set")))
}

/// Returns the link to what a script made of packages, in a folder of the cache; a hash of their sorted names is its name.
fn link(key: &str, folder: &str, names: &[String]) -> Result<PathBuf, BadInput> {
    let folder = cache(key)?.join("guest").join(folder);
    Ok(folder.join(link_name(names)?))
}

fn link_name(names: &[String]) -> Result<String, BadInput> {
    let mut names = names.to_vec();
    names.sort();
    names.dedup();
    let mut name = sha256((names.join("\n") + "\n").as_bytes())
        .map_err(|e| BadInput(format!("guest.packages: {e}")))?;
    name.truncate(16);
    Ok(name)
}

/// Runs a script for a key of the run spec; it shows its progress on standard error.
fn make(key: &str, script: &str, arguments: &[String]) -> Result<(), BadInput> {
    let script = images::script(script).ok_or_else(|| {
        BadInput(format!(
            "{key}: not in the cache yet: run guest-sw/{script} {}, or set TIPSIM_GUEST_SW to the folder guest-sw",
            arguments.join(" ")
        ))
    })?;
    let failed = |why: String| BadInput(format!("{key}: {}: {why}", script.display()));
    let status = Command::new(&script)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .map_err(|e| failed(e.to_string()))?;
    match status.success() {
        true => Ok(()),
        false => Err(failed(format!("{status} (its messages are above)"))),
    }
}

/// Checks that each is the name of a package (Debian Policy, section 5.6.1), and no option of a script.
pub(crate) fn check_names(names: &[String]) -> Result<(), String> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "+-.".contains(c);
    let is_name = |name: &str| {
        name.len() >= 2
            && name.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
            && name.chars().all(allowed)
    };
    match names.iter().find(|name| !is_name(name)) {
        Some(name) => {
            Err(format!("guest.packages: expected names of Debian packages, found {name:?}"))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn the_link_does_not_depend_on_order_or_repetition() {
        let name = link_name(&names(&["perl", "xz-utils"])).unwrap();
        // printf '%s\n' perl xz-utils | sha256sum | cut -c 1-16
        assert_eq!(name, "acd9735e9c33b91b");
        assert_eq!(link_name(&names(&["xz-utils", "perl", "perl"])).unwrap(), name);
    }

    #[test]
    fn what_is_no_package_is_told() {
        check_names(&names(&["g++", "libc6", "cpp-14-riscv64-linux-gnu", "7zip"])).unwrap();
        for bad in ["--update", "xz utils", "", "x", "Perl", "a/b"] {
            let error = check_names(&names(&["perl", bad])).unwrap_err();
            assert!(error.contains(&format!("found {bad:?}")), "{error}");
        }
    }
}
