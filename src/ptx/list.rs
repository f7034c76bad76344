//! A short list that lies where its owner lies, so that an instruction needs no allocation.

use std::fmt::{self, Debug};
use std::ops::Deref;

/// Up to `N` items in place; more on the heap. It is read as a slice.
///
/// (`SmallVec` would do, were it not invariant: a tree that borrows its text has to be free to shorten that borrow.)
#[derive(Clone)]
pub struct List<T, const N: usize>(Repr<T, N>);

#[derive(Clone)]
enum Repr<T, const N: usize> {
    /// The first so many of these; the others are defaults.
    Few(u8, [T; N]),
    Many(Vec<T>),
}

impl<T: Default, const N: usize> List<T, N> {
    /// Adds an item at the end.
    #[inline]
    pub fn push(&mut self, item: T) {
        match &mut self.0 {
            Repr::Few(length, items) => match items.get_mut(usize::from(*length)) {
                Some(place) => {
                    *place = item;
                    *length += 1;
                }
                None => {
                    let mut many = Vec::with_capacity(2 * N);
                    many.extend(items.iter_mut().map(std::mem::take));
                    many.push(item);
                    self.0 = Repr::Many(many);
                }
            },
            Repr::Many(items) => items.push(item),
        }
    }
}

impl<T: Default, const N: usize> Default for List<T, N> {
    #[inline]
    fn default() -> Self {
        Self(Repr::Few(0, std::array::from_fn(|_| T::default())))
    }
}

impl<T, const N: usize> Deref for List<T, N> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match &self.0 {
            Repr::Few(length, items) => items.get(..usize::from(*length)).unwrap_or(items),
            Repr::Many(items) => items,
        }
    }
}

impl<'l, T, const N: usize> IntoIterator for &'l List<T, N> {
    type Item = &'l T;
    type IntoIter = std::slice::Iter<'l, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T: Debug, const N: usize> Debug for List<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_more_than_fits_in_place() {
        let mut list = List::<u8, 2>::default();
        for item in 1..=5 {
            list.push(item);
            assert_eq!(*list, (1..=item).collect::<Vec<_>>()[..]);
        }
    }
}
