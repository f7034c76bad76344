//! NVRTC: whoever takes the machine code of a program could as well take its PTX.

use std::ffi::CStr;

use ptxrace::session::exec::provenance;

use super::real::Library;
use super::{Call, bytes, note, symbols};

/// `NVRTC_ERROR_INTERNAL_ERROR`
const FAILED: u32 = 11;

symbols! { Library::Nvrtc, super::get_cubin, FAILED; nvrtcGetCUBIN }

/// `nvrtcGetCUBIN(program, to)`
fn get_cubin(call: &Call) -> u32 {
    let code = call.real(FAILED);
    let [program, to, ..] = call.arguments;
    if code == 0
        && let Some(size) = size(call, c"nvrtcGetCUBINSize", program)
        && let Some(text) = ptx(call, program)
    {
        let name = provenance::by_kernel(&text).unwrap_or_else(|| "nvrtc.ptx".into());
        note(&bytes(to, size), &[(name, text)]);
    }
    code
}

fn size(call: &Call, symbol: &CStr, program: usize) -> Option<usize> {
    let mut size = 0_usize;
    let code = call.other(symbol, [program, &raw mut size as usize, 0, 0, 0], FAILED);
    (code == 0).then_some(size)
}

/// There is none where the program was compiled for a link.
fn ptx(call: &Call, program: usize) -> Option<String> {
    let mut text = vec![0_u8; size(call, c"nvrtcGetPTXSize", program)?];
    let code = call.other(c"nvrtcGetPTX", [program, text.as_mut_ptr() as usize, 0, 0, 0], FAILED);
    let text = CStr::from_bytes_until_nul(&text).ok().filter(|_| code == 0)?;
    let text = text.to_str().ok()?;
    text.contains(".version").then(|| text.to_owned())
}
