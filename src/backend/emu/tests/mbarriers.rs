//! mbarriers: phases, counts, states, bytes, what may not be.

use super::steps::same;
use super::{Run, kernel_with};
use crate::abi::mbarrier_word;
use crate::backend::FaultKind;

/// `bar` is initialised by thread 0 for `count` arrivals; all have seen that.
fn with_barrier(count: u32, body: &str) -> Run {
    let variables = ".shared .align 8 .b64 bar;\n.shared .b32 s[64];";
    let body = format!(
        "mov.u32 %r1, %tid.x;\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 mbarrier.init.shared::cta.b64 [bar], {count};\nbar.sync 0;\n{body}"
    );
    kernel_with(variables, &body)
}

#[test]
fn arrivals_complete_phases_and_waits_by_state_and_parity_see_it() {
    let body = "mov.u32 %r9, 0;\nLOOP:\nred.shared.add.u32 [s], 1;\nmbarrier.arrive.shared.b64 %rd1, [bar];\n\
                W:\nmbarrier.try_wait.shared.b64 %p2, [bar], %rd1, 100;\n@!%p2 bra W;\n\
                and.b32 %r8, %r9, 1;\nmbarrier.test_wait.parity.acquire.cta.shared.b64 %p3, [bar], %r8;\n@!%p3 trap;\n\
                ld.shared.u32 %r2, [s];\nadd.u32 %r9, %r9, 1;\nmul.lo.u32 %r3, %r9, 64;\nsetp.lt.u32 %p4, %r2, %r3;\n\
                @%p4 trap;\nsetp.lt.u32 %p4, %r9, 5;\n@%p4 bra LOOP;";
    let ran = same(|| with_barrier(64, body).threads(64).words("out", &[0]));
    assert!(ran.outcome.stop.is_none(), "{:?}", ran.outcome.stop);
    let waits = ran.of("mbarrier.try_wait.shared.b64");
    let arrivals = ran.of("mbarrier.arrive.shared.b64");
    assert_eq!(arrivals.iter().map(|r| r.mask.count_ones()).sum::<u32>(), 320);
    assert_eq!(waits.iter().map(|r| r.mask.count_ones()).sum::<u32>(), 320);
    // What was waited for is what the arrival gave.
    let states: Vec<u64> = arrivals.iter().flat_map(|r| r.read.clone()).collect();
    assert!(waits.iter().flat_map(|r| &r.written).all(|state| states.contains(state)));
    assert!(arrivals.iter().flat_map(|r| &r.written).all(|word| *word == mbarrier_word(1, 0)));
    assert_eq!(ran.of("mbarrier.init.shared::cta.b64")[0].written, [mbarrier_word(64, 0)]);
}

#[test]
fn counts_drops_and_pending_counts() {
    let body = "@!%p1 bra END;\nmbarrier.arrive.noComplete.shared.b64 %rd1, [bar], 2;\nmbarrier.pending_count.b64 %r2, %rd1;\n\
                mbarrier.arrive_drop.shared.b64 %rd2, [bar], 1;\nmbarrier.pending_count.b64 %r3, %rd2;\n\
                mbarrier.test_wait.shared.b64 %p2, [bar], %rd1;\nselp.u32 %r4, 1, 0, %p2;\n\
                mbarrier.arrive.shared.b64 _, [bar], 3;\nmbarrier.test_wait.shared.b64 %p2, [bar], %rd1;\nselp.u32 %r5, 1, 0, %p2;\n\
                mbarrier.arrive.shared.b64 %rd3, [bar];\nmbarrier.pending_count.b64 %r6, %rd3;\n\
                st.global.v4.u32 [%out], {%r2, %r3, %r4, %r5};\nst.global.u32 [%out+16], %r6;\n\
                mbarrier.inval.shared.b64 [bar];\nEND:";
    let ran = same(|| with_barrier(6, body).words("out", &[9; 5]));
    assert_eq!(ran.words(0), [6, 4, 0, 1, 5]);
    assert_eq!(ran.of("mbarrier.arrive.noComplete.shared.b64")[0].written, [mbarrier_word(2, 0)]);
}

#[test]
fn bytes_keep_a_phase_open() {
    let body = "@!%p1 bra END;\nmbarrier.arrive.expect_tx.shared.b64 %rd1, [bar], 48;\n\
                mbarrier.complete_tx.relaxed.cta.shared.b64 [bar], 32;\nmbarrier.test_wait.shared.b64 %p2, [bar], %rd1;\nselp.u32 %r2, 1, 0, %p2;\n\
                mbarrier.expect_tx.relaxed.cta.shared.b64 [bar], 8;\nmbarrier.complete_tx.relaxed.cta.shared.b64 [bar], 24;\n\
                mbarrier.test_wait.shared.b64 %p2, [bar], %rd1;\nselp.u32 %r3, 1, 0, %p2;\n\
                st.global.v2.u32 [%out], {%r2, %r3};\nEND:";
    let ran = same(|| with_barrier(1, body).words("out", &[9, 9]));
    assert_eq!(ran.words(0), [0, 1]);
    assert_eq!(ran.of("mbarrier.arrive.expect_tx.shared.b64")[0].written, [mbarrier_word(1, 48)]);
    assert_eq!(ran.of("mbarrier.expect_tx.relaxed.cta.shared.b64")[0].written, [mbarrier_word(0, 8)]);
}

#[test]
fn another_blocks_barrier() {
    // Both blocks arrive at that of rank 0, whose threads wait.
    let body = "barrier.cluster.arrive;\nbarrier.cluster.wait;\nmov.u32 %r2, bar;\nmapa.shared::cluster.u32 %r3, %r2, 0;\n\
                mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r3];\nmov.u32 %r4, %cluster_ctarank;\n\
                setp.ne.u32 %p2, %r4, 0;\n@%p2 bra END;\nW:\n\
                mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p3, [bar], 0;\n@!%p3 bra W;\n\
                red.global.add.u32 [%out], 1;\nEND:\nbarrier.cluster.arrive;\nbarrier.cluster.wait;";
    let ran = same(|| with_barrier(64, body).blocks(2).cluster(2).words("out", &[0]));
    assert!(ran.outcome.stop.is_none(), "{:?}", ran.outcome.stop);
    assert_eq!(ran.words(0), [32]);
}

#[test]
fn what_may_not_be_is_said() {
    let detail = |body: &str, part: &str| {
        let ran = same(|| with_barrier(2, body).words("out", &[0]));
        assert_eq!(ran.fault().kind, FaultKind::Device);
        assert!(ran.fault().detail.contains(part), "{body}: {}", ran.fault().detail);
    };
    detail("mbarrier.arrive.shared.b64 %rd1, [s];", "no mbarrier is at 0x8: `mbarrier.init` comes first");
    detail("@%p1 mbarrier.arrive.shared.b64 %rd1, [bar], 3;", "gets 3 arrivals, where it expects 2 more");
    detail("@%p1 mbarrier.init.shared.b64 [bar], 0;", "would expect 0 arrivals");
    detail("@%p1 mbarrier.arrive.noComplete.shared.b64 %rd1, [bar], 2;", "`.noComplete`");
    detail("@%p1 mbarrier.expect_tx.relaxed.cta.shared.b64 [bar], 1048576;", "would wait for 1048576 bytes");
    detail("mbarrier.init.b64 [%out], 1;", "not in shared memory");
    let ran = with_barrier(2, "mbarrier.init.shared.b64 [s+4], 1;").words("out", &[0]).run();
    assert_eq!(ran.fault().kind, FaultKind::Misaligned);
}
