//! Timelines and spreads as they stand in the JSON report.

use super::json::named;
use super::wire;
use crate::explain::{Edge, Event, Lane, Link, Spot, Spread, Timeline};

pub(super) fn timeline(timeline: &Timeline) -> Option<wire::Timeline> {
    let lane = |lane: &Lane| wire::Lane { title: lane.title.clone(), detail: lane.detail.clone() };
    let event = |event: &Event| wire::Event {
        lane: event.lane,
        row: event.row,
        access: event.access,
        text: event.text.clone(),
        op: event.op.clone(),
        at: event.at.clone(),
    };
    let edge = |edge: &Edge| wire::Edge {
        from: edge.from,
        to: edge.to,
        link: edge.link.name().into(),
        text: edge.text.clone(),
    };
    (!timeline.lanes.is_empty()).then(|| wire::Timeline {
        lanes: timeline.lanes.iter().map(lane).collect(),
        events: timeline.events.iter().map(event).collect(),
        edges: timeline.edges.iter().map(edge).collect(),
        mask: timeline.mask.map(|[given, executing]| wire::Mask { given, executing }),
    })
}

/// A timeline whose events are in lanes that there are, and whose edges are between events that there are.
pub(super) fn read_timeline(timeline: wire::Timeline) -> Result<Timeline, String> {
    let (lanes, events) = (timeline.lanes.len(), timeline.events.len());
    let lane = |lane: wire::Lane| Lane { title: lane.title, detail: lane.detail };
    let event = |event: wire::Event| {
        if let Some(lane) = event.lane.filter(|lane| *lane as usize >= lanes) {
            return Err(format!("a timeline has no lane {lane}"));
        }
        if event.row as usize >= events {
            return Err(format!("a timeline has no row {}", event.row));
        }
        let wire::Event { lane, row, access, text, op, at } = event;
        Ok(Event { lane, row, access, text, op, at })
    };
    let edge = |edge: wire::Edge| {
        if let Some(end) = [edge.from, edge.to].into_iter().find(|end| *end as usize >= events) {
            return Err(format!("a timeline has no event {end}"));
        }
        let link = named(&Link::ALL, Link::name, "link", &edge.link)?;
        Ok(Edge { from: edge.from, to: edge.to, link, text: edge.text })
    };
    Ok(Timeline {
        lanes: timeline.lanes.into_iter().map(lane).collect(),
        events: timeline.events.into_iter().map(event).collect::<Result<_, _>>()?,
        edges: timeline.edges.into_iter().map(edge).collect::<Result<_, _>>()?,
        mask: timeline.mask.map(|mask| [mask.given, mask.executing]),
    })
}

pub(super) fn spread(spread: &Spread) -> wire::Spread {
    let [first_element, last_element] = spread.elements;
    let row = |spot: &Spot| {
        let [one, two] = spot.by.map(|by| by.map(u64::from));
        [spot.element, one[0], one[1], two[0], two[1]]
    };
    wire::Spread {
        addresses: spread.addresses,
        first_element,
        last_element,
        sample: spread.spots.iter().map(row).collect(),
    }
}

pub(super) fn read_spread(spread: wire::Spread) -> Result<Spread, String> {
    let elements = [spread.first_element, spread.last_element];
    let within = |element: &u64| *element >= elements[0] && *element <= elements[1];
    let spot = |[element, rest @ ..]: [u64; 5]| {
        let small = rest.map(|number| u32::try_from(number).ok());
        let [Some(a), Some(b), Some(c), Some(d)] = small else { return None };
        within(&element).then_some(Spot { element, by: [[a, b], [c, d]] })
    };
    let spots = spread.sample.into_iter().map(spot).collect::<Option<_>>();
    let spots = spots.ok_or("a sample of a spread is out of its range")?;
    if elements[0] > elements[1] {
        return Err("a spread ends before it begins".into());
    }
    Ok(Spread { addresses: spread.addresses, elements, spots })
}
