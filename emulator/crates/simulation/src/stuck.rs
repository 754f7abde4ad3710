//! What is said of a hart whose exceptions lead nowhere.

use isa::{Exception, Extension, Privilege};
use machine::{Stuck, TakenException};

use crate::system::System;

/// Returns a sentence: what raised the first exception, and why its handler is of no use.
pub fn describe(system: &mut System, stuck: &Stuck) -> String {
    let Stuck { hart, first, repeated, handler } = stuck;
    let beginning = exception(system, *hart, first);
    let ending = match (first == repeated, repeated.pc == *handler) {
        (true, true) => "its handler is that very instruction".to_owned(),
        (true, false) => format!("its handler at {handler:#x} comes back to it without end"),
        (false, _) => {
            format!("the handler at {:#x} raises {} without end", repeated.pc, cause(repeated),)
        }
    };
    // Below machine mode the handler that fails is the supervisor's, also where the loop leads through machine mode.
    let (place, register) = match repeated.privilege {
        Privilege::Machine => (*handler, "mtvec"),
        _ => (repeated.pc, "stvec"),
    };
    let names = match place {
        0 => format!("; {register} is 0, as at reset"),
        _ => String::new(),
    };
    format!("hart {hart}: {beginning}; {ending}{names}")
}

/// Cause, place, value and instruction.
fn exception(system: &mut System, hart: usize, taken: &TakenException) -> String {
    let TakenException { trap, pc, privilege } = taken;
    let privilege = match privilege {
        Privilege::User => "user",
        Privilege::Supervisor => "supervisor",
        Privilege::Machine => "machine",
    };
    let mut text =
        format!("{} at pc {pc:#x} in {privilege} mode, tval {:#x}", cause(taken), trap.tval);
    if let Some(bits) = system.clear_page_bits(hart, taken) {
        text += &format!(
            " (the page is mapped, but {bits} of its entry is clear, which this hart leaves to software: with \
             `isa.svadu = true` of the core and menvcfg.ADUE, hardware sets it)"
        );
    }
    if let Some(raw) = system.raised_by(hart, taken) {
        let inst = isa::decode(raw);
        text += &format!(": `{}`", isa::disasm(&inst, *pc));
        if trap.cause == Exception::IllegalInst
            && let Some(needs) = needs(raw, inst.extensions())
        {
            text += &format!(" ({needs})");
        }
    }
    text
}

fn cause(taken: &TakenException) -> String {
    let cause = taken.trap.cause;
    let name = match cause {
        Exception::InstMisaligned => "instruction address misaligned",
        Exception::InstAccessFault => "instruction access fault",
        Exception::IllegalInst => "illegal instruction",
        Exception::Breakpoint => "breakpoint",
        Exception::LoadMisaligned => "load address misaligned",
        Exception::LoadAccessFault => "load access fault",
        Exception::StoreMisaligned => "store address misaligned",
        Exception::StoreAccessFault => "store access fault",
        Exception::EcallU => "environment call from user mode",
        Exception::EcallS => "environment call from supervisor mode",
        Exception::EcallM => "environment call from machine mode",
        Exception::InstPageFault => "instruction page fault",
        Exception::LoadPageFault => "load page fault",
        Exception::StorePageFault => "store page fault",
    };
    format!("{name} (cause {})", cause as u32)
}

/// Returns what an illegal instruction would need, where its encoding shows that.
fn needs(raw: u32, extensions: &[Extension]) -> Option<String> {
    if !extensions.is_empty() {
        let names: Vec<_> = extensions.iter().map(|e| e.name()).collect();
        return Some(format!("the core is set to lack {}", names.join(", ")));
    }
    let (opcode, function) = (raw & 0x7f, raw >> 12 & 7);
    Some(match (opcode, function) {
        (0x57, _) | (0x07 | 0x27, 0 | 5..=7) => {
            "an instruction of the V extension, which no core here has".to_owned()
        }
        (0x77, _) => "an instruction of a vector extension, which no core here has".to_owned(),
        (0x07 | 0x27, 4) => "an instruction of the Q extension, which no core here has".to_owned(),
        (0x73, 4) => "an instruction of the H extension, which no core here has".to_owned(),
        (0x73, 1..=3 | 5..=7) => {
            let csr = (raw >> 20) as u16;
            let name = isa::csr_name(csr).map_or(String::new(), |name| format!(" {name}"));
            format!("CSR {csr:#x}{name} does not exist or may not be accessed there so")
        }
        (0x0b | 0x2b | 0x5b | 0x7b, _) => {
            "an encoding for extensions of one's own, which no core here has".to_owned()
        }
        _ => return None,
    })
}
