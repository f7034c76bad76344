//! Files that are given in place of PTX now and then.

/// What a file is that is no PTX, and what to do with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Foreign {
    /// Its kind, with an article.
    pub what: &'static str,
    /// What to do.
    pub help: &'static str,
}

/// Bytes looked at.
const HEAD: usize = 1 << 16;

const COMPILE: &str = "compile it with `nvcc -ptx -lineinfo` and give the `.ptx` file";
const EXTRACT: &str = "`ptxrace extract FILE` writes the PTX that it has embedded, if any; give that";

/// Recognises what is no PTX. PTX itself, however broken, is nothing foreign.
pub fn foreign(bytes: &[u8]) -> Option<Foreign> {
    let bytes = bytes.get(..HEAD).unwrap_or(bytes);
    let is = |what, help| Some(Foreign { what, help });
    let starts: [(&[u8], _, _); 10] = [
        (b"\x7fELF", "an ELF file: a cubin, a library or a program", EXTRACT),
        (b"\x50\xed\x55\xba", "a fatbin", EXTRACT),
        (b"MZ", "a Windows program or library", EXTRACT),
        (b"!<arch>\n", "a library archive", EXTRACT),
        (b"BC\xc0\xde", "LLVM bitcode", "compile it to PTX, as with `llc -march=nvptx64`"),
        (b"\xed\x43\x4e\x4e", "NVVM bitcode", COMPILE),
        (b"\xff\xfe", "UTF-16 text", "PTX is ASCII: save it as such"),
        (b"\xfe\xff", "UTF-16 text", "PTX is ASCII: save it as such"),
        (b"\x1f\x8b", "gzip data", "decompress it"),
        (b"\x28\xb5\x2f\xfd", "Zstandard data", "decompress it"),
    ];
    if let Some((_, what, help)) = starts.iter().find(|(start, ..)| bytes.starts_with(start)) {
        return is(what, help);
    }
    let has = |text: &str| memchr::memmem::find(bytes, text.as_bytes()).is_some();
    // Every second byte of text in 16 bits is zero.
    if bytes.len() >= 8 && bytes.chunks_exact(2).take(64).all(|pair| (pair[0] == 0) != (pair[1] == 0)) {
        return is("UTF-16 text", "PTX is ASCII: save it as such");
    }
    if has(".version") && (has(".target") || has(".address_size")) {
        return None;
    }
    if has("\tFunction : ") || has(".headerflags") || has("/*0000*/") {
        return is("SASS, a disassembly", "give the PTX, as `nvcc -ptx` or `cuobjdump -ptx` writes it");
    }
    if has("target triple = \"nvptx") || has("define ptx_kernel") || has("!nvvm.annotations") {
        return is("LLVM IR", "compile it to PTX, as with `llc -march=nvptx64`");
    }
    if ["__global__", "__device__", "#include", "cudaMalloc", "blockIdx.", "int main("]
        .iter()
        .any(|word| has(word))
    {
        return is("CUDA or C++ source", COMPILE);
    }
    if bytes.first() == Some(&b'{') || has("[[launch]]") {
        return is(
            "a description, not a module",
            "give the `.ptx` file; a launch file goes behind `--launch`",
        );
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_apart() {
        let what = |bytes: &[u8]| foreign(bytes).map_or("", |foreign| foreign.what);
        assert_eq!(what(b"\x7fELF\x02\x01\x01"), "an ELF file: a cubin, a library or a program");
        assert_eq!(what(b"\x50\xed\x55\xba\x01\x00"), "a fatbin");
        assert_eq!(what(b"\xff\xfe.\0v\0"), "UTF-16 text");
        assert_eq!(what(b".\0v\0e\0r\0s\0i\0o\0n\0"), "UTF-16 text");
        assert_eq!(what(b"#include <cstdio>\n__global__ void k() {}\n"), "CUDA or C++ source");
        assert_eq!(what(b"\tcode for sm_80\n\t\tFunction : k\n"), "SASS, a disassembly");
        assert_eq!(what(b"// __global__\n.version 8.0\n.target sm_80\n"), "");
        assert_eq!(what(b""), "");
        assert_eq!(what(b"\0\0\0\0\0\0\0\0"), "");
    }
}
