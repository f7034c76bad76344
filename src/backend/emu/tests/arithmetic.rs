//! Integers, logic, bits, comparisons.

use super::eval;

/// One instruction on 32-bit inputs.
fn op32(instruction: &str, a: u32, b: u32, c: u32) -> u32 {
    let setup = format!("mov.b32 %r1, {a};\nmov.b32 %r2, {b};\nmov.b32 %r3, {c};");
    eval(&setup, instruction, "%r0") as u32
}

fn op64(instruction: &str, a: u64, b: u64, c: u64) -> u64 {
    let setup = format!("mov.b64 %rd1, {a};\nmov.b64 %rd2, {b};\nmov.b64 %rd3, {c};");
    eval(&setup, instruction, "%rd0")
}

const MIN: u32 = 1 << 31;

#[test]
fn sums_and_products_wrap_or_saturate() {
    assert_eq!(op32("add.u32 %r0, %r1, %r2;", u32::MAX, 2, 0), 1);
    assert_eq!(op32("add.sat.s32 %r0, %r1, %r2;", 0x7fff_ffff, 1, 0), 0x7fff_ffff);
    assert_eq!(op32("sub.sat.s32 %r0, %r1, %r2;", MIN, 1, 0), MIN);
    assert_eq!(op32("mul.hi.s32 %r0, %r1, %r2;", (-3i32) as u32, 5, 0), u32::MAX);
    assert_eq!(op32("mul.hi.u32 %r0, %r1, %r2;", u32::MAX, u32::MAX, 0), u32::MAX - 1);
    assert_eq!(op32("mad.lo.s32 %r0, %r1, %r2, %r3;", 7, (-2i32) as u32, 20), 6);
    assert_eq!(op32("mad.hi.u32 %r0, %r1, %r2, %r3;", 1 << 31, 4, 5), 7);
    assert_eq!(op32("mul24.lo.s32 %r0, %r1, %r2;", 0x00ff_ffff, 2, 0), (-2i32) as u32);
    assert_eq!(op32("sad.u32 %r0, %r1, %r2, %r3;", 3, 10, 100), 107);
    assert_eq!(op32("sad.s32 %r0, %r1, %r2, %r3;", (-3i32) as u32, 4, 1), 8);
    assert_eq!(op64("mul.lo.s64 %rd0, %rd1, %rd2;", 3, u64::MAX, 0), (-3i64) as u64);
    assert_eq!(op64("mul.hi.u64 %rd0, %rd1, %rd2;", u64::MAX, u64::MAX, 0), u64::MAX - 1);
    assert_eq!(op64("mul.hi.s64 %rd0, %rd1, %rd2;", u64::MAX, 2, 0), u64::MAX);
    let wide = eval("mov.b32 %r1, -5;\nmov.b32 %r2, 7;", "mul.wide.s32 %rd0, %r1, %r2;", "%rd0");
    assert_eq!(wide, (-35i64) as u64);
    let mad = eval("mov.b32 %r1, -1;\nmov.b64 %rd1, 1;", "mad.wide.u32 %rd0, %r1, %r1, %rd1;", "%rd0");
    assert_eq!(mad, u64::from(u32::MAX).pow(2) + 1);
}

#[test]
fn division_by_zero_and_overflow_have_the_hardwares_results() {
    assert_eq!(op32("div.u32 %r0, %r1, %r2;", 7, 0, 0), u32::MAX);
    assert_eq!(op32("rem.u32 %r0, %r1, %r2;", 7, 0, 0), u32::MAX);
    assert_eq!(op32("div.s32 %r0, %r1, %r2;", MIN, u32::MAX, 0), MIN);
    assert_eq!(op32("rem.s32 %r0, %r1, %r2;", (-7i32) as u32, 3, 0), (-1i32) as u32);
    assert_eq!(op64("div.s64 %rd0, %rd1, %rd2;", (-7i64) as u64, 2, 0), (-3i64) as u64);
}

#[test]
fn long_fields_and_lost_bits_have_the_hardwares_results() {
    assert_eq!(op32("fns.b32 %r0, %r1, %r2, %r3;", u32::MAX, 3, MIN), 0);
    let field = |start| {
        eval(&format!("mov.b32 %r1, {start};\nmov.b64 %rd1, -1;"), "bfe.u64 %rd0, %rd1, %r1, 8;", "%rd0")
    };
    // Of a word's field the start has 8 bits, of a longer one it has all.
    assert_eq!((field(60), field(256)), (0xf, 0));
    assert_eq!(op32("bfe.u32 %r0, %r1, %r2, 8;", u32::MAX, 256, 0), 0xff);
}

#[test]
fn signs_and_extremes() {
    assert_eq!(op32("abs.s32 %r0, %r1;", MIN, 0, 0), MIN);
    assert_eq!(op32("neg.s32 %r0, %r1;", 5, 0, 0), (-5i32) as u32);
    assert_eq!(op32("min.s32 %r0, %r1, %r2;", u32::MAX, 0, 0), u32::MAX);
    assert_eq!(op32("min.u32 %r0, %r1, %r2;", u32::MAX, 0, 0), 0);
    assert_eq!(op32("max.s32 %r0, %r1, %r2;", u32::MAX, 0, 0), 0);
    assert_eq!(op32("max.u16x2 %r0, %r1, %r2;", 0x0001_ffff, 0x0002_0003, 0), 0x0002_ffff);
    assert_eq!(op32("max.s16x2 %r0, %r1, %r2;", 0x0001_ffff, 0x0002_0003, 0), 0x0002_0003);
    assert_eq!(op32("add.s16x2 %r0, %r1, %r2;", 0x0001_ffff, 0x0002_0001, 0), 0x0003_0000);
}

#[test]
fn carries_chain() {
    let setup = "mov.b32 %r1, -1;\nmov.b32 %r2, 1;\nmov.b32 %r3, 0;";
    let sum = "add.cc.u32 %r4, %r1, %r2;\naddc.cc.u32 %r5, %r1, %r3;\naddc.u32 %r0, %r3, %r3;";
    assert_eq!(eval(setup, sum, "%r0"), 1);
    let difference = "sub.cc.u32 %r4, %r3, %r2;\nsubc.u32 %r0, %r3, %r3;";
    assert_eq!(eval(setup, difference, "%r0"), u64::from(u32::MAX));
    let product = "mad.lo.cc.u32 %r4, %r1, %r1, %r1;\nmadc.hi.u32 %r0, %r1, %r1, 0;";
    // (2^32-1)^2 + 2^32-1 = (2^32-1) * 2^32
    assert_eq!(eval(setup, product, "%r0"), u64::from(u32::MAX));
}

#[test]
fn shifts_clamp_or_wrap() {
    assert_eq!(op32("shl.b32 %r0, %r1, %r2;", 1, 32, 0), 0);
    assert_eq!(op32("shr.s32 %r0, %r1, %r2;", MIN, 40, 0), u32::MAX);
    assert_eq!(op32("shr.u32 %r0, %r1, %r2;", MIN, 31, 0), 1);
    assert_eq!(op64("shr.s64 %rd0, %rd1, 60;", 1 << 63, 0, 0), u64::MAX << 3);
    assert_eq!(op32("shf.l.wrap.b32 %r0, %r1, %r2, %r3;", 0x8000_0000, 1, 33), 3);
    assert_eq!(op32("shf.r.clamp.b32 %r0, %r1, %r2, %r3;", 7, 9, 40), 9);
}

#[test]
fn bits_and_fields() {
    assert_eq!(op32("popc.b32 %r0, %r1;", 0xf0f0, 0, 0), 8);
    assert_eq!(op32("clz.b32 %r0, %r1;", 0, 0, 0), 32);
    assert_eq!(op32("brev.b32 %r0, %r1;", 1, 0, 0), MIN);
    assert_eq!(op32("bfind.u32 %r0, %r1;", 0, 0, 0), u32::MAX);
    assert_eq!(op32("bfind.s32 %r0, %r1;", (-5i32) as u32, 0, 0), 2);
    assert_eq!(op32("bfind.shiftamt.u32 %r0, %r1;", 1, 0, 0), 31);
    assert_eq!(op32("bfe.u32 %r0, %r1, %r2, %r3;", 0xabcd_ef01, 8, 8), 0xef);
    assert_eq!(op32("bfe.s32 %r0, %r1, %r2, %r3;", 0xabcd_ef01, 8, 8), 0xffff_ffef);
    assert_eq!(op32("bfe.s32 %r0, %r1, %r2, %r3;", MIN, 28, 8), 0xffff_fff8);
    assert_eq!(op32("bfe.u32 %r0, %r1, %r2, %r3;", 1, 4, 0), 0);
    assert_eq!(op32("bfi.b32 %r0, %r1, %r2, 4, 8;", 0xff, 0, 0), 0xff0);
    assert_eq!(op32("lop3.b32 %r0, %r1, %r2, %r3, 0x96;", 5, 3, 9), 5 ^ 3 ^ 9);
    assert_eq!(op32("prmt.b32 %r0, %r1, %r2, 0x7531;", 0x4433_2211, 0x8877_6655, 0), 0x8866_4422);
    assert_eq!(op32("prmt.b32 %r0, %r1, %r2, 0x888f;", 0x80, 0, 0), 0xffff_ff00);
    assert_eq!(op32("cnot.b32 %r0, %r1;", 0, 0, 0), 1);
    assert_eq!(op32("bmsk.clamp.b32 %r0, %r1, %r2;", 4, 3, 0), 0x70);
    assert_eq!(op32("fns.b32 %r0, %r1, 0, 2;", 0b1010, 0, 0), 3);
    assert_eq!(op32("dp4a.s32.u32 %r0, %r1, %r2, %r3;", 0xff02_0304, 0x0101_0101, 10), 10 + 4 + 3 + 2 - 1);
    assert_eq!(op32("dp2a.lo.u32.u32 %r0, %r1, %r2, %r3;", 0x0002_0003, 0x0000_0504, 1), 1 + 3 * 4 + 2 * 5);
}

#[test]
fn comparisons_of_both_signs_and_kinds() {
    let p = |instruction: &str, a: &str, b: &str| {
        eval(
            &format!(
                "mov.b32 %r1, {a};\nmov.b32 %r2, {b};\nmov.b32 %f1, {a};\nmov.b32 %f2, {b};\nsetp.eq.u32 %p2, 0, 0;"
            ),
            instruction,
            "%p1",
        )
    };
    assert_eq!(p("setp.lt.s32 %p1, %r1, %r2;", "-1", "1"), 1);
    assert_eq!(p("setp.lt.u32 %p1, %r1, %r2;", "-1", "1"), 0);
    assert_eq!(p("setp.hs.u32 %p1, %r1, %r2;", "4", "4"), 1);
    assert_eq!(p("setp.ne.s32.and.u32 %p1, %r1, %r2, %p2;", "4", "4"), 0);
    let nan = "0x7fc00000";
    assert_eq!(p("setp.lt.f32 %p1, %f1, %f2;", nan, "0"), 0);
    assert_eq!(p("setp.ltu.f32 %p1, %f1, %f2;", nan, "0"), 1);
    assert_eq!(p("setp.ne.f32 %p1, %f1, %f2;", nan, "0"), 0);
    assert_eq!(p("setp.neu.f32 %p1, %f1, %f2;", nan, "0"), 1);
    assert_eq!(p("setp.nan.f32 %p1, %f1, %f2;", nan, "0"), 1);
    assert_eq!(p("setp.num.f32 %p1, %f1, %f2;", "0", "0"), 1);
    assert_eq!(p("setp.eq.f32 %p1, %f1, %f2;", "0x80000000", "0"), 1);
    assert_eq!(p("setp.gt.and.s32 %p3|%p1, %r1, %r2, !%p2;", "5", "4"), 0);
    assert_eq!(p("setp.gt.or.s32 %p3|%p1, %r1, %r2, %p2;", "5", "4"), 1);
    assert_eq!(p("setp.lt.ftz.f32 %p1, %f1, %f2;", "0", "1"), 0);
    assert_eq!(op32("set.lt.u32.s32 %r0, %r1, %r2;", u32::MAX, 0, 0), u32::MAX);
    assert_eq!(op32("set.lt.f32.s32 %r0, %r1, %r2;", u32::MAX, 0, 0), 1f32.to_bits());
    assert_eq!(op32("slct.b32.s32 %r0, %r1, %r2, %r3;", 1, 2, MIN), 2);
}

#[test]
fn moves_pack_and_unpack() {
    assert_eq!(eval("mov.b32 %r1, 1;\nmov.b32 %r2, 2;", "mov.b64 %rd0, {%r1, %r2};", "%rd0"), 0x2_0000_0001);
    assert_eq!(eval("mov.b64 %rd1, 0x200000001;", "mov.b64 {_, %r0}, %rd1;", "%r0"), 2);
    assert_eq!(eval("mov.b32 %r1, 0x00020001;", "mov.b32 {%h1, %h0}, %r1;", "%h0"), 2);
    let vector = ".reg .v2 .b32 %v;\nmov.v2.b32 %v, {7, 9};";
    assert_eq!(eval(vector, "add.u32 %r0, %v.x, %v.y;", "%r0"), 16);
    let wide = ".reg .b128 %q;\nmov.b64 %rd1, 5;\nmov.b64 %rd2, 6;\nmov.b128 %q, {%rd1, %rd2};";
    assert_eq!(eval(wide, "mov.b128 {%rd3, %rd0}, %q;", "%rd0"), 6);
}

#[test]
fn integer_conversions_extend_truncate_and_saturate() {
    assert_eq!(eval("mov.b32 %r1, 0x80;", "cvt.s32.s8 %r0, %r1;", "%r0") as u32, 0xffff_ff80);
    assert_eq!(eval("mov.b32 %r1, 0x1ff;", "cvt.u32.u8 %r0, %r1;", "%r0"), 0xff);
    assert_eq!(eval("mov.b32 %r1, -1;", "cvt.s64.s32 %rd0, %r1;", "%rd0"), u64::MAX);
    assert_eq!(eval("mov.b32 %r1, -1;", "cvt.u64.u32 %rd0, %r1;", "%rd0"), 0xffff_ffff);
    assert_eq!(eval("mov.b32 %r1, 300;", "cvt.sat.u8.s32 %r0, %r1;", "%r0"), 255);
    assert_eq!(eval("mov.b32 %r1, -300;", "cvt.sat.s8.s32 %r0, %r1;", "%r0") as u32, 0xffff_ff80);
    assert_eq!(eval("mov.b64 %rd1, -1;", "cvt.sat.u32.s64 %r0, %rd1;", "%r0"), 0);
}

#[test]
fn inner_registers_shadow_outer_ones() {
    let body = "mov.b32 %r1, 1;\n{ .reg .b32 %r<3>;\n mov.b32 %r1, 2;\n mov.b32 %r2, 9; }\nmov.b32 %r0, %r1;";
    assert_eq!(eval("", body, "%r0"), 1);
}
