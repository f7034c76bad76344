//! Programs that run tests, under `ptxrace exec`: launches and findings are those of a test. Needs Python 3, but no GPU.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up should stop")]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// Runs `tests/exec/suite.py` and gives what was said, and the report.
fn suite(variable: Option<(&str, &str)>) -> (Output, Value) {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report.json");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new(env!("CARGO_BIN_EXE_ptxrace"))
        .args(["exec", "--backend", "emu", "--format", "text", "--format", "json", "--output"])
        .arg(&report)
        .args(["--", "python3"])
        .arg(root.join("tests/exec/suite.py"))
        .arg(root.join("tests/exec/kernels.ptx"))
        .envs(variable)
        .output()
        .unwrap();
    let report = std::fs::read_to_string(report).unwrap_or_default();
    let report = serde_json::from_str(&report).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    (output, report)
}

fn tests(report: &Value) -> Vec<Option<&str>> {
    report["launches"].as_array().unwrap().iter().map(|launch| launch["test"].as_str()).collect()
}

#[test]
fn launches_are_those_of_the_test_that_pytest_names() {
    let (output, report) = suite(None);
    assert_eq!(output.status.code(), Some(66), "{output:?}");
    assert_eq!(tests(&report), [None, Some("suite.py::test_fill"), Some("suite.py::test_reverse"), None]);
    let [finding] = &report["findings"].as_array().unwrap()[..] else { panic!("{report}") };
    assert_eq!((&finding["rule"], &finding["launch"]), (&"R001".into(), &2.into()));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("= note: test `suite.py::test_reverse`\n   = note: replay: "), "{said}");
}

#[test]
fn a_runner_of_ones_own_names_tests_too() {
    let (_, report) = suite(Some(("PTXRACE_TEST", "numbers.reverse")));
    assert_eq!(tests(&report), [Some("numbers.reverse"); 4]);
}
