//! `ptxrace instrument FILE`

use std::io;

use super::args::InstrumentArgs;
use super::{Console, exit};
use crate::backend::Program;
use crate::instrument::SiteTable;
use crate::report::write_sites;
use crate::session::{self, Parts};

pub(super) fn run(args: &InstrumentArgs, console: &mut Console<'_>, parts: &dyn Parts) -> io::Result<u8> {
    let source = match session::read(&args.file) {
        Ok(source) => source,
        Err(error) => return console.refuse(&[error]),
    };
    let module = match session::parse(&source) {
        Ok(module) => module,
        Err(errors) => return console.refuse(&errors),
    };
    let sites = SiteTable::new(&module);
    let program = Program { source: &source, module: &module, sites: &sites };
    if args.output.is_some() || !args.sites {
        let text = match parts.instrument(program) {
            Ok(text) => text,
            Err(error) => return console.refuse(&[*error]),
        };
        match &args.output {
            Some(path) => {
                if let Err(code) = console.write_file(path, text.as_bytes())? {
                    return Ok(code);
                }
            }
            None => console.streams.out.write_all(text.as_bytes())?,
        }
    }
    if args.sites {
        write_sites(program, console.streams.out)?;
    }
    Ok(exit::CLEAN)
}
