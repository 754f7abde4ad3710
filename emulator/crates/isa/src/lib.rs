//! The RISC-V instruction table and everything derived from it, plus the port
//! ([`TimingModel`]) through which the machine drives a timing core.
//!
//! ```
//! let inst = isa::decode(0x852e); // c.mv
//! assert_eq!((inst.op, inst.class, inst.len), (isa::Op::Add, isa::InstClass::IntAlu, 2));
//! assert_eq!(isa::disasm(&inst, 0), "mv a0,a1");
//! ```
//!
//! One row of the table gives an instruction's encoding, operands, class and mnemonic; the
//! decoder, the disassembler and the machine's dispatch ([`for_each_op!`]) are generated from it.
//! Compressed instructions have no rows: they decode to the operations that they expand to.
//!
//! The table has RV64GC with Zicsr and Zifencei, the privileged instructions of M and S mode, and those of every
//! [`Extension`].

mod alias;
mod c_table;
mod compressed;
mod decode;
mod disasm;
mod extension;
mod fli;
mod inst;
mod name;
mod operand;
mod path;
mod pattern;
mod perf_event;
mod port;
mod shared_cycle;
mod slot;
mod table;
mod trap;
mod warm;

pub use c_table::c_table;
pub use decode::decode;
pub use disasm::disasm;
pub use extension::{Extension, Extensions};
pub use fli::FliConstant;
pub use inst::{DecodedInst, InstClass, Reg};
pub use name::{csr_name, register_name};
pub use path::{PathLog, PathSegment, SegmentLengths, TransferKind};
pub use perf_event::{
    Condition, PerfEvent, PerfEventRow, RawSelector, SBI_EVENTS, SbiEvent, Selection, Stage,
    raw_selectors,
};
pub use port::{
    DmaLines, Executed, MemAccess, MemKind, Operand, PageWalk, RUN_STEPS, Run, StaticId,
    StaticInst, Step, TimingModel, Untimed, Watch,
};
pub use shared_cycle::SharedCycle;
pub use slot::{NOWHERE, SLOTS, Slot};
pub use table::Op;
pub use trap::{Exception, Interrupt, Privilege, Trap};
pub use warm::{FILTER_LINE_BITS, FILTER_LINES, LineFilter, LineFilters};
