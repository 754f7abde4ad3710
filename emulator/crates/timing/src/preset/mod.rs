//! Core presets: TOML files, each stating what differs from its base.

mod check;
mod describe;
mod error;
mod extensions;
mod limits;
mod load;
mod picture;
mod schema;

pub use describe::{Description, Parameter};
pub use error::PresetError;
pub use extensions::Isa;
pub use load::names;
pub use schema::{
    Clock, Decode, Dram, DramModel, Execute, Fetch, Issue, L1d, L1i, L2, L2Tlb, Llc, Lsu, Mmio,
    Predictor, Preset, Rename, Rob, Tlb, WhatIf,
};
