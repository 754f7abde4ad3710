//! The comparison of an event's samples with its true counts.

use guest_samples::SampleFile;
use rustc_hash::FxHashMap;
use truth::Metric;

use super::index::{Placed, Scope, Sides, TruthIndex};
use super::latency::Latencies;
use super::{PreciseProfile, Skid};

/// Units per event: counts are compared as whole numbers of units, as the Oracle splits a cycle into so many.
const UNITS: f64 = 840.0;
impl TruthIndex<'_> {
    /// Compares the samples of an event with its true counts; `None` if there is nothing to compare.
    pub(crate) fn judge(
        &self,
        file: &SampleFile,
        event: usize,
        metric: Metric,
        disassemble: &dyn Fn(u32, u64) -> String,
    ) -> Option<PreciseProfile> {
        let scope = self.scope(file, event);
        let mut counts = vec![0.0; self.rows.len()];
        for (instruction, row) in self.truth.instructions.iter().zip(&self.row_of) {
            if scope.has(instruction.process) {
                counts[*row as usize] += metric.of(instruction);
            }
        }
        let mut sides = Sides {
            truth: counts.iter().map(|n| (n * UNITS).round() as u64).collect(),
            sampled: vec![0; self.rows.len()],
            unmatched: 0,
            samples: 0,
        };
        let mut own: Vec<Placed<'_>> = Vec::new();
        let (mut exact, mut wrong) = (0, 0);
        for sample in file.samples.iter().filter(|s| s.event == event) {
            let weight = sample.period.unwrap_or(1);
            let row = match self.row(sample, &scope) {
                Ok(row) => Some(row),
                Err(true) => None,
                Err(false) => continue,
            };
            match row {
                Some(row) => sides.sampled[row as usize] += weight,
                None => sides.unmatched += weight,
            }
            wrong += u64::from(row.is_none_or(|row| sides.truth[row as usize] == 0));
            exact += u64::from(sample.is_exact);
            own.push((sample, row));
        }
        sides.samples = own.len() as u64;
        let truth: f64 = counts.iter().sum();
        if own.is_empty() || truth == 0.0 {
            return None;
        }
        let about = &file.events[event];
        let function = |row: usize| (self.rows[row].process, self.rows[row].function);
        // A function's start begins a block.
        let by_block = sides.by(|row| (function(row), self.blocks[row]));
        let by_function = sides.by(function);
        let latencies = Latencies::new(self, metric, &scope, &own);
        let lines = self.lines(&own, metric, &scope);
        Some(PreciseProfile {
            file: file.file.clone(),
            event: about.name.clone(),
            metric,
            period: about.period,
            is_frequency: about.is_frequency,
            precise: about.precise,
            samples: sides.samples,
            exact,
            lost: file.lost,
            throttled: file.throttled,
            truth,
            estimate: sides.all() as f64,
            wrong: wrong as f64 / sides.samples as f64,
            instruction: sides.error(),
            block: by_block.error(),
            function: by_function.error(),
            line: lines.as_ref().map(Sides::error),
            object: lines.map(|lines| lines.by(|at| self.object(at)).error()),
            skid: self.skid(&sides, &scope),
            latency: latencies.whole(),
            sources: latencies.sources(),
            classes: self.classes(&sides),
            slots: self.slots(&sides),
            instructions: self.largest(&sides, &latencies, disassemble),
        })
    }

    /// Returns the weights by cache line, of the samples that have addresses; `None` if no sample has one, or the metric is not
    /// known by line.
    fn lines(&self, own: &[Placed<'_>], metric: Metric, scope: &Scope) -> Option<Sides> {
        let lines = &self.truth.lines;
        let size = self.truth.line_bytes.max(1);
        let mut by_pa = FxHashMap::default();
        let mut by_va = FxHashMap::default();
        let mut sides = Sides {
            truth: vec![0; lines.len()],
            sampled: vec![0; lines.len()],
            unmatched: 0,
            samples: 0,
        };
        for (at, line) in lines.iter().enumerate() {
            for user in line.uses.iter().filter(|user| scope.has(user.process)) {
                sides.truth[at] += metric.of_line(&user.counts)?;
                by_va.insert(user.counts.va / size, at);
                by_pa.insert(line.pa / size, at);
            }
        }
        for (sample, _) in own {
            let known = |address: Option<u64>| address.filter(|address| *address != 0);
            let (pa, va) = (known(sample.phys_addr), known(sample.addr));
            let line = match (pa, va) {
                (Some(pa), _) => by_pa.get(&(pa / size)),
                (None, Some(va)) => by_va.get(&(va / size)),
                (None, None) => continue,
            };
            sides.samples += 1;
            let weight = sample.period.unwrap_or(1);
            match line {
                Some(line) => sides.sampled[*line] += weight,
                None => sides.unmatched += weight,
            }
        }
        (sides.samples > 0).then_some(sides)
    }

    /// Returns the data object of a line; a line without one stands for itself.
    fn object(&self, line: usize) -> Result<&str, usize> {
        let name = self.truth.lines[line].object.split("+0x").next();
        name.filter(|name| !name.is_empty()).ok_or(line)
    }

    /// Returns the skid of samples: their distance, in executed instructions of the function, from the nearest instruction
    /// before them that has the event. `None` if most instructions have the event.
    fn skid(&self, sides: &Sides, scope: &Scope) -> Option<Skid> {
        let mut order: Vec<usize> =
            (0..self.rows.len()).filter(|row| scope.has(self.rows[*row].process)).collect();
        let incurs = |row: &usize| sides.truth[*row] > 0;
        if 2 * order.iter().filter(|row| incurs(row)).count() > order.len() {
            return None;
        }
        let function = |row: usize| (self.rows[row].process, self.rows[row].function);
        order.sort_by_key(|row| (function(*row), self.rows[*row].pc));
        let (mut known, mut distances) = (0u64, 0u64);
        // Distance from the last one that has the event.
        let mut distance: Option<u64> = None;
        let mut before = None;
        for row in order {
            if before != Some(function(row)) {
                distance = None;
            }
            before = Some(function(row));
            distance = match incurs(&row) {
                true => Some(0),
                false => distance.map(|distance| distance + 1),
            };
            if let Some(distance) = distance {
                known += sides.sampled[row];
                distances += distance * sides.sampled[row];
            }
        }
        let all = sides.all();
        (known > 0).then(|| Skid {
            mean: distances as f64 / known as f64,
            known: known as f64 / all as f64,
        })
    }
}
