//! What is known of one word: who has touched it in this launch, as far as that matters for order.

use super::Doubt;

/// What an access does to words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// A weak load.
    Read,
    /// A load by the read-only path: nothing may write there in the launch, in whatever order.
    NonCoherent,
    /// A weak store.
    Write,
    /// A relaxed atomic of wide scope, of 4 bytes.
    Atomic4,
    /// The same of 8 bytes.
    Atomic8,
}

impl Class {
    pub(super) fn writes(self) -> bool {
        !matches!(self, Self::Read | Self::NonCoherent)
    }

    pub(super) fn is_atomic(self) -> bool {
        matches!(self, Self::Atomic4 | Self::Atomic8)
    }
}

/// An access, but for the words.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now {
    pub(super) block: u32,
    /// Block barriers that the warp has passed.
    pub(super) interval: u32,
    /// Warp barriers that it has passed since.
    pub(super) sub: u16,
    pub(super) warp: u8,
    pub(super) class: Class,
    /// The memory is all blocks'.
    pub(super) global: bool,
}

/// Lanes that touch a word in one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lanes {
    One(u8),
    /// Several that read all of it.
    Several,
    /// Several, each its own bytes of it.
    Crowd,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    #[default]
    Untouched,
    /// In this interval, and since the warp's last barrier, by one lane.
    Lane,
    /// By several lanes of the warp, which only read.
    Warp,
    /// By several warps, which only read.
    Block,
    /// By several lanes of the warp, each other bytes.
    Crowd,
    /// By atomics.
    Atomic4,
    Atomic8,
    /// Several blocks have read it, and nobody wrote.
    Grid,
    /// Atomics of several blocks, and nothing else.
    GridAtomic4,
    GridAtomic8,
}

/// A word that only one block has touched, if it is not of the kinds `Grid`. Kinds are of the interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) block: u32,
    pub(super) interval: u32,
    pub(super) sub: u16,
    pub(super) warp: u8,
    pub(super) lane: u8,
    pub(super) kind: Kind,
    /// Written in the launch.
    pub(super) wrote: bool,
    /// Touched by what is no atomic in the launch, or by atomics of two sizes.
    pub(super) plain: bool,
    /// Written in the interval, and since the warp's last barrier.
    pub(super) dirty: bool,
    pub(super) fresh: bool,
}

fn atomic(class: Class) -> Kind {
    if class == Class::Atomic8 { Kind::Atomic8 } else { Kind::Atomic4 }
}

fn of_all_blocks(kind: Kind) -> Kind {
    if kind == Kind::Atomic8 { Kind::GridAtomic8 } else { Kind::GridAtomic4 }
}

impl Cell {
    /// The cell after an access; an error if it may be unordered with what was before.
    pub(super) fn step(self, now: &Now, lanes: Lanes) -> Result<Self, Doubt> {
        let class = now.class;
        match self.kind {
            Kind::Grid if class.writes() => return Err(Doubt::Blocks),
            Kind::Grid => return Ok(self),
            Kind::GridAtomic4 | Kind::GridAtomic8 => {
                let like = class.is_atomic() && of_all_blocks(atomic(class)) == self.kind;
                return if like { Ok(self) } else { Err(Doubt::Blocks) };
            }
            Kind::Untouched => return Self::default().begin(now, lanes),
            _ => {}
        }
        if self.block != now.block {
            return if now.global { self.other_block(now) } else { Self::default().begin(now, lanes) };
        }
        if class == Class::NonCoherent || now.interval > self.interval {
            return self.begin(now, lanes);
        }
        if now.interval < self.interval {
            return Err(Doubt::Late);
        }
        self.same_interval(now, lanes)
    }

    fn other_block(self, now: &Now) -> Result<Self, Doubt> {
        if !now.class.writes() && !self.wrote {
            return Ok(Self { kind: Kind::Grid, ..self });
        }
        if now.class.is_atomic() && self.kind == atomic(now.class) && !self.plain {
            return Ok(Self { kind: of_all_blocks(self.kind), ..self });
        }
        Err(Doubt::Blocks)
    }

    /// All that was before is ordered before.
    fn begin(self, now: &Now, lanes: Lanes) -> Result<Self, Doubt> {
        let writes = now.class.writes();
        // Other blocks' atomics of either size are unordered with those of the other size.
        let sizes = matches!(self.kind, Kind::Atomic4 | Kind::Atomic8) && self.kind != atomic(now.class);
        let kind = match (now.class, lanes) {
            (Class::NonCoherent, _) if self.wrote => return Err(Doubt::ReadOnly),
            (Class::NonCoherent, _) => Kind::Grid,
            (Class::Atomic4 | Class::Atomic8, _) => atomic(now.class),
            (_, Lanes::One(_)) => Kind::Lane,
            (Class::Write, Lanes::Several) => return Err(Doubt::Lanes),
            (Class::Write, Lanes::Crowd) => Kind::Crowd,
            (Class::Read, _) => Kind::Warp,
        };
        Ok(Self {
            block: now.block,
            interval: now.interval,
            sub: now.sub,
            warp: now.warp,
            lane: if let Lanes::One(lane) = lanes { lane } else { 0 },
            kind,
            wrote: self.wrote || writes,
            plain: self.plain || !now.class.is_atomic() || sizes,
            dirty: writes,
            fresh: writes,
        })
    }

    fn same_interval(self, now: &Now, lanes: Lanes) -> Result<Self, Doubt> {
        let (class, writes) = (now.class, now.class.writes());
        if class.is_atomic() || matches!(self.kind, Kind::Atomic4 | Kind::Atomic8) {
            let like = class.is_atomic() && atomic(class) == self.kind;
            return if like { Ok(self) } else { Err(Doubt::Threads) };
        }
        if now.warp != self.warp || self.kind == Kind::Block {
            let reads = !self.dirty && !writes;
            return if reads { Ok(Self { kind: Kind::Block, ..self }) } else { Err(Doubt::Threads) };
        }
        if now.sub > self.sub {
            let cell = self.begin(now, lanes)?;
            return Ok(Self { dirty: self.dirty || writes, ..cell });
        }
        if self.kind == Kind::Lane && lanes == Lanes::One(self.lane) {
            let (wrote, dirty, fresh) = (self.wrote || writes, self.dirty || writes, self.fresh || writes);
            return Ok(Self { wrote, dirty, fresh, ..self });
        }
        let reads = !self.fresh && !writes && self.kind != Kind::Crowd && now.sub == self.sub;
        if reads { Ok(Self { kind: Kind::Warp, ..self }) } else { Err(Doubt::Lanes) }
    }
}
