//! Proxied system calls, as riscv-tests and the proxy kernel make them: console I/O, program arguments and exit.

use super::Htif;
use crate::{Exit, Ram};

pub(super) const SYS_CLOSE: u64 = 57;
pub(super) const SYS_LSEEK: u64 = 62;
pub(super) const SYS_READ: u64 = 63;
pub(super) const SYS_WRITE: u64 = 64;
pub(super) const SYS_EXIT: u64 = 93;
pub(super) const SYS_GETMAINVARS: u64 = 2011;
const ENOSYS: i64 = -38;
pub(super) const EBADF: i64 = -9;
const ENOMEM: i64 = -12;
pub(super) const EFAULT: i64 = -14;
const ESPIPE: i64 = -29;

/// Maximum number of bytes that one read returns.
const READ_MAX: u64 = 1 << 20;

/// Name of a system call that is not implemented, for the warning (numbers of Linux and of the proxy kernel).
fn syscall_name(number: u64) -> &'static str {
    match number {
        17 => "getcwd",
        25 => "fcntl",
        34 => "mkdirat",
        35 => "unlinkat",
        37 => "linkat",
        38 => "renameat",
        46 => "ftruncate",
        48 => "faccessat",
        49 => "chdir",
        56 => "openat",
        67 => "pread",
        68 => "pwrite",
        79 => "fstatat",
        80 => "fstat",
        291 => "statx",
        1039 => "lstat",
        _ => "unknown",
    }
}

impl Htif {
    /// Executes a proxied call. Its number and arguments are eight words at `block`; the result overwrites the first.
    pub(super) fn syscall(&mut self, block: u64, ram: &mut Ram) -> Option<Exit> {
        let mut words = [0; 8];
        for (n, word) in words.iter_mut().enumerate() {
            *word = ram.load(block.wrapping_add(8 * n as u64), 8).unwrap_or(0);
        }
        let [number, fd, buffer, length, ..] = words;
        let console = fd <= 2;
        let result = match number {
            SYS_EXIT => return Some(Exit::Host(fd)),
            SYS_WRITE if fd == 1 || fd == 2 => match ram.slice(buffer, length) {
                Some(bytes) => {
                    let _ = self.output.write_all(bytes);
                    let _ = self.output.flush();
                    length as i64
                }
                None => EFAULT,
            },
            SYS_READ if fd == 0 => match ram.slice(buffer, length) {
                Some(_) => {
                    let bytes = self.read(length.min(READ_MAX) as usize);
                    ram.write(buffer, &bytes).map_or(EFAULT, |()| bytes.len() as i64)
                }
                None => EFAULT,
            },
            SYS_CLOSE if console => 0,
            SYS_LSEEK if console => ESPIPE,
            SYS_GETMAINVARS => self.main_arguments(fd, buffer, ram),
            SYS_WRITE | SYS_READ | SYS_CLOSE | SYS_LSEEK => EBADF,
            _ => {
                self.warn_once(format!(
                    "HTIF: system call {number} ({}) is not carried out (ENOSYS); read, write, close, lseek of the \
                     console, exit and getmainvars are",
                    syscall_name(number)
                ));
                ENOSYS
            }
        };
        ram.store(block, 8, result as u64);
        None
    }

    /// `argc`, the pointers of `argv` and of an empty environment, each with a zero at its end, and the strings.
    fn main_arguments(&self, at: u64, room: u64, ram: &mut Ram) -> i64 {
        let mut words = vec![self.arguments.len() as u64];
        let mut text = Vec::new();
        let strings = 8 * (self.arguments.len() as u64 + 3);
        for argument in &self.arguments {
            words.push(at.wrapping_add(strings + text.len() as u64));
            text.extend_from_slice(argument.as_bytes());
            text.push(0);
        }
        words.extend([0, 0]);
        let mut bytes: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
        bytes.append(&mut text);
        if bytes.len() as u64 > room {
            return ENOMEM;
        }
        ram.write(at, &bytes).map_or(EFAULT, |()| 0)
    }
}
