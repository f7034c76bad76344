//! Which symbol `cuGetProcAddress` gives for a name.

use std::sync::OnceLock;

use rustc_hash::FxHashMap;

/// For `CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM`.
const PER_THREAD: u64 = 2;

fn all() -> &'static FxHashMap<&'static str, usize> {
    static ALL: OnceLock<FxHashMap<&'static str, usize>> = OnceLock::new();
    ALL.get_or_init(|| {
        let tables = [
            super::contexts::table(),
            super::copies::table(),
            super::functions::table(),
            super::graphs::table(),
            super::memory::table(),
            super::tensors::table(),
            super::missing::table(),
            super::modules::table(),
            super::ready::table(),
            super::streams::table(),
            super::textures::table(),
            super::values::table(),
        ];
        // What is provided comes after what is not, should a name be in both.
        let mut all = FxHashMap::default();
        tables.into_iter().flatten().for_each(|(name, address)| {
            all.insert(name, address);
        });
        all
    })
}

/// The names of all symbols.
#[cfg(test)]
pub(crate) fn all_names() -> impl Iterator<Item = &'static str> {
    all().keys().copied()
}

/// Those whose arguments differ between versions of the API.
fn versioned(name: &str, version: i32) -> Option<&'static str> {
    Some(match name {
        "cuGetProcAddress" if version >= 12000 => "cuGetProcAddress_v2",
        "cuGetProcAddress" => "cuGetProcAddress",
        "cuCtxCreate" if version >= 12050 => "cuCtxCreate_v4",
        "cuCtxCreate" if version >= 11040 => "cuCtxCreate_v3",
        "cuCtxCreate" => "cuCtxCreate_v2",
        "cuGraphInstantiate" if version >= 12000 => "cuGraphInstantiateWithFlags",
        "cuGraphAddKernelNode" if version < 12000 => "cuGraphAddKernelNode",
        "cuGraphKernelNodeGetParams" if version < 12000 => "cuGraphKernelNodeGetParams",
        "cuGraphKernelNodeSetParams" if version < 12000 => "cuGraphKernelNodeSetParams",
        "cuGraphExecKernelNodeSetParams" if version < 12000 => "cuGraphExecKernelNodeSetParams",
        "cuGraphExecUpdate" if version < 12000 => "cuGraphExecUpdate",
        "cuGraphAddNode" if version < 13000 => "cuGraphAddNode",
        "cuGraphGetEdges" if version < 13000 => "cuGraphGetEdges",
        "cuGraphAddDependencies" if version < 13000 => "cuGraphAddDependencies",
        "cuGraphRemoveDependencies" if version < 13000 => "cuGraphRemoveDependencies",
        _ => return None,
    })
}

/// Where a symbol leads.
pub(crate) fn address(name: &str) -> Option<usize> {
    all().get(name).copied()
}

/// The address of a symbol, as programs know it, for a version of the API.
pub(super) fn find(name: &str, version: i32, flags: u64) -> Option<usize> {
    let all = all();
    if let Some(exact) = versioned(name, version) {
        return all.get(exact).copied();
    }
    if flags & PER_THREAD != 0 {
        let variants = ["_v2_ptsz", "_v2_ptds", "_ptsz", "_ptds"];
        let found = variants.iter().find_map(|suffix| all.get(format!("{name}{suffix}").as_str()));
        if found.is_some() {
            return found.copied();
        }
    }
    let newest = ["_v4", "_v3", "_v2", ""];
    newest.iter().find_map(|suffix| all.get(format!("{name}{suffix}").as_str())).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_version_and_the_default_stream() {
        let address = |name: &str| all().get(name).copied();
        assert!(address("cuMemAlloc_v2").is_some());
        assert_eq!(find("cuMemAlloc", 12000, 0), address("cuMemAlloc_v2"));
        assert_eq!(find("cuGetProcAddress", 11030, 0), address("cuGetProcAddress"));
        assert_eq!(find("cuGetProcAddress", 13000, 0), address("cuGetProcAddress_v2"));
        assert_eq!(find("cuCtxCreate", 11000, 0), address("cuCtxCreate_v2"));
        assert_eq!(find("cuCtxCreate", 13000, 0), address("cuCtxCreate_v4"));
        assert_eq!(find("cuLaunchKernel", 12000, 2), address("cuLaunchKernel_ptsz"));
        assert_eq!(find("cuMemcpyHtoD", 12000, 2), address("cuMemcpyHtoD_v2_ptds"));
        assert_eq!(find("", 12000, 0), None);
        assert_eq!(find("cuNoSuchThing", 12000, 0), None);
    }

    #[test]
    fn no_name_is_both_provided_and_missing() {
        let missing = super::super::missing::table();
        let provided = [
            super::super::contexts::table(),
            super::super::copies::table(),
            super::super::functions::table(),
            super::super::graphs::table(),
            super::super::memory::table(),
            super::super::tensors::table(),
            super::super::modules::table(),
            super::super::ready::table(),
            super::super::streams::table(),
            super::super::textures::table(),
            super::super::values::table(),
        ];
        let provided: Vec<_> = provided.into_iter().flatten().map(|(name, _)| name).collect();
        assert!(missing.iter().all(|(name, _)| !provided.contains(name)));
        assert!(missing.len() + provided.len() > 500);
    }
}
