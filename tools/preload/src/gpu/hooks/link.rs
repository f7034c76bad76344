//! The driver's linker: what goes in is noted, so that what comes out can be led back to its PTX.

use std::ffi::{CStr, c_char, c_void};
use std::path::PathBuf;

use super::{done, hooks};
use crate::api::{get, text};

/// Kinds of input.
const PTX: u32 = 1;
const FATBIN: u32 = 2;

/// Bytes that the program has given.
fn bytes(data: *const c_void, bytes: usize) -> Vec<u8> {
    if data.is_null() {
        return Vec::new();
    }
    // SAFETY: the program has said that so many bytes may be read there, and the driver has just done so.
    unsafe { std::slice::from_raw_parts(data.cast::<u8>(), bytes) }.to_vec()
}

hooks! {
    fn cuLinkCreate(
        cx, real;
        count: u32,
        options: *mut u32,
        values: *mut *mut c_void,
        state: *mut u64,
    ) as [cuLinkCreate cuLinkCreate_v2] per_thread [] {
        done(real(count, options, values, state), |gpu| {
            if let Ok(state) = get(state) {
                gpu.link_begins(state);
            }
        })
    }

    fn cuLinkAddData(
        cx, real;
        state: u64,
        kind: u32,
        data: *mut c_void,
        size: usize,
        name: *const c_char,
        count: u32,
        options: *mut u32,
        values: *mut *mut c_void,
    ) as [cuLinkAddData cuLinkAddData_v2] per_thread [] {
        done(real(state, kind, data, size, name, count, options, values), |gpu| {
            let name = if name.is_null() { None } else { text(name).ok() };
            let name = PathBuf::from(name.unwrap_or("cuLinkAddData"));
            // A text may end before its size does, or be given none that is right.
            let read = match kind {
                // SAFETY: the driver has read a text here that ends with a zero byte.
                PTX if !data.is_null() => unsafe { CStr::from_ptr(data.cast()) }.to_bytes().to_vec(),
                FATBIN => bytes(data, size),
                _ => Vec::new(),
            };
            gpu.link_adds(state, read, name);
        })
    }

    fn cuLinkAddFile(
        cx, real;
        state: u64,
        kind: u32,
        path: *const c_char,
        count: u32,
        options: *mut u32,
        values: *mut *mut c_void,
    ) as [cuLinkAddFile cuLinkAddFile_v2] per_thread [] {
        done(real(state, kind, path, count, options, values), |gpu| {
            let path = text(path).unwrap_or_default();
            let read = if matches!(kind, PTX | FATBIN) { std::fs::read(path).ok() } else { None };
            gpu.link_adds(state, read.unwrap_or_default(), path.into());
        })
    }

    fn cuLinkComplete(
        cx, real;
        state: u64,
        image: *mut *mut c_void,
        size: *mut usize,
    ) as [cuLinkComplete] per_thread [] {
        done(real(state, image, size), |gpu| {
            if let (Ok(image), Ok(size)) = (get(image), get(size)) {
                gpu.link_ends(state, &bytes(image, size));
            }
        })
    }

    fn cuLinkDestroy(cx, real; state: u64) as [cuLinkDestroy] per_thread [] {
        done(real(state), |gpu| gpu.link_is_gone(state))
    }
}
