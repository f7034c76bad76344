//! What a launch could look like when nobody says: which parameters are pointers, to what, and sizes that fit.
//!
//! A parameter is a pointer when its value, or a sum it is part of, is the base of a memory access, or when it goes
//! through `cvta`. The flow is followed through registers without regard to order, over moves, sums and selections;
//! products and shifts end it, so that an index does not make its parameter a pointer.

use rustc_hash::{FxHashMap, FxHashSet};

use super::check::element_type;
use crate::backend::ElementType;
use crate::isa::{Effect, Space, classify};
use crate::ptx::ast::{Block, Function, Instruction, Module, Operand, Statement, VarSpace, Variable};

const GRID: [u32; 3] = [2, 1, 1];
const BLOCK: [u32; 3] = [128, 1, 1];
/// Elements of a buffer at least, and at most however large the grid is.
const ELEMENTS: std::ops::RangeInclusive<u64> = 1024..=1 << 28;

/// What a parameter is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Guess {
    /// A pointer to elements of this type, accessed so many bytes at a time at most.
    Pointer {
        /// Element type.
        ty: ElementType,
        /// Widest access in bytes.
        width: u32,
    },
    /// A number of this type.
    Scalar(ElementType),
    /// Something else, such as a structure, of so many bytes.
    Opaque(u64),
}

/// Blocks when the description is silent: two, or two clusters where the kernel demands clusters.
pub(super) fn grid(entry: &Function<'_>) -> [u32; 3] {
    let cluster = entry.extent(".reqnctapercluster").unwrap_or([1; 3]);
    [0, 1, 2].map(|axis| GRID[axis].saturating_mul(cluster[axis]))
}

/// Dynamic shared memory when nothing says otherwise and the module has an array for it.
pub(super) fn shared(module: &Module<'_>) -> Option<u32> {
    const BYTES: u32 = 16 << 10;
    let dynamic = |v: &Variable<'_>| v.space == VarSpace::Shared && v.bytes().is_none_or(|bytes| bytes == 0);
    module.variables().any(dynamic).then_some(BYTES)
}

/// Threads of a block when the description is silent.
pub(super) fn block(entry: &Function<'_>) -> [u32; 3] {
    if let Some(required) = entry.extent(".reqntid") {
        return required;
    }
    match entry.extent(".maxntid") {
        Some(most) if most.iter().map(|n| u64::from(*n)).product::<u64>() < u64::from(BLOCK[0]) => most,
        _ => BLOCK,
    }
}

/// Elements that buffers get, which is also the value of integers.
pub(super) fn elements(grid: [u32; 3], block: [u32; 3]) -> u64 {
    let threads = grid.iter().chain(&block).fold(1u64, |n, e| n.saturating_mul(u64::from(*e)));
    threads.clamp(*ELEMENTS.start(), *ELEMENTS.end())
}

/// Guesses every parameter of an entry.
pub(super) fn params(entry: &Function<'_>) -> Vec<Guess> {
    let mut instructions = Vec::new();
    if let Some(body) = &entry.body {
        collect(body, &mut instructions);
    }
    let mut flow = Flow::new(&entry.params);
    while instructions.iter().fold(false, |changed, instruction| flow.step(instruction) | changed) {}
    instructions.iter().for_each(|instruction| flow.uses(instruction));
    entry.params.iter().enumerate().map(|(index, param)| flow.guess(index, param)).collect()
}

fn collect<'t, 'a>(block: &'t Block<'a>, out: &mut Vec<&'t Instruction<'a>>) {
    for statement in &block.statements {
        match statement {
            Statement::Block(inner) => collect(inner, out),
            Statement::Instruction(instruction) => out.push(instruction),
            _ => {}
        }
    }
}

type Params = FxHashSet<usize>;

struct Flow<'t> {
    by_name: FxHashMap<&'t str, usize>,
    /// Parameters as large as an address.
    wide: Params,
    /// Which parameters a register's value may be built on.
    origins: FxHashMap<&'t str, Params>,
    /// Went through `cvta`, or declared `.ptr`.
    certain: Params,
    /// Type and widest access.
    pointers: FxHashMap<usize, (ElementType, u32)>,
    floats: Params,
}

impl<'t> Flow<'t> {
    fn new(params: &'t [Variable<'_>]) -> Self {
        let enumerated = || params.iter().enumerate();
        Self {
            by_name: enumerated().map(|(i, param)| (param.name.text, i)).collect(),
            wide: enumerated().filter(|(_, p)| p.bytes() == Some(8)).map(|(i, _)| i).collect(),
            origins: FxHashMap::default(),
            certain: enumerated().filter(|(_, param)| param.ptr).map(|(i, _)| i).collect(),
            pointers: FxHashMap::default(),
            floats: Params::default(),
        }
    }

    fn of<'o>(&self, operand: &Operand<'o>) -> Option<&Params> {
        match operand {
            Operand::Name(name, _) => self.origins.get(*name),
            _ => None,
        }
    }

    /// Carries origins over one instruction; tells whether anything changed.
    fn step<'a: 't>(&mut self, instruction: &Instruction<'a>) -> bool {
        let Some((target, sources)) = instruction.operands.split_first() else { return false };
        let mut found = Params::default();
        match instruction.opcode.text {
            "ld" if instruction.modifiers().iter().any(|m| m.text.starts_with("param")) => {
                if let Some(Operand::Address(address)) = sources.first()
                    && let Some(base) = address.base
                {
                    found.extend(self.by_name.get(base.text));
                }
            }
            "mov" | "cvta" | "add" | "sub" | "selp" | "and" | "or" => {
                sources.iter().filter_map(|s| self.of(s)).for_each(|origin| found.extend(origin));
            }
            "mad" => found.extend(sources.get(2).and_then(|s| self.of(s)).into_iter().flatten()),
            _ => {}
        }
        if found.is_empty() {
            return false;
        }
        if instruction.opcode.text == "cvta" && found.len() == 1 {
            self.certain.extend(&found);
        }
        let targets = match target {
            Operand::Vector(items) => items,
            single => std::slice::from_ref(single),
        };
        let mut changed = false;
        for target in targets {
            if let Operand::Name(name, _) = target {
                let origin = self.origins.entry(name).or_default();
                let before = origin.len();
                origin.extend(&found);
                changed |= origin.len() != before;
            }
        }
        changed
    }

    fn uses(&mut self, instruction: &Instruction<'_>) {
        let float = |m: &str| matches!(m, "f16" | "bf16" | "f32" | "f64");
        if instruction.modifiers().iter().any(|m| float(m.text)) {
            let direct: Vec<_> =
                instruction.operands.iter().filter_map(|o| self.of(o)).flatten().copied().collect();
            self.floats.extend(direct);
        }
        let typed = instruction.modifiers().iter().filter_map(|m| element_type(m.text)).last();
        match classify(instruction).effect {
            Effect::Access(access) if matches!(access.space, Space::Global | Space::Generic) => {
                let address = instruction.operands.get(usize::from(access.address));
                let ty = typed.unwrap_or(match access.element {
                    1 => ElementType::U8,
                    2 => ElementType::U16,
                    8 => ElementType::U64,
                    _ => ElementType::U32,
                });
                self.based(address, ty, access.bytes());
            }
            Effect::NotCovered { .. } | Effect::Unknown => {
                let ty = typed.unwrap_or(ElementType::U32);
                instruction
                    .operands
                    .iter()
                    .for_each(|operand| self.based(Some(operand), ty, ty.bytes() as u32));
            }
            _ => {}
        }
    }

    /// An access of `width` bytes whose address is this operand.
    fn based(&mut self, address: Option<&Operand<'_>>, ty: ElementType, width: u32) {
        let Some(Operand::Address(address)) = address else { return };
        let Some(origin) = address.base.and_then(|base| self.origins.get(base.text)) else { return };
        let wide: Vec<_> = origin.iter().copied().filter(|param| self.wide.contains(param)).collect();
        // A sum of two parameters: the certain pointer is the base, the other an offset.
        let certain = wide.iter().any(|param| self.certain.contains(param));
        for param in wide {
            if !certain || self.certain.contains(&param) {
                let (_, widest) = self.pointers.entry(param).or_insert((ty, width));
                *widest = width.max(*widest);
            }
        }
    }

    fn guess(&self, index: usize, param: &Variable<'_>) -> Guess {
        if let Some((ty, width)) = self.pointers.get(&index) {
            return Guess::Pointer { ty: *ty, width: (*width).max(ty.bytes() as u32) };
        }
        let bytes = param.bytes().unwrap_or(0);
        if self.certain.contains(&index) && bytes == 8 {
            return Guess::Pointer { ty: ElementType::U32, width: 4 };
        }
        if !param.dims.is_empty() || param.vector != 1 {
            return Guess::Opaque(bytes);
        }
        let float = self.floats.contains(&index);
        match (param.ty.text, element_type(param.ty.text)) {
            (".b32", _) if float => Guess::Scalar(ElementType::F32),
            (".b64", _) if float => Guess::Scalar(ElementType::F64),
            (_, Some(ty)) => Guess::Scalar(ty),
            (_, None) => Guess::Opaque(bytes),
        }
    }
}
