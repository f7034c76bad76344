//! Memory that is as weak as the model allows, or nearly: each location keeps its writes, and a read takes any of them that
//! nothing forbids.
//!
//! This is a machine of views, as in operational models of C11 (Kang, Hur, Lahav, Vafeiadis, Dreyer: *A Promising Semantics
//! for Relaxed-Memory Concurrency*, POPL 2017), without promises. Writes of a location are numbered as they happen; a
//! thread's *view* has for each location the first write that it may still read. Views travel along synchronisation only:
//! barriers, and release patterns to acquire patterns whose scopes include each other. `fence.sc` takes part in one view
//! per block and one for the device.
//!
//! It never gives what the model forbids. It does not give all that the model allows: a read never takes a write that
//! happens later (load buffering), every location has one order of its writes, even weak reads of one thread never go back
//! in it, and a read-modify-write reads the latest write. Accesses of different extent at one place, and what the machine
//! does not know, end it: from then on every read takes the latest write.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::instrument::{SiteId, SiteKind, SiteTable};
use crate::isa::{Access, AccessKind, Fence, FenceOrder, Scope};

/// A thread: block, warp, lane.
pub(super) type Thread = (u32, u32, u32);

/// A place: the block of shared memory, or `None`, and the address.
pub(super) type Place = (Option<u32>, u64);

/// By location, the first write that may be read.
type Map = FxHashMap<u32, u32>;

/// A view that shares what it has taken from others.
#[derive(Clone, Debug, Default)]
struct View {
    base: Arc<Map>,
    own: Map,
}

impl View {
    fn get(&self, location: u32) -> u32 {
        let base = self.base.get(&location).copied().unwrap_or(0);
        self.own.get(&location).copied().unwrap_or(0).max(base)
    }

    fn raise(&mut self, location: u32, write: u32) {
        if self.get(location) < write {
            self.own.insert(location, write);
        }
    }

    fn join(&mut self, other: &Arc<Map>) {
        if Arc::ptr_eq(&self.base, other) {
            return;
        }
        if self.base.iter().all(|(location, write)| other.get(location).is_some_and(|theirs| theirs >= write))
        {
            self.base = Arc::clone(other);
            return;
        }
        for (location, write) in other.iter() {
            self.raise(*location, *write);
        }
    }

    /// All of it, to be handed on.
    fn share(&mut self) -> Arc<Map> {
        if !self.own.is_empty() {
            let base = Arc::make_mut(&mut self.base);
            for (location, write) in self.own.drain() {
                let slot = base.entry(location).or_default();
                *slot = (*slot).max(write);
            }
        }
        Arc::clone(&self.base)
    }
}

/// What was released: by whom, how far it reaches, and what its taker may no longer miss.
#[derive(Clone, Debug)]
struct Release {
    block: u32,
    scope: Scope,
    view: Arc<Map>,
}

type Releases = SmallVec<[Release; 1]>;

fn add(to: &mut Releases, from: &Releases) {
    for release in from {
        let same = |own: &Release| {
            (own.block, own.scope) == (release.block, release.scope) && Arc::ptr_eq(&own.view, &release.view)
        };
        if !to.iter().any(same) {
            to.push(release.clone());
        }
    }
}

/// A write.
#[derive(Clone, Debug)]
struct Message {
    value: u64,
    /// Who wrote it, if it was not there from the start.
    thread: Option<Thread>,
    /// Its scope, if it is strong.
    scope: Option<Scope>,
    released: Releases,
}

/// A location and its writes.
#[derive(Clone, Debug)]
struct Location {
    bytes: u32,
    messages: Vec<Message>,
}

/// What a thread knows, and the open ends of its patterns.
#[derive(Clone, Debug, Default)]
struct State {
    view: View,
    /// Its last release-capable fence of each scope.
    fences: Releases,
    /// Its release operations by location.
    released: FxHashMap<u32, Releases>,
    /// What its strong reads have seen.
    pending: Releases,
    pending_on: FxHashMap<u32, Releases>,
}

#[derive(Clone, Copy, Debug)]
enum Role {
    Access(Access),
    Fence(Fence),
    Other,
}

/// The writes of a launch, and what its threads know of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Weak {
    roles: Vec<Role>,
    places: FxHashMap<Place, u32>,
    locations: Vec<Location>,
    threads: FxHashMap<Thread, State>,
    barriers: FxHashMap<(u32, u32), View>,
    /// Of `fence.sc` of device scope or wider.
    sc_wide: View,
    /// Of `fence.sc` of each block's threads.
    sc_near: FxHashMap<u32, View>,
    /// Every read takes the latest write.
    ended: bool,
}

/// Clusters count as devices here: that only adds order.
fn includes(scope: Scope, block: u32, other: u32) -> bool {
    scope != Scope::Cta || block == other
}

impl Weak {
    /// For the instructions of these sites.
    pub(super) fn new(sites: &SiteTable) -> Self {
        let mut ended = false;
        let roles = sites.sites().iter().map(|site| match &site.kind {
            SiteKind::Access(access) => Role::Access(*access),
            SiteKind::Fence(fence) => Role::Fence(*fence),
            SiteKind::Barrier(_)
            | SiteKind::WarpBarrier
            | SiteKind::Converge(_)
            | SiteKind::Exit
            | SiteKind::SharedVariable(_) => Role::Other,
            // What moves memory by itself, or orders it by other means, is not modelled here.
            SiteKind::AsyncCopy(_)
            | SiteKind::Coordinates
            | SiteKind::Group(_)
            | SiteKind::Mbarrier(_)
            | SiteKind::ClusterBarrier(_)
            | SiteKind::ProxyFence(_)
            | SiteKind::Fill(_)
            | SiteKind::Tile(_)
            | SiteKind::Product(_)
            | SiteKind::Image(_) => {
                ended = true;
                Role::Other
            }
        });
        Self { roles: roles.collect(), ended, ..Self::default() }
    }

    /// From now on every read takes the latest write.
    pub(super) fn end(&mut self) {
        self.ended = true;
    }

    fn access(&self, site: SiteId) -> Option<Access> {
        match self.roles.get(site.0 as usize) {
            Some(Role::Access(access)) => Some(*access),
            _ => None,
        }
    }

    /// Whether a fence is `fence.sc`, whose order with others of its kind matters.
    pub(super) fn is_sc(&self, site: SiteId) -> bool {
        matches!(self.roles.get(site.0 as usize), Some(Role::Fence(fence)) if fence.order == FenceOrder::Sc)
    }

    /// The location of an access, with what it holds before if it is new.
    fn location(&mut self, place: Place, bytes: u32, value: u64) -> Option<u32> {
        if self.ended {
            return None;
        }
        if let Some(&location) = self.places.get(&place) {
            let same = self.locations.get(location as usize).is_some_and(|known| known.bytes == bytes);
            self.ended |= !same;
            return same.then_some(location);
        }
        // Nothing else may overlap it.
        let around = (1..16u64).any(|distance| {
            let reaches = |place: Place, reach: u64| {
                let at = self.places.get(&place).and_then(|at| self.locations.get(*at as usize));
                at.is_some_and(|known| u64::from(known.bytes) > reach)
            };
            let before = place.1.checked_sub(distance).is_some_and(|at| reaches((place.0, at), distance));
            before
                || (distance < u64::from(bytes) && self.places.contains_key(&(place.0, place.1 + distance)))
        });
        if around {
            self.ended = true;
            return None;
        }
        let location = u32::try_from(self.locations.len()).ok()?;
        let first = Message { value, thread: None, scope: None, released: Releases::new() };
        self.locations.push(Location { bytes, messages: vec![first] });
        self.places.insert(place, location);
        Some(location)
    }

    /// How many writes a thread may read at a place, where `value` is the latest.
    pub(super) fn readable(&mut self, thread: Thread, place: Place, bytes: u32, value: u64) -> usize {
        let Some(location) = self.location(place, bytes, value) else { return 1 };
        let latest = self.locations.get(location as usize).map_or(1, |known| known.messages.len());
        let first = self.threads.entry(thread).or_default().view.get(location) as usize;
        latest.saturating_sub(first).max(1)
    }

    /// A read takes the write that is `back` before the latest one; gives its value, unless it is the latest.
    pub(super) fn read(
        &mut self,
        thread: Thread,
        place: Place,
        bytes: u32,
        back: usize,
        site: SiteId,
    ) -> Option<u64> {
        let access = self.access(site)?;
        let location = self.location(place, bytes, 0)?;
        let messages = &self.locations.get(location as usize)?.messages;
        let index = messages.len().checked_sub(1 + back)?;
        let message = messages.get(index)?.clone();
        self.observe(thread, location, index, &message, &access);
        (back != 0).then_some(message.value)
    }

    /// What reading a write brings. Gives what a read-modify-write passes on.
    fn observe(
        &mut self,
        thread: Thread,
        location: u32,
        index: usize,
        message: &Message,
        access: &Access,
    ) -> Releases {
        let state = self.threads.entry(thread).or_default();
        state.view.raise(location, u32::try_from(index).unwrap_or(u32::MAX));
        let scope = access.scope.filter(|_| access.order.is_strong());
        let hop = match (message.thread, message.scope, scope) {
            (Some(writer), _, Some(_)) if writer == thread => message.scope.is_some(),
            (Some(writer), Some(written), Some(own)) => {
                includes(written, writer.0, thread.0) && includes(own, thread.0, writer.0)
            }
            _ => false,
        };
        if !hop {
            return Releases::new();
        }
        if access.kind != AccessKind::Red {
            add(&mut state.pending, &message.released);
            add(state.pending_on.entry(location).or_default(), &message.released);
        }
        if access.order.acquires()
            && let Some(own) = scope
        {
            let pending = state.pending_on.get(&location).cloned().unwrap_or_default();
            for release in pending.iter().chain(&message.released) {
                take(&mut state.view, thread.0, own, release);
            }
        }
        message.released.clone()
    }

    /// A store.
    pub(super) fn write(&mut self, thread: Thread, place: Place, bytes: u32, value: u64, site: SiteId) {
        let Some(access) = self.access(site) else { return };
        if let Some(location) = self.location(place, bytes, value) {
            self.push(thread, location, value, &access, Releases::new());
        }
    }

    /// A read-modify-write: it reads the latest write. A compare-and-swap that fails, or changes nothing, writes as well;
    /// that only adds order.
    pub(super) fn update(
        &mut self,
        thread: Thread,
        place: Place,
        bytes: u32,
        values: (u64, u64),
        site: SiteId,
    ) {
        let Some(access) = self.access(site) else { return };
        let Some(location) = self.location(place, bytes, values.0) else { return };
        let Some(messages) = self.locations.get(location as usize).map(|known| &known.messages) else {
            return;
        };
        let (index, Some(message)) = (messages.len() - 1, messages.last().cloned()) else { return };
        let inherited = self.observe(thread, location, index, &message, &access);
        if values.0 != values.1 || access.op != Some(crate::isa::AtomOp::Cas) {
            self.push(thread, location, values.1, &access, inherited);
        }
    }

    fn push(&mut self, thread: Thread, location: u32, value: u64, access: &Access, inherited: Releases) {
        let Some(known) = self.locations.get_mut(location as usize) else { return };
        let state = self.threads.entry(thread).or_default();
        state.view.raise(location, u32::try_from(known.messages.len()).unwrap_or(u32::MAX));
        let scope = access.scope.filter(|_| access.order.is_strong());
        let mut released = inherited;
        if let Some(scope) = scope {
            if access.order.releases() {
                let own = Release { block: thread.0, scope, view: state.view.share() };
                let on = state.released.entry(location).or_default();
                on.retain(|old| old.scope != scope);
                on.push(own);
            }
            add(&mut released, &state.fences);
            if let Some(on) = state.released.get(&location) {
                add(&mut released, on);
            }
        }
        known.messages.push(Message { value, thread: Some(thread), scope, released });
    }

    /// A fence of some lanes, one after the other.
    pub(super) fn fence(&mut self, thread: Thread, site: SiteId) {
        let Some(Role::Fence(fence)) = self.roles.get(site.0 as usize).copied() else { return };
        let state = self.threads.entry(thread).or_default();
        if fence.order.acquires() {
            for release in &state.pending {
                take(&mut state.view, thread.0, fence.scope, release);
            }
        }
        if fence.order == FenceOrder::Sc {
            let near = self.sc_near.entry(thread.0).or_default();
            state.view.join(&near.share());
            if fence.scope != Scope::Cta {
                state.view.join(&self.sc_wide.share());
                self.sc_wide.join(&state.view.share());
            }
            near.join(&state.view.share());
        }
        if fence.order.releases() {
            let view = state.view.share();
            state.fences.retain(|old| old.scope != fence.scope);
            state.fences.push(Release { block: thread.0, scope: fence.scope, view });
        }
    }

    /// Lanes arrive at a barrier.
    pub(super) fn arrive(&mut self, threads: impl Iterator<Item = Thread>, id: u32) {
        for thread in threads {
            let view = self.threads.entry(thread).or_default().view.share();
            self.barriers.entry((thread.0, id)).or_default().join(&view);
        }
    }

    /// A barrier completes for these.
    pub(super) fn depart(&mut self, block: u32, id: u32, threads: impl Iterator<Item = Thread>) {
        let Some(mut barrier) = self.barriers.remove(&(block, id)) else { return };
        let view = barrier.share();
        for thread in threads {
            self.threads.entry(thread).or_default().view.join(&view);
        }
    }

    /// Lanes of a warp meet.
    pub(super) fn meet(&mut self, threads: impl Iterator<Item = Thread> + Clone) {
        let mut all = View::default();
        for thread in threads.clone() {
            all.join(&self.threads.entry(thread).or_default().view.share());
        }
        let all = all.share();
        for thread in threads {
            self.threads.entry(thread).or_default().view.join(&all);
        }
    }
}

/// An acquire of this scope takes what was released, if their scopes include each other's thread.
fn take(view: &mut View, block: u32, scope: Scope, release: &Release) {
    if includes(release.scope, release.block, block) && includes(scope, block, release.block) {
        view.join(&release.view);
    }
}
