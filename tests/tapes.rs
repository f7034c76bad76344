//! Traces of programs under `exec`, made of tapes without any process: every program is observed as if one had launched it, with
//! a log and a tape, and what the trace gives is what the log gave. What is damaged is read up to there.

#[path = "common/chunks.rs"]
mod chunks;
mod common;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use chunks::{Kind, chunk, flipped, start};
use common::{name, programs, record, root, within};
use libtest_mimic::{Arguments, Failed, Trial};
use ptxrace::backend::emu::Emulator;
use ptxrace::backend::{LaunchInfo, RunOptions, Sink};
use ptxrace::engine::{Analysis, HostAccess, Moment, StreamId, Streams};
use ptxrace::explain::Search;
use ptxrace::finding::AccessClass;
use ptxrace::report::{Reason, Report, Silent, Verdict};
use ptxrace::session::exec::log::{Line, Writer};
use ptxrace::session::exec::{Ending, Logs, Observer, Recording, Runner, Settings, Wanted, merge, observe};
use ptxrace::session::{Linked, Policy, ReplayRequest, Replayed, read, replay_bytes};
use ptxrace::trace::ExecHead;
use serde_json::{Value, json};

/// Two warps, a few records, a race.
const SMALL: &str = "tests/cases/66-atomics-need-no-barrier/racy.toml";
/// What shows findings again.
const COMMAND: &str = "ptxrace exec -- app";

/// How a process ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Orderly,
    /// Within the last launch.
    Killed,
}

fn head() -> ExecHead {
    let notes = vec!["a note".into()];
    ExecHead { tool: "0.0.0".into(), command: COMMAND.into(), races: 66, strict: false, notes }
}

/// Tells an observer what a process does that runs a program twice, after a memset which its launches do not wait for if `unordered`.
fn act(
    observer: &mut Observer<Option<Writer>>,
    launch: &Path,
    unordered: bool,
    end: End,
) -> Result<(), Failed> {
    let run = record(launch, &mut Emulator::new(), &RunOptions::default())?;
    let source = read(&within(launch).with_extension("ptx")).map_err(|error| error.message)?;
    let module = observer.module(&source, Arc::clone(&run.sites));
    let infos = || run.capture.launches.iter().filter_map(|launched| launched.info.as_ref());
    let regions = infos().next().map(|info| info.regions.clone()).unwrap_or_default();
    let mut streams = Streams::default();
    let set: Vec<_> = regions
        .iter()
        .map(|region| HostAccess { class: AccessClass::Write, address: region.base, bytes: region.bytes })
        .collect();
    regions.into_iter().for_each(|region| observer.say(&Line::Region(region)));
    observer.host("cuMemsetD8", &set, streams.enqueue(StreamId::LEGACY), 0);
    if !unordered {
        streams.synchronize_all();
    }
    let most = run.plan.launches.iter().map(|launch| launch.stream).max().unwrap_or(0);
    let all: Vec<_> = (0..=most).map(|_| streams.create(false)).collect();
    let plan = &run.plan.launches;
    let mut moments: Vec<Moment> = Vec::new();
    for (number, launch) in plan.iter().chain(plan).enumerate() {
        let at = number % plan.len();
        if at == 0 && number > 0 {
            // What was found is found again.
            streams.synchronize_all();
            moments.clear();
        }
        let stream = all[launch.stream as usize];
        launch.after.iter().for_each(|earlier| streams.wait(stream, &moments[*earlier]));
        let order = streams.enqueue(stream);
        moments.push(streams.record(stream));
        let index = order.index;
        let mut launch = launch.clone();
        launch.stream = stream.0;
        observer.launch(&launch, order, module, true, Some("suite.case".into()));
        let Some(launched) = run.capture.launches.get(at) else { break };
        observer.begin(&LaunchInfo { index, ..LaunchInfo::default() });
        observer.records(&launched.units);
        if end == End::Killed && number >= plan.len() && at + 1 == run.capture.launches.len() {
            observer.flush();
            return Ok(());
        }
        observer.end(&launched.end);
        let stops = at + 1 == run.capture.launches.len();
        observer.over(index, launched.end.clone(), run.outcome.stop.clone().filter(|_| stops));
    }
    observer.leave();
    Ok(())
}

/// What a recorded program gave.
struct Gave {
    report: Report,
    trace: Vec<u8>,
    error: Option<String>,
}

/// Has processes observed, one after the other. `tapes` may do something to the folder of tapes before.
fn recorded(
    processes: &[(&Path, bool, End)],
    policy: &Policy,
    tapes: impl FnOnce(&Path),
) -> Result<Gave, Failed> {
    let (logs, place) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let path = place.path().join("a.trace");
    let recording = Recording::begin(&path, &head()).map_err(|error| error.message)?;
    tapes(recording.tapes());
    let settings = Settings {
        tapes: Some(recording.tapes().to_owned()),
        ..Settings::new(logs.path().into(), Runner::Emulator, &RunOptions::default(), Wanted::default())
    };
    let mut search = Search::default();
    for (pid, (launch, unordered, end)) in (1..).zip(processes) {
        let mut observer = observe(&settings, pid, vec!["app".into(), pid.to_string()]);
        act(&mut observer, launch, *unordered, *end)?;
        search.folders.extend(launch.parent().map(PathBuf::from));
    }
    let logs = Logs::read(logs.path()).map_err(|error| error.message)?;
    let error = recording.finish(&logs, &search, 7).err().map(|error| error.message);
    let left = std::fs::read_dir(place.path())?.count();
    if left != 1 {
        return Err(format!("{left} files are left").into());
    }
    Ok(Gave { report: merge(logs, policy, &search, COMMAND), trace: std::fs::read(path)?, error })
}

fn request(triage: bool, policy: &Policy) -> ReplayRequest {
    let analysis = Analysis { triage, ..Analysis::default() };
    ReplayRequest { file: "a.trace".into(), policy: policy.clone(), command: COMMAND.into(), analysis }
}

fn replayed(bytes: Vec<u8>) -> Result<Replayed, String> {
    replay_bytes(&request(false, &Policy::default()), Box::new(bytes), &Linked, &Silent)
        .map_err(|errors| errors.into_iter().map(|error| error.message).collect::<Vec<_>>().join("; "))
}

/// What must not differ, as text.
fn shown(report: &Report) -> String {
    let Report { verdict, launches, findings, incomplete, .. } = report;
    format!("{verdict:?}\n{launches:?}\n{findings:#?}\n{incomplete:#?}")
}

/// A program that is recorded and replayed gives the same report.
fn same(processes: &[(&Path, bool, End)]) -> Result<(), Failed> {
    let policy = Policy::default();
    let gave = recorded(processes, &policy, |_| ())?;
    if let Some(error) = gave.error {
        return Err(error.into());
    }
    for triage in [true, false] {
        let request = request(triage, &policy);
        let again = replay_bytes(&request, Box::new(gave.trace.clone()), &Linked, &Silent);
        let Replayed { report, ending } = again.map_err(|errors| format!("{errors:?}"))?;
        let (now, then) = (shown(&report), shown(&gave.report));
        if let Some(line) = now.lines().zip(then.lines()).position(|(a, b)| a != b) {
            let at =
                |text: &str| text.lines().skip(line.saturating_sub(3)).take(9).collect::<Vec<_>>().join("\n");
            return Err(format!("line {line}:\n{}\n--- not\n{}", at(&now), at(&then)).into());
        }
        if now != then || ending != Some(Ending { races: 66, strict: false, status: Some(7) }) {
            return Err(format!("{ending:?}\n{now}\n--- not\n{then}").into());
        }
        let notes: Vec<_> = report.notes.iter().map(|note| note.message.as_str()).collect();
        let mut expected: Vec<_> = gave.report.notes.iter().map(|note| note.message.as_str()).collect();
        expected.push("a note");
        if notes != expected {
            return Err(format!("{notes:?}").into());
        }
    }
    Ok(())
}

/// The trace of a small program: two processes, the second of which is killed.
fn small() -> Result<Vec<u8>, Failed> {
    let path = root().join(SMALL);
    let gave =
        recorded(&[(&path, true, End::Orderly), (&path, false, End::Killed)], &Policy::default(), |_| ())?;
    if gave.report.verdict == Verdict::Race { Ok(gave.trace) } else { Err("no race".into()) }
}

fn broken(report: &Report) -> bool {
    report.incomplete.iter().any(|incomplete| incomplete.reason == Reason::DamagedTrace)
}

/// A trace that is not whole is never clean, and no other reason hides that it is not whole.
fn is_noticed(bytes: Vec<u8>, at: usize) -> Result<(), Failed> {
    match replayed(bytes) {
        Ok(Replayed { report, .. }) if at >= 12 && broken(&report) && report.verdict != Verdict::Clean => {
            Ok(())
        }
        Ok(Replayed { report, .. }) => {
            Err(format!("at byte {at}: {:?}, {:?}", report.verdict, report.incomplete).into())
        }
        Err(_) if at < 12 => Ok(()),
        Err(error) => Err(format!("at byte {at}: {error}").into()),
    }
}

fn cut_off_everywhere() -> Result<(), Failed> {
    let whole = small()?;
    let mut races = 0;
    for length in 0..whole.len() {
        let cut = whole[..length].to_vec();
        races += usize::from(replayed(cut.clone()).is_ok_and(|now| now.report.verdict == Verdict::Race));
        is_noticed(cut, length)?;
    }
    // What was found before the break stays found: all of the first process lies before the second.
    if races < whole.len() / 3 {
        Err(format!("only {races} of {} with races", whole.len()).into())
    } else {
        Ok(())
    }
}

fn flipped_everywhere() -> Result<(), Failed> {
    flipped(&small()?).try_for_each(|(at, flipped)| is_noticed(flipped, at))
}

fn behind_the_end() -> Result<(), Failed> {
    let whole = small()?;
    is_noticed([&whole[..], &[0; 100]].concat(), whole.len())
}

/// In a trace that breaks off, a launch that had not ended by then is none that its process ended in.
fn killed() -> Result<(), Failed> {
    let reasons = |bytes| -> Result<Vec<Reason>, Failed> {
        let report = replayed(bytes)?.report;
        Ok(report.incomplete.iter().map(|incomplete| incomplete.reason).collect())
    };
    let whole = small()?;
    let cut = whole[..whole.len() - 1].to_vec();
    match (reasons(whole)?.as_slice(), reasons(cut)?.as_slice()) {
        ([Reason::Fault], [Reason::DamagedTrace]) => Ok(()),
        other => Err(format!("{other:?}").into()),
    }
}

/// What counts is said when it is replayed.
fn policies() -> Result<(), Failed> {
    let path = root().join(SMALL);
    let gave = recorded(&[(&path, false, End::Orderly)], &Policy::default(), |_| ())?;
    let policy = Policy::new(&[], &["R007".into()]).map_err(|error| error.message)?;
    let again = replay_bytes(&request(false, &policy), Box::new(gave.trace), &Linked, &Silent);
    match again.map(|now| now.report.verdict) {
        Ok(Verdict::Clean) if gave.report.verdict == Verdict::Race => Ok(()),
        other => Err(format!("{other:?}").into()),
    }
}

/// Tapes that cannot be written change nothing of what the program's report says.
fn no_room() -> Result<(), Failed> {
    let path = root().join(SMALL);
    let gone = |folder: &Path| std::fs::remove_dir(folder).expect("the folder of tapes");
    let gave = recorded(&[(&path, false, End::Orderly)], &Policy::default(), gone)?;
    let Some(error) = gave.error else { return Err("no error".into()) };
    if !error.contains("cannot write") || gave.report.verdict != Verdict::Race {
        return Err(format!("{error}: {:?}", gave.report.verdict).into());
    }
    let length = gave.trace.len();
    is_noticed(gave.trace, length)
}

/// The chunks of a trace whose events and records are these; where a text is empty stand records.
fn of_events(events: &[Value]) -> Vec<u8> {
    let head = serde_json::to_vec(&head()).expect("JSON");
    let mut trace = [start(2), chunk(Kind::Exec as u32, 0, &head)].concat();
    for event in events {
        let text = event.to_string();
        trace.extend(match text.as_str() {
            "null" => chunk(Kind::Units as u32, 1, &[0xa5; 32]),
            text => chunk(Kind::Event as u32, 1, text.as_bytes()),
        });
    }
    trace.extend(chunk(
        Kind::Finish as u32,
        0,
        json!({ "schedules": 1, "status": 0 }).to_string().as_bytes(),
    ));
    trace
}

/// Chunks that are sound one by one and make no sense together.
fn nonsense() -> Result<(), Failed> {
    let process =
        json!({"Line": {"Process": {"pid": 1, "version": "0", "backend": "emu", "command": ["app"]}}});
    let launch = |index: u32, opened: &[u32], grid: [u32; 3], checked: bool| {
        json!({"Launch": {
            "launch": {"kernel": "k", "grid": grid, "block": [32, 1, 1], "cluster": null, "shared": 0, "stream": 0, "after": []},
            "step": {"index": index, "oldest": 0, "opened": opened, "closed": []},
            "module": 0, "checked": checked, "test": null
        }})
    };
    let first = launch(0, &[], [1; 3], true);
    let begin = |index: u32| json!({"Begin": {"index": index, "regions": []}});
    let end = json!({"records": 0, "dropped": 0, "unlogged": [], "unseen_order": false});
    let ended = json!({"Ended": end});
    let over = json!({"Over": {"index": 0, "end": end, "stop": null}});
    let host = |index: u32| {
        let access = json!({"class": "Write", "address": 0, "bytes": u64::MAX});
        let step = json!({"index": index, "oldest": 0, "opened": [], "closed": []});
        json!({"Host": {"call": "cuMemset", "stream": 0, "accesses": [access], "step": step}})
    };
    let module = |first_site: u32, sites: u32| json!({"Module": {"path": "a.ptx", "text": ".version 8.0", "first_site": first_site, "sites": sites}});
    let line = |line: Value| json!({ "Line": line });
    let records = Value::Null;
    let cases = [
        ("records of no launch", vec![records.clone()]),
        ("the end of no launch", vec![ended.clone()]),
        ("the beginning of no launch", vec![begin(0)]),
        ("the beginning of another", vec![first.clone(), begin(1)]),
        ("of one that is not checked", vec![launch(0, &[], [1; 3], false), begin(0)]),
        ("of one without blocks", vec![launch(0, &[], [0; 3], true), begin(0)]),
        ("of one with too many", vec![launch(0, &[], [u32::MAX; 3], true), begin(0)]),
        ("of one before an operation", vec![first.clone(), host(1), begin(0)]),
        ("a number too high", vec![launch(1, &[], [1; 3], true)]),
        ("a number again", vec![first.clone(), host(0)]),
        ("open before itself", vec![launch(0, &[0], [1; 3], true)]),
        ("a module with other numbers", vec![module(1, 0)]),
        ("a launch as a line", vec![line(json!({"Host": {"index": 0, "call": "x", "stream": 0}}))]),
        ("a file", vec![line(json!({"Module": {"path": "a", "text": "/etc/passwd", "first_site": 0}}))]),
        ("no event", vec![json!({"Nothing": 1})]),
        ("an event that is cut off", vec![json!([first])]),
    ];
    for (what, mut events) in cases {
        events.insert(0, process.clone());
        is_noticed(of_events(&events), 12).map_err(|e| format!("{what}: {}", e.message().unwrap_or("")))?;
    }
    let exec = chunk(Kind::Exec as u32, 0, &serde_json::to_vec(&head())?);
    for kind in [Kind::Head, Kind::Module, Kind::Begin, Kind::End, Kind::Done, Kind::Exec] {
        let mixed = [start(2), exec.clone(), chunk(kind as u32, 1, b"{}")].concat();
        match replayed(mixed)?.report.incomplete.as_slice() {
            [only] if only.detail.contains("damaged") => {}
            other => return Err(format!("{kind:?} in the trace of a program: {other:?}").into()),
        }
    }
    // What is sound and strange is what it is in a process.
    let sound = [
        process.clone(),
        first.clone(),
        begin(0),
        records,
        ended,
        over.clone(),
        host(1),
        over,
        json!("Left"),
    ];
    let report = replayed(of_events(&sound))?.report;
    let reasons: Vec<_> = report.incomplete.iter().map(|incomplete| incomplete.reason).collect();
    if reasons != [Reason::DegradedOrder] {
        return Err(format!("{:?}", report.incomplete).into());
    }
    // Another version numbers sites otherwise.
    match replayed(of_events(&[process, module(0, 1)])) {
        Err(error) if error.contains("numbers instructions otherwise") => Ok(()),
        other => Err(format!("{other:?}").into()),
    }
}

fn main() {
    std::env::set_current_dir(root()).expect("the repository");
    let mut trials = vec![
        Trial::test("damage/cut-off", cut_off_everywhere),
        Trial::test("damage/flipped", flipped_everywhere),
        Trial::test("damage/behind-the-end", behind_the_end),
        Trial::test("damage/nonsense", nonsense),
        Trial::test("damage/killed", killed),
        Trial::test("policies", policies),
        Trial::test("no-room", no_room),
    ];
    let mut all = Vec::new();
    for folder in ["ptx-samples/race", "ptx-samples/clean", "tests/cases"] {
        all.extend(programs(folder));
    }
    assert!(all.len() > 150, "only {} programs", all.len());
    for (number, launch) in all.iter().enumerate() {
        let (name, launch) = (name(launch), launch.clone());
        let unordered = number % 2 == 0;
        trials.push(Trial::test(format!("same/{name}"), move || same(&[(&launch, unordered, End::Orderly)])));
    }
    for (number, pair) in all.chunks_exact(2).enumerate().filter(|(number, _)| number % 10 == 0) {
        let (a, b) = (pair[0].clone(), pair[1].clone());
        let run =
            move || same(&[(&a, true, End::Killed), (&b, false, End::Orderly), (&a, false, End::Orderly)]);
        trials.push(Trial::test(format!("processes/{number}"), run));
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
