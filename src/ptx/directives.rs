//! The directives of PTX ISA 9.0, to tell a slip from what is newer than this list.

/// Names with their dot.
const NAMES: [&str; 51] = [
    ".abi_preserve",
    ".abi_preserve_control",
    ".address_size",
    ".alias",
    ".align",
    ".attribute",
    ".blocksareclusters",
    ".branchtargets",
    ".callprototype",
    ".calltargets",
    ".common",
    ".const",
    ".entry",
    ".explicitcluster",
    ".extern",
    ".file",
    ".func",
    ".global",
    ".loc",
    ".local",
    ".maxclusterrank",
    ".maxnctapersm",
    ".maxnreg",
    ".maxntid",
    ".minnctapersm",
    ".noreturn",
    ".param",
    ".param::entry",
    ".param::func",
    ".pragma",
    ".ptr",
    ".reg",
    ".reqnctapercluster",
    ".reqntid",
    ".section",
    ".shared",
    ".shared::cluster",
    ".shared::cta",
    ".sreg",
    ".surf",
    ".surfref",
    ".samplerref",
    ".target",
    ".tex",
    ".texref",
    ".unified",
    ".version",
    ".visible",
    ".weak",
    ".managed",
    ".language",
];

/// Whether a directive, given with its dot, is known.
pub(super) fn is_known(name: &str) -> bool {
    NAMES.contains(&name)
}

/// All of them.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    NAMES.into_iter()
}
