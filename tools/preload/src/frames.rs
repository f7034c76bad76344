//! The calls of the program that led to a call of the driver: without ours, and without those inside of the driver and the runtime.
//! Programs that were built without frame pointers and unwind tables have short lists.

use std::ops::Range;
use std::path::Path;

use ptxrace::session::exec::log::Frame;

/// Calls that are kept.
const MOST: usize = 16;
/// Calls that are looked at: ours come first.
const DEEPEST: usize = 64;
/// Libraries whose calls say nothing of the program.
const LEFT_OUT: [&str; 2] = ["libcuda.", "libcudart."];

/// The part of a file that lies in memory.
struct Mapped {
    at: Range<usize>,
    file: String,
    offset: usize,
}

/// What of files lies in memory, by the list that Linux gives.
fn mapped(list: &str) -> Vec<Mapped> {
    let one = |line: &str| {
        let file = line.get(line.find('/')?..)?.to_owned();
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let number = |text: &str| usize::from_str_radix(text, 16).ok();
        let offset = number(words.nth(1)?)?;
        Some(Mapped { at: number(start)?..number(end)?, file, offset })
    };
    list.lines().filter_map(one).collect()
}

/// Whether a function is one of the runtime, which may be part of the program.
fn is_of_runtime(name: &str) -> bool {
    let runtime =
        name.strip_prefix("cuda").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()));
    runtime || name.starts_with("__cuda") || name.starts_with("cudart")
}

/// The calls that led here.
pub(crate) fn frames() -> Vec<Frame> {
    let mut addresses = Vec::new();
    backtrace::trace(|frame| {
        addresses.push(frame.ip() as usize);
        addresses.len() < DEEPEST
    });
    let mapped = mapped(&std::fs::read_to_string("/proc/self/maps").unwrap_or_default());
    let file = |address: usize| mapped.iter().find(|part| part.at.contains(&address));
    let own = file(frames as *const () as usize).map(|part| part.file.clone());
    let mut calls: Vec<Frame> = Vec::new();
    for address in addresses {
        // It is where the call returns to, behind the call.
        let address = address.saturating_sub(1);
        let Some(part) = file(address) else { continue };
        let module = Path::new(&part.file).file_name().unwrap_or_default().to_string_lossy().into_owned();
        if Some(&part.file) == own.as_ref() || LEFT_OUT.iter().any(|name| module.starts_with(name)) {
            continue;
        }
        let offset = (address - part.at.start + part.offset) as u64;
        let (mut function, mut place) = (None, None);
        backtrace::resolve(address as *mut std::ffi::c_void, |symbol| {
            // Of functions that were built into others, the innermost comes first.
            if function.is_none() {
                function = symbol.name().and_then(|name| name.as_str().map(str::to_owned));
                place =
                    symbol.filename().map(|file| file.to_string_lossy().into_owned()).zip(symbol.lineno());
            }
        });
        if calls.is_empty() && function.as_deref().is_some_and(is_of_runtime) {
            continue;
        }
        let is_main = function.as_deref() == Some("main");
        calls.push(Frame { function, place, module, offset });
        // What starts `main` is of no interest.
        if is_main || calls.len() >= MOST {
            break;
        }
    }
    calls
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_mapped_files_are_read() {
        let list = "55d0-55e0 r-xp 00001000 08:01 5    /opt/my app/run\n\
             7f00-7f10 rw-p 00000000 00:00 0\n\
             7ffe-7fff r-xp 00000000 00:00 0    [vdso]\n";
        let found: Vec<_> = mapped(list).into_iter().map(|part| (part.at, part.file, part.offset)).collect();
        assert_eq!(found, [(0x55d0..0x55e0, "/opt/my app/run".to_owned(), 0x1000)]);
    }

    #[test]
    fn calls_of_the_runtime_are_told_from_the_programs() {
        assert!(is_of_runtime("cudaMalloc") && is_of_runtime("__cudart652"));
        assert!(!is_of_runtime("cuda_helper") && !is_of_runtime("main"));
    }
}
