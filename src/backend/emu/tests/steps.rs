//! Instrumented texts: the same records, in the same order, as native runs with the same seed.

use super::{Ran, Run, Seen, kernel, module};
use crate::backend::LaunchEnd;

/// Both modes of what `run` makes, with several seeds; gives the last native one.
pub(super) fn same(run: impl Fn() -> Run) -> Ran {
    let mut last = None;
    for seed in 0..6 {
        let native = run().seed(seed).run();
        let instrumented = run().seed(seed).run_instrumented();
        let brief = |r: &Seen| (r.opcode.clone(), r.mask, r.block, r.warp, r.a.first().copied(), r.tickets);
        let differs = (0..).zip(native.records.iter().zip(&instrumented.records)).find(|(_, (n, i))| n != i);
        if let Some((at, (n, i))) = differs {
            panic!("seed {seed}, record {at}: {:?} but {:?}", brief(n), brief(i));
        }
        assert_eq!(native.kept.units, instrumented.kept.units, "seed {seed}");
        // Only native runs notice what no record tells of.
        let told = |ran: &Ran| {
            let ends = ran.kept.ends.iter().cloned();
            ends.map(|end| LaunchEnd { notices: Vec::new(), ..end }).collect::<Vec<_>>()
        };
        assert_eq!(told(&native), told(&instrumented), "seed {seed}");
        assert_eq!(native.kept.infos[0].regions, instrumented.kept.infos[0].regions);
        assert_eq!(native.outcome.buffers, instrumented.outcome.buffers, "seed {seed}");
        assert_eq!(native.outcome.stop.is_some(), instrumented.outcome.stop.is_some(), "seed {seed}");
        last = Some(native);
    }
    last.unwrap()
}

#[test]
fn straight_code() {
    let body = "mov.u32 %r1, %tid.x;\nmad.wide.u32 %rd1, %r1, 4, %out;\nld.global.u32 %r2, [%rd1];\n\
                st.global.u32 [%rd1], %r1;\nld.relaxed.gpu.global.u32 %r3, [%out];\nmembar.gl;\nbar.warp.sync -1;\n\
                atom.global.add.u32 %r4, [%out], %r1;\nred.global.max.u32 [%out+4], %r1;\n\
                st.release.gpu.global.v2.u32 [%out+8], {%r1, %r2};\nxor.b32 %r5, %r1, 5;\nmad.wide.u32 %rd2, %r5, 4, %out;\n\
                st.global.u32 [%rd2], %r5;";
    let ran = same(|| kernel(body).threads(64).words("out", &[9; 70]));
    assert_eq!(ran.of("red.global.max.u32").len(), 2);
}

#[test]
fn guards_divergence_and_exchanges() {
    let body = ".shared .b32 s[64];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, s;\nmad.lo.u32 %r3, %r1, 4, %r2;\n\
                and.b32 %r4, %r1, 3;\nsetp.eq.u32 %p1, %r4, 0;\n@%p1 st.shared.u32 [%r3], %r1;\n@!%p1 bra ELSE;\n\
                atom.shared.add.u32 %r5, [s], 1;\nbra JOIN;\nELSE:\nld.shared.u32 %r6, [%r3];\nJOIN:\n\
                shfl.sync.bfly.b32 %r7, %r1, 1, 31, -1;\nbar.sync 0;\nmov.u32 %r8, 0;\nLOOP:\n\
                red.shared.add.u32 [s+4], 1;\nadd.u32 %r8, %r8, 1;\nsetp.lt.u32 %p2, %r8, %r4;\n@%p2 bra LOOP;\n\
                @%p1 exit;\nbar.arrive 1, 128;\nvote.sync.ballot.b32 %r9, 1, -1;";
    let ran = same(|| kernel(body).threads(64).blocks(3).words("out", &[0]));
    assert_eq!(ran.of(".shared").len(), 1);
}

#[test]
fn generic_addresses_of_every_space() {
    let body = ".shared .b32 s[32];\n.local .b32 l;\nmov.u32 %r1, %tid.x;\nmov.u64 %rd1, s;\ncvta.shared.u64 %rd1, %rd1;\n\
                mov.u64 %rd2, l;\ncvta.local.u64 %rd2, %rd2;\nsetp.lt.u32 %p1, %r1, 8;\nsetp.lt.u32 %p2, %r1, 20;\n\
                selp.b64 %rd3, %rd1, %out, %p1;\nselp.b64 %rd3, %rd3, %rd2, %p2;\nst.u32 [%rd3], %r1;\n\
                atom.add.u32 %r2, [%rd3], 1;\nld.acquire.gpu.u32 %r3, [%rd3];";
    let ran = same(|| kernel(body).words("out", &[0]));
    assert_eq!(ran.of("st.u32")[0].mask, 0xf_ffff);
}

#[test]
fn spins_between_lanes_and_blocks() {
    let lock = "AGAIN:\natom.global.cas.b32 %r1, [%out], 0, 1;\nsetp.ne.u32 %p1, %r1, 0;\n@%p1 bra AGAIN;\n\
                ld.volatile.global.u32 %r2, [%out+4];\nadd.u32 %r2, %r2, 1;\nst.volatile.global.u32 [%out+4], %r2;\n\
                atom.global.exch.b32 %r3, [%out], 0;";
    let ran = same(|| kernel(lock).threads(36).words("out", &[0, 0]));
    assert_eq!(ran.words(0), [0, 36]);
}

#[test]
fn calls_by_name_and_by_address() {
    let text = ".func (.param .b32 r) f(.param .b64 p) { .reg .b64 %p; .reg .b32 %x; ld.param.b64 %p, [p];\n\
                atom.global.add.u32 %x, [%p], 1; st.param.b32 [r], %x; ret; }\n.global .u64 table = f;\n\
                .visible .entry k(.param .u64 out) { .reg .b64 %rd<9>; .reg .b32 %r<9>; ld.param.u64 %rd1, [out];\n\
                call (%r1), f, (%rd1);\nld.global.u64 %rd2, [table];\nst.global.u64 [%rd1+8], %rd2;\n\
                p: .callprototype (.param .b32 _) _ (.param .b64 _);\ncall (%r1), %rd2, (%rd1), p;\nret; }";
    assert_eq!(same(|| module(text).words("out", &[0; 4])).words(0)[0], 64);
}

#[test]
fn stops_come_at_the_same_place() {
    let fault = "mov.u32 %r1, %tid.x;\nmad.wide.u32 %rd1, %r1, 64, %out;\nst.global.u32 [%out], 1;\n\
                 st.global.u32 [%rd1], %r1;\nst.global.u32 [%out], 2;";
    let ran = same(|| kernel(fault).words("out", &[0; 64]));
    assert_eq!(ran.fault().thread, Some(([0; 3], [4, 0, 0])));
    let deadlock = "mov.u32 %r1, %tid.x;\nsetp.lt.u32 %p1, %r1, 32;\n@%p1 bar.sync 1, 64;\nbar.sync 0;";
    same(|| kernel(deadlock).threads(64).words("out", &[0]));
    let unknown = "st.global.u32 [%out], 1;\ntcgen05.wait::ld.sync.aligned;\nst.global.u32 [%out], 2;";
    assert_eq!(same(|| kernel(unknown).words("out", &[0])).kept.ends[0].unlogged, [0]);
}

#[test]
fn opcodes_that_the_emulator_lacks_end_the_run_by_name() {
    let forms = [
        "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p1, %q1;",
        "istypep.texref %p1, %rd1;",
        "multimem.red.relaxed.sys.global.add.u32 [%rd1], %r1;",
        "tcgen05.wait::ld.sync.aligned;",
        "tensormap.replace.tile.rank.global.b1024.b32 [%rd1], 1;",
        "frobnicate.u32 [%rd1], %r1;",
    ];
    for form in forms {
        let body = format!("mov.u64 %rd1, %out;\nmov.u32 %r1, 0;\n{form}");
        let ran = kernel(&body).words("out", &[0; 4]).run();
        let (stop, opcode) = (format!("{:?}", ran.outcome.stop), form.split(' ').next().unwrap_or_default());
        assert!(stop.contains(opcode.trim_end_matches(';')), "{form}: {stop}");
    }
}
