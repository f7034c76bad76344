//! From a module to its instrumented text: the sites, the edits and the device runtime.
//!
//! Every site of the table gets a call of a function that writes its record (see `abi`): before a weak access, a
//! barrier, a warp instruction or the end of a thread, and behind a strong access or a fence, which stand between two
//! tickets. Lanes whose guard is false, or whose generic address is private to the thread or read-only, branch around.
//!
//! Nothing is put in that could order memory or make threads meet: no fence, no barrier, only `.sync` warp
//! instructions over the lanes that are together anyway. The original instructions stay as they are, but for `red`,
//! which becomes `atom` to learn the old value, and `_` destinations whose value is logged.
//!
//! New names begin with `__ptxrace_`, and each site's temporaries and labels live in a scope of their own.

mod access;
mod address;
mod asynchronous;
mod atomic;
pub mod bundle;
mod code;
pub mod edit;
mod error;
mod image;
mod order;
mod pass;
mod reach;
mod rewrite;
mod runtime;
mod shared;
mod site;
mod symbols;
mod value;

pub use error::InstrumentError;
pub use reach::{Reach, each_name, reachable};
pub use site::{COORDINATES, SharedVariable, Site, SiteId, SiteKind, SiteTable, Unlogged};

use crate::ptx::ast::Module;
use crate::span::Span;

/// How the logging functions are called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallMode {
    /// As functions local to the module, whose registers ptxas chooses. Costs least.
    #[default]
    Local,
    /// By the calling convention, for modules where ptxas runs out of registers otherwise (its error C7600).
    Abi,
}

impl CallMode {
    /// The way to try when ptxas has refused a module with calls of this one, and has said this.
    pub fn instead(self, said: &str) -> Option<Self> {
        (self == Self::Local && said.contains("C7600")).then_some(Self::Abi)
    }
}

/// An instrumented module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instrumented {
    /// The new text.
    pub text: String,
    /// What was put in: spans of the new text, sorted, one for each edit. The runtime and its variable are among them.
    /// Code that belongs behind an instruction begins where that instruction ends.
    pub inserted: Vec<Span>,
}

impl Instrumented {
    /// Whether all of this span of the new text was put in. An original instruction is never so, even where a word of
    /// it was replaced.
    pub fn is_inserted(&self, span: Span) -> bool {
        let at = self.inserted.partition_point(|inserted| inserted.end < span.end);
        self.inserted.get(at).is_some_and(|inserted| inserted.start <= span.start && span.end <= inserted.end)
    }
}

/// What the module is compiled for.
#[derive(Clone, Copy, Debug)]
struct Target {
    sm: u32,
    version: (u32, u32),
}

impl Target {
    fn has(self, sm: u32, version: (u32, u32)) -> bool {
        self.sm >= sm && self.version >= version
    }
}

/// Instruments a module, given with its text and its sites.
pub fn instrument(
    text: &str,
    module: &Module<'_>,
    sites: &SiteTable,
    mode: CallMode,
) -> Result<Instrumented, InstrumentError> {
    let version = module.version().ok_or(InstrumentError::Header(".version"))?;
    let sm = module.target_sm().ok_or(InstrumentError::Header(".target"))?;
    if version < (6, 2) {
        let at = module.directive(".version").map_or(Span::default(), |directive| directive.span);
        return Err(InstrumentError::Version { version, at });
    }
    let size = module.directive(".address_size");
    if size.is_none_or(|directive| directive.args.text != "64") {
        return Err(InstrumentError::AddressSize { at: size.map(|directive| directive.span) });
    }
    if let Some(at) = memchr::memmem::find(text.as_bytes(), b"__ptxrace_") {
        return Err(InstrumentError::Instrumented { at: Span::new(at, at + "__ptxrace_".len()) });
    }
    let edited = rewrite::rewrite(text, module, sites, Target { sm, version }, mode)?;
    Ok(Instrumented { text: edited.text, inserted: edited.inserted })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn try_instrument(text: &str) -> Result<Instrumented, InstrumentError> {
        let parsed = crate::ptx::parse(text);
        assert_eq!(parsed.errors, []);
        let sites = SiteTable::new(&parsed.module);
        instrument(text, &parsed.module, &sites, CallMode::Local)
    }

    /// The body of a kernel after instrumentation, without blanks at the ends of lines.
    fn body(statements: &str) -> String {
        let text = format!(
            ".version 8.0\n.target sm_80\n.address_size 64\n.visible .func k() {{\n\
            \t.reg .pred %p<3>;\n\t.reg .b32 %r<5>;\n\t.reg .b64 %rd<5>;\n{statements}\n}}\n"
        );
        let out = try_instrument(&text).unwrap().text;
        let start = out.find(".reg .b64 %rd<5>;\n").unwrap() + ".reg .b64 %rd<5>;\n".len();
        out[start..].trim_end().trim_end_matches('}').trim().to_owned()
    }

    #[test]
    fn a_weak_load_logs_its_address_before() {
        assert_eq!(
            body("\tld.global.u32 %r1, [%rd1+4];"),
            "{\n\t.reg .b64 __ptxrace_2;\n\tmov.b64 __ptxrace_2, %rd1;\n\
            \tadd.s64 __ptxrace_2, __ptxrace_2, 4;\n\
            \tcall.uni __ptxrace_log_a, (0, __ptxrace_2);\n\
            __ptxrace_1:\n\t}\n\tld.global.u32 %r1, [%rd1+4];"
        );
    }

    #[test]
    fn a_strong_load_stands_between_tickets() {
        assert_eq!(
            body("\t@%p1 ld.acquire.gpu.global.u64 %rd1, [%rd1];"),
            "{\n\t.reg .b64 __ptxrace_3, __ptxrace_4, __ptxrace_5;\n\t.reg .pred __ptxrace_2;\n\
            \tmov.pred __ptxrace_2, 0;\n\t@!%p1 bra __ptxrace_1;\n\
            \tmov.b64 __ptxrace_3, %rd1;\n\tmov.pred __ptxrace_2, -1;\n\
            \tcall.uni (__ptxrace_4), __ptxrace_ticket;\n__ptxrace_1:\n\
            \t@%p1 ld.acquire.gpu.global.u64 %rd1, [%rd1];\n\
            \t@!__ptxrace_2 bra __ptxrace_end;\n\tmov.b64 __ptxrace_5, %rd1;\n\
            \tcall.uni __ptxrace_log_art, (0, __ptxrace_3, __ptxrace_5, __ptxrace_4);\n\
            __ptxrace_end:\n\t}"
        );
    }

    #[test]
    fn a_reduction_becomes_an_atomic() {
        let body = body("\tred.release.gpu.global.add.u32 [%rd1], 1;");
        let line = body.lines().find(|line| line.contains("release")).unwrap();
        assert!(line.trim().starts_with("atom.release.gpu.global.add.u32 __ptxrace_"), "{line}");
        assert!(line.ends_with(", [%rd1], 1;"), "{line}");
    }

    #[test]
    fn constants_are_values() {
        for (value, logged) in [("WARP_SZ", "0x20"), ("-1", "0xff"), ("0x102", "0x2")] {
            let body = body(&format!("\tst.release.gpu.global.u8 [%rd1], {value};"));
            assert!(body.contains(&format!("\tmov.b64 __ptxrace_4, {logged};\n")), "{body}");
        }
    }

    #[test]
    fn pragmas_stay_with_what_they_govern() {
        let body = body(
            "$again:\n\t.pragma \"nounroll\";\n\t.loc 1 2 3\n\t.pragma \"used_bytes_mask 0xff\";\n\
            \tld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1];",
        );
        let at = |text| body.find(text).unwrap();
        assert!(at("$again:") < at("nounroll") && at("nounroll") < at(".loc") && at(".loc") < at("call.uni"));
        assert!(at("call.uni") < at("used_bytes_mask"));
        assert!(body.contains("0xff\";\n\tld.global.v4"));
    }

    #[test]
    fn what_was_put_in_is_known() {
        let text = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() {\n\
            \t.reg .b64 %rd<2>;\n\tred.global.add.u32 [%rd1], 1;\n\tbar.sync 0;\n\tret;\n}\n\0";
        let out = try_instrument(text).unwrap();
        let parsed = crate::ptx::parse(&out.text);
        assert_eq!(parsed.errors, []);
        let mut rest = String::new();
        let mut at = 0;
        for span in &out.inserted {
            assert!(span.start >= at, "sorted");
            rest.push_str(&out.text[at as usize..span.start as usize]);
            at = span.end;
        }
        rest.push_str(&out.text[at as usize..]);
        assert_eq!(rest, text.replace("red", "").replace('\0', ""));
        let inserted = parsed.module.functions().filter(|f| out.is_inserted(f.span)).count();
        assert_eq!(inserted, parsed.module.functions().count() - 1);
        let barrier = out.text.find("bar.sync").unwrap();
        assert!(!out.is_inserted(Span::new(barrier, barrier + "bar.sync 0;".len())));
        let atomic = out.text.find("atom.global.add.u32 __ptxrace").unwrap();
        let end = atomic + out.text[atomic..].find(';').unwrap() + 1;
        assert!(!out.is_inserted(Span::new(atomic, end)));
    }

    #[test]
    fn what_cannot_be_instrumented_is_said() {
        let header = |version, size| format!(".version {version}\n.target sm_70\n.address_size {size}\n");
        let error = |text: &str| try_instrument(text).unwrap_err();
        assert!(matches!(error(&header("6.1", 64)), InstrumentError::Version { version: (6, 1), .. }));
        assert!(matches!(error(&header("6.2", 32)), InstrumentError::AddressSize { at: Some(_) }));
        assert!(matches!(error(".version 8.0\n.target sm_70\n"), InstrumentError::AddressSize { at: None }));
        assert!(matches!(error(".version 8.0\n"), InstrumentError::Header(".target")));
        let again = try_instrument(&header("8.0", 64)).unwrap().text;
        assert!(matches!(error(&again), InstrumentError::Instrumented { .. }));
        let text = header("8.0", 64) + ".entry k() { ld.global.u32 %r1, [%unknown]; }";
        let InstrumentError::Operand { at, .. } = error(&text) else { panic!() };
        assert_eq!(&text[at.range()], "[%unknown]");
    }
}
