//! A launch description in TOML gives a plan or errors.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ptxrace::ptx::parse;
use ptxrace::session::launch::{LaunchRequest, resolve};
use ptxrace::span::SourceFile;

const MODULE: &str = ".version 9.0\n.target sm_90\n.address_size 64\n\
    .visible .entry k(.param .u64 a, .param .u32 n, .param .f32 x) { ret; }\n.visible .entry empty() { ret; }\n";

fuzz_target!(|description: &str| {
    let lines: String = description.lines().map(|line| format!("//@ {line}\n")).collect();
    let Ok(source) = SourceFile::new("no-such-folder/module.ptx", lines + MODULE) else { return };
    let parsed = parse(source.text());
    let _ = resolve(&source, &parsed.module, &LaunchRequest::default());
});
