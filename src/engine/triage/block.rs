//! Blocks: how far each warp has come, and which barriers it has passed.
//!
//! Only barriers are understood that the whole block takes part in, so that all pass them one by one in the same order, and a warp
//! knows by its own count which interval it is in. Records are expected
//! in an order in which what comes before a barrier comes first; shadow memory doubts what does not.

use rustc_hash::FxHashMap;

use super::Doubt;
use super::shadow::Shared;
use crate::event::Geometry;

/// Places remembered.
const RECENT: usize = 64;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Warp {
    /// Lanes that have not exited and do not wait.
    pub(super) ready: u32,
    /// Lanes that have accessed memory in the interval.
    pub(super) touched: u32,
    /// Block barriers passed, and warp barriers since.
    pub(super) interval: u32,
    pub(super) sub: u16,
    /// Lanes that have not exited.
    live: u32,
    /// Lanes that wait at the block's barrier, and the instruction.
    arrived: u32,
    site: u32,
    /// Lanes that wait for those of a mask, the mask, and whether that orders memory.
    came: u32,
    given: u32,
    orders: bool,
}

impl Warp {
    fn new(lanes: u32) -> Self {
        Self { ready: lanes, live: lanes, ..Self::default() }
    }

    /// Goes on if all are there who are waited for.
    fn go_on(&mut self) -> Result<(), Doubt> {
        if self.came != 0 && self.given & self.live == self.came {
            if self.orders {
                // Those who have gone hand nothing on.
                if self.came != self.live || self.touched & !self.live != 0 || self.sub == u16::MAX {
                    return Err(Doubt::Barrier);
                }
                self.sub += 1;
            }
            self.ready |= self.came;
            self.came = 0;
        }
        if self.arrived != 0 && self.arrived == self.live {
            if self.interval == u32::MAX - 1 {
                return Err(Doubt::Barrier);
            }
            (self.interval, self.sub, self.touched) = (self.interval + 1, 0, 0);
            (self.ready, self.arrived) = (self.live, 0);
        }
        Ok(())
    }
}

#[derive(Debug)]
pub(super) struct Block {
    pub(super) index: u32,
    pub(super) warps: Vec<Warp>,
    pub(super) shared: Shared,
    /// Threads that have not exited.
    left: u32,
    /// The first interval in which threads exited after accesses. No barrier orders these with what comes behind it.
    loose: u32,
    last: u32,
}

impl Block {
    fn begin(&mut self, index: u32, geometry: Geometry) {
        self.index = index;
        self.warps.clear();
        self.warps.extend((0..geometry.warps).map(|warp| Warp::new(geometry.lanes(warp))));
        (self.left, self.loose, self.last) = (geometry.threads, u32::MAX, 0);
    }

    /// Lanes of a warp come to a barrier of the block. All that are left have to come to the same instruction.
    pub(super) fn barrier(&mut self, warp: u8, mask: u32, site: u32) -> Result<(), Doubt> {
        let warp = able(&mut self.warps, warp, mask)?;
        if warp.arrived != 0 && warp.site != site {
            return Err(Doubt::Barrier);
        }
        (warp.arrived, warp.site, warp.ready) = (warp.arrived | mask, site, warp.ready & !mask);
        warp.go_on()?;
        self.last = self.last.max(warp.interval);
        Ok(())
    }

    /// Lanes of a warp come to a `.sync` instruction with this mask, which may order memory.
    pub(super) fn meet(&mut self, warp: u8, mask: u32, given: u32, orders: bool) -> Result<(), Doubt> {
        let warp = able(&mut self.warps, warp, mask)?;
        let goes_with = warp.came == 0 || (warp.given == given && warp.orders == orders);
        if mask & !given != 0 || !goes_with {
            return Err(Doubt::Barrier);
        }
        (warp.given, warp.orders) = (given, orders);
        (warp.came, warp.ready) = (warp.came | mask, warp.ready & !mask);
        warp.go_on()
    }

    /// Lanes exit; tells whether they were the last of the block.
    pub(super) fn exit(&mut self, warp: u8, mask: u32) -> Result<bool, Doubt> {
        let warp = able(&mut self.warps, warp, mask)?;
        (warp.live, warp.ready) = (warp.live & !mask, warp.ready & !mask);
        if warp.touched & mask != 0 {
            self.loose = self.loose.min(warp.interval);
        }
        warp.go_on()?;
        self.last = self.last.max(warp.interval);
        self.left -= mask.count_ones().min(self.left);
        if self.left > 0 {
            return Ok(false);
        }
        if self.loose < self.last { Err(Doubt::Exit) } else { Ok(true) }
    }
}

/// A warp of which these lanes may act.
fn able(warps: &mut [Warp], warp: u8, mask: u32) -> Result<&mut Warp, Doubt> {
    let warp = warps.get_mut(usize::from(warp)).ok_or(Doubt::Damage)?;
    if mask & !warp.ready == 0 { Ok(warp) } else { Err(Doubt::Barrier) }
}

/// Blocks that run.
#[derive(Debug)]
pub(super) struct Blocks {
    index: FxHashMap<u32, u32>,
    places: Vec<Block>,
    free: Vec<u32>,
    /// Blocks and their places.
    recent: [(u32, u32); RECENT],
    ended: u64,
}

impl Default for Blocks {
    fn default() -> Self {
        let recent = [(u32::MAX, 0); RECENT];
        Self { index: FxHashMap::default(), places: Vec::new(), free: Vec::new(), recent, ended: 0 }
    }
}

impl Blocks {
    #[inline]
    pub(super) fn get(&mut self, block: u32, geometry: Geometry) -> Option<&mut Block> {
        let recent = self.recent[block as usize % RECENT];
        let place = if recent.0 == block { recent.1 } else { self.find(block, geometry) };
        self.places.get_mut(place as usize)
    }

    #[inline(never)]
    fn find(&mut self, block: u32, geometry: Geometry) -> u32 {
        let place = match self.index.get(&block) {
            Some(place) => *place,
            None => {
                let place = self.free.pop().unwrap_or_else(|| {
                    let shared = Shared::default();
                    self.places.push(Block {
                        index: 0,
                        warps: Vec::new(),
                        shared,
                        left: 0,
                        loose: 0,
                        last: 0,
                    });
                    self.places.len() as u32 - 1
                });
                if let Some(new) = self.places.get_mut(place as usize) {
                    new.begin(block, geometry);
                }
                self.index.insert(block, place);
                place
            }
        };
        self.recent[block as usize % RECENT] = (block, place);
        place
    }

    /// A block has ended; its memory is for another one.
    pub(super) fn end(&mut self, block: u32) {
        self.recent[block as usize % RECENT] = (u32::MAX, 0);
        self.free.extend(self.index.remove(&block));
        self.ended += 1;
    }

    /// How many have ended.
    pub(super) fn ended(&self) -> u64 {
        self.ended
    }
}
