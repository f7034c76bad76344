//! Arrays, textures and surfaces of the device.

use std::ptr;

use cudarc::driver::sys as cu;

use super::{Context, DeviceMemory, Result, check};
use crate::backend::image::{ArrayShape, Channel, Edge, Sampling, Texel};

/// Arrays can be written by surfaces.
const SURFACE_LDST: u32 = 2;
/// The last axis of an array counts layers.
const LAYERED: u32 = 1;
/// Integers are read as they are.
const READ_AS_INTEGER: u32 = 1;
/// Coordinates go from 0 to 1.
const NORMALIZED_COORDINATES: u32 = 2;

fn format(channel: Channel) -> cu::CUarray_format {
    use cu::CUarray_format as Format;
    match channel {
        Channel::U8 => Format::CU_AD_FORMAT_UNSIGNED_INT8,
        Channel::U16 => Format::CU_AD_FORMAT_UNSIGNED_INT16,
        Channel::U32 => Format::CU_AD_FORMAT_UNSIGNED_INT32,
        Channel::S8 => Format::CU_AD_FORMAT_SIGNED_INT8,
        Channel::S16 => Format::CU_AD_FORMAT_SIGNED_INT16,
        Channel::S32 => Format::CU_AD_FORMAT_SIGNED_INT32,
        Channel::F16 => Format::CU_AD_FORMAT_HALF,
        Channel::F32 => Format::CU_AD_FORMAT_FLOAT,
    }
}

/// An array.
#[derive(Debug)]
pub(in super::super) struct Array<'c> {
    context: &'c Context,
    raw: cu::CUarray,
    shape: ArrayShape,
}

impl Context {
    /// An array, not initialised.
    pub(in super::super) fn array(&self, shape: ArrayShape) -> Result<Array<'_>> {
        let [width, height, depth] = shape.extent.map(|n| n as usize);
        let descriptor = cu::CUDA_ARRAY3D_DESCRIPTOR {
            Width: width,
            Height: height,
            Depth: depth,
            Format: format(shape.texel.channel),
            NumChannels: shape.texel.channels.into(),
            Flags: SURFACE_LDST | if shape.layered { LAYERED } else { 0 },
        };
        let mut raw = ptr::null_mut();
        // SAFETY: writes one handle to a valid place, and reads a whole descriptor.
        check("cuArray3DCreate", unsafe { cu::cuArray3DCreate_v2(&raw mut raw, &raw const descriptor) })?;
        Ok(Array { context: self, raw, shape })
    }
}

impl Array<'_> {
    fn copy(&self) -> cu::CUDA_MEMCPY3D {
        let [_, height, depth] = self.shape.size().map(|n| n as usize);
        let pitch = self.shape.pitch() as usize;
        cu::CUDA_MEMCPY3D {
            srcXInBytes: 0,
            srcY: 0,
            srcZ: 0,
            srcLOD: 0,
            srcMemoryType: cu::CUmemorytype::CU_MEMORYTYPE_ARRAY,
            srcHost: ptr::null(),
            srcDevice: 0,
            srcArray: self.raw,
            reserved0: ptr::null_mut(),
            srcPitch: pitch,
            srcHeight: height,
            dstXInBytes: 0,
            dstY: 0,
            dstZ: 0,
            dstLOD: 0,
            dstMemoryType: cu::CUmemorytype::CU_MEMORYTYPE_ARRAY,
            dstHost: ptr::null_mut(),
            dstDevice: 0,
            dstArray: self.raw,
            reserved1: ptr::null_mut(),
            dstPitch: pitch,
            dstHeight: height,
            WidthInBytes: pitch,
            Height: height,
            Depth: depth,
        }
    }

    /// Copies all of it from device memory of that size.
    pub(in super::super) fn fill(&self, from: &DeviceMemory<'_>) -> Result<()> {
        let kind = cu::CUmemorytype::CU_MEMORYTYPE_DEVICE;
        self.run(cu::CUDA_MEMCPY3D {
            srcMemoryType: kind,
            srcArray: ptr::null_mut(),
            srcDevice: from.address,
            ..self.copy()
        })
    }

    /// Copies all of it to device memory of that size.
    pub(in super::super) fn fetch(&self, to: &DeviceMemory<'_>) -> Result<()> {
        let kind = cu::CUmemorytype::CU_MEMORYTYPE_DEVICE;
        self.run(cu::CUDA_MEMCPY3D {
            dstMemoryType: kind,
            dstArray: ptr::null_mut(),
            dstDevice: to.address,
            ..self.copy()
        })
    }

    fn run(&self, copy: cu::CUDA_MEMCPY3D) -> Result<()> {
        // SAFETY: the caller's memory is as large as the array; a wrong range is an error of the driver.
        check("cuMemcpy3D", unsafe { cu::cuMemcpy3D_v2(&raw const copy) })
    }
}

impl Drop for Array<'_> {
    fn drop(&mut self) {
        if !self.context.abandoned.get() {
            // SAFETY: made by `array` and destroyed once.
            let _ = unsafe { cu::cuArrayDestroy(self.raw) };
        }
    }
}

/// The memory of a texture or a surface.
#[derive(Clone, Copy, Debug)]
pub(in super::super) enum Memory<'m, 'c> {
    /// All of it.
    Linear(&'m DeviceMemory<'c>),
    /// Rows: texels and rows, bytes from row to row.
    Rows(&'m DeviceMemory<'c>, [u32; 2], u64),
    /// An array.
    Array(&'m Array<'c>),
}

/// A texture or a surface.
#[derive(Debug)]
pub(in super::super) struct Object<'c> {
    context: &'c Context,
    surface: bool,
    handle: u64,
}

impl Context {
    /// A texture, or a surface where there is no sampling.
    pub(in super::super) fn object(
        &self,
        memory: Memory<'_, '_>,
        texel: Texel,
        sampling: Option<&Sampling>,
    ) -> Result<Object<'_>> {
        use cu::CUresourcetype as Kind;
        let (format, channels) = (format(texel.channel), u32::from(texel.channels));
        let mut resource = cu::CUDA_RESOURCE_DESC {
            resType: Kind::CU_RESOURCE_TYPE_ARRAY,
            res: cu::CUDA_RESOURCE_DESC_st__bindgen_ty_1 {
                reserved: cu::CUDA_RESOURCE_DESC_st__bindgen_ty_1__bindgen_ty_5 { reserved: [0; 32] },
            },
            flags: 0,
        };
        match memory {
            Memory::Linear(memory) => {
                resource.resType = Kind::CU_RESOURCE_TYPE_LINEAR;
                resource.res.linear = cu::CUDA_RESOURCE_DESC_st__bindgen_ty_1__bindgen_ty_3 {
                    devPtr: memory.address,
                    format,
                    numChannels: channels,
                    sizeInBytes: memory.bytes,
                };
            }
            Memory::Rows(memory, [width, height], pitch) => {
                resource.resType = Kind::CU_RESOURCE_TYPE_PITCH2D;
                resource.res.pitch2D = cu::CUDA_RESOURCE_DESC_st__bindgen_ty_1__bindgen_ty_4 {
                    devPtr: memory.address,
                    format,
                    numChannels: channels,
                    width: width as usize,
                    height: height as usize,
                    pitchInBytes: pitch as usize,
                };
            }
            Memory::Array(array) => {
                resource.res.array =
                    cu::CUDA_RESOURCE_DESC_st__bindgen_ty_1__bindgen_ty_1 { hArray: array.raw };
            }
        }
        let mut handle = 0;
        let Some(sampling) = sampling else {
            // SAFETY: writes one handle to a valid place, and reads a whole descriptor.
            check("cuSurfObjectCreate", unsafe {
                cu::cuSurfObjectCreate(&raw mut handle, &raw const resource)
            })?;
            return Ok(Object { context: self, surface: true, handle });
        };
        let texture = described(sampling, texel);
        // SAFETY: as above; a view is not needed.
        check("cuTexObjectCreate", unsafe {
            cu::cuTexObjectCreate(&raw mut handle, &raw const resource, &raw const texture, ptr::null())
        })?;
        Ok(Object { context: self, surface: false, handle })
    }
}

fn described(sampling: &Sampling, texel: Texel) -> cu::CUDA_TEXTURE_DESC {
    let edge = |edge| match edge {
        Edge::Wrap => cu::CUaddress_mode::CU_TR_ADDRESS_MODE_WRAP,
        Edge::Clamp => cu::CUaddress_mode::CU_TR_ADDRESS_MODE_CLAMP,
        Edge::Mirror => cu::CUaddress_mode::CU_TR_ADDRESS_MODE_MIRROR,
        Edge::Border => cu::CUaddress_mode::CU_TR_ADDRESS_MODE_BORDER,
    };
    let point = cu::CUfilter_mode::CU_TR_FILTER_MODE_POINT;
    let filter = if sampling.linear { cu::CUfilter_mode::CU_TR_FILTER_MODE_LINEAR } else { point };
    let integers = !sampling.floats && !texel.channel.is_float();
    cu::CUDA_TEXTURE_DESC {
        addressMode: sampling.edges.map(edge),
        filterMode: filter,
        flags: if integers { READ_AS_INTEGER } else { 0 }
            | if sampling.normalized { NORMALIZED_COORDINATES } else { 0 },
        maxAnisotropy: 0,
        mipmapFilterMode: point,
        mipmapLevelBias: 0.0,
        minMipmapLevelClamp: 0.0,
        maxMipmapLevelClamp: 0.0,
        borderColor: [0.0; 4],
        reserved: [0; 12],
    }
}

impl Object<'_> {
    /// Its handle.
    pub(in super::super) fn handle(&self) -> u64 {
        self.handle
    }
}

impl Drop for Object<'_> {
    fn drop(&mut self) {
        if self.context.abandoned.get() {
            return;
        }
        // SAFETY: made by `object` and destroyed once.
        let _ = unsafe {
            if self.surface {
                cu::cuSurfObjectDestroy(self.handle)
            } else {
                cu::cuTexObjectDestroy(self.handle)
            }
        };
    }
}
