//! Floats of all widths.

use super::eval;

fn f32s(instruction: &str, a: f32, b: f32, c: f32) -> f32 {
    let (a, b, c) = (a.to_bits(), b.to_bits(), c.to_bits());
    let setup = format!("mov.f32 %f1, 0f{a:08X};\nmov.f32 %f2, 0f{b:08X};\nmov.f32 %f3, 0f{c:08X};");
    f32::from_bits(eval(&setup, instruction, "%f0") as u32)
}

fn f64s(instruction: &str, a: f64, b: f64) -> f64 {
    let setup = format!("mov.f64 %fd1, 0d{:016X};\nmov.f64 %fd2, 0d{:016X};", a.to_bits(), b.to_bits());
    f64::from_bits(eval(&setup, instruction, "%fd0"))
}

#[test]
fn rounding_modes() {
    let third = |mode: &str| f32s(&format!("div.{mode}.f32 %f0, %f1, %f2;"), 1.0, 3.0, 0.0).to_bits();
    assert_eq!(third("rn"), (1f32 / 3.0).to_bits());
    assert_eq!(third("rz"), 0x3eaa_aaaa);
    assert_eq!(third("rm"), 0x3eaa_aaaa);
    assert_eq!(third("rp"), 0x3eaa_aaab);
    let tiny = f32::EPSILON / 4.0;
    assert_eq!(f32s("add.rn.f32 %f0, %f1, %f2;", 1.0, tiny, 0.0), 1.0);
    assert_eq!(f32s("add.rp.f32 %f0, %f1, %f2;", 1.0, tiny, 0.0), 1f32.next_up());
    assert_eq!(f32s("sub.rz.f32 %f0, %f1, %f2;", 1.0, tiny, 0.0), 1f32.next_down());
    assert_eq!(f32s("add.rm.f32 %f0, %f1, %f2;", 1.0, -1.0, 0.0).to_bits(), 1 << 31);
    assert_eq!(f64s("add.rp.f64 %fd0, %fd1, %fd2;", 1.0, 1e-30), 1f64.next_up());
    assert_eq!(f64s("mul.rz.f64 %fd0, %fd1, %fd2;", 0.1, 0.1), 0.010000000000000002f64.next_down());
    assert_eq!(f32s("sqrt.rp.f32 %f0, %f1;", 2.0, 0.0, 0.0), std::f32::consts::SQRT_2.next_up());
}

#[test]
fn fused_products_round_once() {
    let (a, b, c) = (1.0 + f32::EPSILON, 1.0 + f32::EPSILON, -1.0);
    assert_eq!(f32s("fma.rn.f32 %f0, %f1, %f2, %f3;", a, b, c), a.mul_add(b, c));
    // Where rounding to 64 bits first would go wrong.
    let (a, b) = (f32::from_bits(0x3f80_0001), f32::from_bits(0x3f7f_fffe));
    for c in [1e-30f32, -1e-30, f32::from_bits(1), 3.0e-8, -5.9e-8, 1e30] {
        assert_eq!(f32s("fma.rn.f32 %f0, %f1, %f2, %f3;", a, b, c), a.mul_add(b, c), "{c}");
    }
    let small = f32::from_bits(3);
    assert_eq!(f32s("fma.rn.f32 %f0, %f1, %f2, %f3;", small, 0.5, 0.0), small.mul_add(0.5, 0.0));
}

#[test]
fn flushing_saturating_and_nan() {
    let subnormal = f32::from_bits(1);
    assert_eq!(f32s("add.ftz.f32 %f0, %f1, %f2;", subnormal, 0.0, 0.0).to_bits(), 0);
    assert_eq!(f32s("mul.f32 %f0, %f1, %f2;", subnormal, -1.0, 0.0).to_bits(), 1 << 31 | 1);
    assert_eq!(f32s("add.sat.f32 %f0, %f1, %f2;", 3.0, 0.0, 0.0), 1.0);
    assert_eq!(f32s("add.sat.f32 %f0, %f1, %f2;", f32::NAN, 0.0, 0.0), 0.0);
    assert_eq!(f32s("add.f32 %f0, %f1, %f2;", f32::INFINITY, f32::NEG_INFINITY, 0.0).to_bits(), 0x7fff_ffff);
    assert_eq!(f32s("min.f32 %f0, %f1, %f2;", f32::NAN, 2.0, 0.0), 2.0);
    assert!(f32s("min.NaN.f32 %f0, %f1, %f2;", f32::NAN, 2.0, 0.0).is_nan());
    assert_eq!(f32s("max.f32 %f0, %f1, %f2;", -0.0, 0.0, 0.0).to_bits(), 0);
    assert_eq!(f32s("min.f32 %f0, %f1, %f2;", 0.0, -0.0, 0.0).to_bits(), 1 << 31);
    assert_eq!(f32s("copysign.f32 %f0, %f1, %f2;", -1.0, 5.0, 0.0), -5.0);
    assert_eq!(f32s("neg.f32 %f0, %f1;", 0.0, 0.0, 0.0).to_bits(), 1 << 31);
}

#[test]
fn approximate_functions_are_close() {
    assert_eq!(f32s("ex2.approx.f32 %f0, %f1;", 3.0, 0.0, 0.0), 8.0);
    assert_eq!(f32s("lg2.approx.f32 %f0, %f1;", 8.0, 0.0, 0.0), 3.0);
    assert_eq!(f32s("rcp.approx.f32 %f0, %f1;", 4.0, 0.0, 0.0), 0.25);
    assert_eq!(f32s("rsqrt.approx.f32 %f0, %f1;", 4.0, 0.0, 0.0), 0.5);
    assert!((f32s("sin.approx.f32 %f0, %f1;", 1.0, 0.0, 0.0) - 1f32.sin()).abs() < 1e-6);
    assert!((f32s("tanh.approx.f32 %f0, %f1;", 0.5, 0.0, 0.0) - 0.5f32.tanh()).abs() < 1e-6);
}

#[test]
fn conversions_between_floats_and_integers() {
    let to_int = |how: &str, value: f32| {
        let setup = format!("mov.f32 %f1, 0f{:08X};", value.to_bits());
        eval(&setup, &format!("cvt.{how} %r0, %f1;"), "%r0") as u32
    };
    assert_eq!(to_int("rni.s32.f32", 2.5), 2);
    assert_eq!(to_int("rpi.s32.f32", 2.1), 3);
    assert_eq!(to_int("rzi.s32.f32", -2.9), (-2i32) as u32);
    assert_eq!(to_int("rmi.s32.f32", -2.1), (-3i32) as u32);
    assert_eq!(to_int("rzi.u32.f32", -5.0), 0);
    assert_eq!(to_int("rzi.s32.f32", 1e20), i32::MAX as u32);
    assert_eq!(to_int("rzi.s32.f32", f32::NAN), 0);
    let from_int = |how: &str, value: i64| {
        f32::from_bits(
            eval(&format!("mov.b64 %rd1, {value};"), &format!("cvt.{how} %f0, %rd1;"), "%f0") as u32
        )
    };
    assert_eq!(from_int("rn.f32.s64", i64::MAX), 9.223372e18);
    assert_eq!(from_int("rz.f32.s64", i64::MAX), 9.223372e18f32.next_down());
    assert_eq!(from_int("rn.f32.u64", -1), 1.8446744e19);
    // One more than a tie between two floats, which 64 bits would round to the tie.
    assert_eq!(from_int("rn.f32.s64", (1 << 62) + (1 << 38) + 1), (1u64 << 62) as f32 + (1u64 << 39) as f32);
    assert_eq!(f32s("cvt.rni.f32.f32 %f0, %f1;", -0.4, 0.0, 0.0).to_bits(), 1 << 31);
    assert_eq!(f64s("cvt.rn.f32.f64 %f1, %fd1;\ncvt.f64.f32 %fd0, %f1;", 0.1, 0.0), f64::from(0.1f32));
    assert_eq!(f32s("cvt.rp.f32.f64 %f0, %fd5;", 0.0, 0.0, 0.0), 0.0);
}

#[test]
fn halves() {
    let half = |instruction: &str, a: u32, b: u32| {
        eval(&format!("mov.b16 %h1, {a};\nmov.b16 %h2, {b};"), instruction, "%h0")
    };
    assert_eq!(half("add.f16 %h0, %h1, %h2;", 0x3c00, 0x3c00), 0x4000);
    assert_eq!(half("mul.f16 %h0, %h1, %h2;", 0x7bff, 0x4000), 0x7c00);
    assert_eq!(half("add.f16 %h0, %h1, %h2;", 0x0001, 0x0001), 0x0002);
    assert_eq!(half("fma.rn.f16 %h0, %h1, %h2, %h1;", 0x3c00, 0x3c01), 0x4000);
    // A factor from outside of a tensor makes the result zero, one that is any other NaN does not, nor does the sum.
    for outside in [0x7ff7, 0xfff7] {
        assert_eq!(half("fma.rn.oob.f16 %h0, %h1, %h2, %h2;", outside, 0x3c00), 0);
        assert_eq!(half("fma.rn.oob.relu.bf16 %h0, %h2, %h1, %h2;", outside, 0x3f80), 0);
        assert_eq!(half("fma.rn.oob.f16 %h0, %h2, %h2, %h1;", outside, 0x3c00), 0x7fff);
        assert_eq!(half("fma.rn.f16 %h0, %h1, %h2, %h2;", outside, 0x3c00), 0x7fff);
    }
    assert_eq!(half("fma.rn.oob.f16 %h0, %h1, %h2, %h2;", 0x7fff, 0x3c00), 0x7fff);
    assert_eq!(half("fma.rn.oob.f16 %h0, %h1, %h2, %h2;", 0x4000, 0x3c00), 0x4200);
    assert_eq!(half("neg.f16 %h0, %h1;", 0x3c00, 0), 0xbc00);
    assert_eq!(half("add.bf16 %h0, %h1, %h2;", 0x3f80, 0x3f80), 0x4000);
    let pair = eval("mov.b32 %r1, 0x3c004000;", "add.f16x2 %r0, %r1, %r1;", "%r0");
    assert_eq!(pair, 0x4000_4400);
    let to = |bits: u32| eval(&format!("mov.b32 %f1, {bits};"), "cvt.rn.f16.f32 %h0, %f1;", "%h0");
    assert_eq!(to(1f32.to_bits()), 0x3c00);
    assert_eq!(to(65520f32.to_bits()), 0x7c00);
    assert_eq!(to(65519f32.to_bits()), 0x7bff);
    assert_eq!(to(2f32.powi(-24).to_bits()), 1);
    assert_eq!(to(2f32.powi(-25).to_bits()), 0);
    assert_eq!(to((1.5 * 2f32.powi(-25)).to_bits()), 1);
    let back = eval("mov.b16 %h1, 0x3555;", "cvt.f32.f16 %f0, %h1;", "%f0");
    assert_eq!(f32::from_bits(back as u32), 0.333_251_95);
    let packed =
        eval("mov.f32 %f1, 0f3F800000;\nmov.f32 %f2, 0f40000000;", "cvt.rn.f16x2.f32 %r0, %f1, %f2;", "%r0");
    assert_eq!(packed, 0x3c00_4000);
}

#[test]
fn halves_flush_and_take_signs() {
    let half = |instruction: &str, a: u32, b: u32| {
        eval(&format!("mov.b16 %h1, {a};\nmov.b16 %h2, {b};"), instruction, "%h0")
    };
    assert_eq!(half("add.ftz.f16 %h0, %h1, %h2;", 0x0001, 0x8400), 0x8400);
    assert_eq!(half("mul.ftz.f16 %h0, %h1, %h2;", 0x8400, 0x3800), 0x8000);
    assert_eq!(half("abs.ftz.f16 %h0, %h1;", 0x83ff, 0), 0);
    assert_eq!(half("min.xorsign.abs.f16 %h0, %h1, %h2;", 0xbc00, 0x4000), 0xbc00);
    assert_eq!(half("max.xorsign.abs.bf16 %h0, %h1, %h2;", 0xbf80, 0xc000), 0x4000);
    let set =
        |instruction: &str| eval("mov.b32 %r1, 0x3c000001;\nmov.b32 %r2, 0x3c000000;", instruction, "%r0");
    assert_eq!(set("set.eq.f16x2.f16x2 %r0, %r1, %r2;"), 0x3c00_0000);
    assert_eq!(set("set.eq.ftz.u32.f16x2 %r0, %r1, %r2;"), 0xffff_ffff);
    assert_eq!(set("set.gt.bf16x2.bf16x2 %r0, %r1, %r2;"), 0x3f80);
}

#[test]
fn narrow_conversions_stay_finite() {
    let pair = |instruction: &str, high: f32, low: f32| {
        let setup = format!("mov.b32 %f1, {};\nmov.b32 %f2, {};", high.to_bits(), low.to_bits());
        eval(&setup, instruction, "%r0")
    };
    let from = |ty: &str, high: f32, low: f32| {
        pair(&format!("cvt.rn.satfinite.{ty}.f32 %h0, %f1, %f2;\ncvt.u32.u16 %r0, %h0;"), high, low)
    };
    assert_eq!(from("e4m3x2", 448.0, -1e9), 0x7efe);
    assert_eq!(from("e4m3x2", 1.0, f32::NAN), 0x387f);
    // Halfway between 1 and 1.125, and between 1.125 and 1.25.
    assert_eq!(from("e4m3x2", 1.0625, 1.1875), 0x383a);
    assert_eq!(from("e4m3x2", 2f32.powi(-10), 1.5 * 2f32.powi(-9)), 0x0002);
    assert_eq!(from("e5m2x2", f32::INFINITY, -57344.0), 0x7bfb);
    assert_eq!(from("relu.e5m2x2", -3.0, 2f32.powi(-16)), 0x0001);
    let back = |ty: &str, bits: u32| {
        eval(&format!("mov.b16 %h1, {bits};"), &format!("cvt.rn.f16x2.{ty} %r0, %h1;"), "%r0")
    };
    assert_eq!(back("e4m3x2", 0x7eff), 0x5f00_7fff);
    assert_eq!(back("e4m3x2", 0x0188), 0x1800_a400);
    assert_eq!(back("e5m2x2", 0xfc01), 0xfc00_0100);
    let two = pair("cvt.rn.satfinite.f16x2.f32 %r0, %f1, %f2;", 1e9, f32::NEG_INFINITY);
    assert_eq!(two, 0x7bff_fbff);
    let tf32 = |modes: &str, bits: u32| {
        eval(&format!("mov.b32 %f1, {bits};"), &format!("cvt.{modes}.tf32.f32 %r0, %f1;"), "%r0")
    };
    assert_eq!(tf32("rna", 0x3f80_1000), 0x3f80_2000);
    assert_eq!(tf32("rn", 0x3f80_1000), 0x3f80_0000);
    assert_eq!(tf32("rn", 0x3f80_3000), 0x3f80_4000);
    assert_eq!(tf32("rz", 0x3f80_3fff), 0x3f80_2000);
    assert_eq!(tf32("rna.satfinite", 0x7f7f_ffff), 0x7f7f_e000);
    let integers = |instruction: &str| {
        eval("mov.b32 %r1, 300;\nmov.b32 %r2, -7;\nmov.b32 %r3, 0x12345678;", instruction, "%r0")
    };
    assert_eq!(integers("cvt.pack.sat.s16.s32 %r0, %r1, %r2;"), 0x012c_fff9);
    assert_eq!(integers("cvt.pack.sat.u8.s32.b32 %r0, %r1, %r2, %r3;"), 0x5678_ff00);
    assert_eq!(integers("cvt.pack.sat.s4.s32.b32 %r0, %r1, %r2, %r3;"), 0x3456_7879);
}
