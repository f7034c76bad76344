//! What can be wrong with a fatbin.

/// A place of a file that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at byte {offset:#x}: {problem}")]
pub struct Fault {
    /// Offset in the bytes that were given.
    pub offset: usize,
    /// What is wrong there.
    pub problem: Problem,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// A field has another value than one that is known.
    #[error("expected {expected}, found {found:#x}")]
    Unexpected {
        /// What should be there.
        expected: &'static str,
        /// What is there.
        found: u64,
    },
    /// Something does not fit into the bytes that there are.
    #[error("{what} should have {needed} bytes, but there are only {left}")]
    Truncated {
        /// What it is.
        what: &'static str,
        /// Its size.
        needed: u64,
        /// The bytes that there are.
        left: u64,
    },
    /// An image would be larger than the caller allows.
    #[error("an image of {size} bytes is larger than the limit of {limit}")]
    TooLarge {
        /// Its size when decompressed.
        size: u64,
        /// The limit.
        limit: usize,
    },
    /// An image does not have the size that its header states.
    #[error("an image of {expected} bytes decompresses to {}{found}", if *.more { "more than " } else { "" })]
    WrongSize {
        /// The size stated.
        expected: u64,
        /// The size found.
        found: u64,
        /// Whether decompression was stopped there.
        more: bool,
    },
    /// An image cannot be decompressed.
    #[error("{method} data cannot be decompressed: {why}")]
    Compression {
        /// How it is compressed.
        method: &'static str,
        /// What the decompressor said.
        why: String,
    },
    /// PTX that is not text.
    #[error("PTX is text, but its byte {at} is not valid UTF-8")]
    NotText {
        /// Offset of the first bad byte in the decompressed image.
        at: usize,
    },
    /// The sections of an ELF file cannot be told.
    #[error("the sections of the ELF file can't be read: {why}")]
    Elf {
        /// What is wrong with it.
        why: String,
    },
}

impl Problem {
    /// The problem at an offset.
    pub(super) fn at(self, offset: usize) -> Fault {
        Fault { offset, problem: self }
    }
}
