//! What is known of the order between the accesses of a finding, as a drawing has it: lanes of threads, what happens in
//! them, and the edges that are there or missing.

use super::advice::Told;
use super::{doing, show};
use crate::finding::{Finding, Instead, Missing, Pending, Relation, Side, ThreadId, Witness};
use crate::instrument::SiteId;

/// Time runs along the rows. Edges name events by index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// Threads, or what else is in an order of its own.
    pub lanes: Vec<Lane>,
    /// What happens, by row.
    pub events: Vec<Event>,
    /// What orders the events of different lanes, or should.
    pub edges: Vec<Edge>,
    /// For a warp mask: the mask given, and the lanes that execute the instruction.
    pub mask: Option<[u32; 2]>,
}

/// One thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lane {
    /// "thread (5,0,0)"
    pub title: String,
    /// "block (1,0,0), warp 0 lane 5"
    pub detail: String,
}

/// Something that happens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// Its lane; `None` if it is of all lanes, as a barrier is.
    pub lane: Option<u32>,
    /// When; events of one row are of one time, or their order is unknown.
    pub row: u32,
    /// The access of the finding that it is, from 1.
    pub access: Option<u32>,
    /// What happens.
    pub text: String,
    /// The opcode.
    pub op: String,
    /// "a.cu:12"
    pub at: String,
}

/// Whether an edge orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// It does.
    Orders,
    /// One side saw what the other wrote, which alone orders nothing.
    Observes,
    /// Nothing is there; something should be.
    Missing,
}

impl Link {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Orders, Self::Observes, Self::Missing];

    /// The name in the JSON report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Orders => "orders",
            Self::Observes => "observes",
            Self::Missing => "missing",
        }
    }
}

/// From one event to a later one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The earlier event.
    pub from: u32,
    /// The later event.
    pub to: u32,
    /// Whether it orders them.
    pub link: Link,
    /// By what, or what is not there.
    pub text: String,
}

/// Draws a finding.
pub(super) fn timeline(told: &Told<'_, '_>) -> Timeline {
    let mut draft = Draft { told, out: Timeline::default(), threads: Vec::new(), row: 0 };
    let finding = told.finding;
    match (&finding.missing, finding.witnesses.as_slice()) {
        (Missing::Mask { given, executing }, [witness, ..]) => {
            draft.access(1, witness);
            draft.out.mask = Some([*given, *executing]);
        }
        (_, [alone]) => {
            draft.access(1, alone);
        }
        (Missing::Publication { side, writer, reader, flag_write, flag_read, .. }, [first, last]) => {
            let sides = [(Side::Release, *writer, flag_write), (Side::Acquire, *reader, flag_read)];
            let [before, after] = sides.map(|(own, what, flag)| {
                let wanting = *side == own || *side == Side::Both;
                wanting.then(|| instead(what, own, told.is_mbarrier(flag)))
            });
            let chain = [first, flag_write, flag_read, last];
            draft.published(chain, before.as_deref(), after.as_deref(), Link::Observes);
        }
        (Missing::Apart { before, after, flag_write, flag_read }, [first, last]) => {
            let [before, after] = [before, after].map(|open| open.then_some("no barrier"));
            draft.published([first, flag_write, flag_read, last], before, after, Link::Orders);
        }
        (Missing::Asynchronous(pending), [first, last]) => draft.asynchronous(*pending, first, last),
        (_, [first, last]) => draft.pair(first, last),
        _ => {}
    }
    draft.out
}

struct Draft<'d, 't, 'c> {
    told: &'d Told<'t, 'c>,
    out: Timeline,
    /// Whose the lanes are.
    threads: Vec<Option<ThreadId>>,
    row: u32,
}

impl Draft<'_, '_, '_> {
    /// The lane of a thread.
    fn lane(&mut self, witness: &Witness) -> u32 {
        let known = self.threads.iter().position(|thread| *thread == Some(witness.thread));
        let lane = known.unwrap_or_else(|| {
            self.threads.push(Some(witness.thread));
            self.out.lanes.push(self.title(witness));
            self.threads.len() - 1
        });
        index(lane)
    }

    fn title(&self, witness: &Witness) -> Lane {
        let context = self.told.context;
        let launch = context.launch(witness.thread);
        let stream = launch.map_or(0, |launch| launch.stream);
        if let Some(call) = context.call(witness) {
            let detail = format!("operation #{}, stream {stream}", witness.thread.launch);
            return Lane { title: call.to_owned(), detail };
        }
        let (warp, lane) = (witness.thread.warp, witness.thread.lane);
        let linear = u32::from(warp) * 32 + u32::from(lane);
        let thread =
            launch.map_or([linear, 0, 0], |launch| launch.thread_index(u32::from(warp), u32::from(lane)));
        let block = show(context.block_index(witness.thread));
        let apart = matches!(self.told.finding.relation, Relation::Launch | Relation::Host);
        let of = if apart {
            format!(", launch #{}, stream {stream}", witness.thread.launch)
        } else {
            String::new()
        };
        Lane {
            title: format!("thread {}", show(thread)),
            detail: format!("block {block}, warp {warp} lane {lane}{of}"),
        }
    }

    fn event(&mut self, lane: Option<u32>, access: Option<u32>, text: String, op: String, at: String) -> u32 {
        let row = self.row;
        self.row += 1;
        self.out.events.push(Event { lane, row, access, text, op, at });
        index(self.out.events.len() - 1)
    }

    /// One of the finding's accesses.
    fn access(&mut self, number: u32, witness: &Witness) -> u32 {
        let lane = self.lane(witness);
        self.in_lane(lane, Some(number), witness)
    }

    fn in_lane(&mut self, lane: u32, access: Option<u32>, witness: &Witness) -> u32 {
        let context = self.told.context;
        let text = match context.site(witness) {
            Some(site) => doing(site, witness),
            None => super::action(None, witness.class).to_owned(),
        };
        let op = match context.call(witness) {
            Some(_) => String::new(),
            None => context.site(witness).map_or_else(String::new, |site| site.opcode.to_string()),
        };
        let at = if context.site(witness).is_some() { self.told.place(witness) } else { String::new() };
        self.event(Some(lane), access, text, op, at)
    }

    /// A step of synchronisation in a thread, by an instruction.
    fn step(&mut self, witness: &Witness, text: &str, site: SiteId) -> u32 {
        let lane = self.lane(witness);
        let own = Witness { site, ..*witness };
        let op = self.told.context.site(&own).map_or_else(String::new, |site| site.opcode.to_string());
        let at = self.told.place(&own);
        self.event(Some(lane), None, text.to_owned(), op, at)
    }

    fn edge(&mut self, from: u32, to: u32, link: Link, text: impl Into<String>) {
        self.out.edges.push(Edge { from, to, link, text: text.into() });
    }

    /// The barriers that the threads of one block had behind them.
    fn barriers(&mut self, first: &Witness, last: &Witness) {
        if self.told.intervals().is_some() && first.interval == last.interval && first.interval > 0 {
            let text = match first.interval {
                1 => "block barrier, the first".to_owned(),
                n => format!("block barrier, number {n}"),
            };
            self.event(None, None, text, String::new(), String::new());
        }
    }

    /// Two accesses with nothing between them that would order them.
    fn pair(&mut self, first: &Witness, last: &Witness) {
        let finding = self.told.finding;
        self.barriers(first, last);
        let one = self.access(1, first);
        let converged = match finding.missing {
            Missing::WarpBarrier { converged, .. } => converged,
            Missing::Converged => true,
            _ => false,
        };
        if converged {
            let text = "`.sync` instruction: orders no memory".to_owned();
            self.event(None, None, text, String::new(), String::new());
        }
        if matches!(finding.missing, Missing::WarpBarrier { same_instruction: true, .. }) {
            // Neither is first.
            self.row -= 1;
        }
        let lane = self.lane(last);
        let two = self.in_lane(lane, Some(2), last);
        self.edge(one, two, Link::Missing, wanting(finding));
    }

    /// By way of a flag.
    fn published(
        &mut self,
        [first, write, read, last]: [&Witness; 4],
        before: Option<&str>,
        after: Option<&str>,
        seen: Link,
    ) {
        let side = |what: Option<&str>, held: &str| match what {
            Some(what) => (Link::Missing, what.to_owned()),
            None => (Link::Orders, held.to_owned()),
        };
        let one = self.access(1, first);
        let lane = self.lane(write);
        let flag_write = self.in_lane(lane, None, write);
        let lane = self.lane(read);
        let flag_read = self.in_lane(lane, None, read);
        let two = self.access(2, last);
        for (event, what) in [(flag_write, "writes"), (flag_read, "reads")] {
            let witness = if event == flag_write { write } else { read };
            let object = self.told.context.object(witness, witness.address);
            if !object.name.ends_with(" memory")
                && let Some(event) = self.out.events.get_mut(event as usize)
            {
                event.text = format!("{what} {}: {}", object.name, event.text);
            }
        }
        let barrier =
            |a: &Witness, b: &Witness| if a.thread == b.thread { "release" } else { "ordered before" };
        let (link, text) = side(before, barrier(first, write));
        self.edge(one, flag_write, link, text);
        let text = if seen == Link::Orders { "released, acquired" } else { "observed" };
        self.edge(flag_write, flag_read, seen, text);
        let (link, text) = side(after, if read.thread == last.thread { "acquire" } else { "ordered after" });
        self.edge(flag_read, two, link, text);
    }

    /// A copy and an access, or two copies.
    fn asynchronous(&mut self, pending: Pending, first: &Witness, last: &Witness) {
        let one = self.access(1, first);
        let wait = match pending {
            Pending::Left { wait, pending, .. } => {
                let groups = if pending == 1 { "1 group".to_owned() } else { format!("{pending} groups") };
                Some((wait, format!("waits, but lets {groups} stay"), false))
            }
            Pending::OnlyReads { wait } => Some((wait, "waits for the read only".to_owned(), false)),
            Pending::Unshared { wait } => {
                Some((wait, format!("waits for the {}", self.told.work(Some(first))), true))
            }
            _ => None,
        };
        let waited = wait.map(|(site, text, whole)| (self.step(first, &text, site), whole));
        let lane = if first.thread == last.thread {
            // The copy runs beside its thread.
            self.threads.push(None);
            let copy = self.told.context.site(last).is_some_and(|site| site.access().is_none());
            let work = self.told.work(Some(last));
            let title =
                if copy { format!("its asynchronous {work}") } else { "the thread itself".to_owned() };
            self.out.lanes.push(Lane { title, detail: "the same thread".into() });
            index(self.out.lanes.len() - 1)
        } else {
            self.lane(last)
        };
        let two = self.in_lane(lane, Some(2), last);
        match waited {
            Some((wait, whole)) => {
                let link = if whole { Link::Orders } else { Link::Missing };
                let open = "not complete";
                self.edge(one, wait, link, if whole { "complete" } else { open });
                self.edge(wait, two, Link::Missing, if whole { "no barrier" } else { "does not order (1)" });
            }
            None => self.edge(one, two, Link::Missing, outstanding(pending)),
        }
    }
}

fn index(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

/// What stands where a release or an acquire should.
fn instead(what: Option<Instead>, side: Side, mbarrier: bool) -> String {
    let order = if side == Side::Release { "release" } else { "acquire" };
    match what {
        Some(Instead::NarrowScope) => format!("{order}: scope too narrow"),
        _ if mbarrier => format!("no {order}"),
        Some(Instead::FenceElsewhere) => format!("no {order}: no fence here"),
        Some(Instead::Plain) => format!("no {order}: plain"),
        Some(Instead::Volatile) => format!("no {order}: volatile"),
        Some(Instead::Relaxed) | None => format!("no {order}: relaxed"),
    }
}

/// What does not lie between two accesses, in a few words.
fn wanting(finding: &Finding) -> &'static str {
    match &finding.missing {
        Missing::WarpBarrier { same_instruction: true, .. } => "lanes of one instruction",
        Missing::WarpBarrier { .. } | Missing::Converged => "no warp barrier",
        Missing::BlockBarrier => "no block barrier",
        Missing::BetweenBlocks { acquired: true } => "not covered by what was acquired",
        Missing::BetweenBlocks { acquired: false } if finding.relation == Relation::Cluster => {
            "no cluster barrier"
        }
        Missing::BlockEnd => "no cluster barrier",
        Missing::AccessScope | Missing::ToHost { .. } => "scope too narrow",
        Missing::StreamOrder => "no event",
        Missing::Size => "unordered, of different size",
        Missing::Barrier { .. } => "they do not meet",
        _ => "nothing orders them",
    }
}

/// What a copy is wanting, in a few words.
fn outstanding(pending: Pending) -> &'static str {
    match pending {
        Pending::Issue => "not before the copy's issue",
        Pending::ProxyFence { .. } => "no proxy fence",
        Pending::NotCommitted { .. } => "no commit of the copy",
        Pending::NotWaited { .. } => "no wait for the copy",
        Pending::OwnOnly | Pending::Unshared { .. } => "no barrier behind the wait",
        Pending::Apart => "unordered with the copy",
        Pending::Phase { .. } => "no wait for the phase",
        Pending::Left { .. } | Pending::OnlyReads { .. } => "not complete",
    }
}
