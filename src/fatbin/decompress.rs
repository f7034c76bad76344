//! Decompression of images, bounded by the size that their headers state.

use std::io::Read;

use ruzstd::decoding::StreamingDecoder;

use super::fault::Problem;

/// LZ4 makes at most so many bytes out of one.
const LZ4_RATIO: u64 = 255;
/// Space set aside before anything has been decompressed; a header may lie.
const FIRST_SPACE: usize = 1 << 20;

/// How an image is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compression {
    /// As it is.
    None,
    /// An LZ4 block without a frame.
    Lz4,
    /// A Zstandard frame.
    Zstd,
    /// In a way that is not known, or no longer in use.
    Unknown,
}

impl Compression {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "raw",
            Self::Lz4 => "LZ4",
            Self::Zstd => "zstd",
            Self::Unknown => "unknown",
        }
    }

    /// Decompresses what should become `size` bytes.
    pub(super) fn decompress(self, stored: &[u8], size: u64, limit: usize) -> Result<Vec<u8>, Problem> {
        let space = usize::try_from(size).ok().filter(|size| *size <= limit);
        let Some(space) = space else { return Err(Problem::TooLarge { size, limit }) };
        let failed = |why: String| Problem::Compression { method: self.name(), why };
        let wrong = |found: usize, more| Problem::WrongSize { expected: size, found: found as u64, more };
        match self {
            Self::None => Ok(stored.to_vec()),
            Self::Lz4 => {
                if size > (stored.len() as u64).saturating_mul(LZ4_RATIO) {
                    return Err(failed(format!("{} bytes can't become {size}", stored.len())));
                }
                let mut out = vec![0; space];
                let found = lz4_flex::block::decompress_into(stored, &mut out)
                    .map_err(|error| failed(error.to_string()))?;
                if found == space { Ok(out) } else { Err(wrong(found, false)) }
            }
            Self::Zstd => {
                let decoder = StreamingDecoder::new(stored).map_err(|error| failed(error.to_string()))?;
                let mut out = Vec::with_capacity(space.min(FIRST_SPACE));
                // One more byte than it should have, to notice that it has more.
                decoder
                    .take(size.saturating_add(1))
                    .read_to_end(&mut out)
                    .map_err(|error| failed(error.to_string()))?;
                match out.len() {
                    found if found == space => Ok(out),
                    found if found > space => Err(wrong(space, true)),
                    found => Err(wrong(found, false)),
                }
            }
            Self::Unknown => Err(failed("only LZ4 and zstd are known".into())),
        }
    }
}
