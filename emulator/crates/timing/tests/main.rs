//! The core's tests with programs of their own: one program, since the core is compiled for each program that has one.
//!
//! A file's tests are chosen by its name: `cargo test -p timing --test core coherence::`.

mod asm;
mod kernels;
mod random;

mod ahead;
mod analytic;
mod coherence;
mod components;
mod counts;
mod fidelity;
mod observe;
mod preset;
mod recovery;
mod stages;
mod warm;
mod warm_harts;
mod what_if;
