//! `// ptxrace: allow(R010)` in the line of an access: the finding is known and meant.

use super::{AccessFacts, Context, Frame};
use crate::finding::Rule;

/// A comment that allows a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inline {
    /// Where it is.
    pub at: Frame,
    /// What stands behind it, if anything.
    pub reason: Option<String>,
}

/// The first comment that allows a rule in a line of an access: its source, calls it was inlined through, or the PTX.
pub(super) fn allowed(rule: Rule, accesses: &[AccessFacts], context: &Context<'_>) -> Option<Inline> {
    for access in accesses {
        for frame in &access.source {
            if let Some(reason) = context.sources.line(frame).and_then(|line| allows(&line, rule)) {
                let label = context.sources.label(frame, String::new(), true);
                let (file, at) = label.place.position();
                return Some(Inline { at: Frame { file, line: at.line, column: at.column }, reason });
            }
        }
        let mut texts = context.programs.iter().map(|program| program.source);
        let Some(ptx) = texts.find(|ptx| ptx.path().to_string_lossy() == access.ptx.file) else { continue };
        let line = ptx.line_span(access.ptx.line).map_or("", |span| ptx.slice(span));
        if let Some(reason) = allows(line, rule) {
            return Some(Inline { at: access.ptx.clone(), reason });
        }
    }
    None
}

/// Whether a line has a comment that allows the rule, and the reason that it gives.
fn allows(line: &str, rule: Rule) -> Option<Option<String>> {
    let comment = line.split_once("//").or_else(|| line.split_once("/*"))?.1;
    let list = comment.split_once("ptxrace:")?.1.trim_start().strip_prefix("allow(")?;
    let (rules, behind) = list.split_once(')')?;
    let named = rules.split(',').any(|id| id.trim().eq_ignore_ascii_case(rule.id()));
    let reason = behind.trim().trim_end_matches("*/").trim_start_matches([':', '-']).trim();
    named.then(|| (!reason.is_empty()).then(|| reason.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_allow_the_rules_they_name() {
        let of = |line| allows(line, Rule::R010);
        assert_eq!(of("*found = 1; // ptxrace: allow(R010)"), Some(None));
        assert_eq!(
            of("*found = 1; // ptxrace: allow(r003, r010): only a hint"),
            Some(Some("only a hint".into()))
        );
        assert_eq!(of("*found = 1; /* ptxrace:allow(R010) */"), Some(None));
        for line in [
            "*found = 1;",
            "*found = 1; // ptxrace: allow(R001)",
            "*found = 1; // ptxrace: allow(R010",
            "f(\"ptxrace: allow(R010)\");",
            "*found = 1; // allow(R010)",
        ] {
            assert_eq!(of(line), None, "{line}");
        }
    }
}
