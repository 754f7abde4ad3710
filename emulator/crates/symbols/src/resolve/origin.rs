//! Places: addresses with the file or memory that they are in.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::BuildId;
use crate::check::Code;

/// An address with the file or memory that it is in.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// A byte of a file that a process has mapped (`offset` = pc − mapping start + page offset).
    File {
        /// Guest path; names in brackets have no file, except `[vdso]`.
        path: Arc<str>,
        /// Build ID that the guest reported.
        build_id: Option<BuildId>,
        /// Offset in the file, in bytes.
        offset: u64,
        /// The instruction executed there, if known: a file must agree with it.
        code: Option<Code>,
        /// Where a process had it.
        mapped: Mapped,
    },
    /// A kernel virtual address.
    Kernel(u64),
    /// A physical address in supervisor mode: the kernel before it turns translation on.
    KernelPhysical(u64),
    /// A physical address in machine mode.
    Firmware(u64),
    /// An address that no mapping covers.
    Unknown(u64),
    /// Code that a process made at run time (JIT).
    Jit {
        /// The kernel's process id.
        pid: u32,
        /// The address.
        address: u64,
        /// The instruction executed there: it tells apart functions that were at this address one after the other.
        code: Option<Code>,
        /// The place that is resolved instead if no file names this code.
        otherwise: Box<Place>,
    },
}

/// The kernel's process id, and the address in that process, if known: a program may have names of its own for its file's code.
///
/// A byte of a file is one place, whichever process had it: all are equal.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mapped(pub Option<(u32, u64)>);

impl PartialEq for Mapped {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Mapped {}

impl Hash for Mapped {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl Place {
    /// Shorthand for [`Place::File`].
    pub fn file(path: &str, build_id: Option<BuildId>, offset: u64) -> Self {
        Self::File { path: path.into(), build_id, offset, code: None, mapped: Mapped::default() }
    }

    pub(super) fn code(&self) -> Option<Code> {
        match self {
            Self::File { code, .. } | Self::Jit { code, .. } => *code,
            _ => None,
        }
    }

    pub(crate) fn module(&self) -> (Origin, u64) {
        match self {
            Self::File { path, build_id, offset, .. } if &**path == "[vdso]" => {
                (Origin::Vdso(build_id.clone()), *offset)
            }
            Self::File { path, build_id, offset, .. } => {
                (Origin::Path(path.clone(), build_id.clone()), *offset)
            }
            Self::Kernel(pc) => (Origin::Kernel { physical: false }, *pc),
            Self::KernelPhysical(pc) => (Origin::Kernel { physical: true }, *pc),
            Self::Firmware(pc) => (Origin::Firmware, *pc),
            Self::Unknown(pc) => (Origin::Unknown, *pc),
            Self::Jit { otherwise, .. } => otherwise.module(),
        }
    }
}

/// The file that a module's symbols come from, and the kind of its addresses.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum Origin {
    Path(Arc<str>, Option<BuildId>),
    Vdso(Option<BuildId>),
    Kernel { physical: bool },
    Firmware,
    Unknown,
}
