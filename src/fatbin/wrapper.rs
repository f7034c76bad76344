//! The structure that registers a fatbin with the CUDA runtime, in section `.nvFatBinSegment` of a program. The driver's
//! load functions are given its address.

use super::bytes::{u32_at, u64_at};
use super::fault::{Fault, Problem};

/// First word of a wrapper.
const MAGIC: u32 = 0x4662_43B1;
/// Bytes of a wrapper.
pub const WRAPPER_BYTES: usize = 24;

/// A wrapper. Its pointers are those of the process it lies in; nothing is read through them here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wrapper {
    /// Address of the container.
    pub data: u64,
    /// Address of a list of further containers that ends with zero: of the relocatable images that a linked one (version 2)
    /// was made of. The list is filled at run time, so nothing bounds it but its end.
    pub prelinked: Option<u64>,
}

impl Wrapper {
    /// Reads a wrapper.
    pub fn parse(bytes: &[u8]) -> Result<Self, Fault> {
        let fields = (u32_at(bytes, 0), u32_at(bytes, 4), u64_at(bytes, 8), u64_at(bytes, 16));
        let (Some(magic), Some(version), Some(data), Some(extra)) = fields else {
            let (needed, left) = (WRAPPER_BYTES as u64, bytes.len() as u64);
            return Err(Problem::Truncated { what: "a fatbin wrapper", needed, left }.at(0));
        };
        let unexpected = |expected, found: u32| Problem::Unexpected { expected, found: u64::from(found) };
        if magic != MAGIC {
            return Err(unexpected("the magic number of a fatbin wrapper, 0x466243b1", magic).at(0));
        }
        match version {
            1 => Ok(Self { data, prelinked: None }),
            2 => Ok(Self { data, prelinked: (extra != 0).then_some(extra) }),
            _ => Err(unexpected("a fatbin wrapper of version 1 or 2", version).at(4)),
        }
    }
}
