//! What is instrumented parses again, and without what was put in it is the original but for the words that were replaced.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ptxrace::instrument::{CallMode, SiteTable, instrument};
use ptxrace::ptx::parse;

/// Enough of a module for statements to be instrumented.
const HEAD: &str = ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p) {\n\
    .reg .pred %p<9>;\n.reg .b16 %rs<9>;\n.reg .b32 %r<9>;\n.reg .b64 %rd<9>;\n.shared .align 8 .b8 s[64];\n";

fuzz_target!(|body: &str| {
    let text =
        if body.starts_with(".version") { body.to_owned() } else { format!("{HEAD}{body}\nret;\n}}\n") };
    let parsed = parse(&text);
    let sites = SiteTable::new(&parsed.module);
    for mode in [CallMode::Local, CallMode::Abi] {
        let Ok(out) = instrument(&text, &parsed.module, &sites, mode) else { continue };
        let (mut kept, mut at) = (0, 0);
        for span in &out.inserted {
            let range = span.range();
            assert!(range.start >= at, "insertions are sorted");
            kept += range.start - at;
            at = range.end;
        }
        assert!(kept + (out.text.len() - at) <= text.len(), "more was kept than there was");
        if parsed.errors.is_empty() {
            assert_eq!(parse(&out.text).errors, [], "{}", out.text);
        }
    }
});
