//! Video instructions.

use super::eval;

/// One instruction on three words.
fn op(instruction: &str, a: u32, b: u32, c: u32) -> u32 {
    let setup = format!("mov.b32 %r1, {a};\nmov.b32 %r2, {b};\nmov.b32 %r3, {c};");
    eval(&setup, instruction, "%r0") as u32
}

#[test]
fn parts_of_words_are_taken_and_extended() {
    assert_eq!(op("vadd.u32.u32.u32 %r0, %r1.b1, %r2.h1;", 0x1234, 0x5678_0000, 0), 0x12 + 0x5678);
    assert_eq!(op("vsub.s32.s32.u32 %r0, %r1.b0, %r2.b0;", 0xff, 0xff, 0), (-256i32) as u32);
    assert_eq!(op("vabsdiff.u32.s32.s32 %r0, %r1.h0, %r2.h0;", 0x8000, 0x7fff, 0), 0xffff);
    assert_eq!(op("vmin.s32.s32.u32 %r0, %r1, %r2;", u32::MAX, 5, 0), u32::MAX);
    assert_eq!(op("vmax.s32.s32.u32 %r0, %r1, %r2;", u32::MAX, 5, 0), 5);
}

#[test]
fn results_saturate_to_where_they_go() {
    assert_eq!(op("vadd.s32.u32.u32.sat %r0, %r1, %r2;", u32::MAX, 1, 0), 0x7fff_ffff);
    assert_eq!(op("vsub.u32.u32.u32.sat %r0, %r1, %r2;", 1, 2, 0), 0);
    assert_eq!(op("vadd.s32.s32.s32.sat %r0.b2, %r1, %r2, %r3;", 100, 100, 0x1122_3344), 0x117f_3344);
    assert_eq!(op("vadd.s32.s32.s32 %r0.h1, %r1, %r2, %r3;", 0x1_0001, 1, 0x1122_3344), 0x0001_3344);
    // Sums above 32 bits wrap, and what is cut for a merge has no sign.
    assert_eq!(op("vadd.u32.u32.u32.sat %r0, %r1, %r2;", u32::MAX, 2, 0), 1);
    assert_eq!(op("vsub.s32.s32.s32.sat %r0.b0, %r1, %r2, %r3;", 1, 2, 0), 0x7f);
}

#[test]
fn second_operations() {
    assert_eq!(op("vabsdiff.u32.u32.u32.add %r0, %r1, %r2, %r3;", 3, 10, 100), 107);
    assert_eq!(op("vadd.s32.s32.s32.min %r0, %r1, %r2, %r3;", 3, 10, u32::MAX), u32::MAX);
    assert_eq!(op("vadd.u32.u32.u32.max %r0, %r1, %r2, %r3;", 3, 10, u32::MAX), u32::MAX);
    assert_eq!(op("vadd.s32.s32.s32.min %r0, %r1, %r2, %r3;", 1 << 31, 1 << 31, 1), 0);
    assert_eq!(op("vadd.u32.u32.u32.max %r0, %r1, %r2, %r3;", 1 << 31, 0, u32::MAX), 1 << 31);
    assert_eq!(op("vset.s32.u32.lt %r0, %r1, %r2;", u32::MAX, 0, 0), 1);
    assert_eq!(op("vset.u32.u32.ge.add %r0, %r1, %r2, %r3;", 2, 2, 40), 41);
}

#[test]
fn shifts_and_products() {
    assert_eq!(op("vshl.u32.u32.u32.clamp %r0, %r1, %r2;", 1, 40, 0), 0);
    assert_eq!(op("vshl.u32.u32.u32.wrap %r0, %r1, %r2;", 1, 40, 0), 1 << 8);
    assert_eq!(op("vshl.u32.u32.u32.sat.clamp %r0, %r1, %r2;", 1, 32, 0), u32::MAX);
    assert_eq!(op("vshl.u32.u32.u32.sat.clamp %r0, %r1, %r2;", 2, 32, 0), 0);
    assert_eq!(op("vshl.u32.u32.u32.sat.clamp %r0, %r1, %r2;", 4, 32, 0), 0);
    assert_eq!(op("vshr.s32.s32.u32.clamp %r0, %r1, %r2;", 1 << 31, 40, 0), u32::MAX);
    assert_eq!(op("vmad.s32.s32.u32 %r0, %r1, %r2, -%r3;", (-2i32) as u32, 3, 4), (-10i32) as u32);
    assert_eq!(op("vmad.s32.s32.s32 %r0, -%r1, %r2, %r3;", 2, 3, 4), (-2i32) as u32);
    assert_eq!(op("vmad.u32.u32.u32.po %r0, %r1, %r2, %r3;", 2, 3, 4), 11);
    assert_eq!(op("vmad.u32.u32.u32.shr15 %r0, %r1.h0, %r2.h0, %r3;", 0x8000, 0x8000, 0), 0x8000);
    assert_eq!(op("vmad.u32.u32.u32.sat %r0, %r1, %r2, %r3;", 1 << 16, 1 << 16, 0), u32::MAX);
    assert_eq!(op("vmad.u32.u32.u32.sat %r0, %r1, %r2, %r3;", u32::MAX, 2, 0), 0);
    assert_eq!(op("vmad.u32.u32.u32.sat.shr15 %r0, %r1, %r2, %r3;", u32::MAX, 2, 0), u32::MAX);
}

#[test]
fn two_and_four_parts() {
    assert_eq!(op("vadd2.u32.u32.u32 %r0, %r1, %r2, %r3;", 0xffff_0001, 0x0002_0003, 0), 0x0001_0004);
    assert_eq!(op("vadd4.u32.u32.u32.sat %r0, %r1, %r2, %r3;", 0xff01_02f0, 0x0101_01f0, 0), 0xff02_03ff);
    assert_eq!(op("vsub2.s32.s32.s32.sat %r0.h1, %r1, %r2, %r3;", 0x8000_0000, 0x0001_0001, 7), 0x8000_0007);
    assert_eq!(op("vabsdiff4.u32.u32.u32.add %r0, %r1, %r2, %r3;", 0x0102_0304, 0x0201_0600, 10), 19);
    assert_eq!(op("vavrg2.s32.s32.s32 %r0, %r1, %r2, %r3;", 0x0001_ffff, 0x0002_fffe, 0), 0x0002_fffe);
    assert_eq!(op("vmin2.u32.u32.u32 %r0, %r1.h01, %r2.h22, %r3;", 0x0001_0009, 0x0007_0005, 0), 0x0005_0001);
    assert_eq!(
        op("vset4.u32.u32.gt %r0.b21, %r1, %r2, %r3;", 0x0909_0909, 0x0010_0000, 0x5555_5555),
        0x5500_0155
    );
}
