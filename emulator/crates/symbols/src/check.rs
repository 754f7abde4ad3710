//! Checks whether a file of the host is the one that the guest ran: by build ID, or else by the instructions executed.

use std::path::{Path, PathBuf};

use super::BuildId;
use super::elf::{self, Elf};

/// Executed instructions that must agree with a file before it is used, if only its name is that of the wanted one.
const MIN_AGREEING: usize = 4;
/// `c.ebreak` and `ebreak`: debuggers and uprobes write them over a program's instructions.
const BREAKPOINTS: [(u32, u8); 2] = [(0x9002, 2), (0x0010_0073, 4)];

/// An instruction that the guest executed, as it was encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Code {
    /// Encoding (16-bit encodings in the low half).
    pub raw: u32,
    /// Length in bytes: 2 or 4.
    pub len: u8,
}

impl Code {
    /// True if `bytes` begin with this instruction.
    pub(super) fn is_at(self, bytes: &[u8]) -> bool {
        let len = usize::from(self.len).min(4);
        bytes.get(..len) == Some(&self.raw.to_le_bytes()[..len])
    }

    /// True if the instruction is the program's own: not a fetch that faulted, which has no encoding, and no breakpoint.
    pub(super) fn is_program_code(self) -> bool {
        self.raw != 0 && !BREAKPOINTS.contains(&(self.raw, self.len))
    }
}

/// What is known of the file that the guest ran.
#[derive(Default)]
pub(super) struct Wanted<'a> {
    pub build_id: Option<&'a BuildId>,
    /// Executed instructions with their offsets in the file, in bytes.
    pub code: Vec<(u64, Code)>,
}

/// A file that was read and is the wanted one.
pub(super) struct Opened {
    pub path: PathBuf,
    pub bytes: Vec<u8>,
}

impl Wanted<'_> {
    /// Reads a file and checks it. The error says why the file is not used.
    pub(crate) fn open(&self, path: &Path, needs_proof: bool) -> Result<Opened, String> {
        let bytes = elf::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        self.check(path, bytes, needs_proof)
    }

    /// Checks a file that has these bytes. The error says why the file is not used.
    pub(crate) fn check(
        &self,
        path: &Path,
        bytes: Vec<u8>,
        needs_proof: bool,
    ) -> Result<Opened, String> {
        let shown = path.display();
        let elf = Elf::parse(&bytes).map_err(|error| format!("{shown}: {error}"))?;
        match (self.build_id, elf.build_id()) {
            (Some(wanted), Some(found)) if *wanted == found => {}
            (Some(wanted), Some(found)) => {
                return Err(format!("{shown} has build ID {found}, the guest ran {wanted}"));
            }
            (Some(wanted), None) => {
                return Err(format!("{shown} has no build ID, the guest ran {wanted}"));
            }
            (None, _) if elf.has_no_code() => {
                return Err(format!(
                    "{shown} holds debug information alone, and the guest did not tell a build ID to compare"
                ));
            }
            (None, _) => self.compare(&bytes, needs_proof).map_err(|why| {
                format!("{shown} is another file than the guest ran, which told no build ID: {why}")
            })?,
        }
        Ok(Opened { path: path.to_owned(), bytes })
    }

    /// Compares the file with what was executed.
    fn compare(&self, bytes: &[u8], needs_proof: bool) -> Result<(), String> {
        let at = |offset: u64| {
            let offset = usize::try_from(offset).unwrap_or(usize::MAX);
            bytes.get(offset..).unwrap_or(&[])
        };
        let code = self.code.iter().filter(|(_, code)| code.is_program_code());
        let mut agree = 0;
        let mut differ = 0;
        let mut first = None;
        for (offset, code) in code {
            if code.is_at(at(*offset)) {
                agree += 1;
            } else {
                differ += 1;
                first.get_or_insert((*offset, *code));
            }
        }
        if let Some((offset, code)) = first {
            let found = at(offset);
            let len = found.len().min(usize::from(code.len));
            let found = found[..len].iter().rev().map(|byte| format!("{byte:02x}"));
            let found: String = found.collect();
            return Err(format!(
                "{differ} of {} executed instructions differ, at offset {offset:#x} expected {:0width$x}, found {}",
                agree + differ,
                code.raw,
                if found.is_empty() { "its end" } else { &found },
                width = 2 * usize::from(code.len)
            ));
        }
        if needs_proof && agree < MIN_AGREEING {
            return Err("too few of its instructions were executed to tell".to_owned());
        }
        Ok(())
    }
}
