//! Any text gives a tree and errors whose spans lie in it.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let parsed = ptxrace::ptx::parse(text);
    for error in &parsed.errors {
        assert!(text.get(error.span.range()).is_some(), "{error:?}");
    }
    for function in parsed.module.functions() {
        assert!(text.get(function.span.range()).is_some());
        assert_eq!(text.get(function.name.span.range()), Some(function.name.text));
    }
});
