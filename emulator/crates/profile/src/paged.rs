//! A dense vector that allocates only the pages that are touched.

/// Log2 of the entries of a page. Numbers of static instructions are handed out in order of first
/// use, so those of one program lie together: small pages waste little where programs share few, and where a
/// sampler names few. (128 entries instead of 16 cost the quickstart's evaluation 18 % more memory, and no less time.)
pub(crate) const PAGE_BITS: u32 = 4;
const PAGE: usize = 1 << PAGE_BITS;
/// Log2 of the pages of a shelf, which is the middle level of the table. Many processes have a few instructions each, with
/// high numbers in a long run: shelves keep the table of such a process small.
const SHELF_BITS: u32 = 7;
const SHELF: usize = 1 << SHELF_BITS;

/// Indexed by instruction number; an entry that was never written reads as `None`.
#[derive(Clone, Debug)]
pub(crate) struct Paged<T> {
    /// The top level: for each shelf its index in `shelves` plus 1, or 0 if none of its pages was ever touched.
    tops: Vec<u32>,
    /// The middle level: for each page its index in `pages` plus 1, or 0 if it was never touched.
    shelves: Vec<[u32; SHELF]>,
    pages: Vec<[T; PAGE]>,
}

impl<T> Default for Paged<T> {
    fn default() -> Self {
        Self { tops: Vec::new(), shelves: Vec::new(), pages: Vec::new() }
    }
}

impl<T: Copy + Default + PartialEq> Paged<T> {
    /// The entry at `index`, if its page exists.
    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        let place = self.place(index >> PAGE_BITS)?;
        Some(&self.pages.get((place as usize).wrapping_sub(1))?[index as usize % PAGE])
    }

    /// The entry at `index`, made if need be.
    #[inline]
    pub(crate) fn entry(&mut self, index: u32) -> &mut T {
        &mut self.page(index >> PAGE_BITS)[index as usize % PAGE]
    }

    /// All entries, page after page in the order in which those were made.
    #[inline]
    pub(crate) fn entries_mut(&mut self) -> &mut [T] {
        self.pages.as_flattened_mut()
    }

    /// Where among [`Self::entries_mut`] the entry at `index` is, which is made if need be.
    #[inline]
    pub(crate) fn place_of(&mut self, index: u32) -> usize {
        self.first_entry(index >> PAGE_BITS) + index as usize % PAGE
    }

    /// Where among [`Self::entries_mut`] those of a page begin, which is made if need be.
    pub(crate) fn first_entry(&mut self, page: u32) -> usize {
        self.made(page) << PAGE_BITS
    }

    /// True if no entry was ever made.
    pub(crate) fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// The place of a page, if its shelf exists.
    #[inline]
    fn place(&self, page: u32) -> Option<u32> {
        let top = *self.tops.get((page >> SHELF_BITS) as usize)?;
        let shelf = self.shelves.get((top as usize).wrapping_sub(1))?;
        Some(shelf[page as usize % SHELF])
    }

    #[inline]
    fn page(&mut self, number: u32) -> &mut [T; PAGE] {
        let place = self.made(number);
        &mut self.pages[place]
    }

    /// The place of a page, which is made if need be.
    #[inline]
    fn made(&mut self, number: u32) -> usize {
        let place = match self.place(number) {
            Some(place) if place != 0 => place,
            _ => self.allocate(number as usize),
        };
        place as usize - 1
    }

    #[cold]
    fn allocate(&mut self, page: usize) -> u32 {
        let number = page >> SHELF_BITS;
        if self.tops.len() <= number {
            self.tops.resize(number + 1, 0);
        }
        let top = &mut self.tops[number];
        if *top == 0 {
            self.shelves.push([0; SHELF]);
            *top = self.shelves.len() as u32;
        }
        self.pages.push([T::default(); PAGE]);
        let place = self.pages.len() as u32;
        self.shelves[*top as usize - 1][page % SHELF] = place;
        place
    }

    /// Entries that differ from the default, in ascending order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let shelves = self.tops.iter().enumerate().filter(|(_, top)| **top != 0);
        let places = shelves.flat_map(|(number, top)| {
            let places = self.shelves[*top as usize - 1].iter().enumerate();
            places.map(move |(page, place)| (number << SHELF_BITS | page, place))
        });
        let touched = places.filter(|(_, place)| **place != 0);
        touched.flat_map(|(page, place)| {
            let entries = self.pages[*place as usize - 1].iter().enumerate();
            entries
                .filter(|(_, value)| **value != T::default())
                .map(move |(slot, value)| ((page << PAGE_BITS | slot) as u32, value))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn untouched_entries_cost_nothing_and_read_as_none() {
        let mut paged = Paged::<u64>::default();
        *paged.entry(1000) += 7;
        *paged.entry(3) += 1;
        *paged.entry(1 << 30) += 2;
        assert_eq!(paged.get(5), Some(&0));
        assert_eq!(paged.get(500), None);
        assert_eq!(paged.get(1 << 29), None);
        assert_eq!(paged.get(u32::MAX), None);
        assert_eq!((paged.shelves.len(), paged.pages.len()), (2, 3));
        let first = paged.first_entry(1000 >> PAGE_BITS);
        paged.entries_mut()[first + 1000 % PAGE] += 1;
        assert_eq!(
            paged.iter().map(|(i, v)| (i, *v)).collect::<Vec<_>>(),
            [(3, 1), (1000, 8), (1 << 30, 2)]
        );
    }
}
