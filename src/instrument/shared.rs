//! The addresses of shared variables, logged once a launch at the start of an entry.

use super::address::own;
use super::code::{Code, line};
use super::runtime::Runtime;
use super::site::{Site, SiteKind};

/// The code that logs them; `None` when there are none.
pub(super) fn run(sites: &[Site], runtime: &mut Runtime) -> Option<String> {
    let variables = sites.iter().filter_map(|site| match &site.kind {
        SiteKind::SharedVariable(variable) => Some((site, variable)),
        _ => None,
    });
    let mut variables = variables.peekable();
    variables.peek()?;
    let mut code = Code::default();
    let skip = code.name();
    // The first thread of the first block is the one with no index above zero.
    let (all, one, other) = (code.temp("b32"), code.temp("b32"), code.temp("pred"));
    line!(code, "mov.u32 ", all, ", %tid.x");
    for register in ["%tid.y", "%tid.z", "%ctaid.x", "%ctaid.y", "%ctaid.z"] {
        line!(code, "mov.u32 ", one, ", ", register);
        line!(code, "or.b32 ", all, ", ", all, ", ", one);
    }
    line!(code, "setp.ne.s32 ", other, ", ", all, ", 0");
    line!(code, "@", other, " bra ", skip);
    let address = code.temp("b64");
    for (site, variable) in variables {
        line!(code, "mov.u64 ", address, ", ", *variable.name);
        own(&mut code, address);
        let function = runtime.log(site.payload());
        code.call(function, site.id.0, std::iter::once(address));
    }
    code.label(skip);
    let mut text = String::new();
    code.put_before(&mut text);
    text.truncate(text.trim_end().len());
    Some(text)
}
