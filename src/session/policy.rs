//! `--deny` and `--allow`: which findings count, and as what.

use crate::diag::{Diagnostic, Severity};
use crate::explain::rules;
use crate::finding::{Finding, Rule};

/// What the user makes of rules.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    deny: Vec<Rule>,
    deny_warnings: bool,
    allow: Vec<Rule>,
}

impl Policy {
    /// From the texts of `--deny` and `--allow`.
    pub fn new(deny: &[String], allow: &[String]) -> Result<Self, Diagnostic> {
        let mut policy = Self::default();
        for text in deny {
            match text.as_str() {
                "warnings" => policy.deny_warnings = true,
                id => policy.deny.push(rule("deny", id)?),
            }
        }
        for id in allow {
            policy.allow.push(rule("allow", id)?);
        }
        if let Some(both) = policy.deny.iter().find(|rule| policy.allow.contains(rule)) {
            let message = format!("`{}` is both denied and allowed", both.id());
            return Err(Diagnostic::error(message).help("leave out one of the two"));
        }
        Ok(policy)
    }

    /// Drops or raises a finding.
    pub(super) fn apply(&self, mut finding: Finding) -> Option<Finding> {
        if self.allow.contains(&finding.rule) {
            return None;
        }
        let warned = self.deny_warnings && finding.severity == Severity::Warning;
        if warned || self.deny.contains(&finding.rule) {
            finding.severity = Severity::Error;
        }
        Some(finding)
    }
}

fn rule(flag: &str, id: &str) -> Result<Rule, Diagnostic> {
    rules::by_id(id).ok_or_else(|| {
        let ids: Vec<_> = Rule::ALL.iter().map(|rule| rule.id()).collect();
        let also = if flag == "deny" { ", and `warnings`" } else { "" };
        Diagnostic::error(format!("`--{flag} {id}`: there is no such rule"))
            .help(format!("the rules are {}{also}", ids.join(" ")))
    })
}
