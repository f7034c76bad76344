//! `ptxrace doctor`

use std::io;

use super::{Console, exit};
use crate::session::Parts;
use crate::session::exec::find_wrapper;

pub(super) fn run(console: &mut Console<'_>, parts: &dyn Parts) -> io::Result<u8> {
    let out = &mut *console.streams.out;
    writeln!(out, "ptxrace {}", env!("CARGO_PKG_VERSION"))?;
    match parts.gpu_name() {
        Ok(name) => writeln!(out, "GPU: {name}")?,
        Err(error) => writeln!(out, "GPU: {error}")?,
    }
    match parts.emulator() {
        Ok(_) => writeln!(out, "emulator: usable")?,
        Err(error) => writeln!(out, "emulator: {error}")?,
    }
    match find_wrapper(&std::env::current_exe()?) {
        Ok(path) => writeln!(out, "wrapper for `ptxrace exec`: {}", path.display())?,
        Err(_) => writeln!(out, "wrapper for `ptxrace exec`: missing")?,
    }
    Ok(exit::CLEAN)
}
