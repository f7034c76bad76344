//! Arrays, textures and surfaces.

use std::ffi::c_void;

use super::{calls, get, put};
use crate::code::{Answer, Code};
use crate::process::within;
use crate::watch::{ArrayDescription, Reading, Resource};

/// `CUDA_ARRAY_DESCRIPTOR`
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct ArrayDescriptor {
    width: usize,
    height: usize,
    format: u32,
    channels: u32,
}

/// `CUDA_ARRAY3D_DESCRIPTOR`
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Array3DDescriptor {
    width: usize,
    height: usize,
    depth: usize,
    format: u32,
    channels: u32,
    flags: u32,
}

impl ArrayDescriptor {
    pub(crate) fn read(self) -> ArrayDescription {
        let Self { width, height, format, channels } = self;
        ArrayDescription { extent: [width, height, 0], format, channels, flags: 0 }
    }
}

impl Array3DDescriptor {
    pub(crate) fn read(self) -> ArrayDescription {
        let Self { width, height, depth, format, channels, flags } = self;
        ArrayDescription { extent: [width, height, depth], format, channels, flags }
    }
}

/// `CUDA_RESOURCE_DESC`
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct ResourceDesc {
    kind: u32,
    /// A handle or an address, then what else there is of that kind.
    at: u64,
    format: u32,
    channels: u32,
    /// Bytes, or texels of a row.
    extent: usize,
    height: usize,
    pitch: usize,
    reserved: [u64; 11],
    flags: u32,
}

impl ResourceDesc {
    pub(crate) fn read(&self) -> Answer<Resource> {
        let Self { kind, at, format, channels, extent, height, pitch, .. } = *self;
        Ok(match kind {
            0 => Resource::Array(at),
            1 => Resource::Mipmap,
            2 => Resource::Linear { address: at, format, channels, bytes: extent },
            3 => Resource::Rows { address: at, format, channels, width: extent, height, pitch },
            _ => return Err(Code::INVALID_VALUE),
        })
    }
}

/// `CUDA_TEXTURE_DESC`
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct TextureDesc {
    edges: [u32; 3],
    filter: u32,
    flags: u32,
    anisotropy: u32,
    mipmap_filter: u32,
    mipmap: [f32; 3],
    border: [f32; 4],
    reserved: [i32; 12],
}

impl TextureDesc {
    /// With a view, if there is one.
    pub(crate) fn read(&self, view: *const c_void) -> Reading {
        let Self { edges, filter, flags, border, .. } = *self;
        Reading { edges, filter, flags, border, view: !view.is_null() }
    }
}

/// As the program made it.
#[derive(Clone, Copy)]
pub(crate) struct Described {
    pub(crate) resource: ResourceDesc,
    /// Of textures.
    pub(crate) texture: Option<TextureDesc>,
}

fn create_array(cx: super::Cx, handle: *mut u64, description: &ArrayDescription) -> Answer {
    put(handle, within(|driver| driver.create_array(cx.call, description))?)
}

fn described(surface: bool, handle: u64) -> Answer<Described> {
    within(|driver| driver.described(surface, handle))
}

calls! {
    fn cuArrayCreate(cx; handle: *mut u64, descriptor: *const ArrayDescriptor) as [cuArrayCreate_v2] per_thread [] {
        create_array(cx, handle, &get(descriptor)?.read())
    }

    fn cuArray3DCreate(cx; handle: *mut u64, descriptor: *const Array3DDescriptor) as [cuArray3DCreate_v2] per_thread [] {
        create_array(cx, handle, &get(descriptor)?.read())
    }

    fn cuArrayDestroy(cx; handle: u64) as [] per_thread [] {
        within(|driver| driver.destroy_array(handle))
    }

    fn cuArrayGetDescriptor(cx; descriptor: *mut ArrayDescriptor, handle: u64) as [cuArrayGetDescriptor_v2] per_thread [] {
        let ArrayDescription { extent: [width, height, _], format, channels, .. } =
            within(|driver| driver.array(handle))?;
        put(descriptor, ArrayDescriptor { width, height, format, channels })
    }

    fn cuArray3DGetDescriptor(cx; descriptor: *mut Array3DDescriptor, handle: u64) as [cuArray3DGetDescriptor_v2] per_thread [] {
        let ArrayDescription { extent: [width, height, depth], format, channels, flags } =
            within(|driver| driver.array(handle))?;
        put(descriptor, Array3DDescriptor { width, height, depth, format, channels, flags })
    }

    fn cuTexObjectCreate(
        cx;
        handle: *mut u64,
        resource: *const ResourceDesc,
        texture: *const TextureDesc,
        view: *const c_void
    ) as [] per_thread [] {
        let (resource, texture) = (get(resource)?, get(texture)?);
        let reading = texture.read(view);
        let texture = Some(texture);
        put(handle, within(|driver| driver.create_object(Described { resource, texture }, Some(&reading)))?)
    }

    fn cuTexObjectDestroy(cx; handle: u64) as [] per_thread [] {
        within(|driver| driver.destroy_object(false, handle))
    }

    fn cuTexObjectGetResourceDesc(cx; to: *mut ResourceDesc, handle: u64) as [] per_thread [] {
        put(to, described(false, handle)?.resource)
    }

    fn cuTexObjectGetTextureDesc(cx; to: *mut TextureDesc, handle: u64) as [] per_thread [] {
        put(to, described(false, handle)?.texture.ok_or(Code::INVALID_VALUE)?)
    }

    fn cuSurfObjectCreate(cx; handle: *mut u64, resource: *const ResourceDesc) as [] per_thread [] {
        let resource = get(resource)?;
        put(handle, within(|driver| driver.create_object(Described { resource, texture: None }, None))?)
    }

    fn cuSurfObjectDestroy(cx; handle: u64) as [] per_thread [] {
        within(|driver| driver.destroy_object(true, handle))
    }

    fn cuSurfObjectGetResourceDesc(cx; to: *mut ResourceDesc, handle: u64) as [] per_thread [] {
        put(to, described(true, handle)?.resource)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_are_as_large_as_the_drivers() {
        assert_eq!(size_of::<ArrayDescriptor>(), 24);
        assert_eq!(size_of::<Array3DDescriptor>(), 40);
        assert_eq!(size_of::<ResourceDesc>(), 144);
        assert_eq!(size_of::<TextureDesc>(), 104);
    }
}
