//! Asynchronous copies: what they move, when, and what may not be.

use super::steps::same;
use super::{Run, kernel_with};
use crate::abi::{TAG_SHARED, bulk_word};
use crate::backend::FaultKind;

fn numbers(count: u32) -> Vec<u32> {
    (100..100 + count).collect()
}

/// `%rd1` is the source, 64 words from 100 on; `%rd2` the 64-bit address of `out` as 32-bit words by thread.
fn copies(body: &str) -> Run {
    let variables = ".shared .align 128 .b32 s[128];\n.shared .align 8 .b64 bar;";
    let body = format!(
        "mov.u32 %r1, %tid.x;\nmov.u32 %r2, s;\n\
         mad.lo.u32 %r3, %r1, 16, %r2;\nadd.u64 %rd1, %out, 1024;\nmad.wide.u32 %rd2, %r1, 4, %out;\n\
         mad.wide.u32 %rd3, %r1, 16, %rd1;\nsetp.eq.u32 %p1, %r1, 0;\n{body}"
    );
    let words: Vec<u32> = std::iter::repeat_n(7, 256).chain(numbers(128)).collect();
    kernel_with(variables, &body).words("out", &words)
}

fn ran_to_the_end(run: impl Fn() -> Run) -> super::Ran {
    let ran = same(run);
    assert!(ran.outcome.stop.is_none(), "{:?}", ran.outcome.stop);
    ran
}

#[test]
fn copies_by_thread_land_when_waited_for() {
    let body = "cp.async.ca.shared.global [%r3], [%rd3], 4;\ncp.async.ca.shared.global [%r3+8], [%rd3+8], 8;\n\
                cp.async.commit_group;\ncp.async.wait_group 0;\nld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r3];\n\
                add.u32 %r4, %r4, %r6;\nadd.u32 %r4, %r4, %r7;\nst.global.u32 [%rd2], %r4;";
    let ran = ran_to_the_end(|| copies(body));
    let expected: Vec<u32> = (0..32).map(|lane| 3 * (100 + 4 * lane) + 5).collect();
    assert_eq!(ran.words(0)[..32], expected);
    let copy = ran.of("cp.async.ca.shared.global")[1];
    let base = ran.kept.infos[0].regions[0].base;
    assert_eq!((copy.a[1], copy.read[1]), (TAG_SHARED | 24, base + 1024 + 24));
    assert!(copy.written.is_empty());
}

#[test]
fn what_is_not_read_becomes_zero() {
    let body = "setp.gt.u32 %p2, %r1, 15;\nmov.u64 %rd9, 16;\ncp.async.cg.shared.global [%r3], [%rd3], 16, 8;\ncp.async.wait_all;\n\
                ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r3];\ncp.async.ca.shared.global [%r3], [%rd3], 16, %p2;\n\
                cp.async.wait_all;\nld.shared.u32 %r8, [%r3+12];\nadd.u32 %r6, %r6, %r7;\nadd.u32 %r6, %r6, %r8;\n\
                add.u32 %r6, %r6, %r5;\nst.global.u32 [%rd2], %r6;";
    let ran = ran_to_the_end(|| copies(body));
    let expected: Vec<u32> = (0..32).map(|l| 101 + 4 * l + if l > 15 { 0 } else { 103 + 4 * l }).collect();
    assert_eq!(ran.words(0)[..32], expected);
    assert_eq!(ran.of("cp.async.cg.shared.global")[0].written, [8; 32]);
    assert_eq!(ran.of("cp.async.ca.shared.global")[0].written[15..17], [16, 0]);
}

#[test]
fn without_a_wait_the_seed_decides_what_is_seen() {
    let body = "st.shared.u32 [%r3], 1;\ncp.async.cg.shared.global [%r3], [%rd3], 16;\ncp.async.commit_group;\n\
                cp.async.cg.shared.global [%r3+512], [%rd1], 16;\ncp.async.commit_group;\ncp.async.wait_group 1;\n\
                ld.shared.u32 %r4, [%r3];\nld.shared.u32 %r5, [s+512];\nst.global.u32 [%rd2], %r4;\nst.global.u32 [%rd2+128], %r5;";
    // The second group's 16 bytes are behind `s`, in its other half.
    let body = body.replace("[%r3+512]", "[%r2+496]").replace("[s+512]", "[s+496]");
    let mut seen = Vec::new();
    for seed in 0..16 {
        let ran = copies(&format!("st.shared.u32 [s+496], 1;\n{body}")).threads(31).seed(seed).ok();
        assert_eq!(ran.words(0)[..31], (0..31).map(|l| 100 + 4 * l).collect::<Vec<_>>());
        seen.push(ran.words(0)[32]);
    }
    assert!(seen.contains(&1) && seen.contains(&100), "{seen:?}");
}

#[test]
fn an_mbarrier_gets_an_arrival_when_copies_are_done() {
    for (count, form) in [(32, ".noinc"), (1, "")] {
        // Without `.noinc` the arrivals are not among those expected: one more ends the phase.
        let last = if count == 1 { "@%p1 mbarrier.arrive.shared.b64 _, [bar];\n" } else { "" };
        let body = format!(
            "@%p1 mbarrier.init.shared.b64 [bar], {count};\nbar.sync 0;\ncp.async.cg.shared.global [%r3], [%rd3], 16;\n\
             cp.async.mbarrier.arrive{form}.shared.b64 [bar];\nbar.warp.sync -1;\n{last}W:\n\
             mbarrier.test_wait.parity.shared.b64 %p2, [bar], 0;\n@!%p2 bra W;\nxor.b32 %r4, %r1, 31;\n\
             mad.lo.u32 %r4, %r4, 16, %r2;\nld.shared.u32 %r5, [%r4];\nst.global.u32 [%rd2], %r5;"
        );
        let ran = ran_to_the_end(|| copies(&body));
        assert_eq!(ran.words(0)[..32], (0..32).map(|l| 100 + 4 * (31 - l)).collect::<Vec<_>>());
    }
}

const LOAD: &str = "@%p1 mbarrier.init.shared.b64 [bar], 1;\nfence.mbarrier_init.release.cluster;\nfence.proxy.async;\nbar.sync 0;\n\
    @!%p1 bra W;\nmbarrier.arrive.expect_tx.shared.b64 _, [bar], 128;\nmov.u32 %r9, 128;\n\
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd1], %r9, [bar];\nW:\n\
    mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;\n@!%p2 bra W;\n";

#[test]
fn bulk_copies_into_shared_memory_complete_an_mbarrier() {
    let body =
        format!("{LOAD}mad.lo.u32 %r4, %r1, 4, %r2;\nld.shared.u32 %r5, [%r4];\nst.global.u32 [%rd2], %r5;");
    let ran = ran_to_the_end(|| copies(&body).threads(32));
    assert_eq!(ran.words(0)[..32], numbers(32));
    let copy = ran.of("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes")[0];
    assert_eq!(copy.written, [bulk_word(128, 512, 0)]);
    assert_eq!((copy.mask, copy.a[0]), (1, TAG_SHARED));
}

#[test]
fn bulk_copies_out_of_shared_memory_complete_by_groups() {
    let body = "mad.lo.u32 %r4, %r1, 4, %r2;\nst.shared.u32 [%r4], %r1;\nfence.proxy.async.shared::cta;\nbar.warp.sync -1;\n\
                @!%p1 bra END;\ncp.async.bulk.global.shared::cta.bulk_group [%out], [%r2], 128;\n\
                cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [%r2], 128;\ncp.async.bulk.commit_group;\n\
                cp.async.bulk.wait_group.read 0;\nst.shared.u32 [s], 77;\ncp.async.bulk.wait_group 0;\n\
                ld.global.u32 %r5, [%out+124];\nst.global.u32 [%out+256], %r5;\nEND:";
    let ran = ran_to_the_end(|| copies(body));
    assert_eq!(ran.words(0)[..32], (0..32).collect::<Vec<_>>());
    assert_eq!(ran.words(0)[64], 31);
    assert_eq!(ran.words(0)[256..288], (0..32).map(|l| 100 + 2 * l).collect::<Vec<_>>());
}

/// Blocks of a cluster, each with its `bar`, that have seen each other begin.
fn cluster(body: &str) -> Run {
    copies(&format!(
        "@%p1 mbarrier.init.shared.b64 [bar], 1;\nmov.u32 %r20, %cluster_ctarank;\nmov.u32 %r21, bar;\n\
         mov.u32 %r22, %cluster_nctarank;\nadd.u32 %r23, %r20, 1;\nrem.u32 %r23, %r23, %r22;\n\
         mad.lo.u32 %r24, %r1, 4, %r2;\nmov.u32 %r25, %ctaid.x;\nmad.wide.u32 %rd4, %r25, 128, %rd2;\n\
         mapa.shared::cluster.u32 %r26, %r2, %r23;\nmapa.shared::cluster.u32 %r27, %r21, %r23;\nmov.u32 %r28, 128;\n\
         mul.lo.u32 %r29, %r20, 1000;\nadd.u32 %r29, %r29, %r1;\nst.shared.u32 [%r24+256], %r29;\nfence.proxy.async;\n\
         @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 128;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\n{body}\nW:\n\
         mbarrier.try_wait.parity.acquire.cluster.shared.b64 %p2, [bar], 0;\n@!%p2 bra W;\nld.shared.u32 %r30, [%r24];\n\
         st.global.u32 [%rd4], %r30;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;"
    ))
    .blocks(3)
    .cluster(3)
}

#[test]
fn one_copy_serves_many_blocks() {
    let body = "setp.eq.u32 %p3, %r20, 1;\nand.pred %p3, %p3, %p1;\nmov.b16 %h1, 7;\n@%p3 \
                cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r2], [%rd1], %r28, [%r21], %h1;";
    let ran = ran_to_the_end(|| cluster(body));
    assert_eq!(ran.words(0)[..96], [numbers(32), numbers(32), numbers(32)].concat());
    let opcode = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster";
    assert_eq!(ran.of(opcode)[0].written, [bulk_word(128, 512, 7)]);
}

fn from_the_block_before(of: impl Fn(u32, u32) -> u32) -> Vec<u32> {
    (0..3).flat_map(|rank| (0..32).map(move |lane| ((rank + 2) % 3, lane))).map(|(r, l)| of(r, l)).collect()
}

#[test]
fn data_goes_from_block_to_block() {
    let copy = "@%p1 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r26], [%r2+256], %r28, [%r27];";
    let ran = ran_to_the_end(|| cluster(copy));
    assert_eq!(ran.words(0)[..96], from_the_block_before(|rank, lane| 1000 * rank + lane));

    let store = "mad.lo.u32 %r31, %r1, 4, %r26;\n\
                 st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r31], %r29, [%r27];";
    let ran = ran_to_the_end(|| cluster(store));
    assert_eq!(ran.words(0)[..96], from_the_block_before(|rank, lane| 1000 * rank + lane));
    let record = ran.of("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32")[0];
    assert_eq!(record.written[3] % 1000, 3);

    let reduce = "@%p1 st.shared.u32 [s], 5;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\n\
                  red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r26], 1, [%r27];";
    let ran = ran_to_the_end(|| cluster(reduce));
    assert_eq!([0, 32, 64].map(|at| ran.words(0)[at]), [37; 3]);
}

#[test]
fn ranges_are_filled() {
    let body = "mad.lo.u32 %r4, %r1, 4, %r2;\nst.shared.u32 [%r4], 9;\nbar.warp.sync -1;\nmov.u64 %rd5, 64;\n\
                @%p1 st.bulk.shared::cta [%r2], %rd5, 0;\nbar.warp.sync -1;\nld.shared.u32 %r5, [%r4];\nst.global.u32 [%rd2], %r5;\n\
                @%p1 discard.global.L2 [%rd1], 128;";
    let ran = ran_to_the_end(|| copies(body));
    assert_eq!(ran.words(0)[..32], [[0; 16], [9; 16]].concat());
    assert_eq!(ran.of("st.bulk.shared::cta")[0].written, [64]);
    assert_eq!(ran.of("discard.global.L2").len(), 1);
}

#[test]
fn a_block_that_ends_leaves_nothing_behind() {
    let body = "@!%p1 bra END;\nst.shared.u32 [s], 5;\ncp.async.bulk.global.shared::cta.bulk_group [%out], [%r2], 16;\nEND:";
    for seed in 0..8 {
        assert_eq!(copies(body).seed(seed).ok().words(0)[0], 5);
    }
}

#[test]
fn hints_do_nothing() {
    let body = "createpolicy.fractional.L2::evict_last.b64 %rd5, 1.0;\nprefetch.global.L2 [%rd1];\n\
                applypriority.global.L2::evict_normal [%rd1], 128;\ncp.async.bulk.prefetch.L2.global [%rd1], 128;\n\
                cp.async.cg.shared.global.L2::cache_hint [%r3], [%rd3], 16, %rd5;\ngriddepcontrol.wait;\n\
                griddepcontrol.launch_dependents;\ncp.async.wait_all;\nld.shared.u32 %r4, [%r3];\nst.global.u32 [%rd2], %r4;";
    let ran = ran_to_the_end(|| copies(body));
    assert_eq!(ran.words(0)[31], 100 + 124);
}

#[test]
fn what_may_not_be_is_said() {
    let fault = |body: &str, kind: FaultKind, part: &str| {
        let ran = same(|| copies(body));
        assert_eq!(ran.fault().kind, kind, "{body}");
        assert!(ran.fault().detail.contains(part), "{body}: {}", ran.fault().detail);
    };
    fault(
        "cp.async.cg.shared.global [%r3+4], [%rd3], 16;",
        FaultKind::Misaligned,
        "to 0x4, which is no multiple of 16",
    );
    fault(
        "cp.async.ca.shared.global [%r3], [%rd3+2], 4;",
        FaultKind::Misaligned,
        "which is no multiple of 4",
    );
    fault(
        "cp.async.cg.shared.global [%r3], [%rd3+512], 16;",
        FaultKind::OutOfBounds,
        "right behind the end of `out`",
    );
    fault(
        "cp.async.cg.shared.global [%r3+1024], [%rd3], 16;",
        FaultKind::OutOfBounds,
        "behind the end of the block's shared",
    );
    let group = "cp.async.bulk.global.shared::cta.bulk_group";
    fault(&format!("{group} [%out], [%r2], 24;"), FaultKind::Misaligned, "of size 0x18");
    fault(&format!("{group} [%out], [%r2+8], 16;"), FaultKind::Misaligned, "from 0x8");
    let load = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes";
    fault(&format!("{load} [%r2], [%rd1], 16, [bar];"), FaultKind::Device, "`mbarrier.init` comes first");
}
