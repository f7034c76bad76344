//! Paths as CI wants them: from the root of the repository, with `/`.

use std::path::{Component, Path, PathBuf};

/// Where files are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Folders {
    /// The folder that relative paths start from.
    pub current: PathBuf,
    /// The root of the repository.
    pub root: PathBuf,
}

impl Folders {
    /// The path from the root, or if it is not below that, as it is.
    pub(super) fn in_root(&self, path: &str) -> String {
        let whole = normal(&self.current.join(path));
        let inside = whole.strip_prefix(&self.root).unwrap_or(&whole);
        let parts = inside.components().map(|part| part.as_os_str().to_string_lossy());
        let parts: Vec<_> = parts.collect();
        // An absolute path begins with `/` itself.
        parts.join("/").replacen("//", "/", 1)
    }
}

/// Without `.` and `..`, as far as that can be told without looking at files.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(out.components().next_back(), Some(Component::Normal(_))) => {
                out.pop();
            }
            part => out.push(part),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_start_at_the_root() {
        let folders = Folders { current: "/home/ci/repo/tests".into(), root: "/home/ci/repo".into() };
        let cases = [
            ("a.cu", "tests/a.cu"),
            ("./x/../a.cu", "tests/a.cu"),
            ("../src/a.cu", "src/a.cu"),
            ("/home/ci/repo/src/a.cu", "src/a.cu"),
            ("/usr/include/a.h", "/usr/include/a.h"),
            ("../../other/a.cu", "/home/ci/other/a.cu"),
        ];
        for (path, expected) in cases {
            assert_eq!(folders.in_root(path), expected, "{path}");
        }
        assert_eq!(Folders::default().in_root("../b/a.cu"), "../b/a.cu");
    }
}
