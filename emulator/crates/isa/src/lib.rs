//! The RISC-V instruction table and everything derived from it, plus the port
//! ([`TimingModel`]) through which the machine drives a timing core.
//!
//! One row of the table gives an instruction's encoding, operands, class and
//! assembly syntax; the decoder, the disassembler and the machine's dispatch
//! are generated from it.

mod alias;
mod compressed;
mod decode;
mod disasm;
mod inst;
mod name;
mod operand;
mod pattern;
mod port;
mod table;
mod trap;

pub use decode::decode;
pub use disasm::disasm;
pub use inst::{DecodedInst, InstClass, Reg};
pub use name::{csr_name, register_name};
pub use port::{
    Executed, MemAccess, MemKind, Operand, PageWalk, PageWalker, PerfEvent, StaticId, StaticInst,
    TimingModel, Untimed,
};
pub use table::Op;
pub use trap::{Exception, Interrupt, Privilege, Trap};
