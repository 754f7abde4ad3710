//! Counts instructions by basic block.

use std::io::Write;

use isa::PathSegment;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::mean::Random;
use crate::survey::{IntervalPages, Survey};

/// Counts the instructions of each basic block, interval by interval.
///
/// An instruction that traps counts, too, though it does not retire. A basic block begins where a control transfer, a trap or the region's begin leads, and ends with the next control transfer, whether or not a
/// branch is taken. Blocks are known by the virtual address of their first instruction, so that equal addresses of several processes are one
/// block.
pub struct BlockCounter {
    /// Place of each block in `blocks`, by its address.
    places: FxHashMap<u64, u32>,
    /// Instructions of each block in the present interval.
    blocks: Vec<u64>,
    /// Virtual address of each block's first instruction.
    addresses: Vec<u64>,
    /// What an instruction of each block adds to an interval's vector, block by block.
    directions: Vec<f32>,
    /// Numbers of a vector.
    dimensions: usize,
    /// Blocks that were executed in the present interval.
    executed: Vec<u32>,
    /// The present block, if the path is within one, and its instructions so far.
    open: Option<(u64, u64)>,
    survey: Survey,
    /// Data pages that the region accessed so far.
    touched: FxHashSet<u64>,
    /// Where vectors are written as SimPoint's tools read them.
    vectors: Option<Box<dyn Write + Send>>,
    error: Option<std::io::Error>,
}

/// An access to a page of 4 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PageAccess {
    /// Number of the physical page.
    pub page: u64,
    /// The access was a store.
    pub written: bool,
}

impl BlockCounter {
    /// Returns a counter of intervals of about `interval` instructions, whose vectors are projected to so many `dimensions`.
    pub fn new(interval: u64, dimensions: usize) -> Self {
        Self {
            places: FxHashMap::default(),
            blocks: Vec::new(),
            addresses: Vec::new(),
            directions: Vec::new(),
            dimensions,
            executed: Vec::new(),
            open: None,
            survey: Survey::new(interval),
            touched: FxHashSet::default(),
            vectors: None,
            error: None,
        }
    }

    /// Also writes the vector of each interval, as SimPoint's tools read it (`.bb`): a line of `T` and `:BLOCK:INSTRUCTIONS` for each block. Blocks have
    /// numbers from 1 on.
    #[must_use]
    pub fn writing(mut self, vectors: Box<dyn Write + Send>) -> Self {
        self.vectors = Some(vectors);
        self
    }

    /// Takes what was executed next.
    pub fn count(&mut self, segments: &[PathSegment]) {
        for segment in segments {
            let (block, instructions) = self.open.unwrap_or((segment.start(), 0));
            let instructions = instructions + u64::from(segment.lengths.count());
            if segment.kind().is_some() {
                self.add(block, instructions);
                self.open = None;
            } else {
                self.open = Some((block, instructions));
            }
        }
    }

    /// Ends an interval of so many instructions, which accessed `pages`, each once or several times.
    pub fn end_interval(&mut self, instructions: u64, pages: Vec<PageAccess>) {
        if let Some((block, executed)) = self.open.take() {
            self.add(block, executed);
            // What follows is still of the same block.
            self.open = Some((block, 0));
        }
        self.executed.sort_unstable();
        self.write_vector();
        let pages = self.count_pages(pages);
        let mut vector = vec![0.0; self.dimensions];
        let mut counted = 0;
        for place in self.executed.drain(..) {
            let instructions = std::mem::take(&mut self.blocks[place as usize]);
            counted += instructions;
            let direction = &self.directions[place as usize * self.dimensions..];
            for (sum, direction) in vector.iter_mut().zip(direction) {
                *sum += instructions as f64 * f64::from(*direction);
            }
        }
        let share = |sum: f64| (sum / counted.max(1) as f64) as f32;
        self.survey.add(instructions, vector.into_iter().map(share).collect(), pages);
    }

    /// Counts the pages of the interval that ends, whose blocks are those in `executed`.
    fn count_pages(&mut self, mut data: Vec<PageAccess>) -> IntervalPages {
        data.sort_unstable();
        // A store to a page comes after all loads from it.
        let accesses = data.chunk_by(|one, next| one.page == next.page);
        let written = accesses.clone().filter(|of| of.last().is_some_and(|last| last.written));
        let executed = self.executed.iter().map(|place| self.addresses[*place as usize] >> 12);
        let new = accesses.clone().filter(|of| self.touched.insert(of[0].page));
        let new = new.count() as u32;
        IntervalPages {
            data: accesses.count() as u32,
            written: written.count() as u32,
            new,
            code: executed.collect::<FxHashSet<u64>>().len() as u32,
        }
    }

    /// Begins anew after a jump to somewhere else: what follows is not of the same block.
    pub fn interrupt(&mut self) {
        if let Some((block, instructions)) = self.open.take() {
            self.add(block, instructions);
        }
    }

    /// Forgets all intervals so far, which are written already: the region begins anew. Blocks keep their numbers.
    pub fn restart(&mut self) {
        self.open = None;
        for place in self.executed.drain(..) {
            self.blocks[place as usize] = 0;
        }
        self.survey = Survey::new(self.survey.interval);
        self.touched.clear();
    }

    /// Ends the count.
    ///
    /// # Errors
    /// If a vector could not be written.
    pub fn finish(self) -> std::io::Result<Survey> {
        let mut survey = self.survey;
        survey.blocks = self.blocks.len() as u64;
        match (self.error, self.vectors) {
            (Some(error), _) => Err(error),
            (None, Some(mut vectors)) => vectors.flush().map(|()| survey),
            (None, None) => Ok(survey),
        }
    }

    fn add(&mut self, block: u64, instructions: u64) {
        let Self { places, blocks, addresses, executed, directions, dimensions, .. } = self;
        let place = *places.entry(block).or_insert_with(|| {
            blocks.push(0);
            addresses.push(block);
            directions.extend(direction(block).take(*dimensions));
            blocks.len() as u32 - 1
        });
        let block = &mut blocks[place as usize];
        if *block == 0 && instructions > 0 {
            executed.push(place);
        }
        *block += instructions;
    }

    fn write_vector(&mut self) {
        let Some(vectors) = self.vectors.as_mut().filter(|_| self.error.is_none()) else { return };
        let mut line = String::from("T");
        for place in &self.executed {
            let instructions = self.blocks[*place as usize];
            line += &format!(":{}:{instructions} ", place + 1);
        }
        line.push('\n');
        self.error = vectors.write_all(line.as_bytes()).err();
    }
}

/// Returns numbers from -1 to 1 that look random and follow from a block's address alone.
fn direction(block: u64) -> impl Iterator<Item = f32> {
    let mut random = Random(block);
    std::iter::repeat_with(move || (random.bits() >> 40) as f32 / (1 << 23) as f32 - 1.0)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use isa::TransferKind;

    use super::*;

    const BRANCH: Option<TransferKind> = Some(TransferKind::Branch);

    #[derive(Clone, Default)]
    struct Text(Arc<Mutex<Vec<u8>>>);

    impl Write for Text {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn one(kind: Option<TransferKind>, pc: u64) -> PathSegment {
        PathSegment::one(kind, pc, 4, false, 0)
    }

    #[test]
    fn blocks_are_counted_however_their_segments_are_cut() {
        let text = Text::default();
        let mut counter = BlockCounter::new(4, 15).writing(Box::new(text.clone()));
        let mut whole = PathSegment::one(BRANCH, 0x100, 4, false, 0);
        whole.lengths = whole.lengths.with(2).with(4);
        counter.count(&[whole]);
        counter.count(&[one(None, 0x100), one(None, 0x104), one(BRANCH, 0x108), one(None, 0x10c)]);
        let touch = |page, written| PageAccess { page, written };
        counter.end_interval(7, vec![touch(9, true), touch(8, false), touch(9, false)]);
        // The block goes on in the next interval.
        counter.count(&[one(BRANCH, 0x110), one(BRANCH, 0x114)]);
        counter.end_interval(2, vec![touch(9, false), touch(7, true), touch(7, true)]);
        counter.count(&[one(None, 0x100)]);
        counter.interrupt();
        counter.count(&[one(None, 0x1114)]);
        counter.end_interval(2, Vec::new());
        let survey = counter.finish().unwrap();
        let text = String::from_utf8(text.0.lock().unwrap().clone()).unwrap();
        assert_eq!(text, "T:1:6 :2:1 \nT:2:1 :3:1 \nT:1:1 :4:1 \n");
        let pages = |data, written, new, code| IntervalPages { data, written, new, code };
        assert_eq!(survey.pages, [pages(2, 1, 2, 1), pages(2, 1, 1, 1), pages(0, 0, 0, 2)]);
        assert_eq!(survey.footprint(), 3);
        assert_eq!((survey.blocks, &survey.instructions[..]), (4, &[7, 2, 2][..]));
        let expected = |blocks: [(u64, f32); 2]| {
            let [a, b] = blocks.map(|(pc, share)| direction(pc).map(move |x| x * share));
            a.zip(b).map(|(a, b)| a + b)
        };
        let near = |found: &[f32], blocks| {
            let pairs = found.iter().zip(expected(blocks));
            found.len() == 15 && { pairs }.all(|(a, b)| (a - b).abs() < 1e-6)
        };
        assert!(near(&survey.vectors[0], [(0x100, 6.0 / 7.0), (0x10c, 1.0 / 7.0)]));
        assert!(near(&survey.vectors[1], [(0x10c, 0.5), (0x114, 0.5)]));
    }

    #[test]
    fn directions_are_even_over_their_range() {
        let numbers: Vec<f32> =
            (0..1000).flat_map(|n| direction(0x10000 + 4 * n).take(100)).collect();
        let mean = numbers.iter().sum::<f32>() / numbers.len() as f32;
        let square = numbers.iter().map(|x| x * x).sum::<f32>() / numbers.len() as f32;
        assert!(mean.abs() < 0.02 && (square - 1.0 / 3.0).abs() < 0.02, "{mean} {square}");
        assert!(numbers.iter().all(|x| (-1.0..1.0).contains(x)));
    }
}
