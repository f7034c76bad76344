//! Records of some blocks, one after the other.

use std::sync::Arc;

use super::Doubt;
use super::block::Blocks;
use super::cell::{Class, Now};
use super::line::Pool;
use super::shadow::{Global, Over, Shared};
use crate::abi::{LANES, Record, Tagged, Unit, decode};
use crate::backend::Images;
use crate::engine::image::coordinates;
use crate::event::Geometry;
use crate::instrument::bundle::{Member, address};
use crate::instrument::{Site, SiteKind, SiteTable};
use crate::isa::{Access, AccessKind, BarrierKind, ImageAccess, ImageOp, Marking, Order, Scope};

/// What a site means here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Access {
        class: Class,
        bytes: u8,
        /// The number of the bundle that it leads, if a record says that it stands for one.
        bundle: u32,
    },
    /// Gives order that need not be known.
    Fence,
    Barrier,
    /// Of a warp; whether it orders memory.
    Meet(bool),
    Exit,
    SharedVariable,
    /// A texture or a surface. What it reads counts as read by the read-only path: no write of the launch goes with it.
    Image(ImageAccess),
    /// For the engine.
    Other,
}

impl Role {
    pub(super) fn of(site: &Site) -> Self {
        match &site.kind {
            SiteKind::Access(access) => Self::of_access(access),
            SiteKind::Fence(_) => Self::Fence,
            SiteKind::Barrier(barrier) if barrier.kind == BarrierKind::Sync => Self::Barrier,
            SiteKind::WarpBarrier => Self::Meet(true),
            SiteKind::Converge(_) => Self::Meet(false),
            SiteKind::Exit => Self::Exit,
            SiteKind::SharedVariable(_) => Self::SharedVariable,
            SiteKind::Image(access) => Self::Image(*access),
            _ => Self::Other,
        }
    }

    fn of_access(access: &Access) -> Self {
        let Ok(bytes) = u8::try_from(access.bytes()) else { return Self::Other };
        let wide = matches!(access.scope, Some(Scope::Gpu | Scope::Sys));
        let class = match (access.kind, access.order, access.marking) {
            _ if access.rows.is_some() || bytes == 0 => return Self::Other,
            (AccessKind::Load, Order::Weak, Marking::Plain) => Class::Read,
            (AccessKind::Load, Order::Weak, Marking::NonCoherent) => Class::NonCoherent,
            (AccessKind::Store, Order::Weak, Marking::Plain) => Class::Write,
            (AccessKind::Atom | AccessKind::Red, Order::Relaxed, Marking::Plain) if wide => {
                match access.element {
                    4 => Class::Atomic4,
                    8 => Class::Atomic8,
                    _ => return Self::Other,
                }
            }
            _ => return Self::Other,
        };
        Self::Access { class, bytes, bundle: 0 }
    }
}

/// Loads that one record stands for.
#[derive(Clone, Debug)]
struct Bundle {
    class: Class,
    /// Distance and bytes of each.
    members: Box<[(i64, u8)]>,
    /// The bytes that they touch where all lanes are at one place: distance and length of each piece.
    spans: Box<[(i64, u64)]>,
}

impl Bundle {
    /// `None` if the members are not all of one class.
    fn of(members: &[Member], roles: &[Role]) -> Option<Self> {
        let of = |member: &Member| match roles.get(member.site.0 as usize)? {
            Role::Access { class, bytes, .. } => Some((*class, (member.distance, *bytes))),
            _ => None,
        };
        let (class, _) = of(members.first()?)?;
        let all = members.iter().map(|member| of(member).filter(|(other, _)| *other == class));
        let members: Box<[_]> = all.map(|member| member.map(|(_, place)| place)).collect::<Option<_>>()?;
        let mut sorted = members.to_vec();
        sorted.sort_unstable();
        let mut spans: Vec<(i64, u64)> = Vec::new();
        for (distance, bytes) in sorted {
            match spans.last_mut() {
                Some((from, length)) if distance <= from.saturating_add_unsigned(*length) => {
                    *length = (*length).max(distance.abs_diff(*from) + u64::from(bytes));
                }
                _ => spans.push((distance, bytes.into())),
            }
        }
        Some(Self { class, members, spans: spans.into() })
    }
}

/// What all sites mean.
#[derive(Clone, Debug, Default)]
pub(super) struct Roles {
    sites: Vec<Role>,
    bundles: Vec<Option<Bundle>>,
}

impl Roles {
    /// Adds the sites of a module.
    pub(super) fn add(&mut self, table: &SiteTable) {
        self.sites.extend(table.sites().iter().map(Role::of));
        for site in table.sites() {
            let members = site.bundling.members();
            if members.is_empty() {
                continue;
            }
            self.bundles.push(Bundle::of(members, &self.sites));
            let number = self.bundles.len() as u32;
            if let Some(Role::Access { bundle, .. }) = self.sites.get_mut(site.id.0 as usize) {
                *bundle = number;
            }
        }
    }
}

/// Checks the records of the blocks that it is given.
#[derive(Debug)]
pub(super) struct Checker {
    roles: Arc<Roles>,
    geometry: Geometry,
    blocks: Blocks,
    global: Global,
    pool: Pool,
    /// Textures and surfaces of the launch.
    images: Images,
    /// Records of shared variables, which the engine wants in any case.
    variables: Vec<Unit>,
    /// The last ticket that was drawn.
    ticket: u64,
}

impl Checker {
    /// One that may know so many bytes of memory.
    pub(super) fn new(roles: Arc<Roles>, room: usize) -> Self {
        Self {
            roles,
            geometry: Geometry::new(1),
            blocks: Blocks::default(),
            global: Global::new(room),
            pool: Pool::default(),
            images: Images::default(),
            variables: Vec::new(),
            ticket: 0,
        }
    }

    /// Has memory at hand for so many bytes that are touched.
    pub(super) fn warm(&mut self, touched: usize) {
        self.global.warm(touched);
    }

    /// Gives large memory back.
    pub(super) fn shrink(&mut self) {
        self.global.shrink();
    }

    /// Adds the sites of a module, whose numbers follow those that are known.
    pub(super) fn add_module(&mut self, sites: &SiteTable) {
        Arc::make_mut(&mut self.roles).add(sites);
    }

    /// Begins a launch.
    pub(super) fn begin(&mut self, geometry: Geometry, images: &Images) {
        self.images = images.clone();
        self.geometry = geometry;
        self.blocks = Blocks::default();
        self.global.clear();
        self.pool.clear();
        self.variables.clear();
        self.ticket = 0;
    }

    /// Blocks that have ended.
    pub(super) fn ended(&self) -> u64 {
        self.blocks.ended()
    }

    pub(super) fn global(&self) -> &Global {
        &self.global
    }

    pub(super) fn variables(&self) -> &[Unit] {
        &self.variables
    }

    pub(super) fn ticket(&self) -> u64 {
        self.ticket
    }

    /// Takes whole records, in the order of each block.
    pub(super) fn feed(&mut self, mut units: &[Unit]) -> Result<(), Doubt> {
        while let Some(record) = decode(units).map_err(|_| Doubt::Damage)? {
            units = units.get(record.units().len()..).unwrap_or(&[]);
            match self.roles.sites.get(record.site() as usize) {
                Some(Role::Access { class, bytes, bundle }) => {
                    self.access(&record, *class, *bytes, *bundle)?;
                }
                Some(Role::Image(access)) => {
                    let access = *access;
                    self.image(&record, &access)?;
                }
                Some(role) => self.other(&record, *role)?,
                None => return Err(Doubt::Damage),
            }
        }
        Ok(())
    }

    fn other(&mut self, record: &Record<'_>, role: Role) -> Result<(), Doubt> {
        let (mask, warp) = (record.mask(), record.warp());
        if let Some((_, after)) = record.tickets() {
            self.ticket = self.ticket.max(after);
        }
        let block = self.blocks.get(record.block(), self.geometry).ok_or(Doubt::Damage)?;
        match role {
            Role::Fence => Ok(()),
            // All threads, at barrier 0.
            Role::Barrier if record.a_steps() == Some((0, 0)) => block.barrier(warp, mask, record.site()),
            Role::Barrier => Err(Doubt::Barrier),
            Role::Meet(orders) => match record.a_steps() {
                Some((given, 0)) => block.meet(warp, mask, given as u32, orders),
                _ => Err(Doubt::Barrier),
            },
            Role::Exit => {
                if block.exit(warp, mask)? {
                    self.blocks.end(record.block());
                }
                Ok(())
            }
            Role::SharedVariable => {
                self.variables.extend_from_slice(record.units());
                Ok(())
            }
            Role::Access { .. } | Role::Image(_) | Role::Other => Err(Doubt::Instruction),
        }
    }

    /// Texel by texel.
    fn image(&mut self, record: &Record<'_>, access: &ImageAccess) -> Result<(), Doubt> {
        let class = match access.op {
            ImageOp::Fetch | ImageOp::Gather | ImageOp::Load => Class::NonCoherent,
            ImageOp::Store => Class::Write,
            ImageOp::Reduce(_) => return Err(Doubt::Instruction),
        };
        let mask = record.mask();
        let block = self.blocks.get(record.block(), self.geometry).ok_or(Doubt::Damage)?;
        let warp = block.warps.get_mut(usize::from(record.warp())).ok_or(Doubt::Damage)?;
        if mask & !warp.ready != 0 {
            return Err(Doubt::Damage);
        }
        warp.touched |= mask;
        let (interval, sub) = (warp.interval, warp.sub);
        let now = Now { block: block.index, interval, sub, warp: record.warp(), class, global: true };
        for (rank, lane) in record.lanes().enumerate() {
            let image = self.images.find(access, record.a(rank)).map_err(|_| Doubt::Instruction)?;
            let touched = image.touched(access, coordinates(record, rank)).map_err(|_| Doubt::Instruction)?;
            for (at, bytes) in touched {
                self.global.access(&now, at, bytes.into(), Over::One(lane as u8), &mut self.pool)?;
            }
        }
        Ok(())
    }

    #[inline]
    fn access(&mut self, record: &Record<'_>, class: Class, bytes: u8, bundle: u32) -> Result<(), Doubt> {
        let mask = record.mask();
        let block = self.blocks.get(record.block(), self.geometry).ok_or(Doubt::Damage)?;
        let warp = block.warps.get_mut(usize::from(record.warp())).ok_or(Doubt::Damage)?;
        if mask & !warp.ready != 0 {
            return Err(Doubt::Damage);
        }
        warp.touched |= mask;
        let now = Now {
            block: block.index,
            interval: warp.interval,
            sub: warp.sub,
            warp: record.warp(),
            class,
            global: true,
        };
        if class.is_atomic()
            && let Some((_, after)) = record.tickets()
        {
            self.ticket = self.ticket.max(after);
        }
        let mut memory =
            Memory { now, shared: &mut block.shared, global: &mut self.global, pool: &mut self.pool };
        if record.is_bundle() {
            let bundle = bundle.checked_sub(1).and_then(|at| self.roles.bundles.get(at as usize));
            return match bundle.ok_or(Doubt::Damage)? {
                Some(bundle) => all_of(record, bundle, &mut memory),
                None => Err(Doubt::Instruction),
            };
        }
        one_of(record, record.a_steps(), 0, class, bytes, &mut memory)
    }
}

/// What an access may touch.
struct Memory<'m> {
    now: Now,
    shared: &'m mut Shared,
    global: &'m mut Global,
    pool: &'m mut Pool,
}

impl Memory<'_> {
    #[inline]
    fn touch(&mut self, at: u64, bytes: u64, over: Over) -> Result<(), Doubt> {
        match at >> 60 {
            0 => self.global.access(&self.now, at, bytes, over, self.pool),
            1 => {
                self.now.global = false;
                let touched = self.shared.access(&self.now, Tagged(at).address(), bytes, over, self.pool);
                self.now.global = true;
                touched
            }
            _ => Err(Doubt::Damage),
        }
    }
}

/// The range that all lanes touch, if they lie so that it is one.
#[inline]
fn together(
    mask: u32,
    first: u64,
    stride: i64,
    class: Class,
    bytes: u8,
) -> Result<Option<(u64, u64, Over)>, Doubt> {
    let size = u64::from(bytes);
    let lane = mask.trailing_zeros() as u8;
    if mask.is_power_of_two() {
        return Ok(Some((first, size, Over::One(lane))));
    }
    if stride == 0 {
        return several(class).map(|()| Some((first, size, Over::Several)));
    }
    let lanes = mask >> lane;
    let in_row = stride == i64::from(bytes)
        && lanes & lanes.wrapping_add(1) == 0
        && bytes.is_power_of_two()
        && first & (size - 1) == 0;
    if !in_row {
        return Ok(None);
    }
    let log = bytes.trailing_zeros() as u8;
    Ok(Some((first, u64::from(lanes.trailing_ones()) << log, Over::Row { lane, log })))
}

/// All that one record of a bundle stands for.
fn all_of(record: &Record<'_>, bundle: &Bundle, memory: &mut Memory<'_>) -> Result<(), Doubt> {
    let (mask, steps) = (record.mask(), record.a_steps());
    if let Some((first, stride)) = steps
        && (stride == 0 || mask.is_power_of_two())
    {
        let over =
            if mask.is_power_of_two() { Over::One(mask.trailing_zeros() as u8) } else { Over::Several };
        return bundle
            .spans
            .iter()
            .try_for_each(|(from, length)| memory.touch(address(first, *from), *length, over));
    }
    bundle
        .members
        .iter()
        .try_for_each(|(distance, bytes)| one_of(record, steps, *distance, bundle.class, *bytes, memory))
}

/// An access so many bytes behind the addresses of the record, which are these steps if they are any.
#[inline]
fn one_of(
    record: &Record<'_>,
    steps: Option<(u64, i64)>,
    distance: i64,
    class: Class,
    bytes: u8,
    memory: &mut Memory<'_>,
) -> Result<(), Doubt> {
    if let Some((first, stride)) = steps
        && let Some((at, bytes, over)) =
            together(record.mask(), address(first, distance), stride, class, bytes)?
    {
        return memory.touch(at, bytes, over);
    }
    let (all, _) = record.all_a();
    apart(record, &all.map(|a| address(a, distance)), class, bytes, memory)
}

/// Lanes of one access at one place.
fn several(class: Class) -> Result<(), Doubt> {
    if class == Class::Write { Err(Doubt::Lanes) } else { Ok(()) }
}

/// Lanes that do not lie in one row: in several, or each by itself.
#[inline(never)]
fn apart(
    record: &Record<'_>,
    all: &[u64; LANES],
    class: Class,
    bytes: u8,
    memory: &mut Memory<'_>,
) -> Result<(), Doubt> {
    let (count, lanes) = (record.lane_count(), record.lanes_by_rank());
    let size = u64::from(bytes);
    let log = bytes.trailing_zeros() as u8;
    let mut rank = 0;
    while rank < count.min(all.len()) {
        let (at, lane) = (all[rank], lanes[rank]);
        let next = |rank: usize| (rank < count).then(|| (all[rank & 31], lanes[rank & 31]));
        let mut end = rank + 1;
        if next(end).is_some_and(|(a, _)| a == at) {
            several(class)?;
            while next(end).is_some_and(|(a, _)| a == at) {
                end += 1;
            }
            memory.touch(at, size, Over::Several)?;
        } else {
            if bytes.is_power_of_two() && at & (size - 1) == 0 {
                let follows = |end: usize| {
                    let by = (end - rank) as u8;
                    next(end) == Some((at.wrapping_add(u64::from(by) * size), lane + by))
                };
                while follows(end) {
                    end += 1;
                }
            }
            let over = if end - rank == 1 { Over::One(lane) } else { Over::Row { lane, log } };
            memory.touch(at, (end - rank) as u64 * size, over)?;
        }
        rank = end;
    }
    Ok(())
}
