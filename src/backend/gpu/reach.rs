//! Which unlogged instructions count for a kernel: only those in functions that may have run.

use crate::instrument::{SiteTable, reachable};
use crate::ptx::ast::Module;

/// Indices into `SiteTable::unlogged` of the instructions that this kernel's code holds.
pub fn unlogged(module: &Module<'_>, sites: &SiteTable, kernel: &str) -> Vec<u32> {
    if sites.unlogged().is_empty() {
        return Vec::new();
    }
    let Some(entry) = module.functions().find(|f| f.body.is_some() && f.name.text == kernel) else {
        return Vec::new();
    };
    let reach = reachable(module, entry);
    let may_run = |name: &str| reach.by_address || reach.functions.iter().any(|f| f.name.text == name);
    let indexed = (0u32..).zip(sites.unlogged());
    indexed.filter(|(_, unlogged)| may_run(&unlogged.function)).map(|(index, _)| index).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_functions_that_can_run_count() {
        let text = "
            .version 9.0
            .target sm_90
            .address_size 64
            .func used() { frob [%r1]; ret; }
            .func other() { frob [%r1]; ret; }
            .func between() { { call.uni used, (); } ret; }
            .visible .entry direct() { call.uni between; ret; }
            .visible .entry indirect() { .reg .b64 %rd<2>; p: .callprototype _ (); call %rd1, (), p; ret; }
            .alias other_name, other;
            .visible .entry aliased() { call.uni other_name; ret; }
            .visible .entry alone() { ret; }";
        let parsed = crate::ptx::parse(text);
        assert_eq!(parsed.errors, []);
        let sites = SiteTable::new(&parsed.module);
        assert_eq!(sites.unlogged().len(), 2);
        assert_eq!(unlogged(&parsed.module, &sites, "direct"), [0]);
        assert_eq!(unlogged(&parsed.module, &sites, "indirect"), [0, 1]);
        assert_eq!(unlogged(&parsed.module, &sites, "aliased"), [1]);
        assert_eq!(unlogged(&parsed.module, &sites, "alone"), [0u32; 0]);
    }
}
