//! The files that boot: a guest that `guest-sw/build` made, or single files.

use std::ffi::OsString;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Once;

use simulation::{GuestImage, GuestImages};

use crate::failure::{BadInput, MAX_IMAGE_BYTES, bad_input, read_at_most};
use crate::guest_files::kernel::unpack;

/// What boots.
#[derive(Clone, Debug, Default)]
pub(crate) struct GuestFiles {
    /// OpenSBI's `fw_dynamic`.
    pub firmware: PathBuf,
    /// Kernel Image.
    pub kernel: Option<PathBuf>,
    /// Initial RAM file system.
    pub initrd: Option<PathBuf>,
    /// ELF files with symbols: the kernel's and the firmware's.
    pub vmlinux: Option<PathBuf>,
    /// See `vmlinux`.
    pub firmware_elf: Option<PathBuf>,
    /// Folders with the guest's ELF files at their guest paths.
    pub debug: Vec<PathBuf>,
}

impl GuestFiles {
    /// The files of a built guest, with single ones replaced. Without a guest or firmware: of the one that was built last.
    pub(crate) fn resolve(
        dir: Option<&Path>,
        firmware: Option<&Path>,
        kernel: Option<&Path>,
        initrd: Option<&Path>,
    ) -> Result<Self, BadInput> {
        let found = match (dir, firmware) {
            (None, None) => Some(latest()?),
            _ => None,
        };
        let dir = dir.or(found.as_deref());
        let built = |name: &str| dir.map(|d| d.join(name)).filter(|f| f.exists());
        let given = |file: Option<&Path>| file.map(Path::to_owned);
        let own_firmware = firmware.is_some();
        let firmware = given(firmware).or_else(|| dir.map(|d| d.join("fw_dynamic.bin")));
        let firmware = firmware.ok_or_else(no_guest)?;
        // A kernel of one's own does not go with the built guest's symbols, nor a firmware with its. The file system goes with any Linux.
        let own_kernel = kernel.is_some();
        let takes_initrd = kernel.is_none_or(is_linux);
        let initrd = match initrd {
            Some(initrd) if is_none(initrd) => None,
            Some(initrd) => Some(initrd.to_owned()),
            None => built("initramfs.cpio").filter(|_| takes_initrd),
        };
        let firmware_elf = match own_firmware {
            true => elf_of(&firmware),
            false => built("fw_dynamic.elf"),
        };
        Ok(Self {
            firmware,
            kernel: given(kernel).or_else(|| dir.map(|d| d.join("Image"))),
            initrd,
            vmlinux: built("vmlinux").filter(|_| !own_kernel),
            firmware_elf,
            debug: built("debug").into_iter().collect(),
        })
    }

    /// Returns the files of a bare-metal program, which takes the place of the firmware.
    pub(crate) fn of_program(program: &Path) -> Self {
        Self {
            firmware: program.to_owned(),
            firmware_elf: Some(program.to_owned()),
            ..Self::default()
        }
    }

    /// Reads all files that boot, for a machine with so many bytes of memory; a packed kernel is unpacked.
    pub(crate) fn read(&self, memory: u64) -> Result<GuestImages, BadInput> {
        let read =
            |path: &Path| read_at_most(path, MAX_IMAGE_BYTES).map_err(|e| bad_input(path, e));
        let image = |path: &Path, bytes| GuestImage { name: path.display().to_string(), bytes };
        let plain = |path: &PathBuf| Ok(image(path, read(path)?));
        let unpacked = |path: &PathBuf| Ok(image(path, unpack(path, read(path)?, memory)?));
        Ok(GuestImages {
            firmware: plain(&self.firmware)?,
            kernel: self.kernel.as_ref().map(unpacked).transpose()?,
            initrd: self.initrd.as_ref().map(plain).transpose()?,
        })
    }
}

/// `none` stands for no initial RAM file system; a file of that name is one.
fn is_none(initrd: &Path) -> bool {
    initrd.file_name() == Some("none".as_ref()) && !initrd.exists()
}

/// The file is a kernel of Linux: an Image (Documentation/arch/riscv/boot-image-header.rst), or a vmlinux, packed or not. One that cannot be
/// read is told when it is loaded.
fn is_linux(kernel: &Path) -> bool {
    const BANNER: &[u8] = b"Linux version ";
    // A larger kernel would fit into the memory of few guests.
    const MOST: u64 = 1 << 30;
    let bytes = std::fs::read(kernel).ok();
    let Some(bytes) = bytes.and_then(|bytes| unpack(kernel, bytes, MOST).ok()) else {
        return false;
    };
    let is_image = bytes.get(56..60) == Some(b"RSC\x05");
    is_image || bytes.starts_with(b"\x7fELF") && bytes.windows(BANNER.len()).any(|at| at == BANNER)
}

/// The ELF file of a firmware: itself, or the one beside a flat binary (`fw_dynamic.elf` of `fw_dynamic.bin`).
fn elf_of(firmware: &Path) -> Option<PathBuf> {
    let is_elf = |path: &Path| {
        let mut magic = [0; 4];
        let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut magic));
        read.is_ok() && magic == *b"\x7fELF"
    };
    [firmware.to_owned(), firmware.with_extension("elf")].into_iter().find(|path| is_elf(path))
}

/// `guest-sw/build` leaves a link of this name to what it made last.
const LATEST: &str = "latest";

/// The cache of `guest-sw/build`: `$TIPSIM_CACHE`, else `$XDG_CACHE_HOME/tipsim`, else `~/.cache/tipsim`.
pub(crate) fn cache() -> Option<PathBuf> {
    cache_by(|name| std::env::var_os(name))
}

fn cache_by(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let named = |name| variable(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    named("TIPSIM_CACHE").or_else(|| {
        let user = named("XDG_CACHE_HOME").or_else(|| Some(named("HOME")?.join(".cache")))?;
        Some(user.join("tipsim"))
    })
}

/// The guest that was built last, and a word of it: nobody named it.
fn latest() -> Result<PathBuf, BadInput> {
    let link = cache().ok_or_else(no_guest)?.join("guest").join(LATEST);
    // The guest's own name says which it is, and the link may lead elsewhere before the run is over.
    let dir = link.canonicalize().map_err(|_| no_guest())?;
    static SAID: Once = Once::new();
    SAID.call_once(|| eprintln!("tipsim: guest: {}, built last", dir.display()));
    Ok(dir)
}

fn no_guest() -> BadInput {
    let cache = cache().map_or_else(
        || "no cache: neither TIPSIM_CACHE nor HOME is set".into(),
        |cache| format!("none in {}", cache.join("guest").display()),
    );
    BadInput(format!(
        "no guest ({cache}): run {}, or give --guest-dir DIR, TIPSIM_GUEST, or --firmware and --kernel",
        builder().display()
    ))
}

/// Returns what builds a guest: as installed beside this program (`bin/tipsim`, `share/tipsim`), else in the repository.
fn builder() -> PathBuf {
    installed("build").unwrap_or_else(|| "guest-sw/build".into())
}

/// A script of `guest-sw`: in the folder `TIPSIM_GUEST_SW`, as installed beside this program, or in the repository that it
/// was built in.
pub(crate) fn script(name: &str) -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os("TIPSIM_GUEST_SW") {
        return Some(PathBuf::from(folder).join(name)).filter(|script| script.is_file());
    }
    let program = std::env::current_exe().ok()?;
    installed(name).or_else(|| {
        program.ancestors().skip(1).find_map(|folder| {
            let script = folder.join("guest-sw").join(name);
            script.is_file().then_some(script)
        })
    })
}

fn installed(name: &str) -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let shared = program.parent()?.parent()?.join("share/tipsim/guest-sw");
    Some(shared.join(name)).filter(|script| script.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_firmware_are_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, content: &[u8]| {
            let path = folder.path().join(name);
            std::fs::write(&path, content).unwrap();
            path
        };
        let built = file("fw_dynamic.elf", b"\x7fELF");
        let (own, flat, bare) =
            (file("own", b"\x7fELF"), file("fw_dynamic.bin", b"flat"), file("other.bin", b"flat"));
        let of = |firmware: Option<&Path>| {
            let files = GuestFiles::resolve(Some(folder.path()), firmware, None, None);
            files.unwrap().firmware_elf
        };
        assert_eq!(of(None), Some(built.clone()));
        assert_eq!(of(Some(&own)), Some(own.clone()));
        assert_eq!(of(Some(&flat)), Some(built));
        assert_eq!(of(Some(&bare)), None);
    }

    #[test]
    fn a_linux_of_ones_own_keeps_the_file_system() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, content: &[u8]| {
            let path = folder.path().join(name);
            std::fs::write(&path, content).unwrap();
            path
        };
        let mut image = [0; 64];
        image[56..60].copy_from_slice(b"RSC\x05");
        let built = file("initramfs.cpio", b"070701");
        let (linux, other) = (file("own", &image), file("other", b"hello"));
        let of = |kernel: Option<&Path>, initrd: Option<&Path>| {
            let files = GuestFiles::resolve(Some(folder.path()), None, kernel, initrd);
            files.unwrap().initrd
        };
        assert_eq!(of(None, None), Some(built.clone()));
        assert_eq!(of(Some(&linux), None), Some(built));
        assert_eq!(of(Some(&linux), Some("dir/none".as_ref())), None);
        assert_eq!(of(Some(&linux), Some(&other)), Some(other.clone()));
        assert_eq!(of(Some(&other), None), None, "a bare-metal program");
    }

    #[test]
    fn the_cache_is_where_the_build_has_it() {
        let cache = |set: &[(&str, &str)]| {
            let found = |name: &str| set.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).into());
            cache_by(found).map(|path| path.display().to_string())
        };
        let (all, xdg, home) = (("TIPSIM_CACHE", "/t"), ("XDG_CACHE_HOME", "/x"), ("HOME", "/h"));
        assert_eq!(cache(&[all, xdg, home]).unwrap(), "/t");
        assert_eq!(cache(&[("TIPSIM_CACHE", ""), xdg, home]).unwrap(), "/x/tipsim");
        assert_eq!(cache(&[home]).unwrap(), "/h/.cache/tipsim");
        assert_eq!(cache(&[]), None);
    }
}
