//! `[guest]`: what boots.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::spec::epoch::Epoch;

/// What boots.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Guest {
    /// The system that boots; `kernel` and the other files replace single parts of it.
    pub image: GuestImage,
    /// Kernel Image.
    pub kernel: Option<PathBuf>,
    /// Firmware (OpenSBI `fw_dynamic`), ELF or raw.
    pub firmware: Option<PathBuf>,
    /// Initial RAM file system.
    pub initrd: Option<PathBuf>,
    /// A bare-metal program (ELF) in the place of all that boots, with HTIF or semihosting as its host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<PathBuf>,
    /// Arguments of the bare-metal program.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    /// Folder of the host whose files the bare-metal program has by semihosting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub semihosting: Option<PathBuf>,
    /// Disk images, writes are dropped at the end.
    pub drive: Vec<PathBuf>,
    /// Added to the kernel command line.
    pub append: String,
    /// Memory, e.g. "512M".
    pub memory: String,
    /// What the guest's clock shows at reset.
    pub clock: Epoch,
    /// The network. With one, runs are not deterministic.
    pub net: Net,
    /// TCP ports of the host's loopback interface that lead to the guest, e.g. "2222:22".
    pub hostfwd: Vec<String>,
    /// Number of harts.
    pub harts: u32,
    /// Debian packages whose files the command finds at their paths, with all that they depend on.
    pub packages: Vec<String>,
    /// Folders searched for the guest's ELF files, at their guest paths.
    pub symbols: Vec<PathBuf>,
}

impl Default for Guest {
    fn default() -> Self {
        Self {
            image: GuestImage::Minimal,
            kernel: None,
            firmware: None,
            initrd: None,
            program: None,
            arguments: Vec::new(),
            semihosting: None,
            drive: Vec::new(),
            append: String::new(),
            memory: "512M".into(),
            clock: Epoch::Fixed,
            net: Net::None,
            hostfwd: Vec::new(),
            harts: 1,
            packages: Vec::new(),
            symbols: Vec::new(),
        }
    }
}

impl Guest {
    /// Checks that nothing is set beside a bare-metal program that only a system has, and the other way round.
    pub(super) fn check_program(&self) -> Result<(), String> {
        if self.program.is_none() {
            let of_a_program = [
                ("guest.arguments", !self.arguments.is_empty()),
                ("guest.semihosting", self.semihosting.is_some()),
            ];
            return match of_a_program.into_iter().find(|(_, is_set)| *is_set) {
                Some((key, _)) => Err(format!("{key}: expected guest.program with it, found none")),
                None => Ok(()),
            };
        }
        let of_a_system = [
            ("guest.kernel", self.kernel.is_some()),
            ("guest.firmware", self.firmware.is_some()),
            ("guest.initrd", self.initrd.is_some()),
            ("guest.drive", !self.drive.is_empty()),
            ("guest.packages", !self.packages.is_empty()),
            ("guest.image", self.image != GuestImage::Minimal),
            ("guest.append", !self.append.is_empty()),
            ("guest.net", self.net != Net::None),
        ];
        match of_a_system.into_iter().find(|(_, is_set)| *is_set) {
            Some((key, _)) => Err(format!(
                "{key}: expected it without guest.program, which is all that a bare-metal machine boots"
            )),
            None => Ok(()),
        }
    }
}

/// The guest's system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum GuestImage {
    /// What `guest-sw/build` makes: a kernel, perf and a few tools; packages are unpacked over it.
    #[default]
    Minimal,
    /// A disk with Debian, its packages installed, booted by systemd.
    Debian,
}

/// The guest's network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Net {
    /// No network card.
    #[default]
    None,
    /// User-mode networking: the guest reaches what the host reaches, and the host as 10.0.2.2.
    User,
}
