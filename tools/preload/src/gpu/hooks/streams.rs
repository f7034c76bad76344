//! Streams, events, and functions of the host in streams.

use std::ffi::c_void;

use ptxrace::engine::Moment;

use super::{Cx, done, hooks, in_order};
use crate::api::get;
use crate::gpu::{REACHED, driver};

/// A function of the host that a stream calls.
type HostFunction = Option<extern "C" fn(*mut c_void)>;
type Callback = Option<extern "C" fn(u64, u32, *mut c_void)>;

/// One that is called by way of `arrive`, with its data and what comes before it.
struct Wrapped<F> {
    function: F,
    data: *mut c_void,
    before: Moment,
}

/// The stream has come to a function of the host, which may tell others so.
fn arrive<F>(data: *mut c_void) -> (F, *mut c_void) {
    // SAFETY: made of a box by `wrap`, and given to the driver, which calls back once.
    let Wrapped { function, data, before } = *unsafe { Box::from_raw(data.cast::<Wrapped<F>>()) };
    REACHED.lock().push(before);
    (function, data)
}

extern "C" fn host_function(data: *mut c_void) {
    let (function, data) = arrive::<extern "C" fn(*mut c_void)>(data);
    function(data);
}

extern "C" fn callback(stream: u64, status: u32, data: *mut c_void) {
    let (function, data) = arrive::<extern "C" fn(u64, u32, *mut c_void)>(data);
    function(stream, status, data);
}

/// What the driver is given as data; `None` where nothing is watched.
fn wrap<F>(cx: Cx, stream: u64, function: F, data: *mut c_void) -> Option<*mut c_void> {
    let handle = cx.handle(stream);
    // In a graph it is called many times.
    if crate::gpu::given_up() || driver::is_capturing(handle) {
        return None;
    }
    let before = crate::process::watching(|gpu| {
        gpu.catch_up();
        let stream = cx.watched(gpu, stream);
        gpu.watch.moment(stream)
    })?;
    Some(Box::into_raw(Box::new(Wrapped { function, data, before })).cast())
}

/// Takes back what the driver did not take.
fn unwrap<F>(code: u32, data: *mut c_void) -> u32 {
    if code != 0 {
        // SAFETY: made of a box by `wrap`; the driver has refused it and will not call back.
        drop(unsafe { Box::from_raw(data.cast::<Wrapped<F>>()) });
    }
    code
}

/// Gives the driver a function of the host, before which this comes, by `give`.
pub(in crate::gpu) fn call_later(
    function: extern "C" fn(*mut c_void),
    data: *mut c_void,
    before: Moment,
    give: impl FnOnce(extern "C" fn(*mut c_void), *mut c_void) -> u32,
) -> u32 {
    let wrapped: *mut c_void = Box::into_raw(Box::new(Wrapped { function, data, before })).cast();
    unwrap::<extern "C" fn(*mut c_void)>(give(host_function, wrapped), wrapped)
}

fn waited(code: u32, cx: Cx, stream: u64) -> u32 {
    done(code, |gpu| {
        let stream = cx.watched(gpu, stream);
        gpu.watch.synchronize(stream);
    })
}

hooks! {
    fn cuStreamCreate(cx, real; stream: *mut u64, flags: u32) as [cuStreamCreate] per_thread [] {
        done(real(stream, flags), |gpu| {
            if let Ok(stream) = get(stream) {
                gpu.watch.create_stream(stream, flags, 0, driver::current());
            }
        })
    }

    fn cuStreamCreateWithPriority(
        cx, real;
        stream: *mut u64,
        flags: u32,
        priority: i32,
    ) as [cuStreamCreateWithPriority] per_thread [] {
        done(real(stream, flags, priority), |gpu| {
            if let Ok(stream) = get(stream) {
                gpu.watch.create_stream(stream, flags, priority, driver::current());
            }
        })
    }

    fn cuGreenCtxStreamCreate(
        cx, real;
        stream: *mut u64,
        context: u64,
        flags: u32,
        priority: i32,
    ) as [cuGreenCtxStreamCreate] per_thread [] {
        done(real(stream, context, flags, priority), |gpu| {
            if let Ok(stream) = get(stream) {
                gpu.watch.create_stream(stream, flags, priority, driver::current());
            }
        })
    }

    fn cuStreamDestroy(cx, real; stream: u64) as [cuStreamDestroy cuStreamDestroy_v2] per_thread [] {
        done(real(stream), |gpu| {
            let _ = gpu.watch.destroy_stream(stream);
        })
    }

    fn cuStreamSynchronize(cx, real; stream: u64) as [cuStreamSynchronize] per_thread [cuStreamSynchronize_ptsz] {
        waited(real(stream), cx, stream)
    }

    fn cuStreamQuery(cx, real; stream: u64) as [cuStreamQuery] per_thread [cuStreamQuery_ptsz] {
        waited(real(stream), cx, stream)
    }

    fn cuStreamWaitEvent(
        cx, real;
        stream: u64,
        event: u64,
        flags: u32,
    ) as [cuStreamWaitEvent] per_thread [cuStreamWaitEvent_ptsz] {
        in_order(real(stream, event, flags), cx, stream, |gpu, stream| {
            // An event that is not known has no operation of this process behind it.
            let _ = gpu.watch.wait(stream, event);
        })
    }

    fn cuEventCreate(cx, real; event: *mut u64, flags: u32) as [cuEventCreate] per_thread [] {
        done(real(event, flags), |gpu| {
            if let Ok(event) = get(event) {
                gpu.watch.create_event(event, flags);
            }
        })
    }

    fn cuEventDestroy(cx, real; event: u64) as [cuEventDestroy cuEventDestroy_v2] per_thread [] {
        done(real(event), |gpu| {
            let _ = gpu.watch.destroy_event(event);
        })
    }

    fn cuEventRecord(cx, real; event: u64, stream: u64) as [cuEventRecord] per_thread [cuEventRecord_ptsz] {
        in_order(real(event, stream), cx, stream, |gpu, stream| {
            let _ = gpu.watch.record(event, stream);
        })
    }

    fn cuEventRecordWithFlags(
        cx, real;
        event: u64,
        stream: u64,
        flags: u32,
    ) as [cuEventRecordWithFlags] per_thread [cuEventRecordWithFlags_ptsz] {
        in_order(real(event, stream, flags), cx, stream, |gpu, stream| {
            let _ = gpu.watch.record(event, stream);
        })
    }

    fn cuEventQuery(cx, real; event: u64) as [cuEventQuery] per_thread [] {
        done(real(event), |gpu| {
            let _ = gpu.watch.wait_for(event);
        })
    }

    fn cuEventSynchronize(cx, real; event: u64) as [cuEventSynchronize] per_thread [] {
        done(real(event), |gpu| {
            let _ = gpu.watch.wait_for(event);
        })
    }

    fn cuLaunchHostFunc(
        cx, real;
        stream: u64,
        function: HostFunction,
        data: *mut c_void,
    ) as [cuLaunchHostFunc] per_thread [cuLaunchHostFunc_ptsz] {
        let wrapped = function.and_then(|function| wrap(cx, stream, function, data));
        match wrapped {
            Some(wrapped) => unwrap::<extern "C" fn(*mut c_void)>(real(stream, Some(host_function), wrapped), wrapped),
            None => real(stream, function, data),
        }
    }

    fn cuStreamAddCallback(
        cx, real;
        stream: u64,
        function: Callback,
        data: *mut c_void,
        flags: u32,
    ) as [cuStreamAddCallback] per_thread [cuStreamAddCallback_ptsz] {
        let wrapped = function.and_then(|function| wrap(cx, stream, function, data));
        match wrapped {
            Some(wrapped) => unwrap::<extern "C" fn(u64, u32, *mut c_void)>(
                real(stream, Some(callback), wrapped, flags),
                wrapped,
            ),
            None => real(stream, function, data, flags),
        }
    }
}
