//! Bundles: weak loads of a straight piece of code off one register, which are logged as one.
//!
//! A tile loop that a compiler unrolled loads from `[%r1]`, `[%r1+4]`, `[%r1+8]` and so on. Where nothing stands between that
//! could order or be ordered (no site of another kind, no label, branch or call), and neither the register nor the guard
//! changes, the lanes of one load are those of all, and its addresses tell theirs. So only the first, the *leader*, logs,
//! with `abi::BUNDLE` in the header, and its record stands for one of each. That these come a few instructions early is the
//! same to everyone: weak loads have no order within a thread's stretch between two sites that others could see.

use std::sync::Arc;

use super::site::{SiteId, SiteKind};
use crate::abi::{Encoder, LANES, PEER, Payload, Record, SHARED_OFFSET, TAG_SHARED, Unit};
use crate::isa::{AccessKind, Marking, Order, Space};
use crate::ptx::ast::{Instruction, Operand};

/// Members of one bundle at most.
const MOST: usize = 256;
/// Bundles that are open at once at most; the oldest is closed for a new one.
const MOST_OPEN: usize = 16;

/// One load of a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its site.
    pub site: SiteId,
    /// How far its addresses lie behind the leader's, in bytes.
    pub distance: i64,
}

/// What a site is to a bundle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Bundling {
    /// It logs for itself.
    #[default]
    Alone,
    /// It logs for these, itself first.
    Leads(Arc<[Member]>),
    /// Another one logs for it.
    Follows,
}

impl Bundling {
    /// What a record of the site with `abi::BUNDLE` stands for.
    pub fn members(&self) -> &[Member] {
        match self {
            Self::Leads(members) => members,
            Self::Alone | Self::Follows => &[],
        }
    }
}

/// The address of a member, given the leader's.
pub fn address(leader: u64, distance: i64) -> u64 {
    let moved = leader.wrapping_add_signed(distance);
    // Addresses in the own window are cut to their offset.
    let own = leader >> 60 == TAG_SHARED >> 60 && leader & PEER == 0;
    if own { leader & !SHARED_OFFSET | moved & SHARED_OFFSET } else { moved }
}

/// Appends the records that one of a bundle stands for, as the members would have logged them.
pub fn expand(record: &Record<'_>, members: &[Member], out: &mut Vec<Unit>) {
    let (by_rank, none) = (record.all_a().0, [0; LANES]);
    for member in members {
        let mut a = none;
        for (lane, leader) in record.lanes().zip(by_rank) {
            a[lane] = address(leader, member.distance);
        }
        let (site, mask, block, warp) = (member.site.0, record.mask(), record.block(), record.warp());
        let payload = Payload { a: true, ..Payload::NONE };
        let (a, read, written) = (&a, &none, &none);
        Encoder { site, mask, block, warp, payload, tickets: (0, 0), a, read, written }.encode(out);
    }
}

/// What loads of one bundle share.
#[derive(Debug, PartialEq, Eq)]
struct Key<'a> {
    base: &'a str,
    space: Space,
    marking: Marking,
    guard: Option<(&'a str, bool)>,
}

impl<'a> Key<'a> {
    /// `None` for what is no such load; with the offset of its address.
    fn of(instruction: &Instruction<'a>, kind: &SiteKind) -> Option<(Self, i64)> {
        let SiteKind::Access(access) = kind else { return None };
        let is_load = access.kind == AccessKind::Load && access.order == Order::Weak && access.rows.is_none();
        let is_plain = matches!(access.marking, Marking::Plain | Marking::NonCoherent);
        let is_near = matches!(access.space, Space::Global | Space::Shared | Space::Generic);
        let Operand::Address(address) = instruction.operands.get(usize::from(access.address))? else {
            return None;
        };
        if !(is_load && is_plain && is_near && address.extra.is_empty()) {
            return None;
        }
        let guard = instruction.guard.as_ref().map(|guard| (guard.register.text, guard.negated));
        let key = Self { base: address.base?.text, space: access.space, marking: access.marking, guard };
        Some((key, address.offset))
    }

    fn names(&self, name: &str) -> bool {
        self.base == name || self.guard.is_some_and(|(guard, _)| guard == name)
    }
}

#[derive(Debug)]
struct Open<'a> {
    key: Key<'a>,
    offset: i64,
    members: Vec<Member>,
}

/// Bundles that may go on.
#[derive(Debug, Default)]
pub(super) struct Bundler<'a> {
    open: Vec<Open<'a>>,
    /// Those that are whole.
    pub(super) done: Vec<Vec<Member>>,
}

impl<'a> Bundler<'a> {
    /// Nothing goes on beyond this place.
    #[inline]
    pub(super) fn close(&mut self) {
        if !self.open.is_empty() {
            self.done
                .extend(self.open.drain(..).map(|open| open.members).filter(|members| members.len() > 1));
        }
    }

    /// An instruction that is logged, with its site.
    pub(super) fn logged(&mut self, instruction: &Instruction<'a>, site: SiteId, kind: &SiteKind) {
        let Some((key, offset)) = Key::of(instruction, kind) else { return self.close() };
        let known = self.open.iter_mut().find(|open| open.key == key && open.members.len() < MOST);
        let distance = known.as_ref().and_then(|open| offset.checked_sub(open.offset));
        match (known, distance) {
            (Some(open), Some(distance)) => open.members.push(Member { site, distance }),
            _ => {
                if self.open.len() >= MOST_OPEN {
                    self.close();
                }
                self.open.push(Open { key, offset, members: vec![Member { site, distance: 0 }] });
            }
        }
        self.passed(instruction);
    }

    /// An instruction that is not logged and orders nothing.
    #[inline]
    pub(super) fn passed(&mut self, instruction: &Instruction<'a>) {
        if self.open.is_empty() {
            return;
        }
        if matches!(instruction.opcode.text, "bra" | "brx" | "call" | "ret" | "exit" | "trap" | "brkpt") {
            return self.close();
        }
        // What may be written is the first operand, whatever it is made of.
        if let Some(target) = instruction.operands.first() {
            target.each_name(&mut |name| self.written(name));
        }
    }

    fn written(&mut self, name: &str) {
        while let Some(at) = self.open.iter().position(|open| open.key.names(name)) {
            let members = self.open.swap_remove(at).members;
            if members.len() > 1 {
                self.done.push(members);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::SiteTable;
    use super::*;
    use crate::abi::{Lanes, TAG_GLOBAL, decode};
    use proptest::prelude::*;

    /// The distances of each bundle of a body.
    fn bundles(body: &str) -> Vec<Vec<i64>> {
        let text =
            format!(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() {{\n{body}\n}}\n");
        let parsed = crate::ptx::parse(&text);
        assert_eq!(parsed.errors, []);
        let sites = SiteTable::new(&parsed.module);
        let leads =
            sites.sites().iter().map(|site| site.bundling.members()).filter(|members| !members.is_empty());
        leads.map(|members| members.iter().map(|member| member.distance).collect()).collect()
    }

    #[test]
    fn loads_off_one_register_are_one() {
        let two = "ld.shared.u32 %r2, [%r1+8]; ld.global.u32 %r3, [%rd1]; ld.shared.u64 %rd4, [%r1]; ld.global.u32 %r5, [%rd1+4];";
        assert_eq!(bundles(two), [vec![0, -8], vec![0, 4]]);
        assert_eq!(bundles("@%p1 ld.global.u32 %r2, [%rd1]; @%p1 ld.global.u32 %r3, [%rd1+4];"), [[0, 4]]);
        assert_eq!(
            bundles("ld.global.u32 %r2, [%rd1]; add.u32 %r3, %r2, 1; ld.global.u32 %r3, [%rd1+4];"),
            [[0, 4]]
        );
    }

    #[test]
    fn what_comes_between_parts_them() {
        let between = [
            "bar.sync 0;",
            "st.global.u32 [%rd2], %r1;",
            "membar.gl;",
            "$label:",
            "@%p1 bra $label; $label:",
            "add.s64 %rd1, %rd1, 4;",
            "mov.b64 {%r1, %r2}, %rd2; mov.b64 %rd1, {%r1, %r2};",
            "call f, (%r1);",
            "ld.global.v2.u64 {%rd3, %rd1}, [%rd2];",
            "bar.warp.sync -1;",
            "{ }",
            "ld.volatile.global.u32 %r4, [%rd1+8];",
            "shfl.sync.idx.b32 %r4, %r2, 0, 31, -1;",
            "tex.1d.v4.f32.s32 {%r4, %r5, %r6, %r7}, [t, {%r1}];",
        ];
        for between in between {
            let body = format!("ld.global.u32 %r2, [%rd1]; {between} ld.global.u32 %r3, [%rd1+4];");
            assert_eq!(bundles(&body), [[0; 0]; 0], "{between}");
        }
        assert_eq!(
            bundles("@%p1 ld.global.u32 %r2, [%rd1]; @!%p1 ld.global.u32 %r3, [%rd1+4];"),
            [[0; 0]; 0]
        );
        assert_eq!(
            bundles(
                "@%p1 ld.global.u32 %r2, [%rd1]; setp.eq.u32 %p1|%p2, 0, 1; @%p1 ld.global.u32 %r3, [%rd1+4];"
            ),
            [[0; 0]; 0]
        );
        assert_eq!(bundles("ld.global.u64 %rd1, [%rd1]; ld.global.u64 %rd1, [%rd1+8];"), [[0; 0]; 0]);
        assert_eq!(bundles("ld.global.nc.u32 %r2, [%rd1]; ld.global.u32 %r3, [%rd1+4];"), [[0; 0]; 0]);
    }

    proptest! {
        #[test]
        fn members_are_as_they_would_log(
            mask in prop_oneof![Just(u32::MAX), 1u32..], lanes in proptest::array::uniform32(0u64..1 << 23), stride in 0u64..64,
            straight: bool, tag in prop_oneof![Just(TAG_GLOBAL), Just(TAG_SHARED)], distances in proptest::collection::vec(-1i64 << 16..1 << 16, 1..5),
        ) {
            let leader: Lanes = std::array::from_fn(|lane| {
                let at = if straight { lane as u64 * stride } else { lanes[lane] };
                tag | (at + (1 << 16))
            });
            let none = [0; LANES];
            let log = |site: u32, a: &Lanes| {
                let mut units = Vec::new();
                let payload = Payload { a: true, ..Payload::NONE };
                Encoder { site, mask, block: 7, warp: 3, payload, tickets: (0, 0), a, read: &none, written: &none }.encode(&mut units);
                units
            };
            let members: Vec<_> = (0..).zip(&distances).map(|(site, distance)| Member { site: SiteId(site), distance: *distance }).collect();
            let (mut got, mut expected) = (Vec::new(), Vec::new());
            expand(&decode(&log(9, &leader)).unwrap().unwrap(), &members, &mut got);
            for member in &members {
                expected.extend(log(member.site.0, &leader.map(|a| address(a, member.distance))));
            }
            prop_assert_eq!(got, expected);
        }
    }
}
