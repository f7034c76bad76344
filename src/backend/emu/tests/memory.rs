//! Loads, stores, atomics, spaces and their faults.

use super::{kernel, module};
use crate::backend::{FaultKind, Stop};

#[test]
fn widths_extend_by_the_instructions_type() {
    let body = "ld.global.s8 %r1, [%out];\nld.global.u8 %r2, [%out];\nld.global.s16 %rd1, [%out];\n\
                st.global.b32 [%out+8], %r1;\nst.global.b32 [%out+12], %r2;\nst.global.b64 [%out+16], %rd1;\n\
                mov.b64 %rd2, 0x1122334455667788;\nst.global.b16 [%out+24], %rd2;";
    let ran = kernel(body).threads(1).words("out", &[0xffff_8081, 0, 0, 0, 0, 0, 0]).ok();
    assert_eq!(ran.words(0), [0xffff_8081, 0, 0xffff_ff81, 0x81, 0xffff_8081, 0xffff_ffff, 0x7788]);
}

#[test]
fn vectors_go_element_by_element() {
    let body = "ld.global.v4.u32 {%r1, _, %r2, %r3}, [%out];\nst.global.v2.b32 [%out+16], {%r3, 5};\n\
                ld.global.v2.b64 {%rd1, %rd2}, [%out];\nst.global.v2.b64 [%out+32], {%rd2, %rd1};";
    let ran = kernel(body).threads(1).words("out", &[1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0]).ok();
    assert_eq!(ran.words(0), [1, 2, 3, 4, 4, 5, 0, 0, 3, 4, 1, 2]);
}

#[test]
fn generic_addresses_find_their_space() {
    let body = ".shared .align 8 .b32 s[64];\n.local .align 8 .b32 l[4];\nmov.u32 %r1, %tid.x;\nmov.u64 %rd1, s;\n\
                cvta.shared.u64 %rd2, %rd1;\nmad.wide.u32 %rd3, %r1, 4, %rd2;\nst.b32 [%rd3], %r1;\nbar.sync 0;\n\
                mov.u64 %rd4, l;\ncvta.local.u64 %rd5, %rd4;\nst.b32 [%rd5+4], %r1;\nld.local.b32 %r2, [l+4];\n\
                ld.shared.b32 %r3, [s+124];\nisspacep.shared %p1, %rd3;\nisspacep.local %p2, %rd5;\n\
                isspacep.global %p3, %out;\nand.pred %p1, %p1, %p2;\nand.pred %p1, %p1, %p3;\nselp.b32 %r4, 100, 0, %p1;\n\
                add.u32 %r2, %r2, %r3;\nadd.u32 %r2, %r2, %r4;\nmad.wide.u32 %rd6, %r1, 4, %out;\nst.b32 [%rd6], %r2;";
    let ran = kernel(body).words("out", &[0; 32]).ok();
    assert_eq!(ran.words(0), (131..163).collect::<Vec<_>>());
    // The generic store to local memory is not logged; those to shared and global are.
    let generic = ran.of("st.b32");
    assert_eq!(generic.len(), 2);
    assert_eq!(generic[0].a[1], crate::abi::TAG_SHARED | 4);
}

#[test]
fn module_variables_are_initialised() {
    let text = ".global .align 4 .u32 g[4] = {1, 2, 0x30};\n.const .align 4 .f32 c[2] = {0f40000000, 1.5};\n\
                .global .u64 p[2] = {g+4, generic(c)};\n\
                .visible .entry k(.param .u64 out) { .reg .b64 %rd<9>; .reg .b32 %r<9>;\nld.param.u64 %rd1, [out];\n\
                ld.global.u32 %r1, [g+8];\nld.const.b32 %r2, [c+4];\nld.global.u64 %rd2, [p];\nld.u32 %r3, [%rd2];\n\
                ld.global.u64 %rd3, [p+8];\nld.u32 %r4, [%rd3];\nst.global.v4.b32 [%rd1], {%r1, %r2, %r3, %r4};\nret; }";
    let ran = module(text).threads(1).words("out", &[0; 4]).ok();
    assert_eq!(ran.words(0), [0x30, 1.5f32.to_bits(), 2, 2f32.to_bits()]);
    let names: Vec<_> = ran.kept.infos[0].regions.iter().map(|r| (r.name.as_str(), r.bytes)).collect();
    assert_eq!(names, [("out", 16), ("g", 16), ("p", 16)]);
    // Neither a load from constant memory nor a generic one that goes there is logged.
    assert_eq!(ran.of("ld.u32").len(), 1);
}

#[test]
fn dynamic_shared_memory_follows_the_static() {
    let text = ".extern .shared .align 16 .b8 dyn[];\n.visible .entry k(.param .u64 out) { .shared .b32 one; .reg .b64 %rd<9>;\
                .reg .b32 %r<9>;\nld.param.u64 %rd1, [out];\nmov.u32 %r1, dyn;\nmov.u32 %r2, %dynamic_smem_size;\n\
                mov.u32 %r3, one;\nst.shared.b32 [dyn+60], %r1;\nst.global.v2.b32 [%rd1], {%r1, %r2};\nret; }";
    let ran = module(text).threads(1).shared(64).words("out", &[0; 2]).ok();
    assert_eq!(ran.words(0), [16, 64]);
    // Both variables are announced: module scope first.
    let places: Vec<_> = ran.of(".shared").iter().map(|r| r.a[0] & 0xff).collect();
    assert_eq!(places, [16, 0]);
}

#[test]
fn narrow_addresses_wrap_at_their_width() {
    let body = ".shared .b32 s[4];\nmov.u32 %r1, s;\nadd.u32 %r1, %r1, -64;\nst.shared.b32 [%r1+68], 7;\n\
                ld.shared.b32 %r2, [s+4];\nst.global.b32 [%out], %r2;";
    let ran = kernel(body).threads(1).words("out", &[0]).ok();
    assert_eq!(ran.words(0), [7]);
}

#[test]
fn atomics_return_what_was_there() {
    let body = "mov.u32 %r1, %tid.x;\natom.global.add.u32 %r2, [%out], 2;\natom.global.max.s32 %r3, [%out+4], %r1;\n\
                atom.global.cas.b32 %r4, [%out+8], 7, 9;\nred.global.add.f32 [%out+12], 0f3F000000;\n\
                atom.global.inc.u32 %r5, [%out+16], 4;\natom.global.dec.u32 %r6, [%out+20], 4;\n\
                atom.global.exch.b64 %rd1, [%out+24], 3;\nred.global.min.s32 [%out+32], -5;\n\
                red.global.or.b32 [%out+36], %r1;\natom.global.add.noftz.f16x2 %r7, [%out+40], %r8;";
    let words = [0, -1i32 as u32, 7, 0, 0, 0, 1, 0, 1, 0, 0x3c00_3c00];
    let ran = kernel(&format!("mov.b32 %r8, 0x3c003c00;\n{body}")).words("out", &words).ok();
    let half32 = 0x5020_5020; // 33.0
    assert_eq!(ran.words(0), [64, 31, 9, 16f32.to_bits(), 2, 3, 3, 0, -5i32 as u32, 31, half32]);
    let cas = ran.of("atom.global.cas.b32")[0];
    assert_eq!((cas.read[0], cas.written[0]), (7, 9));
    assert_eq!((cas.read[5], cas.written[5]), (9, 9));
    assert!(cas.tickets.is_some());
}

#[test]
fn wide_atomics_are_whole() {
    let body = ".reg .b128 %q<3>;\nmov.b64 %rd1, 1;\nmov.b64 %rd2, 2;\nmov.b128 %q0, {%rd1, %rd2};\n\
                mov.b128 %q1, {%rd2, %rd1};\natom.global.cas.b128 %q2, [%out], %q0, %q1;\n\
                atom.global.cas.b128 %q2, [%out], %q0, %q1;\nst.global.b128 [%out+16], %q2;";
    let out = [1u64, 2, 0, 0].iter().flat_map(|w| w.to_le_bytes()).collect();
    assert_eq!(kernel(body).threads(1).buffer("out", out).ok().longs(0), [2, 1, 2, 1]);
}

#[test]
fn out_of_bounds_names_thread_instruction_and_buffer() {
    let body = "mov.u32 %r1, %tid.x;\nmad.wide.u32 %rd1, %r1, 4, %out;\nst.global.u32 [%rd1], %r1;";
    let ran = kernel(body).words("out", &[0; 20]).run();
    let fault = ran.fault();
    assert_eq!(fault.kind, FaultKind::OutOfBounds);
    assert_eq!(fault.thread, Some(([0; 3], [20, 0, 0])));
    assert_eq!(ran.slice(fault.at.unwrap()), "st.global.u32 [%rd1], %r1;");
    assert!(fault.detail.starts_with("store of 4 bytes at 0x7"), "{}", fault.detail);
    assert!(fault.detail.ends_with(", right behind the end of `out` (80 bytes)"), "{}", fault.detail);
    // The stores of the lanes before stand.
    assert_eq!(ran.words(0)[19], 19);
}

#[test]
fn shared_memory_is_bounded_by_the_blocks_total() {
    let ran =
        kernel(".shared .b32 s[4];\nmov.u32 %r1, s;\nld.shared.b32 %r2, [%r1+16];").words("out", &[0]).run();
    let detail = &ran.fault().detail;
    assert!(detail.contains(", right behind the end of the block's shared memory (16 bytes)"), "{detail}");
    let ran = kernel("ld.global.b64 %rd1, [%out+4];").words("out", &[0; 4]).run();
    assert_eq!(ran.fault().kind, FaultKind::Misaligned);
    let ran = kernel("mov.b64 %rd1, 0;\nld.b32 %r1, [%rd1];").words("out", &[0; 4]).run();
    assert!(ran.fault().detail.contains("load of 4 bytes at 0x0"), "{}", ran.fault().detail);
}

#[test]
fn what_is_not_supported_stops_only_where_it_is_reached() {
    let body = "st.global.u32 [%out], 1;\nmov.u32 %r1, %tid.x;\nsetp.gt.u32 %p1, %r1, 99;\n@%p1 tcgen05.wait::ld.sync.aligned;\n\
                @%p1 frobnicate.b32 %r1;";
    let ran = kernel(body).words("out", &[0]).ok();
    assert_eq!(ran.words(0), [1]);
    let ran = kernel("st.global.u32 [%out], 1;\ntcgen05.wait::ld.sync.aligned;\nst.global.u32 [%out], 2;")
        .words("out", &[0])
        .run();
    let Some(Stop::Unsupported { at, what }) = &ran.outcome.stop else { panic!("{:?}", ran.outcome.stop) };
    assert_eq!(ran.slice(*at), "tcgen05.wait::ld.sync.aligned;");
    assert!(what.contains("tcgen05.wait::ld.sync.aligned"));
    assert_eq!(ran.kept.ends[0].unlogged, [0]);
    assert_eq!(ran.of("st.global.u32").len(), 1);
}

#[test]
fn constant_memory_and_parameters_are_read_only() {
    let text =
        ".const .u32 c;\n.visible .entry k() { .reg .b64 %rd1;\nmov.u64 %rd1, c;\nst.u32 [%rd1], 1;\nret; }";
    assert_eq!(module(text).run().fault().kind, FaultKind::Device);
}
