//! Textures and surfaces.

use super::*;
use crate::backend::image::{ArrayShape, Channel, Edge, Sampling, Texel};
use crate::backend::{FaultKind, PlanArray, PlanImage, PlanStorage};

const F32: Texel = Texel { channel: Channel::F32, channels: 1 };
const CLAMPED: Sampling =
    Sampling { edges: [Edge::Clamp; 3], linear: false, normalized: false, floats: false };

impl Run {
    /// A texture of this storage, with its handle as the next argument.
    fn texture(mut self, storage: PlanStorage, texel: Texel, sampling: Sampling) -> Self {
        self.plan.launches[0].args.push(Arg::Image(self.plan.images.len()));
        self.plan.images.push(PlanImage { surface: false, storage, texel, sampling });
        self
    }

    /// An array with the contents of a buffer.
    fn array(mut self, extent: [u32; 3], layered: bool, texel: Texel, contents: usize) -> Self {
        let shape = ArrayShape { base: self.plan.next_array(), extent, layered, texel };
        self.plan.arrays.push(PlanArray { name: "array".into(), shape, contents });
        self
    }

    /// A surface of the first array.
    fn surface(mut self, texel: Texel) -> Self {
        self.plan.launches[0].args.push(Arg::Image(self.plan.images.len()));
        let (storage, sampling) = (PlanStorage::Array(0), Sampling::default());
        self.plan.images.push(PlanImage { surface: true, storage, texel, sampling });
        self
    }
}

/// A kernel `k(out, in, image)`, with the handle in `%rd1`, that gives each thread's `%r1` to `%r4`.
fn with_image(body: &str) -> Run {
    module(&format!(
        ".visible .entry k(.param .u64 out, .param .u64 in, .param .u64 image)\n{{\n.reg .b32 %r<20>;\n.reg .f32 %f<20>;\n\
         .reg .b64 %rd<20>;\nld.param.u64 %rd0, [out];\nld.param.u64 %rd1, [image];\nmov.u32 %r10, %tid.x;\n{body}\n\
         mul.wide.u32 %rd2, %r10, 16;\nadd.u64 %rd0, %rd0, %rd2;\nst.global.v4.u32 [%rd0], {{%r1, %r2, %r3, %r4}};\nret;\n}}\n"
    ))
    .buffer("out", vec![0; 16 * 32])
}

fn floats(values: impl Iterator<Item = f32>) -> Vec<u32> {
    values.map(f32::to_bits).collect()
}

/// The first value of each thread.
fn first(ran: &Ran) -> Vec<f32> {
    ran.words(0).chunks(4).map(|four| f32::from_bits(four[0])).collect()
}

#[test]
fn linear_memory_is_fetched_and_has_zeros_behind_its_end() {
    let run = with_image("sub.s32 %r11, %r10, 1;\ntex.1d.v4.u32.s32 {%r1, %r2, %r3, %r4}, [%rd1, {%r11}];");
    let texel = Texel { channel: Channel::U32, channels: 1 };
    let ran = run.words("in", &[7, 8, 9]).texture(PlanStorage::Buffer(1), texel, CLAMPED).threads(6).ok();
    let got: Vec<_> = ran.words(0).chunks(4).take(6).map(|four| four[0]).collect();
    assert_eq!(got, [0, 7, 8, 9, 0, 0]);
    // What is logged: the handle and the coordinate.
    let [record] = ran.of("tex.1d.v4.u32.s32")[..] else { panic!("{:?}", ran.records) };
    assert_eq!((record.a[0], record.read[1], record.written.len()), (1, 0, 0));
    assert_eq!(record.read[0], 0xffff_ffff);
}

#[test]
fn a_linear_filter_weighs_four_texels() {
    // Thread t looks at (t / 4 + 0.5, 1).
    let run = with_image(
        "cvt.rn.f32.u32 %f1, %r10;\nmul.f32 %f1, %f1, 0.25;\nadd.f32 %f1, %f1, 0.5;\nmov.f32 %f2, 1.0;\n\
         tex.2d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [%rd1, {%f1, %f2}];\nmov.b32 %r1, %f3;",
    );
    let rows = floats((0..32).map(|i| if i < 16 { 4.0 * i as f32 } else { 100.0 + 4.0 * (i - 16) as f32 }));
    let storage = PlanStorage::Rows { buffer: 1, extent: [4, 2], pitch: 64 };
    let sampling = Sampling { linear: true, ..CLAMPED };
    let ran = run.words("in", &rows).texture(storage, F32, sampling).threads(16).ok();
    let expected: Vec<_> = (0..16).map(|t| 50.0 + (t as f32).min(12.0)).collect();
    assert_eq!(first(&ran)[..16], expected);
}

#[test]
fn coordinates_beyond_the_edge_go_where_the_texture_says() {
    let at = |edge, normalized| {
        // Thread t looks at the middle of texel t - 4, of four.
        let scale = if normalized { "mul.f32 %f1, %f1, 0.25;" } else { "" };
        let run = with_image(&format!(
            "cvt.rn.f32.u32 %f1, %r10;\nadd.f32 %f1, %f1, -3.5;\n{scale}\n\
             tex.1d.v4.f32.f32 {{%f3, %f4, %f5, %f6}}, [%rd1, {{%f1}}];\nmov.b32 %r1, %f3;"
        ));
        let sampling = Sampling { edges: [edge; 3], normalized, ..CLAMPED };
        let run = run.words("in", &floats([1.0, 2.0, 3.0, 4.0].into_iter())).array([4, 0, 0], false, F32, 1);
        let ran = run.texture(PlanStorage::Array(0), F32, sampling).threads(12).ok();
        first(&ran)[..12].iter().map(|value| *value as i32).collect::<Vec<_>>()
    };
    assert_eq!(at(Edge::Clamp, false), [1, 1, 1, 1, 1, 2, 3, 4, 4, 4, 4, 4]);
    assert_eq!(at(Edge::Border, false), [0, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0]);
    assert_eq!(at(Edge::Wrap, true), [1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4]);
    assert_eq!(at(Edge::Mirror, true), [4, 3, 2, 1, 1, 2, 3, 4, 4, 3, 2, 1]);
}

#[test]
fn small_integers_are_read_as_floats() {
    let run = with_image(
        "tex.1d.v4.f32.s32 {%f3, %f4, %f5, %f6}, [%rd1, {%r10}];\nmov.b32 %r1, %f3;\nmov.b32 %r2, %f4;",
    );
    let texel = Texel { channel: Channel::S8, channels: 2 };
    let sampling = Sampling { floats: true, ..CLAMPED };
    let run = run.buffer("in", vec![127, 0x80, 0, 0x81]);
    let ran = run.texture(PlanStorage::Buffer(1), texel, sampling).threads(2).ok();
    let got: Vec<_> = ran.words(0)[..8].iter().map(|bits| f32::from_bits(*bits)).collect();
    assert_eq!((got[0], got[1], got[4], got[5]), (1.0, -1.0, 0.0, -1.0));
}

#[test]
fn surfaces_count_bytes_and_keep_what_they_are_given() {
    let texel = Texel { channel: Channel::U32, channels: 1 };
    let body = |outside| {
        format!(
            "shl.b32 %r11, %r10, 2;\nadd.u32 %r12, %r10, 100;\nmov.u32 %r13, 1;\n\
             sust.b.2d.b32.{outside} [%rd1, {{%r11, %r13}}], {{%r12}};\n\
             suld.b.2d.b32.{outside} {{%r1}}, [%rd1, {{%r11, %r13}}];"
        )
    };
    let run = |outside| {
        let run = with_image(&body(outside)).words("in", &(0..8).collect::<Vec<_>>());
        run.array([4, 2, 0], false, texel, 1).surface(texel).threads(6)
    };
    let zero = run("zero").ok();
    assert_eq!(zero.words(1), [0, 1, 2, 3, 100, 101, 102, 103]);
    let loaded: Vec<_> = zero.words(0).chunks(4).take(6).map(|four| four[0]).collect();
    assert_eq!(loaded, [100, 101, 102, 103, 0, 0]);
    assert_eq!(run("clamp").ok().words(1)[..7], [0, 1, 2, 3, 100, 101, 102]);
    let trapped = run("trap").run();
    assert_eq!(trapped.fault().kind, FaultKind::OutOfBounds);
}

#[test]
fn layers_are_apart() {
    let run = with_image(
        "mov.f32 %f1, 1.5;\ncvt.rn.f32.u32 %f2, %r10;\nadd.f32 %f2, %f2, 0.5;\n\
         tex.a2d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [%rd1, {%r10, %f1, %f2, %f2}];\nmov.b32 %r1, %f3;",
    );
    let run = run.words("in", &floats((0..24).map(|i| i as f32))).array([4, 2, 3], true, F32, 1);
    let ran = run.texture(PlanStorage::Array(0), F32, CLAMPED).threads(4).ok();
    assert_eq!(first(&ran)[..4], [1.0, 13.0, 21.0, 21.0]);
}

#[test]
fn what_is_no_image_stops_the_run() {
    let run = with_image("tex.1d.v4.u32.s32 {%r1, %r2, %r3, %r4}, [%rd0, {%r10}];");
    let texel = Texel { channel: Channel::U32, channels: 1 };
    let ran = run.words("in", &[7]).texture(PlanStorage::Buffer(1), texel, CLAMPED).run();
    let stopped =
        matches!(&ran.outcome.stop, Some(Stop::Unsupported { what, .. }) if what.contains("no texture"));
    assert!(stopped, "{:?}", ran.outcome.stop);
    let run = with_image("tex.2d.v4.u32.s32 {%r1, %r2, %r3, %r4}, [%rd1, {%r10, %r10}];");
    let ran = run.words("in", &[7]).texture(PlanStorage::Buffer(1), texel, CLAMPED).run();
    let stopped =
        matches!(&ran.outcome.stop, Some(Stop::Unsupported { what, .. }) if what.contains("2 axes"));
    assert!(stopped, "{:?}", ran.outcome.stop);
}

#[test]
fn instrumented_text_logs_the_same() {
    let run = || {
        let run = with_image(
            "cvt.rn.f32.u32 %f1, %r10;\nmov.f32 %f2, 0f3F000000;\n\
             @%p0 tex.3d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [%rd1, {%f1, %f2, 0f3FC00000, %f2}];\nmov.b32 %r1, %f3;",
        );
        let text = run.text.replace(
            "mov.f32 %f2, 0f3F000000;",
            "mov.f32 %f2, 0f3F000000;\n.reg .pred %p<1>;\nsetp.lt.u32 %p0, %r10, 20;",
        );
        let run = Run { text, ..run }.words("in", &floats((0..64).map(|i| i as f32)));
        run.array([8, 4, 2], false, F32, 1).texture(PlanStorage::Array(0), F32, CLAMPED)
    };
    let (native, instrumented) = (run().ok(), run().run_instrumented());
    assert_eq!(native.outcome.buffers, instrumented.outcome.buffers);
    assert_eq!(native.kept.units, instrumented.kept.units);
    let [record] = native.of("tex.3d.v4.f32.f32")[..] else { panic!("{:?}", native.records) };
    assert_eq!((record.mask, record.written[0]), (0xf_ffff, u64::from(1.5f32.to_bits())));
}
