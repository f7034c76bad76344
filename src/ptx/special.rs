//! The special registers of PTX ISA 9.0.

/// Those without a number behind their name.
const NAMES: [&str; 46] = [
    "aggr_smem_size",
    "clock",
    "clock64",
    "clock_hi",
    "cluster_ctaid",
    "cluster_ctarank",
    "cluster_nctaid",
    "cluster_nctarank",
    "clusterid",
    "ctaid",
    "current_graph_exec",
    "dynamic_smem_size",
    "globaltimer",
    "globaltimer_hi",
    "globaltimer_lo",
    "gridid",
    "is_explicit_cluster",
    "laneid",
    "lanemask_eq",
    "lanemask_ge",
    "lanemask_gt",
    "lanemask_le",
    "lanemask_lt",
    "nclusterid",
    "nctaid",
    "nsmid",
    "ntid",
    "nwarpid",
    "pm0_64",
    "pm1_64",
    "pm2_64",
    "pm3_64",
    "pm4_64",
    "pm5_64",
    "pm6_64",
    "pm7_64",
    "reserved_smem_offset_0",
    "reserved_smem_offset_1",
    "reserved_smem_offset_begin",
    "reserved_smem_offset_cap",
    "reserved_smem_offset_end",
    "smid",
    "tid",
    "total_smem_size",
    "virtual_smid",
    "warpid",
];

/// Whether a name, without its member, is a special register.
pub(super) fn is_special(name: &str) -> bool {
    let Some(name) = name.strip_prefix('%') else { return false };
    let number = |stem, below: u8| {
        name.strip_prefix(stem).and_then(|n: &str| n.parse::<u8>().ok()).is_some_and(|n| n < below)
    };
    NAMES.binary_search(&name).is_ok() || number("envreg", 32) || number("pm", 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_and_found() {
        assert!(NAMES.is_sorted());
        for name in ["%tid", "%pm7", "%envreg31", "%clock64"] {
            assert!(is_special(name), "{name}");
        }
        for name in ["tid", "%tidx", "%pm8", "%envreg32", "%r1"] {
            assert!(!is_special(name), "{name}");
        }
    }
}
