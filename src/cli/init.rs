//! `ptxrace init ci`: a job for a CI system that needs no GPU.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::args::{CiSystem, InitCommand};
use super::run::quote;
use super::{Console, exit};
use crate::diag::Diagnostic;

/// What one system wants.
struct System {
    /// Its job, with lines for what is installed and run.
    template: &'static str,
    /// Where it looks for that.
    path: &'static str,
    /// What the formats of the report are.
    formats: &'static str,
    /// What to do when there is such a file already.
    beside: &'static str,
}

impl CiSystem {
    fn system(self) -> System {
        match self {
            Self::Github => System {
                template: include_str!("init/github.yml"),
                path: ".github/workflows/ptxrace.yml",
                formats: "--format github --format sarif --output ptxrace.sarif --format html --output ptxrace.html",
                beside: "`--force` overwrites it, `--output FILE` writes another",
            },
            Self::Gitlab => System {
                template: include_str!("init/gitlab.yml"),
                path: ".gitlab-ci.yml",
                formats: "--format text --format junit --output ptxrace.xml --format html --output ptxrace.html",
                beside: "write `--output .gitlab/ptxrace.yml` and add `include: .gitlab/ptxrace.yml` to it",
            },
            Self::Jenkins => System {
                template: include_str!("init/Jenkinsfile"),
                path: "Jenkinsfile",
                formats: "--format text --format junit --output ptxrace.xml --format html --output ptxrace.html",
                beside: "`--output -` prints a pipeline whose stage can be copied into it",
            },
        }
    }

    /// What tells that a repository uses it.
    fn traces(self) -> &'static [&'static str] {
        match self {
            Self::Github => &[".github"],
            Self::Gitlab => &[".gitlab-ci.yml", ".gitlab"],
            Self::Jenkins => &["Jenkinsfile"],
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Github => "github",
            Self::Gitlab => "gitlab",
            Self::Jenkins => "jenkins",
        }
    }
}

/// Where there is no ptxrace, the job fails and says why.
const NOT_THERE: &str = "command -v ptxrace || { echo 'put here how this runner gets ptxrace' >&2; exit 1; }";

pub(super) fn run(command: &InitCommand, console: &mut Console<'_>) -> io::Result<u8> {
    let InitCommand::Ci { system, ptx, install, output, force } = command;
    let here = Path::new("");
    let job = match system.map_or_else(|| detected(here), Ok).and_then(|which| {
        let ptx = if ptx.is_empty() { found(here)? } else { ptx.clone() };
        Ok((which, job(&which.system(), &ptx, install.as_deref())?))
    }) {
        Ok(job) => job,
        Err(error) => return console.refuse(&[error]),
    };
    let (system, text) = (job.0.system(), job.1);
    let path = output.clone().unwrap_or_else(|| system.path.into());
    if path.as_os_str() == "-" {
        console.streams.out.write_all(text.as_bytes())?;
    } else {
        if path.exists() && !force {
            let error = Diagnostic::error(format!("`{}` is there already", path.display()));
            return console.refuse(&[error.help(system.beside)]);
        }
        if let Some(folder) = path.parent()
            && let Err(error) = fs::create_dir_all(folder)
        {
            let message = format!("cannot make the folder `{}`: {error}", folder.display());
            return console.refuse(&[Diagnostic::error(message)]);
        }
        if let Err(code) = console.write_file(&path, text.as_bytes())? {
            return Ok(code);
        }
        writeln!(console.streams.out, "wrote {}", path.display())?;
    }
    if install.is_none() {
        let note = Diagnostic::warning("the job does not install ptxrace, which is in no package registry")
            .help("name the command that does with `--install`, such as `cargo install --path DIR` in a checkout of its source");
        crate::report::write_diagnostic(&note, console.err_style, console.streams.err)?;
    }
    Ok(exit::CLEAN)
}

/// The system that a repository uses already.
fn detected(folder: &Path) -> Result<CiSystem, Diagnostic> {
    const ALL: [CiSystem; 3] = [CiSystem::Github, CiSystem::Gitlab, CiSystem::Jenkins];
    let used = |system: &CiSystem| system.traces().iter().any(|trace| folder.join(trace).exists());
    let all: Vec<_> = ALL.into_iter().filter(used).collect();
    let help = "name one: `ptxrace init ci github`, `gitlab` or `jenkins`";
    match all[..] {
        [one] => Ok(one),
        [] => {
            let remotes = fs::read_to_string(folder.join(".git/config")).unwrap_or_default();
            let hosted = |system: &CiSystem| remotes.contains(&format!("{}.com", system.name()));
            let hosts: Vec<_> = ALL.into_iter().filter(hosted).collect();
            match hosts[..] {
                [one] => Ok(one),
                _ => Err(Diagnostic::error("nothing here tells which CI system is used").help(help)),
            }
        }
        _ => {
            let names: Vec<_> = all.iter().map(|system| system.name()).collect();
            Err(Diagnostic::error(format!("several CI systems are used here: {}", names.join(", ")))
                .help(help))
        }
    }
}

/// Folders below this one are searched so deep for PTX, and so many files are taken.
const DEPTH: usize = 8;
const MANY: usize = 50;

/// The PTX files of a repository.
fn found(folder: &Path) -> Result<Vec<PathBuf>, Diagnostic> {
    fn walk(folder: &Path, depth: usize, out: &mut Vec<PathBuf>) {
        let place = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let Ok(entries) = fs::read_dir(place) else { return };
        let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
        names.sort();
        for name in names {
            let path = folder.join(&name);
            let skipped = name.to_string_lossy().starts_with('.') || name == "target" || name == "build";
            if path.extension().is_some_and(|ending| ending == "ptx") && path.is_file() {
                out.push(path);
            } else if depth > 0 && !skipped && out.len() <= MANY && path.is_dir() && !path.is_symlink() {
                walk(&path, depth - 1, out);
            }
        }
    }
    let mut all = Vec::new();
    walk(folder, DEPTH, &mut all);
    let refuse = |what: String| {
        Err(Diagnostic::error(what).help("name the modules to check: `--ptx PATH`, once for each"))
    };
    match all.len() {
        0 => refuse("there is no `.ptx` file here to check".into()),
        n if n > MANY => refuse(format!("there are more than {MANY} `.ptx` files here")),
        _ => Ok(all),
    }
}

/// The job's text.
fn job(system: &System, ptx: &[PathBuf], install: Option<&str>) -> Result<String, Diagnostic> {
    let words: Vec<_> = ptx.iter().map(|path| path.to_string_lossy().into_owned()).collect();
    if let Some(odd) =
        words.iter().map(String::as_str).chain(install).find(|word| word.contains(char::is_control))
    {
        let message = format!("{odd:?} has a control character");
        return Err(Diagnostic::error(message).help("a job's command is one line"));
    }
    let install = install.unwrap_or(NOT_THERE).to_owned();
    let groovy = system.template.contains("sh '''");
    // In strings of Groovy these two are special.
    let told =
        |line: &String| if groovy { line.replace('\\', r"\\").replace('\'', r"\'") } else { line.clone() };
    let fill = |text: String, place: &str, lines: &[String]| {
        let indent = text.lines().find_map(|line| line.strip_suffix(place)).unwrap_or("").to_owned();
        let lines: Vec<_> = lines.iter().map(told).collect();
        text.replace(place, &lines.join(&format!("\n{indent}")))
    };
    let text = fill(system.template.to_owned(), "@INSTALL@", &[install]);
    Ok(fill(text, "@CHECK@", &check(system, &words)))
}

/// The commands that check all modules, and fail when one has races or could not be checked.
fn check(system: &System, ptx: &[String]) -> Vec<String> {
    let formats = system.formats;
    if let [one] = ptx {
        return vec![format!("ptxrace run {} --backend emu {formats}", quote(one))];
    }
    let mut lines = vec!["rm -rf ptxrace-reports".to_owned(), "mkdir ptxrace-reports".to_owned()];
    // What is found, or is inconclusive, counts in the end; anything else ends the job at once.
    lines.extend(ptx.iter().enumerate().map(|(index, one)| {
        let (one, number) = (quote(one), index + 1);
        format!(
            "ptxrace run {one} --backend emu --format json --output ptxrace-reports/{number:02}.json || case $? in 1|3) ;; *) exit 2 ;; esac"
        )
    }));
    lines.push(format!("ptxrace merge ptxrace-reports/*.json {formats}"));
    lines
}
