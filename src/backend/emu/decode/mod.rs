//! Decoding: a kernel and all functions it can reach become one flat list of operations.

mod flow;
mod layout;
mod operand;
mod rows;
mod scope;
mod shared;

pub(super) use layout::{Layout, lay_out};
pub(super) use operand::{Bad, Cx};
pub(super) use scope::Entity;

use rustc_hash::FxHashMap;

use super::image::{
    Code, Flow, Function as Decoded, Image, LoggedSite, MbarrierAction, Op, Part, Slot, Space,
};
use super::inserted::Inserted;
use super::memory::PARAM_WINDOW;
use super::ops;
use super::types::Ty;
use crate::backend::BackendError;
use crate::instrument::{SiteKind, SiteTable};
use crate::ptx::ast::{
    Block, Function, FunctionKind, Instruction, Item, Module, Operand, Statement, VarSpace, Variable, Word,
};
use crate::span::Span;
use flow::flow;
use rows::Rows;
use scope::Scopes;

/// Bytes that one variable of a function may have; a damaged text must not exhaust memory.
const LARGEST: u64 = 1 << 24;

/// Registers that a kernel is taken to need at most, once values share rows.
const USUAL_REGISTERS: u32 = 256;

/// What decoding reads.
pub(super) struct Input<'d, 'a> {
    pub(super) module: &'d Module<'a>,
    pub(super) layout: &'d Layout,
    /// Sites to log natively; none when the text logs by itself.
    pub(super) sites: Option<&'d SiteTable>,
    /// Instructions that are not logged, by where they begin.
    pub(super) unlogged: FxHashMap<u32, u32>,
    /// Code that instrumentation put in.
    pub(super) inserted: &'d Inserted,
}

/// Decodes a kernel.
pub(super) fn image(input: &Input<'_, '_>, kernel: &str) -> Result<Image, BackendError> {
    let find = |entry: &&Function<'_>| entry.kind == FunctionKind::Entry && entry.name.text == kernel;
    let Some(entry) = input.module.functions().filter(|f| f.body.is_some()).find(find) else {
        return Err(BackendError::Plan(format!("the module has no kernel `{kernel}`")));
    };
    let reachable = crate::instrument::reachable(input.module, entry).functions;
    let shared = shared::lay_out_shared(input.module, &reachable);
    let mut image = Image {
        functions: input.layout.function_names.iter().map(|_| Decoded::default()).collect(),
        kernel: input.layout.function(kernel).unwrap_or(0),
        shared_bytes: shared.bytes,
        dynamic_base: shared.dynamic_base,
        ..Image::default()
    };
    let mut scopes = module_scope(input, &shared);
    for function in &reachable {
        let Some(number) = input.layout.function(function.name.text) else { continue };
        let mut decoder = Decoder {
            input,
            shared: &shared,
            image: &mut image,
            scopes: std::mem::take(&mut scopes),
            function,
            number,
            labels: Vec::new(),
            // Predicate 0 is the carry flag.
            counting: None,
            decoded: Decoded { predicates: super::regs::CARRY + 1, ..Decoded::default() },
        };
        decoder.function();
        scopes = decoder.scopes;
    }
    shared_sites(input, entry, &shared, &mut image);
    Ok(image)
}

fn shared_sites(
    input: &Input<'_, '_>,
    entry: &Function<'_>,
    shared: &shared::SharedLayout,
    image: &mut Image,
) {
    let Some(sites) = input.sites else { return };
    for site in sites.of_function(entry.name.text) {
        if let SiteKind::SharedVariable(_) = &site.kind
            && let Some(offset) = shared.at(site.span)
        {
            image.shared_sites.push((LoggedSite { id: site.id, payload: site.payload() }, offset));
        }
    }
}

/// Names at module scope.
fn module_scope<'a>(input: &Input<'_, 'a>, shared: &shared::SharedLayout) -> Scopes<'a> {
    let mut scopes = Scopes::default();
    scopes.open();
    for variable in input.module.variables() {
        if let Some(entity) = fixed(input, shared, variable) {
            scopes.declare(variable.name, entity);
        }
    }
    for function in input.module.functions() {
        if let Some(number) = input.layout.function(function.name.text) {
            scopes.declare(function.name, Entity::Function(number));
        }
    }
    for item in &input.module.items {
        if let Item::Directive(directive) = item
            && directive.name.text == ".alias"
            && let Some((alias, _)) = directive.args.text.split_once(',')
            && let Some(number) = input.layout.function(alias.trim())
        {
            scopes.declare(Word { text: alias.trim(), span: directive.span }, Entity::Function(number));
        }
    }
    scopes
}

fn fixed(input: &Input<'_, '_>, shared: &shared::SharedLayout, variable: &Variable<'_>) -> Option<Entity> {
    match variable.space {
        VarSpace::Shared => shared.at(variable.span).map(|offset| Entity::Shared { offset }),
        VarSpace::Tex => Some(Entity::Opaque),
        _ => input.layout.address(variable).map(|address| Entity::Fixed { address }),
    }
}

struct Decoder<'d, 'a> {
    input: &'d Input<'d, 'a>,
    shared: &'d shared::SharedLayout,
    image: &'d mut Image,
    scopes: Scopes<'a>,
    function: &'d Function<'a>,
    number: u32,
    /// Position of each label.
    labels: Vec<u32>,
    /// Set in the first walk, which decodes nothing.
    counting: Option<Rows>,
    decoded: Decoded,
}

impl<'a> Decoder<'_, 'a> {
    fn function(&mut self) {
        let function = self.function;
        let Some(body) = &function.body else { return };
        let first = self.image.ops.len();
        self.decoded.entry = position(first);
        self.decoded.body = true;
        self.scopes.open();
        self.parameters();
        // One walk to see where registers live, another to decode.
        let start = self.decoded.clone();
        self.counting = Some(Rows::default());
        for slot in 0..start.registers {
            self.keep(slot);
        }
        self.block(body);
        let rows = self.counting.take().unwrap_or_default();
        let (rows, used) = rows.assign(self.decoded.registers);
        self.scopes.rows = rows;
        self.labels.clear();
        self.decoded = start;
        self.block(body);
        self.decoded.registers = used;
        self.decoded.own_registers = self.decoded.own_registers.min(USUAL_REGISTERS);
        let rows = std::mem::take(&mut self.scopes.rows);
        for slot in self.decoded.params.iter_mut().chain(&mut self.decoded.returns) {
            if let Slot::Value(super::regs::Src::Reg(register)) = slot {
                *register = rows.get(*register as usize).copied().unwrap_or(*register);
            }
        }
        self.scopes.close();
        // Falling off the end returns.
        let end = Span::at((body.span.end as usize).saturating_sub(1));
        let part = if self.input.inserted.holds(function.span) { Part::Runtime } else { Part::Original };
        let site =
            self.input.sites.filter(|_| function.kind == FunctionKind::Entry).and_then(|sites| sites.at(end));
        self.image.flows.push(Flow::default());
        self.image.ops.push(Op {
            code: Code::Return(self.number),
            guard: None,
            site: site.map(|site| LoggedSite { id: site.id, payload: site.payload() }),
            unlogged: None,
            span: end,
            part,
            visible: false,
        });
        self.resolve(first);
        if let Some(slot) = self.image.functions.get_mut(self.number as usize) {
            *slot = std::mem::take(&mut self.decoded);
        }
    }

    fn keep(&mut self, slot: u32) {
        if let Some(rows) = &mut self.counting {
            rows.keep(slot);
        }
    }

    fn parameters(&mut self) {
        let function = self.function;
        if function.kind == FunctionKind::Entry {
            let mut at = 0u64;
            for param in &function.params {
                at = at.next_multiple_of(param.alignment().clamp(1, 1 << 16));
                let bytes = param.bytes().unwrap_or(0).min(LARGEST);
                self.image.params.push((at, bytes));
                self.scopes.declare(param.name, Entity::Fixed { address: PARAM_WINDOW + at });
                at += bytes;
            }
            self.image.param_bytes = at;
            return;
        }
        let slots = |decoder: &mut Self, list: &[Variable<'a>]| {
            list.iter().map(|param| decoder.formal(param)).collect::<Vec<_>>()
        };
        self.decoded.returns = slots(self, &function.returns);
        self.decoded.params = slots(self, &function.params);
    }

    fn formal(&mut self, param: &Variable<'a>) -> Slot {
        if param.space == VarSpace::Reg {
            self.register(param.name, param.ty.text, param.vector, None);
            return match self.scopes.find(param.name.text) {
                Some(Entity::Register { slot, .. }) => Slot::Value(super::regs::Src::Reg(slot)),
                Some(Entity::Predicate(slot)) => Slot::Pred(super::regs::PredDst(Some(slot))),
                _ => Slot::Sink,
            };
        }
        let (offset, bytes) = self.local(param);
        Slot::Local { offset, bytes }
    }

    fn local(&mut self, variable: &Variable<'a>) -> (u64, u64) {
        let bytes = variable.bytes().unwrap_or(0).min(LARGEST);
        let offset = self.decoded.local_bytes.next_multiple_of(variable.alignment().clamp(1, 256));
        self.decoded.local_bytes = offset.saturating_add(bytes).min(1 << 40);
        self.scopes.declare(variable.name, Entity::Frame { offset, bytes });
        (offset, bytes)
    }

    fn fixed(&mut self, variable: &Variable<'a>) {
        if let Some(entity) = fixed(self.input, self.shared, variable) {
            self.scopes.declare(variable.name, entity);
        }
    }

    fn register(&mut self, name: Word<'a>, ty: &str, vector: u32, count: Option<u32>) {
        let bits = crate::ptx::type_bytes(ty).unwrap_or(0) * 8;
        let predicate = ty == ".pred";
        let elements = vector.max(1) * if bits > 64 { bits / 64 } else { 1 };
        let next = if predicate { &mut self.decoded.predicates } else { &mut self.decoded.registers };
        let first = *next;
        // No text names this many; a damaged one must not exhaust memory.
        let members = count.unwrap_or(1).min(1 << 20);
        *next = next.saturating_add(members.saturating_mul(elements));
        if elements > 1 && !predicate {
            // The elements of a vector stay together.
            (first..first.saturating_add(members.saturating_mul(elements))).for_each(|slot| self.keep(slot));
        }
        match count {
            Some(count) => {
                self.scopes.declare_family(
                    name,
                    first,
                    count.min(1 << 20),
                    (bits.min(64), elements, predicate),
                );
            }
            None if predicate => self.scopes.declare(name, Entity::Predicate(first)),
            None => {
                self.scopes.declare(name, Entity::Register { slot: first, bits: bits.min(64), elements });
            }
        }
    }

    fn block(&mut self, block: &Block<'a>) {
        self.scopes.open();
        for statement in &block.statements {
            match statement {
                Statement::Label(name) => {
                    self.labels.push(u32::MAX);
                    self.scopes.declare(*name, Entity::Label(position(self.labels.len() - 1)));
                }
                Statement::Directive { label: Some(name), directive } => {
                    let entity = if directive.name.text == ".branchtargets" {
                        Entity::Targets(directive.args.text.split(',').map(|t| t.trim().to_owned()).collect())
                    } else {
                        Entity::Prototype
                    };
                    self.scopes.declare(*name, entity);
                }
                _ => {}
            }
        }
        for statement in &block.statements {
            match statement {
                Statement::Label(_) if self.counting.is_some() => {
                    self.counting.iter_mut().for_each(Rows::label);
                }
                Statement::Label(name) => {
                    if let Some(Entity::Label(label)) = self.scopes.find(name.text)
                        && let Some(at) = self.labels.get_mut(label as usize)
                    {
                        *at = position(self.image.ops.len());
                    }
                }
                Statement::Block(inner) => self.block(inner),
                Statement::Registers(registers) => {
                    let before = self.decoded.registers;
                    for (name, count) in &registers.names {
                        self.register(*name, registers.ty.text, registers.vector, *count);
                    }
                    if !self.input.inserted.holds(registers.span) {
                        self.decoded.own_registers += self.decoded.registers - before;
                    }
                }
                Statement::Variable(variable) => match variable.space {
                    VarSpace::Local | VarSpace::Param => {
                        self.local(variable);
                    }
                    VarSpace::Reg => self.register(variable.name, variable.ty.text, variable.vector, None),
                    _ => self.fixed(variable),
                },
                Statement::Directive { .. } => {}
                Statement::Instruction(instruction) => self.instruction(instruction),
            }
        }
        self.scopes.close();
    }

    fn instruction(&mut self, instruction: &Instruction<'a>) {
        if let Some(rows) = &mut self.counting {
            rows.instruction(instruction, &self.scopes);
            return;
        }
        let cx = Cx::new(instruction, &self.scopes, self.number);
        let guard = instruction.guard.as_ref().map(|guard| {
            let name = crate::ptx::ast::Operand::from(guard.register);
            cx.pred_src(&name).map(|pred| super::regs::PredSrc { negated: guard.negated, ..pred })
        });
        let (guard, code) = match guard.transpose() {
            Ok(guard) => (guard, ops::decode(&cx)),
            Err(bad) => (None, Err(bad)),
        };
        let code = code.unwrap_or_else(|bad| Code::Poison(bad.into()));
        let span = instruction.span;
        self.image.timed |= instruction.operands.iter().any(reads_clock);
        let site = self.input.sites.and_then(|sites| sites.at(span));
        let unlogged = self.input.unlogged.get(&span.start).copied();
        self.image.flows.push(flow(&cx));
        let part = self.input.inserted.part(span, self.function.span);
        self.image.ops.push(Op {
            visible: part == Part::Original && is_visible(&code),
            code,
            guard,
            site: site.map(|site| LoggedSite { id: site.id, payload: site.payload() }),
            unlogged,
            span,
            part,
        });
    }

    /// Puts positions where labels were.
    fn resolve(&mut self, first: usize) {
        let end = position(self.image.ops.len().saturating_sub(1));
        let labels = &self.labels;
        let place = |label: &mut u32| {
            let at = labels.get(*label as usize).copied().unwrap_or(u32::MAX);
            *label = if at == u32::MAX { end } else { at };
        };
        for op in self.image.ops.iter_mut().skip(first) {
            match &mut op.code {
                Code::Branch { target, .. } => place(target),
                Code::BranchTable(_, targets) => targets.iter_mut().for_each(place),
                _ => {}
            }
        }
        for at in first..self.image.ops.len() {
            let Code::Branch { target, .. } = self.image.ops[at].code else { continue };
            let body = self.image.ops.get(target as usize..at).unwrap_or_default();
            let own = body.iter().filter(|op| op.part == Part::Original);
            let may_wait = own.clone().count() <= SPIN && own.into_iter().any(may_wait);
            if let Code::Branch { spins, .. } = &mut self.image.ops[at].code {
                *spins = may_wait;
            }
        }
    }
}

/// Whether an instruction accesses memory that others see.
fn is_visible(code: &Code) -> bool {
    let private = |space| matches!(space, Space::Local | Space::Const | Space::Param);
    match code {
        Code::Memory(transfer) => !private(transfer.address.space),
        Code::Atomic(_)
        | Code::Copy(_)
        | Code::Tensor(_)
        | Code::Mbarrier(_)
        | Code::Fill(_)
        | Code::Matrix(_)
        | Code::Image(_) => true,
        _ => false,
    }
}

/// Whether an operand is one of the registers that change by themselves.
fn reads_clock(operand: &Operand<'_>) -> bool {
    matches!(operand, Operand::Name(name, _) if name.starts_with("%clock") || name.starts_with("%globaltimer"))
}

/// Instructions of a loop that may be a spin.
const SPIN: usize = 256;

/// Whether an instruction reads what others may be waited for with.
fn may_wait(op: &Op) -> bool {
    match &op.code {
        Code::Memory(transfer) => transfer.strong,
        Code::Atomic(_) | Code::Yield => true,
        Code::Mbarrier(mbarrier) => matches!(mbarrier.action, MbarrierAction::Wait { .. }),
        _ => false,
    }
}

fn position(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

impl Cx<'_, '_> {
    /// The type at this position among those written.
    pub(super) fn ty_at(&self, index: usize) -> Result<Ty, Bad> {
        self.types.get(index).copied().ok_or_else(|| "an instruction without its types".to_owned())
    }
}
