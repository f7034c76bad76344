//! What programs and drivers tell each other of nodes.

use std::ffi::c_void;

use super::{COPY, FILL, HOST, KERNEL};
use crate::api::{Copy3D, get};
use crate::code::{Answer, Code};
use crate::watch::Rows;

/// `CUDA_KERNEL_NODE_PARAMS_v1`
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct KernelParams {
    pub(crate) function: u64,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) shared: u32,
    /// Address of an array of addresses of arguments, or 0.
    pub(crate) arguments: u64,
    /// Address of a list that names a buffer with all arguments, or 0.
    pub(crate) extra: u64,
}

/// `CUDA_KERNEL_NODE_PARAMS_v2` and `_v3`
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct KernelParamsV2 {
    pub(crate) first: KernelParams,
    /// Instead of the function.
    pub(crate) kernel: u64,
    pub(crate) context: u64,
}

impl KernelParamsV2 {
    /// What is launched.
    pub(crate) fn function(&self) -> u64 {
        if self.first.function == 0 { self.kernel } else { self.first.function }
    }
}

impl From<KernelParams> for KernelParamsV2 {
    fn from(first: KernelParams) -> Self {
        Self { first, kernel: 0, context: 0 }
    }
}

/// `CUDA_MEMSET_NODE_PARAMS`
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Fill {
    pub(crate) to: u64,
    /// Bytes from one row to the next.
    pub(crate) pitch: usize,
    pub(crate) value: u32,
    /// Bytes of an element.
    pub(crate) size: u32,
    /// Elements of a row.
    pub(crate) width: usize,
    pub(crate) height: usize,
}

impl Fill {
    /// Rows that are filled with a pattern, an element.
    pub(crate) fn of_rows(rows: Rows, pattern: &[u8]) -> Self {
        let value = pattern.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte));
        let size = pattern.len().max(1);
        let (width, height) = (rows.width / size, rows.height);
        Self { to: rows.to, pitch: rows.to_pitch as usize, value, size: size as u32, width, height }
    }

    /// What is filled.
    pub(crate) fn rows(&self) -> Rows {
        let width = self.width.saturating_mul(self.size as usize);
        let (to_pitch, from_pitch) = (self.pitch as u64, width as u64);
        Rows { to: self.to, from: 0, width, height: self.height, to_pitch, from_pitch }
    }
}

/// `CUDA_HOST_NODE_PARAMS`
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct HostParams {
    pub(crate) function: Option<extern "C" fn(*mut c_void)>,
    pub(crate) data: u64,
}

/// `CUgraphNodeParams` up to its union.
#[derive(Clone, Copy)]
#[repr(C)]
struct Head {
    kind: u32,
    reserved: [u32; 3],
}

/// `CUgraphNodeParams`, of which only some kinds are read.
pub(crate) struct NodeParams;

/// What it holds.
pub(crate) enum Of {
    Kernel(KernelParamsV2),
    Copy(Copy3D),
    Fill(Fill),
    Host(HostParams),
    /// Something of another kind: where it begins.
    Other(u32, *const c_void),
}

/// `CUDA_MEMCPY_NODE_PARAMS`
#[derive(Clone, Copy)]
#[repr(C)]
struct CopyParams {
    flags: [u32; 2],
    context: u64,
    copy: Copy3D,
}

impl NodeParams {
    /// Reads what a program gives.
    pub(crate) fn read(from: *const c_void) -> Answer<Of> {
        if from.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let head: Head = get(from.cast())?;
        let at = from.wrapping_byte_add(size_of::<Head>());
        Ok(match head.kind {
            KERNEL => Of::Kernel(get(at.cast())?),
            COPY => Of::Copy(get::<CopyParams>(at.cast())?.copy),
            FILL => Of::Fill(get(at.cast())?),
            HOST => Of::Host(get(at.cast())?),
            kind => Of::Other(kind, at),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_are_as_large_as_the_drivers() {
        assert_eq!(size_of::<KernelParams>(), 56);
        assert_eq!(size_of::<KernelParamsV2>(), 72);
        assert_eq!(size_of::<Fill>(), 40);
        assert_eq!(size_of::<HostParams>(), 16);
        assert_eq!(size_of::<Copy3D>(), 200);
        assert_eq!(size_of::<CopyParams>(), 216);
        assert_eq!(size_of::<Head>(), 16);
    }
}
