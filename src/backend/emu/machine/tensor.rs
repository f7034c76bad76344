//! Copies and reductions of boxes of tensors: what is checked and recorded when they are issued, and how their bytes move.
//!
//! The tensor map is read when the copy is issued. *Absent*: the tensor-map proxy: whoever changes a map is seen at once.

use super::access::{halt, read, write};
use super::copies::{Copy, Source, Where, targets};
use super::issue::misaligned;
use super::mbarrier::Tried;
use super::place::{View, locate, tagged};
use super::{Block, Core, Halt};
use crate::abi::{LANES, Lanes, SHARED_OFFSET, bulk_word, coordinate_words, lanes};
use crate::backend::FaultKind;
use crate::backend::emu::image::{Code, CopyCompletion, LoggedSite, Space, TensorOp};
use crate::backend::emu::memory::Refused;
use crate::backend::emu::types::low;
use crate::instrument::{COORDINATES, SiteId};
use crate::tensor::{self, CHUNK, Coordinates, DataType, OUT_OF_BOUNDS, TensorMap};

/// A box on its way.
pub(super) struct Boxed {
    map: TensorMap,
    at: Coordinates,
    loads: bool,
}

/// The operands of a copy, by lane.
struct Operands {
    map: Lanes,
    shared: Lanes,
    at: [Coordinates; LANES],
    mbarrier: Lanes,
    ranks: Lanes,
}

fn device(detail: String) -> Refused {
    Refused { kind: FaultKind::Device, detail }
}

impl Core<'_> {
    /// Issues what the lanes of the mask ask for.
    pub(super) fn issue_box(
        &mut self,
        block: &mut Block,
        warp: usize,
        group: usize,
        op: &TensorOp,
        mask: u32,
        site: Option<LoggedSite>,
    ) -> Result<Tried, Halt> {
        let operands = self.box_operands(block, warp, group, op);
        let pc = block.warps[warp].groups[group].pc;
        let mut maps = [const { None }; LANES];
        for lane in lanes(mask) {
            maps[lane] = Some(self.tensor_map(block, op, operands.map[lane]).map_err(|r| halt(lane, r))?);
        }
        // The record tells of the copy as it is issued for the first time.
        let again = block.warps[warp].tried(pc, mask).is_some();
        if let Some(site) = site.filter(|_| !again) {
            let digest = |lane: usize| maps[lane].as_ref().map_or(0, tensor::digest);
            self.record_box(block, warp, op, &operands, mask, (site, std::array::from_fn(digest)));
        }
        if let CopyCompletion::Mbarrier(mbarrier) = &op.completion
            && op.multicast.is_none()
            && self.leaves_to_others(block, warp, (pc, mask, 0), (mbarrier.space, &operands.mbarrier))
        {
            return Ok(Tried::Again);
        }
        block.warps[warp].tries = 0;
        let mut copies: [Option<Copy>; LANES] = [const { None }; LANES];
        for lane in lanes(mask) {
            let Some(bytes) = &maps[lane] else { continue };
            let Some(map) = TensorMap::decode(bytes) else {
                let what = format!(
                    "the tensor map at {:#x} is none that was encoded by `cuTensorMapEncodeTiled`, or of a kind that is \
                     not covered",
                    operands.map[lane]
                );
                return Err(Halt::Unsupported { what });
            };
            let copy = self.copy_of_box(block, op, &operands, map, (lane, pc));
            copies[lane] = Some(copy.map_err(|refused| halt(lane, refused))?);
        }
        let copies = (0..LANES).zip(copies).filter_map(|(lane, copy)| Some((lane, copy?)));
        self.send(block, warp, op.completion.group(), copies)?;
        Ok(Tried::Done)
    }

    fn box_operands(&mut self, block: &mut Block, warp: usize, group: usize, op: &TensorOp) -> Operands {
        let at = &block.warps[warp];
        let here = at.groups[group];
        let (map, shared) = (Self::addresses(at, here, &op.map), Self::addresses(at, here, &op.shared));
        let mbarrier = match &op.completion {
            CopyCompletion::Mbarrier(mbarrier) => Self::addresses(at, here, mbarrier),
            _ => [0; LANES],
        };
        let mut coordinates = [Coordinates::default(); LANES];
        for (dimension, src) in op.at.iter().enumerate() {
            let values = self.value(block, warp, group, *src);
            for (at, value) in coordinates.iter_mut().zip(values) {
                at[dimension] = value as i32;
            }
        }
        let ranks = op.multicast.map_or([0; LANES], |ranks| self.value(block, warp, group, ranks));
        Operands { map, shared, at: coordinates, mbarrier, ranks: ranks.map(|ranks| low(ranks, 16)) }
    }

    /// The bytes of a tensor map.
    fn tensor_map(
        &mut self,
        block: &Block,
        op: &TensorOp,
        address: u64,
    ) -> Result<[u8; tensor::BYTES], Refused> {
        if !address.is_multiple_of(tensor::ALIGN) {
            return Err(misaligned("by the tensor map at", address, tensor::ALIGN));
        }
        let position = &block.position;
        let at = locate(op.map.space, address, position);
        let Self { memory, params, clusters, .. } = self;
        let cluster = &mut clusters[block.cluster];
        let mut view = View { params, ..View::shared_only(memory, cluster, position.rank) };
        let bytes = view.bytes(at, 0, tensor::BYTES, false)?;
        Ok(bytes.first_chunk().copied().unwrap_or([0; tensor::BYTES]))
    }

    fn record_box(
        &mut self,
        block: &Block,
        warp: usize,
        op: &TensorOp,
        operands: &Operands,
        mask: u32,
        (site, digests): (LoggedSite, Lanes),
    ) {
        let recorder = &mut self.recorder;
        for lane in lanes(mask) {
            let [a, read, written] = coordinate_words(operands.at[lane]);
            (recorder.a[lane], recorder.read[lane], recorder.written[lane]) = (a, read, written);
        }
        let who = block.who(warp);
        let coordinates = LoggedSite { id: SiteId(site.id.0 + 1), payload: COORDINATES };
        recorder.write(coordinates, mask, who, (0, 0));
        let logged = tagged(op.shared.space, mask, &operands.shared, &block.position, &mut recorder.a);
        recorder.read = digests;
        recorder.written =
            std::array::from_fn(|lane| bulk_word(0, operands.mbarrier[lane], operands.ranks[lane] as u16));
        recorder.write(site, logged, who, (0, 0));
    }

    /// The copy of a lane, with everything checked that it will touch.
    fn copy_of_box(
        &mut self,
        block: &Block,
        op: &TensorOp,
        operands: &Operands,
        map: TensorMap,
        (lane, pc): (usize, u32),
    ) -> Result<Copy, Refused> {
        let (shared, at) = (operands.shared[lane], operands.at[lane]);
        if usize::from(map.rank) != op.at.len() {
            let (rank, given) = (map.rank, op.at.len());
            return Err(device(format!("{given} coordinates for a tensor of {rank} dimensions")));
        }
        if !shared.is_multiple_of(tensor::SHARED_ALIGN) {
            return Err(misaligned(if op.loads { "to" } else { "from" }, shared, tensor::SHARED_ALIGN));
        }
        let begin = i64::from(at[0]) * i64::from(map.ty.bytes());
        if begin % 16 != 0 {
            // An H200 takes it for an illegal instruction, and so it does with what follows.
            return Err(device(format!(
                "a box that begins {begin} bytes into its rows, which is no multiple of 16"
            )));
        }
        if !op.loads && at.iter().any(|at| *at < 0) {
            return Err(device("a box to store that begins at a negative coordinate".into()));
        }
        if let Some(reduce) = &op.reduce
            && update(reduce, map.ty).is_none()
        {
            return Err(device(format!("no such reduction of elements of {}", name(map.ty))));
        }
        for (address, bytes) in map.ranges(at) {
            let size = usize::try_from(bytes).unwrap_or(usize::MAX);
            self.reach(block, Space::Global, address, size, !op.loads)?;
        }
        let size = usize::try_from(map.shared_bytes()).unwrap_or(usize::MAX);
        let place = self.reach(block, op.shared.space, shared, size, op.loads)?;
        let mbarrier = match &op.completion {
            CopyCompletion::Mbarrier(address) => {
                Some(self.mbarrier_place(block, address.space, operands.mbarrier[lane])?)
            }
            _ => None,
        };
        let ranks = op.multicast.map(|_| operands.ranks[lane] as u16);
        if let (Some(mbarrier), Where::Cluster(at)) = (mbarrier, place) {
            self.check_targets(block.cluster, (at, mbarrier), ranks, size)?;
        }
        let Where::Cluster(_) = place else {
            return Err(device(format!("a box in shared memory at {shared:#x}, which is not there")));
        };
        let bytes = map.box_bytes() as u32;
        // The tensor's side stands in the box.
        let tensor = Some(Box::new(Boxed { map, at, loads: op.loads }));
        Ok(Copy {
            pc,
            group: None,
            from: Source::Memory(if op.loads { Where::Global(0) } else { place }),
            to: if op.loads { place } else { Where::Global(0) },
            bytes,
            read: bytes,
            mbarrier,
            ranks,
            tensor,
        })
    }

    /// Moves a box.
    pub(super) fn move_box(
        &mut self,
        cluster: usize,
        copy: &Copy,
        at: &Boxed,
        room: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        room.clear();
        if at.loads {
            self.read_tensor(at, room)?;
            let (Where::Cluster(to), Some(mbarrier)) = (copy.to, copy.mbarrier) else { return Ok(()) };
            for (to, mbarrier) in targets(to, mbarrier, copy.ranks) {
                self.write_shared_box(cluster, at, to, room)?;
                self.complete_tx(cluster, mbarrier, i64::from(copy.bytes))?;
            }
            return Ok(());
        }
        match (&copy.from, copy.shared_source()) {
            (Source::Staged(bytes), _) => room.extend_from_slice(bytes),
            (_, Some(from)) => self.read_shared_box(cluster, at, from, room)?,
            _ => return Ok(()),
        }
        self.write_tensor(copy, at, room)
    }

    /// The bytes of a box as the tensor has them, with what lies outside filled.
    fn read_tensor(&mut self, at: &Boxed, room: &mut Vec<u8>) -> Result<(), Refused> {
        let map = &at.map;
        room.resize(map.box_bytes() as usize, 0);
        if map.nan {
            room.chunks_exact_mut(2).for_each(|half| half.copy_from_slice(&OUT_OF_BOUNDS.to_le_bytes()));
        }
        for row in map.rows(at.at).filter(|row| row.bytes > 0) {
            let start = (row.offset + row.before) as usize;
            let from = self.memory.bytes(row.address, row.bytes as usize, false)?;
            let to = room.get_mut(start..start + from.len()).unwrap_or_default();
            to.copy_from_slice(from);
            if matches!(map.ty, DataType::Tf32 | DataType::Tf32Ftz) {
                to.chunks_exact_mut(4).for_each(|word| write(word, rounded(read(word))));
            }
        }
        Ok(())
    }

    /// Puts a box into the tensor, but for what lies outside.
    fn write_tensor(&mut self, copy: &Copy, at: &Boxed, room: &[u8]) -> Result<(), Refused> {
        let image = self.image;
        let Some(Code::Tensor(op)) = image.ops.get(copy.pc as usize).map(|op| &op.code) else {
            return Ok(());
        };
        let reduce = op.reduce.as_ref().and_then(|reduce| update(reduce, at.map.ty));
        let element = at.map.ty.bytes() as usize;
        for row in at.map.rows(at.at).filter(|row| row.bytes > 0) {
            let to = self.memory.bytes(row.address, row.bytes as usize, true)?;
            let start = (row.offset + row.before) as usize;
            let from = room.get(start..start + to.len()).unwrap_or_default();
            match reduce {
                None => to.copy_from_slice(from),
                Some(update) => {
                    for (to, from) in to.chunks_exact_mut(element).zip(from.chunks_exact(element)) {
                        write(to, update(read(to), read(from), 0));
                    }
                }
            }
        }
        Ok(())
    }

    /// The bytes of a box in shared memory, in their order.
    pub(super) fn read_shared_box(
        &mut self,
        cluster: usize,
        at: &Boxed,
        from: u64,
        room: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        room.resize(at.map.box_bytes() as usize, 0);
        for (offset, to) in (0..).step_by(CHUNK as usize).zip(room.chunks_mut(CHUNK as usize)) {
            let from = place(&at.map, from, offset);
            to.copy_from_slice(self.clusters[cluster].bytes(from, to.len(), false)?);
        }
        Ok(())
    }

    fn write_shared_box(&mut self, cluster: usize, at: &Boxed, to: u64, room: &[u8]) -> Result<(), Refused> {
        for (offset, from) in (0..).step_by(CHUNK as usize).zip(room.chunks(CHUNK as usize)) {
            let to = place(&at.map, to, offset);
            self.clusters[cluster].bytes(to, from.len(), true)?.copy_from_slice(from);
        }
        Ok(())
    }
}

impl Copy {
    fn shared_source(&self) -> Option<u64> {
        match self.from {
            Source::Memory(Where::Cluster(at)) => Some(at),
            _ => None,
        }
    }
}

/// A number as TF32: to the nearest one, and away from zero where two are as near.
fn rounded(bits: u64) -> u64 {
    const INFINITE: u64 = 0x7f80_0000;
    if bits & 0x7fff_ffff > INFINITE { 0x7fff_e000 } else { bits.wrapping_add(0x1000) & 0xffff_e000 }
}

/// Where the chunk at this offset of a box lies, by the address in the block's shared memory.
fn place(map: &TensorMap, at: u64, offset: u64) -> u64 {
    at & !SHARED_OFFSET | map.shared_place(at & SHARED_OFFSET, offset)
}

fn name(ty: DataType) -> &'static str {
    DataType::ALL.iter().find(|(_, other)| *other == ty).map_or("", |(name, _)| *name)
}

fn update(
    reduce: &[Option<crate::backend::emu::image::Update>],
    ty: DataType,
) -> Option<&crate::backend::emu::image::Update> {
    let at = DataType::ALL.iter().position(|(_, other)| *other == ty)?;
    reduce.get(at)?.as_ref()
}
