//! Reports as other programs read them: SARIF by types made from its schema (`tests/samples.rs` has the schema), JUnit by its structure, JSON by ptxrace
//! itself. Whole reports of samples are compared in `tests/samples.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use ptxrace::backend::RunOptions;
use ptxrace::diag::{Diagnostic, Severity};
use ptxrace::explain::Policy;
use ptxrace::report::{
    Folders, Format, Incomplete, Output, Reason, Report, Silent, Style, Verdict, merge, read, write,
    write_summary,
};
use ptxrace::session::{self, Choice, Linked, Request};
use ptxrace::span::SourceFile;
use serde_json::Value;

const RACE: &str = "ptx-samples/race/reduce-missing-sync.ptx";

/// One of each shape: between blocks, barriers, lanes of unrolled loops, copies, launches, none, inconclusive.
const SAMPLES: [&str; 9] = [
    RACE,
    "ptx-samples/race/publish-no-fence.ptx",
    "ptx-samples/race/barrier-divergence.ptx",
    "ptx-samples/race/async-no-wait.ptx",
    "ptx-samples/race/streams-unordered.ptx",
    "ptx-samples/clean/warp-reduce-volatile.ptx",
    "ptx-samples/clean/reduce.ptx",
    "ptx-samples/invalid/unknown-instruction.ptx",
    "ptx-samples/invalid/out-of-bounds.ptx",
];

fn run(file: &str) -> Report {
    let request = Request {
        file: file.into(),
        backend: Choice::Emulator,
        options: RunOptions::default(),
        command: format!("ptxrace run {file}"),
        ..Request::default()
    };
    session::run(&request, &Linked, &Silent).expect("a program").report
}

fn text(report: &Report, format: Format) -> String {
    let mut bytes = Vec::new();
    write(report, &mut [Output { format, style: Style::default(), to: &mut bytes }]).expect("a writer");
    String::from_utf8(bytes).expect("text")
}

fn again(report: &Report) -> Report {
    read(&SourceFile::new("report.json", text(report, Format::Json)).expect("a text")).expect("a report")
}

/// Texts that formats have to escape, and far too much of everything.
fn hostile() -> Report {
    let mut report = run(RACE);
    let odd = "100% ]]> <a href=\"x\">|`\u{1b}[31m\u{0}\r\n::error::no,: é\u{1f600} ";
    let finding = &mut report.findings[0];
    finding.diagnostic.message = odd.repeat(200);
    finding.missing = odd.into();
    for access in &mut finding.accesses {
        access.text = odd.into();
        access.kernel = odd.into();
        access.place.file = "folder with blanks/100%#[é].cu".into();
        access.ptx.file = "/elsewhere/a:b?.ptx".into();
    }
    if let Some(object) = &mut finding.object {
        object.name = odd.into();
    }
    for event in &mut finding.timeline.events {
        (event.text, event.op, event.at) = (odd.into(), odd.into(), odd.into());
    }
    finding.timeline.edges.iter_mut().for_each(|edge| edge.text = odd.into());
    finding.timeline.lanes.iter_mut().for_each(|lane| lane.title = odd.into());
    report.launches[0].kernel = odd.into();
    let diagnostic = Diagnostic::warning(odd);
    report.incomplete.push(Incomplete { reason: Reason::Device, detail: odd.into(), diagnostic });
    report.notes.push(Diagnostic::warning(odd));
    report
}

/// What types made from the schema of SARIF read; they keep nothing that they do not know.
fn by_schema(own: &Value) -> Result<Value, serde_json::Error> {
    serde_json::from_value::<serde_sarif::sarif::Sarif>(own.clone()).and_then(serde_json::to_value)
}

/// The run of a report, which fits the schema.
fn sarif(report: &Report) -> Value {
    let own: Value = serde_json::from_str(&text(report, Format::Sarif)).expect("JSON");
    assert_eq!(by_schema(&own).expect("SARIF"), own, "the schema has something else");
    own["runs"][0].clone()
}

#[test]
fn the_check_sees_what_does_not_fit_the_schema() {
    let own: Value = serde_json::from_str(&text(&run(RACE), Format::Sarif)).expect("JSON");
    let mut unknown = own.clone();
    unknown["runs"][0]["results"][0]["colour"] = "red".into();
    assert_ne!(by_schema(&unknown).expect("SARIF"), unknown);
    for (place, wrong) in [
        ("/runs/0/results/0/message", Value::Null),
        ("/runs/0/results/0/occurrenceCount", "many".into()),
        ("/runs/0/tool/driver/name", Value::Null),
        ("/runs/0/invocations/0/executionSuccessful", "yes".into()),
    ] {
        let mut own = own.clone();
        *own.pointer_mut(place).expect(place) = wrong;
        assert!(by_schema(&own).is_err(), "{place}");
    }
}

#[test]
fn sarif_fits_its_schema() {
    for file in SAMPLES {
        let report = run(file);
        let run = sarif(&report);
        let rules = run["tool"]["driver"]["rules"].as_array().expect("rules");
        for result in run["results"].as_array().expect("results") {
            let rule = &rules[result["ruleIndex"].as_u64().expect("an index") as usize];
            assert_eq!(rule["id"], result["ruleId"], "{file}");
            let flows = result["codeFlows"][0]["threadFlows"].as_array().expect("flows");
            let related = result["relatedLocations"].as_array().map_or(0, Vec::len);
            assert!(!flows.is_empty() && flows.len() <= related + 1, "{file}");
            let uri = &result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
            assert!(Path::new(uri.as_str().expect("a uri")).exists(), "{file}: {uri}");
        }
        assert_eq!(run["results"].as_array().map_or(0, Vec::len) > 0, !report.findings.is_empty(), "{file}");
        let invocation = &run["invocations"][0];
        assert_eq!(invocation["executionSuccessful"], report.incomplete.is_empty(), "{file}");
        let reasons = invocation["toolExecutionNotifications"].as_array().map_or(0, Vec::len);
        assert_eq!(reasons, report.incomplete.len(), "{file}");
    }
}

#[test]
fn sarif_stays_within_the_limits_of_github() {
    let mut report = hostile();
    report.folders = Folders { current: "/repo/a".into(), root: "/repo".into() };
    let run = sarif(&report);
    let result = &run["results"][0];
    let length = |text: &Value| text.as_str().expect("a text").chars().count();
    assert_eq!(length(&result["message"]["text"]), 1024);
    assert!(result["message"]["text"].as_str().is_some_and(|text| text.ends_with(" characters in all)")));
    let uri = &result["locations"][0]["physicalLocation"]["artifactLocation"];
    assert_eq!(uri["uri"], "a/folder%20with%20blanks/100%25%23%5B%C3%A9%5D.cu");
    let uri = &result["relatedLocations"][1]["physicalLocation"]["artifactLocation"];
    assert_eq!(uri["uri"], "file:///elsewhere/a%3Ab%3F.ptx");
    assert!(uri.get("uriBaseId").is_none());

    let one = report.findings.remove(0);
    for n in 0..25_003 {
        let mut finding = one.clone();
        // Without source lines, each finding is one of its own.
        finding.accesses.iter_mut().for_each(|access| access.source.clear());
        finding.fingerprint = format!("{:016x}", n / 2);
        report.findings.push(finding);
    }
    let text = text(&report, Format::Sarif);
    let own: Value = serde_json::from_str(&text).expect("JSON");
    let run = &own["runs"][0];
    assert_eq!(run["results"].as_array().map(Vec::len), Some(25_000));
    let print = |n: usize| &run["results"][n]["partialFingerprints"]["primaryLocationLineHash"];
    assert_eq!((print(2), print(3)), (&"0000000000000001:1".into(), &"0000000000000001:2".into()));
    let notes = run["invocations"][0]["toolExecutionNotifications"].to_string();
    assert!(notes.contains("3 more findings are left out"), "{notes}");
}

/// An element of a JUnit file: its name, the elements it may be in, the attributes it must have, and those it may have besides.
type Element = (&'static str, &'static [&'static str], &'static [&'static str], &'static [&'static str]);

/// What is written of that which Jenkins' schema (junit-10.xsd) takes, and what it demands, or CI systems do.
const JUNIT: [Element; 7] = [
    ("testsuites", &[], &["name", "tests", "failures", "errors"], &[]),
    ("testsuite", &["testsuites"], &["name", "tests", "failures", "errors"], &["skipped"]),
    ("testcase", &["testsuite"], &["name", "classname"], &[]),
    ("failure", &["testcase"], &["message", "type"], &[]),
    ("error", &["testcase"], &["message", "type"], &[]),
    ("skipped", &["testcase"], &["message"], &[]),
    ("system-out", &["testsuite"], &[], &[]),
];

/// How often each element occurs. Numbers of tests have to be those that are there.
fn junit(report: &Report) -> BTreeMap<String, u64> {
    use quick_xml::events::Event;
    let text = text(report, Format::Junit);
    let mut reader = quick_xml::Reader::from_str(&text);
    let (mut open, mut counts) = (Vec::<String>::new(), BTreeMap::new());
    let mut stated = BTreeMap::new();
    loop {
        let event = reader.read_event().expect("XML");
        let (start, ends) = match &event {
            Event::Start(start) => (start, false),
            Event::Empty(start) => (start, true),
            Event::End(_) => {
                open.pop();
                continue;
            }
            Event::Eof => break,
            _ => continue,
        };
        let name = String::from_utf8_lossy(start.name().as_ref()).into_owned();
        let (_, parents, required, optional) =
            JUNIT.iter().find(|(known, ..)| *known == name).expect("an element of JUnit");
        let parent = open.last().map(String::as_str);
        assert!(
            parent.is_none_or(|parent| parents.contains(&parent)) && parent.is_none() == parents.is_empty()
        );
        let attributes: BTreeMap<_, _> = start
            .attributes()
            .map(|attribute| attribute.expect("an attribute"))
            .map(|a| {
                (
                    String::from_utf8_lossy(a.key.as_ref()).into_owned(),
                    String::from_utf8_lossy(&a.value).into_owned(),
                )
            })
            .collect();
        assert!(required.iter().all(|wanted| attributes.contains_key(*wanted)), "{name}: {attributes:?}");
        let known = |attribute: &String| required.iter().chain(*optional).any(|known| known == attribute);
        assert!(attributes.keys().all(known), "{name}: {attributes:?}");
        if name == "testsuites" {
            stated = attributes;
        }
        *counts.entry(name.clone()).or_insert(0) += 1;
        if !ends {
            open.push(name);
        }
    }
    for (attribute, element) in [("tests", "testcase"), ("failures", "failure"), ("errors", "error")] {
        let count = counts.get(element).copied().unwrap_or(0).to_string();
        assert_eq!(stated.get(attribute), Some(&count), "{attribute} in\n{text}");
    }
    counts
}

#[test]
fn junit_has_its_structure() {
    for file in SAMPLES {
        let report = run(file);
        let counts = junit(&report);
        let count = |element: &str| counts.get(element).copied().unwrap_or(0);
        assert_eq!(count("failure") > 0, report.count(Severity::Error) > 0, "{file}");
        assert_eq!(count("error"), report.incomplete.len() as u64, "{file}");
        assert_eq!(count("system-out") > 0, report.count(Severity::Warning) > 0, "{file}");
        // A CI system takes a file in which nothing failed for a run that is clean.
        let red = count("failure") + count("error") > 0;
        assert_eq!(red, report.verdict != Verdict::Clean, "{file}");
    }
    let counts = junit(&hostile());
    assert_eq!((counts.get("failure"), counts.get("error")), (Some(&1), Some(&1)));
}

#[test]
fn workflow_commands_stay_on_their_lines() {
    for report in SAMPLES.map(run).into_iter().chain([hostile()]) {
        let text = text(&report, Format::Github);
        for line in text.lines() {
            let summary = line == report.summary();
            let command =
                ["::error ", "::warning ", "::notice "].iter().find(|start| line.starts_with(**start));
            assert!(summary || command.is_some_and(|start| line[start.len()..].contains("::")), "{line}");
        }
        let errors = text.lines().filter(|line| line.starts_with("::error ")).count();
        assert_eq!(errors > 0, report.verdict != Verdict::Clean, "{text}");
        let mut summary = Vec::new();
        write_summary(&report, &mut summary).expect("a writer");
        let rows =
            String::from_utf8(summary).expect("text").lines().filter(|line| line.starts_with("| ")).count();
        assert_eq!(rows > 2, !report.findings.is_empty());
    }
}

/// Elements of a page that have no end.
const VOID: [&str; 2] = ["meta", "input"];

/// The elements of a page, each as often as it occurs. Elements are nested, ids are told apart, links lead to them.
fn page(report: &Report) -> BTreeMap<String, u64> {
    use quick_xml::events::Event;
    let mut text = text(report, Format::Html);
    assert!(text.starts_with("<!DOCTYPE html><html lang=\"en\">"), "{text}");
    for outside in ["http:", "https:", "src=", "url(", "@import", "<link"] {
        assert!(!text.contains(outside), "{outside} in\n{text}");
    }
    for own in ["style", "script"] {
        let (begin, end) = (text.find(&format!("<{own}>")), text.find(&format!("</{own}>")));
        text.replace_range(begin.expect(own) + own.len() + 2..end.expect(own), "");
    }
    let odd = text.chars().find(|c| (c.is_control() && !"\n\t".contains(*c)) || *c == '\u{202e}');
    assert_eq!(odd, None, "{text}");
    let mut reader = quick_xml::Reader::from_str(&text);
    reader.config_mut().check_end_names = false;
    let (mut open, mut counts) = (Vec::<String>::new(), BTreeMap::new());
    let (mut ids, mut links) = (BTreeSet::new(), BTreeSet::new());
    loop {
        let start = match reader.read_event().expect("markup") {
            Event::Start(start) => start,
            Event::End(end) => {
                let name = String::from_utf8_lossy(end.name().as_ref()).into_owned();
                assert_eq!(open.pop(), Some(name), "{text}");
                continue;
            }
            Event::Empty(_) => panic!("an element ends as in XML\n{text}"),
            Event::Eof => break,
            _ => continue,
        };
        let name = String::from_utf8_lossy(start.name().as_ref()).into_owned();
        for attribute in start.html_attributes() {
            let attribute = attribute.expect("an attribute");
            let value = String::from_utf8_lossy(&attribute.value).into_owned();
            match attribute.key.as_ref() {
                b"id" => assert!(ids.insert(value.clone()), "two elements are `{value}`"),
                b"href" => drop(links.insert(value.strip_prefix('#').expect("a link within").to_owned())),
                b"aria-labelledby" => drop(links.insert(value)),
                key => assert!(!key.starts_with(b"on"), "{value}"),
            }
        }
        *counts.entry(name.clone()).or_insert(0) += 1;
        if !VOID.contains(&name.as_str()) {
            open.push(name);
        }
    }
    assert_eq!(open, [""; 0]);
    assert_eq!(links.difference(&ids).collect::<Vec<_>>(), [""; 0]);
    counts
}

#[test]
fn pages_are_whole_and_ask_for_nothing() {
    let samples = SAMPLES.into_iter().chain([
        "ptx-samples/race/publish-no-barrier-after.ptx",
        "ptx-samples/race/async-wait-count.ptx",
        "ptx-samples/race/syncwarp-mask-too-small.ptx",
    ]);
    for file in samples {
        let report = run(file);
        let page = page(&report);
        let count = |element: &str| page.get(element).copied().unwrap_or(0);
        assert_eq!((count("h1"), count("main"), count("style"), count("script")), (1, 1, 1, 1), "{file}");
        assert_eq!(count("svg") > 0, !report.findings.is_empty(), "{file}");
        assert_eq!(count("form"), u64::from(!report.findings.is_empty()), "{file}");
    }
}

/// Whatever names and texts hold, they add no element to a page.
#[test]
fn texts_are_no_elements_of_pages() {
    let plain = hostile();
    let mut harmless = plain.clone();
    let tame = |text: &mut String| *text = text.replace(['<', '>', '&', '"', '\''], "x");
    let finding = &mut harmless.findings[0];
    tame(&mut finding.diagnostic.message);
    tame(&mut finding.missing);
    finding.accesses.iter_mut().for_each(|access| tame(&mut access.text));
    finding.accesses.iter_mut().for_each(|access| tame(&mut access.kernel));
    finding.object.iter_mut().for_each(|object| tame(&mut object.name));
    tame(&mut harmless.launches[0].kernel);
    harmless.incomplete.iter_mut().for_each(|incomplete| tame(&mut incomplete.detail));
    harmless.notes.iter_mut().for_each(|note| tame(&mut note.message));
    assert_eq!(page(&plain), page(&harmless));
}

#[test]
fn pages_say_what_they_leave_out() {
    let mut report = run(RACE);
    let one = report.findings.remove(0);
    for line in 1..=300 {
        let mut finding = one.clone();
        finding.accesses.iter_mut().for_each(|access| access.source.iter_mut().for_each(|at| at.line = line));
        report.findings.push(finding);
    }
    let counts = page(&report);
    assert_eq!(counts.get("svg"), Some(&400));
    let text = text(&report, Format::Html);
    assert!(text.contains("drawn for the first 200 of 300 findings"), "{text}");
    assert_eq!(text.matches("<details class=\"finding\"").count(), 300);
}

#[test]
fn what_github_does_not_show_is_counted() {
    let mut report = run(RACE);
    let one = report.findings.remove(0);
    for line in 1..=20_000 {
        let mut finding = one.clone();
        finding.accesses.iter_mut().for_each(|access| access.source.iter_mut().for_each(|at| at.line = line));
        report.findings.push(finding);
    }
    let shown = text(&report, Format::Github);
    assert_eq!(shown.lines().filter(|line| line.starts_with("::error ")).count(), 10);
    assert!(shown.contains("19991 more are in the step's summary"), "{shown}");
    let mut summary = Vec::new();
    write_summary(&report, &mut summary).expect("a writer");
    let summary = String::from_utf8(summary).expect("text");
    assert!(summary.len() < 1 << 20 && summary.contains("more findings are left out"));
}

/// A report that was read from its JSON says the same in every format.
#[test]
fn json_reports_are_read_as_they_were_written() {
    for file in SAMPLES {
        let mut report = run(file);
        let read = again(&report);
        assert_eq!(text(&read, Format::Json), text(&report, Format::Json), "{file}");
        // JSON does not have what was assumed, nor places of what was missed.
        report.notes.clear();
        report.incomplete.clone_from(&read.incomplete);
        for format in [Format::Text, Format::Sarif, Format::Junit, Format::Github, Format::Html] {
            assert_eq!(text(&read, format), text(&report, format), "{file}");
        }
    }
}

#[test]
fn what_is_no_report_is_refused() {
    let whole = text(&run(RACE), Format::Json);
    let cases = [
        (String::new(), "EOF while parsing"),
        ("[]".into(), "no `schema`"),
        (whole.replace("ptxrace-report/1", "ptxrace-report/9"), "schema is `ptxrace-report/9`"),
        (whole.replace("\"verdict\": \"race\"", "\"verdict\": \"clean\""), "what it holds makes it `race`"),
        (whole.replace("\"R001\"", "\"R099\""), "no rule `R099`"),
        (whole.replace("\"emu\"", "\"abacus\""), "no backend `abacus`"),
        (whole.replace("\"0x280\"", "\"nowhere\""), "`nowhere` is no address"),
        (whole.replace("\"to\": 1", "\"to\": 2"), "a timeline has no event 2"),
        (whole.replace("\"row\": 1", "\"row\": 9"), "a timeline has no row 9"),
        (whole.replace("\"first_element\": 128", "\"first_element\": 200"), "out of its range"),
        (whole.replace("\"findings\"", "\"finding\""), "missing field `findings`"),
    ];
    for (text, why) in cases {
        let error = read(&SourceFile::new("a.json", text).expect("a text")).expect_err(why);
        assert!(
            error.message.contains("`a.json` is no JSON report") && error.message.contains(why),
            "{error:?}"
        );
    }
}

#[test]
fn merged_reports_are_united() {
    let (race, clean, stuck) = (run(RACE), run("ptx-samples/clean/reduce.ptx"), run(SAMPLES[7]));
    let merged = merge(vec![clean.clone(), race.clone(), stuck.clone(), race.clone(), stuck]);
    assert_eq!(merged.verdict, Verdict::Race);
    assert_eq!(merged.launches.iter().map(|launch| launch.id).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    assert_eq!(merged.findings.len(), 1);
    assert_eq!(merged.findings[0].count, 2 * race.findings[0].count);
    assert_eq!(merged.findings[0].launch, 1);
    assert_eq!(merged.incomplete.len(), 1);
    let text = text(&merged, Format::Text);
    assert!(text.contains("= note: merged: 2 findings of this fingerprint, 512 conflicts"), "{text}");
    for format in [Format::Sarif, Format::Junit, Format::Github, Format::Html] {
        assert!(!self::text(&merged, format).is_empty());
    }
    assert_eq!(merge(vec![clean.clone(), run(SAMPLES[7])]).verdict, Verdict::Inconclusive);
    assert_eq!(merge(vec![clean.clone(), clean]).verdict, Verdict::Clean);
    // What one report lets count, counts.
    let mut quiet = race.clone();
    quiet.judge(&Policy::new(&[], &["R001".into()]).expect("a policy"));
    assert_eq!((quiet.verdict, quiet.suppressed.len()), (Verdict::Clean, 1));
    let both = merge(vec![quiet.clone(), race]);
    assert_eq!((both.verdict, both.findings.len(), both.suppressed.len()), (Verdict::Race, 1, 0));
    let quiet = merge(vec![again(&quiet), quiet]);
    assert_eq!((quiet.verdict, quiet.suppressed.len(), quiet.suppressors[0].hits), (Verdict::Clean, 1, 2));
}
