//! Calls of all kinds.

use super::module;
use crate::backend::FaultKind;

const ENTRY: &str = ".visible .entry k(.param .u64 out) { .reg .b64 %rd<9>; .reg .b32 %r<9>; .reg .pred %p<4>;\n\
                     ld.param.u64 %rd1, [out];\nmov.u32 %r1, %tid.x;\nmad.wide.u32 %rd2, %r1, 4, %rd1;\n";

fn run(functions: &str, body: &str) -> Vec<u32> {
    let text = format!("{functions}\n{ENTRY}{body}\nst.global.u32 [%rd2], %r2;\nret; }}");
    let first = module(&text).words("out", &[0; 32]).ok().words(0);
    for seed in 1..4 {
        assert_eq!(module(&text).words("out", &[0; 32]).seed(seed).ok().words(0), first);
    }
    first
}

#[test]
fn parameters_pass_through_memory_and_registers() {
    let functions = ".func (.param .b32 ret) add3(.param .b32 a, .param .align 8 .b8 s[8]) { .reg .b32 %r<9>;\n\
                     ld.param.u32 %r1, [a];\nld.param.v2.u32 {%r2, %r3}, [s];\nadd.u32 %r1, %r1, %r2;\nadd.u32 %r1, %r1, %r3;\n\
                     st.param.b32 [ret], %r1;\nret; }\n\
                     .func (.reg .b32 ret) twice(.reg .b32 a) { shl.b32 ret, a, 1;\nret; }";
    let body = "{ .param .b32 p0; .param .align 8 .b8 p1[8]; .param .b32 r0;\nst.param.b32 [p0], %r1;\n\
                st.param.b32 [p1], 10;\nst.param.b32 [p1+4], 100;\ncall.uni (r0), add3, (p0, p1);\n\
                ld.param.b32 %r2, [r0]; }\ncall (%r2), twice, (%r2);";
    assert_eq!(run(functions, body), (0..32).map(|t| 2 * (t + 110)).collect::<Vec<u32>>());
}

#[test]
fn recursion_has_its_own_frames_for_each_lane() {
    let functions = ".func (.param .b32 ret) fact(.param .b32 n) { .reg .b32 %r<9>; .reg .pred %p1; .local .b32 kept;\n\
                     ld.param.u32 %r1, [n];\nst.local.u32 [kept], %r1;\nmov.u32 %r3, 1;\nsetp.le.u32 %p1, %r1, 1;\n@%p1 bra E;\n\
                     sub.u32 %r2, %r1, 1;\n{ .param .b32 q; .param .b32 v; st.param.b32 [q], %r2;\n\
                     call.uni (v), fact, (q);\nld.param.b32 %r3, [v]; }\nld.local.u32 %r1, [kept];\nE:\n\
                     mul.lo.u32 %r3, %r3, %r1;\nst.param.b32 [ret], %r3;\nret; }";
    let body = "and.b32 %r3, %r1, 7;\nadd.u32 %r3, %r3, 1;\ncall (%r2), fact, (%r3);";
    let fact = |n: u32| (1..=n).product::<u32>();
    assert_eq!(run(functions, body), (0..32).map(|t| fact(t % 8 + 1)).collect::<Vec<_>>());
}

#[test]
fn functions_are_called_by_address() {
    let functions = ".func (.param .b32 r) f(.param .b32 a) { .reg .b32 %x; ld.param.b32 %x, [a]; add.u32 %x, %x, 1; st.param.b32 [r], %x; ret; }\n\
                     .func (.param .b32 r) g(.param .b32 a) { .reg .b32 %x; ld.param.b32 %x, [a]; mul.lo.u32 %x, %x, 3; st.param.b32 [r], %x; ret; }\n\
                     .global .u64 table[2] = {f, g};";
    let body = "and.b32 %r3, %r1, 1;\nmul.wide.u32 %rd3, %r3, 8;\nmov.u64 %rd4, table;\nadd.s64 %rd3, %rd3, %rd4;\n\
                ld.global.u64 %rd5, [%rd3];\nproto: .callprototype (.param .b32 _) _ (.param .b32 _);\n\
                call (%r2), %rd5, (%r1), proto;";
    assert_eq!(
        run(functions, body),
        (0..32).map(|t| if t % 2 == 0 { t + 1 } else { t * 3 }).collect::<Vec<u32>>()
    );
}

#[test]
fn predicated_calls_leave_the_others_behind() {
    let functions =
        ".func bump(.param .b64 p) { .reg .b64 %q; ld.param.b64 %q, [p]; red.global.add.u32 [%q], 5; ret; }";
    let body =
        "mov.u32 %r2, 0;\nsetp.lt.u32 %p1, %r1, 4;\n@%p1 call bump, (%rd2);\nld.global.u32 %r2, [%rd2];";
    let expected: Vec<u32> = (0..32).map(|t| if t < 4 { 5 } else { 0 }).collect();
    assert_eq!(run(functions, body), expected);
}

#[test]
fn builtins() {
    let functions = ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n\
                     .extern .func (.param .b64 r) malloc(.param .b64 n);\n.extern .func free(.param .b64 p);";
    let body = "call (%r2), vprintf, (%rd1, %rd1);\ncall (%rd3), malloc, (64);\nst.u32 [%rd3+60], %r1;\n\
                ld.u32 %r2, [%rd3+60];\ncall free, (%rd3);";
    assert_eq!(run(functions, body), (0..32).collect::<Vec<u32>>());
    let used = format!(
        "{functions}\n{ENTRY}call (%rd3), malloc, (64);\ncall free, (%rd3);\nld.u32 %r2, [%rd3];\nret; }}"
    );
    assert_eq!(module(&used).words("out", &[0; 32]).run().fault().kind, FaultKind::Freed);
    let failing = format!(
        ".extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);\n\
         .global .align 1 .b8 msg[6] = {{120, 32, 62, 32, 48, 0}};\n\
         {ENTRY}mov.u64 %rd3, msg;\ncall __assertfail, (%rd3, %rd3, 17, %rd3, %rd3);\nret; }}"
    );
    let ran = module(&failing).words("out", &[0; 32]).run();
    assert_eq!(ran.fault().kind, FaultKind::Trap);
    assert_eq!(ran.fault().detail, "the assertion `x > 0` failed (line 17)");
}

#[test]
fn functions_without_a_body_stop_the_launch_when_they_are_called() {
    let functions = ".extern .func elsewhere(.param .b32 a);";
    let text = |call| {
        format!("{functions}\n{ENTRY}setp.eq.u32 %p1, 0, {call};\n@%p1 call elsewhere, (%r1);\nret; }}")
    };
    assert!(module(&text(1)).words("out", &[0; 32]).run().outcome.stop.is_none());
    let ran = module(&text(0)).words("out", &[0; 32]).run();
    assert!(matches!(ran.outcome.stop, Some(crate::backend::Stop::Unsupported { .. })));
}

#[test]
fn the_stack_can_grow_by_hand() {
    let body = "stacksave.u64 %rd3;\nalloca.u64 %rd4, 64, 16;\nst.local.u32 [%rd4+60], %r1;\nld.local.u32 %r2, [%rd4+60];\n\
                stackrestore.u64 %rd3;";
    assert_eq!(run("", body), (0..32).collect::<Vec<u32>>());
}
