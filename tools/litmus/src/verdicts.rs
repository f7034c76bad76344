//! Verdicts in a file: a line for each program with its name, `DRF` or `RACY`, and in quotes what races, such as
//! `'weak-weak x'`. `WEAK-ONLY` says that it takes weak memory to see that. The rest of a line is for people.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use ptxrace::backend::MemoryOrder;

use crate::program::Program;
use crate::run::{Explored, Options, Race, Verdict};

/// What is expected of programs.
#[derive(Clone, Debug, Default)]
pub struct Verdicts(BTreeMap<String, Expected>);

#[derive(Clone, Debug)]
struct Expected {
    verdict: Verdict,
    pairs: BTreeSet<String>,
    weak_only: bool,
}

impl Verdicts {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Self::parse(&text).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Reads a text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut verdicts = BTreeMap::new();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let mut words = line.split_whitespace();
            let name = words.next().unwrap_or_default().to_owned();
            let verdict = match words.next() {
                Some("DRF") => Verdict::Drf,
                Some("RACY") => Verdict::Racy,
                _ => return Err(format!("line {}: expected `DRF` or `RACY`", number + 1)),
            };
            let pairs = line.split('\'').skip(1).step_by(2).map(str::to_owned).collect();
            let weak_only = line.ends_with(" WEAK-ONLY");
            verdicts.insert(name, Expected { verdict, pairs, weak_only });
        }
        Ok(Self(verdicts))
    }

    /// Names of programs.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// What is wrong with what a program gave, under these options; one sentence each.
    pub fn check(
        &self,
        name: &str,
        program: &Program,
        explored: &Explored,
        options: &Options,
    ) -> Vec<String> {
        let Some(Expected { verdict, pairs, weak_only }) = self.0.get(name) else {
            return vec!["there is no verdict".into()];
        };
        let (mut verdict, mut pairs) = (*verdict, pairs.clone());
        if *weak_only && options.memory == MemoryOrder::Sequential {
            (verdict, pairs) = (Verdict::Drf, BTreeSet::new());
        }
        let mut wrong = Vec::new();
        if explored.verdict() != Some(verdict) {
            let found = explored.verdict().map_or("none".to_owned(), |found| found.to_string());
            wrong.push(format!("expected {verdict}, found {found}"));
        }
        let named = |race: &Race| {
            let place = program.locations.get(race.at).map_or("?", |(name, _)| name);
            format!("{} {place}", race.kind(program))
        };
        let found: BTreeSet<String> = explored.races.keys().map(named).collect();
        if found != pairs {
            wrong.push(format!("expected races {pairs:?}, found {found:?}"));
        }
        wrong
    }
}
