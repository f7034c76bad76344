//! Special registers. Modelled: thread, block and grid positions, lane masks, shared memory sizes, clocks (which count
//! schedule points of the launch). Approximated: `%smid` is the block's index modulo 132, `%globaltimer` is the clock,
//! clusters are one block each, performance counters and environment registers read 0.

use crate::abi::{LANES, Lanes};

/// A special register.
/// Shared memory of a block that belongs to the driver, at the beginning. It is left out where nothing asks for it.
pub(super) const RESERVED_SHARED: u64 = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Special {
    Tid(u8),
    Lane,
    MaskEq,
    MaskLe,
    MaskLt,
    MaskGe,
    MaskGt,
    Clock,
    ClockHi,
    /// Same in all lanes.
    Uniform(Uniform),
}

/// Special registers that all lanes of a warp read alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Uniform {
    Ntid(u8),
    Ctaid(u8),
    Nctaid(u8),
    Warp,
    Warps,
    Smid,
    Nsmid,
    Grid,
    DynamicShared,
    TotalShared,
    Zero,
    One,
    Reserved,
}

/// What the special registers of a warp say.
pub(super) struct Env<'w> {
    pub(super) tid: &'w [Lanes; 3],
    pub(super) block: [u32; 3],
    pub(super) block_linear: u32,
    pub(super) warp: u32,
    pub(super) clock: u64,
    pub(super) launch: &'w LaunchEnv,
}

/// What the special registers of a launch say.
#[derive(Clone, Debug, Default)]
pub(super) struct LaunchEnv {
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
    pub(super) index: u32,
    pub(super) dynamic_shared: u32,
    pub(super) total_shared: u32,
}

/// Streaming multiprocessors that programs see.
const SMS: u32 = 132;

impl Env<'_> {
    /// The register in all lanes.
    pub(super) fn read(&self, special: Special) -> Lanes {
        let by_lane = |f: fn(u32) -> u32| std::array::from_fn(|lane| u64::from(f(lane as u32)));
        match special {
            Special::Tid(axis) => self.tid[usize::from(axis) % 3],
            Special::Lane => by_lane(|lane| lane),
            Special::MaskEq => by_lane(|lane| 1 << lane),
            Special::MaskLe => by_lane(|lane| u32::MAX >> (31 - lane)),
            Special::MaskLt => by_lane(|lane| (1 << lane) - 1),
            Special::MaskGe => by_lane(|lane| u32::MAX << lane),
            Special::MaskGt => by_lane(|lane| !(u32::MAX >> (31 - lane))),
            Special::Clock => [self.clock; LANES],
            Special::ClockHi => [self.clock >> 32; LANES],
            Special::Uniform(uniform) => [self.uniform(uniform); LANES],
        }
    }

    fn uniform(&self, uniform: Uniform) -> u64 {
        let axis = |of: [u32; 3], axis: u8| u64::from(of[usize::from(axis) % 3]);
        let launch = self.launch;
        match uniform {
            Uniform::Ntid(a) => axis(launch.block, a),
            Uniform::Ctaid(a) => axis(self.block, a),
            Uniform::Nctaid(a) => axis(launch.grid, a),
            Uniform::Warp => u64::from(self.warp),
            Uniform::Warps => u64::from(launch.block.iter().product::<u32>().div_ceil(32)),
            Uniform::Smid => u64::from(self.block_linear % SMS),
            Uniform::Nsmid => u64::from(SMS),
            Uniform::Grid => u64::from(launch.index),
            Uniform::DynamicShared => u64::from(launch.dynamic_shared),
            Uniform::TotalShared => u64::from(launch.total_shared),
            Uniform::Zero => 0,
            Uniform::One => 1,
            Uniform::Reserved => RESERVED_SHARED,
        }
    }
}

/// The register of this name; vectors (`%tid`) give their elements.
pub(super) fn special(name: &str) -> Option<Vec<Special>> {
    use Special::Uniform as U;
    let (base, member) = name.split_once('.').unwrap_or((name, ""));
    let vector: Option<[Special; 4]> = match base {
        "%tid" => Some([Special::Tid(0), Special::Tid(1), Special::Tid(2), U(Uniform::Zero)]),
        "%ntid" => Some([U(Uniform::Ntid(0)), U(Uniform::Ntid(1)), U(Uniform::Ntid(2)), U(Uniform::Zero)]),
        "%ctaid" => {
            Some([U(Uniform::Ctaid(0)), U(Uniform::Ctaid(1)), U(Uniform::Ctaid(2)), U(Uniform::Zero)])
        }
        "%nctaid" => {
            Some([U(Uniform::Nctaid(0)), U(Uniform::Nctaid(1)), U(Uniform::Nctaid(2)), U(Uniform::Zero)])
        }
        "%clusterid" => {
            Some([U(Uniform::Ctaid(0)), U(Uniform::Ctaid(1)), U(Uniform::Ctaid(2)), U(Uniform::Zero)])
        }
        "%nclusterid" => {
            Some([U(Uniform::Nctaid(0)), U(Uniform::Nctaid(1)), U(Uniform::Nctaid(2)), U(Uniform::Zero)])
        }
        "%cluster_ctaid" => Some([U(Uniform::Zero); 4]),
        "%cluster_nctaid" => Some([U(Uniform::One), U(Uniform::One), U(Uniform::One), U(Uniform::Zero)]),
        _ => None,
    };
    if let Some(vector) = vector {
        return match member {
            "" => Some(vector.to_vec()),
            "x" | "r" => Some(vec![vector[0]]),
            "y" | "g" => Some(vec![vector[1]]),
            "z" | "b" => Some(vec![vector[2]]),
            "w" | "a" => Some(vec![vector[3]]),
            _ => None,
        };
    }
    let one = match name {
        "%laneid" => Special::Lane,
        "%warpid" => U(Uniform::Warp),
        "%nwarpid" => U(Uniform::Warps),
        "%smid" => U(Uniform::Smid),
        "%nsmid" => U(Uniform::Nsmid),
        "%gridid" => U(Uniform::Grid),
        "%lanemask_eq" => Special::MaskEq,
        "%lanemask_le" => Special::MaskLe,
        "%lanemask_lt" => Special::MaskLt,
        "%lanemask_ge" => Special::MaskGe,
        "%lanemask_gt" => Special::MaskGt,
        "%clock" | "%clock64" | "%globaltimer" | "%globaltimer_lo" => Special::Clock,
        "%clock_hi" | "%globaltimer_hi" => Special::ClockHi,
        "%dynamic_smem_size" => U(Uniform::DynamicShared),
        "%total_smem_size" | "%aggr_smem_size" => U(Uniform::TotalShared),
        "%cluster_nctarank" => U(Uniform::One),
        "%cluster_ctarank" | "%is_explicit_cluster" | "%current_graph_exec" => U(Uniform::Zero),
        "%reserved_smem_offset_end" | "%reserved_smem_offset_cap" => U(Uniform::Reserved),
        _ if ["%envreg", "%pm", "%reserved_smem_offset"].iter().any(|p| name.starts_with(p)) => {
            U(Uniform::Zero)
        }
        _ => return None,
    };
    Some(vec![one])
}
