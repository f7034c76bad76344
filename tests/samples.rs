//! The sample programs and the cases: each runs on the emulator and is compared with what its `[expect]` table says.
//!
//! Trials are named `FAMILY/PROGRAM`: `verdict`, `schedules` (several seeds), `modes` (the instrumented text gives the
//! records of a native run, and in bundles the same findings), `report` and `formats` (whole texts, compared with blessed files), `schemas` (what other programs read fits its schema). After an intended change
//! `PTXRACE_BLESS=1 cargo test --release --test samples` rewrites those; review them as any other change.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use common::{Recorded, blessed, judge, name, programs, record, record_single, records, root, within};
use jsonschema::Validator;
use libtest_mimic::{Arguments, Failed, Trial};
use ptxrace::abi::{Unit, decode};
use ptxrace::backend::emu::Emulator;
use ptxrace::backend::{LaunchEnd, RunOptions, Stop, WarpPosition};
use ptxrace::diag::Severity;
use ptxrace::explain::{Explained, rules};
use ptxrace::finding::Rule;
use ptxrace::instrument::{SiteId, bundle};
use ptxrace::report::{Report, Silent, Verdict};
use ptxrace::session::{self, Choice, Linked, Request};
use serde::Deserialize;
use serde_json::Value;

/// Seeds of the trials `schedules`.
const SEEDS: std::ops::Range<u64> = 0..8;

/// Formats that are blessed besides the text, and how their files end.
const FORMATS: [(&str, &str); 5] = [
    ("json", "json"),
    ("sarif", "sarif"),
    ("junit", "junit.xml"),
    ("github", "github.txt"),
    ("html", "html"),
];

/// Programs whose reports tell where a clock stopped them, which no two runs do alike.
const BY_THE_CLOCK: [&str; 1] = ["ptx-samples/invalid/endless-loop"];

/// The table `[expect]`; `ptx-samples/README.md` tells what its keys mean. Those that other tests read are checked for
/// their form only.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Expect {
    verdict: Option<String>,
    rule: Option<String>,
    object: Option<String>,
    kind: Option<String>,
    scope: Option<String>,
    also: Vec<String>,
    warnings: Vec<String>,
    schedule_dependent: bool,
    exit: Option<u8>,
    message: Option<String>,
    lines: Vec<u32>,
    flags: Vec<String>,
    confidence: Option<String>,
    #[serde(rename = "deterministic")]
    _deterministic: Vec<String>,
    #[serde(rename = "gpu")]
    _gpu: Option<bool>,
    #[serde(rename = "proxy")]
    _proxy: Option<String>,
}

impl Expect {
    /// Of a launch file, or of `NAME.expect.toml` where the launch file itself is what is wrong.
    fn of(launch: &Path) -> Self {
        #[derive(Deserialize)]
        struct File {
            expect: Expect,
        }
        let apart = launch.with_extension("expect.toml");
        let file = if apart.exists() { apart } else { launch.to_owned() };
        let text = std::fs::read_to_string(&file).expect("a launch file");
        toml::from_str::<File>(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display())).expect
    }
}

/// Runs a session in this process: under the schedule of a seed, or as users get it who ask for none.
fn run(launch: &Path, seed: Option<u64>) -> Result<Report, Failed> {
    let request = Request {
        file: within(launch).with_extension("ptx"),
        backend: Choice::Emulator,
        options: RunOptions { seed: seed.unwrap_or(0), ..RunOptions::default() },
        schedules: u64::from(seed.is_some()),
        command: "ptxrace".into(),
        ..Request::default()
    };
    let finished = session::run(&request, &Linked, &Silent);
    let said = |errors: Vec<ptxrace::diag::Diagnostic>| {
        errors.into_iter().map(|e| e.message).collect::<Vec<_>>().join("; ")
    };
    Ok(finished.map_err(said)?.report)
}

/// Runs a program by the command line.
fn ptxrace(launch: &Path, flags: &[String]) -> Result<(u8, String, String), Failed> {
    let file = within(launch).with_extension("ptx");
    let words = ["ptxrace".into(), "run".into(), file.into(), "--backend".into(), "emu".into()];
    common::ptxrace(words.into_iter().chain(flags.iter().map(OsString::from)))
}

/// One line for a finding.
fn told(finding: &Explained) -> String {
    let object = finding.object.as_ref().map_or("-", |object| &object.name);
    let kind = finding.kind.map_or("-", |kind| kind.name());
    format!("{} {} {object} {kind} {}", finding.severity.name(), finding.rule.id(), finding.relation.name())
}

fn all(report: &Report) -> String {
    let findings = report.findings.iter().map(told);
    let reasons = report.incomplete.iter().map(|i| format!("{}: {}", i.reason.name(), i.detail));
    format!("{}\n  {}", report.verdict.name(), findings.chain(reasons).collect::<Vec<_>>().join("\n  "))
}

/// The last identifier of the last `::` part of a name.
fn last_identifier(name: &str) -> &str {
    let last = name.rsplit("::").next().unwrap_or(name);
    let start = last.find(|c: char| c.is_alphabetic() || c == '_').unwrap_or(last.len());
    let rest = &last[start..];
    &rest[..rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())]
}

/// Whether a report says what the table does.
fn compare(report: &Report, expect: &Expect, warnings_too: bool) -> Result<(), Failed> {
    let wrong = |what: &str| Err(Failed::from(format!("{what}\nexpected {expect:?}\ngot {}", all(report))));
    let race = match expect.verdict.as_deref() {
        Some("race") => true,
        Some("clean") => false,
        _ => return wrong("the table has no `verdict`"),
    };
    if report.verdict != if race { Verdict::Race } else { Verdict::Clean } {
        return wrong("the verdict is wrong");
    }
    let of = |severity| report.findings.iter().filter(move |finding| finding.severity == severity);
    let errors = || of(Severity::Error);
    let fits = |finding: &&Explained| {
        let object = finding.object.as_ref().map(|object| last_identifier(&object.name));
        let same = |wanted: &Option<String>, is: Option<&str>| wanted.is_none() || wanted.as_deref() == is;
        same(&expect.rule, Some(finding.rule.id()))
            && same(&expect.object, object)
            && same(&expect.kind, finding.kind.map(|kind| kind.name()))
            && same(&expect.scope, Some(finding.relation.name()))
    };
    if race && !errors().any(|finding| fits(&finding)) {
        return wrong("the expected error is not there");
    }
    if let Some(rule) = &expect.rule
        && let Some(other) =
            errors().find(|f| f.rule.id() != rule && !expect.also.iter().any(|a| a == f.rule.id()))
    {
        return wrong(&format!("an unexpected error: {}", told(other)));
    }
    let mut warnings: Vec<_> = of(Severity::Warning).map(|finding| finding.rule.id()).collect();
    warnings.sort_unstable();
    warnings.dedup();
    if warnings_too && warnings != expect.warnings {
        return wrong(&format!("the warnings are {warnings:?}"));
    }
    Ok(())
}

/// How a case is to be looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    /// One of `ptx-samples/race` or `clean`: everything in its table holds.
    Sample,
    /// A case whose verdict nobody doubts.
    Firm,
    /// A case that is undefined by the model and harmless on devices, or a matter of policy: it has to run to its end,
    /// and its findings to stay as they were blessed.
    Doubtful,
}

fn verdict(launch: &Path, expect: &Expect, sort: Sort, seed: Option<u64>) -> Result<Report, Failed> {
    let report = run(launch, seed)?;
    match sort {
        Sort::Sample => compare(&report, expect, true)?,
        Sort::Firm => compare(&report, expect, false)?,
        Sort::Doubtful if report.incomplete.is_empty() => {}
        Sort::Doubtful => return Err(all(&report).into()),
    }
    Ok(report)
}

fn one_verdict(launch: &Path, expect: &Expect, sort: Sort) -> Result<(), Failed> {
    verdict(launch, expect, sort, None).map(drop)
}

fn schedules(launch: &Path, expect: &Expect, sort: Sort) -> Result<(), Failed> {
    let mut first = None;
    for seed in SEEDS {
        // How far apart the accesses of a case race may depend on the schedule, its verdict may not.
        let report = if sort == Sort::Firm {
            let report = run(launch, Some(seed))?;
            if Some(report.verdict.name()) != expect.verdict.as_deref() {
                return Err(format!("seed {seed}: {}", all(&report)).into());
            }
            report
        } else if expect.schedule_dependent {
            run(launch, Some(seed))?
        } else {
            let wrong = |e: Failed| format!("seed {seed}: {}", e.message().unwrap_or(""));
            verdict(launch, expect, sort, Some(seed)).map_err(wrong)?
        };
        // What is doubtful has to be of one severity under every schedule.
        let worst = report.findings.iter().map(|finding| finding.severity).max();
        if sort == Sort::Doubtful && *first.get_or_insert(worst) != worst {
            return Err(format!("seed {seed}: {}", all(&report)).into());
        }
    }
    Ok(())
}

/// The records of each warp, in any order, with those of its members for one of a bundle.
fn unbundled(run: &Recorded) -> BTreeMap<(usize, u32, u8), Vec<Vec<Unit>>> {
    let each = |units: &[Unit]| {
        let record = decode(units).expect("a record").expect("a record");
        if !record.is_bundle() {
            return vec![units.to_vec()];
        }
        let leader = run.sites.get(SiteId(record.site())).expect("its site");
        let mut members = Vec::new();
        bundle::expand(&record, leader.bundling.members(), &mut members);
        records(&members).into_iter().map(<[Unit]>::to_vec).collect()
    };
    let of_warp = |warp: Vec<&[Unit]>| {
        let mut all: Vec<_> = warp.into_iter().flat_map(each).collect();
        all.sort_by_key(|units| units.iter().map(|unit| (unit.lo, unit.hi)).collect::<Vec<_>>());
        all
    };
    by_warp(run).into_iter().map(|(warp, all)| (warp, of_warp(all))).collect()
}

/// What the engine finds, as far as the order in which loads of a thread come has no say in it.
fn found(run: &Recorded) -> BTreeSet<String> {
    let report = judge(&run.sites, &run.plan, &run.capture.launches);
    // Only native runs notice what no record tells of.
    let findings = report.findings.iter().filter(|finding| finding.rule < Rule::S003);
    findings.map(|finding| format!("{:?} {:?} {:?}", finding.rule, finding.severity, finding.kind)).collect()
}

/// The records of each warp of each launch, in its order.
fn by_warp(run: &Recorded) -> BTreeMap<(usize, u32, u8), Vec<&[Unit]>> {
    let mut warps: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (index, launch) in run.capture.launches.iter().enumerate() {
        for units in records(&launch.units) {
            let record = decode(units).expect("a record").expect("a record");
            warps.entry((index, record.block(), record.warp())).or_default().push(units);
        }
    }
    warps
}

fn modes(launch: &Path) -> Result<(), Failed> {
    for seed in 0..2 {
        let options = RunOptions { seed, ..RunOptions::default() };
        let native = record(launch, &mut Emulator::new(), &options)?;
        let instrumented = record_single(launch, &mut Emulator::instrumented(), &options)?;
        // Programs that deadlock do so in both modes, at the same place; only its span is of another text.
        let stop = |run: &Recorded| match &run.outcome.stop {
            None => "end".to_owned(),
            Some(Stop::Deadlock { warps }) => {
                let place =
                    |w: &WarpPosition| format!("{:?} {} {:#x} {}", w.block, w.warp, w.mask, w.waiting);
                format!("deadlock: {:?}", warps.iter().map(place).collect::<Vec<_>>())
            }
            Some(Stop::Unsupported { what, .. }) => format!("unsupported: {what}"),
            Some(stop) => format!("{stop:?}"),
        };
        if stop(&native) != stop(&instrumented) {
            return Err(
                format!("seed {seed}: {}, instrumented {}", stop(&native), stop(&instrumented)).into()
            );
        }
        let (a, b) = (by_warp(&native), by_warp(&instrumented));
        if !a.keys().eq(b.keys()) {
            return Err(format!("seed {seed}: records of other warps: {:?}, {:?}", a.keys(), b.keys()).into());
        }
        for ((warp, a), b) in a.iter().zip(b.values()) {
            let differs = a.iter().zip(b).position(|(a, b)| a != b);
            if let Some(at) = differs.or_else(|| (a.len() != b.len()).then_some(a.len().min(b.len()))) {
                return Err(format!(
                    "seed {seed}, launch, block, warp {warp:?}: record {at} is {:?}, instrumented {:?}",
                    a.get(at),
                    b.get(at)
                )
                .into());
            }
        }
        // Only native runs notice what no record tells of.
        let ends = |run: &Recorded| {
            let ends = run.capture.launches.iter().map(|launch| launch.end.clone());
            ends.map(|end| LaunchEnd { notices: Vec::new(), ..end }).collect::<Vec<_>>()
        };
        if ends(&native) != ends(&instrumented) {
            return Err(format!("seed {seed}: {:?}, {:?}", ends(&native), ends(&instrumented)).into());
        }
        if native.outcome.buffers != instrumented.outcome.buffers {
            return Err(format!("seed {seed}: the buffers differ").into());
        }
        let bundled = record(launch, &mut Emulator::instrumented(), &options)?;
        let has_stopped = native.outcome.stop.is_some();
        if !has_stopped && unbundled(&native) != unbundled(&bundled) {
            return Err(format!("seed {seed}: bundles do not stand for what their members log").into());
        }
        let (a, b) = (found(&native), found(&bundled));
        if a != b {
            return Err(format!("seed {seed}: found {a:?}, in bundles {b:?}").into());
        }
    }
    Ok(())
}

/// A whole report as text: what is printed, and for refused input what is said to standard error.
fn report(launch: &Path, expect: &Expect) -> Result<(), Failed> {
    let (_, out, err) = ptxrace(launch, &expect.flags)?;
    let text = out + &err;
    if text.contains(&*root().to_string_lossy()) {
        return Err(format!("an absolute path\n{text}").into());
    }
    blessed(&launch.with_extension("report.txt"), &text)
}

/// A blessed file of a program.
fn blessed_name(launch: &str, ending: &str) -> String {
    format!("{}.{ending}", launch.replace('/', "-"))
}

/// Every format of one run. Input that is refused has no report.
fn formats(launch: &Path, expect: &Expect) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let path = |ending: &str| folder.path().join(format!("report.{ending}"));
    let mut flags = expect.flags.clone();
    for (format, ending) in FORMATS {
        flags.extend(["--format", format, "--output"].map(String::from));
        flags.push(path(ending).display().to_string());
    }
    let (code, ..) = ptxrace(launch, &flags)?;
    for (format, ending) in FORMATS {
        let Ok(text) = std::fs::read_to_string(path(ending)) else {
            if code == ptxrace::cli::exit::USAGE {
                continue;
            }
            return Err(format!("exit code {code}, and no {format}").into());
        };
        let text = if format == "html" { body(&text)? } else { text };
        blessed(&root().join("tests/blessed").join(blessed_name(&name(launch), ending)), &text)?;
    }
    Ok(())
}

/// What differs between pages: all but style and script.
fn body(page: &str) -> Result<String, Failed> {
    let mut page = page.to_owned();
    for element in ["style", "script"] {
        let begin = page.find(&format!("<{element}>")).ok_or("no style or script")? + element.len() + 2;
        let end = page.find(&format!("</{element}>")).ok_or("no end of style or script")?;
        page.replace_range(begin..end, "");
    }
    Ok(page)
}

/// Every report fits its schema: the JSON report that of this repository, SARIF that of the standard.
fn schemas(launch: &Path, expect: &Expect) -> Result<(), Failed> {
    for (format, schema) in [("json", &JSON_SCHEMA), ("sarif", &SARIF_SCHEMA)] {
        let flags = ["--format", format].map(String::from);
        let (code, out, _) = ptxrace(launch, &[&expect.flags[..], &flags].concat())?;
        if code == 2 {
            continue;
        }
        let report: Value = serde_json::from_str(&out)?;
        let wrong: Vec<_> =
            schema.iter_errors(&report).map(|error| format!("{}: {error}", error.instance_path())).collect();
        if !wrong.is_empty() {
            return Err(format!("{format}: {}\n{out}", wrong.join("\n")).into());
        }
    }
    Ok(())
}

static JSON_SCHEMA: LazyLock<Validator> =
    LazyLock::new(|| validator(&json_of(&root().join("docs/report.schema.json"))));

/// The package that has types made from the schema of SARIF has the schema.
static SARIF_SCHEMA: LazyLock<Validator> = LazyLock::new(|| {
    let cargo = |words: &[&str]| {
        let ran = Command::new(env!("CARGO")).args(words).current_dir(root()).output().expect("cargo");
        String::from_utf8(ran.stdout).expect("text")
    };
    // Packages of other platforms may not be here.
    let version = cargo(&["-vV"]);
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).expect("a host");
    let words = ["metadata", "--format-version", "1", "--offline", "--locked", "--filter-platform", host];
    let metadata: Value = serde_json::from_str(&cargo(&words)).expect("JSON of cargo");
    let mut packages = metadata["packages"].as_array().expect("packages").iter();
    let package = packages.find(|package| package["name"] == "serde-sarif").expect("serde-sarif");
    let manifest = Path::new(package["manifest_path"].as_str().expect("a path"));
    let mut schema = json_of(&manifest.with_file_name("src").join("schema.json"));
    // This pattern closes a bracket that it does not open, which not every reader of patterns takes; no report has a language.
    for of in ["run", "toolComponent"] {
        let language = schema.pointer_mut(&format!("/definitions/{of}/properties/language"));
        language.and_then(Value::as_object_mut).expect("a property").remove("pattern");
    }
    validator(&schema)
});

fn json_of(file: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(file).expect("a file")).expect("JSON")
}

fn validator(schema: &Value) -> Validator {
    jsonschema::validator_for(schema).expect("a schema")
}

/// `docs/rules.md` says what `ptxrace explain` does.
fn rules_document() -> Result<(), Failed> {
    let mut out = String::from("# The rules\n\nWhat `ptxrace explain RULE` says, of all rules.\n");
    for rule in Rule::ALL {
        let text = rules::text(rule).ok_or("a rule has no text")?;
        out += &format!("\n## {}: {}\n\nSeverity: {}.\n", rule.id(), text.title, text.severity);
        out += &format!("\n{} {}\n\n```cuda\n{}\n```\n\n{}\n", text.what, text.why, text.example, text.fix);
    }
    blessed(&root().join("docs/rules.md"), &out)
}

/// The schemas are not empty: they refuse what is wrong.
fn schemas_refuse() -> Result<(), Failed> {
    let launch = root().join("ptx-samples/race/reduce-missing-sync.toml");
    for (format, schema, wrong) in [
        (
            "json",
            &JSON_SCHEMA,
            [("/verdict", "none"), ("/findings/0/accesses", "none"), ("/findings/0/rule", "R099")],
        ),
        (
            "sarif",
            &SARIF_SCHEMA,
            [("/version", "2.2"), ("/runs/0/results", "none"), ("/runs/0/results/0/level", "bad")],
        ),
    ] {
        let (_, out, _) = ptxrace(&launch, &["--format", format].map(String::from))?;
        let report: Value = serde_json::from_str(&out)?;
        for (place, value) in wrong {
            let mut report = report.clone();
            *report.pointer_mut(place).ok_or(place)? = value.into();
            if schema.is_valid(&report) {
                return Err(format!("{format}: {place} may be {value}").into());
            }
        }
    }
    Ok(())
}

/// Exit code, message and places of what cannot be run, or not to its end.
fn invalid(launch: &Path, expect: &Expect) -> Result<(), Failed> {
    let (code, out, err) = ptxrace(launch, &expect.flags)?;
    let text = out + &err;
    let exit = expect.exit.ok_or("the table has no `exit`")?;
    if code != exit {
        return Err(format!("exit code {code}, not {exit}\n{text}").into());
    }
    let file = within(launch).with_extension("ptx").display().to_string();
    let missing = |what: &str| Err(Failed::from(format!("`{what}` is not in\n{text}")));
    match &expect.message {
        Some(message) if !text.contains(message) => return missing(message),
        _ => {}
    }
    for line in &expect.lines {
        let place = format!("{file}:{line}:");
        if !text.contains(&place) {
            return missing(&place);
        }
    }
    if !expect.lines.is_empty() && text.matches("\nerror").count() + 1 != expect.lines.len() {
        return Err(format!("not {} errors\n{text}", expect.lines.len()).into());
    }
    Ok(())
}

/// The report in the README is that of the command above it.
fn readme() -> Result<(), Failed> {
    const COMMAND: &str = "cargo run --release -- run ptx-samples/race/reduce-missing-sync.ptx\n";
    let file = root().join("README.md");
    let text = std::fs::read_to_string(&file)?;
    if !text.contains(COMMAND) {
        return Err(format!("the first command is not `{COMMAND}`").into());
    }
    let block = |text: &str| {
        let heading = text.find("## What a report looks like")?;
        let start = heading + text[heading..].find("```text\n")? + "```text\n".len();
        Some(start..start + text[start..].find("```\n")?)
    };
    let place = block(&text).ok_or("there is no report")?;
    let (_, report, _) = ptxrace(&root().join("ptx-samples/race/reduce-missing-sync.toml"), &[])?;
    let mut now = text.clone();
    now.replace_range(place, &report);
    blessed(&file, &now)
}

/// Blessed files whose program has gone.
fn stale() -> Result<(), Failed> {
    fn walk(dir: &Path, out: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(dir).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() { walk(&path, out) } else { out.push(path) }
        }
    }
    let mut files = Vec::new();
    ["ptx-samples", "tests/cases", "tests/blessed"]
        .iter()
        .for_each(|dir| walk(&root().join(dir), &mut files));
    let ours = |launch: PathBuf| FORMATS.map(|(_, ending)| blessed_name(&name(&launch), ending));
    let formats: Vec<_> = programs("ptx-samples").into_iter().flat_map(ours).collect();
    let is_stale = |path: &PathBuf| {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        match file.strip_suffix(".report.txt") {
            Some(program) => !path.with_file_name(format!("{program}.ptx")).exists(),
            None => path.starts_with(root().join("tests/blessed")) && !formats.contains(&file.into_owned()),
        }
    };
    files.retain(is_stale);
    if files.is_empty() { Ok(()) } else { Err(format!("of no program: {files:?}").into()) }
}

fn main() {
    std::env::set_current_dir(root()).expect("the repository");
    let mut trials = vec![
        Trial::test("report/none-is-stale", stale),
        Trial::test("report/of-the-readme", readme),
        Trial::test("report/rules", rules_document),
        Trial::test("schemas/refuse", schemas_refuse),
    ];
    let mut add =
        |family: &str, launch: &Path, test: fn(&Path, &Expect, Sort) -> Result<(), Failed>, sort| {
            let (path, expect) = (launch.to_owned(), Expect::of(launch));
            trials
                .push(Trial::test(format!("{family}/{}", name(launch)), move || test(&path, &expect, sort)));
        };
    for folder in ["ptx-samples/race", "ptx-samples/clean", "ptx-samples/invalid", "tests/cases"] {
        for launch in programs(folder) {
            let short = name(&launch);
            let expect = Expect::of(&launch);
            let sort = match expect.confidence.as_deref() {
                Some("firm") => Sort::Firm,
                Some(_) => Sort::Doubtful,
                None => Sort::Sample,
            };
            if folder == "ptx-samples/invalid" {
                add("verdict", &launch, |path, expect, _| invalid(path, expect), sort);
            } else {
                add("verdict", &launch, one_verdict, sort);
                add("schedules", &launch, schedules, sort);
                add("modes", &launch, |path, _, _| modes(path), sort);
            }
            let sample = folder != "tests/cases" || sort == Sort::Doubtful;
            if sample && !BY_THE_CLOCK.contains(&short.as_str()) {
                add("report", &launch, |path, expect, _| report(path, expect), sort);
            }
            add("schemas", &launch, |path, expect, _| schemas(path, expect), sort);
            if folder != "tests/cases" && !BY_THE_CLOCK.contains(&short.as_str()) {
                add("formats", &launch, |path, expect, _| formats(path, expect), sort);
            }
        }
    }
    assert!(trials.len() > 450, "only {} trials", trials.len());
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
