//! The translator: host code for hot guest code, made by Cranelift.
//!
//! What is translated together is a region (`discover`): blocks of one physical page that reach each other. Within it
//! registers live in host registers; at the end of each block all of them are in their places in the hart, too, but
//! for small loops (`loops`). A region goes on with another one through a cache of entries that is keyed by virtual address
//! ([`Frame::entry`]), without coming back. Whatever is rare, or not worth host code of its own, calls the interpreter for that one
//! instruction ([`Execute`]): TLB misses, devices, most flags of floating point, atomics.
//!
//! # Two interfaces
//! - What code may read and write of the hart is in [`Layout`], and in the [`Frame`] that the hart has for it; all that it may call is
//!   [`Frame::execute`] and [`Frame::warm_fetch`]. The crate knows nothing else of the hart.
//! - What the hart sees of this crate is [`Translator`]: it asks for the code of a place ([`Translator::region`]), and enters it
//!   ([`Translator::call`]). Code is compiled at once, or by a thread beside the hart's ([`Translator::compile_apart`]).
//!
//! The guest cannot tell: instructions are counted, and interrupts taken, where the interpreter would. Under a timing model
//! code for [runs](isa::Run) writes down what it executes, and leaves to the interpreter whatever ends one (`record`).

mod compiler;
mod compiler_thread;
mod convert;
mod discover;
mod emit;
mod emitter;
mod exact;
mod float;
mod frame;
mod integer;
mod interpret;
mod layout;
mod leave;
mod loops;
mod memory;
mod record;
mod translator;
mod warm;

pub use frame::{Call, DONE, Entry, Execute, Fallback, Frame, GO_ON, STAYS, TRAPPED, WarmFetch};
pub use layout::{Layout, TlbLayout};
pub use translator::{CodeKind, Page, Region, SlotSet, Translator, TranslatorError};
