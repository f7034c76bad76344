//! Values in memory that streams write and wait for.

use super::{calls, get};
use crate::process::within;
use crate::watch::{BatchStep, Step, Value};

calls! {
    fn cuStreamWaitValue32(
        cx;
        stream: u64,
        address: u64,
        value: u32,
        flags: u32,
    ) as [cuStreamWaitValue32_v2] per_thread [cuStreamWaitValue32_ptsz cuStreamWaitValue32_v2_ptsz] {
        within(|driver| {
            let stream = cx.stream(driver, stream)?;
            driver.values(cx.call, stream, &[Step::wait(Value::word(address, value), flags)])
        })
    }

    fn cuStreamWaitValue64(
        cx;
        stream: u64,
        address: u64,
        value: u64,
        flags: u32,
    ) as [cuStreamWaitValue64_v2] per_thread [cuStreamWaitValue64_ptsz cuStreamWaitValue64_v2_ptsz] {
        within(|driver| {
            let stream = cx.stream(driver, stream)?;
            driver.values(cx.call, stream, &[Step::wait(Value::long(address, value), flags)])
        })
    }

    fn cuStreamWriteValue32(
        cx;
        stream: u64,
        address: u64,
        value: u32,
        flags: u32,
    ) as [cuStreamWriteValue32_v2] per_thread [cuStreamWriteValue32_ptsz cuStreamWriteValue32_v2_ptsz] {
        within(|driver| {
            let stream = cx.stream(driver, stream)?;
            driver.values(cx.call, stream, &[Step::write(Value::word(address, value), flags)])
        })
    }

    fn cuStreamWriteValue64(
        cx;
        stream: u64,
        address: u64,
        value: u64,
        flags: u32,
    ) as [cuStreamWriteValue64_v2] per_thread [cuStreamWriteValue64_ptsz cuStreamWriteValue64_v2_ptsz] {
        within(|driver| {
            let stream = cx.stream(driver, stream)?;
            driver.values(cx.call, stream, &[Step::write(Value::long(address, value), flags)])
        })
    }

    fn cuStreamBatchMemOp(
        cx;
        stream: u64,
        count: u32,
        list: *const BatchStep,
        flags: u32,
    ) as [cuStreamBatchMemOp_v2] per_thread [cuStreamBatchMemOp_ptsz cuStreamBatchMemOp_v2_ptsz] {
        let _ = flags;
        let steps = (0..count as usize).map(|at| get(list.wrapping_add(at)).map(|one| one.step()));
        let steps = steps.collect::<Result<Vec<_>, _>>()?;
        within(|driver| {
            let stream = cx.stream(driver, stream)?;
            driver.values(cx.call, stream, &steps)
        })
    }
}
