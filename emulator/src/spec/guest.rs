//! `[guest]`: what boots.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::epoch::Epoch;

/// What boots.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Guest {
    /// The system that boots; `kernel` and the other files replace single parts of it.
    pub image: GuestImage,
    /// Kernel Image.
    pub kernel: Option<PathBuf>,
    /// Firmware (OpenSBI `fw_dynamic`), ELF or raw.
    pub firmware: Option<PathBuf>,
    /// Initial RAM file system.
    pub initrd: Option<PathBuf>,
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

/// Most harts of a machine: what the guest's kernel is built for.
pub const MAX_HARTS: u32 = 8;

/// The guest's system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum GuestImage {
    /// What `guest-sw/build` makes: a kernel, perf and a few tools; packages are unpacked over it.
    #[default]
    Minimal,
    /// A disk with Debian, its packages installed, booted by systemd.
    Debian,
}

/// The guest's network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Net {
    /// No network card.
    #[default]
    None,
    /// User-mode networking: the guest reaches what the host reaches, and the host as 10.0.2.2.
    User,
}
