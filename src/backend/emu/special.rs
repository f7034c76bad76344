//! Special registers. Modelled: thread, block and grid positions, lane masks, shared memory sizes, clocks (which count
//! schedule points of the launch), clusters. Approximated: `%smid` is the block's index modulo 132, `%globaltimer` is the
//! clock, performance counters and environment registers read 0.

use crate::abi::{LANES, Lanes, SHARED_OFFSET};
use crate::backend::plan::Clusters;

/// Shared memory of a block that belongs to the driver, at the beginning. It is left out where nothing asks for it.
pub(super) const RESERVED_SHARED: u64 = 1024;

/// Where an address of shared memory holds the rank of its block.
pub(super) const RANK_SHIFT: u32 = SHARED_OFFSET.count_ones();

/// A special register.
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
    Reserved,
    Clusterid(u8),
    Nclusterid(u8),
    ClusterCtaid(u8),
    ClusterNctaid(u8),
    ClusterRank,
    ClusterSize,
    ExplicitCluster,
}

/// What the special registers of a warp say.
pub(super) struct Env<'w> {
    pub(super) tid: &'w [Lanes; 3],
    pub(super) position: &'w Position,
    pub(super) warp: u32,
    pub(super) clock: u64,
    pub(super) launch: &'w LaunchEnv,
}

/// Where a block is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Position {
    pub(super) index: [u32; 3],
    pub(super) linear: u32,
    /// In its cluster.
    pub(super) rank: u32,
    /// It is a cluster of its own.
    pub(super) alone: bool,
}

impl Position {
    /// What the address of a shared variable begins with.
    pub(super) fn shared_base(&self) -> u64 {
        u64::from(self.rank) << RANK_SHIFT
    }
}

/// What the special registers of a launch say.
#[derive(Clone, Debug)]
pub(super) struct LaunchEnv {
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
    pub(super) index: u32,
    pub(super) dynamic_shared: u32,
    pub(super) total_shared: u32,
    pub(super) clusters: Clusters,
    pub(super) explicit_cluster: bool,
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
            Uniform::Ctaid(a) => axis(self.position.index, a),
            Uniform::Nctaid(a) => axis(launch.grid, a),
            Uniform::Warp => u64::from(self.warp),
            Uniform::Warps => u64::from(launch.block.iter().product::<u32>().div_ceil(32)),
            Uniform::Smid => u64::from(self.position.linear % SMS),
            Uniform::Nsmid => u64::from(SMS),
            Uniform::Grid => u64::from(launch.index),
            Uniform::DynamicShared => u64::from(launch.dynamic_shared),
            Uniform::TotalShared => u64::from(launch.total_shared),
            Uniform::Zero => 0,
            Uniform::Reserved => RESERVED_SHARED,
            Uniform::Clusterid(a) => axis(self.position.index, a) / axis(launch.clusters.extent(), a),
            Uniform::Nclusterid(a) => axis(launch.grid, a) / axis(launch.clusters.extent(), a),
            Uniform::ClusterCtaid(a) => axis(self.position.index, a) % axis(launch.clusters.extent(), a),
            Uniform::ClusterNctaid(a) => axis(launch.clusters.extent(), a),
            Uniform::ClusterRank => u64::from(self.position.rank),
            Uniform::ClusterSize => u64::from(launch.clusters.size()),
            Uniform::ExplicitCluster => u64::from(launch.explicit_cluster),
        }
    }
}

/// The register of this name; vectors (`%tid`) give their elements.
pub(super) fn special(name: &str) -> Option<Vec<Special>> {
    use Special::Uniform as U;
    let (base, member) = name.split_once('.').unwrap_or((name, ""));
    let axes = |of: fn(u8) -> Uniform| Some([U(of(0)), U(of(1)), U(of(2)), U(Uniform::Zero)]);
    let vector: Option<[Special; 4]> = match base {
        "%tid" => Some([Special::Tid(0), Special::Tid(1), Special::Tid(2), U(Uniform::Zero)]),
        "%ntid" => axes(Uniform::Ntid),
        "%ctaid" => axes(Uniform::Ctaid),
        "%nctaid" => axes(Uniform::Nctaid),
        "%clusterid" => axes(Uniform::Clusterid),
        "%nclusterid" => axes(Uniform::Nclusterid),
        "%cluster_ctaid" => axes(Uniform::ClusterCtaid),
        "%cluster_nctaid" => axes(Uniform::ClusterNctaid),
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
        "%cluster_nctarank" => U(Uniform::ClusterSize),
        "%cluster_ctarank" => U(Uniform::ClusterRank),
        "%is_explicit_cluster" => U(Uniform::ExplicitCluster),
        "%current_graph_exec" => U(Uniform::Zero),
        "%reserved_smem_offset_end" | "%reserved_smem_offset_cap" => U(Uniform::Reserved),
        _ if ["%envreg", "%pm", "%reserved_smem_offset"].iter().any(|p| name.starts_with(p)) => {
            U(Uniform::Zero)
        }
        _ => return None,
    };
    Some(vec![one])
}
