//! Intervals of a sampled run that other tools chose: SimPoint's files.

use std::path::Path;

use phases::Point;
use simulation::SamplingPlan;

use crate::failure::{BadInput, bad_input, read_at_most};

/// Bytes that a file may have: more than any tool writes.
const MOST_BYTES: u64 = 1 << 24;

/// Returns the intervals that `run.sampling.points` names, with their weights from the file of the same name that ends in `.weights`; none without the key.
///
/// # Errors
/// If a file cannot be read, or is something else.
pub(super) fn read(plan: &SamplingPlan) -> Result<Vec<Point>, BadInput> {
    let Some(file) = &plan.points else { return Ok(Vec::new()) };
    let text = |file: &Path| {
        // A pipe would be waited for.
        if std::fs::metadata(file).is_ok_and(|found| !found.is_file()) {
            return Err(bad_input(
                file,
                "expected a file for run.sampling.points, found something else",
            ));
        }
        let bytes = read_at_most(file, MOST_BYTES).map_err(|e| bad_input(file, e))?;
        String::from_utf8(bytes).map_err(|e| bad_input(file, e))
    };
    let weights = file.with_extension("weights");
    phases::points(&text(file)?, &text(&weights)?).map_err(|e| {
        let (file, what) = match e.is_of_weights() {
            true => (weights.as_path(), "weights of run.sampling.points"),
            false => (file.as_path(), "run.sampling.points"),
        };
        bad_input(file, format!("{what}: {e}"))
    })
}
