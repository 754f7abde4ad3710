//! A dense vector that allocates only the pages that are touched.

/// Log2 of the entries of a page. Numbers of static instructions are handed out in order of first
/// use, so those of one program lie together: small pages waste little where programs share few, and where a
/// sampler names few. (128 entries instead of 16 cost the quickstart's evaluation 18 % more memory, and no less time.)
const PAGE_BITS: u32 = 4;
const PAGE: usize = 1 << PAGE_BITS;

/// Indexed by instruction number; an entry that was never written reads as `None`.
#[derive(Clone, Debug)]
pub(crate) struct Paged<T> {
    /// Per page, its place in `pages` plus 1, or 0 if it was never touched.
    places: Vec<u32>,
    pages: Vec<[T; PAGE]>,
}

impl<T> Default for Paged<T> {
    fn default() -> Self {
        Self {
            places: Vec::new(),
            pages: Vec::new(),
        }
    }
}

impl<T: Copy + Default + PartialEq> Paged<T> {
    /// The entry at `index`, if its page exists.
    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        let place = *self.places.get((index >> PAGE_BITS) as usize)?;
        Some(&self.pages.get((place as usize).wrapping_sub(1))?[index as usize % PAGE])
    }

    /// The entry at `index`, made if need be.
    #[inline]
    pub(crate) fn entry(&mut self, index: u32) -> &mut T {
        &mut self.page(index >> PAGE_BITS)[index as usize % PAGE]
    }

    /// Changes the entries at `indices`, made if need be. Neighbours share the search for their page.
    #[inline]
    pub(crate) fn update(
        &mut self,
        indices: impl IntoIterator<Item = u32>,
        mut change: impl FnMut(&mut T),
    ) {
        let mut indices = indices.into_iter();
        let Some(mut index) = indices.next() else {
            return;
        };
        loop {
            let number = index >> PAGE_BITS;
            let page = self.page(number);
            while index >> PAGE_BITS == number {
                change(&mut page[index as usize % PAGE]);
                let Some(next) = indices.next() else { return };
                index = next;
            }
        }
    }

    #[inline]
    fn page(&mut self, number: u32) -> &mut [T; PAGE] {
        let place = match self.places.get(number as usize) {
            Some(place) if *place != 0 => *place,
            _ => self.allocate(number as usize),
        };
        &mut self.pages[place as usize - 1]
    }

    #[cold]
    fn allocate(&mut self, page: usize) -> u32 {
        if self.places.len() <= page {
            self.places.resize(page + 1, 0);
        }
        self.pages.push([T::default(); PAGE]);
        self.places[page] = self.pages.len() as u32;
        self.places[page]
    }

    /// Entries that differ from the default, in ascending order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let touched = self
            .places
            .iter()
            .enumerate()
            .filter(|(_, place)| **place != 0);
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
        assert_eq!(paged.get(5), Some(&0));
        assert_eq!(paged.get(500), None);
        assert_eq!(paged.get(u32::MAX), None);
        paged.update([3, 4, 1000, 3, 4], |entry| *entry += 1);
        paged.update([], |entry| *entry += 1);
        assert_eq!(
            paged.iter().map(|(i, v)| (i, *v)).collect::<Vec<_>>(),
            [(3, 3), (4, 2), (1000, 8)]
        );
    }
}
