//! Clusters: positions, addresses of other blocks' shared memory, the cluster barrier.

use super::steps::same;
use super::{Run, kernel, kernel_with};
use crate::abi::{PEER, TAG_SHARED};
use crate::backend::{FaultKind, Stop};

const SYNC: &str = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";

/// Clusters of two blocks with one warp each.
fn pair(body: &str) -> Run {
    kernel_with(".shared .b32 s;", body).blocks(2).cluster(2)
}

#[test]
fn positions_in_grid_and_cluster() {
    let body = ".reg .pred %q;\nmov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %clusterid.x;\nmov.u32 %r3, %nclusterid.x;\n\
                mov.u32 %r4, %cluster_ctaid.x;\nmov.u32 %r5, %cluster_nctaid.x;\nmov.u32 %r6, %cluster_ctarank;\n\
                mov.u32 %r7, %cluster_nctarank;\nmov.pred %q, %is_explicit_cluster;\nselp.u32 %r8, 1, 0, %q;\n\
                mad.wide.u32 %rd1, %r1, 32, %out;\nst.global.v4.u32 [%rd1], {%r2, %r3, %r4, %r5};\n\
                st.global.v4.u32 [%rd1+16], {%r6, %r7, %r8, 0};";
    let ran = kernel(body).threads(1).blocks(6).cluster(3).words("out", &[9; 48]).ok();
    let of = |block: u32| [block / 3, 2, block % 3, 3, block % 3, 3, 1, 0];
    assert_eq!(ran.words(0), (0..6).flat_map(of).collect::<Vec<_>>());
    let alone = kernel(body).threads(1).blocks(2).words("out", &[9; 16]).ok();
    assert_eq!(alone.words(0), [0, 2, 0, 1, 0, 1, 0, 0, 1, 2, 0, 1, 0, 1, 0, 0]);
}

/// Each block writes its rank into the next one's memory, by the window and by a generic address.
const EXCHANGE: &str = "mov.u32 %r1, %cluster_ctarank;\nmov.u32 %r2, %cluster_nctarank;\n\
    add.u32 %r3, %r1, 1;\nrem.u32 %r3, %r3, %r2;\nmov.u32 %r4, s;\nmapa.shared::cluster.u32 %r5, %r4, %r3;\n\
    add.u32 %r6, %r1, 100;\nst.shared::cluster.u32 [%r5], %r6;\ncvt.u64.u32 %rd1, %r4;\ncvta.shared.u64 %rd2, %rd1;\n\
    mapa.u64 %rd3, %rd2, %r3;\nst.u32 [%rd3+4], %r6;\natom.add.acq_rel.cluster.u32 %r7, [%rd3+8], 7;\n\
    getctarank.u64 %r8, %rd3;\ngetctarank.shared::cluster.u32 %r9, %r4;\nisspacep.shared %p1, %rd3;\n\
    isspacep.shared::cluster %p2, %rd3;\nisspacep.shared %p3, %rd2;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\n\
    ld.shared.u32 %r10, [s];\nld.shared::cluster.u32 %r11, [s+4];\nld.u32 %r12, [%rd2+8];\n\
    mov.u32 %r13, %ctaid.x;\nmad.wide.u32 %rd4, %r13, 32, %out;\nselp.u32 %r14, 1, 0, %p1;\nselp.u32 %r15, 2, 0, %p2;\n\
    selp.u32 %r16, 4, 0, %p3;\nor.b32 %r14, %r14, %r15;\nor.b32 %r14, %r14, %r16;\n\
    st.global.v4.u32 [%rd4], {%r10, %r11, %r12, %r8};\nst.global.v2.u32 [%rd4+16], {%r9, %r14};";

#[test]
fn blocks_reach_each_others_memory() {
    let run = || {
        kernel_with(".shared .align 8 .b32 s[4];", EXCHANGE)
            .threads(1)
            .blocks(8)
            .cluster(4)
            .words("out", &[0; 64])
    };
    let ran = same(run);
    assert!(ran.outcome.stop.is_none(), "{:?}", ran.outcome.stop);
    for block in 0..8usize {
        let rank = block as u32 % 4;
        let before = 100 + (rank + 3) % 4;
        let words = &ran.words(0)[8 * block..8 * block + 6];
        assert_eq!(words, [before, before, 7, (rank + 1) % 4, rank, 6], "block {block}");
    }
    // Others' memory is told from the own.
    let stores = ran.of("st.shared::cluster.u32");
    let from = |block: u32| stores.iter().find(|r| r.block == block).unwrap().a[0];
    assert_eq!([from(0), from(3)], [TAG_SHARED | PEER | 1 << 24, TAG_SHARED | PEER]);
    assert!(ran.of("ld.shared::cluster.u32").iter().all(|r| r.a == [TAG_SHARED | 4]));
    assert!(ran.of("st.u32").iter().all(|r| r.a[0] & PEER != 0));
}

#[test]
fn alone_a_block_is_its_own_cluster() {
    let ran = same(|| kernel_with(".shared .align 8 .b32 s[4];", EXCHANGE).threads(1).words("out", &[0; 8]));
    assert!(ran.outcome.stop.is_none(), "{:?}", ran.outcome.stop);
    assert_eq!(ran.words(0)[..6], [100, 100, 7, 0, 0, 7]);
}

#[test]
fn everybody_of_a_cluster_waits() {
    let body = format!(
        "mov.u32 %r1, %tid.x;\nsetp.ne.u32 %p1, %r1, 0;\n@%p1 bra A;\nst.shared.u32 [s], 0;\nA:\n{SYNC}\
         mov.u32 %r2, s;\nmapa.shared::cluster.u32 %r3, %r2, 0;\nred.relaxed.cluster.shared::cluster.add.u32 [%r3], 1;\n\
         {SYNC}ld.shared::cluster.u32 %r4, [%r3];\nsetp.ne.u32 %p2, %r4, 192;\n@%p2 trap;\n{SYNC}\
         red.global.add.u32 [%out], 1;"
    );
    let ran =
        same(|| kernel_with(".shared .b32 s;", &body).threads(64).blocks(6).cluster(3).words("out", &[0]));
    assert!(ran.outcome.stop.is_none(), "{:?}", ran.outcome.stop);
    assert_eq!(ran.words(0), [384]);
    let arrived = ran.of("barrier.cluster.arrive.aligned").iter().map(|r| r.mask.count_ones()).sum::<u32>();
    assert_eq!(arrived, 3 * 384);
}

#[test]
fn threads_that_exited_are_not_waited_for() {
    let body = "mov.u32 %r1, %tid.x;\nsetp.lt.u32 %p1, %r1, 20;\n@%p1 exit;\nsetp.lt.u32 %p1, %r1, 24;\n\
                barrier.cluster.arrive.relaxed;\n@%p1 exit;\nbarrier.cluster.wait;\nred.global.add.u32 [%out], 1;";
    for seed in 0..8 {
        assert_eq!(pair(body).words("out", &[0]).seed(seed).ok().words(0), [16]);
    }
}

#[test]
fn a_cluster_barrier_nobody_completes_is_a_deadlock() {
    let body = "mov.u32 %r1, %cluster_ctarank;\nsetp.ne.u32 %p1, %r1, 0;\n@%p1 bar.sync 1, 64;\n\
                barrier.cluster.arrive;\nbarrier.cluster.wait;";
    let ran = same(|| pair(body).words("out", &[0]));
    let Some(Stop::Deadlock { warps }) = &ran.outcome.stop else { panic!("{:?}", ran.outcome.stop) };
    let seen: Vec<_> = warps.iter().map(|w| (w.block[0], w.waiting.as_str())).collect();
    assert_eq!(
        seen,
        [(0, "the cluster barrier (32 of 64 threads arrived)"), (1, "barrier 1 (32 of 64 threads arrived)")]
    );
    let twice = pair("barrier.cluster.arrive;\nbarrier.cluster.arrive;").words("out", &[0]).run();
    assert!(twice.fault().detail.contains("has arrived and not waited"), "{}", twice.fault().detail);
}

#[test]
fn memory_of_a_block_that_has_exited_is_gone() {
    let body = "mov.u32 %r1, %cluster_ctarank;\nsetp.ne.u32 %p1, %r1, 0;\n@%p1 exit;\nmov.u32 %r2, 0;\nLOOP:\n\
                nanosleep.u32 20;\nadd.u32 %r2, %r2, 1;\nsetp.lt.u32 %p2, %r2, 200;\n@%p2 bra LOOP;\nmov.u32 %r3, s;\n\
                mapa.shared::cluster.u32 %r3, %r3, 1;\nld.shared::cluster.u32 %r4, [%r3];";
    let ran = same(|| pair(body).words("out", &[0]));
    assert_eq!(ran.fault().kind, FaultKind::Freed);
    assert!(ran.fault().detail.contains("block of rank 1, which has exited"), "{}", ran.fault().detail);
    let beyond = "mov.u32 %r3, s;\nmapa.shared::cluster.u32 %r3, %r3, 2;\n\
                  st.shared::cluster.u32 [%r3], 0;";
    let ran = same(|| pair(beyond).words("out", &[0]));
    assert!(ran.fault().detail.contains("rank 2, where the cluster has 2 blocks"), "{}", ran.fault().detail);
}
