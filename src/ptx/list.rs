//! A short list that lies where its owner lies, so that an instruction needs no allocation.

use std::fmt::{self, Debug};
use std::ops::Deref;

/// Up to four items in place; more on the heap. It is read as a slice.
///
/// (`SmallVec` would do, were it not invariant: a tree that borrows its text has to be free to shorten that borrow.)
#[derive(Clone)]
pub struct List<T>(Repr<T>);

#[derive(Clone)]
enum Repr<T> {
    /// The first so many of these; the others are blank.
    Few(u8, [T; 4]),
    Many(Vec<T>),
}

impl<T> List<T> {
    /// An empty list, given with what stands in places that are not used.
    pub(super) const fn new(blanks: [T; 4]) -> Self {
        Self(Repr::Few(0, blanks))
    }

    /// The place of the next item, blank as yet, which counts from now on; `None` if there is no room for it here.
    #[inline]
    pub(super) fn next_place(&mut self) -> Option<&mut T> {
        let Repr::Few(length, items) = &mut self.0 else { return None };
        let place = items.get_mut(usize::from(*length))?;
        *length += 1;
        Some(place)
    }
}

impl<T: Default> List<T> {
    /// Adds an item at the end.
    pub fn push(&mut self, item: T) {
        if let Some(place) = self.next_place() {
            *place = item;
            return;
        }
        match &mut self.0 {
            Repr::Few(_, items) => {
                let mut many = Vec::with_capacity(2 * items.len());
                many.extend(items.iter_mut().map(std::mem::take));
                many.push(item);
                self.0 = Repr::Many(many);
            }
            Repr::Many(items) => items.push(item),
        }
    }
}

impl<T: Default> Default for List<T> {
    fn default() -> Self {
        Self::new(std::array::from_fn(|_| T::default()))
    }
}

impl<T> Deref for List<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match &self.0 {
            Repr::Few(length, items) => items.get(..usize::from(*length)).unwrap_or(items),
            Repr::Many(items) => items,
        }
    }
}

impl<'l, T> IntoIterator for &'l List<T> {
    type Item = &'l T;
    type IntoIter = std::slice::Iter<'l, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T: Debug> Debug for List<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_more_than_fits_in_place() {
        let mut list = List::<u8>::default();
        for item in 1..=9 {
            list.push(item);
            assert_eq!(*list, (1..=item).collect::<Vec<_>>()[..]);
        }
    }
}
