//! `ptxrace extract BINARY`

use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;

use super::args::ExtractArgs;
use super::{Console, exit};
use crate::diag::Diagnostic;
use crate::fatbin::{self, Contents, Device, IMAGE_LIMIT, Image, Kind, Pick};

/// An image with its number and that of its fatbin, both from 1.
struct Numbered<'c, 'f> {
    number: usize,
    fatbin: usize,
    image: &'c Image<'f>,
}

pub(super) fn run(args: &ExtractArgs, console: &mut Console<'_>) -> io::Result<u8> {
    let shown = args.binary.display();
    let bytes = match std::fs::read(&args.binary) {
        Ok(bytes) => bytes,
        Err(error) => {
            let error = Diagnostic::error(format!("cannot read `{shown}`: {error}"));
            return console.refuse(&[error.help("give the path of a program, a library or a fatbin")]);
        }
    };
    let contents = fatbin::read(&bytes);
    let wanted = wanted(&contents, args.arch.map(Device::from));
    let mut errors = damage(args, &contents);
    if args.list && !wanted.is_empty() {
        console.streams.out.write_all(table(&wanted).as_bytes())?;
    } else if !args.list && wanted.iter().any(|wanted| wanted.image.kind == Kind::Ptx) {
        match write(args, &wanted, console)? {
            Ok(damaged) => errors.extend(damaged),
            Err(code) => return Ok(code),
        }
    } else if errors.is_empty() {
        errors.push(nothing(args, &contents));
    }
    if errors.is_empty() { Ok(exit::CLEAN) } else { console.refuse(&errors) }
}

/// All images, or of each fatbin the one that a device would be given.
fn wanted<'c, 'f>(contents: &'c Contents<'f>, device: Option<Device>) -> Vec<Numbered<'c, 'f>> {
    let mut wanted = Vec::new();
    let mut number = 0;
    for (index, container) in contents.containers.iter().enumerate() {
        let picked = device.map(|device| match fatbin::pick(&container.images, device) {
            Pick::Ptx(image) | Pick::Opaque(image) => Some(image.offset),
            Pick::Nothing => None,
        });
        for image in &container.images {
            number += 1;
            if picked.is_none_or(|picked| picked == Some(image.offset)) {
                wanted.push(Numbered { number, fatbin: index + 1, image });
            }
        }
    }
    wanted
}

/// Writes the PTX, says where it is, and gives what is wrong with images.
fn write(
    args: &ExtractArgs,
    wanted: &[Numbered<'_, '_>],
    console: &mut Console<'_>,
) -> io::Result<Result<Vec<Diagnostic>, u8>> {
    let shown = args.binary.display();
    if let Some(folder) = &args.output
        && let Err(error) = std::fs::create_dir_all(folder)
    {
        let error = Diagnostic::error(format!("cannot make the folder `{}`: {error}", folder.display()));
        return console.refuse(&[error]).map(Err);
    }
    let stem = args.binary.file_stem().unwrap_or_default().to_string_lossy();
    let mut errors = Vec::new();
    for Numbered { number, image, .. } in wanted.iter().filter(|wanted| wanted.image.kind == Kind::Ptx) {
        let text = match image.text(IMAGE_LIMIT) {
            Ok(text) => text,
            Err(fault) => {
                errors.push(Diagnostic::error(format!("image {number} of `{shown}` is damaged {fault}")));
                continue;
            }
        };
        let name = format!("{stem}.{number}.{}.ptx", image.arch);
        let path = args.output.as_ref().map_or_else(|| PathBuf::from(&name), |folder| folder.join(&name));
        if let Err(code) = console.write_file(&path, text.as_bytes())? {
            return Ok(Err(code));
        }
        writeln!(console.streams.out, "{}", path.display())?;
    }
    Ok(Ok(errors))
}

/// One line for each image.
fn table(wanted: &[Numbered<'_, '_>]) -> String {
    let mut text = String::from("image fatbin kind   arch     PTX stored     bytes source, options\n");
    for Numbered { number, fatbin, image } in wanted {
        let version = match (image.kind, image.version) {
            (Kind::Ptx, (major, minor)) => format!("{major}.{minor}"),
            _ => String::new(),
        };
        let (name, options) = (plain(&image.name), plain(&image.options));
        let from = [name.as_str(), options.as_str()].join(" ");
        let line = format!(
            "{number:>5} {fatbin:>6} {:<6} {:<8} {version:<3} {:<4} {:>11} {}",
            image.kind,
            image.arch,
            image.compression.name(),
            image.size,
            from.trim(),
        );
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

/// A text of the file as one line that does nothing to a terminal.
fn plain(text: &str) -> String {
    text.trim().chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

fn damage(args: &ExtractArgs, contents: &Contents<'_>) -> Vec<Diagnostic> {
    let shown = args.binary.display();
    let error = |fault| Diagnostic::error(format!("`{shown}` is damaged {fault}"));
    let mut errors: Vec<_> = contents.faults.iter().map(error).collect();
    if contents.more_faults > 0 {
        let more = contents.more_faults;
        errors.push(Diagnostic::error(format!("`{shown}` is damaged in {more} more places")));
    }
    errors
}

/// Why there is nothing to list or to write.
fn nothing(args: &ExtractArgs, contents: &Contents<'_>) -> Diagnostic {
    let shown = args.binary.display();
    let images = || contents.containers.iter().flat_map(|container| &container.images);
    let of_kind = |kind| {
        let mut archs: Vec<_> = images().filter(|image| image.kind == kind).map(|image| image.arch).collect();
        archs.sort_by_key(|arch| (arch.sm, arch.suffix));
        archs.dedup();
        archs.iter().map(|arch| format!("`{arch}`")).collect::<Vec<_>>().join(", ")
    };
    let (ptx, code) = (of_kind(Kind::Ptx), of_kind(Kind::Cubin));
    let embed =
        "build it with `NVCC_APPEND_FLAGS=\"-gencode arch=compute_90,code=compute_90\"`, so that it has PTX";
    match args.arch.filter(|_| !ptx.is_empty()) {
        Some(arch) => Diagnostic::error(format!("`{shown}` has no PTX that suits `{arch}`, only for {ptx}"))
            .help("without `--arch`, all PTX is extracted"),
        None if !code.is_empty() => {
            Diagnostic::error(format!("`{shown}` has no PTX, only machine code for {code}")).help(embed)
        }
        None if images().next().is_some() => Diagnostic::error(format!("`{shown}` has no PTX")).help(embed),
        None => Diagnostic::error(format!("`{shown}` has no CUDA code embedded"))
            .help("give a program, library, object or fatbin that nvcc has made"),
    }
}
