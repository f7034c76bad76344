//! An oracle: an enumerator of executions in Python, asked through a process that stays.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::program::{Instruction, Program, State};
use ptxrace::backend::MemoryOrder;

use crate::run::{Options, Race, Verdict};

const SCRIPT: &str = include_str!("oracle.py");

/// What an enumeration of all executions says.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// Why there is none.
    pub skipped: Option<String>,
    /// Races as `location: first / second`, and whether a sequentially consistent execution has it.
    pub races: BTreeMap<String, bool>,
    /// Final states, and whether a sequentially consistent execution has it.
    pub states: BTreeMap<State, bool>,
    /// Racy executions and all.
    pub racy: (u64, u64),
    /// Whether the program's question is answered with yes.
    pub holds: bool,
}

impl Answer {
    /// The verdict, if there is one.
    pub fn verdict(&self) -> Option<Verdict> {
        match self.skipped {
            Some(_) => None,
            None if self.races.is_empty() => Some(Verdict::Drf),
            None => Some(Verdict::Racy),
        }
    }
}

/// The process.
#[derive(Debug)]
pub struct Oracle {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    folder: tempfile::TempDir,
}

impl Oracle {
    /// Starts one that gives up on a program after so many seconds.
    pub fn start(enumerator: &Path, seconds: f64) -> Result<Self, String> {
        let mut child = Command::new("python3")
            .arg("-c")
            .arg(SCRIPT)
            .arg(enumerator)
            .arg(seconds.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("failed to start `python3`: {error}"))?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (input, output) = pipes.ok_or("`python3` has no pipes")?;
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        Ok(Self { child, input, output: BufReader::new(output), folder })
    }

    /// Asks about a program.
    pub fn ask(&mut self, program: &Program) -> Result<Answer, String> {
        let path = self.folder.path().join("program.litmus");
        std::fs::write(&path, program.to_string()).map_err(|error| error.to_string())?;
        writeln!(self.input, "{}", path.display())
            .map_err(|error| format!("the oracle has ended: {error}"))?;
        let mut answer = Answer::default();
        let mut line = String::new();
        loop {
            line.clear();
            match self.output.read_line(&mut line) {
                Ok(0) => return Err("the oracle has ended".into()),
                Ok(_) => {}
                Err(error) => return Err(error.to_string()),
            }
            let (word, rest) = line.trim_end().split_once(' ').unwrap_or((line.trim_end(), ""));
            match word {
                "end" => return Ok(answer),
                "skip" => answer.skipped = Some(rest.to_owned()),
                "race" => {
                    let mut fields = rest.split('\t');
                    let head: Vec<&str> = fields.next().unwrap_or("").split(' ').collect();
                    let (first, second) = (fields.next().unwrap_or(""), fields.next().unwrap_or(""));
                    let at = head.last().copied().unwrap_or("");
                    let sc = head.first() == Some(&"1");
                    answer.races.insert(format!("{at}: {first} / {second}"), sc);
                }
                "state" => {
                    let (sc, state) = rest.split_once(' ').unwrap_or((rest, ""));
                    answer.states.insert(state_of(program, state), sc == "1");
                }
                "racy" => {
                    let mut numbers = rest.split(' ').map(|n| n.parse().unwrap_or(0));
                    answer.racy = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
                }
                "answer" => answer.holds = rest == "1",
                _ => {}
            }
        }
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        // It ends by itself when its input does; this is for one that is still busy.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn state_of(program: &Program, text: &str) -> State {
    let values: BTreeMap<&str, i32> = text
        .split(' ')
        .filter_map(|part| part.split_once('='))
        .map(|(name, value)| (name, value.parse().unwrap_or(0)))
        .collect();
    let value = |name: &str| values.get(name).copied().unwrap_or(0);
    let memory = program.locations.iter().map(|(name, _)| value(name)).collect();
    let registers = (0..program.threads.len()).map(|thread| {
        program.registers(thread).iter().map(|register| value(&format!("P{thread}:r{register}"))).collect()
    });
    State { memory, registers: registers.collect() }
}

/// Whether the oracle may leave out executions of a program. It learns which values there are from threads that come to
/// their end, so a write before a loop that waits may be missing: the loop may wait for what only that write brings about.
pub fn may_leave_out(program: &Program) -> bool {
    program.threads.iter().any(|thread| {
        let jump = thread.code.iter().enumerate().rposition(|(at, instruction)| match instruction {
            Instruction::Goto(to) | Instruction::Branch { to, .. } => {
                thread.code.iter().take(at).any(|earlier| *earlier == Instruction::Label(*to))
            }
            _ => false,
        });
        let before = thread.code.iter().take(jump.unwrap_or(0));
        before.filter_map(Instruction::access).any(|access| access.writes)
    })
}

/// A race as the oracle writes it.
pub fn name_of(race: &Race, program: &Program) -> String {
    let text = race.show(program);
    text.split_once(' ').map_or(text.clone(), |(_, rest)| rest.to_owned())
}

/// Where an exploration and the oracle disagree.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Disagreement {
    /// A race is reported, and no execution has any.
    FalseReport(String),
    /// A race is reported that no execution has; some have others.
    ExtraRace(String),
    /// A sequentially consistent execution has races, and none is reported.
    Missed(String),
    /// A final state was reached that is not allowed, or not sequentially consistent where memory is.
    ExtraState(String),
    /// A sequentially consistent final state was not reached.
    MissingState(String),
    /// The run itself went wrong.
    Trouble(String),
}

impl Disagreement {
    /// A word for its kind.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::FalseReport(_) => "false report",
            Self::ExtraRace(_) => "extra race",
            Self::Missed(_) => "missed race",
            Self::ExtraState(_) => "extra state",
            Self::MissingState(_) => "missing state",
            Self::Trouble(_) => "trouble",
        }
    }

    /// The facts.
    pub fn detail(&self) -> &str {
        match self {
            Self::FalseReport(detail)
            | Self::ExtraRace(detail)
            | Self::Missed(detail)
            | Self::ExtraState(detail)
            | Self::MissingState(detail)
            | Self::Trouble(detail) => detail,
        }
    }
}

/// All disagreements about a program whose schedules have all been run.
pub fn compare(
    program: &Program,
    explored: &crate::run::Explored,
    answer: &Answer,
    options: &Options,
) -> BTreeSet<Disagreement> {
    let mut found: BTreeSet<_> = explored.trouble.iter().cloned().map(Disagreement::Trouble).collect();
    if answer.skipped.is_some() || explored.cut {
        return found;
    }
    for race in explored.races.keys() {
        let name = name_of(race, program);
        if answer.races.is_empty() {
            found.insert(Disagreement::FalseReport(name));
        } else if !answer.races.contains_key(&name) {
            found.insert(Disagreement::ExtraRace(name));
        }
    }
    if explored.races.is_empty() {
        found.extend(
            answer.races.iter().find(|(_, sc)| **sc).map(|(race, _)| Disagreement::Missed(race.clone())),
        );
    }
    for state in &explored.states {
        let allowed = match options.memory {
            MemoryOrder::Sequential => answer.states.get(state) == Some(&true),
            MemoryOrder::Weak => answer.states.contains_key(state),
        };
        if !allowed {
            found.insert(Disagreement::ExtraState(program.show_state(state)));
        }
    }
    for (state, _) in answer.states.iter().filter(|(_, sc)| **sc) {
        if !explored.states.contains(state) {
            found.insert(Disagreement::MissingState(program.show_state(state)));
        }
    }
    found
}
