//! The files of a corpus: which there are, and which have the same content.

use std::collections::HashSet;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use serde::Serialize;

/// One file of the corpus.
#[derive(Clone, Serialize)]
pub(super) struct File {
    /// The folder directly below the folder that was given, or that folder itself.
    pub(super) source: String,
    /// As found.
    pub(super) path: PathBuf,
    /// Where the PTX is: the file itself, or what nvcc made of it.
    #[serde(skip)]
    pub(super) read_from: PathBuf,
    /// Its size.
    pub(super) bytes: u64,
}

/// Files without repetitions.
pub(super) struct Distinct {
    /// In the order of their paths.
    pub(super) files: Vec<File>,
    /// How many others had the same content as one of them.
    pub(super) duplicates: usize,
}

/// All `.ptx` and `.cu` files of the folders, in the order of their paths.
pub(super) fn find(folders: &[PathBuf]) -> Result<Vec<File>, String> {
    let mut files = Vec::new();
    for folder in folders {
        // The name of `.` or `..` is known only when it is resolved.
        let full = fs::canonicalize(folder).map_err(|error| cannot_read(folder, &error))?;
        walk(folder, &name(&full), 0, &mut files)?;
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

fn walk(folder: &Path, source: &str, depth: usize, files: &mut Vec<File>) -> Result<(), String> {
    let entries = fs::read_dir(folder).map_err(|error| cannot_read(folder, &error))?;
    for entry in entries {
        let path = entry.map_err(|error| cannot_read(folder, &error))?.path();
        if path.is_dir() {
            let below = name(&path);
            walk(&path, if depth == 0 { &below } else { source }, depth + 1, files)?;
        } else if path.extension().is_some_and(|extension| extension == "ptx" || extension == "cu") {
            files.push(File { source: source.to_owned(), read_from: path.clone(), path, bytes: 0 });
        }
    }
    Ok(())
}

/// Leaves out files whose content was there before.
pub(super) fn distinct(found: Vec<File>) -> Result<Distinct, String> {
    let mut seen = HashSet::new();
    let (mut files, mut duplicates) = (Vec::new(), 0);
    for mut file in found {
        let content = fs::read(&file.read_from).map_err(|error| cannot_read(&file.read_from, &error))?;
        file.bytes = content.len() as u64;
        let mut hasher = DefaultHasher::new();
        content.hash(&mut hasher);
        if seen.insert((hasher.finish(), file.bytes)) {
            files.push(file);
        } else {
            duplicates += 1;
        }
    }
    Ok(Distinct { files, duplicates })
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

fn cannot_read(path: &Path, error: &std::io::Error) -> String {
    format!("failed to read {}: {error}", path.display())
}
