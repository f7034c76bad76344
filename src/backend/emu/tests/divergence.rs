//! Lanes that part, meet, spin on each other and end.

use super::kernel;
use crate::backend::Stop;

#[test]
fn structured_branches_meet_again() {
    let body = "mov.u32 %r1, %tid.x;\nand.b32 %r2, %r1, 1;\nsetp.eq.u32 %p1, %r2, 0;\n@%p1 bra EVEN;\n\
                mov.u32 %r3, 100;\nbra JOIN;\nEVEN:\nmov.u32 %r3, 200;\nJOIN:\nadd.u32 %r3, %r3, %r1;\n\
                mad.wide.u32 %rd1, %r1, 4, %out;\nst.global.u32 [%rd1], %r3;";
    let mut together = 0;
    // Walks: every fourth seed is one.
    for seed in (0..64).step_by(4) {
        let ran = kernel(body).words("out", &[0; 32]).seed(seed).ok();
        let expected: Vec<u32> = (0..32).map(|t| if t % 2 == 0 { 200 + t } else { 100 + t }).collect();
        assert_eq!(ran.words(0), expected);
        together += u32::from(ran.of("st.global.u32").len() == 1);
    }
    // Usually one record; the schedule sometimes lets one side run ahead.
    assert!((8..=16).contains(&together), "{together}");
}

#[test]
fn loops_of_different_lengths_meet_at_their_end() {
    let body = "mov.u32 %r1, %tid.x;\nmov.u32 %r2, 0;\nLOOP:\nadd.u32 %r2, %r2, %r1;\nsub.u32 %r1, %r1, 1;\n\
                setp.gt.s32 %p1, %r1, 0;\n@%p1 bra LOOP;\nmov.u32 %r1, %tid.x;\nmad.wide.u32 %rd1, %r1, 4, %out;\n\
                st.global.u32 [%rd1], %r2;";
    for seed in 0..8 {
        let ran = kernel(body).words("out", &[0; 32]).seed(seed).ok();
        let expected: Vec<u32> = (0..32).map(|t| t * (t + 1) / 2).collect();
        assert_eq!(ran.words(0), expected);
    }
}

#[test]
fn a_lane_may_spin_on_another_of_its_warp() {
    // Lane 0 waits at a lower address than lane 1's store: lowest-first alone would never let lane 1 go.
    let body = "mov.u32 %r1, %tid.x;\nsetp.ne.u32 %p1, %r1, 0;\n@%p1 bra WRITER;\nSPIN:\n\
                ld.volatile.global.u32 %r2, [%out];\nsetp.eq.u32 %p2, %r2, 0;\n@%p2 bra SPIN;\n\
                st.global.u32 [%out+4], %r2;\nbra DONE;\nWRITER:\nst.volatile.global.u32 [%out], 7;\nDONE:";
    for seed in 0..8 {
        assert_eq!(kernel(body).words("out", &[0, 0]).seed(seed).ok().words(0), [7, 7]);
    }
}

#[test]
fn a_lock_can_be_passed_between_lanes() {
    // The pre-Volta deadlock: each lane takes the lock in turn.
    let body = "AGAIN:\natom.global.cas.b32 %r1, [%out], 0, 1;\nsetp.ne.u32 %p1, %r1, 0;\n@%p1 bra AGAIN;\n\
                ld.volatile.global.u32 %r2, [%out+4];\nadd.u32 %r2, %r2, 1;\nst.volatile.global.u32 [%out+4], %r2;\n\
                atom.global.exch.b32 %r3, [%out], 0;";
    for seed in 0..4 {
        assert_eq!(
            kernel(body).threads(64).blocks(2).words("out", &[0, 0]).seed(seed).ok().words(0),
            [0, 128]
        );
    }
}

#[test]
fn a_block_may_spin_on_another() {
    let body = "mov.u32 %r1, %ctaid.x;\nsetp.eq.u32 %p1, %r1, 0;\n@!%p1 bra WRITER;\nSPIN:\n\
                ld.acquire.gpu.global.u32 %r2, [%out];\nsetp.lt.u32 %p2, %r2, 3;\n@%p2 bra SPIN;\nret;\nWRITER:\n\
                red.release.gpu.global.add.u32 [%out], 1;";
    for seed in 0..4 {
        assert_eq!(kernel(body).threads(1).blocks(4).words("out", &[0]).seed(seed).ok().words(0), [3]);
    }
}

#[test]
fn more_blocks_than_are_resident_run_in_turn() {
    let ran = kernel("red.global.add.u32 [%out], 1;").blocks(1000).words("out", &[0]).ok();
    assert_eq!(ran.words(0), [32_000]);
}

#[test]
fn an_endless_loop_times_out_and_tells_where() {
    let ran = kernel("mov.u64 %rd1, 0;\nSPIN:\nadd.u64 %rd1, %rd1, 1;\nbra SPIN;").words("out", &[0]);
    let ran = ran.timeout(50).run();
    let Some(Stop::Timeout { warps, .. }) = &ran.outcome.stop else { panic!("{:?}", ran.outcome.stop) };
    assert!(["add.u64 %rd1, %rd1, 1;", "bra SPIN;"].contains(&ran.slice(warps[0].at)));
    assert_eq!(warps[0].waiting, "");
}

#[test]
fn a_loop_that_changes_nothing_ends_at_once() {
    let ran = kernel("SPIN:\nbra SPIN;").words("out", &[0]).run();
    let Some(Stop::Deadlock { warps, .. }) = &ran.outcome.stop else { panic!("{:?}", ran.outcome.stop) };
    assert_eq!(ran.slice(warps[0].at), "bra SPIN;");
}

#[test]
fn branch_tables_take_each_lane_to_its_target() {
    let body = "mov.u32 %r1, %tid.x;\nand.b32 %r2, %r1, 3;\nts: .branchtargets L0, L1, L2, L3;\nbrx.idx %r2, ts;\n\
                L0: mov.u32 %r3, 10;\nbra E;\nL1: mov.u32 %r3, 11;\nbra E;\nL2: mov.u32 %r3, 12;\nbra E;\n\
                L3: mov.u32 %r3, 13;\nE:\nmad.wide.u32 %rd1, %r1, 4, %out;\nst.global.u32 [%rd1], %r3;";
    let ran = kernel(body).words("out", &[0; 32]).ok();
    assert_eq!(ran.words(0), (0..32).map(|t| 10 + t % 4).collect::<Vec<u32>>());
}

#[test]
fn special_registers_tell_where_a_thread_is() {
    let body = ".reg .v4 .b32 %v;\nmov.v4.u32 %v, %tid;\nmov.u32 %r1, %laneid;\nmov.u32 %r2, %warpid;\n\
                mov.u32 %r3, %lanemask_lt;\nmov.u32 %r4, %ntid.x;\nmov.u32 %r5, %nctaid.x;\nmov.u32 %r6, %ctaid.x;\n\
                setp.ne.u32 %p1, %v.x, 37;\n@%p1 bra END;\nst.global.v4.b32 [%out], {%v.x, %r1, %r2, %r3};\n\
                st.global.v4.b32 [%out+16], {%r4, %r5, %r6, WARP_SZ};\nEND:";
    let ran = kernel(body).threads(40).words("out", &[0; 8]).ok();
    assert_eq!(ran.words(0), [37, 5, 1, 31, 40, 1, 0, 32]);
}
