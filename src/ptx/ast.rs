//! The syntax tree. It is generic over opcodes: an instruction is a guard, dot words and operands, and what
//! it means is the `isa` table's business. Every node has the span of its source text, and names borrow from
//! that text, so that the text itself stays the one truth for printing and rewriting.

use std::fmt::{self, Debug};
use std::ops::Deref;

use super::{List, Modifiers};
use crate::span::Span;

/// A piece of source text with its place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Word<'a> {
    /// The text.
    pub text: &'a str,
    /// Where it stands.
    pub span: Span,
}

impl<'a> Word<'a> {
    /// A text that begins at this byte.
    pub fn new(text: &'a str, start: u32) -> Self {
        Self { text, span: Span::new(start as usize, start as usize + text.len()) }
    }
}

/// A PTX module.
#[derive(Clone, Debug, Default)]
pub struct Module<'a> {
    /// Everything at module scope, in order.
    pub items: Vec<Item<'a>>,
}

impl<'a> Module<'a> {
    /// All functions, declarations included, in order.
    pub fn functions(&self) -> impl Iterator<Item = &Function<'a>> {
        self.items.iter().filter_map(|item| match item {
            Item::Function(function) => Some(function),
            _ => None,
        })
    }

    /// Functions that a host can launch and that have a body.
    pub fn entries(&self) -> impl Iterator<Item = &Function<'a>> {
        self.functions().filter(|f| f.kind == FunctionKind::Entry && f.body.is_some())
    }

    /// Variables at module scope.
    pub fn variables(&self) -> impl Iterator<Item = &Variable<'a>> {
        self.items.iter().filter_map(|item| match item {
            Item::Variable(variable) => Some(variable),
            _ => None,
        })
    }

    /// The first directive of this name (with its dot), such as `.target`.
    pub fn directive(&self, name: &str) -> Option<&Directive<'a>> {
        self.items.iter().find_map(|item| match item {
            Item::Directive(directive) if directive.name.text == name => Some(directive),
            _ => None,
        })
    }

    /// `.version` as (major, minor).
    pub fn version(&self) -> Option<(u32, u32)> {
        version_of(self.directive(".version")?.args.text)
    }

    /// The architecture that `.target` names, such as `sm_90a`.
    pub fn target(&self) -> Option<&'a str> {
        let args = self.directive(".target")?.args.text;
        args.split(',').map(str::trim).find(|word| word.starts_with("sm_"))
    }

    /// The number in `.target sm_NN`, such as 90.
    pub fn target_sm(&self) -> Option<u32> {
        let sm = self.target()?.strip_prefix("sm_")?;
        sm.trim_end_matches(|c: char| c.is_ascii_alphabetic()).parse().ok()
    }
}

/// The arguments of `.version` as (major, minor).
pub(super) fn version_of(args: &str) -> Option<(u32, u32)> {
    let (major, minor) = args.split_once('.')?;
    Some((major.trim().parse().ok()?, minor.trim().parse().ok()?))
}

/// Something at module scope.
#[derive(Clone, Debug)]
pub enum Item<'a> {
    /// `.version`, `.target`, `.file`, `.pragma`, `.alias`, `.section` with its body and so on.
    Directive(Directive<'a>),
    /// A variable.
    Variable(Variable<'a>),
    /// `.entry` or `.func`.
    Function(Function<'a>),
}

/// A directive that is no declaration. `.section` bodies stay text.
#[derive(Clone, Copy, Debug)]
pub struct Directive<'a> {
    /// The name with its dot.
    pub name: Word<'a>,
    /// What follows, without the final `;`, trimmed.
    pub args: Word<'a>,
    /// All of it.
    pub span: Span,
}

/// State spaces that declarations name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VarSpace {
    /// `.global`
    Global,
    /// `.shared` and `.shared::cta`
    Shared,
    /// `.local`
    Local,
    /// `.const`
    Const,
    /// `.param`
    Param,
    /// `.reg`, used by parameters only; other registers are `Registers`.
    Reg,
    /// `.tex` and the opaque reference types, which have no memory of their own.
    Tex,
}

/// A variable or a parameter.
#[derive(Clone, Debug)]
pub struct Variable<'a> {
    /// `.extern`, `.visible`, `.weak`, `.common`.
    pub linkage: Option<Word<'a>>,
    /// Where it lives.
    pub space: VarSpace,
    /// `.align`, in bytes.
    pub align: Option<u64>,
    /// `.v2`, `.v4`, `.v8`: how many elements one vector has.
    pub vector: u32,
    /// The type with its dot, such as `.b32`.
    pub ty: Word<'a>,
    /// `.ptr` of a kernel parameter was given.
    pub ptr: bool,
    /// The name.
    pub name: Word<'a>,
    /// Array dimensions; `None` is `[]`.
    pub dims: Vec<Option<u64>>,
    /// The initialiser behind `=`, as values in order.
    pub init: Option<Init<'a>>,
    /// All of it.
    pub span: Span,
}

impl Variable<'_> {
    /// Number of elements over all dimensions; `None` for `[]`.
    pub fn count(&self) -> Option<u64> {
        self.dims.iter().try_fold(1u64, |n, dim| dim.map(|dim| n.saturating_mul(dim)))
    }

    /// Bytes of one element, vectors included.
    pub fn element_bytes(&self) -> u64 {
        u64::from(super::type_bytes(self.ty.text).unwrap_or(0)) * u64::from(self.vector)
    }

    /// Bytes of all of it; `None` for `[]`.
    pub fn bytes(&self) -> Option<u64> {
        Some(self.count()?.saturating_mul(self.element_bytes()))
    }

    /// The alignment that holds: the one given, else the element's size.
    pub fn alignment(&self) -> u64 {
        self.align.unwrap_or_else(|| self.element_bytes().max(1))
    }
}

/// An initialiser.
#[derive(Clone, Debug)]
pub struct Init<'a> {
    /// Values in memory order, nested braces flattened row by row (rows are padded by the reader of the tree).
    pub values: Vec<InitValue<'a>>,
    /// All of it.
    pub span: Span,
}

/// One value of an initialiser.
#[derive(Clone, Debug)]
pub enum InitValue<'a> {
    /// An integer, two's complement.
    Int(Integer),
    /// The bits of a 32-bit float (`0f...`).
    F32(u32),
    /// The bits of a 64-bit float (`0d...` or decimal).
    F64(u64),
    /// Address of a symbol. Boxed, because tables of numbers are long.
    Symbol(Box<SymbolValue<'a>>),
}

/// The address of a symbol in an initialiser.
#[derive(Clone, Copy, Debug)]
pub struct SymbolValue<'a> {
    /// The symbol.
    pub name: Word<'a>,
    /// Bytes added.
    pub offset: i64,
    /// Written `generic(...)`.
    pub generic: bool,
    /// `0xff00(name)`: only these bits of the address, moved down to bit 0.
    pub mask: Option<u64>,
}

/// An integer constant, of 96 bits: more than the 64 that PTX computes in, and the sign. As words of 32 bits, which keep
/// operands small.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Integer([u32; 3]);

impl Integer {
    /// Its value.
    pub fn get(self) -> i128 {
        let [low, middle, high] = self.0;
        i128::from(high.cast_signed()) << 64 | i128::from(middle) << 32 | i128::from(low)
    }
}

impl From<i128> for Integer {
    fn from(value: i128) -> Self {
        Self([value as u32, (value >> 32) as u32, (value >> 64) as u32])
    }
}

impl Debug for Integer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

/// What can be called or launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionKind {
    /// `.entry`
    Entry,
    /// `.func`
    Func,
}

/// A function, or a declaration of one.
#[derive(Clone, Debug)]
pub struct Function<'a> {
    /// `.extern`, `.visible`, `.weak`.
    pub linkage: Option<Word<'a>>,
    /// Entry or device function.
    pub kind: FunctionKind,
    /// Return parameters.
    pub returns: Vec<Variable<'a>>,
    /// The name.
    pub name: Word<'a>,
    /// Parameters.
    pub params: Vec<Variable<'a>>,
    /// Directives between the parameters and the body, such as `.maxntid`.
    pub directives: Vec<Directive<'a>>,
    /// The body; `None` for a declaration.
    pub body: Option<Block<'a>>,
    /// All of it.
    pub span: Span,
}

impl Function<'_> {
    /// The numbers of a directive such as `.maxntid 128, 1, 1`; missing ones are 1.
    pub fn extent(&self, directive: &str) -> Option<[u32; 3]> {
        let directive = self.directives.iter().find(|d| d.name.text == directive)?;
        let mut extent = [1; 3];
        for (slot, number) in extent.iter_mut().zip(directive.args.text.split(',')) {
            *slot = number.trim().parse().ok()?;
        }
        Some(extent)
    }
}

/// Statements in braces.
#[derive(Clone, Debug)]
pub struct Block<'a> {
    /// The statements.
    pub statements: Vec<Statement<'a>>,
    /// From `{` to `}`.
    pub span: Span,
}

/// Something in a body.
#[derive(Clone, Debug)]
pub enum Statement<'a> {
    /// `name:`
    Label(Word<'a>),
    /// `{ ... }`, a scope of its own.
    Block(Block<'a>),
    /// `.reg`
    Registers(Registers<'a>),
    /// A variable of the function. Boxed, as few statements are one.
    Variable(Box<Variable<'a>>),
    /// `.loc`, `.pragma`, `name: .callprototype ...` and so on; the label is kept in `label`.
    Directive {
        /// The name before a `:` that belongs to the directive (`.branchtargets`, `.calltargets`, `.callprototype`).
        label: Option<Word<'a>>,
        /// The directive.
        directive: Directive<'a>,
    },
    /// An instruction.
    Instruction(Instruction<'a>),
}

/// `.reg .b32 %r<5>, %x;`
#[derive(Clone, Debug)]
pub struct Registers<'a> {
    /// The type with its dot.
    pub ty: Word<'a>,
    /// Elements of a vector register, 1 for a plain one.
    pub vector: u32,
    /// Names, each with the count of `name<count>`.
    pub names: Vec<(Word<'a>, Option<u32>)>,
    /// All of it.
    pub span: Span,
}

/// `@p` or `@!p`
#[derive(Clone, Copy, Debug)]
pub struct Guard<'a> {
    /// The predicate register.
    pub register: Word<'a>,
    /// Written with `!`.
    pub negated: bool,
    /// From `@` to the register.
    pub span: Span,
}

/// `@p opcode.mod.mod a, b, [c];`
#[derive(Clone, Debug)]
pub struct Instruction<'a> {
    /// The predicate it is under.
    pub guard: Option<Box<Guard<'a>>>,
    /// The word before the first dot: `ld`, `cp`, `mbarrier`.
    pub opcode: Word<'a>,
    /// From there to the end of the last dot word, as written.
    pub(super) words: &'a str,
    /// The operands in order. A call's parenthesised lists are `Operand::List`.
    pub operands: List<Operand<'a>>,
    /// From the guard to the `;`, which is inside.
    pub span: Span,
}

impl<'a> Instruction<'a> {
    /// What is filled in where it stands, as it is large to move.
    pub(super) const BLANK: Self = Self {
        guard: None,
        opcode: Word { text: "", span: Span { start: 0, end: 0 } },
        words: "",
        operands: Operand::NONE,
        span: Span { start: 0, end: 0 },
    };

    /// The dot words after the opcode.
    #[inline]
    pub fn modifiers(&self) -> Modifiers<'a> {
        Modifiers::new(self.words, self.opcode.span.end)
    }

    /// Whether a modifier was written.
    pub fn has(&self, modifier: &str) -> bool {
        self.modifiers().iter().any(|word| word.text == modifier)
    }

    /// Opcode and modifiers as written: the same for the same instruction, but for blanks and comments.
    pub(crate) fn opcode_as_written(&self) -> (&'a str, &'a str) {
        (self.opcode.text, self.words)
    }

    /// Opcode and modifiers as written, without blanks: `ld.global.u32`.
    pub fn full_opcode(&self) -> String {
        let mut name = String::from(self.opcode.text);
        for modifier in self.modifiers() {
            name.push('.');
            name.push_str(modifier.text);
        }
        name
    }

    /// The span of opcode, modifiers and operands, without guard and `;`.
    pub fn core_span(&self) -> Span {
        let end = self.operands.last().map_or(self.modifiers().span(), Operand::span);
        self.opcode.span.to(end)
    }
}

/// An operand, kept to three words: a module has millions.
#[derive(Clone, Debug)]
pub enum Operand<'a> {
    /// A register, variable, label, function or special register (with member: `%tid.x` is one name), and where it begins.
    Name(&'a str, u32),
    /// An integer, two's complement.
    Int(Integer, Span),
    /// Bits of a `0f` literal.
    F32(u32, Span),
    /// Bits of a `0d` or decimal float literal.
    F64(u64, Span),
    /// `[base+offset]`, `[base]`, `var[offset]`.
    Address(Box<Address<'a>>),
    /// `{a, b}`; `_` is a `Name`.
    Vector(Box<Sequence<'a>>),
    /// `p|q`
    Pair(Box<[Operand<'a>; 2]>, Span),
    /// `!p`
    Not(Box<Operand<'a>>, Span),
    /// `-x` of a register
    Negated(Box<Operand<'a>>, Span),
    /// `(a, b)` of a call.
    List(Box<Sequence<'a>>),
    /// `name+offset` outside brackets, as in `mov.u64 %rd1, tab+16`.
    Offset(Box<(Word<'a>, i64)>, Span),
}

/// Operands in braces or parentheses. It is read as a slice.
#[derive(Clone, Debug)]
pub struct Sequence<'a> {
    pub(super) items: List<Operand<'a>>,
    /// All of it.
    pub span: Span,
}

impl Sequence<'_> {
    /// What is filled in where it stands.
    pub(super) const BLANK: Self = Self { items: Operand::NONE, span: Span { start: 0, end: 0 } };
}

impl<'a> Deref for Sequence<'a> {
    type Target = [Operand<'a>];

    fn deref(&self) -> &[Operand<'a>] {
        &self.items
    }
}

impl<'a> From<Word<'a>> for Operand<'a> {
    #[inline]
    fn from(name: Word<'a>) -> Self {
        Self::Name(name.text, name.span.start)
    }
}

impl Default for Operand<'_> {
    fn default() -> Self {
        Self::BLANK
    }
}

impl<'a> Operand<'a> {
    /// Hands out every name in it, as often as it occurs.
    pub fn each_name(&self, found: &mut impl FnMut(&'a str)) {
        match self {
            Self::Name(name, _) => found(name),
            Self::Offset(offset, _) => found(offset.0.text),
            Self::Address(address) => {
                address.base.iter().for_each(|word| found(word.text));
                address.extra.iter().for_each(|inner| inner.each_name(found));
            }
            Self::Vector(items) | Self::List(items) => {
                items.iter().for_each(|item| item.each_name(found));
            }
            Self::Pair(both, _) => both.iter().for_each(|half| half.each_name(found)),
            Self::Not(inner, _) | Self::Negated(inner, _) => inner.each_name(found),
            Self::Int(..) | Self::F32(..) | Self::F64(..) => {}
        }
    }
}

impl Operand<'_> {
    /// What stands where no operand is yet.
    pub(super) const BLANK: Self = Self::F32(0, Span { start: 0, end: 0 });

    /// No operands.
    const NONE: List<Self> = List::new([Self::BLANK, Self::BLANK, Self::BLANK, Self::BLANK]);

    /// Where it stands.
    pub fn span(&self) -> Span {
        match self {
            Self::Name(text, start) => Span::new(*start as usize, *start as usize + text.len()),
            Self::Address(address) => address.span,
            Self::Int(_, span)
            | Self::F32(_, span)
            | Self::F64(_, span)
            | Self::Pair(_, span)
            | Self::Not(_, span)
            | Self::Negated(_, span)
            | Self::Offset(_, span) => *span,
            Self::Vector(sequence) | Self::List(sequence) => sequence.span,
        }
    }
}

/// A memory operand.
#[derive(Clone, Debug)]
pub struct Address<'a> {
    /// Register or variable; `None` for a bare number.
    pub base: Option<Word<'a>>,
    /// Bytes added.
    pub offset: i64,
    /// What stands behind a comma inside the brackets: tensor coordinates, a sampler.
    pub extra: Box<[Operand<'a>]>,
    /// All of it, brackets included.
    pub span: Span,
}
