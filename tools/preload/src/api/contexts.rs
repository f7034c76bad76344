//! The driver itself, devices and contexts.

use std::ffi::{c_char, c_void};

use super::{calls, put, put_if, put_text, text};
use crate::code::{Answer, Code, name};
use crate::process::{init, thread, with};
use crate::state::{NAME, TOTAL_BYTES, attribute};

/// Of the API that is provided.
const VERSION: i32 = 13000;
/// That of the first device. The last byte counts.
const UUID: [u8; 16] = *b"ptxrace emulator";
/// What `cuDeviceGetP2PAttribute` is asked for: access, and atomics there.
const ACCESS_SUPPORTED: u32 = 2;
const ATOMICS_SUPPORTED: u32 = 3;

/// A device by its number.
fn device(device: i32) -> Answer<u32> {
    with(|driver| driver.numbered(device))
}

fn pci(device: u32) -> String {
    format!("0000:{device:02x}:00.0")
}

calls! {
    fn cuInit(cx; flags: u32) as [] per_thread [] {
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        init()
    }

    fn cuDriverGetVersion(cx; version: *mut i32) as [] per_thread [] {
        put(version, VERSION)
    }

    fn cuGetErrorName(cx; error: u32, to: *mut *const c_char) as [] per_thread [] {
        put(to, name(error).ok_or(Code::INVALID_VALUE)?.as_ptr())
    }

    fn cuGetErrorString(cx; error: u32, to: *mut *const c_char) as [] per_thread [] {
        // The name says as much as a sentence would.
        put(to, name(error).ok_or(Code::INVALID_VALUE)?.as_ptr())
    }

    fn cuGetProcAddress(cx; symbol: *const c_char, address: *mut usize, version: i32, flags: u64) as [] per_thread [] {
        let found = crate::api::symbols::find(text(symbol)?, version, flags);
        put(address, found.unwrap_or(0))?;
        found.map(|_| ()).ok_or(Code::NOT_FOUND)
    }

    fn cuGetProcAddress_v2(
        cx;
        symbol: *const c_char,
        address: *mut usize,
        version: i32,
        flags: u64,
        status: *mut u32,
    ) as [] per_thread [cuGetProcAddress_v2_ptsz] {
        let found = crate::api::symbols::find(text(symbol)?, version, flags);
        put(address, found.unwrap_or(0))?;
        // 1: there is no such symbol.
        put_if(status, u32::from(found.is_none()));
        Ok(())
    }

    fn cuGetExportTable(cx; table: *mut *const c_void, id: *const c_void) as [] per_thread [] {
        let _ = id;
        put(table, std::ptr::null())?;
        Err(Code::NOT_SUPPORTED)
    }

    fn cuModuleGetLoadingMode(cx; mode: *mut u32) as [] per_thread [] {
        // Lazy.
        put(mode, 2)
    }

    fn cuDeviceGet(cx; to: *mut i32, ordinal: i32) as [] per_thread [] {
        device(ordinal)?;
        put(to, ordinal)
    }

    fn cuDeviceGetCount(cx; count: *mut i32) as [] per_thread [] {
        put(count, with(|driver| Ok(driver.devices()))?.cast_signed())
    }

    fn cuDeviceGetName(cx; name: *mut c_char, bytes: i32, of: i32) as [] per_thread [] {
        device(of)?;
        put_text(name, usize::try_from(bytes).unwrap_or(0), NAME)
    }

    fn cuDeviceGetUuid(cx; uuid: *mut [u8; 16], of: i32) as [cuDeviceGetUuid_v2] per_thread [] {
        let mut own = UUID;
        own[15] = own[15].wrapping_add(device(of)? as u8);
        put(uuid, own)
    }

    fn cuDeviceGetLuid(cx; luid: *mut [u8; 8], mask: *mut u32, of: i32) as [] per_thread [] {
        let _ = (luid, mask, of);
        Err(Code::NOT_SUPPORTED)
    }

    fn cuDeviceTotalMem(cx; bytes: *mut usize, of: i32) as [cuDeviceTotalMem_v2] per_thread [] {
        device(of)?;
        put(bytes, TOTAL_BYTES as usize)
    }

    fn cuDeviceGetAttribute(cx; value: *mut i32, which: u32, of: i32) as [] per_thread [] {
        device(of)?;
        put(value, attribute(which))
    }

    fn cuDeviceComputeCapability(cx; major: *mut i32, minor: *mut i32, of: i32) as [] per_thread [] {
        device(of)?;
        put(major, attribute(75))?;
        put(minor, attribute(76))
    }

    fn cuDeviceGetPCIBusId(cx; text: *mut c_char, bytes: i32, of: i32) as [] per_thread [] {
        put_text(text, usize::try_from(bytes).unwrap_or(0), &pci(device(of)?))
    }

    fn cuDeviceGetByPCIBusId(cx; to: *mut i32, pci: *const c_char) as [] per_thread [] {
        let wanted = text(pci)?;
        let devices = with(|driver| Ok(driver.devices()))?;
        let found = (0..devices).find(|device| self::pci(*device) == wanted).ok_or(Code::INVALID_DEVICE)?;
        put(to, found.cast_signed())
    }

    fn cuDeviceCanAccessPeer(cx; can: *mut i32, from: i32, to: i32) as [] per_thread [] {
        put(can, (device(from)? != device(to)?).into())
    }

    fn cuDevicePrimaryCtxRetain(cx; context: *mut u64, of: i32) as [] per_thread [] {
        let of = device(of)?;
        put(context, with(|driver| Ok(driver.retain_primary(of)))?)
    }

    fn cuDevicePrimaryCtxRelease(cx; of: i32) as [cuDevicePrimaryCtxRelease_v2] per_thread [] {
        let of = device(of)?;
        with(|driver| driver.release_primary(of))
    }

    fn cuDevicePrimaryCtxReset(cx; of: i32) as [cuDevicePrimaryCtxReset_v2] per_thread [] {
        device(of)?;
        with(|driver| {
            driver.watch.synchronize_all();
            Ok(())
        })
    }

    fn cuDevicePrimaryCtxSetFlags(cx; of: i32, flags: u32) as [cuDevicePrimaryCtxSetFlags_v2] per_thread [] {
        let _ = flags;
        device(of).map(|_| ())
    }

    fn cuDevicePrimaryCtxGetState(cx; of: i32, flags: *mut u32, active: *mut i32) as [] per_thread [] {
        let of = device(of)?;
        put(flags, 0)?;
        put(active, with(|driver| Ok(driver.primary_is_active(of)))?.into())
    }

    fn cuCtxCreate(cx; context: *mut u64, flags: u32, of: i32) as [cuCtxCreate_v2] per_thread [] {
        let _ = flags;
        let of = device(of)?;
        put(context, with(|driver| Ok(driver.create_context(thread(), of)))?)
    }

    fn cuCtxCreate_v3(
        cx;
        context: *mut u64,
        affinity: *const c_void,
        count: i32,
        flags: u32,
        of: i32,
    ) as [] per_thread [] {
        let _ = (affinity, count, flags);
        let of = device(of)?;
        put(context, with(|driver| Ok(driver.create_context(thread(), of)))?)
    }

    fn cuCtxCreate_v4(cx; context: *mut u64, params: *const c_void, flags: u32, of: i32) as [] per_thread [] {
        let _ = (params, flags);
        let of = device(of)?;
        put(context, with(|driver| Ok(driver.create_context(thread(), of)))?)
    }

    fn cuCtxDestroy(cx; context: u64) as [cuCtxDestroy_v2] per_thread [] {
        with(|driver| driver.destroy_context(context))
    }

    fn cuCtxPushCurrent(cx; context: u64) as [cuCtxPushCurrent_v2] per_thread [] {
        with(|driver| driver.push_context(thread(), context))
    }

    fn cuCtxPopCurrent(cx; context: *mut u64) as [cuCtxPopCurrent_v2] per_thread [] {
        let popped = with(|driver| driver.pop_context(thread()))?;
        put_if(context, popped);
        Ok(())
    }

    fn cuCtxSetCurrent(cx; context: u64) as [] per_thread [] {
        with(|driver| driver.set_context(thread(), context))
    }

    fn cuCtxGetCurrent(cx; context: *mut u64) as [] per_thread [] {
        put(context, with(|driver| Ok(driver.context(thread()).unwrap_or(0)))?)
    }

    fn cuCtxGetDevice(cx; to: *mut i32) as [cuCtxGetDevice_v2] per_thread [] {
        put(to, with(|driver| driver.device_of(driver.context(thread())?))?.cast_signed())
    }

    fn cuCtxGetFlags(cx; flags: *mut u32) as [] per_thread [] {
        with(|driver| driver.context(thread()))?;
        put(flags, 0)
    }

    fn cuCtxSetFlags(cx; flags: u32) as [] per_thread [] {
        let _ = flags;
        with(|driver| driver.context(thread()).map(|_| ()))
    }

    fn cuCtxGetId(cx; context: u64, id: *mut u64) as [] per_thread [] {
        put(id, context)
    }

    fn cuCtxGetApiVersion(cx; context: u64, version: *mut u32) as [] per_thread [] {
        let _ = context;
        put(version, VERSION.cast_unsigned())
    }

    fn cuCtxSynchronize(cx;) as [cuCtxSynchronize_v2] per_thread [] {
        with(|driver| {
            let context = driver.context(thread())?;
            driver.watch.synchronize_context(context);
            driver.ready(thread())
        })
    }

    fn cuCtxSetLimit(cx; limit: u32, value: usize) as [] per_thread [] {
        let _ = (limit, value);
        with(|driver| driver.context(thread()).map(|_| ()))
    }

    fn cuCtxGetLimit(cx; value: *mut usize, limit: u32) as [] per_thread [] {
        let _ = limit;
        put(value, 8 << 20)
    }

    fn cuCtxSetCacheConfig(cx; config: u32) as [] per_thread [] {
        let _ = config;
        Ok(())
    }

    fn cuCtxGetCacheConfig(cx; config: *mut u32) as [] per_thread [] {
        put(config, 0)
    }

    fn cuCtxGetSharedMemConfig(cx; config: *mut u32) as [] per_thread [] {
        put(config, 1)
    }

    fn cuCtxSetSharedMemConfig(cx; config: u32) as [] per_thread [] {
        let _ = config;
        Ok(())
    }

    fn cuCtxGetStreamPriorityRange(cx; least: *mut i32, greatest: *mut i32) as [] per_thread [] {
        put_if(least, 0);
        put_if(greatest, -5);
        Ok(())
    }

    fn cuCtxEnablePeerAccess(cx; peer: u64, flags: u32) as [] per_thread [] {
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        with(|driver| driver.enable_peer(thread(), peer))
    }

    fn cuCtxDisablePeerAccess(cx; peer: u64) as [] per_thread [] {
        with(|driver| driver.disable_peer(thread(), peer))
    }

    fn cuProfilerStart(cx;) as [] per_thread [] {
        Ok(())
    }

    fn cuProfilerStop(cx;) as [] per_thread [] {
        Ok(())
    }

    fn cuDeviceGetDefaultMemPool(cx; pool: *mut u64, of: i32) as [cuDeviceGetMemPool] per_thread [] {
        device(of)?;
        put(pool, crate::api::memory::POOL)
    }

    fn cuDeviceGetP2PAttribute(cx; value: *mut i32, which: u32, from: i32, to: i32) as [] per_thread [] {
        let others = device(from)? != device(to)?;
        put(value, (others && matches!(which, ACCESS_SUPPORTED | ATOMICS_SUPPORTED)).into())
    }
}
