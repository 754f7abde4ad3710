//! A dense vector that allocates only the pages that are touched.

/// Log2 of the entries of a page. Numbers of static instructions are handed out in order of first
/// use, so those of one program lie together: small pages waste little where programs share few.
const PAGE_BITS: u32 = 7;
const PAGE: usize = 1 << PAGE_BITS;

/// Indexed by instruction number; an entry that was never written reads as `None`.
#[derive(Clone, Debug)]
pub(crate) struct Paged<T> {
    pages: Vec<Option<Box<[T; PAGE]>>>,
}

impl<T> Default for Paged<T> {
    fn default() -> Self {
        Self { pages: Vec::new() }
    }
}

impl<T: Copy + Default + PartialEq> Paged<T> {
    /// The entry at `index`, if its page exists.
    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        let page = self.pages.get((index >> PAGE_BITS) as usize)?.as_ref()?;
        Some(&page[index as usize % PAGE])
    }

    /// The entry at `index`, made if need be.
    #[inline]
    pub(crate) fn entry(&mut self, index: u32) -> &mut T {
        let page = (index >> PAGE_BITS) as usize;
        if !matches!(self.pages.get(page), Some(Some(_))) {
            self.allocate(page);
        }
        let page = self.pages[page].as_mut().expect("allocated above");
        &mut page[index as usize % PAGE]
    }

    #[cold]
    fn allocate(&mut self, page: usize) {
        if self.pages.len() <= page {
            self.pages.resize_with(page + 1, || None);
        }
        self.pages[page] = Some(Box::new([T::default(); PAGE]));
    }

    /// Entries that differ from the default, in ascending order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.pages
            .iter()
            .enumerate()
            .filter_map(|(n, page)| page.as_ref().map(|p| (n, p)))
            .flat_map(|(n, page)| {
                page.iter()
                    .enumerate()
                    .filter(|(_, value)| **value != T::default())
                    .map(move |(slot, value)| ((n << PAGE_BITS | slot) as u32, value))
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
        assert_eq!(
            paged.iter().map(|(i, v)| (i, *v)).collect::<Vec<_>>(),
            [(3, 1), (1000, 7)]
        );
    }
}
