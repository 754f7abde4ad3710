//! Runs the microkernels of `workloads/kernels` on the presets that say the measured machines, and prints modelled
//! against measured cycles.
//!
//! `cargo run --release -p timing --example fidelity -- [--states] [--format json]`

#[path = "../tests/asm/mod.rs"]
mod asm;
#[path = "../tests/kernels/mod.rs"]
mod kernels;

use kernels::{Measured, run};
use serde::Serialize;

/// What is printed of one core.
#[derive(Default, Serialize)]
struct Summary {
    mean_abs_error: f64,
    max_abs_error: f64,
    /// Mean over the kernels whose states were measured.
    state_overlap: f64,
    kernels: Vec<Kernel>,
}

#[derive(Serialize)]
struct Kernel {
    kernel: String,
    memory: String,
    iterations: u64,
    rtl_cycles: u64,
    cycles: u64,
    error: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    state_overlap: Option<f64>,
}

fn mean(values: impl Iterator<Item = f64> + Clone) -> f64 {
    values.clone().sum::<f64>() / values.count().max(1) as f64
}

/// All kernels of one core.
fn measure(core: &str, states: bool) -> Summary {
    let mut kernels = Vec::new();
    println!(
        "\n{core}: preset rtl-{core}\n{:20} {:>6} {:>9} {:>9} {:>8} {:>8}  memory",
        "kernel", "iter", "RTL", "model", "error", "states"
    );
    for row in Measured::all().into_iter().filter(|row| row.core == core) {
        let got = run(&row);
        let error = row.error(&got);
        let measured = row.states();
        let overlap = measured.as_ref().map(|measured| got.states.overlap(measured));
        let shown = overlap.map_or("–".to_owned(), |o| format!("{:.1}%", 100.0 * o));
        println!(
            "{:20} {:6} {:9} {:9} {:7.1}% {shown:>8}  {}",
            row.kernel,
            row.iterations,
            row.cycles,
            got.cycles,
            100.0 * error,
            row.memory
        );
        if states && let Some(measured) = measured {
            println!("    RTL   {measured}\n    model {}", got.states);
        }
        kernels.push(Kernel {
            error,
            state_overlap: overlap,
            rtl_cycles: row.cycles,
            cycles: got.cycles,
            iterations: row.iterations,
            kernel: row.kernel,
            memory: row.memory,
        });
    }
    let errors = kernels.iter().map(|k| k.error.abs());
    Summary {
        mean_abs_error: mean(errors.clone()),
        max_abs_error: errors.fold(0.0, f64::max),
        state_overlap: mean(kernels.iter().filter_map(|k| k.state_overlap)),
        kernels,
    }
}

fn main() {
    let args: Vec<_> = std::env::args().skip(1).collect();
    let states = args.iter().any(|a| a == "--states");
    let json = args.windows(2).any(|pair| pair == ["--format", "json"]);
    let cores = ["mega", "large"].map(|core| (core, measure(core, states)));
    println!();
    for (core, summary) in &cores {
        println!(
            "{core:5} mean |error| {:.2} %, max {:.1} %, states overlap {:.1} %",
            100.0 * summary.mean_abs_error,
            100.0 * summary.max_abs_error,
            100.0 * summary.state_overlap
        );
    }
    if json {
        let all = std::collections::BTreeMap::from(cores);
        println!("{}", serde_json::to_string(&all).expect("plain data"));
    }
}
