//! What a program gives to be loaded: PTX as text, fatbins and the structures that point to them, machine code.

use std::path::PathBuf;

use ptxrace::fatbin::{self, Device, ElfSize, IMAGE_LIMIT, Image, Pick, WRAPPER_BYTES, Wrapper};

use crate::code::{Answer, Code};

/// Memory of the process itself.
pub(crate) trait HostMemory: Send {
    /// Reads bytes that the program says are there.
    fn read(&self, address: u64, to: &mut [u8]);
    /// Writes bytes where the program says that it may be done.
    fn write(&mut self, address: u64, from: &[u8]);
    /// The text that begins here, without the zero byte that ends it.
    fn text(&self, address: u64) -> Vec<u8>;
    /// New memory, filled with zeros.
    fn allocate(&mut self, bytes: usize) -> Option<u64>;
    /// Gives it back.
    fn release(&mut self, address: u64, bytes: usize);
}

/// The PTX of an image, or why there is none.
#[derive(Debug)]
pub(crate) enum Found {
    /// Text, and what reports call it. Several are linked to one.
    Ptx(Vec<(PathBuf, String)>),
    /// Machine code of this name, and its bytes if it was given as such.
    Opaque(String, Option<Vec<u8>>),
}

/// What lies at an address: PTX that ends with a zero byte, a fatbin, or the structure that points to one. `name` is what it
/// is called where it has no name of its own.
pub(crate) fn find(host: &dyn HostMemory, address: u64, name: PathBuf, device: Device) -> Answer<Found> {
    let mut head = [0; WRAPPER_BYTES];
    // No image is shorter than four bytes; a text may be shorter than a wrapper.
    host.read(address, &mut head[..4]);
    let bytes = match head[..4] {
        [0xb1, 0x43, 0x62, 0x46] => {
            host.read(address, &mut head);
            let wrapper = Wrapper::parse(&head).map_err(|_| Code::INVALID_IMAGE)?;
            if let Some(list) = wrapper.prelinked {
                return linked(host, list, &name, device);
            }
            container(host, wrapper.data)?
        }
        [0x50, 0xed, 0x55, 0xba] => container(host, address)?,
        [0x7f, b'E', b'L', b'F'] => {
            return Ok(Found::Opaque(name.to_string_lossy().into_owned(), cubin(host, address)));
        }
        _ => host.text(address),
    };
    file(&bytes, name, device)
}

/// The containers of which a device link made one, by the addresses in a list that ends with zero.
fn linked(host: &dyn HostMemory, list: u64, name: &std::path::Path, device: Device) -> Answer<Found> {
    let mut all = Vec::new();
    for at in (list..).step_by(8) {
        let mut entry = [0; 8];
        host.read(at, &mut entry);
        let address = u64::from_le_bytes(entry);
        if address == 0 {
            break;
        }
        match file(&container(host, address)?, name.to_owned(), device)? {
            Found::Ptx(texts) => all.extend(texts),
            opaque @ Found::Opaque(..) => return Ok(opaque),
        }
    }
    if all.is_empty() {
        Ok(Found::Opaque(name.to_string_lossy().into_owned(), None))
    } else {
        Ok(Found::Ptx(all))
    }
}

/// The bytes of an ELF file in memory.
fn cubin(host: &dyn HostMemory, address: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    loop {
        match fatbin::elf_size(&bytes).ok()? {
            ElfSize::Exactly(size) if size <= bytes.len() as u64 => return Some(bytes),
            ElfSize::Exactly(size) | ElfSize::AtLeast(size) if size <= IMAGE_LIMIT as u64 => {
                bytes.resize(usize::try_from(size).ok()?, 0);
                host.read(address, &mut bytes);
            }
            _ => return None,
        }
    }
}

/// The bytes of a fatbin in memory.
fn container(host: &dyn HostMemory, address: u64) -> Answer<Vec<u8>> {
    let mut head = [0; fatbin::HEADER_BYTES];
    host.read(address, &mut head);
    let size = fatbin::container_bytes(&head).map_err(|_| Code::INVALID_IMAGE)?;
    let mut bytes = vec![0; usize::try_from(size).map_err(|_| Code::INVALID_IMAGE)?];
    host.read(address, &mut bytes);
    Ok(bytes)
}

/// The same of what stands in a file, or was read from memory.
pub(crate) fn file(bytes: &[u8], name: PathBuf, device: Device) -> Answer<Found> {
    let shown = || name.to_string_lossy().into_owned();
    if bytes.starts_with(b"\x7fELF") {
        return Ok(Found::Opaque(shown(), Some(bytes.to_vec())));
    }
    if !bytes.starts_with(b"\x50\xed\x55\xba") {
        let text = bytes.split(|byte| *byte == 0).next().unwrap_or(bytes);
        let text = String::from_utf8(text.to_vec()).map_err(|_| Code::INVALID_IMAGE)?;
        return Ok(Found::Ptx(vec![(name, text)]));
    }
    let contents = fatbin::read(bytes);
    let container = contents.containers.first().ok_or(Code::INVALID_IMAGE)?;
    match fatbin::pick(&container.images, device) {
        Pick::Ptx(image) => ptx(image, name),
        Pick::Opaque(image) if image.name.is_empty() => Ok(Found::Opaque(shown(), None)),
        Pick::Opaque(image) => Ok(Found::Opaque(image.name.clone().into_owned(), None)),
        Pick::Nothing => Err(Code::NO_BINARY_FOR_GPU),
    }
}

fn ptx(image: &Image<'_>, name: PathBuf) -> Answer<Found> {
    let text = image.text(IMAGE_LIMIT).map_err(|_| Code::INVALID_IMAGE)?.into_owned();
    let path = match image.name.as_ref() {
        "" => name,
        own => PathBuf::from(format!("{own} ({})", image.arch)),
    };
    Ok(Found::Ptx(vec![(path, text)]))
}
