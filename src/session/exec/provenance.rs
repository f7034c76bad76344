//! Which PTX a cubin was made from: a file for each cubin, named after its bytes, in a folder that all processes of a run share.
//!
//! What the assembler made and the driver is given later has to be the same bytes, so that frameworks which compile to cubins
//! can be instrumented nonetheless.

use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::fatbin::{ElfSize, elf_size};

/// Where the map lies in the folder of the settings.
const FOLDER: &str = "provenance";

/// Where the map lies, given the folder of the settings.
pub fn folder(settings: &Path) -> PathBuf {
    settings.join(FOLDER)
}

/// Notes what a cubin was made from. An earlier note of the same cubin is replaced.
pub fn record(folder: &Path, cubin: &[u8], ptx: &[(PathBuf, String)]) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    // Others may read or write the same file at this moment: it is there as a whole or not at all.
    let file = tempfile::NamedTempFile::new_in(folder)?;
    serde_json::to_writer(io::BufWriter::new(&file), ptx).map_err(io::Error::other)?;
    file.persist(place(folder, cubin)).map_err(|error| error.error)?;
    Ok(())
}

/// The names and texts of what a cubin was made from, if that is known. What lies behind the end of the cubin does not matter.
pub fn lookup(folder: &Path, cubin: &[u8]) -> Option<Vec<(PathBuf, String)>> {
    serde_json::from_slice(&std::fs::read(place(folder, cubin)).ok()?).ok()
}

/// A name for a text that has none which lasts: that of its first kernel.
pub fn by_kernel(text: &str) -> Option<PathBuf> {
    let (_, rest) = text.split_once(".entry")?;
    let is_part = |c: &char| c.is_alphanumeric() || matches!(c, '_' | '$');
    let name: String = rest.trim_start().chars().take_while(is_part).collect();
    (!name.is_empty()).then(|| format!("{name}.ptx").into())
}

/// The file of a cubin.
fn place(folder: &Path, cubin: &[u8]) -> PathBuf {
    let own = match elf_size(cubin) {
        Ok(ElfSize::Exactly(size)) => usize::try_from(size).ok().and_then(|size| cubin.get(..size)),
        _ => None,
    };
    let digest = Sha256::digest(own.unwrap_or(cubin));
    folder.join(format!("{digest:x}.json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ptx(text: &str) -> Vec<(PathBuf, String)> {
        vec![("kernel.ptx".into(), text.into())]
    }

    #[test]
    fn what_was_recorded_is_found_and_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let map = self::folder(folder.path());
        assert_eq!(lookup(&map, b"one"), None);
        record(&map, b"one", &ptx("1")).unwrap();
        record(&map, b"two", &ptx("2")).unwrap();
        assert_eq!(lookup(&map, b"one"), Some(ptx("1")));
        record(&map, b"one", &ptx("3")).unwrap();
        assert_eq!(lookup(&map, b"one"), Some(ptx("3")));
        assert_eq!(lookup(&map, b"two"), Some(ptx("2")));
        assert_eq!(std::fs::read_dir(&map).unwrap().count(), 2);
    }

    #[test]
    fn many_at_once_leave_whole_files() {
        let folder = tempfile::tempdir().unwrap();
        let texts: Vec<String> = (0..4).map(|n| n.to_string().repeat(100_000)).collect();
        std::thread::scope(|scope| {
            for text in &texts {
                let folder = folder.path();
                scope.spawn(move || {
                    for _ in 0..50 {
                        record(folder, b"cubin", &ptx(text)).unwrap();
                        let found = lookup(folder, b"cubin").unwrap();
                        assert_eq!(found.len(), 1);
                        assert_eq!(found[0].1.len(), 100_000);
                    }
                });
            }
        });
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_no_map_is_nothing() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(place(folder.path(), b"cubin"), "{").unwrap();
        assert_eq!(lookup(folder.path(), b"cubin"), None);
    }
}
