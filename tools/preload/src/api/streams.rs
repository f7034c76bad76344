//! Streams, events and functions of the host in streams.

use std::ffi::c_void;

use super::{calls, put, put_if};
use crate::code::Code;
use crate::process::{thread, within};

/// A function of the host that a stream calls.
type HostFunction = Option<extern "C" fn(*mut c_void)>;
type Callback = Option<extern "C" fn(u64, u32, *mut c_void)>;

calls! {
    fn cuStreamCreate(cx; stream: *mut u64, flags: u32) as [] per_thread [] {
        put(stream, within(|driver| Ok(driver.create_stream(flags, 0)))?)
    }

    fn cuStreamCreateWithPriority(cx; stream: *mut u64, flags: u32, priority: i32) as [] per_thread [] {
        put(stream, within(|driver| Ok(driver.create_stream(flags, priority)))?)
    }

    fn cuStreamDestroy(cx; stream: u64) as [cuStreamDestroy_v2] per_thread [] {
        within(|driver| driver.watch.destroy_stream(stream))
    }

    fn cuStreamGetFlags(cx; stream: u64, flags: *mut u32) as [] per_thread [cuStreamGetFlags_ptsz] {
        put(flags, within(|driver| driver.watch.stream_facts(stream))?.0)
    }

    fn cuStreamGetPriority(cx; stream: u64, priority: *mut i32) as [] per_thread [cuStreamGetPriority_ptsz] {
        put(priority, within(|driver| driver.watch.stream_facts(stream))?.1)
    }

    fn cuStreamGetId(cx; stream: u64, id: *mut u64) as [] per_thread [cuStreamGetId_ptsz] {
        put(id, within(|driver| cx.stream(driver, stream))?.0.into())
    }

    fn cuStreamGetDevice(cx; stream: u64, device: *mut i32) as [] per_thread [cuStreamGetDevice_ptsz] {
        let _ = stream;
        put(device, 0)
    }

    fn cuStreamGetCtx(cx; stream: u64, context: *mut u64) as [] per_thread [cuStreamGetCtx_ptsz] {
        let _ = stream;
        put(context, within(|driver| driver.context(thread()))?)
    }

    fn cuStreamGetCtx_v2(
        cx;
        stream: u64,
        context: *mut u64,
        green: *mut u64,
    ) as [] per_thread [cuStreamGetCtx_v2_ptsz] {
        let _ = stream;
        put_if(green, 0);
        put(context, within(|driver| driver.context(thread()))?)
    }

    fn cuStreamSynchronize(cx; stream: u64) as [] per_thread [cuStreamSynchronize_ptsz] {
        within(|driver| {
            let stream = cx.stream(driver, stream)?;
            driver.watch.synchronize(stream);
            Ok(())
        })
    }

    fn cuStreamQuery(cx; stream: u64) as [] per_thread [cuStreamQuery_ptsz] {
        within(|driver| {
            let stream = cx.stream(driver, stream)?;
            driver.watch.synchronize(stream);
            Ok(())
        })
    }

    fn cuStreamWaitEvent(cx; stream: u64, event: u64, flags: u32) as [] per_thread [cuStreamWaitEvent_ptsz] {
        let _ = flags;
        within(|driver| {
            let stream = cx.stream(driver, stream)?;
            driver.watch.wait(stream, event)
        })
    }

    fn cuStreamIsCapturing(cx; stream: u64, status: *mut u32) as [] per_thread [cuStreamIsCapturing_ptsz] {
        let _ = stream;
        put(status, 0)
    }

    fn cuStreamGetCaptureInfo(
        cx;
        stream: u64,
        status: *mut u32,
    ) as [cuStreamGetCaptureInfo_v2 cuStreamGetCaptureInfo_v3] per_thread [cuStreamGetCaptureInfo_ptsz cuStreamGetCaptureInfo_v2_ptsz cuStreamGetCaptureInfo_v3_ptsz] {
        let _ = stream;
        put(status, 0)
    }

    fn cuThreadExchangeStreamCaptureMode(cx; mode: *mut u32) as [] per_thread [] {
        let _ = mode;
        Ok(())
    }

    fn cuLaunchHostFunc(
        cx;
        stream: u64,
        function: HostFunction,
        data: *mut c_void,
    ) as [] per_thread [cuLaunchHostFunc_ptsz] {
        let function = function.ok_or(Code::INVALID_VALUE)?;
        within(|driver| cx.stream(driver, stream).map(|_| ()))?;
        // All that comes before it in the stream has run. No lock is held meanwhile.
        function(data);
        Ok(())
    }

    fn cuStreamAddCallback(
        cx;
        stream: u64,
        function: Callback,
        data: *mut c_void,
        flags: u32,
    ) as [] per_thread [cuStreamAddCallback_ptsz] {
        let _ = flags;
        let function = function.ok_or(Code::INVALID_VALUE)?;
        within(|driver| cx.stream(driver, stream).map(|_| ()))?;
        function(stream, 0, data);
        Ok(())
    }

    fn cuEventCreate(cx; event: *mut u64, flags: u32) as [] per_thread [] {
        put(event, within(|driver| Ok(driver.create_event(flags)))?)
    }

    fn cuEventDestroy(cx; event: u64) as [cuEventDestroy_v2] per_thread [] {
        within(|driver| driver.watch.destroy_event(event))
    }

    fn cuEventRecord(cx; event: u64, stream: u64) as [] per_thread [cuEventRecord_ptsz] {
        within(|driver| {
            let stream = cx.stream(driver, stream)?;
            driver.watch.record(event, stream)
        })
    }

    fn cuEventRecordWithFlags(
        cx;
        event: u64,
        stream: u64,
        flags: u32,
    ) as [] per_thread [cuEventRecordWithFlags_ptsz] {
        let _ = flags;
        within(|driver| {
            let stream = cx.stream(driver, stream)?;
            driver.watch.record(event, stream)
        })
    }

    fn cuEventQuery(cx; event: u64) as [] per_thread [] {
        within(|driver| driver.watch.wait_for(event))
    }

    fn cuEventSynchronize(cx; event: u64) as [] per_thread [] {
        within(|driver| driver.watch.wait_for(event))
    }

    fn cuEventElapsedTime(cx; time: *mut f32, start: u64, end: u64) as [cuEventElapsedTime_v2] per_thread [] {
        put(time, within(|driver| driver.watch.elapsed(start, end))?)
    }
}
