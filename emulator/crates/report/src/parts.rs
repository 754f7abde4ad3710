//! Parts of time as a performance engineer reads them: the published categories, but cycles that a full store queue takes are not
//! the front end's.

use profile::{CATEGORIES, Category};

/// Number of parts.
const COUNT: usize = CATEGORIES.len() + 1;

/// Least share of committing cycles, exclusive, of a process of the class `compute`.
const COMPUTE_SHARE: f64 = 0.5;
/// Least share of cycles after flushes, exclusive, of a process of the class `flush`.
const FLUSH_SHARE: f64 = 0.03;

/// Time by part: the published categories in their order, without what a full store queue takes, and that as the last part.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Parts(pub [f64; COUNT]);

impl Parts {
    /// Splits a published stack: `store_queue` is what of its front end is due to a full store queue.
    pub(crate) fn new(stack: [f64; CATEGORIES.len()], store_queue: f64) -> Self {
        let mut parts = [0.0; COUNT];
        parts[..CATEGORIES.len()].copy_from_slice(&stack);
        let front_end = &mut parts[Category::FrontEnd as usize];
        *front_end = (*front_end - store_queue).max(0.0);
        parts[CATEGORIES.len()] = store_queue;
        Self(parts)
    }

    /// Returns the parts' names, in their order.
    pub(crate) fn names() -> [&'static str; COUNT] {
        let mut names = ["Store queue full"; COUNT];
        names[..CATEGORIES.len()].copy_from_slice(&CATEGORIES);
        names
    }

    pub(crate) fn total(&self) -> f64 {
        self.0.iter().sum()
    }

    pub(crate) fn scaled(self, by: f64) -> Self {
        Self(self.0.map(|part| part * by))
    }
}

impl std::ops::AddAssign for Parts {
    fn add_assign(&mut self, other: Self) {
        for (sum, part) in self.0.iter_mut().zip(other.0) {
            *sum += part;
        }
    }
}

/// Returns the class of a process, as published: by the share of committing cycles, then by that of flushes.
pub(super) fn class(stack: &[f64; CATEGORIES.len()]) -> &'static str {
    let share = |category: Category| stack[category as usize];
    if share(Category::Execution) > COMPUTE_SHARE {
        "compute"
    } else if share(Category::Mispredict) + share(Category::MiscFlush) > FLUSH_SHARE {
        "flush"
    } else {
        "stall"
    }
}
