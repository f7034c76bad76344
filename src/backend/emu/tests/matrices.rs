//! Matrix instructions, against products computed here.

use super::steps::same;
use super::{Ran, Run, kernel_with};
use crate::abi::TAG_SHARED;
use crate::backend::FaultKind;

/// A small number as `f16`.
fn half(value: i32) -> u16 {
    if value == 0 {
        return 0;
    }
    let bits = (value as f32).to_bits();
    ((bits >> 31) << 15 | ((bits >> 23 & 255) - 112) << 10 | bits >> 13 & 0x3ff) as u16
}

/// Elements of the operands.
fn a(row: usize, column: usize) -> i32 {
    (row * 2 + column * 3) as i32 % 7 - 3
}
fn b(row: usize, column: usize) -> i32 {
    (row * 5 + column) as i32 % 5 - 2
}

fn product(m: usize, n: usize, k: usize) -> Vec<i32> {
    let cell = |i: usize| (0..k).map(|x| a(i / n, x) * b(x, i % n)).sum::<i32>() + i as i32;
    (0..m * n).map(cell).collect()
}

/// The bytes of a matrix, line by line.
fn bytes<const N: usize>(
    of: fn(usize, usize) -> i32,
    lines: usize,
    length: usize,
    transposed: bool,
    element: impl Fn(i32) -> [u8; N],
) -> Vec<u8> {
    let at = |i: usize| if transposed { of(i % length, i / length) } else { of(i / length, i % length) };
    (0..lines * length).flat_map(|i| element(at(i))).collect()
}

/// A kernel over `out` (`%out`, 4096 bytes), then A at 4096 and B at 8192.
fn with(parts: [Vec<u8>; 3], body: &str) -> Run {
    let mut memory = vec![0; 12288];
    for (at, part) in [0, 4096, 8192].into_iter().zip(parts) {
        memory[at..at + part.len()].copy_from_slice(&part);
    }
    let body = format!(
        "mov.u32 %r30, %laneid;\nshr.u32 %r31, %r30, 2;\nand.b32 %r32, %r30, 3;\nadd.u64 %rd20, %out, 4096;\n\
         add.u64 %rd21, %out, 8192;\n{body}"
    );
    kernel_with(".shared .align 128 .b8 s[2048];", &body).buffer("out", memory)
}

fn ended(run: impl Fn() -> Run) -> Ran {
    let ran = same(run);
    assert!(ran.outcome.stop.is_none(), "{:?}\n{}", ran.outcome.stop, ran.text);
    ran
}

fn floats(ran: &Ran, count: usize) -> Vec<i32> {
    ran.words(0)[..count].iter().map(|word| f32::from_bits(*word) as i32).collect()
}

fn counting(count: usize) -> Vec<u8> {
    (0..count).flat_map(|i| (i as f32).to_le_bytes()).collect()
}

/// Copies 1024 bytes of A to `s` and 1024 of B behind.
const TO_SHARED: &str = "mov.u32 %r1, s;\nmov.u32 %r2, 0;\nLOOP:\nmad.lo.u32 %r3, %r2, 32, %r30;\nmul.lo.u32 %r3, %r3, 4;\n\
    cvt.u64.u32 %rd1, %r3;\nadd.u64 %rd2, %rd20, %rd1;\nadd.u64 %rd3, %rd21, %rd1;\nld.global.u32 %r4, [%rd2];\n\
    ld.global.u32 %r5, [%rd3];\nadd.u32 %r6, %r1, %r3;\nst.shared.u32 [%r6], %r4;\nst.shared.u32 [%r6+1024], %r5;\n\
    add.u32 %r2, %r2, 1;\nsetp.lt.u32 %p1, %r2, 8;\n@%p1 bra LOOP;\nbar.warp.sync -1;\n";

/// Loads A (16 by 16, by rows) into `%r10` to `%r13` and B (16 by 8, by rows) into `%r14` and `%r15`.
const LOAD: &str = "and.b32 %r7, %r30, 15;\nshr.u32 %r8, %r30, 4;\nmad.lo.u32 %r9, %r7, 32, %r1;\nmad.lo.u32 %r9, %r8, 16, %r9;\n\
    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10, %r11, %r12, %r13}, [%r9];\nmad.lo.u32 %r9, %r7, 16, %r1;\n\
    ldmatrix.sync.aligned.m8n8.x2.trans.shared::cta.b16 {%r14, %r15}, [%r9+1024];\n";

#[test]
fn rows_of_matrices_feed_a_product() {
    // What lanes hold of a sum of 16 by 8: two neighbours, and two eight rows below.
    let sum = "mad.lo.u32 %r20, %r31, 8, %r32;\nadd.u32 %r20, %r20, %r32;\nmad.wide.u32 %rd5, %r20, 4, %out;\n\
               ld.global.v2.f32 {%f1, %f2}, [%rd5];\nld.global.v2.f32 {%f3, %f4}, [%rd5+256];\n";
    let body = format!(
        "{TO_SHARED}{LOAD}{sum}mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{%f5, %f6, %f7, %f8}}, \
         {{%r10, %r11, %r12, %r13}}, {{%r14, %r15}}, {{%f1, %f2, %f3, %f4}};\nst.global.v2.f32 [%rd5], {{%f5, %f6}};\n\
         st.global.v2.f32 [%rd5+256], {{%f7, %f8}};"
    );
    let run = || {
        let half = |value| half(value).to_le_bytes();
        with([counting(128), bytes(a, 16, 16, false, half), bytes(b, 16, 8, false, half)], &body)
    };
    let ran = ended(run);
    assert_eq!(floats(&ran, 128), product(16, 8, 16));
    let loads = ran.of("ldmatrix.sync.aligned.m8n8.x4.shared.b16");
    assert_eq!((loads[0].mask, loads[0].a[17]), (u32::MAX, TAG_SHARED | (32 + 16)));
    assert_eq!(ran.of("ldmatrix.sync.aligned.m8n8.x2.trans.shared::cta.b16")[0].mask, 0xffff);

    // Inner size 8, sums of 16 bits: half of A and of B.
    let body = format!(
        "{TO_SHARED}{LOAD}mov.b32 %r16, 0;\nmma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {{%r17, %r18}}, \
         {{%r10, %r11}}, {{%r14}}, {{%r16, %r16}};\nmad.lo.u32 %r20, %r31, 4, %r32;\nmad.wide.u32 %rd5, %r20, 4, %out;\n\
         st.global.u32 [%rd5], %r17;\nst.global.u32 [%rd5+128], %r18;"
    );
    let run = || {
        let half = |value| half(value).to_le_bytes();
        with([Vec::new(), bytes(a, 16, 16, false, half), bytes(b, 16, 8, false, half)], &body)
    };
    let ran = ended(run);
    let words = ran.words(0);
    let halves = words[..64].iter().flat_map(|word| [*word as u16, (word >> 16) as u16]);
    let expected = (0..).zip(product(16, 8, 8)).map(|(i, cell)| half(cell - i));
    assert_eq!(halves.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
}

#[test]
fn products_of_other_types() {
    // A by rows and B by columns of `bytes` each line, registers straight from memory.
    let fragments = "mul.lo.u32 %r20, %r31, $LINE;\nmad.lo.u32 %r20, %r32, $WORD, %r20;\ncvt.u64.u32 %rd1, %r20;\n\
        add.u64 %rd2, %rd20, %rd1;\nadd.u64 %rd3, %rd21, %rd1;\nmad.lo.u32 %r21, %r31, 8, %r32;\nadd.u32 %r21, %r21, %r32;\n";
    let fragments = |line: u32, word: u32| {
        fragments.replace("$LINE", &line.to_string()).replace("$WORD", &word.to_string())
    };
    let integers = format!(
        "{}mad.wide.u32 %rd5, %r21, 4, %out;\nld.global.u32 %r10, [%rd2];\nld.global.u32 %r11, [%rd2+256];\n\
         ld.global.u32 %r12, [%rd2+16];\nld.global.u32 %r13, [%rd2+272];\nld.global.u32 %r14, [%rd3];\n\
         ld.global.u32 %r15, [%rd3+16];\nld.global.v2.u32 {{%r1, %r2}}, [%rd5];\nld.global.v2.u32 {{%r3, %r4}}, [%rd5+256];\n\
         mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32 {{%r1, %r2, %r3, %r4}}, {{%r10, %r11, %r12, %r13}}, \
         {{%r14, %r15}}, {{%r1, %r2, %r3, %r4}};\nst.global.v2.u32 [%rd5], {{%r1, %r2}};\nst.global.v2.u32 [%rd5+256], {{%r3, %r4}};",
        fragments(32, 4)
    );
    let byte = |value: i32| [value as u8];
    let ints = (0..128i32).flat_map(i32::to_le_bytes).collect::<Vec<u8>>();
    let ran =
        ended(|| with([ints.clone(), bytes(a, 16, 32, false, byte), bytes(b, 8, 32, true, byte)], &integers));
    assert_eq!(ran.words(0)[..128], product(16, 8, 32).iter().map(|v| *v as u32).collect::<Vec<_>>());

    let doubles = format!(
        "{}mad.wide.u32 %rd5, %r21, 8, %out;\nld.global.f64 %fd1, [%rd2];\nld.global.f64 %fd2, [%rd3];\n\
         ld.global.v2.f64 {{%fd3, %fd4}}, [%rd5];\nmma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {{%fd3, %fd4}}, {{%fd1}}, \
         {{%fd2}}, {{%fd3, %fd4}};\nst.global.v2.f64 [%rd5], {{%fd3, %fd4}};",
        fragments(32, 8)
    );
    let double = |value: i32| f64::from(value).to_le_bytes();
    let sums = (0..64).flat_map(double).collect::<Vec<u8>>();
    let ran =
        ended(|| with([sums.clone(), bytes(a, 8, 4, false, double), bytes(b, 8, 4, true, double)], &doubles));
    let longs = ran.longs(0);
    let sums = longs[..64].iter().map(|bits| f64::from_bits(*bits) as i32);
    assert_eq!(sums.collect::<Vec<_>>(), product(8, 8, 4));

    let tf32 = format!(
        "{}mad.wide.u32 %rd5, %r21, 4, %out;\nld.global.u32 %r10, [%rd2];\nld.global.u32 %r11, [%rd2+256];\n\
         ld.global.u32 %r12, [%rd2+16];\nld.global.u32 %r13, [%rd2+272];\nld.global.u32 %r14, [%rd3];\nor.b32 %r14, %r14, 1;\n\
         ld.global.u32 %r15, [%rd3+16];\nld.global.v2.f32 {{%f1, %f2}}, [%rd5];\nld.global.v2.f32 {{%f3, %f4}}, [%rd5+256];\n\
         mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {{%f1, %f2, %f3, %f4}}, {{%r10, %r11, %r12, %r13}}, \
         {{%r14, %r15}}, {{%f1, %f2, %f3, %f4}};\nst.global.v2.f32 [%rd5], {{%f1, %f2}};\nst.global.v2.f32 [%rd5+256], {{%f3, %f4}};",
        fragments(32, 4)
    );
    let single = |value: i32| (value as f32).to_le_bytes();
    let ran =
        ended(|| with([counting(128), bytes(a, 16, 8, false, single), bytes(b, 8, 8, true, single)], &tf32));
    assert_eq!(floats(&ran, 128), product(16, 8, 8));
}

#[test]
fn tiles_of_every_shape() {
    for (m, n) in [(16, 16), (32, 8), (8, 32)] {
        let shape = format!("m{m}n{n}k16");
        let regs = |first: u32| (first..first + 8).map(|i| format!("%r{i}")).collect::<Vec<_>>().join(", ");
        let sums = (10..18).map(|i| format!("%f{i}")).collect::<Vec<_>>().join(", ");
        let (at, bt) = (regs(1), regs(10));
        let body = format!(
            "mov.u32 %r40, 16;\nwmma.load.a.sync.aligned.row.{shape}.global.f16 {{{at}}}, [%rd20], %r40;\n\
             wmma.load.b.sync.aligned.col.{shape}.global.f16 {{{bt}}}, [%rd21], 16;\n\
             wmma.load.c.sync.aligned.row.{shape}.global.f32 {{{sums}}}, [%out];\n\
             wmma.mma.sync.aligned.row.col.{shape}.f32.f32 {{{sums}}}, {{{at}}}, {{{bt}}}, {{{sums}}};\n\
             wmma.store.d.sync.aligned.row.{shape}.global.f32 [%out], {{{sums}}};\nmov.u32 %r41, s;\nmov.u32 %r42, {m};\n\
             wmma.store.d.sync.aligned.col.{shape}.shared.f32 [%r41], {{{sums}}}, %r42;\nbar.warp.sync -1;\n\
             ld.shared.f32 %f1, [s+4];\nst.global.f32 [%out+1024], %f1;"
        );
        let run = || {
            let half = |value| half(value).to_le_bytes();
            with([counting(m * n), bytes(a, m, 16, false, half), bytes(b, n, 16, true, half)], &body)
        };
        let ran = ended(run);
        let expected = product(m, n, 16);
        assert_eq!(floats(&ran, 256), expected, "{shape}");
        // By columns, the second element is one row down.
        assert_eq!(f32::from_bits(ran.words(0)[256]) as i32, expected[n]);
        let load = ran.of(&format!("wmma.load.c.sync.aligned.row.{shape}.global.f32"))[0];
        assert_eq!((load.mask, load.read[0]), (u32::MAX, n as u64));
        let store = ran.of(&format!("wmma.store.d.sync.aligned.col.{shape}.shared.f32"))[0];
        assert_eq!((store.a[5], store.read[5]), (TAG_SHARED, m as u64));
    }
}

/// A (64 by 16) at 0 and B (16 by 8, by columns) at 2048 of `s`, copied there from `out` at 4096; `place` makes `%r9`, where the
/// 16 bytes belong whose number in the matrix is `%r8`: line `%r6` and half `%r7`.
fn warpgroup(place: &str, leading: u64, stride: u64, swizzle: u64, add: &str) -> Run {
    let bits = leading >> 4 << 16 | stride >> 4 << 32 | swizzle << 62;
    let body = format!(
        "mov.u32 %r30, %tid.x;\nmov.u32 %r1, s;\nmov.u32 %r8, %r30;\nmov.u32 %r2, 0;\nNEXT:\nshr.u32 %r6, %r8, 1;\nand.b32 %r7, %r8, 1;\n\
         {place}\nadd.u32 %r9, %r9, %r1;\nadd.u32 %r9, %r9, %r2;\nshl.b32 %r4, %r8, 4;\nadd.u32 %r4, %r4, %r2;\ncvt.u64.u32 %rd1, %r4;\n\
         add.u64 %rd1, %rd1, %out;\nld.global.v4.u32 {{%r10, %r11, %r12, %r13}}, [%rd1+4096];\n\
         st.shared.v4.u32 [%r9], {{%r10, %r11, %r12, %r13}};\nsetp.lt.u32 %p1, %r30, 16;\nsetp.eq.u32 %p2, %r2, 0;\nmov.u32 %r2, 2048;\n\
         and.pred %p1, %p1, %p2;\n@%p1 bra NEXT;\nfence.proxy.async.shared::cta;\nbar.sync 0;\nshr.u32 %r2, %r1, 4;\ncvt.u64.u32 %rd2, %r2;\n\
         or.b64 %rd2, %rd2, {bits:#x};\nadd.u64 %rd3, %rd2, 128;\nmov.f32 %f1, 0f3f800000;\nmov.f32 %f2, %f1;\nmov.f32 %f3, %f1;\n\
         mov.f32 %f4, %f1;\nwgmma.fence.sync.aligned;\n\
         wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{%f1, %f2, %f3, %f4}}, %rd2, %rd3, {add}, -1, 1, 0, 0;\n\
         wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\nshr.u32 %r3, %r30, 5;\nand.b32 %r4, %r30, 31;\n\
         shr.u32 %r5, %r4, 2;\nmad.lo.u32 %r5, %r3, 16, %r5;\nand.b32 %r4, %r4, 3;\nmad.lo.u32 %r5, %r5, 4, %r4;\n\
         mad.wide.u32 %rd4, %r5, 8, %out;\nst.global.v2.f32 [%rd4], {{%f1, %f2}};\nst.global.v2.f32 [%rd4+256], {{%f3, %f4}};"
    );
    let half = |value| half(value).to_le_bytes();
    let mut memory = vec![0; 4096];
    memory.extend(bytes(a, 64, 16, false, half));
    memory.extend(bytes(b, 8, 16, true, half));
    kernel_with(".shared .align 1024 .b8 s[16384];", &body).threads(128).buffer("out", memory)
}

#[test]
fn warpgroups_multiply_what_descriptors_tell_of() {
    let plain = "shr.u32 %r9, %r6, 3;\nshl.b32 %r9, %r9, 8;\nmad.lo.u32 %r9, %r7, 128, %r9;\nand.b32 %r6, %r6, 7;\n\
                 mad.lo.u32 %r9, %r6, 16, %r9;";
    // Rows of 32 bytes, whose halves change places in every other row of 128 bytes.
    let swizzled = "shr.u32 %r9, %r6, 2;\nxor.b32 %r7, %r7, %r9;\nand.b32 %r7, %r7, 1;\nmul.lo.u32 %r9, %r6, 32;\n\
                    mad.lo.u32 %r9, %r7, 16, %r9;";
    for (place, leading, stride, swizzle) in [(plain, 128, 256, 0), (swizzled, 16, 256, 3)] {
        for (add, one) in [("1", 1), ("0", 0)] {
            let ran = ended(|| warpgroup(place, leading, stride, swizzle, add));
            let cell = |i: usize| (0..16).map(|k| -a(i / 8, k) * b(k, i % 8)).sum::<i32>() + one;
            assert_eq!(floats(&ran, 512), (0..512).map(cell).collect::<Vec<_>>(), "{swizzle} {add}");
            let records = ran.of("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16");
            assert_eq!(records.len(), 4);
            assert_eq!(records[0].a[31], records[0].read[31] + 128);
        }
    }
}

#[test]
fn matrices_are_transposed_on_each_way() {
    let transposed: Vec<u32> = (0..64).map(|i| i % 8 * 8 + i / 8).collect();
    for (load, middle, store) in [
        (".trans", "", ""),
        ("", "", ".trans"),
        ("", "movmatrix.sync.aligned.m8n8.trans.b16 %r10, %r10;", ""),
        (".trans", "movmatrix.sync.aligned.m8n8.trans.b16 %r10, %r10;", ".trans"),
    ] {
        let body = format!(
            "{TO_SHARED}mad.lo.u32 %r9, %r30, 16, %r1;\nldmatrix.sync.aligned.m8n8.x1{load}.shared.b16 {{%r10}}, [%r9];\n{middle}\n\
             stmatrix.sync.aligned.m8n8.x1{store}.shared.b16 [%r9+512], {{%r10}};\nbar.warp.sync -1;\n\
             mad.lo.u32 %r11, %r30, 4, %r1;\nld.shared.u32 %r12, [%r11+512];\nmad.wide.u32 %rd5, %r30, 4, %out;\n\
             st.global.u32 [%rd5], %r12;"
        );
        let numbers = (0..64u16).flat_map(u16::to_le_bytes).collect::<Vec<_>>();
        let ran = ended(|| with([Vec::new(), numbers.clone(), Vec::new()], &body));
        let words = ran.words(0);
        let halves = words[..32].iter().flat_map(|word| [word & 0xffff, word >> 16]);
        assert_eq!(halves.collect::<Vec<_>>(), transposed, "{load} {middle} {store}");
        let stores: Vec<_> = ran.records.iter().filter(|r| r.opcode.starts_with("stmatrix")).collect();
        assert_eq!((stores[0].mask, stores[0].written.len()), (0xff, 0));
    }
}

#[test]
fn lanes_that_part_meet_at_a_matrix() {
    let body = format!(
        "{TO_SHARED}setp.lt.u32 %p2, %r30, 7;\n@%p2 bra A;\nmov.u32 %r20, 1;\nadd.u32 %r20, %r20, 1;\nA:\n\
         and.b32 %r7, %r30, 7;\nshr.u32 %r8, %r30, 3;\nmad.lo.u32 %r9, %r30, 16, %r1;\n\
         stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r9], {{%r30, %r30, %r30, %r30}};\nbar.warp.sync -1;\n\
         mad.lo.u32 %r11, %r30, 4, %r1;\nld.shared.u32 %r12, [%r11+128];\nmad.wide.u32 %rd5, %r30, 4, %out;\n\
         st.global.u32 [%rd5], %r12;"
    );
    let ran = ended(|| with([Vec::new(), Vec::new(), Vec::new()], &body));
    assert_eq!(ran.words(0)[..32], (0..32).collect::<Vec<_>>());
    let stores = ran.of("stmatrix.sync.aligned.m8n8.x4.shared.b16");
    assert_eq!(stores.iter().fold(0, |lanes, r| lanes | r.mask), u32::MAX);
    assert!(stores.iter().all(|r| r.written.is_empty()));
    let ran = same(|| {
        with(
            [Vec::new(), Vec::new(), Vec::new()],
            "mov.u32 %r1, s;\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r10}, [%r1+8];",
        )
    });
    assert_eq!(ran.fault().kind, FaultKind::Misaligned);
}

#[test]
fn matrices_of_bytes_are_refused_by_name() {
    let forms = [
        ("ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8", "{%r10, %r11}, [%r1]", "m16n16"),
        ("ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b6x16_p32", "{%r10}, [%r1]", "m8n16"),
        ("stmatrix.sync.aligned.m16n8.x1.trans.shared.b8", "[%r1], {%r10}", "m16n8"),
    ];
    for (opcode, operands, shape) in forms {
        let body = format!("mov.u32 %r1, s;\nmov.u32 %r10, 0;\n{opcode} {operands};");
        let ran = kernel_with(".shared .align 128 .b8 s[512];", &body).words("out", &[0; 4]).run();
        let stop = format!("{:?}", ran.outcome.stop);
        assert!(
            stop.contains(&format!("`{opcode}`"))
                && stop.contains(&format!("`.{shape}` needs sm_100a or later")),
            "{stop}"
        );
    }
}
