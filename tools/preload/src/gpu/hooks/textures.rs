//! Arrays, textures and surfaces.

use std::ffi::c_void;

use ptxrace::backend::{Owner, Region};
use ptxrace::session::exec::log::Line;

use super::{done, hooks};
use crate::api::{Array3DDescriptor, ArrayDescriptor, ResourceDesc, TextureDesc, get};
use crate::watch::{ArrayDescription, Reading};

fn array(code: u32, call: &'static str, handle: *mut u64, described: Option<ArrayDescription>) -> u32 {
    done(code, |gpu| {
        let (Ok(handle), Some(described)) = (get(handle), described) else { return };
        if let Some(shape) = gpu.watch.textures.add_array(handle, &described) {
            let (name, bytes) = (gpu.watch.name(call), shape.bytes().unwrap_or(0));
            let element = shape.texel.bytes().into();
            gpu.watch.say(&Line::Region(Region {
                name,
                base: shape.base,
                bytes,
                element,
                owner: Owner::Device,
            }));
        }
    })
}

fn object(code: u32, handle: *mut u64, resource: *const ResourceDesc, reading: Option<Reading>) -> u32 {
    done(code, |gpu| {
        let resource = get(resource).and_then(|resource| resource.read());
        if let (Ok(handle), Ok(resource)) = (get(handle), resource) {
            gpu.watch.textures.add_object(handle, &resource, reading.as_ref());
        }
    })
}

hooks! {
    fn cuArrayCreate(cx, real; handle: *mut u64, descriptor: *const ArrayDescriptor) as [cuArrayCreate_v2] per_thread [] {
        let described = get(descriptor).ok().map(ArrayDescriptor::read);
        array(real(handle, descriptor), cx.call, handle, described)
    }

    fn cuArray3DCreate(cx, real; handle: *mut u64, descriptor: *const Array3DDescriptor) as [cuArray3DCreate_v2] per_thread [] runtime [cudaMallocArray = cuArray3DCreate_v2] {
        let described = get(descriptor).ok().map(Array3DDescriptor::read);
        array(real(handle, descriptor), cx.call, handle, described)
    }

    fn cuArrayDestroy(cx, real; handle: u64) as [cuArrayDestroy] per_thread [] {
        done(real(handle), |gpu| {
            gpu.watch.textures.remove_array(handle);
        })
    }

    fn cuTexObjectCreate(
        cx, real;
        handle: *mut u64,
        resource: *const ResourceDesc,
        texture: *const TextureDesc,
        view: *const c_void,
    ) as [cuTexObjectCreate] per_thread [] {
        let reading = get(texture).ok().map(|texture| texture.read(view));
        let code = real(handle, resource, texture, view);
        match reading {
            Some(reading) => object(code, handle, resource, Some(reading)),
            None => code,
        }
    }

    fn cuTexObjectDestroy(cx, real; handle: u64) as [cuTexObjectDestroy] per_thread [] {
        done(real(handle), |gpu| {
            gpu.watch.textures.remove_object(false, handle);
        })
    }

    fn cuSurfObjectCreate(cx, real; handle: *mut u64, resource: *const ResourceDesc) as [cuSurfObjectCreate] per_thread [] {
        object(real(handle, resource), handle, resource, None)
    }

    fn cuSurfObjectDestroy(cx, real; handle: u64) as [cuSurfObjectDestroy] per_thread [] {
        done(real(handle), |gpu| {
            gpu.watch.textures.remove_object(true, handle);
        })
    }
}
