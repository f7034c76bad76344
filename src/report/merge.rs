//! One report out of many: of ranks, shards, test programs.

use rustc_hash::FxHashMap;

use super::Report;
use crate::explain::{self, By, Explained, Policy, Suppressed, Suppressor};

/// Unites reports. Launches are numbered anew; findings of one fingerprint become one, with their counts added, as bad as
/// the worst of them; what any report lets count, counts.
pub fn merge(reports: Vec<Report>) -> Report {
    let mut merged = Report::default();
    let (mut findings, mut suppressed) = (United::default(), Vec::<Suppressed>::new());
    for mut report in reports {
        let first = u32::try_from(merged.launches.len()).unwrap_or(u32::MAX);
        let number: FxHashMap<_, _> =
            report.launches.iter().zip(first..).map(|(launch, number)| (launch.id, number)).collect();
        for launch in &mut report.launches {
            launch.id = number.get(&launch.id).copied().unwrap_or(launch.id);
        }
        let renumber = |finding: &mut Explained| {
            finding.launch = number.get(&finding.launch).copied().unwrap_or(finding.launch);
        };
        report.findings.iter_mut().for_each(renumber);
        report.suppressed.iter_mut().map(|suppressed| &mut suppressed.finding).for_each(renumber);
        merged.launches.append(&mut report.launches);
        report.findings.into_iter().for_each(|finding| findings.add(finding));
        suppressed.append(&mut report.suppressed);
        add(&mut merged.suppressors, report.suppressors);
        for new in report.incomplete {
            if !merged.incomplete.iter().any(|old| old.reason == new.reason && old.detail == new.detail) {
                merged.incomplete.push(new);
            }
        }
        merged.notes.append(&mut report.notes);
    }
    merged.suppressed = apart(suppressed, &findings);
    merged.findings = findings.told();
    explain::order(&mut merged.findings);
    merged.judge(&Policy::default());
    merged
}

/// Adds hits.
pub(super) fn add(all: &mut Vec<Suppressor>, new: Vec<Suppressor>) {
    let mut at: FxHashMap<_, _> = all.iter().enumerate().map(|(at, old)| (old.by.clone(), at)).collect();
    for new in new {
        let next = all.len();
        match all.get_mut(*at.entry(new.by.clone()).or_insert(next)) {
            Some(old) => old.hits += new.hits,
            None => all.push(new),
        }
    }
}

/// Findings by fingerprint, in the order in which they came.
#[derive(Default)]
struct United {
    /// With how many were united.
    all: Vec<(Explained, u64)>,
    at: FxHashMap<String, usize>,
}

impl United {
    fn add(&mut self, finding: Explained) {
        let next = self.all.len();
        let at = *self.at.entry(finding.fingerprint.clone()).or_insert(next);
        let Some((old, times)) = self.all.get_mut(at) else {
            self.all.push((finding, 1));
            return;
        };
        let count = old.count.saturating_add(finding.count);
        // The worse one is shown.
        if finding.severity > old.severity {
            *old = finding;
        }
        old.count = count;
        *times += 1;
    }

    /// The findings, each with a note of how many it stands for.
    fn told(self) -> Vec<Explained> {
        let told = |(mut finding, times): (Explained, u64)| {
            if times > 1 {
                let notes = &mut finding.diagnostic.notes;
                notes.retain(|note| !note.starts_with(MERGED));
                let note =
                    format!("{MERGED}{times} findings of this fingerprint, {} conflicts", finding.count);
                // The replay command stays the last note.
                notes.insert(notes.len().saturating_sub(1), note);
            }
            finding
        };
        self.all.into_iter().map(told).collect()
    }
}

const MERGED: &str = "merged: ";

/// Suppressed findings, each once for what suppresses it, without those that count elsewhere.
fn apart(all: Vec<Suppressed>, counting: &United) -> Vec<Suppressed> {
    let mut by: Vec<(By, United)> = Vec::new();
    let mut at = FxHashMap::default();
    for Suppressed { finding, by: what } in all {
        if counting.at.contains_key(&finding.fingerprint) {
            continue;
        }
        let next = by.len();
        let at = *at.entry(what.clone()).or_insert(next);
        if at == next {
            by.push((what, United::default()));
        }
        if let Some((_, united)) = by.get_mut(at) {
            united.add(finding);
        }
    }
    let each = |(by, united): (By, United)| {
        united.told().into_iter().map(move |finding| Suppressed { finding, by: by.clone() })
    };
    by.into_iter().flat_map(each).collect()
}
