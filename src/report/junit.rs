//! JUnit XML: a suite for each launch, a case for each finding, and one that passes where there is none of severity error.

use std::io::{self, Write};

use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};
use rustc_hash::FxHashMap;

use super::alike::{distinct, told};
use super::{LaunchFacts, Report, Style, text};
use crate::diag::{Diagnostic, Severity};
use crate::explain::Explained;
use crate::explain::names::demangle;

pub(super) fn write(report: &Report, to: &mut dyn Write) -> io::Result<()> {
    let mut root = quick_junit::Report::new("ptxrace");
    let mut found: FxHashMap<_, Vec<_>> = FxHashMap::default();
    for (finding, more) in distinct(&report.findings) {
        found.entry(finding.launch).or_default().push((finding, more));
    }
    let mut suppressed: FxHashMap<_, Vec<_>> = FxHashMap::default();
    for one in &report.suppressed {
        suppressed.entry(one.finding.launch).or_default().push(one);
    }
    for launch in &report.launches {
        let mut suite = TestSuite::new(name(launch));
        let mut warnings = Vec::new();
        for (finding, more) in found.remove(&launch.id).unwrap_or_default() {
            if finding.severity == Severity::Error {
                suite.add_test_case(failure(finding, more)?);
            } else {
                warnings.extend(drawn(&told(finding, more))?);
                warnings.push(b'\n');
            }
        }
        if suite.test_cases.is_empty() {
            suite.add_test_case(nothing(report, launch));
        }
        for one in suppressed.remove(&launch.id).unwrap_or_default() {
            let mut status = TestCaseStatus::skipped();
            status.set_message(format!("suppressed by {}", one.by.told()));
            suite.add_test_case(case(&one.finding, status));
        }
        if !warnings.is_empty() {
            suite.set_system_out_lossy(&warnings);
        }
        root.add_test_suite(suite);
    }
    if !report.incomplete.is_empty() {
        root.add_test_suite(inconclusive(report)?);
    }
    let text = root.to_string().map_err(io::Error::other)?;
    // On the root, Jenkins' schema (junit-10.xsd) has no such attribute. The root comes first.
    to.write_all(text.replacen(&format!(" skipped=\"{}\"", root.skipped), "", 1).as_bytes())
}

/// "reduce(float*), launch #0"
fn name(launch: &LaunchFacts) -> String {
    format!("{}, launch #{}", demangle(&launch.kernel).full, launch.id)
}

/// A launch without errors passes, unless something was missed.
fn nothing(report: &Report, launch: &LaunchFacts) -> TestCase {
    let status = if report.incomplete.is_empty() {
        TestCaseStatus::success()
    } else {
        let mut status = TestCaseStatus::skipped();
        status.set_message("the run is inconclusive");
        status
    };
    let mut case = TestCase::new("no data race", status);
    case.set_classname(demangle(&launch.kernel).full);
    case
}

/// Named by what stays over edits elsewhere, so that a CI system sees one case over time.
fn case(finding: &Explained, status: TestCaseStatus) -> TestCase {
    let object = finding.object.as_ref().map(|object| format!(" on {}", object.name)).unwrap_or_default();
    let mut case = TestCase::new(format!("{}{object} [{}]", finding.rule.id(), finding.fingerprint), status);
    let kernel = finding.accesses.last().map_or_else(String::new, |access| demangle(&access.kernel).full);
    case.set_classname(kernel);
    case
}

fn failure(finding: &Explained, more: usize) -> io::Result<TestCase> {
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
    status.set_type(finding.rule.id()).set_message(finding.diagnostic.message.as_str());
    status.set_description(String::from_utf8_lossy(&drawn(&told(finding, more))?));
    Ok(case(finding, status))
}

/// The reasons why the run is not the whole truth: an error each.
fn inconclusive(report: &Report) -> io::Result<TestSuite> {
    let mut suite = TestSuite::new("inconclusive");
    for incomplete in &report.incomplete {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
        status.set_type(incomplete.reason.name()).set_message(incomplete.detail.as_str());
        status.set_description(String::from_utf8_lossy(&drawn(&incomplete.diagnostic)?));
        let mut case = TestCase::new(incomplete.reason.name(), status);
        case.set_classname("inconclusive");
        suite.add_test_case(case);
    }
    Ok(suite)
}

/// A diagnostic as the text report has it.
fn drawn(diagnostic: &Diagnostic) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    text::write_diagnostic(diagnostic, Style::default(), &mut bytes)?;
    Ok(bytes)
}
