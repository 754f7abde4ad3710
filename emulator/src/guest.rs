//! The files that boot: a guest that `guest-sw/build` made, or single files.

use std::path::{Path, PathBuf};

use crate::failure::BadInput;

/// What boots.
#[derive(Clone, Debug, Default)]
pub struct GuestFiles {
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
    /// The files of a built guest, with single ones replaced.
    pub fn resolve(
        dir: Option<&Path>,
        firmware: Option<&Path>,
        kernel: Option<&Path>,
        initrd: Option<&Path>,
    ) -> Result<Self, BadInput> {
        let built = |name: &str| dir.map(|d| d.join(name)).filter(|f| f.exists());
        let given = |file: Option<&Path>| file.map(Path::to_owned);
        let firmware = given(firmware).or_else(|| dir.map(|d| d.join("fw_dynamic.bin")));
        let firmware = firmware.ok_or_else(|| {
            BadInput(
                "no guest: expected --guest-dir DIR (made by guest-sw/build) or TIPSIM_GUEST, \
                 or --firmware and --kernel"
                    .into(),
            )
        })?;
        // A kernel of one's own does not go with the built guest's symbols or file system.
        let own_kernel = kernel.is_some();
        Ok(Self {
            firmware,
            kernel: given(kernel).or_else(|| dir.map(|d| d.join("Image"))),
            initrd: given(initrd).or_else(|| built("initramfs.cpio").filter(|_| !own_kernel)),
            vmlinux: built("vmlinux").filter(|_| !own_kernel),
            firmware_elf: built("fw_dynamic.elf"),
            debug: built("debug").into_iter().collect(),
        })
    }
}
