//! Asynchronous copies, stores and reductions. What is issued is checked at once and put into the queue of its warp; its
//! bytes move at some time between then and the wait that requires them. The time is drawn when it is issued, counted in
//! steps of the launch: at once, soon, or, where the issuing thread waits for groups, as late as may be. Nothing is on its
//! way any more when a block of the cluster ends.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use super::access::{halt, read, write};
use super::place::{Place, locate, tagged, within};
use super::{Block, Core, Halt};
use crate::abi::{LANES, Lanes, SHARED_OFFSET, bulk_word, packed_value};
use crate::backend::FaultKind;
use crate::backend::emu::image::{Code, CopyCompletion, CopyLength, CopyOp, CopySource, LoggedSite, Space};
use crate::backend::emu::memory::Refused;
use crate::backend::emu::regs::lanes;
use crate::backend::emu::special::RANK_SHIFT;
use crate::backend::emu::types::low;
use crate::isa::{GroupKind, GroupOp};

/// Elements that an asynchronous store takes from registers, at most.
const MOST_ELEMENTS: usize = 4;

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
    committed: [[u32; LANES]; 2],
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

struct Copy {
    /// The instruction.
    pc: u32,
    /// The lane's group that it is in.
    group: Option<(GroupKind, u32)>,
    from: Source,
    to: Where,
    bytes: u32,
    /// Bytes that are read; zeros follow.
    read: u32,
    mbarrier: Option<u64>,
    /// Ranks of the blocks that get the data, if there are several.
    ranks: Option<u16>,
}

#[derive(Clone, Copy)]
enum Where {
    Global(u64),
    /// In the cluster: rank and offset.
    Cluster(u64),
}

enum Source {
    Memory(Where),
    Registers([u64; MOST_ELEMENTS]),
    /// Read already.
    Staged(Box<[u8]>),
}

fn index(kind: GroupKind) -> usize {
    match kind {
        GroupKind::Copy => 0,
        GroupKind::Bulk => 1,
    }
}

/// The operands of a copy, by lane.
struct Operands {
    to: Lanes,
    from: Lanes,
    values: [Lanes; MOST_ELEMENTS],
    bytes: Lanes,
    read: Lanes,
    mbarrier: Lanes,
    ranks: Lanes,
}

fn misaligned(what: &str, value: u64, align: u64) -> Refused {
    let detail = format!("asynchronous copy {what} {value:#x}, which is no multiple of {align}");
    Refused { kind: FaultKind::Misaligned, detail }
}

impl Core<'_> {
    /// Issues what the lanes of the mask ask for.
    pub(super) fn issue(
        &mut self,
        block: &mut Block,
        warp: usize,
        group: usize,
        op: &CopyOp,
        mask: u32,
        site: Option<LoggedSite>,
    ) -> Result<(), Halt> {
        let operands = self.copy_operands(block, warp, group, op);
        if let Some(site) = site {
            self.record_copy(block, warp, op, &operands, mask, site);
        }
        let grouped = match op.completion {
            CopyCompletion::Group => Some(GroupKind::Copy),
            CopyCompletion::BulkGroup => Some(GroupKind::Bulk),
            CopyCompletion::Mbarrier(_) => None,
        };
        let key = (block.position.linear, warp as u32);
        let pc = block.warps[warp].groups[group].pc;
        let (batch, due) = self.batch(grouped.is_some());
        for lane in lanes(mask) {
            let mut copy = self.copy(block, op, &operands, lane).map_err(|r| halt(lane, r))?;
            copy.pc = pc;
            let queue = self.copies.queue(key, block.cluster);
            copy.group = grouped.map(|kind| (kind, queue.committed[index(kind)][lane]));
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

    fn copy_operands(&mut self, block: &mut Block, warp: usize, group: usize, op: &CopyOp) -> Operands {
        let at = &block.warps[warp];
        let here = at.groups[group];
        let to = Self::addresses(at, here, &op.to);
        let from = match &op.from {
            CopySource::Memory(from) => Self::addresses(at, here, from),
            CopySource::Registers(..) => [0; LANES],
        };
        let mbarrier = match &op.completion {
            CopyCompletion::Mbarrier(mbarrier) => Self::addresses(at, here, mbarrier),
            _ => [0; LANES],
        };
        let mut values = [[0; LANES]; MOST_ELEMENTS];
        if let CopySource::Registers(from, _) = &op.from {
            for (row, src) in values.iter_mut().zip(from) {
                *row = self.value(block, warp, group, *src);
            }
        }
        let (bytes, read) = match op.bytes {
            CopyLength::Static(bytes) => ([u64::from(bytes); LANES], [u64::from(bytes); LANES]),
            CopyLength::AtMost(most, operand) => {
                let most = u64::from(most);
                let read = self.value(block, warp, group, operand).map(|bytes| bytes.min(most));
                ([most; LANES], read)
            }
            CopyLength::Unless(most, pred) => {
                let ignored = self.with_regs(block, warp, group, |regs| regs.pred(pred));
                let most = u64::from(most);
                let read = |lane: usize| if ignored >> lane & 1 != 0 { 0 } else { most };
                ([most; LANES], std::array::from_fn(read))
            }
            CopyLength::Operand(operand) => {
                let bytes = self.value(block, warp, group, operand);
                (bytes, bytes)
            }
        };
        let ranks = op.multicast.map_or([0; LANES], |ranks| self.value(block, warp, group, ranks));
        Operands { to, from, values, bytes, read, mbarrier, ranks: ranks.map(|ranks| low(ranks, 16)) }
    }

    fn record_copy(
        &mut self,
        block: &Block,
        warp: usize,
        op: &CopyOp,
        operands: &Operands,
        mask: u32,
        site: LoggedSite,
    ) {
        let recorder = &mut self.recorder;
        let position = &block.position;
        let mut logged = tagged(op.to.space, mask, &operands.to, position, &mut recorder.a);
        let source = match (&op.from, &op.completion) {
            (CopySource::Memory(from), _) => (from.space, &operands.from),
            (_, CopyCompletion::Mbarrier(mbarrier)) => (mbarrier.space, &operands.mbarrier),
            _ => (Space::Global, &operands.from),
        };
        logged &= tagged(source.0, mask, source.1, position, &mut recorder.read);
        recorder.written = match &op.from {
            CopySource::Registers(from, unit) => std::array::from_fn(|lane| {
                let elements = operands.values.map(|row| row[lane]);
                packed_value(elements.get(..from.len()).unwrap_or_default(), *unit)
            }),
            CopySource::Memory(_) if op.bulk => std::array::from_fn(|lane| {
                bulk_word(operands.bytes[lane] as u32, operands.mbarrier[lane], operands.ranks[lane] as u16)
            }),
            CopySource::Memory(_) => operands.read,
        };
        recorder.write(site, logged, block.who(warp), (0, 0));
    }

    /// The copy of a lane, with everything checked that it will touch.
    fn copy(
        &mut self,
        block: &Block,
        op: &CopyOp,
        operands: &Operands,
        lane: usize,
    ) -> Result<Copy, Refused> {
        let align = u64::from(op.align);
        let (bytes, to, from) = (operands.bytes[lane], operands.to[lane], operands.from[lane]);
        if op.bulk && !bytes.is_multiple_of(align) {
            return Err(misaligned("of size", bytes, align));
        }
        if !to.is_multiple_of(align) {
            return Err(misaligned("to", to, align));
        }
        let size = usize::try_from(bytes).unwrap_or(usize::MAX);
        let destination = self.reach(block, op.to.space, to, size, true)?;
        let mbarrier = match &op.completion {
            CopyCompletion::Mbarrier(address) => {
                Some(self.mbarrier_place(block, address.space, operands.mbarrier[lane])?)
            }
            _ => None,
        };
        let ranks = op.multicast.map(|_| operands.ranks[lane] as u16);
        if let (Some(mbarrier), Where::Cluster(at)) = (mbarrier, destination) {
            if mbarrier >> RANK_SHIFT != at >> RANK_SHIFT && ranks.is_none() {
                let detail =
                    "an asynchronous copy whose mbarrier is not in the block that gets the data".into();
                return Err(Refused { kind: FaultKind::Device, detail });
            }
            for (at, mbarrier) in targets(at, mbarrier, ranks) {
                self.clusters[block.cluster].bytes(at, size, true)?;
                self.with_mbarrier(block.cluster, mbarrier, |_| Ok(()))?;
            }
        }
        let source = match &op.from {
            CopySource::Registers(..) => Source::Registers(operands.values.map(|row| row[lane])),
            // Nothing is read: the address need not be one.
            CopySource::Memory(_) if operands.read[lane] == 0 => Source::Registers([0; MOST_ELEMENTS]),
            CopySource::Memory(address) => {
                if !from.is_multiple_of(align) {
                    return Err(misaligned("from", from, align));
                }
                let size = usize::try_from(operands.read[lane]).unwrap_or(usize::MAX);
                Source::Memory(self.reach(block, address.space, from, size, false)?)
            }
        };
        Ok(Copy {
            pc: 0,
            group: None,
            from: source,
            to: destination,
            bytes: bytes as u32,
            read: operands.read[lane] as u32,
            mbarrier,
            ranks,
        })
    }

    /// Where an address leads, if all the bytes may be accessed.
    fn reach(
        &mut self,
        block: &Block,
        space: Space,
        address: u64,
        size: usize,
        write: bool,
    ) -> Result<Where, Refused> {
        let position = &block.position;
        match locate(space, address, position) {
            (Place::Global, at) => {
                self.memory.bytes(at, size, write)?;
                Ok(Where::Global(at))
            }
            (Place::Shared, at) => {
                let shared = self.clusters[block.cluster].of(position.rank);
                let end = shared.len() as u64;
                within(shared, end, "the block's shared memory", at, size, write)?;
                Ok(Where::Cluster(position.shared_base() | at))
            }
            (Place::Peer, at) => {
                self.clusters[block.cluster].bytes(at, size, write)?;
                Ok(Where::Cluster(at))
            }
            (Place::Local | Place::Param, _) => {
                let detail = format!("asynchronous copy at {address:#x}, which is private to the thread");
                Err(Refused { kind: FaultKind::Device, detail })
            }
        }
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
                    queue.committed[index(kind)][lane] += 1;
                }
                Ok(())
            }
            GroupOp::WaitAll => self.land(key, |e| own(e) && of(e, GroupKind::Copy).is_some()),
            GroupOp::Wait { kind, pending, reads } => {
                let over = |entry: &Entry| {
                    let closed = committed[index(kind)][usize::from(entry.lane) % LANES];
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
                match self.place(cluster, from, copy.read as usize, false) {
                    Ok(bytes) => copy.from = Source::Staged(bytes.to_vec().into()),
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
            committed: [[0; LANES]; 2],
        })
    }

    fn put_back(&mut self, key: Key, entries: Vec<Entry>) {
        if let Some(queue) = self.queues.get_mut(&key) {
            queue.entries = entries;
        }
    }
}

/// The places that get the data, each with its mbarrier: the one named, or the same offsets in the blocks of the mask.
fn targets(at: u64, mbarrier: u64, ranks: Option<u16>) -> impl Iterator<Item = (u64, u64)> {
    let one = ranks.is_none().then_some((at, mbarrier));
    let ranks = u32::from(ranks.unwrap_or(0));
    let of = |rank: usize, at: u64| (rank as u64) << RANK_SHIFT | at & SHARED_OFFSET;
    one.into_iter().chain(lanes(ranks).map(move |rank| (of(rank, at), of(rank, mbarrier))))
}
