//! The engine against verdicts computed by enumeration: small programs in Dat3M's litmus format, run on the emulator under
//! all schedules. A program that has no race in any execution must never be reported; of a racy one, just the pairs that
//! race must be.
//!
//! `tests/litmus/verdicts.txt` has what an enumerator of the PTX 9.1 axioms says, and behind `also` what the engine reports
//! beyond that, which is known.

use std::path::{Path, PathBuf};

use libtest_mimic::{Arguments, Failed, Trial};
use litmus::compile::Placing;
use litmus::program::Program;
use litmus::run::{Explored, Options, Schedules, explore};
use litmus::verdicts::Verdicts;
use ptxrace::backend::MemoryOrder::{self, Sequential, Weak};

fn read(folder: &Path, name: &str) -> Result<Program, Failed> {
    let text = std::fs::read_to_string(folder.join(format!("{name}.litmus")))?;
    Ok(litmus::parse::parse(&text).map_err(|refused| refused.to_string())?)
}

fn complain(wrong: &[String]) -> Result<(), Failed> {
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

/// The races of a program, under all schedules and under random ones.
fn check(folder: &Path, name: &str, verdicts: &Verdicts, options: Options) -> Result<(), Failed> {
    let program = read(folder, name)?;
    let explored = match explore(&program, &options) {
        Ok(explored) => explored,
        // Lanes cannot do all that warps can.
        Err(error) if options.placing == Placing::Lanes && error.starts_with("lanes of a warp") => {
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    };
    let mut wrong = verdicts.check(name, &program, &explored, &options);
    wrong.extend(explored.trouble.iter().cloned());
    if explored.cut {
        wrong.push("there are more schedules than that".into());
    }
    let random = explore(&program, &Options { schedules: Schedules::Random(200), ..options })?;
    let new = |random: &Explored| random.races.keys().any(|race| !explored.races.contains_key(race));
    if !random.states.is_subset(&explored.states) || new(&random) {
        wrong.push("a random schedule shows what all schedules do not".into());
    }
    complain(&wrong)
}

/// Whether the question of a program is answered with yes. Those of store buffering, of message passing without fences and
/// of readers that disagree are so on weak memory alone.
fn answer(folder: &Path, name: &str, memory: MemoryOrder) -> Result<(), Failed> {
    let program = read(folder, name)?;
    let explored = explore(&program, &Options { memory, ..Options::default() })?;
    let expected = memory == Weak;
    if explored.holds(&program) == expected { Ok(()) } else { Err("it is not as expected".into()) }
}

fn main() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/litmus");
    let verdicts = Verdicts::read(&folder.join("verdicts.txt")).expect("verdicts");
    let mut trials = Vec::new();
    let ways = [
        ("warps", Placing::Warps, Sequential),
        ("lanes", Placing::Lanes, Sequential),
        ("weak", Placing::Warps, Weak),
        ("weak-lanes", Placing::Lanes, Weak),
    ];
    for name in verdicts.names() {
        for (way, placing, memory) in ways {
            let (own, folder, verdicts) = (name.to_owned(), folder.clone(), verdicts.clone());
            let options = Options { placing, memory, ..Options::default() };
            trials.push(Trial::test(format!("{name}::{way}"), move || {
                check(&folder, &own, &verdicts, options)
            }));
        }
    }
    for name in ["dekker-relaxed", "mp-relaxed-guarded", "iriw-acquire"] {
        for memory in [Sequential, Weak] {
            let folder = folder.clone();
            trials.push(Trial::test(format!("{name}::reached::{memory:?}"), move || {
                answer(&folder, name, memory)
            }));
        }
    }
    let files = std::fs::read_dir(&folder).expect("the folder of programs").filter(|entry| {
        entry.as_ref().is_ok_and(|entry| entry.path().extension().is_some_and(|e| e == "litmus"))
    });
    assert_eq!(files.count(), verdicts.names().count(), "each program has a verdict");
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
