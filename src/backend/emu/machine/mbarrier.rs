//! mbarriers: lanes operate one after the other. A wait asks once; where the answer is no, another warp goes first. So it
//! does where there is no mbarrier yet: nothing may order its initialisation before the operation, which then is a race
//! that records tell of, and not only a fault.

use super::access::halt;
use super::place::{Place, locate, misaligned, tagged, within};
use super::{Block, Core, Halt};
use crate::abi::{LANES, Lanes, lanes, mbarrier_word};
use crate::backend::FaultKind;
use crate::backend::emu::image::{LoggedSite, MbarrierAction, MbarrierCode, Space};
use crate::backend::emu::mbarrier::{Mbarrier, phase};
use crate::backend::emu::memory::Refused;
use crate::backend::emu::types::low;

/// Bytes of an mbarrier.
const BYTES: usize = 8;

/// Turns that a warp gives to others because an mbarrier is not there, until that is a fault.
const TRIES: u32 = 4096;

/// How an operation went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tried {
    Done,
    /// It is done, but others shall go first.
    Waits,
    /// Nothing was done: there is no mbarrier.
    Again,
}

fn refused(detail: String) -> Refused {
    Refused { kind: FaultKind::Device, detail }
}

impl Core<'_> {
    /// An mbarrier operation. Waits may have to be asked again.
    pub(super) fn mbarrier(
        &mut self,
        block: &mut Block,
        warp: usize,
        group: usize,
        code: &MbarrierCode,
        mask: u32,
        site: Option<LoggedSite>,
    ) -> Result<Tried, Halt> {
        let who = block.who(warp);
        let here = block.warps[warp].groups[group];
        let addresses = Self::addresses(&block.warps[warp], here, &code.address);
        let space = code.address.space;
        let logged = match site {
            Some(_) => tagged(space, mask, &addresses, &block.position, &mut self.recorder.a),
            None => 0,
        };
        let site = site.filter(|_| logged != 0);
        let waits = matches!(code.action, MbarrierAction::Wait { .. });
        // A wait that is asked again and again takes no ticket before it.
        let before = block.warps[warp].tried(here.pc, mask).unwrap_or_else(|| {
            site.map_or(0, |site| match waits {
                true => self.recorder.last_ticket(site),
                false => self.recorder.draw(site),
            })
        });
        let makes = matches!(code.action, MbarrierAction::Init(_));
        if !makes && self.leaves_to_others(block, warp, (here.pc, mask, before), (space, &addresses)) {
            return Ok(Tried::Again);
        }
        let (count, expect) = match &code.action {
            MbarrierAction::Init(count) => (Some(*count), None),
            MbarrierAction::Arrive { count, expect, .. } => (*count, *expect),
            MbarrierAction::ExpectTx(bytes) | MbarrierAction::CompleteTx(bytes) => (None, Some(*bytes)),
            MbarrierAction::Wait { phase, .. } => (Some(*phase), None),
            MbarrierAction::Inval | MbarrierAction::CopyArrive { .. } => (None, None),
        };
        let counts = count.map_or([1; LANES], |count| self.value(block, warp, group, count));
        let expected = expect.map_or([0; LANES], |bytes| self.value(block, warp, group, bytes));
        let mut states = [0; LANES];
        let mut done = 0;
        for lane in lanes(mask) {
            let (count, bytes) = (counts[lane] as u32, i64::from(expected[lane] as u32));
            let at = self.mbarrier_place(block, space, addresses[lane]).map_err(|r| halt(lane, r))?;
            let cluster = block.cluster;
            let result = match &code.action {
                MbarrierAction::Init(_) => Mbarrier::new(count)
                    .map_err(|wrong| refused(format!("the mbarrier at {at:#x} {wrong}")))
                    .and_then(|object| self.put_mbarrier(cluster, at, object.pack())),
                MbarrierAction::Inval => self
                    .with_mbarrier(cluster, at, |_| Ok(()))
                    .and_then(|()| self.put_mbarrier(cluster, at, 0)),
                MbarrierAction::Arrive { drop, no_complete, .. } => {
                    self.with_mbarrier(cluster, at, |object| {
                        states[lane] = object.pack();
                        object.expect(bytes)?;
                        object.arrive(count, *drop)?;
                        if *no_complete && object.is_complete(phase(states[lane])) {
                            return Err("ends its phase by an arrival with `.noComplete`".into());
                        }
                        Ok(())
                    })
                }
                MbarrierAction::ExpectTx(_) => self.with_mbarrier(cluster, at, |object| {
                    object.expect(bytes)?;
                    object.settle();
                    Ok(())
                }),
                MbarrierAction::CompleteTx(_) => self.complete_tx(cluster, at, bytes),
                MbarrierAction::Wait { parity, .. } => self.with_mbarrier(cluster, at, |object| {
                    let parity = if *parity { counts[lane] } else { phase(counts[lane]) };
                    done |= u32::from(object.is_complete(parity)) << lane;
                    Ok(())
                }),
                MbarrierAction::CopyArrive { increments } => self.with_mbarrier(cluster, at, |object| {
                    states[lane] = at;
                    if *increments { object.increment() } else { Ok(()) }
                }),
            };
            result.map_err(|r| halt(lane, r))?;
        }
        match &code.action {
            MbarrierAction::Arrive { state, .. } => {
                if state.0.is_none() {
                    self.recorder.read = [0; LANES];
                } else {
                    self.recorder.read = states;
                    self.with_regs(block, warp, group, |regs| regs.set(*state, mask, |lane| states[lane]));
                }
            }
            MbarrierAction::Wait { done: to, .. } => {
                self.with_regs(block, warp, group, |regs| regs.set_pred(*to, mask, done));
            }
            MbarrierAction::CopyArrive { .. } => self.arrive_after_copies(block, warp, mask, &states)?,
            _ => {}
        }
        let logged = if waits { logged & done } else { logged };
        if let (Some(site), true) = (site, logged != 0) {
            let recorder = &mut self.recorder;
            recorder.written = match &code.action {
                MbarrierAction::Wait { .. } => counts,
                MbarrierAction::ExpectTx(_) | MbarrierAction::CompleteTx(_) => {
                    expected.map(|bytes| mbarrier_word(0, bytes as u32))
                }
                _ => std::array::from_fn(|lane| mbarrier_word(counts[lane] as u32, expected[lane] as u32)),
            };
            let after = recorder.draw(site);
            recorder.write(site, logged, who, (before, after));
        }
        block.warps[warp].tries = 0;
        Ok(if !waits || done == mask { Tried::Done } else { Tried::Waits })
    }

    /// Whether lanes leave it to others to go first, who may make the mbarrier that some lack; they are tried again then.
    pub(super) fn leaves_to_others(
        &mut self,
        block: &mut Block,
        warp: usize,
        (pc, mask, before): (u32, u32, u64),
        (space, addresses): (Space, &Lanes),
    ) -> bool {
        let leaves = self.lacks_mbarrier(block, space, mask, addresses) && self.gives_way(block, warp);
        if leaves {
            block.warps[warp].try_again(pc, mask, before);
        }
        leaves
    }

    /// Whether there is memory for the mbarrier of some lane, but no mbarrier.
    fn lacks_mbarrier(&mut self, block: &Block, space: Space, mask: u32, addresses: &Lanes) -> bool {
        lanes(mask).any(|lane| {
            let Ok(at) = self.mbarrier_place(block, space, addresses[lane]) else { return false };
            let bytes = self.clusters[block.cluster].bytes(at, BYTES, true);
            let word = bytes.ok().and_then(|bytes| bytes.first_chunk::<BYTES>().copied());
            word.is_some_and(|word| Mbarrier::unpack(u64::from_le_bytes(word)).is_none())
        })
    }

    /// Whether a warp may still leave it to others to go first.
    fn gives_way(&mut self, block: &mut Block, warp: usize) -> bool {
        let at = &mut block.warps[warp];
        at.tries += 1;
        if at.groups.len() > 1 {
            at.spun(&mut self.rng);
            if self.preference.is_some() {
                at.makes_room();
            }
        }
        at.tries <= TRIES
    }

    /// Where in the cluster an mbarrier is, if one may be there.
    pub(super) fn mbarrier_place(
        &mut self,
        block: &Block,
        space: Space,
        address: u64,
    ) -> Result<u64, Refused> {
        let position = &block.position;
        let cluster = &mut self.clusters[block.cluster];
        let at = match locate(space, address, position) {
            (Place::Shared, at) => {
                let shared = cluster.of(position.rank);
                let end = shared.len() as u64;
                within(shared, end, "the block's shared memory", at, BYTES, true)?;
                position.shared_base() | at
            }
            (Place::Peer, at) => {
                cluster.bytes(at, BYTES, true)?;
                at
            }
            _ => {
                return Err(refused(format!("an mbarrier at {address:#x}, which is not in shared memory")));
            }
        };
        if low(at, 3) != 0 {
            return Err(misaligned(true, BYTES, address));
        }
        Ok(at)
    }

    /// Changes the mbarrier at a place of the cluster.
    pub(super) fn with_mbarrier(
        &mut self,
        cluster: usize,
        at: u64,
        change: impl FnOnce(&mut Mbarrier) -> Result<(), String>,
    ) -> Result<(), Refused> {
        let bytes = self.clusters[cluster].bytes(at, BYTES, true)?;
        let word = bytes.first_chunk::<BYTES>().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let Some(mut object) = Mbarrier::unpack(word) else {
            return Err(refused(format!("no mbarrier is at {at:#x}: `mbarrier.init` comes first")));
        };
        change(&mut object).map_err(|wrong| refused(format!("the mbarrier at {at:#x} {wrong}")))?;
        self.put_mbarrier(cluster, at, object.pack())
    }

    fn put_mbarrier(&mut self, cluster: usize, at: u64, word: u64) -> Result<(), Refused> {
        self.clusters[cluster].bytes(at, BYTES, true)?.copy_from_slice(&word.to_le_bytes());
        Ok(())
    }

    /// Bytes have come.
    pub(super) fn complete_tx(&mut self, cluster: usize, at: u64, bytes: i64) -> Result<(), Refused> {
        self.with_mbarrier(cluster, at, |object| {
            object.expect(-bytes)?;
            object.settle();
            Ok(())
        })
    }
}
