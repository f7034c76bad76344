//! Headlines, what is missing, and what to do: the sentences of a report. Texts start in lower case, have no final
//! period, and name things.

use super::{Context, Object, show};
use crate::finding::{AccessClass, Finding, Instead, Missing, Pending, Relation, Rule, Side, Witness};
use crate::instrument::SiteKind;
use crate::isa::{MbarrierOp, Order, Scope};

/// What the sentences are made of.
pub(super) struct Told<'t, 'c> {
    pub(super) finding: &'t Finding,
    pub(super) context: &'t Context<'c>,
    pub(super) object: Option<&'t Object>,
    pub(super) space: Option<&'static str>,
}

impl Told<'_, '_> {
    fn on(&self) -> String {
        match (self.object, self.space) {
            (Some(object), Some(space)) if object.name.ends_with(" memory") => format!("{space} memory"),
            (Some(object), Some(space)) => format!("`{}` in {space} memory", object.name),
            _ => "memory".into(),
        }
    }

    fn name(&self) -> String {
        match self.object {
            Some(object) if !object.name.ends_with(" memory") => format!("`{}`", object.name),
            _ => "this memory".into(),
        }
    }

    pub(super) fn first(&self) -> Option<&Witness> {
        self.finding.witnesses.first()
    }

    pub(super) fn last(&self) -> Option<&Witness> {
        self.finding.witnesses.last()
    }

    pub(super) fn op(&self, witness: &Witness) -> String {
        self.context.site(witness).map_or_else(String::new, |site| format!("`{}`", site.opcode))
    }

    /// "block (1,0,0)"
    pub(super) fn block(&self, witness: Option<&Witness>) -> String {
        witness.map_or_else(String::new, |w| format!("block {}", show(self.context.block_index(w.thread))))
    }

    /// The line of a witness: "line 12 of `a.cu`".
    pub(super) fn place(&self, witness: &Witness) -> String {
        let Some(site) = self.context.site(witness) else { return "an unknown place".into() };
        let frames = site.loc.as_deref().map(super::frames).unwrap_or_default();
        let frame = super::user_frame(&frames).cloned().unwrap_or_else(|| self.context.frame(site));
        format!("{}:{}", frame.file, frame.line)
    }

    /// Whether both initialise an mbarrier.
    fn initialises(&self) -> bool {
        let is_init = |witness: &Witness| {
            let kind = self.context.site(witness).map(|site| &site.kind);
            matches!(kind, Some(SiteKind::Mbarrier(mbarrier)) if matches!(mbarrier.op, MbarrierOp::Init { .. }))
        };
        self.finding.witnesses.iter().all(is_init)
    }

    pub(super) fn headline(&self) -> String {
        let on = self.on();
        if self.finding.missing == Missing::Converged && self.finding.rule != Rule::R010 {
            return format!("accesses to {on} are ordered only by a warp instruction that orders no memory");
        }
        match self.finding.rule {
            Rule::R001 => format!("data race on {on}: no block barrier orders these accesses"),
            Rule::R002 => match self.finding.missing {
                Missing::WarpBarrier { same_instruction: true, .. } if self.initialises() => {
                    format!("lanes of one instruction each initialise {on}")
                }
                Missing::WarpBarrier { same_instruction: true, .. } if self.same_value() => {
                    format!("lanes of one instruction write to {on}")
                }
                Missing::WarpBarrier { same_instruction: true, .. } => {
                    format!("lanes of one instruction write different values to {on}")
                }
                Missing::WarpBarrier { converged: true, .. } => {
                    format!("accesses to {on} are ordered only by a warp instruction that orders no memory")
                }
                _ => format!("data race on {on} inside a warp: no warp barrier orders these accesses"),
            },
            Rule::R003 if self.finding.missing == Missing::BlockEnd => {
                format!("access to {on} of a block that may have ended")
            }
            Rule::R003 => match self.finding.relation {
                Relation::Cluster => format!("data race on {on} between blocks of a cluster"),
                _ => format!("data race on {on} between blocks"),
            },
            Rule::R004 if matches!(self.finding.missing, Missing::Publication { .. }) => {
                format!("scope too narrow: the publication of {on} leaves the other thread out")
            }
            Rule::R004 if matches!(self.finding.missing, Missing::ToHost { .. }) => {
                format!("scope too narrow: the publication of {on} to the host leaves host threads out")
            }
            Rule::R004 => format!("scope too narrow: these accesses to {on} leave each other's threads out"),
            Rule::R005 => match &self.finding.missing {
                Missing::Publication { lock: true, .. } => {
                    format!("data race on {on}: the atomics that guard it do not order the accesses")
                }
                _ => format!("unsynchronised publication of {on}"),
            },
            Rule::R006 => match self.finding.relation {
                Relation::Host => format!("data race on {on} between {}", self.hosts()),
                _ => format!("data race on {on} between launches"),
            },
            Rule::R007 => format!("atomic and plain access to {on} race"),
            Rule::R008 => match self.finding.missing {
                Missing::Asynchronous(Pending::ProxyFence { .. }) => {
                    let work = self.beside();
                    format!("no proxy fence between an access to {on} and an asynchronous {work}")
                }
                _ => format!("asynchronous {} races on {on}", self.beside()),
            },
            Rule::R009 if self.is_by_surface() => {
                format!("read by a surface of {on}, which the same launch has written")
            }
            Rule::R009 => format!("read through the read-only path of {on}, which the same launch writes"),
            Rule::R010 => format!("several threads write the same value to {on} unordered"),
            Rule::R011 => format!("unordered accesses of different size to {on}"),
            Rule::S001 => "barrier that not all threads of the block reach".into(),
            Rule::S002 => "warp mask does not fit the lanes that execute the instruction".into(),
            Rule::S003 => format!("a thread waits for {on}, which nobody who runs will ever change"),
            Rule::M001 => format!("access out of bounds of {on}"),
            Rule::M002 => format!("misaligned access to {on}"),
            Rule::M003 => format!("access to freed memory of {on}"),
            Rule::M004 => format!("a value of {on} is used that nobody has written"),
        }
    }

    pub(super) fn missing(&self) -> String {
        if self.finding.rule == Rule::R010 {
            return "nothing orders the writes; that all of them stored the same value is the only reason why it does no harm"
                .into();
        }
        if self.finding.rule == Rule::R009 {
            return self.not_coherent().into();
        }
        match &self.finding.missing {
            Missing::WarpBarrier { same_instruction: true, .. } if self.same_value() => {
                "(1) and (2) are lanes of one execution of one instruction, and wrote the same value, but others race with it"
                    .into()
            }
            Missing::WarpBarrier { same_instruction: true, .. } if self.initialises() => {
                "(1) and (2) are lanes of one execution of one instruction, and what becomes of an mbarrier that is initialised again is not defined"
                    .into()
            }
            Missing::WarpBarrier { same_instruction: true, .. } => {
                "(1) and (2) are lanes of one execution of one instruction, and which lane's value stays is not specified"
                    .into()
            }
            Missing::WarpBarrier { converged: true, .. } => {
                "a `.sync` warp instruction between (1) and (2) brings the lanes together, but it orders no memory".into()
            }
            Missing::WarpBarrier { .. } => {
                "lanes of a warp run independently, and no `bar.warp.sync` lies between (1) and (2)".into()
            }
            Missing::Converged => {
                "on the way from (1) to (2) lanes of a warp meet at a `.sync` instruction, which brings them together, but orders no memory"
                    .into()
            }
            Missing::BlockBarrier => match self.first().zip(self.last()) {
                Some((a, b)) if a.thread.warp != b.thread.warp => format!(
                    "no block barrier lies between (1) in warp {} and (2) in warp {}",
                    a.thread.warp, b.thread.warp
                ),
                _ => "no block barrier lies between (1) and (2)".into(),
            },
            Missing::BetweenBlocks { acquired: false } => format!(
                "nothing orders {} and {}: the thread of (2) has acquired nothing that the other block released",
                self.block(self.first()),
                self.block(self.last())
            ),
            Missing::BetweenBlocks { acquired: true } => format!(
                "what the thread of (2) has acquired from {} does not cover (1), which came later or is not ordered before that release",
                self.block(self.first())
            ),
            Missing::Apart { before, after, flag_write, flag_read } => {
                self.apart(*before, *after, flag_write, flag_read)
            }
            Missing::AccessScope => self.narrow(),
            Missing::Publication { side, writer, reader, flag_write, flag_read, lock } => {
                self.publication(*side, *writer, *reader, [flag_write, flag_read], *lock)
            }
            Missing::ToHost { store } => self.to_host(*store),
            Missing::Asynchronous(pending) => self.pending(*pending),
            Missing::BlockEnd => format!(
                "{} may end, and its shared memory with it, before (1): no cluster barrier lies between",
                self.block(self.last())
            ),
            Missing::StreamOrder => self.streams(),
            Missing::Size => match self.first().zip(self.last()) {
                Some((a, b)) => format!(
                    "(1) has {} and (2) {}, so that not even their values are defined",
                    super::bytes(a.bytes),
                    super::bytes(b.bytes)
                ),
                None => "the accesses have different sizes".into(),
            },
            Missing::Barrier { detail } => detail.clone(),
            Missing::Starved { waiting: 0 } => {
                "all other threads have ended, wait, or read the same values again and again as well".into()
            }
            Missing::Starved { waiting } => format!(
                "{waiting} block{} of the grid can start only when another one has ended, and those that run wait",
                if *waiting == 1 { "" } else { "s" }
            ),
            Missing::FirstWrite => {
                "no thread, copy or initial value wrote these bytes before; what they hold differs from run to run".into()
            }
            Missing::Mask { given, executing } => mask(*given, *executing),
        }
    }

    /// Whether both sides are known to have written one value.
    fn same_value(&self) -> bool {
        self.first().zip(self.last()).is_some_and(|(a, b)| a.value.is_some() && a.value == b.value)
    }

    /// The accesses whose scope leaves out the other thread, by index.
    fn narrow_ones(&self) -> Vec<(usize, Scope)> {
        let leaves_out = |scope: Scope| match self.finding.relation {
            Relation::Launch if self.of_two_devices() => scope < Scope::Sys,
            Relation::Launch | Relation::Grid => scope < Scope::Gpu,
            Relation::Host => scope < Scope::Sys,
            Relation::Cluster => scope < Scope::Cluster,
            _ => false,
        };
        let scope = |witness| self.context.site(witness)?.access()?.scope.filter(|scope| leaves_out(*scope));
        let witnesses = self.finding.witnesses.iter().enumerate();
        witnesses.filter_map(|(index, witness)| Some((index, scope(witness)?))).collect()
    }

    /// Whether the witnesses are threads of two devices.
    fn of_two_devices(&self) -> bool {
        let device = |witness: Option<&Witness>| Some(self.context.launch(witness?.thread)?.device);
        device(self.first()) != device(self.last())
    }

    /// Which access's scope leaves out the other thread.
    fn narrow(&self) -> String {
        let sentences: Vec<_> = self
            .narrow_ones()
            .into_iter()
            .filter_map(|(index, scope)| {
                let witness = self.finding.witnesses.get(index)?;
                let other = self.finding.witnesses.iter().rev().nth(index);
                let of = match other.and_then(|other| self.context.launch(other.thread)) {
                    Some(launch) if self.of_two_devices() => format!(" of device {}", launch.device),
                    _ => String::new(),
                };
                let (op, other) = (self.op(witness), self.block(other) + &of);
                Some(format!("({}) {op} has scope `{}`, which leaves {other} out", index + 1, scope.name()))
            })
            .collect();
        if sentences.is_empty() {
            return "a scope on the path between (1) and (2) leaves the other thread out".into();
        }
        sentences.join("; ")
    }

    fn publication(
        &self,
        side: Side,
        writer: Option<Instead>,
        reader: Option<Instead>,
        [write, read]: [&Witness; 2],
        lock: bool,
    ) -> String {
        let what = match lock {
            true => "the lock or counter",
            false if self.is_mbarrier(write) => "the mbarrier",
            false => "the flag",
        };
        let flag = match self.context.object(write, write.address) {
            object if object.name.ends_with(" memory") => what.to_owned(),
            object => format!("{what} `{}`", object.name),
        };
        if self.is_mbarrier(write) {
            return self.mbarrier_scopes(side, &flag, write, read);
        }
        let (writer, reader) = (self.instead(writer, write), self.instead(reader, read));
        let release = |what: Option<Instead>| {
            let op = self.op(write);
            let place = self.place(write);
            match what {
                Some(Instead::Plain) => format!("the plain write of {flag} ({op}, {place}) releases nothing"),
                Some(Instead::Volatile) => {
                    format!("the volatile write of {flag} ({op}, {place}) releases nothing")
                }
                Some(Instead::FenceElsewhere) => {
                    format!("no fence lies between the last access and the write of {flag} ({op}, {place})")
                }
                Some(Instead::NarrowScope) if self.order(write).is_some_and(Order::releases) => {
                    format!(
                        "the release by the write of {flag} ({op}, {place}) has a scope that leaves the reader out"
                    )
                }
                Some(Instead::NarrowScope) if self.is_wide(write) => {
                    format!(
                        "the fence before the write of {flag} ({op}, {place}) has a scope that leaves the reader out"
                    )
                }
                Some(Instead::NarrowScope) => {
                    format!("the write of {flag} ({op}, {place}) has a scope that leaves the reader out")
                }
                Some(Instead::Relaxed) | None => {
                    format!("the write of {flag} ({op}, {place}) is relaxed, with no fence before it")
                }
            }
        };
        let acquire = |what: Option<Instead>| {
            let op = self.op(read);
            let place = self.place(read);
            match what {
                Some(Instead::Plain) => format!("the plain read of {flag} ({op}, {place}) acquires nothing"),
                Some(Instead::Volatile) => {
                    format!("the volatile read of {flag} ({op}, {place}) acquires nothing")
                }
                Some(Instead::FenceElsewhere) => {
                    format!("no fence lies between the read of {flag} ({op}, {place}) and what follows")
                }
                Some(Instead::NarrowScope) if self.order(read).is_some_and(Order::acquires) => {
                    format!(
                        "the acquire by the read of {flag} ({op}, {place}) has a scope that leaves the writer out"
                    )
                }
                Some(Instead::NarrowScope) if self.is_wide(read) => {
                    format!(
                        "the fence behind the read of {flag} ({op}, {place}) has a scope that leaves the writer out"
                    )
                }
                Some(Instead::NarrowScope) => {
                    format!("the read of {flag} ({op}, {place}) has a scope that leaves the writer out")
                }
                Some(Instead::Relaxed) | None => {
                    format!("the read of {flag} ({op}, {place}) is relaxed, with no fence behind it")
                }
            }
        };
        match side {
            Side::Release => release(writer),
            Side::Acquire => acquire(reader),
            Side::Both => format!("{}, and {}", release(writer), acquire(reader)),
        }
    }

    /// Why a flag does not reach the host.
    fn to_host(&self, store: bool) -> String {
        let Some(flag) = self.last() else {
            return "the flag has a scope that leaves host threads out".into();
        };
        let op = self.op(flag);
        let name = match self.context.object(flag, flag.address) {
            object if object.name.ends_with(" memory") => "the flag".to_owned(),
            object => format!("the flag `{}`", object.name),
        };
        let what = if store { "(2)," } else { "the fence before (2)," };
        format!(
            "no thread of the launch reads {name}, so it is for a host thread that looks while the kernel runs; {what} {op}, has a scope that leaves it out"
        )
    }

    fn order(&self, witness: &Witness) -> Option<Order> {
        Some(self.context.site(witness)?.access()?.order)
    }

    /// What stands where order should come from. A strong access is not plain, whatever it races with.
    fn instead(&self, what: Option<Instead>, witness: &Witness) -> Option<Instead> {
        let strong = self.order(witness).is_some_and(Order::is_strong);
        if what == Some(Instead::Plain) && strong { Some(Instead::NarrowScope) } else { what }
    }

    /// "`cuMemcpyDtoHAsync` and a launch"
    fn hosts(&self) -> String {
        let name = |witness: Option<&Witness>| match witness.and_then(|w| self.context.call(w)) {
            Some(call) => format!("`{call}`"),
            None => "a launch".into(),
        };
        format!("{} and {}", name(self.first()), name(self.last()))
    }

    fn streams(&self) -> String {
        let name = |witness: Option<&Witness>| {
            let Some(witness) = witness else { return "another launch".to_owned() };
            let stream = self.context.launch(witness.thread).map_or(0, |launch| launch.stream);
            let what = if witness.is_host() { "operation" } else { "launch" };
            let of = match self.context.launch(witness.thread) {
                Some(launch) if self.of_two_devices() && !witness.is_host() => {
                    format!(" of device {}", launch.device)
                }
                _ => String::new(),
            };
            format!("{what} #{} in stream {stream}{of}", witness.thread.launch)
        };
        let (first, last) = (name(self.first()), name(self.last()));
        match self.finding.relation {
            _ if self.context.in_one_graph(self.finding) => {
                format!("{first} and {last} are nodes of one graph, and no path of its edges orders them")
            }
            Relation::Host => {
                format!("{first} and {last} are not ordered by an event, nor does the host wait between them")
            }
            _ => format!("{first} and {last} are not ordered by an event"),
        }
    }

    /// The scope that holds both threads.
    fn needed(&self) -> Scope {
        match self.finding.relation {
            Relation::Thread | Relation::Warp | Relation::Block => Scope::Cta,
            Relation::Cluster => Scope::Cluster,
            Relation::Launch if self.of_two_devices() => Scope::Sys,
            Relation::Grid | Relation::Launch => Scope::Gpu,
            Relation::Host => Scope::Sys,
        }
    }

    /// Whether an access's own scope holds both threads.
    fn is_wide(&self, witness: &Witness) -> bool {
        let scope = || self.context.site(witness)?.access()?.scope;
        scope().is_some_and(|scope| scope >= self.needed())
    }

    pub(super) fn help(&self) -> String {
        let name = self.name();
        let scope = self.needed().name();
        match self.finding.rule {
            Rule::R009 if self.reads_image() => return format!("write {name} in another launch"),
            Rule::R009 => return format!("read {name} with a plain load, or write it in another launch"),
            Rule::R010 => return "let one thread write, or make the writes atomic".into(),
            Rule::R007 if self.finding.missing != Missing::Converged => return self.atomic_against_plain(),
            _ => {}
        }
        match &self.finding.missing {
            Missing::WarpBarrier { same_instruction: true, .. } if self.initialises() => {
                "let one lane initialise it".into()
            }
            Missing::WarpBarrier { same_instruction: true, .. } => {
                "let one lane write, or give every lane an element of its own".into()
            }
            Missing::WarpBarrier { .. } => "put a warp barrier, `__syncwarp()`, between (1) and (2)".into(),
            Missing::Converged => {
                "put a warp barrier, `__syncwarp()`, where one lane synchronises with other warps for lanes of its own".into()
            }
            Missing::BlockBarrier => "put a block barrier, `__syncthreads()`, between (1) and (2)".into(),
            Missing::Apart { before, after, flag_write, flag_read } => {
                self.together(*before, *after, flag_write, flag_read)
            }
            Missing::BetweenBlocks { .. } if self.finding.relation == Relation::Cluster => {
                "put a cluster barrier between (1) and (2)".into()
            }
            Missing::BetweenBlocks { .. } => format!(
                "give each block a part of {name} of its own, make both accesses atomic, or move one of them to a later launch"
            ),
            Missing::AccessScope => {
                let which = match self.narrow_ones()[..] {
                    [(index, _)] => format!("({})", index + 1),
                    _ => "both (1) and (2)".into(),
                };
                format!("use scope `{scope}` or wider in {which}")
            }
            Missing::Publication { side, writer, reader, flag_write, flag_read, .. } => {
                if self.is_mbarrier(flag_write) {
                    let which = match side {
                        Side::Release => "the arrival",
                        Side::Acquire => "the wait",
                        Side::Both => "the arrival and the wait",
                    };
                    return format!("give {which} scope `{scope}`");
                }
                let (writer, reader) = (self.instead(*writer, flag_write), self.instead(*reader, flag_read));
                let flag = match self.context.object(flag_write, flag_write.address) {
                    object if object.name.ends_with(" memory") => "the flag".to_owned(),
                    object => format!("`{}`", object.name),
                };
                // A releasing write or an acquiring read that only has the wrong scope.
                let narrow = |what, orders: bool| what == Some(Instead::NarrowScope) && orders;
                let write = narrow(writer, self.order(flag_write).is_some_and(Order::releases));
                let read = narrow(reader, self.order(flag_read).is_some_and(Order::acquires));
                match side {
                    Side::Release if write => {
                        return format!("give the write of {flag} scope `{scope}` or wider");
                    }
                    Side::Acquire if read => {
                        return format!("give the read of {flag} scope `{scope}` or wider");
                    }
                    Side::Both if write && read => {
                        return format!("give the write of {flag} and its read scope `{scope}` or wider");
                    }
                    _ => {}
                }
                let plain = [writer, reader].contains(&Some(Instead::Plain));
                publish(*side, &flag, plain, scope)
            }
            Missing::ToHost { store: true } => {
                "make (2) a store of system scope, as by `cuda::atomic_ref` with `cuda::thread_scope_system`, with a release of that scope before it: `__threadfence_system()`".into()
            }
            Missing::ToHost { store: false } => "put `__threadfence_system()` between (1) and (2), where the fence is".into(),
            Missing::Asynchronous(pending) => self.pending_help(*pending),
            Missing::BlockEnd => {
                "put a cluster barrier behind the last access to another block's shared memory, in all blocks of the cluster"
                    .into()
            }
            Missing::StreamOrder => self.ordered_launches(),
            Missing::Size => format!("access {name} with one size, or order the accesses"),
            Missing::Barrier { .. } => {
                "let every thread of the block reach the barrier, or give it the count of those that do"
                    .into()
            }
            Missing::Starved { waiting: 0 } => {
                format!("let somebody write {name} who does not wait for this thread")
            }
            Missing::Starved { .. } => {
                "launch no more blocks than can be resident, cooperatively, or hand out the work by an atomic ticket".into()
            }
            Missing::FirstWrite => format!("write {name} first, with a barrier behind that if other threads read it"),
            Missing::Mask { .. } => "name in the mask exactly the lanes that execute the instruction".into(),
        }
    }

    fn atomic_against_plain(&self) -> String {
        let plain = self.finding.witnesses.iter().enumerate().find(|(_, w)| w.class != AccessClass::Atomic);
        let scope = self.needed().name();
        let Some((index, witness)) = plain else { return "make both accesses atomic".into() };
        let what = if witness.class == AccessClass::Read { "load" } else { "store" };
        let atomic = format!("make ({}) a relaxed {what} of scope `{scope}`", index + 1);
        match self.finding.relation {
            Relation::Warp => format!("put a warp barrier, `__syncwarp()`, between (1) and (2), or {atomic}"),
            Relation::Block => {
                format!("put a block barrier, `__syncthreads()`, between (1) and (2), or {atomic}")
            }
            Relation::Launch | Relation::Host => self.ordered_launches(),
            _ => format!("{atomic}, or order it with a release and an acquire"),
        }
    }

    fn ordered_launches(&self) -> String {
        match self.finding.relation {
            _ if self.context.in_one_graph(self.finding) => "add an edge from (1) to (2); in a capture, record an event behind (1) and let the stream of (2) wait for it".into(),
            Relation::Host => "record an event behind (1) and let the stream of (2) wait for it, let the host wait between them, or use one stream".into(),
            _ => "record an event behind the first launch and let the second stream wait for it, or use one stream".into(),
        }
    }

    /// How far both threads had come.
    pub(super) fn intervals(&self) -> Option<String> {
        let (a, b) = (self.first()?, self.last()?);
        let same_block = a.thread.block == b.thread.block && a.thread.launch == b.thread.launch;
        let accesses =
            [a, b].iter().all(|w| self.context.site(w).is_some_and(|site| site.access().is_some()));
        let ordered = matches!(self.finding.missing, Missing::ToHost { .. });
        if !same_block || !accesses || ordered || self.finding.witnesses.len() < 2 {
            return None;
        }
        Some(if a.interval == b.interval {
            format!("both accesses are in barrier interval {}; neither happens before the other", a.interval)
        } else {
            format!(
                "(1) is in barrier interval {}, (2) in {}; neither happens before the other",
                a.interval, b.interval
            )
        })
    }
}

fn publish(side: Side, flag: &str, plain: bool, scope: &str) -> String {
    let fence = match scope {
        "cta" => "`__threadfence_block()`",
        "gpu" => "`__threadfence()`",
        "sys" => "`__threadfence_system()`",
        _ => "`fence.acq_rel.cluster`",
    };
    let fence = format!("put a fence of scope `{scope}`, {fence},");
    let atomic = if plain { format!(", and access {flag} atomically") } else { String::new() };
    match side {
        Side::Release => format!("{fence} before the write of {flag}{atomic}, or release with that write"),
        Side::Acquire => format!("{fence} behind the read of {flag}{atomic}, or acquire with that read"),
        Side::Both => format!("{fence} before the write of {flag} and another behind its read{atomic}"),
    }
}

fn mask(given: u32, executing: u32) -> String {
    let left_out = executing & !given;
    let absent = given & !executing;
    let mut parts = Vec::new();
    if left_out != 0 {
        parts.push(format!(
            "leaves out {}, which execute{} it",
            lanes(left_out),
            if left_out.count_ones() == 1 { "s" } else { "" }
        ));
    }
    if absent != 0 {
        parts.push(format!(
            "names {}, which take{} no part",
            lanes(absent),
            if absent.count_ones() == 1 { "s" } else { "" }
        ));
    }
    if parts.is_empty() {
        parts.push("differs between the lanes".into());
    }
    format!("the mask {given:#010x} {}", parts.join(", and "))
}

/// "lane 3", "lanes 0-15, 31"
fn lanes(mask: u32) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for lane in (0..32).filter(|lane| mask >> lane & 1 == 1) {
        match runs.last_mut() {
            Some((_, end)) if *end + 1 == lane => *end = lane,
            _ => runs.push((lane, lane)),
        }
    }
    let list: Vec<_> =
        runs.iter().map(|(a, b)| if a == b { a.to_string() } else { format!("{a}-{b}") }).collect();
    format!("{} {}", if mask.count_ones() == 1 { "lane" } else { "lanes" }, list.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_told_by_lanes() {
        assert_eq!(mask(0xffff, 0xffff_ffff), "the mask 0x0000ffff leaves out lanes 16-31, which execute it");
        assert_eq!(mask(0x3, 0x1), "the mask 0x00000003 names lane 1, which takes no part");
        assert_eq!(lanes(0x8000_0005), "lanes 0, 2, 31");
    }
}
