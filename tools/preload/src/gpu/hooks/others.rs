//! Calls that matter and are not followed: the run says so.

use std::ffi::c_void;

use super::{hooks, skipped};

hooks! {
    fn cuStreamWaitValue32(
        cx, real;
        stream: u64,
        address: u64,
        value: u32,
        flags: u32,
    ) as [cuStreamWaitValue32 cuStreamWaitValue32_v2] per_thread [cuStreamWaitValue32_ptsz cuStreamWaitValue32_v2_ptsz] {
        skipped(real(stream, address, value, flags), cx)
    }

    fn cuStreamWaitValue64(
        cx, real;
        stream: u64,
        address: u64,
        value: u64,
        flags: u32,
    ) as [cuStreamWaitValue64 cuStreamWaitValue64_v2] per_thread [cuStreamWaitValue64_ptsz cuStreamWaitValue64_v2_ptsz] {
        skipped(real(stream, address, value, flags), cx)
    }

    fn cuStreamWriteValue32(
        cx, real;
        stream: u64,
        address: u64,
        value: u32,
        flags: u32,
    ) as [cuStreamWriteValue32 cuStreamWriteValue32_v2] per_thread [cuStreamWriteValue32_ptsz cuStreamWriteValue32_v2_ptsz] {
        skipped(real(stream, address, value, flags), cx)
    }

    fn cuStreamWriteValue64(
        cx, real;
        stream: u64,
        address: u64,
        value: u64,
        flags: u32,
    ) as [cuStreamWriteValue64 cuStreamWriteValue64_v2] per_thread [cuStreamWriteValue64_ptsz cuStreamWriteValue64_v2_ptsz] {
        skipped(real(stream, address, value, flags), cx)
    }

    fn cuStreamBatchMemOp(
        cx, real;
        stream: u64,
        count: u32,
        list: *mut c_void,
        flags: u32,
    ) as [cuStreamBatchMemOp cuStreamBatchMemOp_v2] per_thread [cuStreamBatchMemOp_ptsz cuStreamBatchMemOp_v2_ptsz] {
        skipped(real(stream, count, list, flags), cx)
    }

    fn cuCtxRecordEvent(cx, real; context: u64, event: u64) as [cuCtxRecordEvent] per_thread [] {
        skipped(real(context, event), cx)
    }

    fn cuCtxWaitEvent(cx, real; context: u64, event: u64) as [cuCtxWaitEvent] per_thread [] {
        skipped(real(context, event), cx)
    }

    fn cuGreenCtxRecordEvent(cx, real; context: u64, event: u64) as [cuGreenCtxRecordEvent] per_thread [] {
        skipped(real(context, event), cx)
    }

    fn cuGreenCtxWaitEvent(cx, real; context: u64, event: u64) as [cuGreenCtxWaitEvent] per_thread [] {
        skipped(real(context, event), cx)
    }

    fn cuSignalExternalSemaphoresAsync(
        cx, real;
        list: *const c_void,
        parameters: *const c_void,
        count: u32,
        stream: u64,
    ) as [cuSignalExternalSemaphoresAsync] per_thread [cuSignalExternalSemaphoresAsync_ptsz] {
        skipped(real(list, parameters, count, stream), cx)
    }

    fn cuWaitExternalSemaphoresAsync(
        cx, real;
        list: *const c_void,
        parameters: *const c_void,
        count: u32,
        stream: u64,
    ) as [cuWaitExternalSemaphoresAsync] per_thread [cuWaitExternalSemaphoresAsync_ptsz] {
        skipped(real(list, parameters, count, stream), cx)
    }
}
