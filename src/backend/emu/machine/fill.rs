//! Writes of a range: `st.bulk` fills it with zeros; `discard` leaves it as it is, which is one of the values that it may
//! have then.

use super::access::halt;
use super::place::{View, locate, tagged};
use super::warp::Warp;
use super::{Block, Core, Halt};
use crate::abi::lanes;
use crate::backend::FaultKind;
use crate::backend::emu::image::{FillOp, LoggedSite};
use crate::backend::emu::memory::Refused;

/// What `discard` covers.
const LINE: u64 = 128;
/// What `st.bulk` writes at least.
const WORD: u64 = 8;

impl Core<'_> {
    /// A write of a range by the lanes of the mask.
    pub(super) fn fill(
        &mut self,
        block: &mut Block,
        warp: usize,
        group: usize,
        op: &FillOp,
        mask: u32,
        site: Option<LoggedSite>,
    ) -> Result<(), Halt> {
        let who = block.who(warp);
        let here = block.warps[warp].groups[group];
        let addresses = Self::addresses(&block.warps[warp], here, &op.address);
        let bytes = op.bytes.map(|bytes| self.value(block, warp, group, bytes));
        if let Some(site) = site {
            let logged = tagged(op.address.space, mask, &addresses, &block.position, &mut self.recorder.a);
            if let Some(bytes) = bytes {
                self.recorder.written = bytes;
            }
            self.recorder.write(site, logged, who, (0, 0));
        }
        let align = if bytes.is_some() { WORD } else { LINE };
        let Block { position, cluster, warps, .. } = block;
        let Self { memory, clusters, params, .. } = self;
        let Warp { local, local_top, .. } = &mut warps[warp];
        let cluster = &mut clusters[*cluster];
        let mut view = View { memory, cluster, rank: position.rank, local, local_top, params };
        for lane in lanes(mask) {
            let (address, size) = (addresses[lane], bytes.map_or(LINE, |bytes| bytes[lane]));
            if !address.is_multiple_of(align) || !size.is_multiple_of(align) {
                let detail =
                    format!("write of {size} bytes at {address:#x}, where both are multiples of {align}");
                return Err(halt(lane, Refused { kind: FaultKind::Misaligned, detail }));
            }
            let place = locate(op.address.space, address, position);
            let size = usize::try_from(size).unwrap_or(usize::MAX);
            let range = view.bytes(place, lane, size, true).map_err(|r| halt(lane, r))?;
            if bytes.is_some() {
                range.fill(0);
            }
        }
        Ok(())
    }
}
