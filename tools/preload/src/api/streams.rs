//! Streams, events and functions of the host in streams.

use std::ffi::c_void;

use super::{calls, put, put_if};
use crate::code::{Answer, Code};
use crate::graph::Work;
use crate::process::{thread, within};
use crate::state::Captured;

/// A function of the host that a stream calls.
type HostFunction = Option<extern "C" fn(*mut c_void)>;
type Callback = Option<extern "C" fn(u64, u32, *mut c_void)>;

/// For `CU_EVENT_RECORD_EXTERNAL` and `CU_EVENT_WAIT_EXTERNAL`, which make nodes of a graph.
const EXTERNAL: u32 = 1;

/// Says whether a stream is captured, and by which number.
fn capture_info(cx: super::Cx, stream: u64, status: *mut u32, id: *mut u64) -> Answer<Option<Captured>> {
    let captured = within(|driver| {
        let stream = cx.stream(driver, stream)?;
        Ok(driver.captured(stream))
    })?;
    put(status, captured.is_some().into())?;
    if let Some(captured) = &captured {
        put_if(id, captured.id);
    }
    Ok(captured)
}

calls! {
    fn cuStreamCreate(cx; stream: *mut u64, flags: u32) as [] per_thread [] {
        put(stream, within(|driver| Ok(driver.create_stream(flags, 0, thread())))?)
    }

    fn cuStreamCreateWithPriority(cx; stream: *mut u64, flags: u32, priority: i32) as [] per_thread [] {
        put(stream, within(|driver| Ok(driver.create_stream(flags, priority, thread())))?)
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
        put(device, within(|driver| driver.device_of(driver.context(thread())?))?.cast_signed())
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
            driver.not_captured(stream)?;
            driver.watch.synchronize(stream);
            Ok(())
        })
    }

    fn cuStreamQuery(cx; stream: u64) as [] per_thread [cuStreamQuery_ptsz] {
        within(|driver| {
            let stream = cx.stream(driver, stream)?;
            driver.not_captured(stream)?;
            driver.watch.synchronize(stream);
            Ok(())
        })
    }

    fn cuStreamWaitEvent(cx; stream: u64, event: u64, flags: u32) as [] per_thread [cuStreamWaitEvent_ptsz] {
        within(|driver| {
            let stream = cx.stream(driver, stream)?;
            if flags & EXTERNAL != 0 && driver.is_capturing(stream) {
                return driver.capture(stream, Work::Wait(event));
            }
            driver.wait(stream, event)
        })
    }

    fn cuStreamIsCapturing(cx; stream: u64, status: *mut u32) as [] per_thread [cuStreamIsCapturing_ptsz] {
        let capturing = within(|driver| {
            let stream = cx.stream(driver, stream)?;
            Ok(driver.is_capturing(stream))
        })?;
        put(status, capturing.into())
    }

    fn cuStreamBeginCapture(cx; stream: u64) as [] per_thread [cuStreamBeginCapture_ptsz] {
        within(|driver| {
            let stream = cx.stream(driver, stream)?;
            driver.begin_capture(stream)
        })
    }

    fn cuStreamBeginCapture_v2(cx; stream: u64, mode: u32) as [] per_thread [cuStreamBeginCapture_v2_ptsz] {
        let _ = mode;
        within(|driver| {
            let stream = cx.stream(driver, stream)?;
            driver.begin_capture(stream)
        })
    }

    fn cuStreamEndCapture(cx; stream: u64, graph: *mut u64) as [] per_thread [cuStreamEndCapture_ptsz] {
        let captured = within(|driver| {
            let stream = cx.stream(driver, stream)?;
            driver.end_capture(stream)
        });
        put_if(graph, captured.unwrap_or(0));
        captured.map(|_| ())
    }

    fn cuStreamGetCaptureInfo(
        cx;
        stream: u64,
        status: *mut u32,
        id: *mut u64,
    ) as [] per_thread [cuStreamGetCaptureInfo_ptsz] {
        capture_info(cx, stream, status, id).map(|_| ())
    }

    fn cuStreamGetCaptureInfo_v2(
        cx;
        stream: u64,
        status: *mut u32,
        id: *mut u64,
        graph: *mut u64,
        nodes: *mut usize,
        count: *mut usize,
    ) as [] per_thread [cuStreamGetCaptureInfo_v2_ptsz] {
        if let Some(captured) = capture_info(cx, stream, status, id)? {
            put_if(graph, captured.graph);
            put_if(nodes, captured.after.0);
            put_if(count, captured.after.1);
        }
        Ok(())
    }

    fn cuStreamGetCaptureInfo_v3(
        cx;
        stream: u64,
        status: *mut u32,
        id: *mut u64,
        graph: *mut u64,
        nodes: *mut usize,
        edges: *mut usize,
        count: *mut usize,
    ) as [] per_thread [cuStreamGetCaptureInfo_v3_ptsz] {
        if let Some(captured) = capture_info(cx, stream, status, id)? {
            put_if(graph, captured.graph);
            put_if(nodes, captured.after.0);
            put_if(edges, 0);
            put_if(count, captured.after.1);
        }
        Ok(())
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
        let captured = within(|driver| {
            let stream = cx.stream(driver, stream)?;
            if !driver.is_capturing(stream) {
                return Ok(false);
            }
            driver.capture(stream, Work::Host(function, data as u64)).map(|()| true)
        })?;
        if !captured {
            // All that comes before it in the stream has run. No lock is held meanwhile.
            function(data);
        }
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
            driver.record(event, stream)
        })
    }

    fn cuEventRecordWithFlags(
        cx;
        event: u64,
        stream: u64,
        flags: u32,
    ) as [] per_thread [cuEventRecordWithFlags_ptsz] {
        within(|driver| {
            let stream = cx.stream(driver, stream)?;
            if flags & EXTERNAL != 0 && driver.is_capturing(stream) {
                return driver.capture(stream, Work::Record(event));
            }
            driver.record(event, stream)
        })
    }

    fn cuEventQuery(cx; event: u64) as [] per_thread [] {
        within(|driver| {
            driver.event_not_captured(event)?;
            driver.watch.wait_for(event)
        })
    }

    fn cuEventSynchronize(cx; event: u64) as [] per_thread [] {
        within(|driver| {
            driver.event_not_captured(event)?;
            driver.watch.wait_for(event)
        })
    }

    fn cuEventElapsedTime(cx; time: *mut f32, start: u64, end: u64) as [cuEventElapsedTime_v2] per_thread [] {
        put(time, within(|driver| driver.watch.elapsed(start, end))?)
    }
}
