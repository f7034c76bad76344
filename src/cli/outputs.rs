//! Reports to files and streams.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use super::Console;
use super::args::{FormatArg, Wanted};
use crate::diag::Diagnostic;
use crate::report::{self, Format, Output, Style};

/// Where a report goes that has no file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pathless {
    /// Standard output.
    Output,
    /// Standard error.
    Error,
}

impl Console<'_> {
    /// Writes a report in all formats that are wanted, or says why not.
    pub(super) fn write_reports(
        &mut self,
        report: &report::Report,
        wanted: &[Wanted],
        pathless: Pathless,
    ) -> io::Result<Result<(), u8>> {
        let mut files = Vec::new();
        for (format, path) in wanted {
            let Some(path) = path else { continue };
            match File::create(path) {
                Ok(file) => files.push((*format, BufWriter::new(file))),
                Err(error) => {
                    let error = Diagnostic::error(format!("cannot write `{}`: {error}", path.display()));
                    return self.refuse(&[error]).map(Err);
                }
            }
        }
        let format = |format| match format {
            FormatArg::Text => Format::Text,
            FormatArg::Json => Format::Json,
        };
        let to_file = |(wanted, file)| Output { format: format(wanted), style: Style::default(), to: file };
        let mut outputs: Vec<_> =
            files.iter_mut().map(|(format, file)| (*format, file as &mut dyn Write)).map(to_file).collect();
        if let Some((wanted, _)) = wanted.iter().find(|(_, path)| path.is_none()) {
            let (style, to) = match pathless {
                Pathless::Output => (self.out_style, &mut *self.streams.out),
                Pathless::Error => (self.err_style, &mut *self.streams.err),
            };
            outputs.push(Output { format: format(*wanted), style, to });
        }
        report::write(report, &mut outputs).map(Ok)
    }
}
