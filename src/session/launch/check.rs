//! What the module and the hardware allow: kernels, sizes of grids and blocks, sizes of arguments.

use super::Located;
use crate::backend::ElementType;
use crate::diag::{Diagnostic, nearest, quoted};
use crate::explain::names::demangle;
use crate::ptx::ast::{Function, Module, Variable};
use crate::span::SourceFile;

const MAX_THREADS: u64 = 1024;
const MAX_BLOCK: [u32; 3] = [1024, 1024, 64];
const MAX_GRID: [u32; 3] = [i32::MAX as u32, 65_535, 65_535];
/// Shared memory of a block on the largest devices, 227 KiB.
const MAX_SHARED: u32 = 232_448;
/// Blocks of the largest clusters, which are beyond the portable 8.
const MAX_CLUSTER: u64 = 16;

/// The entry of this name: as PTX has it, else demangled, else the demangled name without parameters and namespaces
/// if only one kernel has it.
pub(super) fn find_entry<'m, 'a>(module: &'m Module<'a>, name: &str) -> Option<&'m Function<'a>> {
    if let Some(entry) = module.entries().find(|entry| entry.name.text == name) {
        return Some(entry);
    }
    let named: Vec<_> = module.entries().map(|entry| (demangle(entry.name.text), entry)).collect();
    if let Some((_, entry)) = named.iter().find(|(full, _)| full.full == name) {
        return Some(entry);
    }
    let mut short = named.iter().filter(|(full, _)| full.short == name);
    match (short.next(), short.next()) {
        (Some((_, entry)), None) => Some(entry),
        _ => None,
    }
}

/// The entry that a launch means.
pub(super) fn entry<'m, 'a>(
    source: &SourceFile,
    module: &'m Module<'a>,
    kernel: Option<&Located<String>>,
    launch: Option<&(SourceFile, crate::span::Span)>,
) -> Result<&'m Function<'a>, Diagnostic> {
    let names: Vec<_> = module.entries().map(|entry| demangle(entry.name.text).short).collect();
    let path = source.path().display();
    let list = format!("its kernels are {}", quoted(&names, 10));
    let Some(kernel) = kernel else {
        let mut entries = module.entries();
        return match (entries.next(), entries.next()) {
            (Some(only), None) => Ok(only),
            _ => {
                let message = format!("the launch names no kernel, and `{path}` has {}", names.len());
                let error = Diagnostic::error(message).note(list).help("add `kernel = \"NAME\"`");
                Err(match launch {
                    Some((file, span)) => error.at(file, *span, "this launch"),
                    None => error,
                })
            }
        };
    };
    if let Some(entry) = find_entry(module, &kernel.value) {
        return Ok(entry);
    }
    let name = &kernel.value;
    let error =
        kernel.error(format!("`{path}` has no kernel `{name}`"), "not a kernel of this module").note(list);
    if let Some(function) = module.functions().find(|f| f.name.text == name) {
        let what = if function.body.is_some() { "a device function" } else { "only declared" };
        return Err(error.help(format!("`{name}` is {what}; only entries with a body can be launched")));
    }
    let raw = module.entries().map(|entry| entry.name.text);
    Err(match nearest(name, names.iter().map(String::as_str).chain(raw)) {
        Some(near) => error.help(format!("did you mean `{near}`?")),
        None => error.help("name one of them"),
    })
}

fn product(extent: [u32; 3]) -> u64 {
    extent.iter().fold(1, |n, e| n.saturating_mul(u64::from(*e)))
}

/// How extents are written in messages.
pub(super) fn show(extent: [u32; 3]) -> String {
    format!("({},{},{})", extent[0], extent[1], extent[2])
}

/// An extent as given, or as assumed.
pub(super) struct Sized<'l> {
    pub(super) value: [u32; 3],
    pub(super) given: Option<&'l Located<[u32; 3]>>,
}

impl Sized<'_> {
    fn error(&self, message: String, label: String) -> Diagnostic {
        match self.given {
            Some(given) => given.error(message, label),
            None => Diagnostic::error(message).note(format!("{} was assumed", show(self.value))),
        }
    }
}

fn limits(what: &str, sized: &Sized<'_>, max: [u32; 3], errors: &mut Vec<Diagnostic>) -> bool {
    for ((size, max), axis) in sized.value.iter().zip(max).zip(["x", "y", "z"]) {
        if *size == 0 || *size > max {
            let message = format!("a {what} cannot have {size} in {axis}");
            let label = format!("1 to {max} are possible in {axis}");
            errors.push(sized.error(message, label).help(format!("change the {what}'s size in {axis}")));
            return false;
        }
    }
    true
}

/// Checks the grid.
pub(super) fn grid(grid: &Sized<'_>, errors: &mut Vec<Diagnostic>) {
    if !limits("grid", grid, MAX_GRID, errors) {
        return;
    }
    // Records hold a block's linear number in 32 bits.
    if product(grid.value) > u64::from(u32::MAX) {
        let message = format!("a grid of {} blocks is too large to be checked", product(grid.value));
        errors.push(grid.error(message, "more than 4294967295 blocks".into()).help("launch fewer blocks"));
    }
}

/// Checks the block against the hardware and the entry's directives.
pub(super) fn block(
    source: &SourceFile,
    entry: &Function<'_>,
    block: &Sized<'_>,
    errors: &mut Vec<Diagnostic>,
) {
    if !limits("block", block, MAX_BLOCK, errors) {
        return;
    }
    let threads = product(block.value);
    if threads > MAX_THREADS {
        let message = format!("a block of {threads} threads is too large");
        let label = format!("at most {MAX_THREADS} threads");
        errors.push(block.error(message, label).help("use smaller blocks and more of them"));
        return;
    }
    let kernel = demangle(entry.name.text).short;
    let span = |name: &str| entry.directives.iter().find(|d| d.name.text == name).map(|d| d.span);
    if let (Some(required), Some(at)) = (entry.extent(".reqntid"), span(".reqntid"))
        && required != block.value
    {
        let message = format!("`{kernel}` must be launched with blocks of {}", show(required));
        let error = block.error(message, format!("this is {}", show(block.value)));
        let [x, y, z] = required;
        errors.push(error.at(source, at, "required here").help(format!("write `block = [{x},{y},{z}]`")));
    } else if let (Some(most), Some(at)) = (entry.extent(".maxntid"), span(".maxntid"))
        && threads > product(most)
    {
        let message = format!("`{kernel}` takes at most {} threads in a block", product(most));
        let error = block.error(message, format!("{threads} threads"));
        errors.push(
            error
                .at(source, at, "limited here")
                .help("use smaller blocks, or compile with larger launch bounds"),
        );
    }
}

/// The cluster that the entry demands.
pub(super) fn required_cluster(source: &SourceFile, entry: &Function<'_>) -> Option<Located<[u32; 3]>> {
    let value = entry.extent(".reqnctapercluster")?;
    let span = entry.directives.iter().find(|d| d.name.text == ".reqnctapercluster")?.span;
    Some(Located { value, file: source.clone(), span })
}

/// Checks the cluster against the grid.
pub(super) fn cluster(cluster: &Located<[u32; 3]>, grid: [u32; 3], errors: &mut Vec<Diagnostic>) {
    let size = product(cluster.value);
    if size == 0 || size > MAX_CLUSTER {
        let message = format!("a cluster cannot have {size} blocks");
        errors.push(
            cluster
                .error(message, format!("1 to {MAX_CLUSTER} blocks"))
                .help("8 blocks and fewer are portable"),
        );
    } else if grid.iter().zip(cluster.value).any(|(grid, cluster)| grid % cluster != 0) {
        let message = format!("clusters of {} do not divide the grid {}", show(cluster.value), show(grid));
        let label = "each size must divide that of the grid";
        errors.push(cluster.error(message, label).help("change the grid or the cluster"));
    }
}

/// Checks the dynamic shared memory.
pub(super) fn shared(shared: &Located<u32>, errors: &mut Vec<Diagnostic>) {
    if shared.value > MAX_SHARED {
        let message = format!("a block cannot have {} bytes of shared memory", shared.value);
        let label = format!("at most {MAX_SHARED} bytes");
        errors.push(shared.error(message, label).help("no device has more"));
    }
}

/// A parameter for people: "parameter 2, `n` (`.u32`, 4 bytes)".
pub(super) fn describe(index: usize, param: &Variable<'_>) -> String {
    let bytes = param.bytes().unwrap_or(0);
    let array =
        if param.dims.is_empty() { String::new() } else { format!("[{}]", param.count().unwrap_or(0)) };
    format!("parameter {index}, `{}` (`{}{array}`, {bytes} bytes)", param.name.text, param.ty.text)
}

/// A type for a scalar of this size, to suggest.
pub(super) fn scalar_type(param: &Variable<'_>) -> Option<&'static str> {
    let float = param.ty.text.starts_with(".f");
    match (param.bytes()?, float) {
        (1, _) => Some("i8"),
        (2, true) => Some("f16"),
        (2, false) => Some("i16"),
        (4, true) => Some("f32"),
        (4, false) => Some("i32"),
        (8, true) => Some("f64"),
        (8, false) => Some("i64"),
        _ => None,
    }
}

/// Element type of a PTX type, with or without its dot.
pub(super) fn element_type(ptx: &str) -> Option<ElementType> {
    Some(match ptx.trim_start_matches('.') {
        "s8" => ElementType::I8,
        "u8" | "b8" => ElementType::U8,
        "s16" => ElementType::I16,
        "u16" | "b16" => ElementType::U16,
        "s32" => ElementType::I32,
        "u32" | "b32" => ElementType::U32,
        "s64" => ElementType::I64,
        "u64" | "b64" => ElementType::U64,
        "f16" | "f16x2" => ElementType::F16,
        "bf16" | "bf16x2" => ElementType::Bf16,
        "f32" => ElementType::F32,
        "f64" => ElementType::F64,
        _ => return None,
    })
}
