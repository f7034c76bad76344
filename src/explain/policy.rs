//! What the user makes of findings: `--deny`, `--allow`, comments in sources, files of suppressions, a baseline. Nothing
//! is dropped: what is suppressed is kept, with what did it.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Explained, Suppression, order, rules};
use crate::diag::{Diagnostic, Severity};
use crate::finding::Rule;

/// Which findings count, and as what.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    deny: Vec<Rule>,
    deny_warnings: bool,
    allow: Vec<Rule>,
    suppressions: Vec<Suppression>,
    baseline: Option<Baseline>,
}

/// Findings that are known already.
#[derive(Clone, Debug, Default)]
pub struct Baseline {
    /// The file they are from.
    pub file: String,
    /// The findings.
    pub known: Vec<Known>,
}

/// A finding that is known. Its fingerprint tells; the rest is for people that read the file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Known {
    /// The fingerprint.
    pub fingerprint: String,
    /// The rule's id.
    pub rule: String,
    /// The entry of the last access, as PTX names it.
    pub kernel: String,
    /// What is raced on.
    pub object: Option<String>,
}

impl Known {
    /// What is kept of a finding.
    pub fn of(finding: &Explained) -> Self {
        Self {
            fingerprint: finding.fingerprint.clone(),
            rule: finding.rule.id().to_owned(),
            kernel: finding.accesses.last().map_or_else(String::new, |access| access.kernel.clone()),
            object: finding.object.as_ref().map(|object| object.name.clone()),
        }
    }
}

/// By what means a finding is suppressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Means {
    /// `--allow`.
    Allow,
    /// A comment in the source.
    Inline,
    /// A line of a file of suppressions.
    Suppressions,
    /// The baseline.
    Baseline,
}

impl Means {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Allow, Self::Inline, Self::Suppressions, Self::Baseline];

    /// The name in the JSON report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Inline => "inline",
            Self::Suppressions => "suppressions",
            Self::Baseline => "baseline",
        }
    }
}

/// What suppresses a finding.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct By {
    /// By what means.
    pub means: Means,
    /// As the user wrote it: `--allow R010`, `R010:found`.
    pub text: String,
    /// The file it stands in, if it is in one.
    pub file: Option<String>,
    /// Its line there, from 1; 0 when it is all of the file.
    pub line: u32,
    /// The reason given.
    pub reason: Option<String>,
}

impl By {
    /// "`R010:found` (supp.txt:3): only a hint"
    pub fn told(&self) -> String {
        let reason = self.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        match &self.file {
            Some(file) if self.line > 0 => format!("`{}` ({file}:{}){reason}", self.text, self.line),
            Some(file) => format!("{} `{file}`{reason}", self.text),
            None => format!("`{}`{reason}", self.text),
        }
    }
}

/// A finding that does not count.
#[derive(Clone, Debug)]
pub struct Suppressed {
    /// The finding.
    pub finding: Explained,
    /// What suppresses it: the first in the order of `Means`.
    pub by: By,
}

/// Something that may suppress findings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suppressor {
    /// What it is.
    pub by: By,
    /// Findings it fits, whether or not something else suppresses them too.
    pub hits: u64,
}

/// Findings that were sorted by a policy.
#[derive(Clone, Debug, Default)]
pub struct Sorted {
    /// Those that are left, errors first.
    pub findings: Vec<Explained>,
    /// Those that are suppressed.
    pub suppressed: Vec<Suppressed>,
    /// All that could suppress, with the findings that each fits.
    pub suppressors: Vec<Suppressor>,
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
            let rule = rule("allow", id)?;
            if !policy.allow.contains(&rule) {
                policy.allow.push(rule);
            }
        }
        if let Some(both) = policy.deny.iter().find(|rule| policy.allow.contains(rule)) {
            let message = format!("`{}` is both denied and allowed", both.id());
            return Err(Diagnostic::error(message).help("leave out one of the two"));
        }
        Ok(policy)
    }

    /// Adds the lines of a file of suppressions.
    pub fn suppress(&mut self, suppressions: Vec<Suppression>) {
        self.suppressions.extend(suppressions);
    }

    /// Sets what is known.
    pub fn set_baseline(&mut self, baseline: Baseline) {
        self.baseline = Some(baseline);
    }

    /// Sorts findings into those that count and those that do not.
    pub fn sort(&self, findings: Vec<Explained>) -> Sorted {
        let mut tally = Tally::default();
        let allow: Vec<_> = self.allow.iter().map(|rule| tally.slot(allowed(*rule))).collect();
        let lines: Vec<_> = self.suppressions.iter().map(|line| tally.slot(suppressed(line))).collect();
        let known: FxHashSet<_> = self
            .baseline
            .iter()
            .flat_map(|baseline| &baseline.known)
            .map(|known| &*known.fingerprint)
            .collect();
        let baseline = self.baseline.as_ref().map(|baseline| tally.slot(of_baseline(&baseline.file)));
        let mut sorted = Sorted::default();
        for mut finding in findings {
            let warned = self.deny_warnings && finding.severity == Severity::Warning;
            if warned || self.deny.contains(&finding.rule) {
                finding.severity = Severity::Error;
                finding.diagnostic.severity = Severity::Error;
            }
            let mut fitting = Vec::new();
            fitting.extend(
                allow.iter().zip(&self.allow).filter(|(_, r)| **r == finding.rule).map(|(slot, _)| *slot),
            );
            fitting.extend(finding.inline.as_ref().map(|inline| {
                tally.slot(By {
                    means: Means::Inline,
                    text: format!("ptxrace: allow({})", finding.rule.id()),
                    file: Some(inline.at.file.clone()),
                    line: inline.at.line,
                    reason: inline.reason.clone(),
                })
            }));
            fitting.extend(
                lines
                    .iter()
                    .zip(&self.suppressions)
                    .filter(|(_, line)| line.fits(&finding))
                    .map(|(slot, _)| *slot),
            );
            fitting.extend(baseline.filter(|_| known.contains(&*finding.fingerprint)));
            for slot in &fitting {
                tally.hit(*slot);
            }
            match fitting.first().and_then(|slot| tally.all.get(*slot)) {
                Some(suppressor) => sorted.suppressed.push(Suppressed { finding, by: suppressor.by.clone() }),
                None => sorted.findings.push(finding),
            }
        }
        order(&mut sorted.findings);
        sorted.suppressors = tally.all;
        sorted
    }

    /// A warning for each line of a file of suppressions that fits no finding.
    pub fn unused(&self, suppressors: &[Suppressor]) -> Vec<Diagnostic> {
        let unfit: FxHashSet<_> = suppressors.iter().filter(|s| s.hits == 0).map(|s| &s.by).collect();
        let unused = |line: &&Suppression| unfit.contains(&suppressed(line));
        let warning = |line: &Suppression| {
            let message = format!("the suppression `{}` fits no finding", line.text);
            Diagnostic::warning(message).at(&line.file, line.span, "unused")
        };
        self.suppressions.iter().filter(unused).map(warning).collect()
    }
}

fn allowed(rule: Rule) -> By {
    By { means: Means::Allow, text: format!("--allow {}", rule.id()), file: None, line: 0, reason: None }
}

fn suppressed(line: &Suppression) -> By {
    By {
        means: Means::Suppressions,
        text: line.text.clone(),
        file: Some(line.file.path().to_string_lossy().into_owned()),
        line: line.file.line_col(line.span.start).line,
        reason: line.reason.clone(),
    }
}

fn of_baseline(file: &str) -> By {
    By { means: Means::Baseline, text: "the baseline".into(), file: Some(file.into()), line: 0, reason: None }
}

/// Counts hits.
#[derive(Default)]
struct Tally {
    all: Vec<Suppressor>,
    slots: FxHashMap<By, usize>,
}

impl Tally {
    fn slot(&mut self, by: By) -> usize {
        *self.slots.entry(by.clone()).or_insert_with(|| {
            self.all.push(Suppressor { by, hits: 0 });
            self.all.len() - 1
        })
    }

    fn hit(&mut self, slot: usize) {
        if let Some(suppressor) = self.all.get_mut(slot) {
            suppressor.hits += 1;
        }
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
