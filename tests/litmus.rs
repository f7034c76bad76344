//! The engine against verdicts computed by enumeration: small programs in Dat3M's litmus format, run on the emulator under
//! all schedules. A program that has no race in any execution must never be reported; of a racy one, just the pairs that
//! race must be.
//!
//! `tests/litmus/verdicts.txt` has what an enumerator of the PTX 9.1 axioms says, and behind `also` what the engine reports
//! beyond that, which is known. Memory is sequentially consistent here, which is enough to reach a racy execution of each.

use std::path::{Path, PathBuf};

use libtest_mimic::{Arguments, Failed, Trial};
use litmus::compile::Placing;
use litmus::run::{Options, Schedules, explore};
use litmus::verdicts::Verdicts;

/// The races of a program, under all schedules and under random ones.
fn check(folder: &Path, name: &str, verdicts: &Verdicts, placing: Placing) -> Result<(), Failed> {
    let text = std::fs::read_to_string(folder.join(format!("{name}.litmus")))?;
    let program = litmus::parse::parse(&text).map_err(|refused| refused.to_string())?;
    let options = Options { placing, ..Options::default() };
    let explored = match explore(&program, &options) {
        Ok(explored) => explored,
        // Lanes cannot do all that warps can.
        Err(_) if placing == Placing::Lanes => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let mut wrong = verdicts.check(name, &program, &explored);
    wrong.extend(explored.trouble.iter().cloned());
    if explored.cut {
        wrong.push("there are more schedules than that".into());
    }
    let random = explore(&program, &Options { schedules: Schedules::Random(200), ..options })?;
    if !random.states.is_subset(&explored.states)
        || random.races.keys().any(|r| !explored.races.contains_key(r))
    {
        wrong.push("a random schedule shows what all schedules do not".into());
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

fn main() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/litmus");
    let verdicts = Verdicts::read(&folder.join("verdicts.txt")).expect("verdicts");
    let mut trials = Vec::new();
    for name in verdicts.names() {
        for placing in [Placing::Warps, Placing::Lanes] {
            let (own, folder, verdicts) = (name.to_owned(), folder.clone(), verdicts.clone());
            let shown = format!("{name}::{}", if placing == Placing::Warps { "warps" } else { "lanes" });
            trials.push(Trial::test(shown, move || check(&folder, &own, &verdicts, placing)));
        }
    }
    let files = std::fs::read_dir(&folder).expect("the folder of programs").filter(|entry| {
        entry.as_ref().is_ok_and(|entry| entry.path().extension().is_some_and(|e| e == "litmus"))
    });
    assert_eq!(files.count(), verdicts.names().count(), "each program has a verdict");
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
