//! `ptxrace exec` on programs: in C (`tests/exec/app.c`, `graphs.c` for graphs, `devices.c` for several devices, `tensors.c` for
//! tensor maps, `textures.c` for textures), which are linked against the driver, and one
//! in Rust, which loads it through cudarc (`tests/exec/rust_app.rs`, in this very executable). No GPU is needed: each is run on
//! the emulator, and as on a GPU, with a copy of the wrapper as the driver, which runs the instrumented kernels on the emulator.
//!
//! All of them are recorded, and their traces are replayed.
//!
//! Without a C compiler the trials of the C programs are listed as ignored.

#[path = "exec/rust_app.rs"]
mod rust_app;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};
use ptxrace::session::exec::find_wrapper;
use serde_json::Value;

/// What a trial runs, and what shall come of it.
#[derive(Clone)]
struct Case {
    what: &'static str,
    flags: &'static [&'static str],
    code: i32,
    verdict: &'static str,
    /// Rule, relation and object of each finding.
    findings: &'static [(&'static str, &'static str, &'static str)],
    /// Reasons in `incomplete`.
    incomplete: &'static [&'static str],
    launches: usize,
}

const CLEAN: Case =
    Case { what: "", flags: &[], code: 0, verdict: "clean", findings: &[], incomplete: &[], launches: 0 };
const REVERSE: &[(&str, &str, &str)] = &[("R001", "block", "tile")];

fn c_cases() -> Vec<(&'static str, Case)> {
    let race = Case { code: 66, verdict: "race", findings: REVERSE, launches: 1, ..CLEAN };
    let unsure = Case { verdict: "inconclusive", ..CLEAN };
    let overwritten = Case { findings: &[("R006", "launch", "cuMemAlloc #1")], launches: 2, ..race };
    vec![
        ("clean", Case { what: "clean", launches: 5, ..CLEAN }),
        ("status", Case { what: "status", code: 7, launches: 5, ..CLEAN }),
        ("race", Case { what: "race", ..race }),
        ("race-exit-code", Case { what: "race", flags: &["--race-exit-code", "3"], code: 3, ..race }),
        ("race-allowed", Case { what: "race", flags: &["--allow", "R001"], launches: 1, ..CLEAN }),
        ("abort", Case { what: "abort", ..race }),
        ("kill", Case { what: "kill", ..race }),
        ("leave", Case { what: "leave", ..race }),
        ("kill-allowed", Case { what: "kill", flags: &["--allow", "R001"], code: 137, launches: 1, ..CLEAN }),
        ("streams", Case { what: "streams", ..overwritten }),
        ("backtraces", Case { what: "streams", flags: &["--backtraces"], ..overwritten }),
        ("event", Case { what: "event", launches: 2, ..CLEAN }),
        ("host", Case { what: "host", launches: 2, ..CLEAN }),
        ("value", Case { what: "value", launches: 2, ..CLEAN }),
        ("value-batch", Case { what: "value-batch", launches: 2, ..CLEAN }),
        ("value-early", Case { what: "value-early", ..overwritten }),
        ("value-unpublished", Case { what: "value-unpublished", ..overwritten }),
        (
            "value-unknown",
            Case { what: "value-unknown", incomplete: &["unsupported-call"], launches: 2, ..unsure },
        ),
        ("copy", Case { what: "copy", findings: &[("R006", "host", "cuMemAlloc #1")], ..race }),
        ("copy-waits", Case { what: "copy-waits", launches: 1, ..CLEAN }),
        (
            "before",
            Case {
                what: "before",
                findings: &[
                    ("R006", "host", "cuMemAlloc #1"),
                    ("R006", "host", "cuMemAlloc #1"),
                    ("R006", "host", "cuMemAlloc #2"),
                ],
                ..race
            },
        ),
        ("threads", Case { what: "threads", launches: 16, ..CLEAN }),
        ("fork", Case { what: "fork", launches: 5, ..CLEAN }),
        ("children", Case { what: "parent", launches: 6, ..race }),
        ("missing", Case { what: "missing", incomplete: &["unsupported-call"], launches: 5, ..unsure }),
        (
            "missing-strict",
            Case {
                what: "missing",
                flags: &["--strict"],
                code: 67,
                incomplete: &["unsupported-call"],
                launches: 5,
                ..unsure
            },
        ),
        ("fault", Case { what: "fault", incomplete: &["fault"], launches: 1, ..unsure }),
        ("none", Case { what: "none", incomplete: &["no-launch"], ..unsure }),
        ("kernel", Case { what: "race", flags: &["--kernel", "rev*"], ..race }),
        (
            "kernel-of-none",
            Case { what: "race", flags: &["--kernel", "fill"], incomplete: &["no-launch"], ..unsure },
        ),
        (
            "to-host",
            Case {
                what: "to-host",
                findings: &[("R004", "host", "cuMemHostAlloc #1")],
                launches: 1,
                ..CLEAN
            },
        ),
        ("to-host-system", Case { what: "to-host-system", launches: 1, ..CLEAN }),
        ("sample", Case { what: "streams", flags: &["--sample", "2"], launches: 1, ..CLEAN }),
        ("max-launches", Case { what: "streams", flags: &["--max-launches", "1"], launches: 1, ..CLEAN }),
    ]
}

/// Of `tests/exec/textures.c`.
fn texture_cases() -> Vec<(&'static str, Case)> {
    let race = Case { code: 66, verdict: "race", launches: 1, ..CLEAN };
    let case = |what, launches| (what, Case { what, launches, ..CLEAN });
    let racy = |what, launches, findings| (what, Case { what, launches, findings, ..race });
    vec![
        case("linear", 2),
        racy("linear-race", 1, &[("R009", "block", "cuMemAlloc #1")]),
        case("array", 3),
        case("copy", 1),
        racy("copy-race", 1, &[("R006", "host", "cuArray3DCreate #1")]),
        racy("streams-race", 2, &[("R006", "launch", "cuArray3DCreate #1")]),
    ]
}

/// Of `tests/exec/graphs.c`.
fn graph_cases() -> Vec<(&'static str, Case)> {
    const A: (&str, &str, &str) = ("R006", "launch", "cuMemAlloc #1");
    const B: (&str, &str, &str) = ("R006", "launch", "cuMemAlloc #2");
    let race = Case { code: 66, verdict: "race", findings: &[A], ..CLEAN };
    let case = |what, launches| (what, Case { what, launches, ..CLEAN });
    let racy = |what, launches| (what, Case { what, launches, ..race });
    let of_b = |what, launches| (what, Case { what, launches, findings: &[B], ..race });
    let of_host = |what, launches| {
        (what, Case { what, launches, findings: &[("R006", "host", "cuMemAlloc #2")], ..race })
    };
    vec![
        case("chain", 2),
        case("diamond", 8),
        racy("diamond-race", 8),
        of_host("memset-race", 2),
        case("captured", 8),
        of_b("captured-race", 8),
        case("unjoined", 1),
        case("child", 6),
        racy("child-race", 6),
        case("set", 2),
        racy("set-race", 2),
        case("update", 8),
        case("disabled", 1),
        case("beside", 2),
        racy("beside-race", 2),
        case("twice", 8),
    ]
}

/// Of `tests/exec/devices.c`.
fn device_cases() -> Vec<(&'static str, Case)> {
    const OF_FIRST: (&str, &str, &str) = ("R006", "launch", "cuMemAlloc #1");
    let clean = |what, launches| (what, Case { what, launches, ..CLEAN });
    let race = Case { code: 66, verdict: "race", launches: 2, ..CLEAN };
    let racy = |what| (what, Case { what, findings: &[OF_FIRST], ..race });
    let copied = &[("R006", "host", "cuMemAlloc #1")];
    let narrow = &[("R004", "launch", "cuMemAllocManaged #1")];
    vec![
        clean("own", 2),
        racy("nothing"),
        clean("waits", 2),
        racy("waits-elsewhere"),
        clean("event", 2),
        ("tally", Case { what: "tally", findings: narrow, ..race }),
        clean("tally-system", 2),
        clean("copy", 2),
        clean("copy-before", 2),
        ("copy-apart", Case { what: "copy-apart", findings: copied, ..race }),
    ]
}

/// Of `tests/exec/tensors.c`.
fn tensor_cases() -> Vec<(&'static str, Case)> {
    let case = |what, launches| (what, Case { what, launches, ..CLEAN });
    let findings = &[("R008", "warp", "tile")];
    let race = Case { what: "race", code: 66, verdict: "race", findings, launches: 1, ..CLEAN };
    let forged = Case {
        what: "forged",
        verdict: "inconclusive",
        incomplete: &["unknown-instruction"],
        launches: 1,
        ..CLEAN
    };
    vec![case("clean", 1), ("race", race), case("replaced", 2), case("in-memory", 1), ("forged", forged)]
}

fn rust_cases() -> Vec<(&'static str, Case)> {
    let race = Case { code: 66, verdict: "race", ..CLEAN };
    vec![
        ("clean", Case { what: "clean", launches: 2, ..CLEAN }),
        ("race", Case { what: "race", findings: REVERSE, launches: 1, ..race }),
        (
            "streams",
            Case { what: "streams", findings: &[("R006", "launch", "cuMemAlloc #1")], launches: 2, ..race },
        ),
        ("event", Case { what: "event", launches: 2, ..CLEAN }),
        ("fatbin", Case { what: "fatbin", findings: REVERSE, launches: 1, ..race }),
    ]
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn kernels() -> PathBuf {
    root().join("tests/exec/kernels.ptx")
}

/// What runs the kernels: the emulator, or a driver of its own that takes the place of a GPU's.
#[derive(Clone, Copy)]
enum On<'p> {
    Emulator,
    Driver(&'p Path),
}

fn exec(on: On<'_>, flags: &[&str], program: &[&Path], report: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ptxrace"));
    match on {
        On::Emulator => command.args(["exec", "--backend", "emu"]),
        On::Driver(driver) => command.env("PTXRACE_DRIVER", driver).args(["exec", "--backend", "gpu"]),
    };
    // As many as the emulator offers, in place of a GPU's driver, too.
    command.env("PTXRACE_EMU_DEVICES", "2");
    command.args(["--format", "text", "--format", "json", "--output"]).arg(report);
    command.args(flags).arg("--").args(program);
    command.output().expect("ptxrace runs")
}

/// A report without the commands that show its findings again.
fn without_commands(text: &str) -> Vec<&str> {
    let is_command =
        |line: &&str| !line.trim_start().starts_with("\"replay\": ") && !line.contains("replay: ptxrace ");
    text.lines().filter(is_command).collect()
}

/// Whether a replay of the trace gives the report and the status that `exec` gave.
fn replays(trace: &Path, flags: &[&str], report: &str, said: &str, code: Option<i32>) -> Result<(), Failed> {
    for (format, expected) in [("json", report), ("text", said)] {
        for triage in [&[][..], &["--no-triage"]] {
            let mut command = Command::new(env!("CARGO_BIN_EXE_ptxrace"));
            let output =
                command.args(["replay", "--format", format]).args(flags).args(triage).arg(trace).output()?;
            let again = String::from_utf8_lossy(&output.stdout).into_owned();
            if without_commands(&again) != without_commands(expected) || output.status.code() != code {
                return Err(format!(
                    "{:?}, not {code:?}\n{again}\n---\n{expected}\n---\n{}",
                    output.status.code(),
                    String::from_utf8_lossy(&output.stderr)
                )
                .into());
            }
        }
    }
    Ok(())
}

fn check(on: On<'_>, case: &Case, program: &[&Path]) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("report.json");
    let trace = folder.path().join("a.trace");
    let record = ["--record", &trace.to_string_lossy()];
    let output = exec(on, &[case.flags, &record].concat(), program, &file);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let text = std::fs::read_to_string(&file).map_err(|error| format!("{error}\n{said}"))?;
    let report: Value = serde_json::from_str(&text)?;
    let name = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = |key: &str| report[key].as_array().cloned().unwrap_or_default();
    let mut found: Vec<_> = list("findings")
        .iter()
        .map(|f| (name(&f["rule"]), name(&f["relation"]), name(&f["object"]["name"])))
        .collect();
    found.sort();
    let owned = |(rule, relation, object): &(&str, &str, &str)| {
        (rule.to_string(), relation.to_string(), object.to_string())
    };
    let wanted: Vec<_> = case.findings.iter().map(owned).collect();
    let reasons: Vec<_> = list("incomplete").iter().map(|i| name(&i["reason"])).collect();
    let expect = |what: &str, got: String, wanted: String| {
        if got == wanted { Ok(()) } else { Err(format!("{what}: {got}, not {wanted}\n{said}\n{text}")) }
    };
    expect("verdict", name(&report["verdict"]), case.verdict.into())?;
    expect("findings", format!("{found:?}"), format!("{wanted:?}"))?;
    expect("incomplete", format!("{reasons:?}"), format!("{:?}", case.incomplete))?;
    let backend = match on {
        On::Emulator => "emu",
        On::Driver(_) => "gpu",
    };
    let others = list("launches").iter().filter(|launch| launch["backend"] != backend).count();
    expect("launches on something else", others.to_string(), "0".into())?;
    expect("launches", list("launches").len().to_string(), case.launches.to_string())?;
    expect("exit code", format!("{:?}", output.status.code()), format!("{:?}", Some(case.code)))?;
    let of_reports: Vec<_> =
        case.flags.windows(2).filter(|flags| flags[0] == "--allow").flatten().copied().collect();
    replays(&trace, &of_reports, &text, &said, output.status.code())
}

fn wrapper() -> PathBuf {
    find_wrapper(Path::new(env!("CARGO_BIN_EXE_ptxrace"))).expect("the wrapper is built")
}

fn on(driver: Option<&Path>) -> On<'_> {
    driver.map_or(On::Emulator, On::Driver)
}

/// A C program, linked against the wrapper as against the driver; `None` without a compiler.
fn compile(folder: &Path, name: &str) -> Option<PathBuf> {
    Command::new("cc").arg("--version").output().ok()?;
    let link = folder.join("libcuda.so");
    if !link.exists() {
        std::os::unix::fs::symlink(wrapper(), link).expect("a link");
    }
    let app = folder.join(name);
    let source = root().join("tests/exec").join(name).with_extension("c");
    let output = Command::new("cc")
        .args(["-Wall", "-Wextra", "-Werror", "-g", "-O1", "-o"])
        .arg(&app)
        .arg(source)
        .arg("-L")
        .arg(folder)
        .args(["-lcuda", "-lpthread"])
        .output()
        .expect("cc runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(app)
}

/// The whole text of a report, for what is only there.
fn shows(program: &[&Path], flags: &[&str], parts: &[&str]) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let output = exec(On::Emulator, flags, program, &folder.path().join("report.json"));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    match parts.iter().find(|part| !said.contains(**part)) {
        Some(part) => Err(format!("`{part}` is missing in\n{said}").into()),
        None => Ok(()),
    }
}

/// Where tapes cannot be written the program and its report are what they are without; the trace says that it is not whole.
fn tape_is_gone(app: &Path) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let trace = folder.path().join("a.trace");
    let script = "rm -r \"$0\"/.ptxrace-*; exec \"$@\"";
    let (shell, kernels) = (["sh", "-c", script].map(Path::new), kernels());
    let program = [&shell[..], &[folder.path(), app, Path::new("status"), &kernels]].concat();
    let record = ["--record", &trace.to_string_lossy()];
    let output = exec(On::Emulator, &record, &program, &folder.path().join("report.json"));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let report: Value = serde_json::from_str(&std::fs::read_to_string(folder.path().join("report.json"))?)?;
    let launches = report["launches"].as_array().map_or(0, Vec::len);
    let told = said.contains(&format!("cannot write `{}`: No such file", trace.display()));
    if output.status.code() != Some(2) || report["verdict"] != "clean" || launches != 5 || !told {
        return Err(format!("{:?}: {report}\n{said}", output.status.code()).into());
    }
    let again = Command::new(env!("CARGO_BIN_EXE_ptxrace")).arg("replay").arg(&trace).output()?;
    let text = String::from_utf8_lossy(&again.stdout).into_owned();
    if again.status.code() == Some(3) && text.contains("is cut off after byte") {
        Ok(())
    } else {
        Err(text.into())
    }
}

fn main() {
    let arguments: Vec<_> = std::env::args().collect();
    if let [_, flag, what, ptx] = arguments.as_slice()
        && flag == "--app"
    {
        rust_app::run(what, Path::new(ptx));
        return;
    }
    let folder = Arc::new(tempfile::tempdir().expect("a folder"));
    let app = compile(folder.path(), "app");
    let graphs = compile(folder.path(), "graphs");
    let devices = compile(folder.path(), "devices");
    let tensors = compile(folder.path(), "tensors");
    let textures = compile(folder.path(), "textures");
    let driver = folder.path().join("driver.so");
    std::fs::copy(wrapper(), &driver).expect("a copy of the wrapper");
    let mut trials = Vec::new();
    let c_cases = c_cases().into_iter().map(|(name, case)| ("c", name, case, app.clone()));
    let graph_cases = graph_cases().into_iter().map(|(name, case)| ("graph", name, case, graphs.clone()));
    let device_cases = device_cases().into_iter().map(|(name, case)| ("device", name, case, devices.clone()));
    let tensor_cases = tensor_cases().into_iter().map(|(name, case)| ("tensor", name, case, tensors.clone()));
    let texture_cases =
        texture_cases().into_iter().map(|(name, case)| ("texture", name, case, textures.clone()));
    let all = c_cases.chain(graph_cases).chain(device_cases).chain(tensor_cases).chain(texture_cases);
    for (kind, name, case, app) in all {
        let folder = Arc::clone(&folder);
        let ignored = app.is_none();
        for (side, driver) in [("emu", None), ("gpu", Some(driver.clone()))] {
            // Of mipmaps the emulator says that there are none, and the GPU's driver has them.
            if driver.is_some() && case.what == "missing" {
                continue;
            }
            let (app, folder, case) = (app.clone(), Arc::clone(&folder), case.clone());
            let run = move || {
                let _ = &folder;
                let app = app.ok_or("there is no C compiler")?;
                check(on(driver.as_deref()), &case, &[&app, Path::new(case.what), &kernels()])
            };
            trials.push(Trial::test(format!("{kind}/{side}/{name}"), run).with_ignored_flag(ignored));
        }
    }
    let (program, ignored, standing_in) = (graphs.clone(), graphs.is_none(), driver.clone());
    let run = move || {
        let app = program.ok_or("there is no C compiler")?;
        let what = "updated-node";
        let case =
            Case { what, verdict: "inconclusive", incomplete: &["unsupported-call"], launches: 1, ..CLEAN };
        check(On::Driver(&standing_in), &case, &[&app, Path::new(what), &kernels()])
    };
    trials.push(Trial::test("graph/gpu/updated-node", run).with_ignored_flag(ignored));
    let (program, ignored) = (devices.clone(), devices.is_none());
    let run = move || {
        let app = program.ok_or("there is no C compiler")?;
        let case = Case { what: "three", flags: &["--emu-devices", "3"], launches: 1, ..CLEAN };
        check(On::Emulator, &case, &[&app, Path::new(case.what), &kernels()])
    };
    trials.push(Trial::test("device/emu/three", run).with_ignored_flag(ignored));
    for (name, what, flags, parts) in [
        (
            "streams",
            "streams",
            &[][..],
            &[
                "launch #0 in stream 1 and launch #1 in stream 2 are not ordered by an event",
                "in `cuMemAlloc #1` (`.global`, 1024 bytes)",
                "kernels.ptx:20:2",
                "replay: ptxrace exec --backend emu -- ",
            ][..],
        ),
        (
            "diamond-race",
            "diamond-race",
            &[],
            &[
                "launch #4 in stream 1 and launch #5 in stream 1 are nodes of one graph, and no path of its edges orders them",
                "add an edge from (1) to (2)",
            ][..],
        ),
        (
            "backtraces",
            "streams",
            &["--backtraces"],
            &["note: `cuMemAlloc #1` was allocated in `", "tests/exec/app.c:", "called by `main` at "][..],
        ),
        (
            "memory-limit",
            "clean",
            &["--memory-limit", "4K"],
            &["inconclusive: the rest of a launch was not checked", "give it more with `--memory-limit`"][..],
        ),
        (
            "copy",
            "copy",
            &[],
            &[
                "data race on `cuMemAlloc #1` in global memory between a launch and `cuMemcpyDtoHAsync`",
                "(2) is `cuMemcpyDtoHAsync`, operation #1 in stream 2: a read",
            ][..],
        ),
    ] {
        let app = if what == "diamond-race" { graphs.clone() } else { app.clone() };
        let ignored = app.is_none();
        let run = move || {
            let app = app.ok_or("there is no C compiler")?;
            shows(&[&app, Path::new(what), &kernels()], flags, parts)
        };
        trials.push(Trial::test(format!("c/{name}/text"), run).with_ignored_flag(ignored));
    }
    for (name, case) in rust_cases() {
        for (side, driver) in [("emu", None), ("gpu", Some(driver.clone()))] {
            let (own, folder, case) =
                (std::env::current_exe().expect("an executable"), Arc::clone(&folder), case.clone());
            let run = move || {
                let _ = &folder;
                let program = [&own, Path::new("--app"), Path::new(case.what), &kernels()];
                check(on(driver.as_deref()), &case, &program)
            };
            trials.push(Trial::test(format!("rust/{side}/{name}"), run));
        }
    }
    trials.push(Trial::test("refuses/seed-on-gpu", || {
        let flags = ["exec", "--backend", "gpu", "--seed", "3", "--", "true"];
        let output = Command::new(env!("CARGO_BIN_EXE_ptxrace")).args(flags).output()?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.code() == Some(2) && said.contains("leave out `--backend gpu`") {
            return Ok(());
        }
        Err(said.into())
    }));
    trials.push(Trial::test("refuses/no-program", || {
        let folder = tempfile::tempdir()?;
        let output = exec(On::Emulator, &[], &[Path::new("/no/such/program")], &folder.path().join("r"));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.code() == Some(2) && said.contains("cannot run `/no/such/program`") {
            return Ok(());
        }
        Err(said.into())
    }));
    trials.push(Trial::test("record/refused", || {
        let folder = tempfile::tempdir()?;
        let (report, made) = (folder.path().join("r"), folder.path().join("a.trace"));
        let said = |path: &Path, program: &str| {
            let output =
                exec(On::Emulator, &["--record", &path.to_string_lossy()], &[Path::new(program)], &report);
            (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
        };
        let (code, text) = said(&made, "/no/such/program");
        if code != Some(2) || made.exists() {
            return Err(format!("a trace of nothing: {text}").into());
        }
        // The program is not started: it would fail.
        for path in [folder.path().join("nowhere/a.trace"), "/dev/full".into()] {
            let (code, text) = said(&path, "false");
            if code != Some(2) || !text.contains(&format!("cannot write `{}`", path.display())) {
                return Err(format!("{code:?}: {text}").into());
            }
        }
        Ok(())
    }));
    {
        let (app, folder, ignored) = (app.clone(), Arc::clone(&folder), app.is_none());
        let run = move || {
            let _ = &folder;
            tape_is_gone(&app.ok_or("there is no C compiler")?)
        };
        trials.push(Trial::test("record/gone", run).with_ignored_flag(ignored));
    }
    let conclusion = libtest_mimic::run(&Arguments::from_args(), trials);
    drop(app);
    drop(folder);
    conclusion.exit();
}
