//! Warp instructions.

use super::kernel;
use crate::backend::Stop;

/// Each lane's 32-bit result, in `%r0`; `%r1` is the lane.
fn lanes(body: &str) -> Vec<u32> {
    let body = format!(
        "mov.u32 %r1, %laneid;\n{body}\nmad.wide.u32 %rd1, %r1, 4, %out;\nst.global.u32 [%rd1], %r0;"
    );
    let first = kernel(&body).words("out", &[99; 32]).ok().words(0);
    for seed in 1..4 {
        assert_eq!(kernel(&body).words("out", &[99; 32]).seed(seed).ok().words(0), first);
    }
    first
}

fn each(f: impl Fn(u32) -> u32) -> Vec<u32> {
    (0..32).map(f).collect()
}

#[test]
fn shuffles_in_all_directions() {
    assert_eq!(lanes("shfl.sync.up.b32 %r0, %r1, 3, 0, -1;"), each(|l| if l < 3 { l } else { l - 3 }));
    assert_eq!(lanes("shfl.sync.down.b32 %r0, %r1, 3, 31, -1;"), each(|l| if l > 28 { l } else { l + 3 }));
    assert_eq!(lanes("shfl.sync.bfly.b32 %r0, %r1, 16, 31, -1;"), each(|l| l ^ 16));
    assert_eq!(lanes("shfl.sync.idx.b32 %r0, %r1, 5, 31, -1;"), each(|_| 5));
    // Segments of eight lanes: the mask of the segment in bits 8 to 12.
    assert_eq!(lanes("shfl.sync.idx.b32 %r0, %r1, 5, 0x181f, -1;"), each(|l| l & !7 | 5));
    assert_eq!(
        lanes("shfl.sync.up.b32 %r0, %r1, 1, 0x1800, -1;"),
        each(|l| if l % 8 == 0 { l } else { l - 1 })
    );
    let valid = "shfl.sync.down.b32 %r2|%p1, %r1, 3, 31, -1;\nselp.b32 %r0, 1, 0, %p1;";
    assert_eq!(lanes(valid), each(|l| u32::from(l <= 28)));
    assert_eq!(lanes("shfl.idx.b32 %r0, %r1, 9, 31;"), each(|_| 9));
    // Lanes that are not there count as zero, and as inside.
    let low = "mov.b32 %r0, 77;\nsetp.ge.u32 %p2, %r1, 4;\n@%p2 bra END;\n";
    let down = format!("{low}shfl.sync.down.b32 %r0, %r1, 2, 31, 15;\nEND:");
    assert_eq!(lanes(&down), each(|l| [2, 3, 0, 0].get(l as usize).copied().unwrap_or(77)));
    let inside = format!("{low}shfl.sync.bfly.b32 %r2|%p1, %r1, 16, 31, 15;\nselp.b32 %r0, 1, 0, %p1;\nEND:");
    assert_eq!(lanes(&inside), each(|l| if l < 4 { 1 } else { 77 }));
}

#[test]
fn votes_matches_and_reductions() {
    let odd = "and.b32 %r2, %r1, 1;\nsetp.eq.u32 %p1, %r2, 1;\n";
    assert_eq!(lanes(&format!("{odd}vote.sync.ballot.b32 %r0, %p1, -1;")), each(|_| 0xaaaa_aaaa));
    assert_eq!(
        lanes(&format!("{odd}vote.sync.any.pred %p2, %p1, -1;\nselp.b32 %r0, 1, 0, %p2;")),
        each(|_| 1)
    );
    assert_eq!(
        lanes(&format!("{odd}vote.sync.all.pred %p2, !%p1, -1;\nselp.b32 %r0, 1, 0, %p2;")),
        each(|_| 0)
    );
    assert_eq!(
        lanes(&format!("{odd}vote.sync.uni.pred %p2, %p1, -1;\nselp.b32 %r0, 1, 0, %p2;")),
        each(|_| 0)
    );
    let by_two = |l: u32| if l & 1 == 0 { 0x5555_5555 } else { 0xaaaa_aaaa };
    assert_eq!(lanes(&format!("{odd}match.any.sync.b32 %r0, %r2, -1;")), each(by_two));
    assert_eq!(lanes(&format!("{odd}match.all.sync.b32 %r0|%p2, %r2, -1;")), each(|_| 0));
    assert_eq!(lanes("match.all.sync.b32 %r0, 7, -1;"), each(|_| u32::MAX));
    assert_eq!(lanes("redux.sync.add.s32 %r0, %r1, -1;"), each(|_| 496));
    assert_eq!(lanes("neg.s32 %r2, %r1;\nredux.sync.min.s32 %r0, %r2, -1;"), each(|_| -31i32 as u32));
    assert_eq!(lanes("redux.sync.xor.b32 %r0, %r1, -1;"), each(|_| 0));
    assert_eq!(lanes("elect.sync %r2|%p1, -1;\nselp.b32 %r0, 1, 0, %p1;"), each(|l| u32::from(l == 0)));
    assert_eq!(lanes("activemask.b32 %r0;"), each(|_| u32::MAX));
}

#[test]
fn lanes_of_a_mask_wait_for_each_other() {
    // Both halves come by different paths and meet at one exchange.
    let body = "setp.lt.u32 %p1, %r1, 16;\n@%p1 bra LOW;\nadd.u32 %r2, %r1, 100;\nshfl.sync.bfly.b32 %r0, %r2, 16, 31, -1;\n\
                bra END;\nLOW:\nadd.u32 %r2, %r1, 200;\nshfl.sync.bfly.b32 %r0, %r2, 16, 31, -1;\nEND:";
    assert_eq!(lanes(body), each(|l| if l < 16 { l + 116 } else { l + 184 }));
    // Halves with a mask of their own do not wait for each other.
    let halves = "setp.lt.u32 %p1, %r1, 16;\nselp.b32 %r2, 0xffff, 0xffff0000, %p1;\nbar.warp.sync %r2;\n\
                  shfl.sync.bfly.b32 %r0, %r1, 1, 31, %r2;";
    assert_eq!(lanes(halves), each(|l| l ^ 1));
}

#[test]
fn lanes_that_ended_are_not_waited_for() {
    let body = "mov.u32 %r1, %laneid;\nsetp.ge.u32 %p1, %r1, 8;\n@%p1 exit;\nvote.sync.ballot.b32 %r2, 1, -1;\n\
                bar.warp.sync -1;\nst.global.u32 [%out], %r2;";
    for seed in 0..8 {
        assert_eq!(kernel(body).words("out", &[0]).seed(seed).ok().words(0), [0xff]);
    }
}

#[test]
fn a_lane_that_never_comes_is_a_deadlock() {
    let body = "mov.u32 %r1, %laneid;\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra OTHER;\nbar.warp.sync -1;\nbra END;\nOTHER:\n\
                bar.warp.sync 0x3;\nEND:";
    let ran = kernel(body).words("out", &[0]).run();
    let Some(Stop::Deadlock { warps }) = &ran.outcome.stop else { panic!("{:?}", ran.outcome.stop) };
    let waiting = |mask| warps.iter().find(|w| w.mask == mask).map(|w| w.waiting.as_str());
    assert_eq!(waiting(1), Some("the lanes of mask 0x3 (1 of 2 lanes arrived)"));
    assert_eq!(waiting(u32::MAX - 1), Some("the lanes of mask 0xffffffff (31 of 32 lanes arrived)"));
}
