//! Something for each block. Records of a block mostly come one after the other, so that the last one looked up is likely the
//! next.

use rustc_hash::FxHashMap;

/// A map from blocks.
#[derive(Debug)]
pub struct ByBlock<T> {
    index: FxHashMap<u32, u32>,
    places: Vec<T>,
    free: Vec<u32>,
    /// The last block looked up, with its place.
    last: Option<(u32, u32)>,
}

impl<T> Default for ByBlock<T> {
    fn default() -> Self {
        Self { index: FxHashMap::default(), places: Vec::new(), free: Vec::new(), last: None }
    }
}

impl<T> ByBlock<T> {
    #[inline]
    fn find(&self, block: u32) -> Option<u32> {
        match self.last {
            Some((last, at)) if last == block => Some(at),
            _ => self.index.get(&block).copied(),
        }
    }

    /// What there is of a block.
    #[inline]
    pub fn get(&self, block: u32) -> Option<&T> {
        self.places.get(self.find(block)? as usize)
    }

    /// The same, to be changed.
    #[inline]
    pub fn get_mut(&mut self, block: u32) -> Option<&mut T> {
        let at = self.find(block)?;
        self.last = Some((block, at));
        self.places.get_mut(at as usize)
    }

    /// The same, made if there is none.
    #[inline(always)] // else it is a call for each record
    pub fn get_or_insert_with(&mut self, block: u32, make: impl FnOnce() -> T) -> &mut T {
        let at = match self.find(block) {
            Some(at) => at,
            None => self.insert(block, make()),
        };
        self.last = Some((block, at));
        &mut self.places[at as usize]
    }

    #[inline(never)]
    fn insert(&mut self, block: u32, thing: T) -> u32 {
        let at = match self.free.pop() {
            Some(at) => {
                self.places[at as usize] = thing;
                at
            }
            None => {
                self.places.push(thing);
                self.places.len() as u32 - 1
            }
        };
        self.index.insert(block, at);
        at
    }

    /// Takes away what there is of a block.
    pub fn remove(&mut self, block: u32) -> Option<T>
    where
        T: Default,
    {
        let at = self.index.remove(&block)?;
        self.last = None;
        self.free.push(at);
        self.places.get_mut(at as usize).map(std::mem::take)
    }

    /// Takes away all.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Takes away all, in the order of blocks.
    pub fn drain(&mut self) -> Vec<(u32, T)>
    where
        T: Default,
    {
        let Self { index, mut places, .. } = std::mem::take(self);
        let mut all: Vec<_> = index
            .into_iter()
            .filter_map(|(block, at)| Some((block, places.get_mut(at as usize).map(std::mem::take)?)))
            .collect();
        all.sort_by_key(|(block, _)| *block);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again() {
        let mut by_block = ByBlock::default();
        *by_block.get_or_insert_with(7, || 1) += 1;
        assert_eq!((by_block.get(7), by_block.get(8)), (Some(&2), None));
        assert_eq!(by_block.remove(7), Some(2));
        assert_eq!(by_block.get(7), None);
        assert_eq!(by_block.get_mut(7), None);
        assert_eq!(by_block.remove(7), None);
        for block in [9, 3, 5] {
            by_block.get_or_insert_with(block, || block);
        }
        assert_eq!(by_block.places.len(), 3);
        assert_eq!(by_block.drain(), [(3, 3), (5, 5), (9, 9)]);
        assert_eq!(by_block.get(9), None);
    }
}
