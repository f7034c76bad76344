//! The TOML of a launch description, from a file or from the `//@ ` lines of a PTX text.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, SeqAccess, Visitor};
use toml::Spanned;

use super::image::{ArrayEntry, Described, SurfaceEntry, TextureEntry};
use super::{Draft, Located, SpecText};
use crate::diag::Diagnostic;
use crate::diag::nearest;
use crate::span::{SourceFile, Span};

const TOP_KEYS: [&str; 5] = ["launch", "array", "texture", "surface", "expect"];
const KEYS: [&str; 9] = ["kernel", "grid", "block", "shared", "stream", "after", "cluster", "device", "args"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    launch: Vec<Spanned<Entry>>,
    #[serde(default)]
    array: Vec<ArrayEntry>,
    #[serde(default)]
    texture: Vec<TextureEntry>,
    #[serde(default)]
    surface: Vec<SurfaceEntry>,
    /// Read by tests only.
    #[serde(default, rename = "expect")]
    _expect: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    kernel: Option<Spanned<String>>,
    grid: Option<Spanned<Extent>>,
    block: Option<Spanned<Extent>>,
    cluster: Option<Spanned<Extent>>,
    shared: Option<Spanned<u32>>,
    device: Option<Spanned<u32>>,
    stream: Option<Spanned<u32>>,
    #[serde(default)]
    after: Vec<Spanned<usize>>,
    args: Option<Spanned<Vec<Spanned<String>>>>,
}

/// One to three sizes; missing ones are 1.
#[derive(Clone, Copy, Debug)]
struct Extent([u32; 3]);

impl<'de> Deserialize<'de> for Extent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ExtentVisitor)
    }
}

struct ExtentVisitor;

impl<'de> Visitor<'de> for ExtentVisitor {
    type Value = Extent;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a positive integer or up to three of them in brackets")
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Extent, E> {
        let value = u32::try_from(value).map_err(|_| too_large(value))?;
        Ok(Extent([value, 1, 1]))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Extent, E> {
        let value = u32::try_from(value).map_err(|_| too_large(value))?;
        Ok(Extent([value, 1, 1]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Extent, A::Error> {
        let (mut extent, mut n) = ([1; 3], 0);
        while let Some(value) = seq.next_element::<i64>()? {
            let value = u32::try_from(value).map_err(|_| too_large(value))?;
            let Some(slot) = extent.get_mut(n) else {
                return Err(Error::custom("more than three sizes"));
            };
            *slot = value;
            n += 1;
        }
        if n == 0 {
            return Err(Error::custom("no size in the brackets"));
        }
        Ok(Extent(extent))
    }
}

fn too_large<E: Error>(value: impl fmt::Display) -> E {
    E::custom(format_args!("{value} is not a size of a grid, block or cluster"))
}

/// Reads a description. `folder` is what `file:` paths are relative to.
pub(super) fn read(
    file: &SourceFile,
    toml: &str,
    folder: &Path,
) -> Result<(Vec<Draft>, Described), Diagnostic> {
    let parsed: File = toml::from_str(toml).map_err(|error| diagnose(file, &error))?;
    let images = Described::new(file, folder, parsed.array, parsed.texture, parsed.surface);
    Ok((parsed.launch.into_iter().map(|entry| draft(file, entry, folder)).collect(), images))
}

fn diagnose(file: &SourceFile, error: &toml::de::Error) -> Diagnostic {
    let message = error.message().lines().next().unwrap_or("not TOML").to_owned();
    let span = error.span().unwrap_or(0..0);
    // An error at the end of the file would have nothing to underline.
    let span = Span::new(span.start.min(file.text().len()), span.end.min(file.text().len()).max(span.start));
    let path = file.path().display();
    let unknown = message.strip_prefix("unknown field `").and_then(|rest| rest.split('`').next());
    let help = match unknown.map(|key| (key, nearest(key, TOP_KEYS.into_iter().chain(KEYS)))) {
        Some((_, Some(near))) => format!("did you mean `{near}`?"),
        Some(_) if !message.contains("`kernel`") => "leave it out".into(),
        Some((_, None)) => format!("`[[launch]]` has the keys {}", KEYS.join(", ")),
        None => "a launch reads like `grid = [4,1,1]`, `block = 128`, `args = [\"a:i32[512]=iota\"]`".into(),
    };
    Diagnostic::error(format!("the launch description `{path}` cannot be read: {message}"))
        .at(file, span, "here")
        .help(help)
}

fn located<T>(file: &SourceFile, value: Spanned<T>) -> Located<T> {
    let span = value.span();
    Located { file: file.clone(), span: Span::new(span.start, span.end), value: value.into_inner() }
}

fn draft(file: &SourceFile, entry: Spanned<Entry>, folder: &Path) -> Draft {
    let span = entry.span();
    let entry = entry.into_inner();
    let extent = |value: Option<Spanned<Extent>>| {
        value.map(|value| {
            let Located { value, file, span } = located(file, value);
            Located { value: value.0, file, span }
        })
    };
    Draft {
        place: Some((file.clone(), Span::new(span.start, span.end))),
        kernel: entry.kernel.map(|kernel| located(file, kernel)),
        grid: extent(entry.grid),
        block: extent(entry.block),
        cluster: extent(entry.cluster),
        shared: entry.shared.map(|shared| located(file, shared)),
        device: entry.device.map_or(0, Spanned::into_inner),
        stream: entry.stream.map_or(0, Spanned::into_inner),
        after: entry.after.into_iter().map(|after| located(file, after)).collect(),
        args: entry.args.map(|args| {
            let args = located(file, args);
            let specs = args.value.into_iter().map(|arg| spec_text(file, arg, folder)).collect();
            Located { value: specs, file: args.file, span: args.span }
        }),
    }
}

pub(super) fn spec_text(file: &SourceFile, arg: Spanned<String>, folder: &Path) -> SpecText {
    let span = arg.span();
    let (span, text) = (Span::new(span.start, span.end), arg.into_inner());
    // Positions within the argument are known when the string has no escapes.
    let raw = file.slice(span);
    let inner = raw.get(1..raw.len().saturating_sub(1)) == Some(text.as_str());
    SpecText {
        exact: inner.then_some(span.start as usize + 1),
        text: Located { value: text, file: file.clone(), span },
        folder: folder.to_owned(),
    }
}

/// The TOML in the `//@ ` lines of a PTX text, with blanks for all else, so that offsets are those of the PTX text.
/// `None` without such lines.
pub(super) fn header(ptx: &str) -> Option<String> {
    const MARK: &str = "//@";
    if !ptx.contains(MARK) {
        return None;
    }
    let mut toml = String::new();
    let mut end = 0;
    for line in ptx.split_inclusive('\n') {
        match line.strip_prefix(MARK) {
            Some(rest) if rest.trim_end().is_empty() || rest.starts_with(' ') => {
                toml.push_str("   ");
                toml.push_str(rest);
                end = toml.len();
            }
            _ => toml.extend(line.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' })),
        }
    }
    toml.truncate(end);
    (!toml.trim().is_empty()).then_some(toml)
}

/// The description beside a PTX file: `app.toml` of `app.ptx`.
pub(super) fn beside(ptx: &Path) -> Option<PathBuf> {
    let path = ptx.with_extension("toml");
    (path != ptx && path.is_file()).then_some(path)
}
