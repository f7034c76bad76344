//! What no record tells of: threads that wait for ever, and values that nobody has written.

use super::{Ran, Run, kernel, kernel_with};
use crate::abi::TAG_SHARED;
use crate::backend::{Notice, NoticeKind, Stop};

/// Reads the flag in `%out` until it is set, by thread 0 alone.
const SPIN: &str = "mov.u32 %r1, %tid.x;\nsetp.ne.u32 %p1, %r1, 0;\n@%p1 bra OVER;\nAGAIN:\n\
                    ld.relaxed.gpu.global.u32 %r2, [%out];\nsetp.eq.u32 %p2, %r2, 0;\n@%p2 bra AGAIN;\nOVER:\n";

fn starved(ran: &Ran) -> Option<(u64, u64)> {
    match (&ran.outcome.stop, ran.kept.ends[0].notices.as_slice()) {
        (None, []) => None,
        (Some(Stop::Deadlock { .. }), [Notice { kind: NoticeKind::Starved { waiting }, address, .. }]) => {
            Some((*waiting, address - crate::backend::emu::memory::GLOBAL_BASE))
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn who_waits_for_ever_is_found() {
    let behind = |rest: &str| kernel(&format!("{SPIN}{rest}")).words("out", &[0, 0]).threads(64);
    // Nobody writes; the others have ended, or wait at a barrier or for the lanes of a mask.
    assert_eq!(starved(&behind("").run()), Some((0, 0)));
    assert_eq!(starved(&behind("bar.sync 0;").run()), Some((0, 0)));
    assert_eq!(starved(&behind("bar.warp.sync 0xffffffff;").run()), Some((0, 0)));
    // Those who write start too late.
    let late =
        "mov.u32 %r3, %ctaid.x;\nsetp.eq.u32 %p3, %r3, 999;\n@%p3 st.relaxed.gpu.global.u32 [%out], 1;\n";
    let blocks = |n| kernel(&format!("{late}{SPIN}")).words("out", &[0]).blocks(n);
    assert_eq!(starved(&blocks(1000).run()), Some((1000 - 64, 0)));
    // All lanes together, with a vote between.
    let vote = "AGAIN:\nld.volatile.global.u32 %r2, [%out+4];\nsetp.ne.u32 %p2, %r2, 0;\n\
                vote.sync.any.pred %p3, %p2, 0xffffffff;\n@!%p3 bra AGAIN;";
    assert_eq!(starved(&kernel(vote).words("out", &[1, 0]).run()), Some((0, 4)));
    // A lock that is never given back.
    let lock = "AGAIN:\natom.global.cas.b32 %r2, [%out], 0, 1;\nsetp.ne.u32 %p2, %r2, 0;\n@%p2 bra AGAIN;";
    assert_eq!(starved(&kernel(lock).words("out", &[0]).threads(2).run()), Some((0, 0)));
}

#[test]
fn who_goes_on_is_left_alone() {
    // Another block writes at last.
    let work = "mov.u32 %r3, %ctaid.x;\nsetp.eq.u32 %p3, %r3, 0;\n@%p3 bra READ;\nmov.u32 %r4, 0;\nLONG:\n\
                add.u32 %r4, %r4, 1;\nsetp.lt.u32 %p4, %r4, 200000;\n@%p4 bra LONG;\n\
                st.relaxed.gpu.global.u32 [%out], %r4;\nret;\nREAD:\n";
    let run = kernel(&format!("{work}{SPIN}")).words("out", &[0]).threads(1).blocks(2);
    assert_eq!(starved(&run.run()), None);
    // It gives up, by counting or by a clock.
    for (limit, step) in [("add.u32 %r3, %r3, 1;", "100000"), ("mov.u32 %r3, %clock;", "1000000")] {
        let body = format!(
            "mov.u32 %r3, 0;\nAGAIN:\nld.volatile.global.u32 %r2, [%out];\n{limit}\nsetp.ne.u32 %p1, %r2, 0;\n\
             @%p1 bra OVER;\nsetp.lt.u32 %p2, %r3, {step};\n@%p2 bra AGAIN;\nOVER:"
        );
        assert_eq!(starved(&kernel(&body).words("out", &[0]).threads(1).run()), None);
    }
}

/// A kernel whose shared words `w` nobody has written but the first eight.
fn words(body: &str) -> Run {
    let body = format!(
        "mov.u32 %r1, %tid.x;\nshl.b32 %r2, %r1, 2;\nmov.u32 %r3, w;\nadd.u32 %r3, %r3, %r2;\n\
         setp.lt.u32 %p1, %r1, 8;\n@%p1 st.shared.u32 [%r3], %r1;\nbar.sync 0;\nmad.wide.u32 %rd1, %r1, 4, %out;\n{body}"
    );
    kernel_with(".shared .align 16 .b8 w[4096];", &body).words("out", &[0; 256])
}

/// How many values were used that nobody had written, with the first's lane and address.
fn used(run: Run) -> Option<(u64, u8, u64)> {
    let ran = run.ok();
    match ran.kept.ends[0].notices.as_slice() {
        [] => None,
        [notice] if notice.kind == NoticeKind::NeverWritten => {
            Some((notice.count, notice.lane, notice.address & !TAG_SHARED))
        }
        other => panic!("{other:?}\n{}", ran.text),
    }
}

#[test]
fn uses_of_what_nobody_has_written_are_found() {
    let all = Some((24, 8, 32));
    assert_eq!(used(words("ld.shared.u32 %r4, [%r3];\nadd.u32 %r5, %r4, 1;")), all);
    assert_eq!(used(words("ld.shared.u32 %r4, [%r3];\nst.global.u32 [%rd1], %r4;")), all);
    assert_eq!(used(words("ld.shared.u32 %r4, [%r3];\nsetp.eq.u32 %p2, %r4, 0;")), all);
    assert_eq!(used(words("ld.shared.u32 %r4, [%r3];\nmov.b32 %r5, %r4;\nmul.lo.u32 %r6, %r5, %r5;")), all);
    // By a generic address; as an address; of a part of the lanes.
    let generic = "cvta.shared.u32 %r4, %r3;\ncvt.u64.u32 %rd2, %r3;\ncvta.shared.u64 %rd2, %rd2;\nld.u32 %r5, [%rd2];\n";
    assert_eq!(used(words(&format!("{generic}add.u32 %r5, %r5, 1;"))), all);
    assert_eq!(used(words("ld.shared.u32 %r4, [%r3];\n@!%p1 ld.shared.u32 %r5, [%r4];")), all);
    let some = "setp.eq.u32 %p2, %r1, 30;\nld.shared.u32 %r4, [%r3];\n@%p2 add.u32 %r5, %r4, 1;";
    assert_eq!(used(words(some)), Some((1, 30, 120)));
    // The elements of a vector one by one; atomics.
    let vector =
        "and.b32 %r4, %r3, 0xfffffff0;\nld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [w+16];\nadd.u32 %r9, %r8, 1;";
    assert_eq!(used(words(vector)), None);
    assert_eq!(used(words(&vector.replace("w+16", "w+32"))), Some((32, 0, 32)));
    assert_eq!(used(words("atom.shared.add.u32 %r4, [w+100], 1;")), Some((1, 0, 100)));
    assert_eq!(used(words("atom.shared.exch.b32 %r4, [w+100], 1;\nadd.u32 %r4, %r4, 1;")), None);
}

#[test]
fn what_is_read_and_not_used_is_left_alone() {
    // Dropped; written over; used by lanes that have it; chosen away; masked out.
    assert_eq!(used(words("ld.shared.u32 %r4, [%r3];")), None);
    assert_eq!(used(words("ld.shared.u32 %r4, [%r3];\nmov.u32 %r4, 1;\nadd.u32 %r5, %r4, 1;")), None);
    assert_eq!(used(words("ld.shared.u32 %r4, [%r3];\n@%p1 add.u32 %r5, %r4, 1;")), None);
    assert_eq!(
        used(words("ld.shared.u32 %r4, [%r3];\nselp.b32 %r5, %r4, 0, %p1;\nadd.u32 %r5, %r5, 1;")),
        None
    );
    assert_eq!(used(words("ld.shared.u32 %r4, [%r3];\nand.b32 %r5, %r4, 0;\nadd.u32 %r5, %r5, 1;")), None);
    // Copies of structures, and of single bytes.
    let vector = "ld.shared.v2.u32 {%r4, %r5}, [w+28];";
    assert_eq!(used(words(&vector.replace("w+28", "w+64")).threads(32)), None);
    assert_eq!(
        used(words("ld.shared.v2.u32 {%r4, %r5}, [w+64];\nst.global.v2.u32 [%out], {%r4, %r5};")),
        None
    );
    assert_eq!(used(words("ld.shared.u8 %r4, [%r3];\nst.global.u8 [%rd1], %r4;")), None);
    // One byte of the value was written.
    let byte = "st.shared.u8 [%r3], 1;\nld.shared.u32 %r4, [%r3];\nadd.u32 %r5, %r4, 1;";
    assert_eq!(used(words(byte)), None);
    // Written in other ways.
    let bulk = "setp.ne.u32 %p2, %r1, 0;\n@!%p2 st.bulk.shared::cta [w], 4096, 0;\nbar.sync 0;\n\
                ld.shared.u32 %r4, [%r3];\nadd.u32 %r5, %r4, 1;";
    assert_eq!(used(words(bulk)), None);
    let copy = "cp.async.ca.shared.global [%r3], [%rd1], 4;\ncp.async.wait_all;\nld.shared.u32 %r4, [%r3];\n\
                add.u32 %r5, %r4, 1;";
    assert_eq!(used(words(copy)), None);
}
