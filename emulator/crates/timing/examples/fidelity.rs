//! Runs the microkernels of `tests/rtl/kernels.S` on the presets that say the measured machines, and prints
//! modelled against measured cycles.
//!
//! `cargo run --release -p timing --example fidelity [-- --states]`

#[path = "../tests/asm/mod.rs"]
mod asm;
#[path = "../tests/kernels/mod.rs"]
mod kernels;

use kernels::{Measured, run};

fn main() {
    let states = std::env::args().any(|a| a == "--states");
    let (mut sum, mut count) = (0.0, 0);
    println!(
        "{:20} {:6} {:>6} {:>8} {:>8} {:>7}  memory",
        "kernel", "core", "iter", "RTL", "model", "error"
    );
    for row in Measured::all() {
        let got = run(&row);
        let error = got.cycles as f64 / row.cycles as f64 - 1.0;
        sum += error.abs();
        count += 1;
        println!(
            "{:20} {:6} {:6} {:8} {:8} {:6.1}%  {}",
            row.kernel,
            row.core,
            row.iterations,
            row.cycles,
            got.cycles,
            100.0 * error,
            row.memory
        );
        if states && row.states().is_none() || row.kernel == "k_icache48" {
            let s = &got.stats;
            println!(
                "    l1d misses {} l2 {}/{} prefetches {} fetches {:?} stalls {:?}",
                s.l1d_misses,
                s.l2_misses,
                s.l2_accesses,
                s.l1d_prefetches,
                (s.l1i_misses, s.l1i_accesses, s.fetch_packets),
                s.dispatch_stalls
            );
        }
        if states && let Some(measured) = row.states() {
            println!("    RTL   {measured}");
            println!("    model {}", got.states);
        }
    }
    println!(
        "mean error {:.2} % over {count}",
        100.0 * sum / f64::from(count)
    );
}
