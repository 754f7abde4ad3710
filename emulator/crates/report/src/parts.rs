//! Parts of time as a performance engineer reads them: the published categories, but cycles that a full store queue takes are not
//! the front end's.

/// Number of parts.
const COUNT: usize = 8;

/// Index of the front end in the published categories.
const FRONT_END: usize = 4;

/// Time by part: the published categories in their order, without what a full store queue takes, and that as the last part.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Parts(pub [f64; COUNT]);

impl Parts {
    /// Splits a published stack: `store_queue` is what of its front end is due to a full store queue.
    pub fn new(stack: [f64; 7], store_queue: f64) -> Self {
        let mut parts = [0.0; COUNT];
        parts[..7].copy_from_slice(&stack);
        parts[FRONT_END] = (parts[FRONT_END] - store_queue).max(0.0);
        parts[7] = store_queue;
        Self(parts)
    }

    pub fn total(&self) -> f64 {
        self.0.iter().sum()
    }

    pub fn scaled(self, by: f64) -> Self {
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
