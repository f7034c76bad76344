//! Names: every one that an operand uses is declared, and no function is there twice.
//!
//! Declarations count in their whole block, before them too: ptxas is stricter, and a name that it refuses for its place
//! has one meaning all the same. What a name stands for, and whether it fits, is not asked here.

use rustc_hash::{FxHashMap, FxHashSet};

use super::ast::{Block, Function, Instruction, Item, Module, Operand, Statement, Word};
use super::special::is_special;
use super::{LISTED, MAX_ERRORS, numbered, without_member};
use crate::diag::nearest;
use crate::span::Span;

/// A name that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct NameError {
    /// One sentence.
    pub message: String,
    /// The name.
    pub span: Span,
    /// What is said of it.
    pub label: &'static str,
    /// Another place that matters, and why.
    pub related: Option<(Span, &'static str)>,
    /// What to do, where there is a likely answer.
    pub help: Option<String>,
}

/// Checks all names of a module; the first `MAX_ERRORS` that are wrong.
pub fn check_names(module: &Module<'_>) -> Vec<NameError> {
    let mut check = Check::new(module);
    for function in module.functions() {
        check.function(function);
    }
    check.errors.sort_by_key(|error| error.span.start);
    check.errors
}

/// Names beyond which no near one is looked for.
const MAX_NEAR: usize = 2000;

/// Bytes shown of a name; one may be as long as the file.
const MAX_SHOWN: usize = 80;

#[derive(Clone, Copy)]
struct Declared {
    /// In how many of the blocks that are open.
    times: u32,
    /// The last of these blocks, by number, and where there.
    block: u32,
    at: Span,
}

struct Check<'a> {
    names: FxHashMap<&'a str, Declared>,
    /// `%r<5>`: the counts in the blocks that are open, each at least those before it.
    families: FxHashMap<&'a str, Vec<(u32, Span)>>,
    /// Numbers blocks, the module being 0.
    blocks: u32,
    knows_specials: bool,
    /// Names that are not declared, each of which is an error once in its function.
    undeclared: FxHashSet<&'a str>,
    errors: Vec<NameError>,
}

impl<'a> Check<'a> {
    fn new(module: &Module<'a>) -> Self {
        let mut check = Self {
            names: FxHashMap::default(),
            families: FxHashMap::default(),
            blocks: 0,
            knows_specials: module.version().is_some_and(|version| version <= LISTED),
            undeclared: FxHashSet::default(),
            errors: Vec::new(),
        };
        let mut bodies: FxHashMap<&str, Span> = FxHashMap::default();
        for item in &module.items {
            match item {
                Item::Variable(variable) => check.declare(variable.name),
                Item::Directive(directive) if directive.name.text == ".alias" => {
                    list(directive.args).take(1).for_each(|alias| check.declare(alias));
                }
                Item::Directive(_) => {}
                Item::Function(function) => {
                    check.declare(function.name);
                    let name = function.name;
                    if function.body.is_some()
                        && let Some(first) = bodies.insert(name.text, name.span)
                    {
                        bodies.insert(name.text, first);
                        check.twice("function", name, first);
                    }
                }
            }
        }
        check
    }

    fn declare(&mut self, name: Word<'a>) {
        let new = Declared { times: 0, block: self.blocks, at: name.span };
        let declared = self.names.entry(name.text).or_insert(new);
        *declared = Declared { times: declared.times + 1, ..new };
    }

    fn forget(&mut self, name: Word<'a>) {
        if let Some(declared) = self.names.get_mut(name.text) {
            declared.times -= 1;
            if declared.times == 0 {
                self.names.remove(name.text);
            }
        }
    }

    fn function(&mut self, function: &Function<'a>) {
        let Some(body) = &function.body else { return };
        let parameters = || function.returns.iter().chain(&function.params).map(|parameter| parameter.name);
        self.undeclared.clear();
        parameters().for_each(|name| self.declare(name));
        self.block(body);
        parameters().for_each(|name| self.forget(name));
    }

    fn block(&mut self, block: &Block<'a>) {
        self.blocks += 1;
        block.statements.iter().for_each(|statement| self.enter(statement));
        for statement in &block.statements {
            match statement {
                Statement::Block(inner) => self.block(inner),
                Statement::Instruction(instruction) => self.instruction(instruction),
                Statement::Directive { directive, .. } if directive.name.text == ".branchtargets" => {
                    list(directive.args).for_each(|label| self.used(label, "label"));
                }
                _ => {}
            }
        }
        block.statements.iter().for_each(|statement| self.leave(statement));
    }

    fn enter(&mut self, statement: &Statement<'a>) {
        match statement {
            Statement::Label(name) | Statement::Directive { label: Some(name), .. } => {
                let here = self.names.get(name.text).filter(|declared| declared.block == self.blocks);
                if let Some(first) = here.map(|declared| declared.at) {
                    self.twice("label", *name, first);
                }
                self.declare(*name);
            }
            Statement::Variable(variable) => self.declare(variable.name),
            Statement::Registers(registers) => {
                for (name, count) in &registers.names {
                    let Some(count) = count else {
                        self.declare(*name);
                        continue;
                    };
                    let counts = self.families.entry(name.text).or_default();
                    let outer = counts.last().map_or(0, |(outer, _)| *outer);
                    counts.push(((*count).max(outer), registers.span));
                }
            }
            Statement::Block(_) | Statement::Instruction(_) | Statement::Directive { label: None, .. } => {}
        }
    }

    fn leave(&mut self, statement: &Statement<'a>) {
        match statement {
            Statement::Label(name) | Statement::Directive { label: Some(name), .. } => self.forget(*name),
            Statement::Variable(variable) => self.forget(variable.name),
            Statement::Registers(registers) => {
                for (name, count) in &registers.names {
                    match count {
                        None => self.forget(*name),
                        Some(_) => drop(self.families.get_mut(name.text).map(Vec::pop)),
                    }
                }
            }
            Statement::Block(_) | Statement::Instruction(_) | Statement::Directive { label: None, .. } => {}
        }
    }

    fn instruction(&mut self, instruction: &Instruction<'a>) {
        // Only for the words of an error.
        let what = match instruction.opcode.text {
            "bra" | "brx" => "label",
            "call" => "function",
            _ => "name",
        };
        if let Some(guard) = &instruction.guard {
            self.used(guard.register, "name");
        }
        instruction.operands.iter().for_each(|operand| self.operand(operand, what));
    }

    fn operand(&mut self, operand: &Operand<'a>, what: &'static str) {
        match operand {
            Operand::Name(name, at) => self.used(Word::new(name, *at), what),
            Operand::Offset(offset, _) => self.used(offset.0, what),
            Operand::Address(address) => {
                address.base.into_iter().for_each(|word| self.used(word, "name"));
                address.extra.iter().for_each(|operand| self.operand(operand, "name"));
            }
            Operand::Vector(items) | Operand::List(items) => {
                items.iter().for_each(|operand| self.operand(operand, "name"));
            }
            Operand::Pair(both, _) => both.iter().for_each(|operand| self.operand(operand, what)),
            Operand::Not(inner, _) | Operand::Negated(inner, _) => self.operand(inner, what),
            Operand::Int(..) | Operand::F32(..) | Operand::F64(..) => {}
        }
    }

    /// A name that must be declared, with or without its member.
    fn used(&mut self, word: Word<'a>, what: &'static str) {
        let name = without_member(word.text).unwrap_or(word.text);
        if self.family(name).is_some_and(|inside| inside.is_ok()) || self.names.contains_key(name) {
            return;
        }
        if matches!(name, "_" | "WARP_SZ") || is_special(name) {
            return;
        }
        if !self.knows_specials && name.starts_with('%') && !name.ends_with(|c: char| c.is_ascii_digit()) {
            return;
        }
        self.undeclared(word, name, what);
    }

    /// Whether a name is one of `stem<count>`; as an error, the count that it is beyond.
    fn family(&self, name: &str) -> Option<Result<(), (u32, Span)>> {
        let mut beyond = None;
        for (stem, number) in numbered(name) {
            match self.families.get(stem).and_then(|counts| counts.last()) {
                Some(family) if number < family.0 => return Some(Ok(())),
                Some(family) => beyond = Some(*family),
                None => {}
            }
        }
        beyond.map(Err)
    }

    #[cold]
    fn undeclared(&mut self, word: Word<'a>, name: &str, what: &'static str) {
        if self.errors.len() >= MAX_ERRORS || !self.undeclared.insert(word.text) {
            return;
        }
        let what = if what == "name" && name.starts_with('%') { "register" } else { what };
        let beyond = self.family(name).and_then(Result::err);
        let help = match beyond {
            Some((count, _)) => {
                Some(format!("the declaration names {count} registers, from 0 on: raise its count"))
            }
            None if self.names.len() > MAX_NEAR || name.len() > MAX_SHOWN => None,
            None => {
                let mut names: Vec<_> = self.names.keys().copied().collect();
                names.sort_unstable();
                nearest(name, names).map(|near| format!("did you mean `{near}`?"))
            }
        };
        self.errors.push(NameError {
            message: format!("no {what} `{}` is declared", shown(name)),
            span: word.span,
            label: "not declared here",
            related: beyond.map(|(_, at)| (at, "its like are declared here")),
            help,
        });
    }

    #[cold]
    fn twice(&mut self, what: &'static str, name: Word<'a>, first: Span) {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(NameError {
                message: format!("the {what} `{}` is defined twice", shown(name.text)),
                span: name.span,
                label: "defined again",
                related: Some((first, "first defined here")),
                help: None,
            });
        }
    }
}

fn shown(name: &str) -> &str {
    name.get(..MAX_SHOWN).unwrap_or(name)
}

/// The names of a directive's arguments, which commas separate.
fn list<'a>(args: Word<'a>) -> impl Iterator<Item = Word<'a>> {
    let mut at = args.span.start as usize;
    args.text.split(',').map(move |part| {
        let text = part.trim();
        let start = at + (part.len() - part.trim_start().len());
        at += part.len() + 1;
        Word { text, span: Span::new(start, start + text.len()) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(body: &str) -> Vec<String> {
        let text = format!(".version 9.0\n.target sm_90\n.address_size 64\n{body}");
        let parsed = crate::ptx::parse(&text);
        assert_eq!(parsed.errors, []);
        check_names(&parsed.module).into_iter().map(|error| error.message).collect()
    }

    #[test]
    fn what_is_declared_anywhere_around_is_found() {
        let none: [&str; 0] = [];
        let text = ".global .u32 g; .alias a, f; .func (.reg .b32 r) f(.reg .b32 x) { .reg .b32 %r<3>, y; \
            L: { .reg .b32 %r<2>; mov.u32 %r2, x; bra L; } mov.u32 r, y; mov.u32 y, %tid.x; T: .branchtargets L, M; \
            brx.idx y, T; M: call a; mov.u64 y, g+4; mov.u32 y, WARP_SZ; setp.eq.u32 y|_, y, 0; }";
        assert_eq!(errors(text), none);
    }

    #[test]
    fn what_is_not_is_an_error() {
        let text = ".func f() { .reg .b32 %r<3>; { .reg .b32 x; IN: } @%p1 mov.u32 %r3, x; bra IN; call g; \
            mov.u32 %r01, %tidx; T: .branchtargets OUT; ld.u32 %r1, [%rd1]; }";
        let names = ["%p1", "%r3", "x", "IN", "g", "%r01", "%tidx", "OUT", "%rd1"];
        let found = errors(text);
        assert_eq!(found.len(), names.len(), "{found:?}");
        for (message, name) in found.iter().zip(names) {
            assert!(message.contains(&format!("`{name}`")), "{message} for {name}");
        }
        assert_eq!(errors(".func f() { bra L; }"), ["no label `L` is declared"]);
    }

    #[test]
    fn one_name_is_defined_once() {
        assert_eq!(errors(".func f(); .func f() { } .func f();"), [""; 0]);
        assert_eq!(errors(".func f() { } .entry f() { }"), ["the function `f` is defined twice"]);
        assert_eq!(errors(".func f() { L: { L: } { L: } L: }"), ["the label `L` is defined twice"]);
    }
}
