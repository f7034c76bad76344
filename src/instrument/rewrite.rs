//! The walk over a module: at each instruction with a site, the pass for it.

use super::bundle::Bundling;
use super::code::Code;
use super::edit::{Edited, Edits};
use super::error::{InstrumentError, Result};
use super::pass::Pass;
use super::runtime::Runtime;
use super::site::{Site, SiteKind, SiteTable};
use super::symbols::Symbols;
use super::{CallMode, Target, access, asynchronous, atomic, image, order, shared};
use crate::ptx::ast::{Block, Function, FunctionKind, Instruction, Module, Statement, VarSpace};

/// Bytes of the code that a usual site gets.
const USUAL_CODE: usize = 192;

/// Rewrites a module.
pub(super) fn rewrite(
    text: &str,
    module: &Module<'_>,
    sites: &SiteTable,
    target: Target,
    mode: CallMode,
) -> Result<Edited> {
    let mut walk = Walk {
        sites,
        next: 0,
        target,
        symbols: Symbols::new(module),
        runtime: Runtime::default(),
        edits: Edits::with_room(sites.sites().len(), sites.sites().len() * USUAL_CODE),
        spare: Code::default(),
    };
    for function in module.functions() {
        walk.function(function)?;
    }
    let Walk { mut edits, runtime, .. } = walk;
    let headers = [".address_size", ".target", ".version"];
    let header =
        headers.iter().find_map(|name| module.directive(name)).ok_or(InstrumentError::Header(".version"))?;
    edits.insert(header.span.end, &format!("\n{}", runtime.text(target, mode)));
    // Some compilers end their text with NUL, which ptxas refuses once it is no longer the end of a C string.
    let kept = text.trim_end_matches('\0').len();
    if kept < text.len() {
        edits.replace(crate::span::Span::new(kept, text.len()), "");
    }
    Ok(edits.apply(text)?)
}

struct Walk<'w, 'a> {
    sites: &'w SiteTable,
    /// The first site that the walk has not passed; sites are in the order of the text, as the walk is.
    next: usize,
    target: Target,
    symbols: Symbols<'a>,
    runtime: Runtime,
    edits: Edits,
    spare: Code,
}

impl<'w, 'a> Walk<'w, 'a> {
    fn function(&mut self, function: &Function<'a>) -> Result<()> {
        let Some(body) = &function.body else { return Ok(()) };
        if function.kind == FunctionKind::Entry
            && let Some(code) = shared::run(self.shared_variables(function), &mut self.runtime)
        {
            let (at, late) = entry_start(body);
            self.edits.insert(at, &if late { format!("\n\t{code}") } else { format!("{code}\n\t") });
        }
        self.symbols.enter_function(function);
        let result = self.block(body);
        self.symbols.leave();
        // Threads may end at the closing brace.
        let brace = body.span.end.saturating_sub(1);
        if let Some(site) = self.site(brace) {
            let mut code = std::mem::take(&mut self.spare);
            code.call(self.runtime.log(site.payload()), site.id.0, std::iter::empty());
            self.edits.insert_with(brace, |out| code.put_before(out));
            code.clear();
            self.spare = code;
        }
        result
    }

    fn block(&mut self, block: &Block<'a>) -> Result<()> {
        self.symbols.enter();
        for (index, statement) in block.statements.iter().enumerate() {
            match statement {
                Statement::Registers(registers) => self.symbols.registers(registers),
                Statement::Variable(variable) => self.symbols.variable(variable),
                Statement::Block(inner) => self.block(inner)?,
                Statement::Instruction(instruction) => {
                    let Some(site) = self.site(instruction.span.start) else { continue };
                    let at = before(&block.statements, index, instruction.span.start);
                    self.instruction(site, instruction, at)?;
                }
                Statement::Label(_) | Statement::Directive { .. } => {}
            }
        }
        self.symbols.leave();
        Ok(())
    }

    /// The sites of the shared variables of an entry, which come before those of its instructions.
    fn shared_variables(&mut self, entry: &Function<'a>) -> &'w [Site] {
        let is_variable = |site: &Site| matches!(site.kind, SiteKind::SharedVariable(_));
        let rest = self.sites.sites().get(self.next..).unwrap_or(&[]);
        let passed = rest.iter().take_while(|site| !is_variable(site) && site.span.start < entry.span.start);
        self.next += passed.count();
        let rest = self.sites.sites().get(self.next..).unwrap_or(&[]);
        let own = rest.iter().take_while(|site| is_variable(site) && *site.function == *entry.name.text);
        let variables = rest.get(..own.count()).unwrap_or(&[]);
        self.next += variables.len();
        variables
    }

    /// The site that begins here, where the walk comes next.
    fn site(&mut self, start: u32) -> Option<&'w Site> {
        while let Some(site) = self.sites.sites().get(self.next) {
            // Those of the next entry's variables wait for that.
            if site.span.start >= start || matches!(site.kind, SiteKind::SharedVariable(_)) {
                return (site.span.start == start).then_some(site);
            }
            self.next += 1;
        }
        None
    }

    fn instruction(&mut self, site: &'w Site, instruction: &Instruction<'a>, at: u32) -> Result<()> {
        if site.bundling == Bundling::Follows {
            return Ok(());
        }
        let pass = Pass {
            symbols: &self.symbols,
            target: self.target,
            site,
            instruction,
            runtime: &mut self.runtime,
            edits: &mut self.edits,
            spare: &mut self.spare,
            at,
        };
        match &site.kind {
            SiteKind::Access(kind) if kind.is_rmw() => atomic::run(pass, kind),
            SiteKind::Access(kind) => access::run(pass, kind),
            SiteKind::Fence(_) => {
                order::fence(pass);
                Ok(())
            }
            SiteKind::Barrier(barrier) => order::barrier(pass, barrier),
            SiteKind::WarpBarrier => order::warp(pass, 0),
            SiteKind::Converge(mask) => order::warp(pass, usize::from(*mask)),
            SiteKind::AsyncCopy(copy) => asynchronous::copy(pass, copy),
            SiteKind::Mbarrier(mbarrier) => asynchronous::mbarrier(pass, mbarrier),
            SiteKind::Fill(fill) => asynchronous::fill(pass, fill),
            SiteKind::Tile(tile) => asynchronous::tile(pass, tile),
            SiteKind::Product(product) => asynchronous::product(pass, product),
            SiteKind::Image(access) => image::run(pass, access),
            SiteKind::Group(_) | SiteKind::ClusterBarrier(_) | SiteKind::ProxyFence(_) | SiteKind::Exit => {
                order::bare(pass)
            }
            SiteKind::SharedVariable(_) | SiteKind::Coordinates => Ok(()),
        }
    }
}

/// Where code before an instruction goes: `used_bytes_mask` governs the very next instruction and stays with it, while
/// `nounroll` belongs to the block and stays in front.
fn before(statements: &[Statement<'_>], index: usize, start: u32) -> u32 {
    let mut at = start;
    for statement in statements.get(..index).unwrap_or(&[]).iter().rev() {
        let Statement::Directive { directive, .. } = statement else { break };
        match directive.name.text {
            ".pragma" if directive.args.text.contains("used_bytes_mask") => at = directive.span.start,
            ".pragma" | ".loc" => {}
            _ => break,
        }
    }
    at
}

/// The start of an entry, behind its declarations, and whether that is behind a variable declared among the code: it
/// cannot be named before.
fn entry_start(body: &Block<'_>) -> (u32, bool) {
    let mut start = None;
    let mut late = None;
    for (index, statement) in body.statements.iter().enumerate() {
        let span = match statement {
            Statement::Label(label) => label.span,
            Statement::Block(block) => block.span,
            Statement::Instruction(instruction) => instruction.span,
            Statement::Variable(variable) if start.is_some() && variable.space == VarSpace::Shared => {
                late = Some(variable.span.end);
                continue;
            }
            _ => continue,
        };
        start = start.or_else(|| Some(before(&body.statements, index, span.start)));
    }
    let start = start.unwrap_or(body.span.end.saturating_sub(1));
    (late.unwrap_or(start), late.is_some())
}
