//! Where in an object a finding's conflicts are, and whose.

use super::{Context, Object};
use crate::abi::Tagged;
use crate::finding::{Finding, ThreadId, Witness};

/// Conflicts by element and thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    /// Different addresses.
    pub addresses: u64,
    /// The lowest element that is raced on, and the highest.
    pub elements: [u64; 2],
    /// Some of the addresses, spread over all.
    pub spots: Vec<Spot>,
}

/// One address: its element, and for the first conflict there the linear block and thread of both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    /// The element.
    pub element: u64,
    /// Block and thread of both sides.
    pub by: [[u32; 2]; 2],
}

/// The spread of a finding over the object that it names; `None` if the object is unknown or only one address is raced on.
pub(super) fn spread(
    finding: &Finding,
    context: &Context<'_>,
    object: Option<&Object>,
    at: Option<(Witness, u64)>,
) -> Option<Spread> {
    object?.size?;
    let (witness, _) = at.filter(|_| finding.addresses > 1)?;
    let element = |address: u64| {
        let (region, offset) = context.region(&witness, Tagged(address))?;
        Some((region.base, offset / context.element(region, &witness)))
    };
    let (own, _) = element(at?.1)?;
    // One pair of instructions may race on several objects; the map is of one.
    let inside = |address: u64| element(address).filter(|(base, _)| *base == own).map(|(_, element)| element);
    let by = |thread: ThreadId| [thread.block, u32::from(thread.warp) * 32 + u32::from(thread.lane)];
    let spots: Vec<_> = finding
        .spots
        .iter()
        .filter_map(|spot| Some(Spot { element: inside(spot.address)?, by: spot.threads.map(by) }))
        .collect();
    let ends = [finding.range.0, finding.range.1].into_iter().filter_map(inside);
    let all = || spots.iter().map(|spot| spot.element).chain(ends.clone());
    let elements = [all().min()?, all().max()?];
    Some(Spread { addresses: finding.addresses, elements, spots })
}
