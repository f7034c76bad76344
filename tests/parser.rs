//! The parser on any text: it returns, its spans are of the text, and what it has read covers the text without loss.

mod common;

use std::fs;

use common::modules;
use proptest::prelude::*;
use ptxrace::instrument::edit::Edits;
use ptxrace::instrument::{SiteTable, instrument};
use ptxrace::ptx::ast::{Address, Block, Directive, Function, Item, Operand, Statement, Variable, Word};
use ptxrace::ptx::{self, Parsed};
use ptxrace::span::Span;

/// Walks a tree and checks its spans against the text.
struct Walk<'t> {
    text: &'t str,
}

impl Walk<'_> {
    fn span(&self, span: Span) -> &str {
        self.text.get(span.range()).unwrap_or_else(|| panic!("{span:?} is no span of the text"))
    }

    fn word(&self, word: &Word<'_>, within: Span) {
        assert_eq!(self.span(word.span), word.text);
        inside(word.span, within);
    }

    fn module(&self, parsed: &Parsed<'_>) {
        for error in &parsed.errors {
            self.span(error.span);
        }
        let whole = Span::new(0, self.text.len());
        for item in &parsed.module.items {
            match item {
                Item::Directive(directive) => self.directive(directive, whole),
                Item::Variable(variable) => self.variable(variable, whole),
                Item::Function(function) => self.function(function, whole),
            }
        }
        in_order(&parsed.module.items.iter().map(item_span).collect::<Vec<_>>());
    }

    fn directive(&self, directive: &Directive<'_>, within: Span) {
        inside(directive.span, within);
        self.word(&directive.name, directive.span);
        self.word(&directive.args, directive.span);
    }

    fn variable(&self, variable: &Variable<'_>, within: Span) {
        inside(variable.span, within);
        self.word(&variable.ty, variable.span);
        self.word(&variable.name, variable.span);
        variable.linkage.iter().for_each(|word| self.word(word, variable.span));
        variable.init.iter().for_each(|init| inside(init.span, variable.span));
    }

    fn function(&self, function: &Function<'_>, within: Span) {
        inside(function.span, within);
        self.word(&function.name, function.span);
        function.linkage.iter().for_each(|word| self.word(word, function.span));
        function.returns.iter().chain(&function.params).for_each(|v| self.variable(v, function.span));
        function.directives.iter().for_each(|directive| self.directive(directive, function.span));
        function.body.iter().for_each(|body| self.block(body, function.span));
    }

    fn block(&self, block: &Block<'_>, within: Span) {
        inside(block.span, within);
        assert!(self.span(block.span).starts_with('{'));
        let mut spans = Vec::new();
        for statement in &block.statements {
            spans.push(match statement {
                Statement::Label(word) => {
                    self.word(word, block.span);
                    word.span
                }
                Statement::Block(inner) => {
                    self.block(inner, block.span);
                    inner.span
                }
                Statement::Registers(registers) => {
                    inside(registers.span, block.span);
                    registers.names.iter().for_each(|(name, _)| self.word(name, registers.span));
                    registers.span
                }
                Statement::Variable(variable) => {
                    self.variable(variable, block.span);
                    variable.span
                }
                Statement::Directive { label, directive } => {
                    label.iter().for_each(|label| self.word(label, block.span));
                    self.directive(directive, block.span);
                    directive.span
                }
                Statement::Instruction(instruction) => {
                    let span = instruction.span;
                    inside(span, block.span);
                    self.word(&instruction.opcode, span);
                    instruction.guard.iter().for_each(|guard| self.word(&guard.register, guard.span));
                    instruction.modifiers().iter().for_each(|word| self.word(&word, span));
                    instruction.operands.iter().for_each(|operand| self.operand(operand, span));
                    in_order(&instruction.operands.iter().map(Operand::span).collect::<Vec<_>>());
                    span
                }
            });
        }
        in_order(&spans);
    }

    fn operand(&self, operand: &Operand<'_>, within: Span) {
        let span = operand.span();
        inside(span, within);
        self.span(span);
        match operand {
            Operand::Name(text, start) => self.word(&Word::new(text, *start), span),
            Operand::Offset(offset, _) => self.word(&offset.0, span),
            Operand::Address(address) => {
                let Address { base, extra, .. } = &**address;
                base.iter().for_each(|base| self.word(base, span));
                extra.iter().for_each(|operand| self.operand(operand, span));
            }
            Operand::Vector(list) | Operand::List(list) => {
                list.iter().for_each(|operand| self.operand(operand, span));
            }
            Operand::Pair(both, _) => both.iter().for_each(|operand| self.operand(operand, span)),
            Operand::Not(a, _) | Operand::Negated(a, _) => self.operand(a, span),
            Operand::Int(..) | Operand::F32(..) | Operand::F64(..) => {}
        }
    }
}

fn item_span(item: &Item<'_>) -> Span {
    match item {
        Item::Directive(directive) => directive.span,
        Item::Variable(variable) => variable.span,
        Item::Function(function) => function.span,
    }
}

fn inside(inner: Span, outer: Span) {
    assert!(outer.start <= inner.start && inner.end <= outer.end, "{inner:?} is not inside of {outer:?}");
}

fn in_order(spans: &[Span]) {
    for pair in spans.windows(2) {
        // Variables of one declaration, as in `.b32 a, b;`, begin where it does.
        let fine = pair[0].end <= pair[1].start || pair[0].start == pair[1].start;
        assert!(fine, "{:?} overlaps {:?}", pair[0], pair[1]);
    }
}

fn check(text: &str) {
    Walk { text }.module(&ptx::parse(text));
}

/// What stands between the items of a text that has no errors: blanks and comments, nothing else.
fn only_trivia(text: &str, parsed: &Parsed<'_>) {
    let mut at = 0;
    for span in parsed.module.items.iter().map(item_span) {
        trivia(text.get(at..span.start as usize).unwrap_or(""));
        at = span.end as usize;
    }
    trivia(&text[at..]);
}

fn trivia(gap: &str) {
    let mut rest = gap.trim_start_matches(|c: char| c.is_whitespace() || c == '\0');
    while !rest.is_empty() {
        let after = if rest.starts_with("//") || rest.starts_with('#') {
            rest.find('\n')
        } else if rest.starts_with("/*") {
            rest.find("*/").map(|end| end + 2)
        } else {
            panic!("`{rest}` was skipped")
        };
        rest = after.map_or("", |after| &rest[after..]);
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '\0');
    }
}

#[test]
fn modules_are_read_without_loss() {
    for path in modules() {
        let text = fs::read_to_string(&path).expect("a module");
        let parsed = ptx::parse(&text);
        Walk { text: &text }.module(&parsed);
        if !parsed.errors.is_empty() {
            assert!(path.components().any(|c| c.as_os_str() == "invalid"), "{}", path.display());
            continue;
        }
        only_trivia(&text, &parsed);
        assert_eq!(Edits::default().apply(&text).expect("no edits").text, text);
    }
}

/// Taking out what was put in, and putting back what was replaced, gives the original: instructions stay in place.
#[test]
fn instrumented_modules_hold_the_original() {
    for path in modules() {
        let text = fs::read_to_string(&path).expect("a module");
        let parsed = ptx::parse(&text);
        if !parsed.errors.is_empty() {
            continue;
        }
        let sites = SiteTable::new(&parsed.module);
        let Ok(done) = instrument(&text, &parsed.module, &sites, ptxrace::instrument::CallMode::Local) else {
            continue;
        };
        let mut kept = String::new();
        let mut at = 0;
        for span in &done.inserted {
            kept.push_str(&done.text[at..span.start as usize]);
            at = span.end as usize;
        }
        kept.push_str(&done.text[at..]);
        // What is replaced is taken out of both: then the rest is a subsequence of the original's lines.
        let mut lines = text.lines();
        for line in kept.lines().filter(|line| !line.trim().is_empty()) {
            let found = lines.any(|original| original == line || is_part(line, original));
            assert!(found, "{}: `{line}` is not of the original, or out of order", path.display());
        }
    }
}

/// Whether a line is another one with parts taken out.
fn is_part(line: &str, original: &str) -> bool {
    let mut chars = original.chars();
    line.chars().all(|c| chars.any(|o| o == c))
}

/// Words and marks that PTX is made of, with some that it is not.
const TOKENS: [&str; 58] = [
    ".version",
    "8.0",
    ".target",
    "sm_80",
    ".address_size",
    "64",
    ".visible",
    ".entry",
    ".func",
    "f",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    ";",
    ",",
    ":",
    "|",
    "!",
    "@",
    "@!",
    "%p1",
    "%r1",
    "%rd1",
    "%r<5>",
    "%tid.x",
    "_",
    "$L",
    "+",
    "-",
    "=",
    "<",
    ">",
    ".reg",
    ".b32",
    ".pred",
    ".param",
    ".shared",
    ".align",
    "16",
    "0x1F",
    "0f3F800000",
    "0d3FF0000000000000",
    "1.5",
    "ld.global.u32",
    "st.volatile.shared.v4.b32",
    "bra",
    "call.uni",
    "ret;",
    "// c\n",
    "/* c */",
    "/*",
    "\"text\"",
    ".loc 1 2 3",
    "\n",
    "é",
];

fn soup() -> impl Strategy<Value = String> {
    let token = prop::sample::select(&TOKENS[..]);
    let gap = prop::sample::select(&["", " ", "\t", "\n"][..]);
    prop::collection::vec((token, gap), 0..120)
        .prop_map(|parts| parts.into_iter().flat_map(|(token, gap)| [token, gap]).collect())
}

/// A real module with pieces cut out, doubled or replaced.
fn damaged() -> impl Strategy<Value = String> {
    let files = modules();
    let small = files.into_iter().filter_map(|path| fs::read_to_string(path).ok()).filter(|t| t.len() < 8000);
    let texts: Vec<String> = small.collect();
    let damage = (any::<prop::sample::Index>(), 0usize..40, prop::sample::select(&TOKENS[..]), any::<bool>());
    (prop::sample::select(texts), prop::collection::vec(damage, 1..6)).prop_map(|(mut text, damages)| {
        for (at, length, token, cut) in damages {
            let mut start = at.index(text.len() + 1);
            let mut end = (start + length).min(text.len());
            while !text.is_char_boundary(start) {
                start -= 1;
            }
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            text.replace_range(start..end.max(start), if cut { "" } else { token });
        }
        text
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        check(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn any_characters(text in "\\PC{0,200}") {
        check(&text);
    }

    #[test]
    fn any_tokens(text in soup()) {
        check(&text);
        check(&format!(".version 8.0\n.target sm_80\n.visible .entry k()\n{{\n{text}\n}}\n"));
    }

    #[test]
    fn damaged_modules(text in damaged()) {
        check(&text);
    }
}

/// What ptxas takes is taken whole: the forms have names that are declared, and can be instrumented.
#[test]
fn forms_are_understood() {
    let forms: Vec<_> =
        modules().into_iter().filter(|path| path.components().any(|c| c.as_os_str() == "forms")).collect();
    assert!(forms.len() > 30, "only {} forms found", forms.len());
    for path in forms {
        let text = fs::read_to_string(&path).expect("a module");
        let parsed = ptx::parse(&text);
        assert_eq!(parsed.errors, [], "{}", path.display());
        assert_eq!(ptx::check_names(&parsed.module), [], "{}", path.display());
        let sites = SiteTable::new(&parsed.module);
        let done = instrument(&text, &parsed.module, &sites, ptxrace::instrument::CallMode::Local);
        let done = done.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let again = ptx::parse(&done.text);
        assert_eq!(again.errors, [], "{}", path.display());
        assert_eq!(ptx::check_names(&again.module), [], "{}", path.display());
    }
}

/// Brackets beyond any sense: an error, and the stack holds.
#[test]
fn deep_nesting_is_refused() {
    for (open, close) in [("{", "}"), ("(", ")"), ("[", "]"), ("!", ""), ("-", "")] {
        let (open, close) = (open.repeat(2_000), close.repeat(2_000));
        check(&format!(".func f() {{ add.u32 %r1, {open}%r2{close}; }}"));
        check(&format!(".func f() {{ {open} {close} }}"));
        check(&format!(".global .b32 v = {open}1{close};"));
    }
}

/// What nobody knows passes; what is nearly known is a slip, unless PTX may have grown since.
#[test]
fn nearly_known_directives_are_slips_in_versions_that_are_listed() {
    let text = |version: &str| {
        format!(
            ".version {version}\n.target sm_90\n.address_size 64\n.algn 4;\n\
            .entry k() .maxntidx 4 {{ .pragmas \"x\"; ret; }}\n.frobnicate 1, \"x\";\n"
        )
    };
    for (version, slips) in [("9.0", 3), ("8.7", 3), ("x", 3), ("9.1", 0), ("10.0", 0)] {
        let text = text(version);
        let parsed = ptx::parse(&text);
        let helps: Vec<_> = parsed.errors.iter().filter_map(|error| error.help.as_deref()).collect();
        assert_eq!((parsed.errors.len(), helps.len()), (slips, slips), "{version}: {helps:?}");
        assert_eq!(parsed.module.items.len(), 6, "{version}");
    }
}
