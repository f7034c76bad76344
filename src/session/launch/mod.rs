//! From flags, a launch description or inference to a validated plan.
//!
//! Flags win over `--launch`, that over `app.toml` beside `app.ptx`, that over `//@ ` lines in the PTX text. What is
//! left open is inferred, and every assumption becomes a note.

mod bind;
mod check;
mod file;
mod image;
mod infer;
pub mod spec;
pub mod tensor;
pub mod values;

use std::path::{Path, PathBuf};

use crate::backend::Plan;
use crate::diag::Diagnostic;
use crate::ptx::ast::Module;
use crate::span::{SourceFile, Span};

/// What the user asked to launch, as far as flags say.
#[derive(Clone, Debug, Default)]
pub struct LaunchRequest {
    /// `--kernel`
    pub kernel: Option<String>,
    /// `--grid`
    pub grid: Option<[u32; 3]>,
    /// `--block`
    pub block: Option<[u32; 3]>,
    /// `--shared`
    pub shared: Option<u32>,
    /// `--arg`, in order.
    pub args: Vec<String>,
    /// `--launch`
    pub file: Option<PathBuf>,
}

/// A plan with what is known besides.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The plan; it fits the module.
    pub plan: Plan,
    /// Other names of buffers: name and index.
    pub aliases: Vec<(String, usize)>,
    /// What was assumed.
    pub notes: Vec<Diagnostic>,
}

/// A value and where it was given.
#[derive(Clone, Debug)]
struct Located<T> {
    value: T,
    file: SourceFile,
    span: Span,
}

impl<T> Located<T> {
    fn error(&self, message: impl Into<String>, label: impl Into<String>) -> Diagnostic {
        Diagnostic::error(message).at(&self.file, self.span, label)
    }
}

/// An argument's text, and how positions in it map to its file.
#[derive(Clone, Debug)]
struct SpecText {
    text: Located<String>,
    /// Offset in the file of the text's first byte, if the text stands there as it is.
    exact: Option<usize>,
    /// What `file:` is relative to.
    folder: PathBuf,
}

impl SpecText {
    fn error(&self, error: &spec::SpecError) -> Diagnostic {
        let span = match self.exact {
            Some(base) => Span::new(base + error.at.start, base + error.at.end),
            None => self.text.span,
        };
        Diagnostic::error(format!("the argument `{}` cannot be read: {}", self.text.value, error.message))
            .at(&self.text.file, span, error.message.clone())
            .help(error.help.clone())
    }
}

/// A launch as described; what is `None` was left open.
#[derive(Clone, Debug, Default)]
struct Draft {
    place: Option<(SourceFile, Span)>,
    kernel: Option<Located<String>>,
    grid: Option<Located<[u32; 3]>>,
    block: Option<Located<[u32; 3]>>,
    cluster: Option<Located<[u32; 3]>>,
    shared: Option<Located<u32>>,
    device: u32,
    stream: u32,
    after: Vec<Located<usize>>,
    args: Option<Located<Vec<SpecText>>>,
}

/// A text given on the command line as a source, so that diagnostics can point into it.
fn flag(name: &str, value: &str) -> Option<SourceFile> {
    SourceFile::new(format!("--{name}"), value).ok()
}

fn located_flag<T>(name: &str, text: &str, value: T) -> Option<Located<T>> {
    let file = flag(name, text)?;
    Some(Located { value, file, span: Span::new(0, text.len()) })
}

/// Makes the plan, or says everything that is wrong.
pub fn resolve(
    source: &SourceFile,
    module: &Module<'_>,
    request: &LaunchRequest,
) -> Result<Resolved, Vec<Diagnostic>> {
    if module.entries().next().is_none() {
        let path = source.path().display();
        let error = Diagnostic::error(format!("`{path}` has no kernel to launch"))
            .help("a kernel is an `.entry` with a body; compile with `-ptx` a file that has a `__global__` function");
        return Err(vec![error]);
    }
    let mut notes = Vec::new();
    let (described, images) = described(source, request).map_err(|error| vec![error])?;
    let mut drafts = select(described, module, request, &mut notes).map_err(|error| vec![error])?;
    for draft in &mut drafts.kept {
        override_by_flags(draft, request);
    }
    bind::bind(source, module, drafts, &images, notes)
}

/// The description and all of its launches; `None` when there is none.
fn described(
    source: &SourceFile,
    request: &LaunchRequest,
) -> Result<(Option<Vec<Draft>>, image::Described), Diagnostic> {
    let path = request.file.clone().or_else(|| file::beside(source.path()));
    if let Some(path) = path {
        let description = SourceFile::read(&path).map_err(|error| {
            Diagnostic::error(error.to_string())
                .help("`--launch` takes the path of a launch description in TOML")
        })?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let (drafts, images) = file::read(&description, description.text(), folder)?;
        if drafts.is_empty() && request.file.is_some() {
            let message = format!("`{}` describes no launch", path.display());
            return Err(Diagnostic::error(message).help("add a `[[launch]]` table"));
        }
        return Ok(((!drafts.is_empty()).then_some(drafts), images));
    }
    let Some(toml) = file::header(source.text()) else { return Ok((None, image::Described::default())) };
    let folder = source.path().parent().unwrap_or(Path::new(""));
    let (drafts, images) = file::read(source, &toml, folder)?;
    Ok(((!drafts.is_empty()).then_some(drafts), images))
}

/// Launches to make, and the arguments of those left out, which may define buffers.
struct Selected {
    kept: Vec<Draft>,
    /// Index of each kept launch in the description.
    index: Vec<usize>,
    others: Vec<SpecText>,
}

fn select(
    described: Option<Vec<Draft>>,
    module: &Module<'_>,
    request: &LaunchRequest,
    notes: &mut Vec<Diagnostic>,
) -> Result<Selected, Diagnostic> {
    let wanted = request.kernel.as_deref();
    let named =
        |name: &str| Draft { kernel: located_flag("kernel", name, name.to_owned()), ..Draft::default() };
    let Some(drafts) = described else {
        let names: Vec<_> = module.entries().map(|entry| entry.name.text).collect();
        let kept: Vec<_> = match wanted {
            Some(name) => vec![named(name)],
            None => names.iter().map(|name| named(name)).collect(),
        };
        if wanted.is_none() && kept.len() > 1 {
            only_one(request, kept.len())?;
            let note = format!("no launch description: every kernel is launched once, {} in all", kept.len());
            notes.push(Diagnostic::remark(note));
        }
        return Ok(Selected { index: (0..kept.len()).collect(), kept, others: Vec::new() });
    };
    let Some(name) = wanted else {
        if drafts.len() > 1 {
            only_one(request, drafts.len())?;
        }
        return Ok(Selected { index: (0..drafts.len()).collect(), kept: drafts, others: Vec::new() });
    };
    let entry = check::find_entry(module, name);
    let is_wanted = |draft: &Draft| match &draft.kernel {
        Some(kernel) => {
            kernel.value == name
                || entry.is_some_and(|e| {
                    check::find_entry(module, &kernel.value).is_some_and(|k| k.name == e.name)
                })
        }
        None => module.entries().count() == 1,
    };
    let mut selected = Selected { kept: Vec::new(), index: Vec::new(), others: Vec::new() };
    for (index, draft) in drafts.into_iter().enumerate() {
        if is_wanted(&draft) {
            selected.kept.push(draft);
            selected.index.push(index);
        } else if let Some(args) = draft.args {
            selected.others.extend(args.value);
        }
    }
    if selected.kept.is_empty() {
        selected.kept.push(named(name));
        selected.index.push(0);
    }
    if selected.kept.len() > 1 {
        only_one(request, selected.kept.len())?;
    }
    Ok(selected)
}

/// `--arg` can only be meant for one launch.
fn only_one(request: &LaunchRequest, launches: usize) -> Result<(), Diagnostic> {
    if request.args.is_empty() {
        return Ok(());
    }
    let message = format!("`--arg` gives the arguments of one launch, but there are {launches}");
    Err(Diagnostic::error(message)
        .help("pick one with `--kernel`, or write the arguments into a launch description"))
}

fn override_by_flags(draft: &mut Draft, request: &LaunchRequest) {
    let extent = |e: [u32; 3]| format!("{},{},{}", e[0], e[1], e[2]);
    if let Some(grid) = request.grid {
        draft.grid = located_flag("grid", &extent(grid), grid);
    }
    if let Some(block) = request.block {
        draft.block = located_flag("block", &extent(block), block);
    }
    if let Some(shared) = request.shared {
        draft.shared = located_flag("shared", &shared.to_string(), shared);
    }
    if request.args.is_empty() {
        return;
    }
    let mut specs = Vec::new();
    for text in &request.args {
        if let Some(text) = located_flag("arg", text, text.clone()) {
            specs.push(SpecText { text, exact: Some(0), folder: PathBuf::new() });
        }
    }
    draft.args = located_flag("arg", &request.args.join(" "), specs);
}

#[cfg(test)]
mod tests;
