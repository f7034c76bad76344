//! Fingerprints: what makes a finding the same one after a rebuild or an edit elsewhere. No addresses, no line
//! numbers, no seeds.

use super::{Context, Object, frames, user_frame};
use crate::finding::{Finding, Witness};

/// 16 hex digits.
pub(super) fn fingerprint(finding: &Finding, context: &Context<'_>, object: Option<&Object>) -> String {
    let kernel = finding.witnesses.last().and_then(|witness| context.launch(witness.thread));
    let mut lines: Vec<_> = finding.witnesses.iter().map(|witness| line(context, witness)).collect();
    // Which access was replayed first depends on the schedule.
    lines.sort();
    let mut hash = Fnv::new();
    hash.part(finding.rule.id());
    hash.part(kernel.map_or("", |launch| &launch.kernel));
    lines.iter().for_each(|line| hash.part(line));
    hash.part(object.map_or("", |object| &object.name));
    format!("{:016x}", hash.0)
}

/// The source line of an access, else its PTX line, with blanks made even.
fn line(context: &Context<'_>, witness: &Witness) -> String {
    let Some(site) = context.site(witness) else { return context.call(witness).unwrap_or("").to_owned() };
    let frames = site.loc.as_deref().map(frames).unwrap_or_default();
    let source = user_frame(&frames).and_then(|frame| context.sources.line(frame));
    let text = source.unwrap_or_else(|| context.slice(site).to_owned());
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// FNV-1a, 64 bits: stable over platforms and versions, unlike the hashers of the standard library.
struct Fnv(u64);

impl Fnv {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// Adds a text and a separator that no text has.
    fn part(&mut self, text: &str) {
        for byte in text.bytes().chain([0]) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}
