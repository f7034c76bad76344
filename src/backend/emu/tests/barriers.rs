//! CTA barriers: by id, by count, with reductions, with threads that have ended; deadlocks.

use super::kernel;
use crate::backend::Stop;

#[test]
fn everybody_waits_for_everybody() {
    let body = ".shared .b32 s[128];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, s;\nshl.b32 %r3, %r1, 2;\nadd.u32 %r4, %r2, %r3;\n\
                st.shared.u32 [%r4], %r1;\nbar.sync 0;\nmov.u32 %r5, 508;\nsub.u32 %r5, %r5, %r3;\nadd.u32 %r5, %r5, %r2;\n\
                ld.shared.u32 %r6, [%r5];\nmad.wide.u32 %rd1, %r1, 4, %out;\nst.global.u32 [%rd1], %r6;";
    for seed in 0..6 {
        let ran = kernel(body).threads(128).words("out", &[0; 128]).seed(seed).ok();
        assert_eq!(ran.words(0), (0..128).rev().collect::<Vec<_>>());
        assert_eq!(ran.of("bar.sync").len(), 4);
    }
}

#[test]
fn producers_arrive_and_consumers_wait() {
    // Warp 0 consumes what warp 1 produces: named barrier with both warps' threads.
    let body = ".shared .b32 s;\nmov.u32 %r1, %warpid;\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra CONSUMER;\n\
                st.shared.u32 [s], 42;\nbar.arrive 3, 64;\nbra END;\nCONSUMER:\nbar.sync 3, 64;\n\
                ld.shared.u32 %r2, [s];\nst.global.u32 [%out], %r2;\nEND:";
    for seed in 0..8 {
        let ran = kernel(body).threads(64).words("out", &[0]).seed(seed).ok();
        assert_eq!(ran.words(0), [42]);
        assert_eq!(ran.of("bar.arrive")[0].a[0], crate::abi::barrier_word(3, Some(64)));
    }
}

#[test]
fn a_barrier_reduces_predicates() {
    let body = "mov.u32 %r1, %tid.x;\nsetp.lt.u32 %p1, %r1, 40;\nbarrier.cta.red.popc.u32 %r2, 1, %p1;\n\
                bar.red.and.pred %p2, 1, %p1;\nbar.red.or.pred %p3, 1, !%p1;\nselp.b32 %r3, 1, 0, %p2;\n\
                selp.b32 %r4, 1, 0, %p3;\nsetp.ne.u32 %p4, %r1, 63;\n@%p4 bra END;\nst.global.u32 [%out], %r2;\n\
                st.global.u32 [%out+4], %r3;\nst.global.u32 [%out+8], %r4;\nEND:";
    assert_eq!(kernel(body).threads(64).words("out", &[0; 3]).ok().words(0), [40, 0, 1]);
}

#[test]
fn threads_that_ended_do_not_hold_others_up() {
    let body = "mov.u32 %r1, %tid.x;\nsetp.lt.u32 %p1, %r1, 40;\n@%p1 exit;\nbar.sync 0;\nred.global.add.u32 [%out], 1;";
    for seed in 0..8 {
        let ran = kernel(body).threads(96).words("out", &[0]).seed(seed).ok();
        assert_eq!(ran.words(0), [56]);
        assert!(ran.of("exit").iter().all(|r| r.mask == u32::MAX || r.mask == 0xff));
    }
}

#[test]
fn a_barrier_nobody_completes_is_a_deadlock() {
    let body = "mov.u32 %r1, %warpid;\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra A;\nbar.sync 1, 64;\nbra END;\nA:\nbar.sync 2, 64;\nEND:";
    let ran = kernel(body).threads(64).words("out", &[0]).run();
    let Some(Stop::Deadlock { warps }) = &ran.outcome.stop else { panic!("{:?}", ran.outcome.stop) };
    let mut seen: Vec<_> = warps.iter().map(|w| (w.warp, ran.slice(w.at), w.waiting.as_str())).collect();
    seen.sort_unstable();
    assert_eq!(
        seen,
        [
            (0, "bar.sync 2, 64;", "barrier 2 (32 of 64 threads arrived)"),
            (1, "bar.sync 1, 64;", "barrier 1 (32 of 64 threads arrived)"),
        ]
    );
}

#[test]
fn lanes_of_one_warp_meet_at_a_barrier_from_both_sides_of_a_branch() {
    let body = "mov.u32 %r1, %tid.x;\nsetp.lt.u32 %p1, %r1, 7;\n@%p1 bra A;\nbar.sync 0;\nbra END;\nA:\nbar.sync 0;\nEND:\n\
                red.global.add.u32 [%out], 1;";
    let ran = kernel(body).threads(64).words("out", &[0]).ok();
    assert_eq!(ran.words(0), [64]);
    assert_eq!(ran.of("bar.sync").len(), 3);
}

#[test]
fn a_barrier_is_used_again_and_again() {
    let body = "mov.u32 %r1, 0;\nLOOP:\nbar.sync 0;\nred.global.add.u32 [%out], 1;\nbar.sync 0;\nld.global.u32 %r2, [%out];\n\
                add.u32 %r1, %r1, 1;\nmul.lo.u32 %r3, %r1, 128;\nsetp.ne.u32 %p2, %r2, %r3;\n@%p2 trap;\nbar.sync 0;\n\
                setp.lt.u32 %p1, %r1, 10;\n@%p1 bra LOOP;";
    for seed in 0..4 {
        kernel(body).threads(128).words("out", &[0]).seed(seed).ok();
    }
}
