//! Calls that matter and are not followed: the run says so.

use std::ffi::c_void;

use super::{hooks, skipped};

hooks! {
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
