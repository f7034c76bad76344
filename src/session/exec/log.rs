//! What a process under the wrapper leaves behind: lines of JSON in a file of its own, and beside it the PTX of its modules.
//!
//! Lines are written as things happen, so that they outlive a crash. Only `merge` of the same version reads them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::backend::{LaunchEnd, Region, Stop};
use crate::explain::names::demangle;
use crate::finding::Finding;
use crate::span::SourceFile;
use crate::trace::ProcessTape;

/// How the file of a process ends.
pub(super) const EXTENSION: &str = "log";
/// How its tape ends, if there is one.
pub(super) const TAPE: &str = "tape";
/// More files than a process has that replaces its program again and again.
const MOST_ATTEMPTS: u64 = 1000;

/// What takes lines.
pub trait Lines: Send {
    /// A line.
    fn push(&mut self, line: &Line);
    /// A module. Tells its number, by which launches name it.
    fn module(&mut self, source: &SourceFile, first_site: u32) -> usize;
    /// Nothing may hold lines back any longer.
    fn flush(&mut self);
}

/// One line.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Line {
    /// The first line.
    Process {
        /// Its number.
        pid: u32,
        /// The version of the wrapper.
        version: String,
        /// What runs its kernels: `emu` or `gpu`.
        backend: String,
        /// Its command.
        command: Vec<String>,
    },
    /// A module was loaded. Modules count from 0.
    Module {
        /// What reports call its text.
        path: PathBuf,
        /// The file with the text, beside the log.
        text: String,
        /// The number of its first site.
        first_site: u32,
    },
    /// Memory that launches may access from now on.
    Region(Region),
    /// The calls that led to the making of memory, innermost first.
    Backtrace {
        /// What reports call the memory.
        region: String,
        /// The calls.
        frames: Vec<Frame>,
    },
    /// A launch begins, as the operation of this number. Operations count from 0, launches and others together.
    Launch {
        /// The operation.
        index: u32,
        /// The module, by number.
        module: usize,
        /// The entry.
        kernel: String,
        /// Blocks.
        grid: [u32; 3],
        /// Threads of a block.
        block: [u32; 3],
        /// Blocks of a cluster, if given.
        cluster: Option<[u32; 3]>,
        /// Its device.
        device: u32,
        /// Its stream.
        stream: u32,
        /// What it does is checked.
        checked: bool,
        /// The test that the process is running.
        test: Option<String>,
    },
    /// It has ended.
    End {
        /// The operation.
        index: u32,
        /// Counts and what was not logged.
        end: LaunchEnd,
        /// Why it stopped, if it did.
        stop: Option<Stop>,
        /// Shared variables.
        shared: Vec<Region>,
    },
    /// An operation of the host, such as a copy.
    Host {
        /// The operation.
        index: u32,
        /// The call.
        call: String,
        /// Its stream.
        stream: u32,
    },
    /// The last operation is a node of a graph.
    Node {
        /// The operation.
        index: u32,
        /// Which launch of a graph it is of. They count from 0.
        graph: u32,
        /// The stream that the graph was given to.
        stream: u32,
    },
    /// A finding. A later one of the same number takes its place.
    Finding {
        /// Its number.
        number: u32,
        /// What was found.
        finding: Finding,
    },
    /// A kernel was launched that is not instrumented, and that nobody wants checked.
    Unwanted {
        /// Its name.
        kernel: String,
    },
    /// Why the run is not the whole truth.
    Incomplete {
        /// What kind of reason.
        kind: Gap,
        /// One sentence.
        detail: String,
    },
    /// The tape of the process could not be written.
    Unrecorded {
        /// What the system says.
        why: String,
    },
}

/// A call of a function in a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// The function, as the linker has it, if it is known.
    pub function: Option<String>,
    /// File and line of the call, if they are known.
    pub place: Option<(String, u32)>,
    /// The program or library, and the offset of the call in it.
    pub module: String,
    /// Its place there.
    pub offset: u64,
}

impl Frame {
    /// "`main` at app.c:12", "`main` in app", "app+0x1234"
    pub(super) fn text(&self) -> String {
        let function = self.function.as_ref().map(|name| format!("`{}`", demangle(name).full));
        match (function, &self.place) {
            (Some(function), Some((file, line))) => format!("{function} at {file}:{line}"),
            (Some(function), None) => format!("{function} in {}", self.module),
            (None, _) => format!("{}+{:#x}", self.module, self.offset),
        }
    }
}

/// Kinds of reasons for `Line::Incomplete`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Gap {
    /// The program called what the wrapper does not provide.
    Call,
    /// A module has no PTX.
    Opaque,
    /// The order of synchronisation could not be replayed.
    Degraded,
    /// What an instruction touches is not known.
    Instruction,
    /// The memory for the analysis was used up.
    Memory,
}

/// Writes the log of a process.
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    /// Of the process among all.
    number: u64,
    pending: Vec<u8>,
    modules: u32,
}

impl Writer {
    /// Begins the log of a process in a folder. One that replaces its program has several.
    pub fn create(folder: &Path, pid: u32) -> io::Result<Self> {
        let mut attempt = 0;
        let path = loop {
            let path = folder.join(format!("{pid:010}-{attempt:03}.{EXTENSION}"));
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(_) => break path,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempt + 1 < MOST_ATTEMPTS => {
                    attempt += 1;
                }
                Err(error) => return Err(error),
            }
        };
        let number = u64::from(pid) * MOST_ATTEMPTS + attempt;
        Ok(Self { path, number, pending: Vec::new(), modules: 0 })
    }

    /// Begins the tape of the process in a folder. Tapes have the order of logs.
    pub(super) fn tape(&self, folder: &Path) -> io::Result<ProcessTape> {
        let name = self.path.with_extension(TAPE);
        ProcessTape::create(folder.join(name.file_name().unwrap_or_default()), self.number)
    }

    /// Writes what is pending. The file is opened for each write: the program may close descriptors it did not open.
    fn write(&mut self) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let mut file = OpenOptions::new().append(true).open(&self.path)?;
        file.write_all(&self.pending)?;
        self.pending.clear();
        Ok(())
    }
}

impl Lines for Writer {
    fn push(&mut self, line: &Line) {
        // These lines have nothing that JSON cannot hold.
        if serde_json::to_writer(&mut self.pending, line).is_ok() {
            self.pending.push(b'\n');
        }
    }

    fn module(&mut self, source: &SourceFile, first_site: u32) -> usize {
        let number = self.modules;
        let file = self.path.with_extension(format!("{number}.ptx"));
        if fs::write(&file, source.text()).is_err() {
            return usize::MAX;
        }
        self.modules += 1;
        let text = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.push(&Line::Module { path: source.path().to_owned(), text, first_site });
        self.flush();
        number as usize
    }

    fn flush(&mut self) {
        // Where logs cannot be written, the program goes on; the report will lack what they would have said.
        let _ = self.write();
    }
}

/// A process may have no log.
impl<L: Lines> Lines for Option<L> {
    fn push(&mut self, line: &Line) {
        self.iter_mut().for_each(|lines| lines.push(line));
    }

    fn module(&mut self, source: &SourceFile, first_site: u32) -> usize {
        self.as_mut().map_or(0, |lines| lines.module(source, first_site))
    }

    fn flush(&mut self) {
        self.iter_mut().for_each(Lines::flush);
    }
}

/// Reads a log; the last line may have been cut off. Gives the lines, and how many could not be read.
pub(super) fn read(path: &Path) -> io::Result<(Vec<Line>, usize)> {
    let mut text = Vec::new();
    io::Read::read_to_end(&mut File::open(path)?, &mut text)?;
    let (mut lines, mut bad) = (Vec::new(), 0);
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        match serde_json::from_slice(line) {
            Ok(line) => lines.push(line),
            Err(_) if !line.ends_with(b"\n") => {}
            Err(_) => bad += 1,
        }
    }
    Ok((lines, bad))
}
