//! Any bytes give a report or an error when they are replayed as a trace: bytes as they come, behind a sound start, and chunks that
//! are sound with any contents in any order.
#![no_main]

#[path = "../../../tests/common/chunks.rs"]
mod chunks;

use chunks::{Kind, chunk, start};
use libfuzzer_sys::fuzz_target;
use ptxrace::instrument::SiteTable;
use ptxrace::ptx::parse;
use ptxrace::report::{Reason, Silent, Verdict};
use ptxrace::session::{Linked, ReplayRequest, replay_bytes};
use ptxrace::trace::sites_digest;

/// A site of every kind.
const MODULE: &str = include_str!("../sites.ptx");

/// JSON of every kind of chunk but the first two.
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

fn head() -> Vec<u8> {
    let sites = sites_digest(&SiteTable::new(&parse(MODULE).module));
    let launch = r#"{"kernel":"k","grid":[2,1,1],"block":[64,1,1],"cluster":[2,1,1],"shared":0,"stream":0,"after":[]}"#;
    format!(
        r#"{{"tool":"0","file":"a.ptx","sites":{sites},"backend":"emu","command":"x","seed":18446744073709551615,"buffers":["a"],"launches":[{launch},{launch}],"notes":[]}}"#
    )
    .into_bytes()
}

/// A trace of chunks, each chosen by a byte: what the data says, or a text with some of its bytes changed.
fn formed(mut data: &[u8]) -> Vec<u8> {
    let mut trace = start(1);
    trace.extend(chunk(Kind::Head as u32, 0, &head()));
    trace.extend(chunk(Kind::Module as u32, 0, MODULE.as_bytes()));
    while let Some(([choice, size], rest)) = data.split_first_chunk() {
        let (own, behind) = rest.split_at(usize::from(*size).min(rest.len()));
        data = behind;
        let schedule = u64::from(choice >> 6);
        match TEXTS.get(usize::from(choice & 7)) {
            None => trace.extend(chunk(Kind::Units as u32, schedule, own)),
            Some((kind, text)) => {
                let mut text = text.as_bytes().to_vec();
                if choice & 32 != 0 {
                    for change in own.chunks_exact(2) {
                        let at = usize::from(change[0]) % text.len();
                        text[at] = change[1];
                    }
                }
                trace.extend(chunk(*kind as u32, schedule, &text));
            }
        }
    }
    trace
}

fuzz_target!(|data: &[u8]| {
    let Some((first, data)) = data.split_first() else { return };
    let bytes = match first % 3 {
        0 => data.to_vec(),
        1 => [&start(1)[..], data].concat(),
        _ => formed(data),
    };
    let request = ReplayRequest { file: "a.trace".into(), ..ReplayRequest::default() };
    let Ok(report) = replay_bytes(&request, Box::new(bytes), &Linked, &Silent) else { return };
    let broken = report.incomplete.iter().any(|incomplete| incomplete.reason == Reason::DamagedTrace);
    assert!(!broken || report.verdict != Verdict::Clean);
});
