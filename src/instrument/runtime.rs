//! The device runtime: PTX functions that draw tickets and write records, put together from the pieces in
//! `runtime/`. Only those that a module's sites need are put in.

use super::{CallMode, Target};
use crate::abi::control::{
    COUNTER_STRIDE, OFFSET_DATA, OFFSET_DROPPED_RECORDS, OFFSET_DROPPED_UNITS, OFFSET_RING_MASK,
    OFFSET_TAILS, OFFSET_TICKETS,
};
use crate::abi::{
    BUNDLE, BY_LANES, FORMS_SHIFT, HAS_A, HAS_READ, HAS_TICKETS, HAS_WRITTEN, LAP, NARROW, PACKED_UNITS,
    Payload, Value, WIDE,
};

const CONTROL: &str = include_str!("runtime/control.ptx");
const TICKET: &str = include_str!("runtime/ticket.ptx");
/// Takes a ticket.
const DRAW: &str = "\tatom.global.add.u64 %ticket, [%c+$TICKETS], 1;\n";
/// Looks which was the last to be taken: a wait that is asked again and again must not take one each time, since no record
/// would say what became of it.
const LOOK: &str = "\tld.volatile.global.u64 %ticket, [%c+$TICKETS];\n\tadd.s64 %ticket, %ticket, -1;\n";
const TENSOR_MAP: &str = include_str!("runtime/tensor_map.ptx");
const REGISTERS: &str = include_str!("runtime/registers.ptx");
const GROUP: &str = include_str!("runtime/group.ptx");
const SAME_TICKET: &str = include_str!("runtime/same_ticket.ptx");
const PROGRESSION: &str = include_str!("runtime/progression.ptx");
const AGREE: &str = include_str!("runtime/agree.ptx");
const AFTER: &str = include_str!("runtime/after.ptx");
const UNITS: &str = include_str!("runtime/units.ptx");
const PACKED: &str = include_str!("runtime/packed.ptx");
const PACKED_FORM: &str = include_str!("runtime/packed_form.ptx");
const PACKED_SIZED: &str = include_str!("runtime/packed_sized.ptx");
const PACKED_PUT: &str = include_str!("runtime/packed_put.ptx");
const PACKED_NEXT: &str = include_str!("runtime/packed_next.ptx");
const PLACE: &str = include_str!("runtime/place.ptx");
const RESERVE: &str = include_str!("runtime/reserve.ptx");
const SHARE: &str = include_str!("runtime/share.ptx");
const HEADER: &str = include_str!("runtime/header.ptx");
const TOGETHER: &str = include_str!("runtime/together.ptx");
const CHOOSE: &str = include_str!("runtime/choose.ptx");
const PUT: &str = include_str!("runtime/put.ptx");
const NEXT: &str = include_str!("runtime/next.ptx");
const LANE: &str = include_str!("runtime/lane.ptx");
const LANE_SECOND: &str = include_str!("runtime/lane_second.ptx");
const ALONE: &str = include_str!("runtime/alone.ptx");
const ALONE_BEGIN: &str = include_str!("runtime/alone_begin.ptx");
const ALONE_HEADER: &str = include_str!("runtime/alone_header.ptx");
const ALONE_FIRST: &str = include_str!("runtime/alone_first.ptx");
const ALONE_VALUE: &str = include_str!("runtime/alone_value.ptx");
const ALONE_NEXT: &str = include_str!("runtime/alone_next.ptx");
const END: &str = include_str!("runtime/end.ptx");

/// Which functions are needed.
#[derive(Debug, Default)]
pub(super) struct Runtime {
    /// With the names of the functions that log them.
    payloads: Vec<(Payload, String)>,
    bundles: bool,
    tickets: bool,
    looks: bool,
    tensor_maps: bool,
}

impl Runtime {
    /// The name of the function that logs such a record, which is needed then. It takes the site and then the values
    /// of the payload in the order of its fields; of the tickets, the one from before.
    pub(super) fn log(&mut self, payload: Payload) -> &str {
        let at = self.payloads.iter().position(|(known, _)| *known == payload).unwrap_or_else(|| {
            self.payloads.push((payload, name(payload)));
            self.payloads.len() - 1
        });
        self.payloads.get(at).map_or("", |(_, name)| name)
    }

    /// The name of the function that logs a record of a bundle, which is needed then. It takes site and address.
    pub(super) fn log_bundle(&mut self) -> &'static str {
        self.bundles = true;
        "__ptxrace_log_bundle"
    }

    /// The name of the function that draws a ticket, which is needed then.
    pub(super) fn ticket(&mut self) -> &'static str {
        self.tickets = true;
        "__ptxrace_ticket"
    }

    /// The name of the function that gives the last ticket drawn so far, which is needed then.
    pub(super) fn last_ticket(&mut self) -> &'static str {
        self.looks = true;
        "__ptxrace_last_ticket"
    }

    /// The name of the function that gives the digest of a tensor map (`tensor::digest`), which is needed then. It takes the
    /// map's generic address.
    pub(super) fn tensor_map(&mut self) -> &'static str {
        self.tensor_maps = true;
        "__ptxrace_tensor_map"
    }

    /// The text of all that is needed.
    pub(super) fn text(&self, target: Target, mode: CallMode) -> String {
        let mut text = String::from(CONTROL);
        let mut names = Vec::new();
        if self.tickets {
            text.push_str(&TICKET.replace("$NAME", "__ptxrace_ticket").replace("$GET", DRAW));
            names.push("__ptxrace_ticket".to_owned());
        }
        if self.looks {
            text.push_str(&TICKET.replace("$NAME", "__ptxrace_last_ticket").replace("$GET", LOOK));
            names.push("__ptxrace_last_ticket".to_owned());
        }
        if self.tensor_maps {
            text.push_str(TENSOR_MAP);
            names.push("__ptxrace_tensor_map".to_owned());
        }
        if self.bundles || !self.payloads.is_empty() {
            text.push_str(&alone());
            names.push("__ptxrace_alone".to_owned());
        }
        let payloads = self.payloads.iter().map(|(payload, name)| (*payload, name.clone(), 0));
        let bundle = self.bundles.then(|| {
            let payload = Payload { a: true, ..Payload::NONE };
            (payload, "__ptxrace_log_bundle".to_owned(), BUNDLE)
        });
        for (payload, name, flag) in payloads.chain(bundle) {
            text.push_str(&function(payload, &name, flag));
            names.push(name);
        }
        if mode == CallMode::Abi && !names.is_empty() {
            // A function whose address is taken is called by the ABI.
            let list = names.join(", ");
            text.push_str(&format!(".global .align 8 .u64 __ptxrace_abi[{}] = {{{list}}};\n", names.len()));
        }
        let text = [
            ("$TICKETS", OFFSET_TICKETS.to_string()),
            ("$DATA", OFFSET_DATA.to_string()),
            ("$TAILS", OFFSET_TAILS.to_string()),
            ("$RING_MASK", OFFSET_RING_MASK.to_string()),
            ("$COUNTER_STRIDE", COUNTER_STRIDE.to_string()),
            ("$DROPPED_RECORDS", OFFSET_DROPPED_RECORDS.to_string()),
            ("$DROPPED_UNITS", OFFSET_DROPPED_UNITS.to_string()),
            ("$NOT_LAP", format!("{:#x}", !LAP)),
            ("$LAP", format!("{LAP:#x}")),
        ]
        .iter()
        .fold(text, |text, (name, value)| text.replace(name, value));
        if target.has(70, (6, 3)) { text } else { text.replace("\tnanosleep.u32 %sleep;\n", "") }
    }
}

fn name(payload: Payload) -> String {
    let letter = |set, letter| if set { letter } else { "" };
    let (a, read) = (letter(payload.a, "a"), letter(payload.read, "r"));
    let (written, tickets) = (letter(payload.written, "w"), letter(payload.tickets, "t"));
    match [a, read, written, tickets].concat() {
        letters if letters.is_empty() => "__ptxrace_log".into(),
        letters => format!("__ptxrace_log_{letters}"),
    }
}

/// The function of this name that logs a record of this payload, with one more flag in its header.
fn function(payload: Payload, name: &str, flag: u64) -> String {
    // With the places of their forms.
    let forms = payload.values().map(|value| {
        let name = match value {
            Value::A => "a",
            Value::Read => "read",
            Value::Written => "written",
        };
        (name, FORMS_SHIFT - 32 + value.form_shift())
    });
    let forms: Vec<_> = forms.collect();
    let values: Vec<_> = forms.iter().map(|(name, _)| *name).collect();
    let parameters: Vec<_> = values.iter().copied().chain(payload.tickets.then_some("before")).collect();
    let head = 1 + usize::from(payload.tickets);
    let per_lane = if values.is_empty() { 0 } else { 1 + usize::from(payload.read && payload.written) };

    let mut text = format!(".func {name}(.param .b32 __ptxrace_site");
    for parameter in &parameters {
        text.push_str(&format!(", .param .b64 __ptxrace_{parameter}"));
    }
    text.push_str(")\n{\n");
    text.push_str(REGISTERS);
    for parameter in &parameters {
        text.push_str(&format!("\t.reg .b64 %{parameter}, %{parameter}_first, %{parameter}_stride;\n"));
        text.push_str(&format!("\t.reg .pred %{parameter}_fit, %{parameter}_narrow;\n"));
        text.push_str(&format!("\tld.param.b64 %{parameter}, [__ptxrace_{parameter}];\n"));
    }
    text.push_str(GROUP);
    if payload.tickets {
        text.push_str(SAME_TICKET);
    }
    text.push_str("\tand.pred %fit, %same, %same;\n");
    for value in &values {
        text.push_str(&PROGRESSION.replace("$V", value));
    }
    let given = |set, name: &'static str| if set { name } else { "0" };
    let agree = AGREE
        .replace("$A", given(payload.a, "%a"))
        .replace("$READ", given(payload.read, "%read"))
        .replace("$WRITTEN", given(payload.written, "%written"))
        .replace("$BEFORE", given(payload.tickets, "%before"));
    text.push_str(&agree);
    if payload.tickets {
        text.push_str(AFTER);
    }
    text.push_str(UNITS);
    if !values.is_empty() {
        text.push_str(PACKED);
        for (value, place) in &forms {
            let form = |form: u64| (form << place).to_string();
            let text_of = PACKED_FORM.replace("$NARROW", &form(NARROW)).replace("$WIDE", &form(WIDE));
            text.push_str(&text_of.replace("$V", value));
        }
        text.push_str(PACKED_SIZED);
    }
    text.push_str(PLACE);
    text.push_str("\tmov.b64 %count, 1;\n");
    text.push_str(LEADER_ONLY);
    for piece in [RESERVE, SHARE, HEADER, TOGETHER] {
        text.push_str(piece);
    }
    let choose = |at: usize, lo: &str, hi: &str| {
        CHOOSE.replace("$AT", &at.to_string()).replace("$LO", lo).replace("$HI", hi)
    };
    if payload.tickets {
        text.push_str(&choose(1, "before", "after"));
    }
    for (index, value) in values.iter().enumerate() {
        text.push_str(&choose(head + index, &format!("{value}_first"), &format!("{value}_stride")));
    }
    text.push_str(PUT);
    text.push_str(NEXT);
    if !values.is_empty() {
        text.push_str(PACKED_OR_DONE);
        for value in &values {
            text.push_str(&[PACKED_PUT, PUT, PACKED_NEXT].concat().replace("$V", value));
        }
        text.push_str(PACKED_DONE);
        let lo = match (payload.read, payload.written) {
            (true, _) => "%read",
            (false, true) => "%written",
            (false, false) => "0",
        };
        text.push_str(&LANE.replace("$LO", lo).replace("$HI", if payload.a { "%a" } else { "0" }));
        text.push_str(PUT);
        if per_lane == 2 {
            text.push_str(LANE_SECOND);
            text.push_str(PUT);
        }
    }
    text.push_str(END);
    let flags = (payload.flags() | flag) >> 32;
    text.replace("$HEAD", &head.to_string())
        .replace("$COMPACT", &(head + values.len()).to_string())
        .replace("$PER_LANE", &per_lane.to_string())
        .replace("2*$PACKED", &(2 * PACKED_UNITS).to_string())
        .replace("$PACKED", &PACKED_UNITS.to_string())
        .replace("$FLAGS_BY_LANES", &(flags | BY_LANES >> 32).to_string())
        .replace("$FLAGS", &flags.to_string())
}

/// Whether anything is packed.
const PACKED_OR_DONE: &str = "\tsetp.eq.s32 %p, %forms, 0;\n\t@%p bra __ptxrace_lanes;\n";
const PACKED_DONE: &str = "\tbra __ptxrace_done;\n__ptxrace_lanes:\n";

/// Only the leader reserves.
const LEADER_ONLY: &str = "\tmov.b64 %base, 0;\n\t@!%lead bra __ptxrace_reserved;\n";

/// The function that logs a record for each lane on its own, whatever its payload.
fn alone() -> String {
    let mut text =
        [ALONE, REGISTERS, ALONE_BEGIN, PLACE, LEADER_ONLY, RESERVE, ALONE_HEADER, HEADER, ALONE_FIRST, PUT]
            .concat();
    let values = [
        ("before", HAS_TICKETS, "%after"),
        ("a", HAS_A, "0"),
        ("read", HAS_READ, "0"),
        ("written", HAS_WRITTEN, "0"),
    ];
    for (value, flag, hi) in values {
        let load = format!("ld.param.b64 %ulo, [__ptxrace_{value}];");
        let begin = ALONE_VALUE.replace("$LOAD", &load).replace("$HI", hi);
        let begin = begin.replace("$FLAG", &(flag >> 32).to_string());
        text.push_str(&[begin.as_str(), PUT, ALONE_NEXT].concat().replace("$V", value));
    }
    text.push_str(END);
    let counted = HAS_TICKETS | HAS_A | HAS_READ | HAS_WRITTEN;
    text.replace("$TICKETS_FLAG", &(HAS_TICKETS >> 32).to_string())
        .replace("$COUNTED", &(counted >> 32).to_string())
}
