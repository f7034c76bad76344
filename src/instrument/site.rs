//! Sites: one per instruction that is logged. All that is static about it lives here, not in the records.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::bundle::{Bundler, Bundling, Member};
use super::reach::each_name;
use crate::abi::Payload;
use crate::isa::{
    self, Access, AccessKind, AsyncCopy, Barrier, ClusterBarrier, CopyBytes, Effect, Fence, Fill, GroupOp,
    ImageAccess, Mbarrier, MbarrierOp, Product, ProxyFence, Space, Tile,
};
use crate::ptx::ast::{
    Block, Function, FunctionKind, Instruction, Module, Operand, Statement, VarSpace, Variable,
};
use crate::ptx::{Line, LineTable, Place, SourceLoc};
use crate::span::Span;

/// Number of a site in its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SiteId(pub u32);

/// What a site logs.
#[derive(Clone, Debug, PartialEq)]
pub enum SiteKind {
    /// A memory access in global, shared or generic space.
    Access(Access),
    /// A fence.
    Fence(Fence),
    /// A CTA barrier.
    Barrier(Barrier),
    /// `bar.warp.sync`, whose mask is operand 0.
    WarpBarrier,
    /// A `.sync` warp instruction that orders no memory; the operand with its mask.
    Converge(u8),
    /// The end of threads: `exit`, or `ret` of an entry.
    Exit,
    /// The issue of an asynchronous copy, store or reduction. `a` is the destination, `read` the source's tagged address
    /// (for a store or reduction from registers, the mbarrier's tagged address) and `written` depends: bytes read, if
    /// they are limited; a bulk copy's `abi::bulk_word`; the value stored. Of a tensor copy, `a` is its place in shared memory,
    /// `read` the digest of the tensor map, and its bytes are left out.
    AsyncCopy(AsyncCopy),
    /// The coordinates of a tensor copy's box, as `abi::coordinate_words`, logged before the copy itself, whose site is the
    /// one before this.
    Coordinates,
    /// A group of asynchronous copies is closed or waited for.
    Group(GroupOp),
    /// An mbarrier operation. `a` is its address; `read` the state that an arrival gave, 0 for none; `written` is
    /// `abi::mbarrier_word` of arrivals and bytes, or the state or parity that was waited for. Waits are logged only when
    /// the answer was yes.
    Mbarrier(Mbarrier),
    /// `barrier.cluster`
    ClusterBarrier(ClusterBarrier),
    /// A proxy fence.
    ProxyFence(ProxyFence),
    /// A weak write of a range: `a` is its address; `written` its bytes, if they are not static.
    Fill(Fill),
    /// A matrix that a warp accesses together: `a` is its address, `read` the stride in elements.
    Tile(Tile),
    /// A product of a warpgroup, logged by each of its warps: `a` is the descriptor of the second matrix, `read` that of the first, or 0.
    Product(Product),
    /// An access to a texture or a surface: `a` is its handle; `read` holds two coordinates of 32 bits, and `written` the third, if
    /// there is one.
    Image(ImageAccess),
    /// The address of a shared variable, logged once a launch by thread 0 of block 0 at the start of the entry.
    SharedVariable(SharedVariable),
}

/// A variable in shared memory, as declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedVariable {
    /// Its name in PTX.
    pub name: Arc<str>,
    /// Its bytes; `None` for dynamic shared memory (`.extern .shared x[]`).
    pub bytes: Option<u64>,
    /// Bytes of one element.
    pub element: u64,
}

/// What records of coordinates hold.
pub const COORDINATES: Payload = Payload { a: true, read: true, written: true, tickets: false };

/// One logged instruction.
#[derive(Clone, Debug)]
pub struct Site {
    /// Its number.
    pub id: SiteId,
    /// What it logs.
    pub kind: SiteKind,
    /// The function it is in, as PTX names it.
    pub function: Arc<str>,
    /// Opcode with its modifiers, such as `st.global.u32`; `.shared` for variables.
    pub opcode: Arc<str>,
    /// The instruction in the PTX text.
    pub span: Span,
    /// Where its source is, if the module has lines.
    pub loc: Option<Arc<SourceLoc>>,
    /// Whether one record tells of several like it.
    pub bundling: Bundling,
}

impl Site {
    /// The access to a texture or a surface, if it is one.
    pub fn image(&self) -> Option<&ImageAccess> {
        match &self.kind {
            SiteKind::Image(access) => Some(access),
            _ => None,
        }
    }

    /// The access, if it is one.
    pub fn access(&self) -> Option<&Access> {
        match &self.kind {
            SiteKind::Access(access) => Some(access),
            _ => None,
        }
    }

    /// What its own records hold.
    pub fn payload(&self) -> Payload {
        match &self.kind {
            SiteKind::Access(access) => {
                let strong = access.order.is_strong();
                let load = access.kind == AccessKind::Load;
                Payload {
                    a: true,
                    read: access.is_rmw() || (load && strong),
                    written: access.writes() && access.rows.is_none(),
                    tickets: strong,
                }
            }
            SiteKind::Fence(_) => Payload { tickets: true, ..Payload::NONE },
            SiteKind::Barrier(_)
            | SiteKind::WarpBarrier
            | SiteKind::Converge(_)
            | SiteKind::SharedVariable(_) => Payload { a: true, ..Payload::NONE },
            SiteKind::AsyncCopy(copy) => Payload {
                a: true,
                read: true,
                written: copy.bulk || copy.from.is_none() || matches!(copy.bytes, CopyBytes::Limited(..)),
                tickets: false,
            },
            SiteKind::Coordinates => COORDINATES,
            SiteKind::Mbarrier(mbarrier) => Payload {
                a: true,
                read: matches!(mbarrier.op, MbarrierOp::Arrive { .. }),
                written: !matches!(mbarrier.op, MbarrierOp::Inval | MbarrierOp::CopyArrive { .. }),
                tickets: true,
            },
            SiteKind::Fill(fill) => Payload { a: true, written: fill.bytes.is_none(), ..Payload::NONE },
            SiteKind::Tile(_) | SiteKind::Product(_) => Payload { a: true, read: true, ..Payload::NONE },
            SiteKind::Image(access) => {
                Payload { a: true, read: true, written: access.shape.coordinates() > 2, tickets: false }
            }
            SiteKind::Group(_) | SiteKind::ClusterBarrier(_) | SiteKind::ProxyFence(_) | SiteKind::Exit => {
                Payload::NONE
            }
        }
    }
}

/// An instruction that is not logged although it may matter: it makes a run that executes it inconclusive.
#[derive(Clone, Debug)]
pub struct Unlogged {
    /// The function it is in.
    pub function: Arc<str>,
    /// Opcode with its modifiers.
    pub opcode: Arc<str>,
    /// The instruction in the PTX text.
    pub span: Span,
    /// What it is or which modifier is not known.
    pub why: String,
    /// It may order other accesses.
    pub orders: bool,
    /// Its source, if known.
    pub loc: Option<Arc<SourceLoc>>,
}

/// All sites of a module in text order.
#[derive(Clone, Debug, Default)]
pub struct SiteTable {
    /// The number of the first site.
    first: u32,
    sites: Vec<Site>,
    unlogged: Vec<Unlogged>,
    /// The starts of the instructions with a site, which come in the order of the text.
    by_start: Vec<(u32, SiteId)>,
    /// Where the sites of a function lie; a name may be given twice.
    by_function: rustc_hash::FxHashMap<Arc<str>, Vec<Range<usize>>>,
}

impl SiteTable {
    /// Numbers the sites of a module.
    pub fn new(module: &Module<'_>) -> Self {
        Self::numbered(module, 0)
    }

    /// Numbers the sites of a module from `first` on, for a program of several modules.
    pub fn numbered(module: &Module<'_>, first: u32) -> Self {
        let lines = LineTable::new(module);
        let mut table = Self { first, ..Self::default() };
        let mut opcodes = rustc_hash::FxHashMap::default();
        let references: Vec<_> =
            module.variables().filter(|v| is_reference(v)).map(|v| v.name.text).collect();
        let mut module_shared = SharedByName::default();
        for variable in module.variables().filter(|v| v.space == VarSpace::Shared) {
            module_shared.has_percent |= variable.name.text.starts_with('%');
            module_shared.variables.entry(variable.name.text).or_default().push(variable);
        }
        for function in module.functions() {
            let mut walk = Walk {
                table: &mut table,
                lines: &lines,
                function,
                name: function.name.text.into(),
                line: None,
                loc: None,
                calls: Calls::default(),
                bundler: Bundler::default(),
                opcodes: &mut opcodes,
                references: &references,
            };
            let first = walk.table.sites.len();
            walk.function(&module_shared);
            let Walk { name, bundler, .. } = walk;
            table.bundle(bundler.done);
            let range = first..table.sites.len();
            if !range.is_empty() {
                table.by_function.entry(name).or_default().push(range);
            }
        }
        table
    }

    /// The same, where each site logs for itself.
    pub fn without_bundles(mut self) -> Self {
        self.sites.iter_mut().for_each(|site| site.bundling = Bundling::Alone);
        self
    }

    fn bundle(&mut self, bundles: Vec<Vec<Member>>) {
        for members in bundles {
            let at = |member: &Member| member.site.0.wrapping_sub(self.first) as usize;
            for member in members.iter().skip(1) {
                if let Some(site) = self.sites.get_mut(at(member)) {
                    site.bundling = Bundling::Follows;
                }
            }
            if let Some(leader) = members.first().map(at).and_then(|at| self.sites.get_mut(at)) {
                leader.bundling = Bundling::Leads(members.into());
            }
        }
    }

    /// The site of this number.
    pub fn get(&self, id: SiteId) -> Option<&Site> {
        self.sites.get(id.0.checked_sub(self.first)? as usize)
    }

    /// The number of the first site.
    pub fn first(&self) -> u32 {
        self.first
    }

    /// The number behind that of the last site.
    pub fn end(&self) -> u32 {
        self.first.saturating_add(u32::try_from(self.sites.len()).unwrap_or(u32::MAX))
    }

    /// The site of the instruction that starts at this byte of the text.
    pub fn at(&self, instruction: Span) -> Option<&Site> {
        let at = self.by_start.binary_search_by_key(&instruction.start, |(start, _)| *start).ok()?;
        self.get(self.by_start.get(at)?.1)
    }

    /// All sites.
    pub fn sites(&self) -> &[Site] {
        &self.sites
    }

    /// Sites of a function.
    pub fn of_function<'s>(&'s self, function: &'s str) -> impl Iterator<Item = &'s Site> {
        let ranges = self.by_function.get(function).map_or(&[][..], Vec::as_slice);
        ranges.iter().filter_map(|range| self.sites.get(range.clone())).flatten()
    }

    /// Instructions that may matter and are not logged.
    pub fn unlogged(&self) -> &[Unlogged] {
        &self.unlogged
    }

    /// Whether one of these, by index into `unlogged`, may order memory.
    pub fn may_order(&self, unlogged: &[u32]) -> bool {
        unlogged.iter().filter_map(|index| self.unlogged.get(*index as usize)).any(|unlogged| unlogged.orders)
    }
}

struct Walk<'w, 'a> {
    table: &'w mut SiteTable,
    lines: &'w LineTable,
    function: &'w Function<'a>,
    name: Arc<str>,
    /// The last `.loc`.
    line: Option<Line>,
    /// The same with names, once something has asked for it.
    loc: Option<Arc<SourceLoc>>,
    calls: Calls,
    bundler: Bundler<'a>,
    /// One text for all uses of an opcode.
    opcodes: &'w mut rustc_hash::FxHashMap<(&'a str, &'a str), Arc<str>>,
    /// Textures, samplers and surfaces that the module declares.
    references: &'w [&'a str],
}

/// The shared variables of a module. A name may be declared more than once.
#[derive(Default)]
struct SharedByName<'m, 'a> {
    variables: rustc_hash::FxHashMap<&'a str, Vec<&'m Variable<'a>>>,
    /// Whether any is called like a register.
    has_percent: bool,
}

/// Calls that code was inlined through. A `.loc` names one call only; code that was inlined more than once has a `.loc`
/// for each call before its own, outermost first.
#[derive(Default)]
struct Calls {
    /// A call and the chain that it was itself inlined through.
    chains: Vec<(Place, Option<u32>)>,
    /// The chain of each place seen.
    of: rustc_hash::FxHashMap<Place, Option<u32>>,
}

/// Frames kept of one chain; no compiler inlines that deep.
const MAX_FRAMES: usize = 32;

impl Calls {
    fn add(&mut self, line: Line) {
        let chain = line.inlined_at.map(|call| {
            self.chains.push((call, self.of.get(&call).copied().flatten()));
            u32::try_from(self.chains.len() - 1).unwrap_or(u32::MAX)
        });
        self.of.insert(line.own, chain);
    }

    /// The calls of the place, innermost first.
    fn chain(&self, place: Place) -> impl Iterator<Item = Place> {
        let link = |at: Option<u32>| self.chains.get(at? as usize).copied();
        let first = link(self.of.get(&place).copied().flatten());
        std::iter::successors(first, move |(_, outer)| link(*outer)).map(|(call, _)| call).take(MAX_FRAMES)
    }
}

impl<'a> Walk<'_, 'a> {
    /// The source of what comes next.
    fn loc(&mut self) -> Option<Arc<SourceLoc>> {
        let line = self.line?;
        let resolve = || Arc::new(self.lines.resolve(line.own, self.calls.chain(line.own)));
        Some(Arc::clone(self.loc.get_or_insert_with(resolve)))
    }

    /// The full opcode of an instruction.
    fn opcode(&mut self, instruction: &Instruction<'a>) -> Arc<str> {
        let written = instruction.opcode_as_written();
        Arc::clone(self.opcodes.entry(written).or_insert_with(|| instruction.full_opcode().into()))
    }

    fn function(&mut self, module_shared: &SharedByName<'_, '_>) {
        let function = self.function;
        let Some(body) = &function.body else { return };
        if function.kind == FunctionKind::Entry {
            let mut shared = Vec::new();
            shared_variables(body, &mut shared);
            // Module variables count where the entry's own text names them: taking the address of another would
            // make ptxas allocate it.
            let mut named: Vec<&Variable<'_>> = Vec::new();
            if !module_shared.variables.is_empty() {
                let mut names = rustc_hash::FxHashSet::default();
                each_name(body, &mut |name| {
                    // Most names are registers, and no variable is called like one.
                    let is_candidate = !name.starts_with('%') || module_shared.has_percent;
                    if is_candidate && module_shared.variables.contains_key(name) {
                        names.insert(name);
                    }
                });
                named.extend(names.iter().filter_map(|name| module_shared.variables.get(name)).flatten());
            }
            named.sort_by_key(|variable| variable.name.span.start);
            let named = named.into_iter().map(|variable| shared_variable(variable));
            for (variable, span) in named.chain(shared) {
                self.push(SiteKind::SharedVariable(variable), ".shared".into(), span);
            }
        }
        self.block(body);
        self.bundler.close();
        if function.kind == FunctionKind::Entry && is_open(body) {
            let end = body.span.end;
            self.push(SiteKind::Exit, "ret".into(), Span { start: end.saturating_sub(1), end });
            self.index(end.saturating_sub(1));
        }
    }

    /// The last site is found by where it starts.
    fn index(&mut self, start: u32) {
        let id = SiteId(self.table.end().saturating_sub(1));
        self.table.by_start.push((start, id));
    }

    fn block(&mut self, block: &Block<'a>) {
        for statement in &block.statements {
            match statement {
                Statement::Block(inner) => {
                    self.bundler.close();
                    self.block(inner);
                    self.bundler.close();
                }
                Statement::Label(_) => self.bundler.close(),
                Statement::Instruction(instruction) => self.instruction(instruction),
                Statement::Directive { directive, .. } if directive.name.text == ".loc" => {
                    self.line = self.lines.read(directive);
                    self.loc = None;
                    if let Some(line) = self.line {
                        self.calls.add(line);
                    }
                }
                _ => {}
            }
        }
    }

    fn instruction(&mut self, instruction: &Instruction<'a>) {
        let classified = isa::classify(instruction);
        let unlogged = self.table.unlogged.len();
        let kind = match classified.effect {
            Effect::None | Effect::Call => None,
            Effect::Access(access) => match access.space {
                Space::Local | Space::Const | Space::Param => None,
                _ => Some(SiteKind::Access(access)),
            },
            Effect::Fence(fence) => Some(SiteKind::Fence(fence)),
            Effect::Barrier(barrier) => Some(SiteKind::Barrier(barrier)),
            Effect::WarpBarrier => Some(SiteKind::WarpBarrier),
            Effect::Converge(mask) => Some(SiteKind::Converge(mask)),
            Effect::AsyncCopy(copy) => Some(SiteKind::AsyncCopy(copy)),
            Effect::Group(group) => Some(SiteKind::Group(group)),
            Effect::Mbarrier(mbarrier) => Some(SiteKind::Mbarrier(mbarrier)),
            Effect::ClusterBarrier(barrier) => Some(SiteKind::ClusterBarrier(barrier)),
            Effect::ProxyFence(fence) => Some(SiteKind::ProxyFence(fence)),
            Effect::Fill(fill) => Some(SiteKind::Fill(fill)),
            Effect::Tile(tile) => Some(SiteKind::Tile(tile)),
            Effect::Product(product) => Some(SiteKind::Product(product)),
            Effect::Image(access) if self.is_by_reference(instruction, &access) => {
                self.unlogged(
                    instruction,
                    "which memory a texture reference stands for is not known".into(),
                    false,
                );
                None
            }
            Effect::Image(access) => Some(SiteKind::Image(access)),
            Effect::Exit => Some(SiteKind::Exit),
            Effect::Return => (self.function.kind == FunctionKind::Entry).then_some(SiteKind::Exit),
            Effect::NotCovered { what, orders } => {
                self.unlogged(instruction, format!("{what} is not covered yet"), orders);
                None
            }
            Effect::Unknown => {
                self.unlogged(instruction, "an unknown instruction that may touch memory".into(), true);
                None
            }
        };
        if let (Some(word), true) = (classified.unknown, kind.is_some()) {
            self.unlogged(instruction, format!("the modifier `.{}` is not known", word.text), true);
        }
        if let Some(kind) = kind {
            let opcode = self.opcode(instruction);
            self.bundler.logged(instruction, SiteId(self.table.end()), &kind);
            let is_tensor =
                matches!(kind, SiteKind::AsyncCopy(AsyncCopy { bytes: CopyBytes::Tensor(_), .. }));
            self.push(kind, Arc::clone(&opcode), instruction.span);
            self.index(instruction.span.start);
            if is_tensor {
                self.push(SiteKind::Coordinates, opcode, instruction.span);
            }
        } else {
            self.bundler.passed(instruction);
        }
        if self.table.unlogged.len() > unlogged {
            self.bundler.close();
        }
    }

    /// Whether an access to an image names what the module or the function declares, and has no handle in a register.
    fn is_by_reference(&self, instruction: &Instruction<'a>, access: &ImageAccess) -> bool {
        let Some(Operand::Address(address)) = instruction.operands.get(usize::from(access.address)) else {
            return false;
        };
        let is_parameter = |name| self.function.params.iter().any(|p| p.name.text == name && is_reference(p));
        address.base.is_none_or(|base| self.references.contains(&base.text) || is_parameter(base.text))
    }

    fn push(&mut self, kind: SiteKind, opcode: Arc<str>, span: Span) {
        let id = SiteId(self.table.end());
        let (function, loc) = (self.name.clone(), self.loc());
        let bundling = Bundling::Alone;
        self.table.sites.push(Site { id, kind, function, opcode, span, loc, bundling });
    }

    fn unlogged(&mut self, instruction: &Instruction<'a>, why: String, orders: bool) {
        let (opcode, loc) = (self.opcode(instruction), self.loc());
        let (function, span) = (self.name.clone(), instruction.span);
        self.table.unlogged.push(Unlogged { function, opcode, span, why, orders, loc });
    }
}

/// Whether a variable is a texture, a sampler or a surface.
fn is_reference(variable: &Variable<'_>) -> bool {
    variable.space == VarSpace::Tex || matches!(variable.ty.text, ".texref" | ".samplerref" | ".surfref")
}

/// Whether threads may come to the end of a body.
fn is_open(body: &Block<'_>) -> bool {
    let mut labels = Vec::new();
    let open = is_open_but_for_labels(body, &mut labels);
    // Labels at the end, as debug information has them, matter if something jumps there.
    let mut jumped_to = false;
    if !open && !labels.is_empty() {
        each_name(body, &mut |name| jumped_to |= labels.contains(&name));
    }
    open || jumped_to
}

/// Whether execution falls through to the end; gives the labels there.
fn is_open_but_for_labels<'a>(block: &Block<'a>, labels: &mut Vec<&'a str>) -> bool {
    for statement in block.statements.iter().rev() {
        match statement {
            Statement::Label(label) => labels.push(label.text),
            Statement::Block(inner) => return is_open_but_for_labels(inner, labels),
            Statement::Instruction(last) => {
                let ends = matches!(last.opcode.text, "ret" | "exit" | "bra" | "brx" | "trap");
                return last.guard.is_some() || !ends;
            }
            _ => {}
        }
    }
    true
}

fn shared_variable(variable: &Variable<'_>) -> (SharedVariable, Span) {
    let bytes = variable.bytes().filter(|bytes| *bytes > 0);
    let shared =
        SharedVariable { name: variable.name.text.into(), bytes, element: variable.element_bytes().max(1) };
    (shared, variable.span)
}

fn shared_variables(block: &Block<'_>, out: &mut Vec<(SharedVariable, Span)>) {
    for statement in &block.statements {
        match statement {
            Statement::Variable(variable) if variable.space == VarSpace::Shared => {
                out.push(shared_variable(variable))
            }
            // Inner scopes may repeat a name; their variables are out of reach at the entry's start.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_inlining_is_followed_to_the_kernel() {
        // As nvcc writes `k` calling `outer` in line 7, which calls `inner` in line 3, which calls `atomicAdd`.
        let text = r#".version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p)
{
	.reg .b64 %rd<2>;
	.reg .b32 %r<2>;
	.loc 1 7 3
	.loc 1 3 3, function_name $L0, inlined_at 1 7 3
	.loc 1 1 71, function_name $L1, inlined_at 1 3 3
	.loc 2 107 3, function_name $L2, inlined_at 1 1 71
	atom.global.add.u32 %r1, [%rd1], 1;
	.loc 1 8 1
	ret;
}
.file 1 "n.cu"
.file 2 "atomics.hpp"
"#;
        let parsed = crate::ptx::parse(text);
        let table = SiteTable::new(&parsed.module);
        let lines = |site: &Site| {
            let loc = site.loc.as_deref().unwrap();
            let calls: Vec<_> = loc.inlined_at.iter().map(|call| (&*call.file, call.line)).collect();
            (loc.line, calls.into_iter().map(|(file, line)| format!("{file}:{line}")).collect::<Vec<_>>())
        };
        let [atomic, end] = table.sites() else { panic!("{:?}", table.sites()) };
        assert_eq!(lines(atomic), (107, vec!["n.cu:1".into(), "n.cu:3".into(), "n.cu:7".into()]));
        assert_eq!(lines(end), (8, Vec::new()));
    }
}
