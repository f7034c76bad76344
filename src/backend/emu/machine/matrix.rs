//! Matrix instructions: all live lanes of a warp meet at one, and it is executed once for them. Elements go between
//! memory and the registers of the lanes that hold them.

use super::access::{halt, operand, read, write};
use super::place::{Place, View, locate, misaligned, tagged};
use super::warp::{Group, State, Warp};
use super::{Block, Core, Halt};
use crate::abi::{Lanes, lanes};
use crate::backend::emu::image::{Line, LoggedSite, MatrixOp, TileOp, Values, WarpgroupOp};
use crate::backend::emu::regs::{Dst, Src};
use crate::backend::emu::types::low;
use crate::isa::warpgroup::{LINE, LINES, PIECE, WARPS, pieces};
use std::ops::Range;

/// Bytes of a row of a small matrix.
const ROW: usize = 16;
/// Rows of a small matrix.
const ROWS: usize = 8;

impl Core<'_> {
    /// A group comes to a matrix instruction.
    pub(super) fn matrix(
        &mut self,
        block: &mut Block,
        warp: usize,
        group: usize,
        op: &MatrixOp,
        site: Option<LoggedSite>,
    ) -> Result<(), Halt> {
        if let Some(site) = site {
            self.record_matrix(block, warp, group, op, site);
        }
        let at = &mut block.warps[warp];
        let here = &mut at.groups[group];
        if here.mask == at.live {
            return self.together(block, warp, group, op);
        }
        here.state = State::Converge { mask: u32::MAX, class: here.pc };
        self.converged(block, warp)
    }

    fn record_matrix(
        &mut self,
        block: &mut Block,
        warp: usize,
        group: usize,
        op: &MatrixOp,
        site: LoggedSite,
    ) {
        let here = block.warps[warp].groups[group];
        let (address, mask) = match op {
            MatrixOp::Registers(_) => return,
            MatrixOp::Warpgroup(op) => {
                self.recorder.a = self.value(block, warp, group, op.b);
                self.recorder.read = op.a.map_or([0; 32], |a| self.value(block, warp, group, a));
                self.recorder.write(site, here.mask, block.who(warp), (0, 0));
                return;
            }
            MatrixOp::Rows { address, values, .. } => {
                let rows = ROWS * values.len();
                (address, here.mask & if rows < 32 { (1 << rows) - 1 } else { u32::MAX })
            }
            MatrixOp::Tile(tile) => {
                self.recorder.read = self.strides(block, warp, group, tile);
                (&tile.address, here.mask)
            }
        };
        let addresses = Self::addresses(&block.warps[warp], here, address);
        let logged = tagged(address.space, mask, &addresses, &block.position, &mut self.recorder.a);
        self.recorder.write(site, logged, block.who(warp), (0, 0));
    }

    /// Executes the instruction for this group and all that wait at it.
    pub(super) fn together(
        &mut self,
        block: &mut Block,
        warp: usize,
        group: usize,
        op: &MatrixOp,
    ) -> Result<(), Halt> {
        let at = &mut block.warps[warp];
        let mut here = at.groups[group];
        let same = |other: &Group| (other.pc, other.base, other.state) == (here.pc, here.base, here.state);
        let mask = at.groups.iter().filter(|other| same(other)).fold(0, |mask, other| mask | other.mask);
        at.groups.retain(|other| !same(other));
        (here.mask, here.state) = (mask, State::Ready);
        at.groups.push(here);
        let group = at.groups.len() - 1;
        match op {
            MatrixOp::Registers(compute) => self.with_regs(block, warp, group, |regs| compute(regs, mask)),
            MatrixOp::Rows { address, values, transposed } => {
                let addresses = Self::addresses(&block.warps[warp], here, address);
                for (matrix, lane) in (0..values.len() * ROWS).map(|row| (row / ROWS, row % 32)) {
                    if mask >> lane & 1 == 0 {
                        continue;
                    }
                    let row = lane % ROWS;
                    let place = locate(address.space, addresses[lane], &block.position);
                    if place.1 & (ROW as u64 - 1) != 0 {
                        let store = matches!(values, Values::Store(_));
                        return Err(halt(lane, misaligned(store, ROW, addresses[lane])));
                    }
                    self.row(block, warp, here, (values, matrix), (place, lane), (row, *transposed))?;
                }
            }
            MatrixOp::Tile(tile) => self.tile(block, warp, group, tile)?,
            MatrixOp::Warpgroup(op) => self.warpgroup(block, warp, group, op)?,
        }
        let at = &mut block.warps[warp];
        let steps = at.steps;
        let here = &mut at.groups[group];
        here.ran = steps;
        here.pc += 1;
        at.merge();
        Ok(())
    }

    /// A warp's part of a product of its warpgroup.
    fn warpgroup(
        &mut self,
        block: &mut Block,
        warp: usize,
        group: usize,
        op: &WarpgroupOp,
    ) -> Result<(), Halt> {
        let mask = block.warps[warp].groups[group].mask;
        let own = (warp % usize::from(WARPS)) as u64 * LINES;
        let a = match op.a {
            Some(a) => self.lines(block, warp, group, a, (own..own + LINES, op.transposed.0))?,
            None => Vec::new(),
        };
        let b = self.lines(block, warp, group, op.b, (0..op.columns.into(), op.transposed.1))?;
        self.with_regs(block, warp, group, |regs| (op.multiply)(regs, mask, &a, &b));
        Ok(())
    }

    /// Lines of the matrix of a descriptor.
    fn lines(
        &mut self,
        block: &mut Block,
        warp: usize,
        group: usize,
        descriptor: Src,
        (lines, transposed): (Range<u64>, bool),
    ) -> Result<Vec<Line>, Halt> {
        let lane = (block.warps[warp].groups[group].mask.trailing_zeros() & 31) as usize;
        let descriptor = self.value(block, warp, group, descriptor)[lane];
        let Block { position, cluster, warps, .. } = block;
        let Warp { local, local_top, .. } = &mut warps[warp];
        let Self { memory, clusters, params, .. } = self;
        let cluster = &mut clusters[*cluster];
        let mut view = View { memory, cluster, rank: position.rank, local, local_top, params };
        let first = lines.start;
        let mut out = vec![[0; LINE]; (lines.end - first) as usize];
        for piece in pieces(descriptor, lines, transposed) {
            let place = (Place::Shared, piece.address);
            let bytes = view.bytes(place, lane, PIECE, false).map_err(|r| halt(lane, r))?;
            let at = (piece.line - first) as usize;
            if transposed {
                for (line, element) in out[at..].iter_mut().zip(bytes.chunks(2)) {
                    line[piece.at..piece.at + 2].copy_from_slice(element);
                }
            } else {
                out[at][piece.at..piece.at + PIECE].copy_from_slice(bytes);
            }
        }
        Ok(out)
    }

    /// Moves one row of a small matrix.
    fn row(
        &mut self,
        block: &mut Block,
        warp: usize,
        here: Group,
        (values, matrix): (&Values, usize),
        (place, lane): ((super::place::Place, u64), usize),
        (row, transposed): (usize, bool),
    ) -> Result<(), Halt> {
        let Block { position, cluster, warps, .. } = block;
        let at = &mut warps[warp];
        let source = match values {
            Values::Store(from) => from.get(matrix).map(|src| operand(at, here, *src)),
            Values::Load(_) => None,
        };
        let Warp { local, local_top, file, .. } = at;
        let Self { memory, clusters, params, .. } = self;
        let cluster = &mut clusters[*cluster];
        let mut view = View { memory, cluster, rank: position.rank, local, local_top, params };
        let bytes = view.bytes(place, lane, ROW, source.is_some()).map_err(|r| halt(lane, r))?;
        for (column, element) in bytes.as_chunks_mut::<2>().0.iter_mut().enumerate() {
            // The lane that holds the element, and in which half of its register.
            let (line, at) = if transposed { (column, row) } else { (row, column) };
            let (holder, shift) = ((line * 4 + at / 2) & 31, at % 2 * 16);
            match (&source, values) {
                (Some(source), _) => *element = ((source[holder] >> shift) as u16).to_le_bytes(),
                (None, Values::Load(to)) => {
                    let Some(Dst(Some(slot))) = to.get(matrix) else { continue };
                    let word = &mut file[(here.base + slot) as usize][holder];
                    let value = u64::from(u16::from_le_bytes(*element));
                    *word = low(*word, 32) & !(0xffff << shift) | value << shift;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// From line to line of a tile, in elements.
    fn strides(&mut self, block: &mut Block, warp: usize, group: usize, tile: &TileOp) -> Lanes {
        let dense = Src::Const((tile.length * tile.together).into());
        self.value(block, warp, group, tile.stride.unwrap_or(dense)).map(|stride| low(stride, 32))
    }

    /// Moves the elements of a tile: element `i` of a lane is number `32 * i + lane` of the matrix, by rows. Where lanes
    /// have room for more than there is, elements are in several.
    fn tile(&mut self, block: &mut Block, warp: usize, group: usize, tile: &TileOp) -> Result<(), Halt> {
        let here = block.warps[warp].groups[group];
        let strides = self.strides(block, warp, group, tile).map(|stride| stride / u64::from(tile.together));
        let Block { position, cluster, warps, .. } = block;
        let at = &mut warps[warp];
        let addresses = Self::addresses(at, here, &tile.address);
        let size = tile.bytes as usize;
        let bits = tile.bytes * 8;
        let total = tile.lines * tile.length;
        let columns = if tile.columns { tile.lines } else { tile.length };
        let Self { memory, clusters, params, .. } = self;
        for register in 0..tile.values.len() {
            let source = match &tile.values {
                Values::Store(from) => from.get(register).map(|src| operand(at, here, *src)),
                Values::Load(_) => None,
            };
            let Warp { local, local_top, file, .. } = &mut *at;
            let cluster = &mut clusters[*cluster];
            let mut view = View { memory, cluster, rank: position.rank, local, local_top, params };
            for lane in lanes(here.mask) {
                let mut word = 0;
                for part in 0..tile.packed {
                    let number = (register as u32 * tile.packed + part) * 32 + lane as u32;
                    if source.is_some() && number >= total {
                        continue;
                    }
                    let number = number % total;
                    let (row, column) = (number / columns, number % columns);
                    let (line, at) = if tile.columns { (column, row) } else { (row, column) };
                    let offset = u64::from(line) * strides[lane] + u64::from(at);
                    let address = addresses[lane].wrapping_add(offset * u64::from(tile.bytes));
                    let place = locate(tile.address.space, address, position);
                    if place.1 & (size as u64 - 1) != 0 {
                        return Err(halt(lane, misaligned(source.is_some(), size, address)));
                    }
                    let element =
                        view.bytes(place, lane, size, source.is_some()).map_err(|r| halt(lane, r))?;
                    match &source {
                        Some(source) => write(element, low(source[lane] >> (part * bits), bits)),
                        None => word |= read(element) << (part * bits),
                    }
                }
                if let Values::Load(to) = &tile.values
                    && let Some(Dst(Some(slot))) = to.get(register)
                {
                    file[(here.base + slot) as usize][lane] = word;
                }
            }
        }
        Ok(())
    }
}
