//! Arrays, textures and surfaces. Arrays lie in the device's memory at the addresses that they have for the engine.

use ptxrace::backend::{Owner, Region};
use ptxrace::session::exec::log::Line;
use rustc_hash::FxHashMap;

use super::Driver;
use crate::api::Described;
use crate::code::{Answer, Code};
use crate::watch::{ArrayDescription, Reading};

/// All that the program has made.
#[derive(Default)]
pub(super) struct Made {
    arrays: FxHashMap<u64, ArrayDescription>,
    objects: FxHashMap<(bool, u64), Described>,
}

impl Driver {
    /// An array of zeros.
    pub(crate) fn create_array(&mut self, call: &'static str, description: &ArrayDescription) -> Answer<u64> {
        if description.extent[0] == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let handle = self.handle();
        let shape = self.watch.textures.add_array(handle, description).ok_or(Code::NOT_SUPPORTED)?;
        let (name, bytes) = (self.watch.name(call), shape.bytes().unwrap_or(0));
        if bytes > self.free_bytes() || !self.device.map(name.clone(), shape.base, bytes as usize) {
            self.watch.textures.remove_array(handle);
            return Err(Code::OUT_OF_MEMORY);
        }
        let element = shape.texel.bytes().into();
        self.watch.say(&Line::Region(Region {
            name,
            base: shape.base,
            bytes,
            element,
            owner: Owner::Device,
        }));
        self.textures.arrays.insert(handle, *description);
        Ok(handle)
    }

    pub(crate) fn destroy_array(&mut self, handle: u64) -> Answer {
        self.textures.arrays.remove(&handle).ok_or(Code::INVALID_HANDLE)?;
        if let Some(shape) = self.watch.textures.remove_array(handle) {
            self.device.free(shape.base);
        }
        Ok(())
    }

    pub(crate) fn array(&self, handle: u64) -> Answer<ArrayDescription> {
        self.textures.arrays.get(&handle).copied().ok_or(Code::INVALID_HANDLE)
    }

    /// A texture, or a surface where nothing is said of reading.
    pub(crate) fn create_object(&mut self, described: Described, reading: Option<&Reading>) -> Answer<u64> {
        let resource = described.resource.read()?;
        let handle = self.handle();
        self.watch.textures.add_object(handle, &resource, reading);
        self.textures.objects.insert((reading.is_none(), handle), described);
        Ok(handle)
    }

    pub(crate) fn destroy_object(&mut self, surface: bool, handle: u64) -> Answer {
        self.watch.textures.remove_object(surface, handle);
        self.textures.objects.remove(&(surface, handle)).map(drop).ok_or(Code::INVALID_VALUE)
    }

    pub(crate) fn described(&self, surface: bool, handle: u64) -> Answer<Described> {
        self.textures.objects.get(&(surface, handle)).copied().ok_or(Code::INVALID_VALUE)
    }
}
