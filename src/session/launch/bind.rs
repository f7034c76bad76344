//! From drafts to the plan: buffers are made, names are looked up, arguments are matched with parameters.

use rustc_hash::FxHashMap;

use super::check::{self, Sized, describe, show};
use super::image::Described;
use super::infer::{self, Guess};
use super::spec::{self, Init, Spec, SpecError, SpecKind};
use super::tensor;
use super::values::{self, is_float, type_name};
use super::{Draft, Resolved, Selected, SpecText};
use crate::backend::{Arg, Buffer, ElementType, Launch, Owner, Plan};
use crate::diag::Diagnostic;
use crate::diag::nearest;
use crate::explain::names::demangle;
use crate::ptx::ast::{Function, Module, Variable};
use crate::span::SourceFile;

/// Bytes of one buffer at most; more is a slip of the hand.
const MAX_BUFFER: u64 = 1 << 34;

/// Makes the plan.
pub(super) fn bind(
    source: &SourceFile,
    module: &Module<'_>,
    mut selected: Selected,
    images: &Described,
    notes: Vec<Diagnostic>,
) -> Result<Resolved, Vec<Diagnostic>> {
    let mut binder = Binder {
        plan: Plan::default(),
        names: FxHashMap::default(),
        images: FxHashMap::default(),
        aliases: Vec::new(),
        errors: Vec::new(),
        notes,
    };
    selected.others.extend(images.specs());
    let drafts = &selected.kept;
    let entries: Vec<_> = drafts
        .iter()
        .map(|draft| match check::entry(source, module, draft.kernel.as_ref(), draft.place.as_ref()) {
            Ok(entry) => Some(entry),
            Err(error) => {
                binder.errors.push(error);
                None
            }
        })
        .collect();
    let specs: Vec<_> =
        drafts.iter().map(|draft| draft.args.as_ref().map(|args| binder.parse(&args.value))).collect();
    let others = binder.parse(&selected.others);
    binder.buffers(&entries, &specs, &others);
    binder.make_images(images);
    let several = drafts.len() > 1;
    for (index, draft) in drafts.iter().enumerate() {
        let (Some(entry), specs) = (entries[index], &specs[index]) else { continue };
        let mut launch = binder.sizes(source, module, entry, draft);
        launch.after = binder.after(draft, index, &selected.index);
        launch.args = match specs {
            Some(specs) => binder.args(source, entry, draft, specs),
            None => binder.guess(entry, &launch, index, several),
        };
        binder.plan.launches.push(launch);
    }
    if binder.errors.is_empty() {
        if let Some(last) = binder.notes.last_mut() {
            last.help.push("`--grid`, `--block` and `--arg`, or a launch description, say otherwise".into());
        }
        Ok(Resolved { plan: binder.plan, aliases: binder.aliases, notes: binder.notes })
    } else {
        Err(binder.errors)
    }
}

/// An argument's text with its meaning; `None` when it could not be read.
type Parsed<'d> = (&'d SpecText, Option<Spec>);

pub(super) struct Binder {
    pub(super) plan: Plan,
    /// Buffers by name, aliases included.
    pub(super) names: FxHashMap<String, usize>,
    /// Textures and surfaces by name.
    pub(super) images: FxHashMap<String, usize>,
    aliases: Vec<(String, usize)>,
    pub(super) errors: Vec<Diagnostic>,
    notes: Vec<Diagnostic>,
}

/// Whether an argument with a count is a structure passed by value rather than a buffer.
fn by_value(param: Option<&Variable<'_>>, ty: ElementType, count: u64) -> bool {
    let bytes = count.saturating_mul(ty.bytes() as u64);
    param.is_some_and(|param| !param.dims.is_empty() && param.bytes() == Some(bytes))
}

impl Binder {
    fn parse<'d>(&mut self, texts: &'d [SpecText]) -> Vec<Parsed<'d>> {
        let parse = |text: &'d SpecText| match spec::parse(&text.text.value) {
            Ok(spec) => (text, Some(spec)),
            Err(error) => {
                self.errors.push(text.error(&error));
                (text, None)
            }
        };
        texts.iter().map(parse).collect()
    }

    /// Makes all buffers: first those with contents, so that aliases find them wherever they stand.
    fn buffers(
        &mut self,
        entries: &[Option<&Function<'_>>],
        specs: &[Option<Vec<Parsed<'_>>>],
        others: &[Parsed<'_>],
    ) {
        let mut defined = Vec::new();
        for (entry, specs) in entries.iter().zip(specs) {
            for (position, (text, spec)) in specs.iter().flatten().enumerate() {
                defined.push((*text, spec, entry.and_then(|entry| entry.params.get(position))));
            }
        }
        defined.extend(others.iter().map(|(text, spec)| (*text, spec, None)));
        for aliases in [false, true] {
            for (text, spec, param) in &defined {
                match spec {
                    Some(Spec { name, kind: SpecKind::Buffer { ty, count, owner, init } })
                        if matches!(init, Init::Alias(_)) == aliases && !by_value(*param, *ty, *count) =>
                    {
                        self.define(text, name, (*ty, *count, *owner), init);
                    }
                    Some(Spec { name, kind: SpecKind::Tensor(spec) }) => {
                        let Some(init) = &spec.init else { continue };
                        if matches!(init, Init::Alias(_)) == aliases {
                            let ty = tensor::element(spec.map.ty);
                            let count = tensor::needs(&spec.map).div_ceil(ty.bytes() as u64);
                            self.define(text, name, (ty, count, Owner::Device), init);
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    fn define(
        &mut self,
        text: &SpecText,
        name: &str,
        (ty, count, owner): (ElementType, u64, Owner),
        init: &Init,
    ) {
        let whole = 0..text.text.value.len();
        let fail = |message: String, help: String| SpecError { at: whole.clone(), message, help };
        if self.names.contains_key(name) {
            let error = fail(
                format!("the buffer `{name}` is defined twice"),
                format!("write `@{name}` for the same buffer again"),
            );
            self.errors.push(text.error(&error));
            return;
        }
        let made = match init {
            Init::Alias(of) => self.alias(of, ty, count).map_err(|(message, help)| fail(message, help)),
            _ => contents(text, ty, count, init).map_err(|(message, help)| fail(message, help)).map(
                |contents| {
                    let unwritten = *init == Init::Uninit;
                    self.plan.buffers.push(Buffer { name: name.into(), ty, contents, unwritten, owner });
                    self.plan.buffers.len() - 1
                },
            ),
        };
        match made {
            Ok(index) => {
                if matches!(init, Init::Alias(_)) {
                    self.aliases.push((name.into(), index));
                }
                self.names.insert(name.into(), index);
            }
            Err(error) => self.errors.push(text.error(&error)),
        }
    }

    fn alias(&self, of: &str, ty: ElementType, count: u64) -> Result<usize, (String, String)> {
        let Some(index) = self.names.get(of) else {
            return Err((format!("there is no buffer `{of}`"), self.known(of)));
        };
        let has = self.plan.buffers.get(*index).map_or(0, |buffer| buffer.contents.len() as u64);
        let needs = count.saturating_mul(ty.bytes() as u64);
        if needs > has {
            let message = format!("`{of}` has {has} bytes, but {needs} are asked for");
            return Err((message, "give the larger one its contents, and let the other be the alias".into()));
        }
        Ok(*index)
    }

    fn known(&self, name: &str) -> String {
        let mut names: Vec<_> = self.names.keys().map(String::as_str).collect();
        names.sort_unstable();
        match nearest(name, names.iter().copied()) {
            Some(near) => format!("did you mean `@{near}`?"),
            None if names.is_empty() => "define it first, as in `a:i32[512]=0`".into(),
            None => format!("the buffers are `{}`", names.join("`, `")),
        }
    }

    fn sizes(
        &mut self,
        source: &SourceFile,
        module: &Module<'_>,
        entry: &Function<'_>,
        draft: &Draft,
    ) -> Launch {
        let kernel = demangle(entry.name.text).short;
        let grid = Sized {
            value: draft.grid.as_ref().map_or_else(|| infer::grid(entry), |g| g.value),
            given: draft.grid.as_ref(),
        };
        let block = Sized {
            value: draft.block.as_ref().map_or_else(|| infer::block(entry), |b| b.value),
            given: draft.block.as_ref(),
        };
        for (what, sized) in [("grid", &grid), ("block", &block)] {
            if sized.given.is_none() {
                self.notes
                    .push(Diagnostic::remark(format!("`{kernel}`: {what} {} assumed", show(sized.value))));
            }
        }
        check::grid(&grid, &mut self.errors);
        check::block(source, entry, &block, &mut self.errors);
        let required = check::required_cluster(source, entry);
        let cluster = draft.cluster.as_ref().or(required.as_ref());
        if let Some(cluster) = cluster {
            check::cluster(cluster, grid.value, &mut self.errors);
        }
        if let Some(shared) = &draft.shared {
            check::shared(shared, &mut self.errors);
        }
        // A description that is silent means none; without one, kernels that use it would only fault.
        let assumed = infer::shared(module).filter(|_| draft.place.is_none() && draft.shared.is_none());
        if let Some(bytes) = assumed {
            self.notes.push(Diagnostic::remark(format!(
                "`{kernel}`: {bytes} bytes of dynamic shared memory assumed"
            )));
        }
        Launch {
            kernel: entry.name.text.into(),
            grid: grid.value,
            block: block.value,
            cluster: cluster.map(|c| c.value),
            shared: draft.shared.as_ref().map(|shared| shared.value).or(assumed).unwrap_or(0),
            device: draft.device,
            stream: draft.stream,
            after: Vec::new(),
            args: Vec::new(),
        }
    }

    /// Indices of a description, as indices of the launches made.
    fn after(&mut self, draft: &Draft, own: usize, index: &[usize]) -> Vec<usize> {
        let mut after = Vec::new();
        for wanted in &draft.after {
            let described = index.get(own).copied().unwrap_or(own);
            if wanted.value >= described {
                let message = format!("launch {described} cannot wait for launch {}", wanted.value);
                let error = wanted.error(message, "not an earlier launch");
                self.errors.push(error.help("launches are counted from 0 in the order of the file"));
            }
            after.extend(index.iter().position(|i| *i == wanted.value));
        }
        after
    }

    fn args(
        &mut self,
        source: &SourceFile,
        entry: &Function<'_>,
        draft: &Draft,
        specs: &[Parsed<'_>],
    ) -> Vec<Arg> {
        let kernel = demangle(entry.name.text).short;
        let params = &entry.params;
        if let Some(given) = draft.args.as_ref().filter(|_| specs.len() != params.len()) {
            let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
            let takes = count(params.len(), "parameter");
            let gives = count(specs.len(), "argument");
            let error = given.error(format!("`{kernel}` has {takes}, but the launch gives {gives}"), gives);
            let list: Vec<_> =
                params.iter().map(|p| format!("`{}` (`{}`)", p.name.text, p.ty.text)).collect();
            let error = error.at(source, entry.name.span, "the kernel");
            let error = if list.is_empty() {
                error
            } else {
                error.note(format!("its parameters are {}", list.join(", ")))
            };
            self.errors.push(error.help("give one argument for each parameter, in order"));
            return Vec::new();
        }
        let mut args = Vec::new();
        for (index, (param, (text, spec))) in params.iter().zip(specs).enumerate() {
            let Some(spec) = spec else { continue };
            match self.arg(index, param, text, spec) {
                Ok(arg) => args.push(arg),
                Err((message, help)) => {
                    let at = 0..text.text.value.len();
                    let error = Diagnostic::error(message.clone())
                        .at(
                            &text.text.file,
                            text.exact
                                .map_or(text.text.span, |base| crate::span::Span::new(base, base + at.end)),
                            "this argument",
                        )
                        .at(source, param.span, "this parameter");
                    self.errors.push(error.help(help));
                }
            }
        }
        args
    }

    fn arg(
        &self,
        index: usize,
        param: &Variable<'_>,
        text: &SpecText,
        spec: &Spec,
    ) -> Result<Arg, (String, String)> {
        let name = &spec.name;
        let size = param.bytes().unwrap_or(0);
        let described = describe(index, param);
        match &spec.kind {
            SpecKind::Value { ty, bytes } => {
                if bytes.len() as u64 == size {
                    return Ok(Arg::Value(bytes.clone()));
                }
                let message = format!(
                    "`{name}` is `{}`, {} bytes, which does not fit {described}",
                    type_name(*ty),
                    bytes.len()
                );
                let help = match check::scalar_type(param) {
                    Some(fits) if param.dims.is_empty() => {
                        let value = text.text.value.split_once('=').map_or("0", |(_, value)| value);
                        format!("write `{name}:{fits}={value}`")
                    }
                    _ => format!("a structure is given as bytes, as in `{name}:u8[{size}]=0`"),
                };
                Err((message, help))
            }
            SpecKind::Tensor(spec) => {
                let Some(buffer) = self.names.get(&spec.buffer) else {
                    // A definition that failed has been reported.
                    if spec.init.is_some() {
                        return Ok(Arg::Value(Vec::new()));
                    }
                    return Err((format!("there is no buffer `{}`", spec.buffer), self.known(&spec.buffer)));
                };
                let has = self.plan.buffers.get(*buffer).map_or(0, |buffer| buffer.contents.len() as u64);
                let needs = tensor::needs(&spec.map);
                if needs > has {
                    let message =
                        format!("the tensor takes {needs} bytes of `{}`, which has {has}", spec.buffer);
                    return Err((message, "make the buffer larger, or the tensor smaller".into()));
                }
                if size == crate::tensor::BYTES as u64 {
                    return Ok(Arg::Tensor(*buffer, Box::new(spec.map.clone())));
                }
                let help = "a tensor map is a `const __grid_constant__ CUtensorMap`, of 128 bytes";
                Err((format!("the tensor map `{name}` does not fit {described}"), help.into()))
            }
            SpecKind::Buffer { ty, count, init, .. } if by_value(Some(param), *ty, *count) => {
                contents(text, *ty, *count, init).map(Arg::Value)
            }
            SpecKind::Again if size == 8 && self.images.contains_key(name) => {
                Ok(Arg::Image(self.images.get(name).copied().unwrap_or(0)))
            }
            SpecKind::Buffer { .. } | SpecKind::Again => {
                let Some(buffer) = self.names.get(name) else {
                    // A definition that failed has been reported.
                    if spec.kind == SpecKind::Again {
                        return Err((format!("there is no buffer `{name}`"), self.known(name)));
                    }
                    return Ok(Arg::Value(Vec::new()));
                };
                if size == 8 {
                    return Ok(Arg::Buffer(*buffer));
                }
                let help = match check::scalar_type(param) {
                    Some(fits) if param.dims.is_empty() => format!("give a value, as in `{name}:{fits}=0`"),
                    _ => format!("a structure is given as bytes, as in `{name}:u8[{size}]=0`"),
                };
                Err((format!("the buffer `{name}` cannot be {described}: an address has 8 bytes"), help))
            }
        }
    }

    /// Arguments for a launch that gives none.
    fn guess(&mut self, entry: &Function<'_>, launch: &Launch, index: usize, several: bool) -> Vec<Arg> {
        let kernel = demangle(entry.name.text).short;
        let elements = infer::elements(launch.grid, launch.block);
        let guesses = infer::params(entry);
        let mut args = Vec::new();
        for (param, guess) in entry.params.iter().zip(guesses) {
            let own = param.name.text;
            let short =
                own.strip_prefix(entry.name.text).and_then(|rest| rest.strip_prefix('_')).unwrap_or(own);
            let mut name = if several { format!("{kernel}.{short}") } else { short.to_owned() };
            if self.names.contains_key(&name) {
                name = format!("{name}.{index}");
            }
            let (arg, what) = match guess {
                Guess::Pointer { ty, width } => {
                    let count = elements * u64::from(width) / ty.bytes() as u64;
                    let contents = vec![0; usize::try_from(elements * u64::from(width)).unwrap_or(0)];
                    self.plan.buffers.push(Buffer {
                        name: name.clone(),
                        ty,
                        contents,
                        unwritten: false,
                        owner: Owner::Device,
                    });
                    let buffer = self.plan.buffers.len() - 1;
                    self.names.insert(name.clone(), buffer);
                    (Arg::Buffer(buffer), format!("{}[{count}]=0", type_name(ty)))
                }
                Guess::Scalar(ty) => {
                    let value = match ty.bytes() {
                        _ if is_float(ty) => 1,
                        1 | 2 => 1,
                        _ => elements,
                    };
                    let bytes =
                        values::constant(&value.to_string(), ty).unwrap_or_else(|_| vec![0; ty.bytes()]);
                    (Arg::Value(bytes), format!("{}={value}", type_name(ty)))
                }
                Guess::Opaque(bytes) => {
                    let size = usize::try_from(bytes).unwrap_or(0);
                    (Arg::Value(vec![0; size]), format!("u8[{bytes}]=0, by value"))
                }
            };
            self.notes.push(Diagnostic::remark(format!("`{kernel}`: argument `{name}:{what}` assumed")));
            args.push(arg);
        }
        args
    }
}

/// The bytes of a buffer.
fn contents(text: &SpecText, ty: ElementType, count: u64, init: &Init) -> Result<Vec<u8>, (String, String)> {
    let bytes = count.saturating_mul(ty.bytes() as u64);
    let too_large = || (format!("a buffer of {bytes} bytes is too large"), "use fewer elements".to_owned());
    if bytes > MAX_BUFFER {
        return Err(too_large());
    }
    let (size, elements) = (usize::try_from(bytes), usize::try_from(count));
    let (Ok(size), Ok(elements)) = (size, elements) else { return Err(too_large()) };
    let mut room: Vec<u8> = Vec::new();
    room.try_reserve_exact(size).map_err(|_| too_large())?;
    match init {
        Init::Constant(element) => {
            // A single byte value is filled in one go, which matters for large zeroed buffers.
            if let Some(first) = element.first().filter(|first| element.iter().all(|byte| byte == *first)) {
                room.resize(size, *first);
            } else {
                (0..elements).for_each(|_| room.extend_from_slice(element));
            }
            Ok(room)
        }
        Init::Uninit => {
            room.resize(size, 0);
            Ok(room)
        }
        Init::Iota => Ok(values::iota(ty, elements)),
        Init::Random(seed) => Ok(values::random(ty, elements, *seed)),
        Init::File(path) => {
            let path = text.folder.join(path);
            let refuse = |error: &dyn std::fmt::Display| {
                let help =
                    "give a regular file; its path is relative to the folder of the launch description";
                (format!("cannot read `{}`: {error}", path.display()), help.to_owned())
            };
            // Asked before it is read: a device or a pipe may never end.
            let facts = std::fs::metadata(&path).map_err(|error| refuse(&error))?;
            if !facts.is_file() {
                return Err(refuse(&"it is no regular file"));
            }
            if facts.len() != size as u64 {
                let message =
                    format!("`{}` has {} bytes, but the buffer has {size}", path.display(), facts.len());
                let element = ty.bytes() as u64;
                let help = match facts.len() % element {
                    0 => format!("a buffer of {} elements would hold it", facts.len() / element),
                    _ => format!("it does not hold whole elements of `{}`", type_name(ty)),
                };
                return Err((message, help));
            }
            let read = std::fs::read(&path).map_err(|error| refuse(&error))?;
            Ok(read)
        }
        // Aliases have no contents of their own.
        Init::Alias(_) => Err(("an alias has no contents".into(), "give the contents themselves".into())),
    }
}
