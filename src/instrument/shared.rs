//! The addresses of shared variables, logged once a launch at the start of an entry.

use super::address::own;
use super::code::Code;
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
    code.line(format_args!("mov.u32 {all}, %tid.x"));
    for register in ["%tid.y", "%tid.z", "%ctaid.x", "%ctaid.y", "%ctaid.z"] {
        code.line(format_args!("mov.u32 {one}, {register}"));
        code.line(format_args!("or.b32 {all}, {all}, {one}"));
    }
    code.line(format_args!("setp.ne.s32 {other}, {all}, 0"));
    code.line(format_args!("@{other} bra {skip}"));
    let address = code.temp("b64");
    for (site, variable) in variables {
        code.line(format_args!("mov.u64 {address}, {}", variable.name));
        own(&mut code, &address);
        let function = runtime.log(site.payload());
        code.call(function, site.id.0, std::iter::once(&address));
    }
    code.label(&skip);
    Some(code.finish().0.trim_end().to_owned())
}
