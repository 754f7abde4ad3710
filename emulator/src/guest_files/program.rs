//! A bare-metal program and its host: HTIF, as the public test suites expect it, and semihosting.

mod console;
mod semihosting;

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use devices::{Htif, RAM_BASE, Ram};
use machine::{Elf, ElfSymbols, Image, ResetState, nearest_symbol};
use simulation::System;

use crate::failure::{BadInput, MAX_IMAGE_BYTES, bad_input, read_at_most};
use semihosting::Semihosting;

pub(crate) use console::ProgramConsole;

/// A program's file, in memory.
pub(crate) struct Program {
    name: String,
    bytes: Vec<u8>,
}

/// What a program is given beside its console.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProgramArguments {
    /// What it gets as `argv` behind its name.
    pub arguments: Vec<String>,
    /// Folder of the files that it has by semihosting; without, it has none.
    pub files: Option<PathBuf>,
}

impl Program {
    /// Reads a program.
    pub(crate) fn read(path: &Path) -> Result<Self, BadInput> {
        let bytes = read_at_most(path, MAX_IMAGE_BYTES).map_err(|e| bad_input(path, e))?;
        Ok(Self { name: path.display().to_string(), bytes })
    }

    /// Returns the path that it was read from, for messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    fn image(&self) -> Image<'_> {
        Image { name: &self.name, bytes: &self.bytes }
    }

    /// Puts the program into memory, gives it its host, and resets the harts to its entry point. `console` makes the two ends of its
    /// console, once for HTIF and once for semihosting.
    ///
    /// # Errors
    /// If it is no program for this machine, or the folder of its files cannot be opened.
    pub(crate) fn load(
        &self,
        system: &mut System,
        given: &ProgramArguments,
        console: impl Fn() -> ProgramConsole,
    ) -> anyhow::Result<ElfSymbols> {
        let bus = &mut system.board.bus;
        let elf =
            Elf::load(self.image(), RAM_BASE, &mut bus.ram).map_err(|e| BadInput(e.to_string()))?;
        let mut arguments = vec![self.name.clone()];
        arguments.extend_from_slice(&given.arguments);
        if let Some(tohost) = elf.symbols.tohost {
            let ProgramConsole { input, output, .. } = console();
            let htif = Htif::new(tohost, elf.symbols.fromhost, output)
                .with_input(input)
                .with_arguments(arguments.clone());
            bus.attach_htif(htif);
        }
        let end = elf.segments.iter().map(|segment| segment.end).max();
        let heap = end.unwrap_or(RAM_BASE);
        let host = Semihosting::new(&arguments, heap, given.files.as_deref(), console())?;
        let host = Rc::new(RefCell::new(host));
        for hart in &mut system.harts {
            hart.set_host_calls(host.clone());
        }
        system.harts.reset(ResetState { pc: elf.entry, ..ResetState::default() });
        system.harts.permit_all_memory();
        Ok(elf.symbols)
    }

    /// Returns an address, with what the file calls it.
    pub(crate) fn place(&self, pc: u64) -> String {
        match nearest_symbol(self.image(), pc) {
            Some((name, 0)) => format!("pc {pc:#x}, {name}"),
            Some((name, offset)) => format!("pc {pc:#x}, {name}+{offset:#x}"),
            None => format!("pc {pc:#x}"),
        }
    }

    /// Returns where the signature is: a program without one is better told so before it runs than after.
    pub(crate) fn signature_range(
        &self,
        symbols: &ElfSymbols,
        ram: &Ram,
    ) -> Result<(u64, u64), BadInput> {
        let name = &self.name;
        let (Some(begin), Some(end)) = (symbols.begin_signature, symbols.end_signature) else {
            return Err(BadInput(format!(
                "{name}: --signature: expected symbols begin_signature and end_signature"
            )));
        };
        let length = end.checked_sub(begin);
        length.and_then(|length| ram.slice(begin, length)).map(|_| (begin, end)).ok_or_else(|| {
            BadInput(format!("{name}: signature {begin:#x}..{end:#x} is not in memory"))
        })
    }
}
