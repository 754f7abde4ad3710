//! Sampling hardware of a core, beside the TIP unit: machines of registers that hear what commits, and know neither bus nor
//! CSR instructions. Whoever has the commit stage tells them what passes it; whoever has the CSRs gives them addresses.
//!
//! [`ctr`]: control transfer records (Smctr/Ssctr 1.0), what Intel calls last branch records.

pub mod ctr;
