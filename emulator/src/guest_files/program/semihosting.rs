//! RISC-V semihosting: what a program asks of its host (Arm, Semihosting for AArch32 and AArch64, with
//! RISC-V's own call sequence). Console, command line, clocks and exit are always there; files are those of one folder.
//!
//! Not carried out: `SYS_SYSTEM` and `SYS_TMPNAM`, which would reach the rest of the host.

mod files;

use std::path::Path;

use machine::{Caller, HostCalls, HostResult};

use super::ProgramConsole;
use crate::failure::{BadInput, bad_input};
use crate::spec::epoch::Epoch;
use files::Files;

/// Longest string, and most bytes that a call moves at once.
const STRING_MAX: u64 = 64 << 10;
const BYTES_MAX: u64 = 1 << 20;

const FAILED: u64 = u64::MAX;
/// `ADP_Stopped_ApplicationExit`.
const APPLICATION_EXIT: u64 = 0x20026;

const ENOENT: i32 = 2;
const EBADF: i32 = 9;
const EFAULT: i32 = 14;
const EINVAL: i32 = 22;
const ENOSYS: i32 = 38;

/// Operation numbers.
mod operation {
    pub(super) const OPEN: u64 = 0x01;
    pub(super) const CLOSE: u64 = 0x02;
    pub(super) const WRITEC: u64 = 0x03;
    pub(super) const WRITE0: u64 = 0x04;
    pub(super) const WRITE: u64 = 0x05;
    pub(super) const READ: u64 = 0x06;
    pub(super) const READC: u64 = 0x07;
    pub(super) const ISERROR: u64 = 0x08;
    pub(super) const ISTTY: u64 = 0x09;
    pub(super) const SEEK: u64 = 0x0a;
    pub(super) const FLEN: u64 = 0x0c;
    pub(super) const TMPNAM: u64 = 0x0d;
    pub(super) const REMOVE: u64 = 0x0e;
    pub(super) const RENAME: u64 = 0x0f;
    pub(super) const CLOCK: u64 = 0x10;
    pub(super) const TIME: u64 = 0x11;
    pub(super) const SYSTEM: u64 = 0x12;
    pub(super) const ERRNO: u64 = 0x13;
    pub(super) const GET_CMDLINE: u64 = 0x15;
    pub(super) const HEAPINFO: u64 = 0x16;
    pub(super) const EXIT: u64 = 0x18;
    pub(super) const EXIT_EXTENDED: u64 = 0x20;
    pub(super) const ELAPSED: u64 = 0x30;
    pub(super) const TICKFREQ: u64 = 0x31;
}

/// The host of one program.
pub(super) struct Semihosting {
    command_line: String,
    /// Where the heap may begin.
    heap: u64,
    files: Files,
    errno: i32,
    named: Vec<u64>,
}

/// A call failed for this reason.
struct Failed(i32);

impl Semihosting {
    /// The host of a program that is called with `arguments`, ends in memory at `heap`, and finds its files in `folder`.
    pub(super) fn new(
        arguments: &[String],
        heap: u64,
        folder: Option<&Path>,
        console: ProgramConsole,
    ) -> Result<Self, BadInput> {
        let files = match folder {
            Some(folder) => Files::in_folder(folder, console).map_err(|e| bad_input(folder, e))?,
            None => Files::none(console),
        };
        Ok(Self {
            command_line: arguments.join(" "),
            heap: heap.next_multiple_of(16),
            files,
            errno: 0,
            named: Vec::new(),
        })
    }

    fn carry_out(
        &mut self,
        number: u64,
        parameter: u64,
        caller: &mut Caller<'_>,
    ) -> Result<u64, Failed> {
        use operation::*;
        let block = |caller: &mut Caller<'_>, n: u64| word(caller, parameter.wrapping_add(8 * n));
        Ok(match number {
            OPEN => {
                let name = text(caller, parameter, 0, 2)?;
                let mode = block(caller, 1)?;
                self.files.open(&name, mode)?
            }
            CLOSE => self.files.close(block(caller, 0)?)?,
            WRITEC => {
                let mut byte = [0];
                read(caller, parameter, &mut byte)?;
                self.files.console.print(&byte);
                0
            }
            WRITE0 => {
                self.files.console.print(&terminated(caller, parameter)?);
                0
            }
            WRITE => {
                let (handle, at, length) =
                    (block(caller, 0)?, block(caller, 1)?, block(caller, 2)?);
                let mut bytes = vec![0; length.min(BYTES_MAX) as usize];
                read(caller, at, &mut bytes)?;
                let written = self.files.write(handle, &bytes)?;
                // The result is the number of bytes that were not written.
                length - written as u64
            }
            READ => {
                let (handle, at, length) =
                    (block(caller, 0)?, block(caller, 1)?, block(caller, 2)?);
                let bytes = self.files.read(handle, length.min(BYTES_MAX) as usize)?;
                write(caller, at, &bytes)?;
                length - bytes.len() as u64
            }
            READC => {
                let byte = self.files.console.input(1);
                byte.first().map_or(FAILED, |&byte| byte.into())
            }
            ISERROR => u64::from((block(caller, 0)? as i64) < 0),
            ISTTY => self.files.is_terminal(block(caller, 0)?)?.into(),
            SEEK => {
                let (handle, to) = (block(caller, 0)?, block(caller, 1)?);
                self.files.seek(handle, to)?
            }
            FLEN => self.files.length(block(caller, 0)?)?,
            REMOVE => {
                let name = text(caller, parameter, 0, 1)?;
                self.files.remove(&name)?
            }
            RENAME => {
                let from = text(caller, parameter, 0, 1)?;
                let to = text(caller, parameter, 2, 3)?;
                self.files.rename(&from, &to)?
            }
            CLOCK => caller.nanos() / 10_000_000,
            TIME => Epoch::Fixed.seconds() + caller.nanos() / 1_000_000_000,
            ERRNO => self.errno as u64,
            GET_CMDLINE => {
                let (at, room) = (block(caller, 0)?, block(caller, 1)?);
                let length = self.command_line.len() as u64;
                if length >= room {
                    return Err(Failed(EINVAL));
                }
                let line = [self.command_line.as_bytes(), b"\0"].concat();
                write(caller, at, &line)?;
                write(caller, parameter.wrapping_add(8), &length.to_le_bytes())?;
                0
            }
            HEAPINFO => {
                let (at, end) = (block(caller, 0)?, caller.memory_end());
                // Base and limit of the heap, base and limit of the stack, which grow towards each other.
                for (n, value) in [self.heap, end, end, self.heap].into_iter().enumerate() {
                    write(caller, at.wrapping_add(8 * n as u64), &value.to_le_bytes())?;
                }
                0
            }
            ELAPSED => {
                write(caller, parameter, &caller.nanos().to_le_bytes())?;
                0
            }
            TICKFREQ => 1_000_000_000,
            other => {
                self.name(other);
                return Err(Failed(ENOSYS));
            }
        })
    }

    /// Says once that an operation is not there.
    fn name(&mut self, number: u64) {
        if self.named.len() >= 16 || self.named.contains(&number) {
            return;
        }
        self.named.push(number);
        let name = match number {
            operation::TMPNAM => "SYS_TMPNAM",
            operation::SYSTEM => "SYS_SYSTEM",
            _ => "unknown",
        };
        tracing::warn!("semihosting: operation {number:#x} ({name}) is not carried out");
    }
}

impl HostCalls for Semihosting {
    fn call(&mut self, number: u64, parameter: u64, caller: &mut Caller<'_>) -> HostResult {
        if matches!(number, operation::EXIT | operation::EXIT_EXTENDED) {
            let reason = word(caller, parameter);
            let status = word(caller, parameter.wrapping_add(8));
            return match (reason, status) {
                (Ok(APPLICATION_EXIT), Ok(status)) => HostResult::Exit(status),
                (Ok(reason), _) => {
                    tracing::warn!("semihosting: the program ends for reason {reason:#x}");
                    HostResult::Exit(1)
                }
                // Programs of 32 bits give the reason itself.
                _ if parameter == APPLICATION_EXIT => HostResult::Exit(0),
                _ => {
                    tracing::warn!(
                        "semihosting: SYS_EXIT: expected a reason and a status in memory at {parameter:#x}"
                    );
                    HostResult::Exit(1)
                }
            };
        }
        HostResult::Value(self.carry_out(number, parameter, caller).unwrap_or_else(
            |Failed(errno)| {
                self.errno = errno;
                FAILED
            },
        ))
    }
}

fn read(caller: &mut Caller<'_>, at: u64, bytes: &mut [u8]) -> Result<(), Failed> {
    caller.read(at, bytes).then_some(()).ok_or(Failed(EFAULT))
}

fn write(caller: &mut Caller<'_>, at: u64, bytes: &[u8]) -> Result<(), Failed> {
    caller.write(at, bytes).then_some(()).ok_or(Failed(EFAULT))
}

fn word(caller: &mut Caller<'_>, at: u64) -> Result<u64, Failed> {
    let mut bytes = [0; 8];
    read(caller, at, &mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

/// A name, whose address and length are these words of a block.
fn text(caller: &mut Caller<'_>, block: u64, at: u64, length: u64) -> Result<String, Failed> {
    let at = word(caller, block.wrapping_add(8 * at))?;
    let length = word(caller, block.wrapping_add(8 * length))?;
    if length > STRING_MAX {
        return Err(Failed(EINVAL));
    }
    let mut bytes = vec![0; length as usize];
    read(caller, at, &mut bytes)?;
    String::from_utf8(bytes).map_err(|_| Failed(EINVAL))
}

/// The bytes before a zero.
fn terminated(caller: &mut Caller<'_>, at: u64) -> Result<Vec<u8>, Failed> {
    let mut bytes = Vec::new();
    for n in 0..STRING_MAX {
        let mut byte = [0];
        read(caller, at.wrapping_add(n), &mut byte)?;
        if byte == [0] {
            break;
        }
        bytes.push(byte[0]);
    }
    Ok(bytes)
}
