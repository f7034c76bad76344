//! Fatbins: the containers in which CUDA programs and libraries carry their PTX and machine code.
//!
//! A container is a header and one image after another, for several architectures, usually compressed. `read` finds all
//! containers of a file, which may be a `.fatbin` file, an ELF program, library or object, or anything else that has
//! some inside. `Image::text` gives the PTX of an image, `pick` the image that suits a device, `elf_size` the size of a cubin.
//!
//! Files are hostile: every number is checked, what is damaged becomes a `Fault` and the rest is still read, and the size
//! of what is decompressed is bounded. The format is not documented by NVIDIA; what is read here is what nvcc 11 to 13
//! write. Left out: the bodies of cubins and LTO-IR.

mod arch;
mod bytes;
mod container;
mod decompress;
mod elf;
mod fault;
mod file;
mod image;
mod pick;
mod wrapper;

pub use arch::{Arch, BadArch, Device, Suffix};
pub use container::{Container, HEADER_BYTES, container_bytes};
pub use decompress::Compression;
pub use elf::{ElfSize, elf_size};
pub use fault::{Fault, Problem};
pub use file::{Contents, read};
pub use image::{IMAGE_LIMIT, Image, Kind};
pub use pick::{Pick, pick};
pub use wrapper::{WRAPPER_BYTES, Wrapper};
