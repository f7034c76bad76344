//! What a store takes the place of, as far as its value goes.
//!
//! Unordered stores of one value are harmless (R010). But a store stands in its cell for accesses that came before it, too:
//! for reads, which have no value, and for stores of other values. Who races with it races with those, unless he is ordered
//! after them in another way. For accesses of its own warp their time tells. For those of other warps no time is kept: they
//! count towards other blocks only, since their order before the store mostly is a barrier of the whole block.

use super::clock::Time;
use super::shadow::{Entry, Key};
use super::sync::is_wide;
use crate::finding::AccessClass;
use crate::isa::Scope;

/// What else a store stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stands {
    bits: u8,
    /// Of the latest own access.
    time: Time,
}

/// Weak accesses of its warp, and such strong ones.
const OWN: u8 = 1;
const OWN_STRONG: u8 = 2;
/// Accesses of other warps; strong ones are beside it, as for its own.
const OTHERS: u8 = OWN << 2;

impl Stands {
    /// Of a weak store among weak accesses: the time of the latest of its warp that it stands for, and whether it stands
    /// for others.
    pub(super) fn weak(own: Option<Time>, others: bool) -> Self {
        let bits = if own.is_some() { OWN } else { 0 } | if others { OTHERS } else { 0 };
        Self { bits, time: own.unwrap_or(0) }
    }

    /// A store of this value takes the place of an access, of its own warp or another.
    pub(super) fn replace(&mut self, value: Option<u64>, key: &Key, replaced: &Entry, own: bool) {
        let other_value = key.class != AccessClass::Write || replaced.value != value;
        let bits = match key.scope {
            _ if !other_value => 0,
            None => OWN,
            // Towards other blocks it is as good as weak.
            Some(scope) if !is_wide(scope) => OWN_STRONG | OTHERS,
            Some(_) => OWN_STRONG,
        };
        let now = Self { bits, time: if bits == 0 { 0 } else { replaced.time } };
        *self = self.and(if own { replaced.stands.and(now) } else { replaced.stands.and(now).of_others() });
    }

    /// What both stand for.
    pub(super) fn and(self, other: Self) -> Self {
        Self { bits: self.bits | other.bits, time: self.time.max(other.time) }
    }

    /// The same, as it is for another warp.
    fn of_others(self) -> Self {
        let own = self.bits & (OWN | OWN_STRONG);
        Self { bits: (self.bits & !own) | own << 2, time: 0 }
    }

    /// Whether it makes a race with a store of the same value harmful: the scope of that, if it is strong, whether it is
    /// another block's, and whether it is ordered after the warp at a time.
    pub(super) fn counts(self, scope: Option<Scope>, far: bool, is_after: impl FnOnce(Time) -> bool) -> bool {
        let is_strong = scope.is_some_and(|scope| !far || is_wide(scope));
        let own = if is_strong { OWN } else { OWN | OWN_STRONG };
        let others = if far { own << 2 } else { 0 };
        self.bits & others != 0 || (self.bits & own != 0 && !is_after(self.time))
    }
}
