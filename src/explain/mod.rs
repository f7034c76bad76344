//! From findings, which are numbers, to what people and tools are told: names, places, what is missing, what to do.

mod advice;
mod apart;
mod asynchronous;
mod fingerprint;
mod image;
mod inline;
mod labels;
pub mod names;
mod policy;
pub mod rules;
mod source;
mod spread;
mod suppressions;
mod timeline;

use std::borrow::Cow;
use std::fmt::Write;

use crate::abi::Tagged;
use crate::backend::{Launch, Plan, Program, Region};
use crate::diag::{Diagnostic, Place, Severity};
use crate::finding::{AccessClass, Finding, Kind, Missing, Relation, Rule, ThreadId, Witness};
use crate::instrument::{Site, SiteId, SiteKind};
use crate::isa::{Marking, MbarrierOp, Order, Scope};
use crate::span::SourceFile;
pub use inline::Inline;
pub use labels::again;
use names::demangle;
pub use policy::{Baseline, By, Known, Means, Policy, Sorted, Suppressed, Suppressor};
pub use source::{Frame, Search, Sources, frames, user_frame};
pub use spread::{Spot, Spread};
pub use suppressions::{Suppression, suppressions};
pub use timeline::{Edge, Event, Lane, Link, Timeline};

/// Memory that a launch sees, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Buffers and module variables.
    pub global: Vec<Region>,
    /// Variables in a block's shared memory. Bases may carry a space tag; it is ignored.
    pub shared: Vec<Region>,
}

/// What a finding is explained with.
#[derive(Clone, Copy, Debug)]
pub struct Context<'c> {
    /// The modules of the program.
    pub programs: &'c [Program<'c>],
    /// What was launched.
    pub plan: &'c Plan,
    /// For launches that are nodes of a graph, which launch of a graph it was.
    pub graphs: &'c [Option<u32>],
    /// Memory of each launch.
    pub memory: &'c [Memory],
    /// Memory that all launches see; of those that overlap, the last is meant.
    pub regions: &'c [Region],
    /// Source files.
    pub sources: &'c Sources,
    /// The command that shows the finding again.
    pub replay: &'c str,
    /// How many of how many schedules showed it; `None` when there was one.
    pub schedules: Option<(u64, u64)>,
}

/// A finding for people and tools.
#[derive(Clone, Debug)]
pub struct Explained {
    /// The rule.
    pub rule: Rule,
    /// How bad.
    pub severity: Severity,
    /// The classes that conflict.
    pub kind: Option<Kind>,
    /// The widest distance.
    pub relation: Relation,
    /// `shared` or `global`.
    pub space: Option<Cow<'static, str>>,
    /// What is raced on.
    pub object: Option<Object>,
    /// First byte of the conflict, without its space tag.
    pub address: Option<u64>,
    /// The launch of the last access.
    pub launch: u32,
    /// Conflicts.
    pub count: u64,
    /// Stable over runs and unrelated edits.
    pub fingerprint: String,
    /// The witness.
    pub accesses: Vec<AccessFacts>,
    /// What is missing, one sentence.
    pub missing: String,
    /// What to do, one sentence.
    pub help: String,
    /// The command that shows it again.
    pub replay: String,
    /// What is known of the order between the accesses.
    pub timeline: Timeline,
    /// Where in the object the conflicts are, if at more than one address.
    pub spread: Option<Spread>,
    /// A comment in the source that allows it.
    pub inline: Option<Inline>,
    /// All of it for people.
    pub diagnostic: Diagnostic,
}

/// The object raced on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// Its name in the source, or the buffer's.
    pub name: String,
    /// The demangled name with its scope, if that says more.
    pub full: Option<String>,
    /// Offset of the conflict's first byte.
    pub offset: u64,
    /// Index of the element there.
    pub element: u64,
    /// Bytes of the access there.
    pub bytes: u64,
    /// Bytes of all of the object; `None` when unknown.
    pub size: Option<u64>,
    /// The calls that led to its making, innermost first, if they were kept.
    pub allocated: Vec<String>,
}

/// One access of a witness.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessFacts {
    /// Opcode with modifiers.
    pub op: String,
    /// `read`, `write`, `atomic`, or what a synchronising instruction is.
    pub access: Cow<'static, str>,
    /// Memory order of an access.
    pub order: Option<Cow<'static, str>>,
    /// Its scope, if it is strong.
    pub scope: Option<Cow<'static, str>>,
    /// Bytes.
    pub width: u32,
    /// The entry, as PTX names it.
    pub kernel: String,
    /// Block index.
    pub block: [u32; 3],
    /// Thread index.
    pub thread: [u32; 3],
    /// Warp of the block.
    pub warp: u32,
    /// Lane of the warp.
    pub lane: u32,
    /// Where the instruction is in the PTX text.
    pub ptx: Frame,
    /// Its source as the module names it, innermost first; empty when unknown.
    pub source: Vec<Frame>,
    /// Where to show it: in the user's source if that is known, with the path it was read from, else in the PTX text.
    pub place: Frame,
    /// What is said of it there: "write, 4 bytes, block (0,0,0) thread (5,0,0), warp 0 lane 5".
    pub text: String,
}

impl Context<'_> {
    /// The module of a site, and the site.
    fn instruction(&self, site: SiteId) -> Option<(Program<'_>, &Site)> {
        self.programs.iter().find_map(|program| Some((*program, program.sites.get(site)?)))
    }

    fn site(&self, witness: &Witness) -> Option<&Site> {
        self.instruction(witness.site).map(|(_, site)| site)
    }

    /// The text of a site's module.
    fn text(&self, site: &Site) -> Option<&SourceFile> {
        self.instruction(site.id).map(|(program, _)| program.source)
    }

    /// The text of a site's instruction.
    fn slice(&self, site: &Site) -> &str {
        self.text(site).map_or("", |source| source.slice(site.span))
    }

    /// "`cuMemcpyDtoHAsync`", if it is the host.
    fn call(&self, witness: &Witness) -> Option<&str> {
        witness.is_host().then(|| self.launch(witness.thread).map_or("", |launch| &launch.kernel))
    }

    fn launch(&self, thread: ThreadId) -> Option<&Launch> {
        self.plan.launches.get(thread.launch as usize)
    }

    /// Whether all witnesses are nodes of one launch of a graph.
    fn in_one_graph(&self, finding: &Finding) -> bool {
        let graph = |witness: &Witness| self.graphs.get(witness.thread.launch as usize).copied().flatten();
        let mut graphs = finding.witnesses.iter().map(graph);
        graphs.next().flatten().is_some_and(|first| graphs.all(|other| other == Some(first)))
    }

    fn block_index(&self, thread: ThreadId) -> [u32; 3] {
        self.launch(thread).map_or([thread.block, 0, 0], |launch| launch.block_index(thread.block))
    }

    /// "block (0,0,0) thread (5,0,0), warp 0 lane 5"
    fn who(&self, thread: ThreadId) -> String {
        let linear = u32::from(thread.warp) * 32 + u32::from(thread.lane);
        let index = self.launch(thread).map_or([linear, 0, 0], |launch| {
            launch.thread_index(u32::from(thread.warp), u32::from(thread.lane))
        });
        let block = show(self.block_index(thread));
        format!("block {block} thread {}, warp {} lane {}", show(index), thread.warp, thread.lane)
    }

    fn frame(&self, site: &Site) -> Frame {
        let Some(source) = self.text(site) else {
            return Frame { file: String::new(), line: 0, column: 0 };
        };
        let at = source.line_col(site.span.start);
        Frame { file: source.path().to_string_lossy().into_owned(), line: at.line, column: at.column }
    }

    fn facts(&self, witness: &Witness) -> AccessFacts {
        let thread = witness.thread;
        let site = self.site(witness);
        let launch = self.launch(thread);
        let (warp, lane) = (u32::from(thread.warp), u32::from(thread.lane));
        AccessFacts {
            op: match self.call(witness) {
                Some(call) => call.to_owned(),
                None => site.map_or_else(String::new, |site| site.opcode.to_string()),
            },
            access: action(site, witness.class).into(),
            order: site.and_then(order_of).map(|(order, _)| order.name().into()),
            scope: site.and_then(order_of).and_then(|(_, scope)| scope).map(|scope| scope.name().into()),
            width: if witness.is_host() || site.is_some_and(touches) { witness.bytes.into() } else { 0 },
            kernel: launch.filter(|_| !witness.is_host()).map_or_else(String::new, |l| l.kernel.clone()),
            block: self.block_index(thread),
            thread: launch.map_or([warp * 32 + lane, 0, 0], |launch| launch.thread_index(warp, lane)),
            warp,
            lane,
            ptx: site.map(|site| self.frame(site)).unwrap_or_default(),
            source: site.and_then(|site| site.loc.as_deref()).map(frames).unwrap_or_default(),
            place: Frame::default(),
            text: String::new(),
        }
    }

    /// The memory that an address is in, and how far in.
    fn region(&self, witness: &Witness, tagged: Tagged) -> Option<(&Region, u64)> {
        let memory = self.memory.get(witness.thread.launch as usize);
        let regions = memory.map(|m| if tagged.is_shared() { &m.shared } else { &m.global });
        let at = tagged.address();
        let base = |region: &Region| Tagged(region.base).address();
        let holds = |r: &&Region| at >= base(r) && at - base(r) < r.bytes;
        let everywhere = || self.regions.iter().rev().filter(|_| !tagged.is_shared()).find(holds);
        let region = regions.into_iter().flatten().find(holds).or_else(everywhere)?;
        Some((region, at - base(region)))
    }

    /// Bytes of an element. Compilers declare arrays of any type as bytes; then the access tells what an element is.
    fn element(&self, region: &Region, witness: &Witness) -> u64 {
        if region.element > 1 { region.element } else { u64::from(witness.bytes).max(1) }
    }

    /// What lies at an address.
    fn object(&self, witness: &Witness, address: u64) -> Object {
        let tagged = Tagged(address);
        let bytes = u64::from(witness.bytes);
        let Some((region, offset)) = self.region(witness, tagged) else {
            let at = tagged.address();
            // A variable of a device function is not announced; its instruction may name it all the same.
            let symbol = self.site(witness).and_then(|site| self.symbol(site));
            let name = symbol.map(demangle);
            let full = name.as_ref().filter(|name| name.full != name.short).map(|name| name.full.clone());
            let unknown = if tagged.is_shared() { "shared memory" } else { "global memory" };
            let name = name.map_or_else(|| unknown.to_owned(), |name| name.short);
            return Object {
                name,
                full,
                offset: at,
                element: at / bytes.max(1),
                bytes,
                size: None,
                allocated: Vec::new(),
            };
        };
        let is_buffer =
            !tagged.is_shared() && self.plan.buffers.iter().any(|buffer| buffer.name == region.name);
        let name = if is_buffer {
            names::Name { short: region.name.clone(), full: region.name.clone() }
        } else {
            demangle(&region.name)
        };
        Object {
            full: (name.full != name.short).then_some(name.full),
            name: name.short,
            offset,
            element: offset / self.element(region, witness),
            bytes,
            size: Some(region.bytes),
            allocated: Vec::new(),
        }
    }

    /// The variable that an instruction's address names.
    fn symbol(&self, site: &Site) -> Option<&str> {
        let text = self.slice(site);
        let inside = text.split_once('[')?.1;
        let name = inside.split([']', '+', '-', ',']).next()?.trim();
        (!name.is_empty() && !name.starts_with('%')).then_some(name)
    }
}

fn show(index: [u32; 3]) -> String {
    format!("({},{},{})", index[0], index[1], index[2])
}

/// Whether an instruction accesses memory.
fn touches(site: &Site) -> bool {
    matches!(
        site.kind,
        SiteKind::Access(_)
            | SiteKind::AsyncCopy(_)
            | SiteKind::Mbarrier(_)
            | SiteKind::Fill(_)
            | SiteKind::Tile(_)
            | SiteKind::Product(_)
            | SiteKind::Image(_)
    )
}

/// Memory order and scope of what accesses memory.
fn order_of(site: &Site) -> Option<(Order, Option<Scope>)> {
    Some(match &site.kind {
        SiteKind::Access(access) => (access.order, access.scope),
        SiteKind::AsyncCopy(copy) if copy.op.is_some() => {
            (Order::Relaxed, Some(if copy.bulk { Scope::Gpu } else { Scope::Cluster }))
        }
        SiteKind::Mbarrier(mbarrier) => match mbarrier.op {
            MbarrierOp::Init { .. } | MbarrierOp::Inval => (Order::Weak, None),
            _ => (mbarrier.order, Some(mbarrier.scope)),
        },
        _ if touches(site) => (Order::Weak, None),
        _ => return None,
    })
}

/// What an instruction does, in a word or two.
fn action(site: Option<&Site>, class: AccessClass) -> &'static str {
    match site.map(|site| &site.kind) {
        Some(SiteKind::Fence(_)) => "fence",
        Some(SiteKind::Barrier(_)) => "barrier",
        Some(SiteKind::WarpBarrier) => "warp barrier",
        Some(SiteKind::Converge(_)) => "warp instruction",
        Some(SiteKind::ClusterBarrier(_)) => "cluster barrier",
        Some(SiteKind::Exit) => "exit",
        _ => match class {
            AccessClass::Read => "read",
            AccessClass::Write => "write",
            AccessClass::Atomic => "atomic",
        },
    }
}

/// Sorts findings for reports: errors first, then by rule, launch and address.
pub fn order(findings: &mut [Explained]) {
    findings.sort_by(|a, b| {
        let key =
            |f: &Explained| (std::cmp::Reverse(f.severity), f.rule, f.launch, f.space.clone(), f.address);
        let places =
            |f: &Explained| f.accesses.iter().map(|a| (a.ptx.line, a.ptx.column)).collect::<Vec<_>>();
        key(a).cmp(&key(b)).then_with(|| places(a).cmp(&places(b)))
    });
}

/// Explains a finding.
pub fn explain(finding: &Finding, context: &Context<'_>) -> Explained {
    // What one thread did alone has one side, however often it is given.
    let mut finding = finding.clone();
    finding.witnesses.dedup();
    let finding = &finding;
    let mut accesses: Vec<_> = finding.witnesses.iter().map(|witness| context.facts(witness)).collect();
    let launches = finding.witnesses.windows(2).any(|pair| pair[0].thread.launch != pair[1].thread.launch);
    for (access, witness) in accesses.iter_mut().zip(&finding.witnesses) {
        let Some(site) = context.site(witness) else { continue };
        let launch = if launches { format!("launch #{} ", witness.thread.launch) } else { String::new() };
        access.text = format!("{}, {launch}{}", doing(site, witness), context.who(witness.thread));
        access.place = labels::place(access, context.sources);
    }
    let spans = finding.witnesses.iter().map(|witness| {
        let site = context.site(witness)?;
        Some(Place::Text { file: context.text(site)?.clone(), span: instruction(context, site) })
    });
    let labels = labels::labels(&accesses, &spans.collect::<Vec<_>>(), context.sources);
    let last = finding.witnesses.last();
    // S rules are about instructions; only accesses have an address.
    let is_access = |w: &&Witness| w.is_host() || context.site(w).is_some_and(touches);
    // A publication is of its data.
    let to_host = matches!(finding.missing, Missing::ToHost { .. });
    let touched =
        if to_host { finding.witnesses.first() } else { finding.witnesses.iter().rev().find(is_access) };
    let address = touched.map(|last| {
        if to_host {
            return last.address;
        }
        // The overlap of two accesses begins where the later one does.
        let same_space = |w: &&Witness| Tagged(w.address).is_shared() == Tagged(last.address).is_shared();
        finding.witnesses.iter().filter(same_space).map(|w| w.address).max().unwrap_or(last.address)
    });
    // Of accesses of different sizes the smaller one tells best which element is meant.
    let smaller = touched.map(|last| {
        let bytes = finding.witnesses.iter().map(|witness| witness.bytes).min().unwrap_or(last.bytes);
        Witness { bytes, ..*last }
    });
    let object = smaller.zip(address).map(|(witness, address)| context.object(&witness, address));
    let spread = spread::spread(finding, context, object.as_ref(), smaller.zip(address));
    let space = address.map(|address| if Tagged(address).is_shared() { "shared" } else { "global" });
    let of_kernel = finding.witnesses.iter().rev().find(|witness| !witness.is_host());
    let launch = of_kernel.or(last).map_or(0, |witness| witness.thread.launch);
    let told = advice::Told { finding, context, object: object.as_ref(), space };
    let (missing, help) = (told.missing(), told.help());
    let mut explained = Explained {
        rule: finding.rule,
        severity: finding.severity,
        kind: finding.kind,
        relation: finding.relation,
        space: space.map(Cow::Borrowed),
        address: address.map(|address| Tagged(address).address()),
        launch,
        count: finding.count,
        fingerprint: fingerprint::fingerprint(finding, context, object.as_ref()),
        missing: missing.clone(),
        help: help.clone(),
        replay: context.replay.to_owned(),
        timeline: timeline::timeline(&told),
        spread,
        inline: inline::allowed(finding.rule, &accesses, context),
        diagnostic: Diagnostic {
            severity: finding.severity,
            code: Some(finding.rule.id()),
            message: told.headline(),
            labels,
            notes: Vec::new(),
            help: vec![help],
        },
        accesses,
        object: object.clone(),
    };
    explained.diagnostic.notes = notes(finding, &explained, context, &told, missing);
    explained
}

/// Facts below the snippets.
fn notes(
    finding: &Finding,
    explained: &Explained,
    context: &Context<'_>,
    told: &advice::Told<'_, '_>,
    missing: String,
) -> Vec<String> {
    let mut notes = vec![missing];
    if finding.doubtful {
        notes.push(
            "this is no error, as synchronisation that is not covered yet may order (1) and (2)".into(),
        );
    }
    if let (Some(object), Some(address), Some(space)) =
        (&explained.object, explained.address, &explained.space)
    {
        let mut note = format!("address {address:#x}");
        if let Some(size) = object.size {
            let name = object.full.as_ref().unwrap_or(&object.name);
            let _ = write!(
                note,
                " in `{name}` (`.{space}`, {size} bytes): element `{}[{}]`",
                object.name, object.element
            );
        } else {
            let _ = write!(note, " in {space} memory");
        }
        notes.push(note);
    }
    let hosts = finding.witnesses.iter().enumerate().filter_map(|(i, w)| Some((i, w, context.call(w)?)));
    for (index, witness, call) in hosts {
        let stream = context.launch(witness.thread).map_or(0, |launch| launch.stream);
        let (number, does) = (witness.thread.launch, action(None, witness.class));
        notes.push(format!("({}) is `{call}`, operation #{number} in stream {stream}: a {does}", index + 1));
    }
    let of_kernel = finding.witnesses.iter().any(|witness| !witness.is_host());
    let launch = context.plan.launches.get(explained.launch as usize).filter(|_| of_kernel);
    if let Some(launch) = launch {
        let (grid, block) = (show(launch.grid), show(launch.block));
        let kernel = demangle(&launch.kernel).full;
        notes.push(format!("kernel `{kernel}`, launch #{}, grid {grid} block {block}", explained.launch));
    }
    notes.extend(told.intervals());
    let alone = finding.witnesses.len() < 2;
    if finding.count > 1 && explained.object.is_some() && !alone {
        let addresses = if finding.addresses == 1 { "address" } else { "addresses" };
        notes.push(format!("same pair: {} conflicts, {} {addresses}", finding.count, finding.addresses));
    } else if finding.count > 1 {
        notes.push(format!("seen {} times", finding.count));
    }
    if let Some((seen, of)) = context.schedules {
        notes.push(format!("seen in {seen} of {of} schedules"));
    }
    notes.push(format!("replay: {}", explained.replay));
    notes
}

/// The instruction without its `;`.
fn instruction(context: &Context<'_>, site: &Site) -> crate::span::Span {
    let text = context.slice(site).trim_end_matches([';', ' ', '\t']);
    let start = site.span.start as usize;
    // A guard or vector operand may run over lines; one line is enough to point at.
    let line = text.lines().next().unwrap_or(text).trim_end();
    crate::span::Span::new(start, start + line.len())
}

fn bytes(n: u8) -> String {
    if n == 1 { "1 byte".into() } else { format!("{n} bytes") }
}

/// "volatile write of 1, 4 bytes", "barrier `bar.sync`"
fn doing(site: &Site, witness: &Witness) -> String {
    let Some(access) = site.access() else {
        if matches!(site.kind, SiteKind::AsyncCopy(_)) {
            return format!("asynchronous {} by `{}`", action(Some(site), witness.class), site.opcode);
        }
        return format!("{} `{}`", action(Some(site), witness.class), site.opcode);
    };
    let action = action(Some(site), witness.class);
    let marked = match access.marking {
        Marking::Plain if access.order.is_strong() && witness.class != AccessClass::Atomic => {
            format!("{} {action}", access.order.name())
        }
        Marking::Plain => action.to_owned(),
        Marking::Volatile => format!("volatile {action}"),
        Marking::Mmio => format!("mmio {action}"),
        Marking::NonCoherent => format!("non-coherent {action}"),
    };
    let bytes = bytes(witness.bytes);
    let scope = access.scope.filter(|_| access.marking == Marking::Plain);
    let scope = scope.map(|scope| format!(", scope {}", scope.name())).unwrap_or_default();
    format!("{marked}, {bytes}{scope}")
}
