//! Which test a process is running now, as test runners tell it.

use std::env::var;

/// What a program's own runner may set.
const OWN: &str = "PTXRACE_TEST";
/// What pytest sets around each phase of a test: `file.py::test (call)`.
const PYTEST: &str = "PYTEST_CURRENT_TEST";
/// What cargo-nextest sets for the process of a test.
const NEXTEST: &str = "NEXTEST_TEST_NAME";

/// The test that this process is running, if it is known.
pub fn current_test() -> Option<String> {
    named(|name| var(name).ok())
}

fn named(variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let set = |name| variable(name).filter(|value| !value.is_empty());
    set(OWN).or_else(|| Some(without_phase(&set(PYTEST)?))).or_else(|| set(NEXTEST))
}

fn without_phase(test: &str) -> String {
    let phase = test.rsplit_once(" (").filter(|(_, phase)| phase.ends_with(')'));
    phase.map_or(test, |(test, _)| test).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_named_by_either_variable() {
        let with = |own: &'static str, pytest: &'static str| {
            named(move |name| match name {
                OWN => Some(own.into()),
                PYTEST => Some(pytest.into()),
                _ => None,
            })
        };
        assert_eq!(with("", "test_a.py::test_b[1 (2)] (call)"), Some("test_a.py::test_b[1 (2)]".into()));
        assert_eq!(with("", "test_a.py::test_b"), Some("test_a.py::test_b".into()));
        assert_eq!(with("suite.case", "test_a.py::test_b (setup)"), Some("suite.case".into()));
        assert_eq!(with("", ""), None);
        assert_eq!(named(|_| None), None);
        assert_eq!(named(|name| (name == NEXTEST).then(|| "tests::sum".into())), Some("tests::sum".into()));
    }
}
