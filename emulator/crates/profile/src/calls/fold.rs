//! Contexts that are too small to be shown: their time goes to their callers.

use super::{ContextId, ContextWeights, Contexts};

impl Contexts {
    /// Returns the context that each context is shown as: itself, or its nearest caller that has 1 / `least_part` of the time
    /// in `weights`. A context's time includes its callees'.
    pub fn shown<'a>(
        &self,
        weights: impl IntoIterator<Item = &'a ContextWeights>,
        least_part: u64,
    ) -> Vec<ContextId> {
        let mut units = vec![0u64; self.len()];
        for (context, _, weight) in weights.into_iter().flatten() {
            units[context.0 as usize] += weight;
        }
        let total: u64 = units.iter().sum();
        let caller = |context: usize| self.get(ContextId(context as u32)).caller;
        for context in (0..units.len()).rev() {
            if let Some((caller, _)) = caller(context) {
                units[caller.0 as usize] += units[context];
            }
        }
        let mut shown: Vec<ContextId> = Vec::with_capacity(units.len());
        for (context, units) in units.iter().enumerate() {
            shown.push(match caller(context) {
                Some((caller, _)) if *units < total / least_part => shown[caller.0 as usize],
                _ => ContextId(context as u32),
            });
        }
        shown
    }
}

/// Moves each weight to the context that its context is shown as; the weights ascend afterwards.
pub fn fold(weights: &mut ContextWeights, shown: &[ContextId]) {
    for (context, _, _) in weights.iter_mut() {
        *context = shown[context.0 as usize];
    }
    sum_up(weights);
}

/// Adds up the weights of one context and instruction; the weights ascend afterwards.
pub(crate) fn sum_up(weights: &mut ContextWeights) {
    // Mostly they are a few lists that ascend, which a stable sort makes use of.
    weights.sort_by_key(|(context, inst, _)| (*context, *inst));
    weights.dedup_by(|(context, inst, units), first| {
        let same = (*context, *inst) == (first.0, first.1);
        first.2 += if same { *units } else { 0 };
        same
    });
}
