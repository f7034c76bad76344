//! `ptxrace init ci`: the files that it writes are what CI systems read, and their commands do what they are for.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up should stop")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use yaml_rust2::{Yaml, YamlLoader};

const RACE: &str = "ptx-samples/race/reduce-missing-sync";
const CLEAN: &str = "ptx-samples/clean/reduce";

/// A repository with these modules.
fn repository(modules: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (sample, name) in modules {
        let file = folder.path().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        for ending in ["ptx", "toml", "cu"] {
            let from = Path::new(env!("CARGO_MANIFEST_DIR")).join(sample).with_extension(ending);
            fs::copy(from, file.with_extension(ending)).unwrap();
        }
    }
    folder
}

/// Exit code, standard output, standard error of `ptxrace init ci`.
fn init(folder: &Path, args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ptxrace"));
    let Output { status, stdout, stderr } =
        command.args(["init", "ci"]).args(args).current_dir(folder).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

/// The job as printed.
fn printed(folder: &Path, args: &[&str]) -> String {
    let (code, out, err) = init(folder, &[args, &["--output", "-"]].concat());
    assert_eq!(code, 0, "{err}");
    out
}

fn yaml(text: &str) -> Yaml {
    YamlLoader::load_from_str(text).unwrap().remove(0)
}

fn texts(list: &Yaml) -> Vec<String> {
    list.as_vec().unwrap().iter().map(|item| item.as_str().unwrap().to_owned()).collect()
}

/// The commands of a job, as the CI system hands them to a shell.
fn commands(system: &str, text: &str) -> Vec<String> {
    match system {
        "github" => {
            let all = yaml(text);
            assert!(all["on"].as_vec().is_some_and(|on| on.len() == 2), "{text}");
            let steps = all["jobs"]["races"]["steps"].as_vec().unwrap().clone();
            assert!(
                steps.iter().all(|step| step["uses"].as_str().is_some() != step["run"].as_str().is_some())
            );
            steps.iter().filter_map(|step| step["run"].as_str()).map(str::to_owned).collect()
        }
        "gitlab" => {
            let job = &yaml(text)["ptxrace"];
            assert_eq!(job["artifacts"]["reports"]["junit"].as_str(), Some("ptxrace.xml"));
            [texts(&job["before_script"]), texts(&job["script"])].concat()
        }
        _ => {
            let parts: Vec<_> = text.split("'''").collect();
            assert_eq!((parts.len(), text.matches('{').count()), (5, text.matches('}').count()), "{text}");
            // Strings of Groovy.
            [parts[1], parts[3]].map(|part| part.replace(r"\'", "'").replace(r"\\", r"\")).to_vec()
        }
    }
}

/// Runs commands as CI does, with ptxrace in the path.
fn shell(folder: &Path, commands: &[String]) -> (i32, String) {
    let own = Path::new(env!("CARGO_BIN_EXE_ptxrace")).parent().unwrap().to_owned();
    let path = std::env::join_paths(
        std::iter::once(own).chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    );
    let mut code = 0;
    let mut said = String::new();
    for command in commands {
        let mut sh = Command::new("sh");
        sh.args(["-e", "-c", command]).current_dir(folder).env("PATH", path.as_ref().unwrap());
        let Output { status, stdout, stderr } =
            sh.env_remove("GITHUB_STEP_SUMMARY").env_remove("GITHUB_WORKSPACE").output().unwrap();
        said += &(String::from_utf8_lossy(&stdout) + String::from_utf8_lossy(&stderr));
        code = status.code().unwrap();
        if code != 0 {
            break;
        }
    }
    (code, said)
}

const SYSTEMS: [&str; 3] = ["github", "gitlab", "jenkins"];

#[test]
fn jobs_find_what_is_wrong() {
    for system in SYSTEMS {
        let made = if system == "github" { "ptxrace.sarif" } else { "ptxrace.xml" };
        for (modules, expected) in [
            (&[(CLEAN, "a.ptx")] as &[_], 0),
            (&[(CLEAN, "a.ptx"), (CLEAN, "kernels/it's b.ptx")], 0),
            (&[(RACE, "a b.ptx")], 1),
            (&[(CLEAN, "a.ptx"), (RACE, "kernels/b.ptx"), (CLEAN, "c.ptx")], 1),
        ] {
            let folder = repository(modules);
            let text = printed(folder.path(), &[system]);
            let (code, said) = shell(folder.path(), &commands(system, &text));
            assert_eq!(code, expected, "{system} {modules:?}\n{text}\n{said}");
            for file in [made, "ptxrace.html"] {
                assert!(folder.path().join(file).exists(), "{system}: no {file}\n{text}\n{said}");
            }
        }
    }
}

#[test]
fn jobs_fail_on_what_cannot_be_run() {
    for system in SYSTEMS {
        let folder = repository(&[(CLEAN, "a.ptx"), (CLEAN, "b.ptx")]);
        fs::write(folder.path().join("a.ptx"), "no PTX").unwrap();
        let (code, said) = shell(folder.path(), &commands(system, &printed(folder.path(), &[system])));
        assert_eq!(code, 2, "{system}\n{said}");
    }
}

#[test]
fn the_command_that_installs_is_as_given() {
    let folder = repository(&[(CLEAN, "a.ptx")]);
    for system in SYSTEMS {
        for install in ["cargo install --path /opt/ptx", r#"printf '%s\n' "it's: {#} | \t" > said"#] {
            let text = printed(folder.path(), &[system, "--install", install]);
            assert_eq!(commands(system, &text)[0].trim(), install, "{system}");
        }
        // Without one, a runner that has no ptxrace is told so.
        let (code, out, err) = init(folder.path(), &[system, "--output", "-"]);
        assert!(code == 0 && err.contains("--install"), "{err}");
        assert!(commands(system, &out)[0].contains("command -v ptxrace"), "{out}");
        let (code, _, err) = init(folder.path(), &[system, "--install", "a\nb", "--output", "-"]);
        assert!(code == 2 && err.contains("control character"), "{err}");
    }
}

#[test]
fn files_are_not_overwritten() {
    for (system, path) in [
        ("github", ".github/workflows/ptxrace.yml"),
        ("gitlab", ".gitlab-ci.yml"),
        ("jenkins", "Jenkinsfile"),
    ] {
        let folder = repository(&[(CLEAN, "a.ptx")]);
        let (code, out, err) = init(folder.path(), &[system]);
        assert_eq!((code, out), (0, format!("wrote {path}\n")), "{err}");
        fs::write(folder.path().join(path), "mine").unwrap();
        let (code, _, err) = init(folder.path(), &[system]);
        assert!(code == 2 && err.contains("is there already"), "{err}");
        assert_eq!(fs::read_to_string(folder.path().join(path)).unwrap(), "mine");
        assert_eq!(init(folder.path(), &[system, "--force"]).0, 0);
        assert_eq!(fs::read_to_string(folder.path().join(path)).unwrap(), printed(folder.path(), &[system]));
    }
}

#[test]
fn the_ci_system_is_told_by_what_is_there() {
    let begins = |trace: &str, text: &str| {
        let folder = repository(&[(CLEAN, "a.ptx")]);
        let file = folder.path().join(trace);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
        printed(folder.path(), &[]).lines().next().unwrap_or("").to_owned()
    };
    assert!(begins(".github/dependabot.yml", "").contains("init ci github"));
    assert!(begins(".gitlab-ci.yml", "").contains("init ci gitlab"));
    assert!(begins("Jenkinsfile", "").contains("init ci jenkins"));
    assert!(begins(".git/config", "[remote]\nurl = git@gitlab.com:a/b.git\n").contains("init ci gitlab"));

    let folder = repository(&[(CLEAN, "a.ptx")]);
    let (code, _, err) = init(folder.path(), &[]);
    assert!(code == 2 && err.contains("nothing here tells"), "{err}");
    fs::write(folder.path().join("Jenkinsfile"), "").unwrap();
    fs::write(folder.path().join(".gitlab-ci.yml"), "").unwrap();
    let (code, _, err) = init(folder.path(), &[]);
    assert!(code == 2 && err.contains("several CI systems are used here: gitlab, jenkins"), "{err}");
}

#[test]
fn modules_are_looked_for() {
    let folder = repository(&[(CLEAN, "target/a.ptx")]);
    let (code, _, err) = init(folder.path(), &["gitlab"]);
    assert!(code == 2 && err.contains("there is no `.ptx` file here"), "{err}");
    let text = printed(folder.path(), &["gitlab", "--ptx", "made/by/a build.ptx"]);
    assert!(text.contains("ptxrace run 'made/by/a build.ptx' --backend emu"), "{text}");
}
