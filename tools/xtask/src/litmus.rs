//! Litmus programs on the emulator: verdicts over all schedules, compared with those of a file or of an oracle, and random
//! programs against an oracle.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Parser;
use litmus::compile::{Placing, Rounds};
use litmus::generate::Size;
use litmus::oracle::{Disagreement, Oracle, compare, may_leave_out};
use litmus::program::Program;
use litmus::run::{Explored, Options, Schedules, explore};
use litmus::verdicts::Verdicts;
use litmus::{generate, shrink};
use ptxrace::backend::MemoryOrder;

/// Run litmus programs (Dat3M's format, PTX dialect) on the emulator and report their races.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask litmus")]
struct Args {
    /// Programs, or folders of them
    paths: Vec<PathBuf>,
    /// How many random schedules, or `all`
    #[arg(long, default_value = "all", value_parser = schedules)]
    schedules: Schedules,
    /// Let the threads of a block be lanes of one warp
    #[arg(long)]
    lanes: bool,
    /// Let reads see older writes, where the memory model allows it
    #[arg(long)]
    weak: bool,
    /// How often a thread takes a jump backwards
    #[arg(long, default_value_t = 1)]
    rounds: u32,
    /// Compare with an enumerator of executions: a Python module with the functions that `tools/litmus/src/oracle.py` calls
    #[arg(long, value_name = "PTXDRF.PY")]
    oracle: Option<PathBuf>,
    /// Seconds that the oracle may think about one program
    #[arg(long, default_value_t = 5.0)]
    patience: f64,
    /// Compare with verdicts: lines of a name, `DRF` or `RACY`, and what races
    #[arg(long, value_name = "FILE")]
    verdicts: Option<PathBuf>,
    /// Make so many random programs and compare them with the oracle
    #[arg(long, value_name = "N", requires = "oracle")]
    fuzz: Option<u64>,
    /// Seed of the first random program
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Threads of a random program at most, up to four
    #[arg(long, default_value_t = Size::default().threads)]
    threads: usize,
    /// Accesses of a thread of a random program at most
    #[arg(long, default_value_t = Size::default().each)]
    each: usize,
    /// Accesses of all its threads at most
    #[arg(long, default_value_t = Size::default().all)]
    accesses: usize,
    /// Folder for programs on which there is disagreement
    #[arg(long, default_value = "target/litmus")]
    out: PathBuf,
    /// Print final states, too
    #[arg(long)]
    states: bool,
    /// Print the random program of `--seed`, or the programs, and their PTX
    #[arg(long)]
    show: bool,
}

fn schedules(text: &str) -> Result<Schedules, String> {
    match text {
        "all" => Ok(Schedules::All { most: 1 << 20 }),
        number => number.parse().map(Schedules::Random).map_err(|_| "expected a number or `all`".into()),
    }
}

/// Runs the chore.
pub(crate) fn run(args: &[&str]) -> Result<(), String> {
    let args = Args::parse_from(std::iter::once("cargo xtask litmus").chain(args.iter().copied()));
    let options = Options {
        schedules: args.schedules,
        placing: if args.lanes { Placing::Lanes } else { Placing::Warps },
        rounds: Rounds(args.rounds),
        memory: if args.weak { MemoryOrder::Weak } else { MemoryOrder::Sequential },
    };
    let mut oracle = match &args.oracle {
        Some(path) => Some(Oracle::start(path, args.patience)?),
        None => None,
    };
    match (args.fuzz, &mut oracle) {
        (Some(count), Some(oracle)) => fuzz(&args, &options, count, oracle),
        _ => programs(&args, &options, oracle.as_mut()),
    }
}

fn programs(args: &Args, options: &Options, mut oracle: Option<&mut Oracle>) -> Result<(), String> {
    let verdicts = match &args.verdicts {
        Some(file) => Some(Verdicts::read(file)?),
        None => None,
    };
    let (mut count, mut wrong) = (0, 0);
    for path in files(&args.paths)? {
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let program = match litmus::parse::parse(&text) {
            Ok(program) => program,
            Err(refused) => {
                println!("{name:32} SKIP {refused}");
                continue;
            }
        };
        if args.show {
            println!(
                "{program}\n{}",
                litmus::compile::compile(&program, options.placing, options.rounds)?.text
            );
        }
        let explored = match explore(&program, options) {
            Ok(explored) => explored,
            Err(error) => {
                println!("{name:32} SKIP {error}");
                continue;
            }
        };
        count += 1;
        let mut complaints: Vec<String> = explored.trouble.iter().cloned().collect();
        if let Some(verdicts) = &verdicts {
            complaints.extend(verdicts.check(&name, &program, &explored, options));
        }
        if let Some(oracle) = oracle.as_deref_mut() {
            let answer = oracle.ask(&program)?;
            if let Some(reason) = &answer.skipped {
                complaints.push(format!("the oracle has no verdict: {reason}"));
            }
            complaints.extend(compare(&program, &explored, &answer, options).iter().map(describe));
        }
        print(&name, &program, &explored, args.states);
        for complaint in &complaints {
            println!("    DISAGREES: {complaint}");
        }
        wrong += usize::from(!complaints.is_empty());
    }
    println!("{count} programs, {wrong} with disagreement");
    if wrong == 0 { Ok(()) } else { Err(format!("{wrong} programs with disagreement")) }
}

fn print(name: &str, program: &Program, explored: &Explored, states: bool) {
    let verdict = explored.verdict().map_or("none".to_owned(), |verdict| verdict.to_string());
    let Explored { complete, incomplete, racy, cut, .. } = explored;
    let more = if *cut { ", and there are more" } else { "" };
    let answer = if explored.holds(program) { "holds" } else { "does not hold" };
    println!(
        "{name:32} {verdict:4} [racy {racy} / {complete}, {incomplete} incomplete{more}] {} {answer}",
        program.question
    );
    for (race, count) in &explored.races {
        println!("    {} ({count})", race.show(program));
    }
    if states {
        for state in &explored.states {
            println!("    {}", program.show_state(state));
        }
    }
}

fn describe(disagreement: &Disagreement) -> String {
    format!("{}: {}", disagreement.kind(), disagreement.detail())
}

/// The programs under some paths, sorted.
fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for path in paths {
        if path.is_dir() {
            let entries = std::fs::read_dir(path).map_err(|error| format!("{}: {error}", path.display()))?;
            let inside: Vec<PathBuf> =
                entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
            let wanted = |path: &PathBuf| path.is_dir() || path.extension().is_some_and(|e| e == "litmus");
            found.extend(files(&inside.into_iter().filter(wanted).collect::<Vec<_>>())?);
        } else {
            found.push(path.clone());
        }
    }
    found.sort();
    Ok(found)
}

/// What random programs gave.
#[derive(Debug, Default)]
struct Tally {
    programs: u64,
    racy: u64,
    skipped: BTreeMap<String, u64>,
    /// Racy, but only on memory weaker than the emulator's.
    weak_only: u64,
    /// Sequentially consistent pairs that race, and how many of them were named.
    pairs: (u64, u64),
    runs: u64,
    /// Final states that the model allows, and how many of them were reached.
    states: (u64, u64),
    disagreements: BTreeMap<&'static str, u64>,
}

fn fuzz(args: &Args, options: &Options, count: u64, oracle: &mut Oracle) -> Result<(), String> {
    let mut tally = Tally::default();
    let start = Instant::now();
    let size = Size { threads: args.threads, each: args.each.max(1), all: args.accesses };
    for seed in args.seed..args.seed.saturating_add(count) {
        let program = generate::program(seed, size);
        if args.show {
            println!("{program}");
        }
        let Some(found) = examine(&program, options, oracle, &mut tally)? else { continue };
        let kinds: Vec<&str> = found.iter().map(Disagreement::kind).collect();
        let small = shrink::shrink(&program, |candidate| {
            let again = examine(candidate, options, oracle, &mut Tally::default());
            again.ok().flatten().is_some_and(|found| found.iter().any(|d| kinds.contains(&d.kind())))
        });
        for kind in kinds {
            *tally.disagreements.entry(kind).or_default() += 1;
        }
        report(&args.out, &small, options, oracle)?;
    }
    println!("{tally:#?}\n{:.0} s", start.elapsed().as_secs_f64());
    if tally.disagreements.is_empty() { Ok(()) } else { Err("there are disagreements".into()) }
}

/// The disagreements about one program, if there are any.
fn examine(
    program: &Program,
    options: &Options,
    oracle: &mut Oracle,
    tally: &mut Tally,
) -> Result<Option<std::collections::BTreeSet<Disagreement>>, String> {
    tally.programs += 1;
    let mut skip = |why: String| {
        *tally.skipped.entry(why).or_default() += 1;
        Ok(None)
    };
    if may_leave_out(program) {
        return skip("a write before a loop, which the oracle may leave out".into());
    }
    let explored = match explore(program, options) {
        Ok(explored) => explored,
        Err(error) => return skip(error),
    };
    if explored.cut {
        return skip("too many schedules".into());
    }
    let answer = oracle.ask(program)?;
    if let Some(reason) = &answer.skipped {
        return skip(reason.clone());
    }
    tally.runs += explored.complete + explored.incomplete + explored.redundant;
    let sc = answer.races.values().filter(|sc| **sc).count() as u64;
    let named: Vec<String> =
        explored.races.keys().map(|race| litmus::oracle::name_of(race, program)).collect();
    let named = answer.races.iter().filter(|(race, sc)| **sc && named.contains(race)).count() as u64;
    tally.racy += u64::from(!answer.races.is_empty());
    tally.weak_only += u64::from(sc == 0 && !answer.races.is_empty());
    tally.pairs = (tally.pairs.0 + sc, tally.pairs.1 + named);
    tally.states.0 += answer.states.len() as u64;
    tally.states.1 += explored.states.len() as u64;
    let found = compare(program, &explored, &answer, options);
    Ok((!found.is_empty()).then_some(found))
}

fn report(folder: &Path, program: &Program, options: &Options, oracle: &mut Oracle) -> Result<(), String> {
    let explored = explore(program, options)?;
    let answer = oracle.ask(program)?;
    let found = compare(program, &explored, &answer, options);
    std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    let file = folder.join(format!("{}.litmus", program.name));
    std::fs::write(&file, program.to_string()).map_err(|error| error.to_string())?;
    println!("{}\n{program}", file.display());
    for disagreement in &found {
        println!("    {}", describe(disagreement));
    }
    println!("    oracle: {:?}", answer.races);
    print("    emulator:", program, &explored, false);
    Ok(())
}
