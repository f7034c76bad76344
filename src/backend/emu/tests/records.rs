//! Records: what they hold, in which order, and that the seed alone decides.

use super::kernel;

#[test]
fn weak_and_strong_accesses_log_what_their_sites_say() {
    let body = "mov.u32 %r1, %tid.x;\nmad.wide.u32 %rd1, %r1, 4, %out;\nld.global.u32 %r2, [%rd1];\n\
                st.global.u32 [%rd1], %r1;\nld.relaxed.gpu.global.u32 %r3, [%out];\nmembar.gl;\nbar.warp.sync -1;";
    let ran = kernel(body).threads(4).words("out", &[9; 4]).ok();
    let order: Vec<_> = ran.records.iter().map(|r| r.opcode.as_str()).collect();
    assert_eq!(
        order,
        ["ld.global.u32", "st.global.u32", "ld.relaxed.gpu.global.u32", "membar.gl", "bar.warp.sync", "ret"]
    );
    let base = ran.kept.infos[0].regions[0].base;
    assert_eq!(ran.records[0].a, (0..4).map(|i| base + 4 * i).collect::<Vec<_>>());
    assert!(ran.records[0].read.is_empty());
    assert_eq!(ran.records[1].written, [0, 1, 2, 3]);
    assert_eq!(ran.records[2].read, [0; 4]);
    assert_eq!(ran.records[2].tickets, Some((1, 2)));
    assert_eq!(ran.records[3].tickets, Some((3, 4)));
    assert_eq!(ran.records[4].a, [0xffff_ffff; 4]);
    assert!(ran.records.iter().all(|r| r.mask == 15));
    assert_eq!(ran.kept.ends[0].records, 6);
}

#[test]
fn what_a_guard_switches_off_logs_nothing() {
    let body = "mov.u32 %r1, %tid.x;\nsetp.lt.u32 %p1, %r1, 3;\n@%p1 st.global.u32 [%out], 5;\n@!%p1 ld.global.u32 %r2, [%out];\n\
                setp.gt.u32 %p1, %r1, 99;\n@%p1 st.global.u32 [%out], 5;";
    let ran = kernel(body).words("out", &[0]).ok();
    let masks: Vec<_> = ran.records.iter().map(|r| r.mask).collect();
    assert_eq!(masks, [7, !7, u32::MAX]);
}

#[test]
fn wide_values_are_mixed() {
    let body = "mov.b64 %rd1, 7;\nst.global.v2.b64 [%out], {%rd1, 8};\nst.global.v4.u8 [%out], {1, 2, 3, 4};";
    let ran = kernel(body).threads(1).words("out", &[0; 4]).ok();
    assert_eq!(ran.records[0].written, [crate::abi::mix_value(7, 8)]);
    assert_eq!(ran.records[1].written, [0x0403_0201]);
}

#[test]
fn the_seed_decides_the_schedule() {
    let body = "mov.u32 %r2, 0;\nLOOP:\natom.global.add.u32 %r1, [%out], 1;\nadd.u32 %r2, %r2, 1;\nsetp.lt.u32 %p1, %r2, 20;\n\
                @%p1 bra LOOP;";
    let units = |seed| kernel(body).threads(64).blocks(3).words("out", &[0]).seed(seed).ok().kept.units;
    let first = units(1);
    assert_eq!(first, units(1));
    let others: Vec<_> = (2..6).map(units).collect();
    assert!(others.iter().all(|other| *other != first));
    let changes = |seed| {
        let ran = kernel(body).threads(64).blocks(3).words("out", &[0]).seed(seed).ok();
        ran.records.windows(2).filter(|w| (w[0].block, w[0].warp) != (w[1].block, w[1].warp)).count()
    };
    // Not one warp after the other, or just that.
    assert!(changes(0) > 12, "{}", changes(0));
    assert_eq!([1, 2].map(changes), [5, 5]);
}
