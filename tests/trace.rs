//! Traces: a run that was recorded and is replayed gives the same report, and what is damaged is read up to there.

#[path = "common/chunks.rs"]
mod chunks;
mod common;

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chunks::{Kind, chunk, flipped, start};
use common::{Launched, name, programs, ptxrace, record, root, within};
use libtest_mimic::{Arguments, Failed, Trial};
use parking_lot::Mutex;
use ptxrace::backend::emu::Emulator;
use ptxrace::backend::{BackendError, Outcome, RunOptions};
use ptxrace::report::{Reason, Report, Silent, Verdict};
use ptxrace::session::{Linked, ReplayRequest, replay_bytes};
use ptxrace::trace::{Head, Writer, sites_digest};
use serde_json::{Value, json};

/// Two warps, a few records, a race.
const SMALL: &str = "tests/cases/66-atomics-need-no-barrier/racy.ptx";

fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

/// A report without the command that shows a finding again.
fn without_command(text: &str) -> String {
    let is_command =
        |line: &&str| !line.trim_start().starts_with("\"replay\": ") && !line.contains("replay: ptxrace ");
    text.lines().filter(is_command).collect::<Vec<_>>().join("\n")
}

/// Runs a program, recorded, and replays that.
fn same(launch: &Path, flags: &[&str]) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let trace = folder.path().join("a.trace");
    let file = within(launch).with_extension("ptx");
    for format in ["json", "text", "sarif"] {
        let mut run = words(&["ptxrace", "run", "--backend", "emu", "--format", format]);
        run.extend([file.clone().into(), "--record".into(), trace.clone().into()]);
        run.extend(words(flags));
        let (code, out, err) = ptxrace(run)?;
        if code == 2 {
            // Input that is refused is not run, so there is nothing to record.
            return if trace.exists() { Err("a trace of nothing".into()) } else { Ok(()) };
        }
        let replay = [words(&["ptxrace", "replay", "--format", format]), vec![trace.clone().into()]].concat();
        let (again, replayed, err_again) = ptxrace(replay)?;
        if code != again || without_command(&out) != without_command(&replayed) || err != err_again {
            return Err(format!(
                "run gives {code}\n{out}\n{err}\nreplay gives {again}\n{replayed}\n{err_again}"
            )
            .into());
        }
    }
    Ok(())
}

/// What is replayed, with all that was said.
fn replayed(bytes: Vec<u8>) -> Result<Report, String> {
    let request = ReplayRequest { file: "a.trace".into(), ..ReplayRequest::default() };
    replay_bytes(&request, Box::new(bytes), &Linked, &Silent)
        .map(|replayed| replayed.report)
        .map_err(|errors| errors.into_iter().map(|error| error.message).collect::<Vec<_>>().join("; "))
}

/// The trace of a small run.
fn small() -> Result<Vec<u8>, Failed> {
    let folder = tempfile::tempdir()?;
    let trace = folder.path().join("a.trace");
    let mut run = words(&["ptxrace", "run", SMALL, "--backend", "emu", "--seed", "0", "--record"]);
    run.push(trace.clone().into());
    let (code, ..) = ptxrace(run)?;
    if code == 1 { Ok(std::fs::read(trace)?) } else { Err(format!("exit code {code}").into()) }
}

/// Whether a report says of its trace that it is broken.
fn broken(report: &Report) -> bool {
    report.incomplete.iter().any(|incomplete| incomplete.reason == Reason::DamagedTrace)
}

/// A trace that is not whole is never clean, and no other reason hides that it is not whole.
fn is_noticed(bytes: Vec<u8>, at: usize) -> Result<(), Failed> {
    match replayed(bytes) {
        Ok(report) if at >= 12 && broken(&report) && report.verdict != Verdict::Clean => Ok(()),
        Ok(report) => Err(format!("at byte {at}: {:?}, {:?}", report.verdict, report.incomplete).into()),
        Err(_) if at < 12 => Ok(()),
        Err(error) => Err(format!("at byte {at}: {error}").into()),
    }
}

fn cut_off_everywhere() -> Result<(), Failed> {
    let whole = small()?;
    let mut races = 0;
    for length in 0..whole.len() {
        let cut = whole[..length].to_vec();
        races += usize::from(replayed(cut.clone()).is_ok_and(|report| report.verdict == Verdict::Race));
        is_noticed(cut, length)?;
    }
    // What was found before the break stays found: the records lie before the last chunks.
    if races < 100 { Err(format!("only {races} with races").into()) } else { Ok(()) }
}

fn flipped_everywhere() -> Result<(), Failed> {
    flipped(&small()?).try_for_each(|(at, flipped)| is_noticed(flipped, at))
}

fn something_behind_the_end() -> Result<(), Failed> {
    let whole = small()?;
    for more in [&[0][..], &[0; 100], &whole] {
        is_noticed([&whole, more].concat(), whole.len())?;
    }
    Ok(())
}

fn refused() -> Result<(), Failed> {
    let mut newer = small()?;
    newer[8] = 3;
    for (bytes, why) in [
        (newer, "it has version 3 of the format, and this ptxrace knows version 2 only"),
        (Vec::new(), "it does not begin as a trace does"),
        (std::fs::read(SMALL)?, "it does not begin as a trace does"),
    ] {
        let error = replayed(bytes).expect_err(why);
        if !error.contains(why) {
            return Err(error.into());
        }
    }
    for (file, why) in [("tests", "no regular file"), ("nothing.trace", "cannot read `nothing.trace`")] {
        let (code, _, err) = ptxrace(words(&["ptxrace", "replay", file]))?;
        if code != 2 || !err.contains(why) {
            return Err(err.into());
        }
    }
    Ok(())
}

/// A writer whose bytes can be looked at.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The head and the text of a program's trace, with its records.
fn by_hand(launch: &Path, backend: &str) -> Result<(Head, String, Vec<Launched>), Failed> {
    let run = record(launch, &mut Emulator::new(), &RunOptions::default())?;
    let head = Head {
        tool: "0.0.0".into(),
        file: within(launch).with_extension("ptx").display().to_string(),
        sites: sites_digest(&run.sites),
        backend: backend.into(),
        command: "ptxrace run".into(),
        seed: 7,
        buffers: run.plan.buffers.iter().map(|buffer| buffer.name.clone()).collect(),
        launches: run.plan.launches.clone(),
        notes: Vec::new(),
    };
    Ok((head, std::fs::read_to_string(launch.with_extension("ptx"))?, run.capture.launches))
}

/// Writes a run as another one would have gone; `at_once` gives the records of a launch at once.
fn written(
    launch: &Path,
    backend: &str,
    dropped: u64,
    at_once: bool,
    ran: &Result<Outcome, BackendError>,
) -> Result<Report, Failed> {
    let (head, module, launches) = by_hand(launch, backend)?;
    let bytes = Shared::default();
    let writer = Writer::new(Box::new(bytes.clone()), &head, &module, [])?;
    let mut tape = writer.schedule(head.seed);
    for launch in launches {
        tape.begin(launch.info.as_ref().ok_or("no launch")?);
        let records = common::records(&launch.units);
        if at_once {
            tape.records(&launch.units);
        } else {
            records.iter().for_each(|record| tape.records(record));
        }
        let mut end = launch.end;
        end.dropped = dropped;
        tape.end(&end);
    }
    tape.done(ran);
    writer.finish(1, None)?;
    let bytes = bytes.0.lock().clone();
    Ok(replayed(bytes)?)
}

fn of_a_device() -> Result<(), Failed> {
    let launch = root().join("ptx-samples/clean/reduce.toml");
    let lost = written(&launch, "gpu", 3, false, &Ok(Outcome::default()))?;
    let reasons: Vec<_> = lost.incomplete.iter().map(|incomplete| incomplete.reason).collect();
    let launch_facts = lost.launches.first().ok_or("no launch")?;
    if (launch_facts.backend, launch_facts.dropped) != ("gpu", 3) || reasons != [Reason::DroppedRecords] {
        return Err(format!("{lost:?}").into());
    }
    let gone = BackendError::Driver { call: "cuStreamSynchronize".into(), detail: "gone".into() };
    let gone = written(&launch, "gpu", 0, false, &Err(gone))?;
    let reasons: Vec<_> = gone.incomplete.iter().map(|incomplete| incomplete.reason).collect();
    if reasons == [Reason::Device] { Ok(()) } else { Err(format!("{gone:?}").into()) }
}

/// However records are handed over, and however many.
fn in_pieces() -> Result<(), Failed> {
    let launch = root().join("benches/kernels/exchange.toml");
    let [all, one] =
        [true, false].map(|at_once| written(&launch, "emu", 0, at_once, &Ok(Outcome::default())));
    let (all, one) = (all?, one?);
    let records = |report: &Report| report.launches.iter().map(|launch| launch.records).sum::<u64>();
    if all.summary() != one.summary() || records(&all) < 300_000 || !all.incomplete.is_empty() {
        return Err(format!("{}\n{}\n{:?}", all.summary(), one.summary(), all.incomplete).into());
    }
    Ok(())
}

/// Chunks that are sound one by one and make no sense together.
fn nonsense() -> Result<(), Failed> {
    let (head, module, launches) = by_hand(&root().join(SMALL).with_extension("toml"), "emu")?;
    let head = serde_json::to_value(&head)?;
    let info = json!({ "index": 0, "regions": [] });
    let end = json!({ "records": 0, "dropped": 0, "unlogged": [7], "unseen_order": false });
    let done = json!({ "stop": null, "failure": null });
    let text = |value: &Value| value.to_string().into_bytes();
    let units = vec![0xa5; 16 * launches.len().max(3)];
    let of = |kind: Kind, bytes: &[u8]| chunk(kind as u32, 0, bytes);
    let with = |key: &str, value: Value| {
        let mut head = head.clone();
        head[key] = value;
        of(Kind::Head, &text(&head))
    };
    let launch = |grid: Value, block: Value, cluster: Value, after: Value| {
        let mut launch = head["launches"][0].clone();
        (launch["grid"], launch["block"], launch["cluster"], launch["after"]) = (grid, block, cluster, after);
        with("launches", json!([launch]))
    };
    let sound = of(Kind::Head, &text(&head));
    let module = of(Kind::Module, module.as_bytes());
    let (begin, units) = (of(Kind::Begin, &text(&info)), of(Kind::Units, &units));
    let (end, done) = (of(Kind::End, &text(&end)), of(Kind::Done, &text(&done)));
    let finish = |schedules: u64| of(Kind::Finish, &text(&json!({ "schedules": schedules })));
    let one = json!([1, 1, 1]);
    let elsewhere = of(Kind::Begin, &text(&json!({ "index": u32::MAX, "regions": [] })));
    let run = [&begin[..], &end, &done].concat();
    let start_of = |head: &[u8]| [head, &module].concat();
    let cases = [
        ("no head", [&module[..], &finish(0)].concat()),
        ("two heads", [&sound[..], &sound, &module, &run, &finish(1)].concat()),
        ("two modules", [&start_of(&sound)[..], &module, &run, &finish(1)].concat()),
        (
            "no bytes in a grid",
            [&start_of(&launch(json!([0, 1, 1]), one.clone(), json!(null), json!([])))[..], &run, &finish(1)]
                .concat(),
        ),
        (
            "a grid too large",
            [
                &start_of(&launch(json!([u32::MAX, u32::MAX, 9]), one.clone(), json!(null), json!([])))[..],
                &run,
                &finish(1),
            ]
            .concat(),
        ),
        (
            "a block too large",
            [
                &start_of(&launch(one.clone(), json!([2048, 1, 1]), json!(null), json!([])))[..],
                &run,
                &finish(1),
            ]
            .concat(),
        ),
        (
            "a cluster that does not divide",
            [&start_of(&launch(one.clone(), one.clone(), json!([2, 1, 1]), json!([])))[..], &run, &finish(1)]
                .concat(),
        ),
        (
            "a cluster of nothing",
            [&start_of(&launch(one.clone(), one.clone(), json!([1, 0, 1]), json!([])))[..], &run, &finish(1)]
                .concat(),
        ),
        (
            "after itself",
            [&start_of(&launch(one.clone(), one.clone(), json!(null), json!([0])))[..], &run, &finish(1)]
                .concat(),
        ),
        ("a launch that is not there", [&start_of(&sound)[..], &elsewhere, &end, &done, &finish(1)].concat()),
        ("records of no launch", [&start_of(&sound)[..], &units, &done, &finish(1)].concat()),
        ("the end of no launch", [&start_of(&sound)[..], &end, &done, &finish(1)].concat()),
        ("a launch in a launch", [&start_of(&sound)[..], &begin, &begin, &end, &done, &finish(1)].concat()),
        ("more behind the end of a schedule", [&start_of(&sound)[..], &run, &begin, &finish(1)].concat()),
        ("no end of a schedule", [&start_of(&sound)[..], &begin, &end, &finish(1)].concat()),
        ("another number of schedules", [&start_of(&sound)[..], &run, &finish(2)].concat()),
        (
            "half a unit",
            [&start_of(&sound)[..], &begin, &of(Kind::Units, &[1; 24]), &end, &done, &finish(1)].concat(),
        ),
        ("no JSON", [&start_of(&sound)[..], &of(Kind::Begin, b"{"), &done, &finish(1)].concat()),
        ("an unknown kind", [&start_of(&sound)[..], &chunk(11, 0, b""), &run, &finish(1)].concat()),
        (
            "a source that is none",
            [&start_of(&sound)[..], &of(Kind::Source, b"[]"), &run, &finish(1)].concat(),
        ),
    ];
    for (what, chunks) in cases {
        is_noticed([&start(2)[..], &chunks].concat(), 12)
            .map_err(|e| format!("{what}: {}", e.message().unwrap_or("")))?;
    }
    // Records that are damaged are what they are in a run.
    let bytes = [&start(2)[..], &sound, &module, &begin, &units, &end, &done, &finish(1)].concat();
    let report = replayed(bytes)?;
    let reasons: Vec<_> = report.incomplete.iter().map(|incomplete| incomplete.reason).collect();
    if reasons != [Reason::DegradedOrder] {
        return Err(format!("{:?}", report.incomplete).into());
    }
    let other = [&start(2)[..], &with("sites", json!(1)), &module, &run, &finish(1)].concat();
    match replayed(other) {
        Err(error) if error.contains("numbers instructions otherwise") => Ok(()),
        other => Err(format!("{other:?}").into()),
    }
}

/// A trace that an earlier build has written. If it cannot be read any more, `trace::VERSION` has to be another; if only sites
/// have other numbers now, it has to be recorded again.
fn of_an_earlier_build() -> Result<(), Failed> {
    let report = replayed(std::fs::read(root().join("tests/trace/version-2.trace"))?)?;
    let text = format!("{:?} {}", report.verdict, report.summary());
    if text.starts_with("Race 2 races, 0 warnings, 0 inconclusive, ") { Ok(()) } else { Err(text.into()) }
}

/// A trace that cannot be written does not change what the run says, but the exit code.
fn no_room() -> Result<(), Failed> {
    if !Path::new("/dev/full").exists() {
        return Ok(());
    }
    for trace in ["/dev/full", "nowhere/a.trace"] {
        let (code, _, err) =
            ptxrace(words(&["ptxrace", "run", SMALL, "--backend", "emu", "--record", trace]))?;
        if code != 2 || !err.contains(&format!("cannot write `{trace}`")) {
            return Err(format!("{code}: {err}").into());
        }
    }
    Ok(())
}

/// Options of reports count when a trace is replayed, not when it was recorded.
fn options_of_reports() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let trace = folder.path().join("a.trace").to_string_lossy().into_owned();
    let file = "tests/cases/66-atomics-need-no-barrier/racy.ptx";
    let run = ["ptxrace", "run", file, "--backend", "emu", "--record", &trace, "--allow", "R007"];
    let replay = ["ptxrace", "replay", &trace];
    let allowed = [&replay[..], &["--allow", "R007"]].concat();
    for (command, expected) in [(&run[..], 0), (&replay, 1), (&allowed, 0)] {
        let (code, out, err) = ptxrace(words(command))?;
        if code != expected {
            return Err(format!("{command:?} gives {code}\n{out}\n{err}").into());
        }
    }
    Ok(())
}

fn main() {
    std::env::set_current_dir(root()).expect("the repository");
    let mut trials = vec![
        Trial::test("damage/cut-off", cut_off_everywhere),
        Trial::test("damage/flipped", flipped_everywhere),
        Trial::test("damage/behind-the-end", something_behind_the_end),
        Trial::test("damage/nonsense", nonsense),
        Trial::test("refused", refused),
        Trial::test("of-a-device", of_a_device),
        Trial::test("in-pieces", in_pieces),
        Trial::test("of-an-earlier-build", of_an_earlier_build),
        Trial::test("no-room", no_room),
        Trial::test("options-of-reports", options_of_reports),
    ];
    let mut add = |family: &str, launch: &Path, flags: &'static [&'static str]| {
        let path: PathBuf = launch.into();
        trials.push(Trial::test(format!("{family}/{}", name(launch)), move || same(&path, flags)));
    };
    for folder in ["ptx-samples/race", "ptx-samples/clean", "ptx-samples/invalid", "tests/cases"] {
        for launch in programs(folder) {
            let short = name(&launch);
            if short == "ptx-samples/invalid/endless-loop" {
                add("timeout", &launch, &["--timeout", "0.5", "--seed", "0"]);
                continue;
            }
            add("same", &launch, &[]);
            if folder == "ptx-samples/race" {
                add("schedules", &launch, &["--schedules", "3", "--seed", "9"]);
                add("weak", &launch, &["--memory", "weak", "--schedules", "2"]);
            }
        }
    }
    assert!(trials.len() > 150, "only {} trials", trials.len());
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
