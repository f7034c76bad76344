//! `ptxrace completions SHELL` and `ptxrace man`

use std::io;

use clap::CommandFactory;
use clap_complete::{Shell, generate};
use clap_mangen::Man;

use super::args::Cli;
use super::{Console, exit};
use crate::diag::{Diagnostic, nearest};

pub(super) fn completions(shell: Shell, console: &mut Console<'_>) -> io::Result<u8> {
    // The generator panics where it cannot write, as to a reader that has gone.
    let mut bytes = Vec::new();
    generate(shell, &mut Cli::command(), "ptxrace", &mut bytes);
    console.streams.out.write_all(&bytes)?;
    Ok(exit::CLEAN)
}

pub(super) fn man(name: Option<&str>, console: &mut Console<'_>) -> io::Result<u8> {
    let mut all = Cli::command();
    all.build();
    let command = match name {
        None => all.clone(),
        Some(name) => match all.find_subcommand(name) {
            Some(command) => command.clone(),
            None => {
                let error = Diagnostic::error(format!("there is no command `{name}`"));
                let near = nearest(name, all.get_subcommands().map(clap::Command::get_name));
                let help = near.map(|near| format!("did you mean `{near}`?"));
                return console.refuse(&[help.into_iter().fold(error, Diagnostic::help)]);
            }
        },
    };
    Man::new(command).render(console.streams.out)?;
    Ok(exit::CLEAN)
}
