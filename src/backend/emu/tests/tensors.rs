//! Copies of boxes of tensors, against what a GPU did (`tools/gpu/tensor_check`).

use super::{Ran, Run, module};
use crate::backend::{FaultKind, Stop};
use crate::tensor::{DataType, Swizzle, TensorMap};

const SHARED: usize = 16384;
const GLOBAL: usize = 65536;

/// The bytes that the probe begins with.
fn pattern(count: usize, seed: u32) -> Vec<u8> {
    let byte = |at: u32| {
        let mut x = (at ^ seed).wrapping_mul(0x9E37_79B1);
        x ^= x >> 15;
        (x.wrapping_mul(0x85EB_CA77) >> 24) as u8
    };
    (0..count as u32).map(byte).collect()
}

/// A line of `cases.txt`.
struct Case<'t> {
    what: &'t str,
    map: TensorMap,
    at: Vec<i32>,
    offset: u32,
    /// No interleaving, and a swizzle that is covered.
    covered: bool,
}

fn case(line: &str) -> Case<'_> {
    let words: Vec<_> = line.split(' ').collect();
    let [what, ty, sizes, strides, extent, steps, swizzle, interleave, fill, at, offset] = words[..] else {
        panic!("{line}")
    };
    let list = |text: &str| text.split(',').map(|n| n.parse::<i64>().unwrap()).collect::<Vec<_>>();
    let (_, ty) = *DataType::ALL.iter().find(|(name, _)| *name == ty).unwrap();
    let sizes = list(sizes);
    let mut map = TensorMap {
        swizzle: Swizzle::ALL.get(swizzle.parse::<usize>().unwrap()).copied().unwrap_or_default(),
        nan: fill == "1",
        ..TensorMap::new(ty, sizes.len(), 16384)
    };
    for (dimension, size) in sizes.iter().enumerate() {
        map.sizes[dimension] = *size as u64;
        map.extent[dimension] = list(extent)[dimension] as u32;
        map.steps[dimension] = list(steps)[dimension] as u32;
        if dimension + 1 < sizes.len() {
            map.strides[dimension + 1] = list(strides)[dimension] as u64;
        }
    }
    let covered = interleave == "0" && swizzle.parse::<usize>().unwrap() < Swizzle::ALL.len();
    let at = list(at).into_iter().map(|at| at as i32).collect();
    Case { what, map, at, offset: offset.parse().unwrap(), covered }
}

/// The probe's kernel.
fn probe(case: &Case<'_>) -> Run {
    let rank = case.map.rank;
    let at: Vec<_> = case.at.iter().map(i32::to_string).collect();
    let at = at.join(", ");
    let copy = match case.what {
        "load" => format!(
            "mbarrier.arrive.expect_tx.shared.b64 _, [bar], {};\n\
             cp.async.bulk.tensor.{rank}d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd3, {{{at}}}], [bar];\n\
             W:\nmbarrier.try_wait.parity.shared.b64 %p1, [bar], 0;\n@!%p1 bra W;",
            case.map.box_bytes()
        ),
        what => {
            let copy = match what {
                "store" => format!("cp.async.bulk.tensor.{rank}d.global.shared::cta.bulk_group"),
                op => format!("cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.{op}.bulk_group"),
            };
            format!(
                "{copy} [%rd3, {{{at}}}], [%r1];\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;"
            )
        }
    };
    let text = format!(
        ".visible .entry k(.param .u64 global, .param .u64 shared, .param .align 64 .b8 map[128])\n{{\n\
         .shared .align 1024 .b8 tile[{SHARED}];\n.shared .align 8 .b64 bar;\n.reg .pred %p<2>;\n.reg .b32 %r<5>;\n\
         .reg .b64 %rd<5>;\nld.param.u64 %rd1, [shared];\nmov.u32 %r2, 0;\nmov.u32 %r3, tile;\nmov.u64 %rd2, %rd1;\n\
         IN:\nld.global.u32 %r4, [%rd2];\nst.shared.u32 [%r3], %r4;\nadd.u32 %r3, %r3, 4;\nadd.u64 %rd2, %rd2, 4;\n\
         add.u32 %r2, %r2, 4;\nsetp.lt.u32 %p1, %r2, {SHARED};\n@%p1 bra IN;\nmbarrier.init.shared.b64 [bar], 1;\n\
         fence.proxy.async;\nmov.u32 %r1, tile;\nadd.u32 %r1, %r1, {};\nmov.b64 %rd3, map;\ncvta.param.u64 %rd3, %rd3;\n\
         {copy}\nmov.u32 %r2, 0;\nmov.u32 %r3, tile;\nOUT:\nld.shared.u32 %r4, [%r3];\nst.global.u32 [%rd1], %r4;\n\
         add.u32 %r3, %r3, 4;\nadd.u64 %rd1, %rd1, 4;\nadd.u32 %r2, %r2, 4;\nsetp.lt.u32 %p1, %r2, {SHARED};\n\
         @%p1 bra OUT;\nret;\n}}\n",
        case.offset
    );
    let tile = if case.what == "load" { vec![0xee; SHARED] } else { pattern(SHARED, 77) };
    module(&text)
        .threads(1)
        .buffer("global", pattern(GLOBAL, 0))
        .buffer("shared", tile)
        .tensor(0, case.map.clone())
}

fn load(line: &str) -> Ran {
    probe(&case(line)).ok()
}

#[test]
fn boxes_come_row_by_row_and_what_is_outside_is_filled() {
    let ran = load("load f16 6,4 16 16,2 1,1 0 0 1 -8,3 128");
    let (global, shared) = (&ran.outcome.buffers[0], &ran.outcome.buffers[1]);
    let nan = [0xf7, 0x7f];
    let inside = &global[16384 + 48..16384 + 60];
    let row = [&nan.repeat(8)[..], inside, &nan.repeat(2)[..]].concat();
    let expected = [vec![0xee; 128], row, nan.repeat(16), vec![0xee; SHARED - 192]].concat();
    assert!(shared == &expected, "{:x?}", &shared[120..200]);
}

#[test]
fn swizzled_chunks_lie_by_their_address() {
    let ran = load("load u8 128,8 128 128,8 1,1 3 0 0 0,0 1024");
    let (global, shared) = (&ran.outcome.buffers[0], &ran.outcome.buffers[1]);
    for row in 0..8 {
        for chunk in 0..8 {
            let from = 16384 + row * 128 + chunk * 16;
            let to = 1024 + row * 128 + (chunk ^ row) * 16;
            assert_eq!(shared[to..to + 16], global[from..from + 16]);
        }
    }
}

#[test]
fn boxes_are_stored_and_reduced_where_they_are_in_the_tensor() {
    let before = pattern(GLOBAL, 0);
    let tile = pattern(SHARED, 77);
    let word = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    for what in ["store", "add"] {
        let ran = load(&format!("{what} u32 6,4 32 4,2 1,1 0 0 0 4,3 0"));
        let mut expected = before.clone();
        for column in 0..2 {
            let (to, from) = (16384 + 96 + (4 + column) * 4, column * 4);
            let old = if what == "add" { word(&before, to) } else { 0 };
            expected[to..to + 4].copy_from_slice(&old.wrapping_add(word(&tile, from)).to_le_bytes());
        }
        assert!(ran.outcome.buffers[0] == expected, "{what}");
    }
}

#[test]
fn what_may_not_be_is_a_fault() {
    let fault = |line: &str| match probe(&case(line)).run().outcome.stop {
        Some(Stop::Fault(fault)) => (fault.kind, fault.detail),
        other => panic!("{other:?}"),
    };
    let (kind, detail) = fault("load u32 8,4 32 4,2 1,1 0 0 0 0,0 16");
    assert_eq!(
        (kind, &*detail),
        (FaultKind::Misaligned, "asynchronous copy to 0x10, which is no multiple of 128")
    );
    let (kind, detail) = fault("xor f32 8,4 32 4,2 1,1 0 0 0 0,0 0");
    assert_eq!((kind, &*detail), (FaultKind::Device, "no such reduction of elements of f32"));
    let (kind, detail) = fault("load u32 8,4 32 4,2 1,1 0 0 0 1,0 0");
    assert_eq!(kind, FaultKind::Device);
    assert_eq!(detail, "a box that begins 4 bytes into its rows, which is no multiple of 16");
    let (_, detail) = fault("store u32 8,4 32 4,2 1,1 0 0 0 0,-1 0");
    assert_eq!(detail, "a box to store that begins at a negative coordinate");
    let (kind, _) = fault("load u32 8,65536 32 4,2 1,1 0 0 0 0,65000 0");
    assert_eq!(kind, FaultKind::OutOfBounds);
}

#[test]
fn a_map_of_other_bytes_is_not_understood() {
    let text = ".visible .entry k(.param .align 64 .b8 map[128])\n{\n.shared .align 128 .b8 tile[128];\n.reg .b64 %rd<2>;\n\
        mov.b64 %rd1, map;\ncvta.param.u64 %rd1, %rd1;\n\
        cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%rd1, {0}], [tile];\nret;\n}\n";
    let ran = module(text).value(&[7; 128]).run();
    assert!(matches!(ran.outcome.stop, Some(Stop::Unsupported { .. })), "{:?}", ran.outcome.stop);
}

/// FNV-1a, as the probe has it.
fn checksum(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

/// What the emulator says of a case, in the words of the probe.
fn answer(case: &Case<'_>) -> String {
    if case.map.check().is_err() {
        return "encode 1".into();
    }
    let outcome = probe(case).run().outcome;
    match outcome.stop {
        Some(Stop::Fault(fault)) => match fault.kind {
            FaultKind::Misaligned => "error 716 cudaErrorMisalignedAddress".into(),
            FaultKind::OutOfBounds => "error 700 cudaErrorIllegalAddress".into(),
            FaultKind::Device => "error 715 cudaErrorIllegalInstruction".into(),
            _ => fault.detail,
        },
        Some(stop) => format!("{stop:?}"),
        None => {
            let [global, shared] = &outcome.buffers[..] else { panic!() };
            let (shared, global) = (checksum(shared), checksum(global));
            format!("done 1 bytes {} shared {shared:016x} global {global:016x}", case.map.box_bytes())
        }
    }
}

#[test]
fn the_emulator_does_what_an_h200_did() {
    let results = include_str!("../../../../tools/gpu/tensor_check/results.txt");
    let mut wrong = Vec::new();
    let mut covered = 0;
    for line in results.lines() {
        let (text, told) = line.split_once(" -> ").unwrap();
        let told = told.split(" barrier ").next().unwrap();
        let case = case(text);
        // It writes the rest of a chunk of 16 bytes beyond the end of a row, which the PTX ISA says is left alone.
        let row = case.map.sizes[0] * u64::from(case.map.ty.bytes());
        let is_cut = case.what != "load" && !row.is_multiple_of(16);
        if !case.covered || is_cut {
            continue;
        }
        covered += 1;
        let said = answer(&case);
        if said != told {
            wrong.push(format!("{text}\n    GPU {told}\n    emu {said}"));
        }
    }
    assert!(covered > 300, "{covered}");
    assert!(wrong.is_empty(), "{} of {covered} differ\n{}", wrong.len(), wrong.join("\n"));
}
