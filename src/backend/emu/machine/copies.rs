//! Asynchronous copies, stores and reductions on their way. What is issued is put into the queue of its warp; its bytes move
//! at some time between then and the wait that requires them. The time is drawn when it is issued, counted in steps
//! of the launch: at once, soon, or, where the issuing thread waits for groups, as late as may be. Nothing is on its way any
//! more when a block of the cluster ends.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use super::access::{halt, read, write};
use super::tensor::Boxed;
use super::{Block, Core, Halt};
use crate::abi::{LANES, Lanes, SHARED_OFFSET, lanes};
use crate::backend::emu::image::{Code, CopySource};
use crate::backend::emu::memory::Refused;
use crate::backend::emu::special::RANK_SHIFT;
use crate::isa::{GroupKind, GroupOp};

/// Elements that an asynchronous store takes from registers, at most.
pub(super) const MOST_ELEMENTS: usize = 4;

/// A warp, by block and number.
type Key = (u32, u32);

/// What is on its way in a launch.
pub(super) struct Copies {
    queues: FxHashMap<Key, Queue>,
    /// When batches land: time, number, warp.
    due: BinaryHeap<Reverse<(u64, u64, Key)>>,
    next_due: u64,
    batches: u64,
    /// Data between two memories; kept for its allocation.
    room: Vec<u8>,
}

impl Default for Copies {
    fn default() -> Self {
        Self {
            queues: FxHashMap::default(),
            due: BinaryHeap::new(),
            next_due: u64::MAX,
            batches: 0,
            room: Vec::new(),
        }
    }
}

impl Copies {
    /// When something lands next.
    #[inline]
    pub(super) fn next_due(&self) -> u64 {
        self.next_due
    }

    fn look(&mut self) {
        self.next_due = self.due.peek().map_or(u64::MAX, |Reverse((due, ..))| *due);
    }
}

/// What a warp has issued, oldest first.
struct Queue {
    cluster: usize,
    entries: Vec<Entry>,
    /// Groups that each lane has closed, of `cp.async` and of bulk copies.
    committed: [[u32; LANES]; GroupKind::COUNT],
}

struct Entry {
    /// Issued together, and landing together unless waited for.
    batch: u64,
    lane: u8,
    what: What,
}

enum What {
    Copy(Copy),
    /// An arrival at this place of the cluster, after the lane's earlier `cp.async`.
    Arrive(u64),
}

/// A copy by one lane. All that it touches has been checked.
pub(super) struct Copy {
    /// The instruction.
    pub(super) pc: u32,
    /// The lane's group that it is in, once it is in the queue.
    pub(super) group: Option<(GroupKind, u32)>,
    pub(super) from: Source,
    pub(super) to: Where,
    pub(super) bytes: u32,
    /// Bytes that are read; zeros follow.
    pub(super) read: u32,
    pub(super) mbarrier: Option<u64>,
    /// Ranks of the blocks that get the data, if there are several.
    pub(super) ranks: Option<u16>,
    /// The box of a tensor that is the other side, whatever `from` or `to` say.
    pub(super) tensor: Option<Box<Boxed>>,
}

/// A place that is the same for every block.
#[derive(Clone, Copy)]
pub(super) enum Where {
    Global(u64),
    /// In the cluster: rank and offset.
    Cluster(u64),
}

/// Where the data comes from.
pub(super) enum Source {
    Memory(Where),
    Registers([u64; MOST_ELEMENTS]),
    /// Read already.
    Staged(Box<[u8]>),
}

impl Core<'_> {
    /// Puts the copies of lanes on their way, which complete by groups of this kind or by mbarriers.
    pub(super) fn send(
        &mut self,
        block: &Block,
        warp: usize,
        kind: Option<GroupKind>,
        copies: impl Iterator<Item = (usize, Copy)>,
    ) -> Result<(), Halt> {
        let key = (block.position.linear, warp as u32);
        let (batch, due) = self.batch(kind.is_some());
        let queue = self.copies.queue(key, block.cluster);
        for (lane, mut copy) in copies {
            copy.group = kind.map(|kind| (kind, queue.committed[kind as usize][lane]));
            queue.entries.push(Entry { batch, lane: lane as u8, what: What::Copy(copy) });
        }
        self.schedule(key, batch, due)
    }

    /// `cp.async.mbarrier.arrive` at these places.
    pub(super) fn arrive_after_copies(
        &mut self,
        block: &Block,
        warp: usize,
        mask: u32,
        places: &Lanes,
    ) -> Result<(), Halt> {
        let key = (block.position.linear, warp as u32);
        let (batch, due) = self.batch(false);
        let queue = self.copies.queue(key, block.cluster);
        for lane in lanes(mask) {
            queue.entries.push(Entry { batch, lane: lane as u8, what: What::Arrive(places[lane]) });
        }
        self.schedule(key, batch, due)
    }

    /// A new batch, and when it lands: never by itself, if somebody is sure to wait for it.
    fn batch(&mut self, waited_for: bool) -> (u64, u64) {
        self.copies.batches += 1;
        let soon = match (self.rng.below(4), waited_for) {
            (0, _) => 0,
            (1, _) => 1 + self.rng.below(64),
            (_, true) => return (self.copies.batches, u64::MAX),
            (2, false) => 1 + self.rng.below(256),
            _ => 1 + self.rng.below(2048),
        };
        (self.copies.batches, self.clock + u64::from(soon))
    }

    fn schedule(&mut self, key: Key, batch: u64, due: u64) -> Result<(), Halt> {
        if due <= self.clock {
            return self.land_batch(key, batch);
        }
        if due != u64::MAX {
            self.copies.due.push(Reverse((due, batch, key)));
            self.copies.look();
        }
        Ok(())
    }

    /// Lets land what is due.
    #[cold]
    pub(super) fn copies_due(&mut self) -> Result<(), Halt> {
        self.changed = self.clock;
        while let Some(Reverse((due, batch, key))) = self.copies.due.peek().copied() {
            if due > self.clock {
                break;
            }
            self.copies.due.pop();
            self.land_batch(key, batch)?;
        }
        self.copies.look();
        Ok(())
    }

    /// Closes groups, or waits for them: what has to be complete now, lands.
    pub(super) fn copy_groups(
        &mut self,
        block: &Block,
        warp: usize,
        op: GroupOp,
        mask: u32,
    ) -> Result<(), Halt> {
        let key = (block.position.linear, warp as u32);
        let Some(queue) = self.copies.queues.get_mut(&key) else { return Ok(()) };
        let committed = queue.committed;
        let of = |entry: &Entry, kind| match &entry.what {
            What::Copy(Copy { group: Some((k, group)), .. }) if *k == kind => Some(*group),
            _ => None,
        };
        let own = |entry: &Entry| mask >> entry.lane & 1 != 0;
        match op {
            GroupOp::Commit(kind) => {
                for lane in lanes(mask) {
                    queue.committed[kind as usize][lane] += 1;
                }
                Ok(())
            }
            GroupOp::WaitAll => self.land(key, |e| own(e) && of(e, GroupKind::Copy).is_some()),
            GroupOp::Wait { kind, pending, reads } => {
                let over = |entry: &Entry| {
                    let closed = committed[kind as usize][usize::from(entry.lane) % LANES];
                    own(entry) && of(entry, kind).is_some_and(|group| group.saturating_add(pending) < closed)
                };
                if reads { self.stage(key, over) } else { self.land(key, over) }
            }
        }
    }

    /// Reads the sources of copies.
    fn stage(&mut self, key: Key, which: impl Fn(&Entry) -> bool) -> Result<(), Halt> {
        let Some(queue) = self.copies.queues.get_mut(&key) else { return Ok(()) };
        let (cluster, mut entries) = (queue.cluster, std::mem::take(&mut queue.entries));
        let mut result = Ok(());
        for entry in entries.iter_mut().filter(|entry| which(entry)) {
            if let What::Copy(copy) = &mut entry.what
                && let Source::Memory(from) = copy.from
            {
                let staged = match (&copy.tensor, from) {
                    (Some(at), Where::Cluster(from)) => {
                        let mut bytes = Vec::new();
                        self.read_shared_box(cluster, at, from, &mut bytes).map(|()| bytes)
                    }
                    _ => self.place(cluster, from, copy.read as usize, false).map(|bytes| bytes.to_vec()),
                };
                match staged {
                    Ok(bytes) => copy.from = Source::Staged(bytes.into()),
                    Err(refused) => result = result.and(Err(halt(usize::from(entry.lane), refused))),
                }
            }
        }
        self.copies.put_back(key, entries);
        result
    }

    /// Lets a batch land. Arrivals come after the earlier copies of their lanes.
    fn land_batch(&mut self, key: Key, batch: u64) -> Result<(), Halt> {
        let Some(queue) = self.copies.queues.get(&key) else { return Ok(()) };
        let arriving = queue.entries.iter().filter(|e| e.batch == batch && matches!(e.what, What::Arrive(_)));
        let arriving = arriving.fold(0u32, |lanes, entry| lanes | 1 << entry.lane);
        self.land(key, |entry| {
            let copied = matches!(&entry.what, What::Copy(Copy { group: Some((GroupKind::Copy, _)), .. }));
            let before = entry.batch < batch && copied && arriving >> entry.lane & 1 != 0;
            entry.batch == batch || before
        })
    }

    /// Lets entries of a queue land.
    fn land(&mut self, key: Key, which: impl Fn(&Entry) -> bool) -> Result<(), Halt> {
        let Some(queue) = self.copies.queues.get_mut(&key) else { return Ok(()) };
        let (cluster, mut entries) = (queue.cluster, std::mem::take(&mut queue.entries));
        let mut result = Ok(());
        entries.retain(|entry| {
            if result.is_err() || !which(entry) {
                return true;
            }
            let landed = match &entry.what {
                What::Arrive(at) => self.with_mbarrier(cluster, *at, |object| object.arrive(1, false)),
                What::Copy(copy) => self.land_one(cluster, copy),
            };
            result = landed.map_err(|refused| halt(usize::from(entry.lane), refused));
            false
        });
        self.copies.put_back(key, entries);
        result
    }

    fn land_one(&mut self, cluster: usize, copy: &Copy) -> Result<(), Refused> {
        let mut room = std::mem::take(&mut self.copies.room);
        let result = self.move_bytes(cluster, copy, &mut room);
        self.copies.room = room;
        result
    }

    fn move_bytes(&mut self, cluster: usize, copy: &Copy, room: &mut Vec<u8>) -> Result<(), Refused> {
        if let Some(at) = &copy.tensor {
            return self.move_box(cluster, copy, at, room);
        }
        let image = self.image;
        let Some(Code::Copy(op)) = image.ops.get(copy.pc as usize).map(|op| &op.code) else { return Ok(()) };
        room.clear();
        match (&copy.from, &op.from) {
            (Source::Staged(bytes), _) => room.extend_from_slice(bytes),
            (Source::Memory(from), _) => {
                room.extend_from_slice(self.place(cluster, *from, copy.read as usize, false)?);
            }
            (Source::Registers(values), CopySource::Registers(from, unit)) => {
                for value in values.iter().take(from.len()) {
                    room.extend(value.to_le_bytes().into_iter().take(*unit as usize));
                }
            }
            (Source::Registers(_), CopySource::Memory(_)) => {}
        }
        room.resize(copy.bytes as usize, 0);
        let put = |core: &mut Self, to| {
            let bytes = core.place(cluster, to, room.len(), true)?;
            match &op.reduce {
                None => bytes.copy_from_slice(room),
                Some((unit, update)) => {
                    let unit = *unit as usize;
                    for (to, from) in bytes.chunks_exact_mut(unit).zip(room.chunks_exact(unit)) {
                        let value = update(read(to), read(from), 0);
                        write(to, value);
                    }
                }
            }
            Ok(())
        };
        let (Where::Cluster(at), Some(mbarrier)) = (copy.to, copy.mbarrier) else {
            return put(self, copy.to);
        };
        for (at, mbarrier) in targets(at, mbarrier, copy.ranks) {
            put(self, Where::Cluster(at))?;
            self.complete_tx(cluster, mbarrier, i64::from(copy.bytes))?;
        }
        Ok(())
    }

    fn place(&mut self, cluster: usize, at: Where, size: usize, write: bool) -> Result<&mut [u8], Refused> {
        match at {
            Where::Global(at) => self.memory.bytes(at, size, write),
            Where::Cluster(at) => self.clusters[cluster].bytes(at, size, write),
        }
    }

    /// A block ends: everything in its cluster lands.
    pub(super) fn settle_cluster(&mut self, block: &Block) -> Result<(), Halt> {
        if self.copies.queues.is_empty() {
            return Ok(());
        }
        let clusters = self.env.clusters;
        for rank in 0..clusters.size() {
            let Some(linear) = clusters.peer(block.position.linear, rank) else { continue };
            for warp in 0..block.warps.len() as u32 {
                self.land((linear, warp), |_| true)?;
                if linear == block.position.linear {
                    self.copies.queues.remove(&(linear, warp));
                }
            }
        }
        Ok(())
    }
}

impl Copies {
    fn queue(&mut self, key: Key, cluster: usize) -> &mut Queue {
        self.queues.entry(key).or_insert_with(|| Queue {
            cluster,
            entries: Vec::new(),
            committed: [[0; LANES]; GroupKind::COUNT],
        })
    }

    fn put_back(&mut self, key: Key, entries: Vec<Entry>) {
        if let Some(queue) = self.queues.get_mut(&key) {
            queue.entries = entries;
        }
    }
}

/// The places that get the data, each with its mbarrier: the one named, or the same offsets in the blocks of the mask.
pub(super) fn targets(at: u64, mbarrier: u64, ranks: Option<u16>) -> impl Iterator<Item = (u64, u64)> {
    let one = ranks.is_none().then_some((at, mbarrier));
    let ranks = u32::from(ranks.unwrap_or(0));
    let of = |rank: usize, at: u64| (rank as u64) << RANK_SHIFT | at & SHARED_OFFSET;
    one.into_iter().chain(lanes(ranks).map(move |rank| (of(rank, at), of(rank, mbarrier))))
}
