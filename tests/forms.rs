//! What the table says of every instruction form, as a listing to read: `PTXRACE_BLESS=1` writes it anew.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use libtest_mimic::{Arguments, Failed, Trial};
use ptxrace::isa::classify;
use ptxrace::ptx::ast::{Block, Statement};
use ptxrace::ptx::parse;

/// Each form with its effects, sorted: more than one where the kinds of operands decide.
fn listing(text: &str) -> String {
    let parsed = parse(text);
    let mut forms: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for function in parsed.module.functions() {
        if let Some(body) = &function.body {
            block(body, &mut forms);
        }
    }
    let mut out = String::new();
    for (form, effects) in forms {
        let _ = writeln!(out, "{form}");
        for effect in effects {
            let _ = writeln!(out, "    {effect}");
        }
    }
    out
}

fn block(body: &Block<'_>, forms: &mut BTreeMap<String, BTreeSet<String>>) {
    for statement in &body.statements {
        match statement {
            Statement::Block(inner) => block(inner, forms),
            Statement::Instruction(instruction) => {
                let classified = classify(instruction);
                let mut effect = format!("{:?}", classified.effect);
                if let Some(word) = classified.unknown {
                    let _ = write!(effect, ", but `.{}` is not known", word.text);
                }
                let form = format!("{} /{}", instruction.full_opcode(), instruction.operands.len());
                forms.entry(form).or_default().insert(effect);
            }
            _ => {}
        }
    }
}

fn check(path: &Path) -> Result<(), Failed> {
    let text = fs::read_to_string(path)?;
    let listing = listing(&text);
    if listing.lines().count() < 10 {
        return Err("hardly any form was found".into());
    }
    let blessed = path.with_extension("effects.txt");
    if std::env::var_os("PTXRACE_BLESS").is_some() {
        fs::write(&blessed, listing)?;
        return Ok(());
    }
    let expected = fs::read_to_string(&blessed).map_err(|error| format!("{}: {error}", blessed.display()))?;
    let differs = listing.lines().zip(expected.lines()).find(|(now, then)| now != then);
    match differs {
        Some((now, then)) => Err(format!("it is\n{now}\nand was\n{then}").into()),
        None if listing.lines().count() != expected.lines().count() => Err("forms came or went".into()),
        None => Ok(()),
    }
}

fn main() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/forms/isa");
    let entries = fs::read_dir(folder).expect("the forms");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    for listing in files.iter().filter(|path| path.extension().is_some_and(|extension| extension == "txt")) {
        let source = listing.with_extension("").with_extension("ptx");
        assert!(source.exists(), "{} has no forms", listing.display());
    }
    files.retain(|path| path.extension().is_some_and(|extension| extension == "ptx"));
    files.sort();
    assert!(files.len() >= 6, "only {} files of forms", files.len());
    let trials = files.into_iter().map(|path| Trial::test(common::name(&path), move || check(&path)));
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit();
}
