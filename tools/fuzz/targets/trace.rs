//! Any bytes give a report or an error when they are replayed as a trace: bytes as they come, behind a sound start, and chunks that
//! are sound with any contents in any order, of runs and of programs.
#![no_main]

#[path = "../../../tests/common/chunks.rs"]
mod chunks;

use chunks::{Kind, chunk, start};
use libfuzzer_sys::fuzz_target;
use ptxrace::instrument::SiteTable;
use ptxrace::ptx::parse;
use ptxrace::report::{Reason, Silent, Verdict};
use ptxrace::session::{Linked, ReplayRequest, Replayed, replay_bytes};
use ptxrace::trace::sites_digest;

/// A site of every kind.
const MODULE: &str = include_str!("../sites.ptx");

/// JSON of every kind of chunk of a run but the first two.
const TEXTS: [(Kind, &str); 7] = [
    (Kind::Source, r#"{"name":"a.cu","path":"b/a.cu","text":"x\n"}"#),
    (Kind::Begin, r#"{"index":0,"regions":[{"name":"a","base":4096,"bytes":64,"element":4}]}"#),
    (Kind::End, r#"{"records":9,"dropped":0,"unlogged":[0],"unseen_order":false}"#),
    (Kind::Done, r#"{"stop":null,"failure":null}"#),
    (
        Kind::Done,
        r#"{"stop":{"Deadlock":{"warps":[{"block":[0,0,0],"warp":1,"mask":9,"at":{"start":400,"end":410},"waiting":"x"}]}},"failure":null}"#,
    ),
    (Kind::Done, r#"{"stop":null,"failure":{"Unsupported":{"what":"x","at":{"start":9,"end":3}}}}"#),
    (Kind::Finish, r#"{"schedules":1}"#),
];

/// Events of a process, behind the one that loads its module.
const EVENTS: [&str; 14] = [
    r#"{"Line":{"Process":{"pid":1,"version":"0","backend":"gpu","command":["app"]}}}"#,
    r#"{"Line":{"Region":{"name":"a","base":4096,"bytes":64,"element":4}}}"#,
    r#"{"Line":{"Unwanted":{"kernel":"_Z1kv"}}}"#,
    r#"{"Line":{"Incomplete":{"kind":"Opaque","detail":"x"}}}"#,
    r#"{"Launch":{"launch":{"kernel":"k","grid":[2,1,1],"block":[64,1,1],"cluster":[2,1,1],"shared":0,"stream":0,"after":[]},"step":{"index":0,"oldest":0,"opened":[],"closed":[]},"module":0,"checked":true,"test":null}}"#,
    r#"{"Launch":{"launch":{"kernel":"k","grid":[2,1,1],"block":[64,1,1],"cluster":null,"shared":9,"stream":1,"after":[]},"step":{"index":1,"oldest":0,"opened":[0],"closed":[]},"module":0,"checked":true,"test":"a"}}"#,
    r#"{"Begin":{"index":0,"regions":[]}}"#,
    r#"{"Begin":{"index":1,"regions":[]}}"#,
    r#"{"Ended":{"records":9,"dropped":1,"unlogged":[0],"unseen_order":true}}"#,
    r#"{"Over":{"index":0,"end":{"records":9,"dropped":0,"unlogged":[0],"unseen_order":false},"stop":null}}"#,
    r#"{"Over":{"index":1,"end":{"records":9,"dropped":0,"unlogged":[],"unseen_order":false},"stop":{"Deadlock":{"warps":[{"block":[0,0,0],"warp":1,"mask":9,"at":{"start":400,"end":410},"waiting":"x"}]}}}}"#,
    r#"{"Host":{"call":"c","stream":2,"accesses":[{"class":"Write","address":4100,"bytes":64},{"class":"Read","address":0,"bytes":18446744073709551615}],"step":{"index":1,"oldest":1,"opened":[0],"closed":[]}}}"#,
    r#"{"Host":{"call":"d","stream":0,"accesses":[{"class":"Write","address":4096,"bytes":8}],"step":{"index":2,"oldest":0,"opened":[1],"closed":[0]}}}"#,
    r#""Left""#,
];

fn sites() -> u32 {
    sites_digest(&SiteTable::new(&parse(MODULE).module))
}

fn head() -> Vec<u8> {
    let sites = sites();
    let launch = r#"{"kernel":"k","grid":[2,1,1],"block":[64,1,1],"cluster":[2,1,1],"shared":0,"stream":0,"after":[]}"#;
    format!(
        r#"{{"tool":"0","file":"a.ptx","sites":{sites},"backend":"emu","command":"x","seed":18446744073709551615,"buffers":["a"],"launches":[{launch},{launch}],"notes":[]}}"#
    )
    .into_bytes()
}

/// A trace of chunks, each chosen by a byte: what the data says, or a text with some of its bytes changed.
fn formed(mut data: &[u8]) -> Vec<u8> {
    let mut trace = start(2);
    trace.extend(chunk(Kind::Head as u32, 0, &head()));
    trace.extend(chunk(Kind::Module as u32, 0, MODULE.as_bytes()));
    while let Some(([choice, size], rest)) = data.split_first_chunk() {
        let (own, behind) = rest.split_at(usize::from(*size).min(rest.len()));
        data = behind;
        let schedule = u64::from(choice >> 6);
        match TEXTS.get(usize::from(choice & 7)) {
            None => trace.extend(chunk(Kind::Units as u32, schedule, own)),
            Some((kind, text)) => {
                trace.extend(chunk(*kind as u32, schedule, &changed(text, choice & 32 != 0, own)));
            }
        }
    }
    trace
}

/// A text, some of whose bytes may be changed: pairs of place and byte.
fn changed(text: &str, change: bool, how: &[u8]) -> Vec<u8> {
    let mut text = text.as_bytes().to_vec();
    for pair in how.chunks_exact(2).filter(|_| change) {
        let at = usize::from(pair[0]) % text.len();
        text[at] = pair[1];
    }
    text
}

/// The same of a program. The first process has loaded a module; operations are what they are by themselves, or with other numbers.
fn formed_exec(mut data: &[u8]) -> Vec<u8> {
    let mut trace = start(2);
    let head = r#"{"tool":"0","command":"x","races":66,"strict":false,"notes":["y"]}"#;
    trace.extend(chunk(Kind::Exec as u32, 0, head.as_bytes()));
    let text: String = MODULE.chars().flat_map(char::escape_default).collect();
    let text = text.replace("\\'", "'");
    let module =
        format!(r#"{{"Module":{{"path":"a.ptx","text":"{text}","first_site":0,"sites":{}}}}}"#, sites());
    trace.extend(chunk(Kind::Event as u32, 0, module.as_bytes()));
    while let Some(([choice, size], rest)) = data.split_first_chunk() {
        let (own, behind) = rest.split_at(usize::from(*size).min(rest.len()));
        data = behind;
        let process = u64::from(choice >> 7);
        match EVENTS.get(usize::from(choice & 15)) {
            None => trace.extend(chunk(Kind::Units as u32, process, own)),
            Some(text) => {
                trace.extend(chunk(Kind::Event as u32, process, &changed(text, choice & 32 != 0, own)));
            }
        }
    }
    trace.extend(chunk(Kind::Finish as u32, 0, br#"{"schedules":1,"status":0}"#));
    trace
}

fuzz_target!(|data: &[u8]| {
    let Some((first, data)) = data.split_first() else { return };
    let bytes = match first % 4 {
        0 => data.to_vec(),
        1 => [&start(2)[..], data].concat(),
        2 => formed(data),
        _ => formed_exec(data),
    };
    let request = ReplayRequest { file: "a.trace".into(), ..ReplayRequest::default() };
    let Ok(Replayed { report, .. }) = replay_bytes(&request, Box::new(bytes), &Linked, &Silent) else {
        return;
    };
    let broken = report.incomplete.iter().any(|incomplete| incomplete.reason == Reason::DamagedTrace);
    assert!(!broken || report.verdict != Verdict::Clean);
});
