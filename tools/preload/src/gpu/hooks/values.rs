//! Values in memory that streams write and wait for.

use super::{Cx, done, hooks, skipped};
use crate::api::get;
use crate::gpu::driver;
use crate::watch::{BatchStep, Step, Value};

/// What a stream was given, unless it made a node of a graph.
fn steps(code: u32, cx: Cx, stream: u64, steps: impl IntoIterator<Item = Step>) -> u32 {
    if driver::is_capturing(cx.handle(stream)) {
        return skipped(code, cx);
    }
    done(code, |gpu| {
        let stream = cx.watched(gpu, stream);
        gpu.watch.values(cx.call, stream, steps);
    })
}

hooks! {
    fn cuStreamWaitValue32(
        cx, real;
        stream: u64,
        address: u64,
        value: u32,
        flags: u32,
    ) as [cuStreamWaitValue32 cuStreamWaitValue32_v2] per_thread [cuStreamWaitValue32_ptsz cuStreamWaitValue32_v2_ptsz] {
        steps(real(stream, address, value, flags), cx, stream, [Step::wait(Value::word(address, value), flags)])
    }

    fn cuStreamWaitValue64(
        cx, real;
        stream: u64,
        address: u64,
        value: u64,
        flags: u32,
    ) as [cuStreamWaitValue64 cuStreamWaitValue64_v2] per_thread [cuStreamWaitValue64_ptsz cuStreamWaitValue64_v2_ptsz] {
        steps(real(stream, address, value, flags), cx, stream, [Step::wait(Value::long(address, value), flags)])
    }

    fn cuStreamWriteValue32(
        cx, real;
        stream: u64,
        address: u64,
        value: u32,
        flags: u32,
    ) as [cuStreamWriteValue32 cuStreamWriteValue32_v2] per_thread [cuStreamWriteValue32_ptsz cuStreamWriteValue32_v2_ptsz] {
        steps(real(stream, address, value, flags), cx, stream, [Step::write(Value::word(address, value), flags)])
    }

    fn cuStreamWriteValue64(
        cx, real;
        stream: u64,
        address: u64,
        value: u64,
        flags: u32,
    ) as [cuStreamWriteValue64 cuStreamWriteValue64_v2] per_thread [cuStreamWriteValue64_ptsz cuStreamWriteValue64_v2_ptsz] {
        steps(real(stream, address, value, flags), cx, stream, [Step::write(Value::long(address, value), flags)])
    }

    fn cuStreamBatchMemOp(
        cx, real;
        stream: u64,
        count: u32,
        list: *const BatchStep,
        flags: u32,
    ) as [cuStreamBatchMemOp cuStreamBatchMemOp_v2] per_thread [cuStreamBatchMemOp_ptsz cuStreamBatchMemOp_v2_ptsz] {
        let all = (0..count as usize).map_while(|at| get(list.wrapping_add(at)).ok());
        steps(real(stream, count, list, flags), cx, stream, all.map(|one| one.step()))
    }
}
