//! What reading a text and writing a report cost: memory and time in proportion to their size, whatever is in them.

mod common;

use std::time::{Duration, Instant};
use std::{fs, io};

use common::modules;
use ptxrace::explain::Policy;
use ptxrace::instrument::{SiteTable, instrument};
use ptxrace::ptx;
use ptxrace::ptx::Parsed;
use ptxrace::ptx::ast::{Block, Item, Operand, Statement, Variable};
use ptxrace::report::{Format, Output, Silent, Style, merge, read, write, write_summary};
use ptxrace::session::{self, Choice, Linked, Request};
use ptxrace::span::SourceFile;

/// Heap bytes of a tree.
mod size {
    use super::{Block, Item, Operand, Parsed, Statement, Variable};
    use ptxrace::ptx::ast::{Address, Directive, Guard, InitValue, Sequence, SymbolValue, Word};

    pub(crate) fn tree(parsed: &Parsed<'_>) -> usize {
        let items = &parsed.module.items;
        let each = items.iter().map(|item| match item {
            Item::Directive(_) => 0,
            Item::Variable(v) => variable(v),
            Item::Function(f) => {
                let variables = f.returns.capacity() + f.params.capacity();
                variables * size_of::<Variable<'_>>()
                    + f.returns.iter().chain(&f.params).map(variable).sum::<usize>()
                    + f.directives.capacity() * size_of::<Directive<'_>>()
                    + f.body.iter().map(block).sum::<usize>()
            }
        });
        each.sum::<usize>() + items.capacity() * size_of::<Item<'_>>()
    }

    fn variable(v: &Variable<'_>) -> usize {
        let symbols =
            v.init.iter().flat_map(|i| &i.values).filter(|v| matches!(v, InitValue::Symbol(_))).count();
        v.dims.capacity() * size_of::<Option<u64>>()
            + v.init.as_ref().map_or(0, |init| init.values.capacity() * size_of::<InitValue<'_>>())
            + symbols * size_of::<SymbolValue<'_>>()
    }

    fn block(block: &Block<'_>) -> usize {
        let each = block.statements.iter().map(|statement| match statement {
            Statement::Block(inner) => self::block(inner),
            Statement::Variable(v) => size_of::<Variable<'_>>() + variable(v),
            Statement::Registers(r) => r.names.capacity() * size_of::<(Word<'_>, Option<u32>)>(),
            Statement::Instruction(i) => {
                i.guard.iter().count() * size_of::<Guard<'_>>()
                    + heap(i.operands.len())
                    + i.operands.iter().map(operand).sum::<usize>()
            }
            Statement::Label(_) | Statement::Directive { .. } => 0,
        });
        each.sum::<usize>() + block.statements.capacity() * size_of::<Statement<'_>>()
    }

    /// A list that is not in place has at most twice the room that it needs.
    fn heap(operands: usize) -> usize {
        if operands > 4 { 2 * operands * size_of::<Operand<'_>>() } else { 0 }
    }

    fn operand(op: &Operand<'_>) -> usize {
        let one = size_of::<Operand<'_>>();
        let all = |items: &[Operand<'_>]| items.iter().map(|item| one + operand(item)).sum::<usize>();
        match op {
            Operand::Address(address) => size_of::<Address<'_>>() + all(&address.extra),
            Operand::Vector(items) | Operand::List(items) => {
                size_of::<Sequence<'_>>() + heap(items.len()) + items.iter().map(operand).sum::<usize>()
            }
            Operand::Pair(both, _) => all(&both[..]),
            Operand::Not(inner, _) | Operand::Negated(inner, _) => one + operand(inner),
            Operand::Offset(..) => size_of::<(Word<'_>, i64)>(),
            Operand::Name(..) | Operand::Int(..) | Operand::F32(..) | Operand::F64(..) => 0,
        }
    }
}

/// Compilers' output takes at most 16 bytes of tree for each byte of text.
#[test]
fn the_tree_is_small() {
    let (mut text, mut tree) = (0, 0);
    for path in modules() {
        if path.with_extension("cu").exists() {
            let module = fs::read_to_string(&path).expect("a module");
            text += module.len();
            tree += size::tree(&ptx::parse(&module));
        }
    }
    println!("{tree} bytes for {text} of text: {:.1} for each", tree as f64 / text as f64);
    assert!(text > 100_000 && tree < 16 * text, "{tree} bytes for {text} of text");
}

/// Far more than what a text of a few megabytes takes in linear time, and far less than in quadratic time.
const PATIENCE: Duration = Duration::from_secs(10);

/// Texts made to be slow: each takes time and memory in proportion to its size.
#[test]
fn hostile_texts_take_linear_time() {
    const SIZE: usize = 1 << 20;
    let header = ".version 8.0\n.target sm_80\n.address_size 64\n";
    let pieces = [
        "{",
        "}",
        "(",
        ")",
        "[",
        "]",
        "<",
        "!",
        "-",
        "@",
        ".",
        ",",
        ";",
        ":",
        "\"",
        "'",
        "\\",
        "\0",
        "\r\n",
        "/*",
        "/**/",
        "//",
        "#",
        "é",
        "\u{3000}",
        "x",
        "9",
        "0x",
        "%",
        "$",
        "_",
        "a:",
        ".b ",
        "@p ",
        "x;",
        "a.",
        "a ",
        "/* */a",
        "1e",
        "mov.u32 a, b;",
        "mov.u32 a, (",
        "add a, -",
        "{ x",
        ".loc 1 1 1 ",
        ".loc 1 1 1, ",
        ".reg .b32 r<5>;",
        ".file 1 \"",
        ".pragma \"",
        ".section x {",
        ".entry e(",
        ".entry e() {",
        ".func f() {}",
        ".global .b32 x = {",
        ".global .b32 x;",
        "::",
        "a::",
        "|",
        "?",
        "? 1 : ",
        "1 + ",
        "~",
        ".b32 ",
        ".align 4 ",
        ".extern ",
        "=",
        "_ ",
        "[1",
        "@!p bra ",
    ];
    for piece in pieces {
        let many = piece.repeat(SIZE / piece.len());
        let texts = [
            many.clone(),
            format!("{header}{many}"),
            format!("{header}.visible .entry k() {{\n{many}\n}}\n"),
            format!("{header}.visible .entry k() {{ add.u32 {many}; ret; }}\n"),
            format!("{header}.global .b32 v[] = {{{many}}};\n"),
            format!("{header}.visible .entry k({many}) {{ ret; }}\n"),
        ];
        for text in texts {
            let start = Instant::now();
            let parsed = ptx::parse(&text);
            assert!(parsed.errors.len() <= ptx::MAX_ERRORS);
            let shown = parsed.errors.iter().all(|e| e.found.len() + e.context.len() < 1000);
            assert!(shown, "an error holds the text");
            assert!(size::tree(&parsed) < 300 * text.len(), "{piece}: the tree is out of proportion");
            ptx::check_names(&parsed.module);
            SiteTable::new(&parsed.module);
            assert!(start.elapsed() < PATIENCE, "`{piece}` took {:?}", start.elapsed());
        }
    }
}

/// As above, where each piece may have a number of its own.
#[test]
fn many_of_everything_take_linear_time() {
    const COUNT: usize = 100_000;
    let many = |piece: &dyn Fn(usize) -> String| (0..COUNT).map(piece).collect::<String>();
    let body = |text: &str| format!(".visible .entry k() {{ .reg .b64 %rd<2>; .reg .b32 %r<2>; {text} }}\n");
    let inlined = |n| {
        format!(".loc 1 {} 1, function_name f, inlined_at 1 {} 1\nst.global.u32 [%rd1], %r1;\n", n + 2, n + 1)
    };
    let bodies = [
        many(&|n| format!("L{n}: ")),
        many(&|n| format!("bra L{n};\n")),
        many(&|n| format!("L{n}: bra L{n};\n")),
        many(&|n| format!(".reg .b32 x{n}<3>;\n")),
        many(&|n| format!("mov.u32 %r1, %r{};\n", n + 2)),
        many(&|n| format!("ld.global.u32 %r1, [%rd1+{n}];\n")),
        many(&|n| format!(".pragma \"nounroll\"; {}", if n % 50_000 == 0 { "ret; " } else { "" })),
        many(&|n| format!(".shared .b32 s{n};\n")),
        many(&inlined),
    ];
    let modules = [
        many(&|n| format!(".visible .entry k{n}() {{ ret; }}\n")),
        many(&|_| ".visible .entry k() { ret; }\n".into()),
        many(&|n| format!(".shared .b32 s{n}; ")) + &many(&|n| format!(".entry k{n}() {{ }} ")),
        many(&|n| format!(".file {n} \"f{n}\"\n")),
        many(&|n| format!(".global .u64 g{n} = {{ g{n}, 0xff(g{n}), {n} }};\n")),
    ];
    for module in bodies.iter().map(|text| body(text)).chain(modules) {
        let text = format!(".version 8.0\n.target sm_80\n.address_size 64\n{module}");
        let start = Instant::now();
        let parsed = ptx::parse(&text);
        assert_eq!(parsed.errors, []);
        assert!(ptx::check_names(&parsed.module).len() <= ptx::MAX_ERRORS);
        let sites = SiteTable::new(&parsed.module);
        // Names that are not declared cannot be logged; no other reason to fail is asked for here.
        let _ = instrument(&text, &parsed.module, &sites, ptxrace::instrument::CallMode::Local);
        assert!(start.elapsed() < PATIENCE, "{:?} for {}...", start.elapsed(), &text[..200]);
    }
}

/// Keeps what is written, and how much at once at most.
#[derive(Default)]
struct Pieces {
    bytes: Vec<u8>,
    largest: usize,
}

impl io::Write for Pieces {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        self.largest = self.largest.max(piece.len());
        self.bytes.write(piece)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// 10,000 findings take less than 2 s in each format on an idle machine; what is quadratic takes minutes.
#[test]
fn reports_of_many_findings_take_linear_time() {
    const COUNT: u32 = 10_000;
    let request = Request {
        file: "ptx-samples/race/reduce-missing-sync.ptx".into(),
        backend: Choice::Emulator,
        ..Request::default()
    };
    let mut report = session::run(&request, &Linked, &Silent).expect("a sample").report;
    let one = report.findings.remove(0);
    let many = (0..COUNT).map(|n| {
        let mut finding = one.clone();
        finding.fingerprint = format!("{n:016x}");
        finding
            .accesses
            .iter_mut()
            .for_each(|access| access.source.iter_mut().for_each(|at| at.line = n + 1));
        finding
    });
    report.findings = many.collect();
    let timed = |what: &str, work: &mut dyn FnMut()| {
        let start = Instant::now();
        work();
        println!("{what}: {:?}", start.elapsed());
        assert!(start.elapsed() < PATIENCE, "{what} took {:?}", start.elapsed());
    };
    let mut json = Vec::new();
    for format in [Format::Text, Format::Json, Format::Sarif, Format::Junit, Format::Github, Format::Html] {
        let mut pieces = Pieces::default();
        let mut output = [Output { format, style: Style::default(), to: &mut pieces }];
        timed(&format!("{format:?}"), &mut || write(&report, &mut output).expect("a writer"));
        println!("{} MB", pieces.bytes.len() / 1_000_000);
        if format == Format::Json {
            json = pieces.bytes;
        } else if format == Format::Html {
            // A page is never in memory as a whole, and a browser can take it.
            assert!(pieces.largest < 1 << 17, "a piece of {} bytes", pieces.largest);
            assert!(pieces.bytes.len() < 32 << 20, "a page of {} bytes", pieces.bytes.len());
        }
    }
    timed("summary", &mut || write_summary(&report, &mut Vec::new()).expect("a writer"));
    let file = SourceFile::new("a.json", String::from_utf8(json).expect("JSON")).expect("a text");
    let mut reports = Vec::new();
    timed("read", &mut || reports = vec![read(&file).expect("a report"), report.clone()]);
    timed("merge", &mut || report = merge(std::mem::take(&mut reports)));
    assert_eq!(report.findings.len(), COUNT as usize);
    timed("judge", &mut || report.judge(&Policy::new(&[], &["R001".into()]).expect("a policy")));
    assert_eq!(report.suppressed.len(), COUNT as usize);
    timed("suppressed", &mut || {
        let output = Output { format: Format::Junit, style: Style::default(), to: &mut Vec::new() };
        write(&report, &mut [output]).expect("a writer");
    });
}
