//! The built binary on input it must refuse, and the commands that run nothing.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up should stop")]

#[path = "common/elf.rs"]
mod elf;
#[path = "common/fatbin.rs"]
mod fatbin;

use std::path::Path;
use std::process::{Command, Output};

const PTX: &str = ".version 8.0
.target sm_80
.address_size 64
.visible .entry fill(
	.param .u64 out,
	.param .u32 value
)
{
	.reg .b32 %r<3>;
	.reg .b64 %rd<4>;
	ld.param.u64 %rd1, [out];
	ld.param.u32 %r1, [value];
	cvta.to.global.u64 %rd2, %rd1;
	mov.u32 %r2, %tid.x;
	mad.wide.u32 %rd3, %r2, 4, %rd2;
	st.global.u32 [%rd3], %r1;
	ret;
}
";

struct Folder(tempfile::TempDir);

impl Folder {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        Self(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Exit code, standard output, standard error.
    fn ptxrace(&self, args: &[&str]) -> (i32, String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ptxrace"));
        command.env_remove("GITHUB_WORKSPACE").env("GITHUB_STEP_SUMMARY", "step-summary.md");
        let Output { status, stdout, stderr } = command.args(args).current_dir(self.path()).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (status.code().unwrap(), text(stdout), text(stderr))
    }

    /// Runs what must be refused; standard error.
    fn refused(&self, args: &[&str]) -> String {
        let (code, out, err) = self.ptxrace(args);
        assert_eq!((code, out.as_str()), (2, ""), "{err}");
        err
    }
}

#[test]
fn usage_errors_exit_2() {
    let folder = Folder::new(&[("a.ptx", PTX)]);
    for args in [
        &[] as &[&str],
        &["run"],
        &["frobnicate"],
        &["run", "a.ptx", "--grid", "0"],
        &["run", "a.ptx", "--block", "1,2,3,4"],
        &["run", "a.ptx", "--timeout", "-1"],
        &["run", "a.ptx", "--memory-limit", "0"],
        &["run", "a.ptx", "--memory-limit", "8Q"],
        &["run", "a.ptx", "--memory-limit", "much"],
        &["run", "a.ptx", "--schedules", "0"],
        &["run", "a.ptx", "--deny", "R999"],
        &["run", "a.ptx", "--format", "json", "--output", "a", "--output", "b"],
        &["run", "a.ptx", "--format", "json", "--format", "text"],
        &["run", "a.ptx", "--format", "json", "--dump", "out"],
        &["run", "a.ptx", "--format", "junit", "--dump", "out"],
        &["run", "a.ptx", "--suppressions", "none.txt"],
        &["run", "a.ptx", "--baseline", "a.ptx"],
        &["merge"],
        &["merge", "a.ptx"],
        &["baseline", "update", "a.ptx"],
        &["completions", "csh"],
        &["man", "rum"],
        &["run", "a.ptx", "--dump", "nothing"],
        &["explain", "R999"],
        &["extract"],
        &["extract", "a.ptx", "--arch", "90"],
        &["extract", "a.ptx", "--list", "--output", "folder"],
    ] {
        assert!(!folder.refused(args).is_empty(), "{args:?}");
    }
}

#[test]
fn help_and_version_are_no_errors() {
    let folder = Folder::new(&[]);
    for args in [
        &["--help"] as &[&str],
        &["--version"],
        &["run", "--help"],
        &["doctor"],
        &["explain", "r005"],
        &["man", "run"],
    ] {
        let (code, out, err) = folder.ptxrace(args);
        assert_eq!((code, err.as_str()), (0, ""), "{args:?}");
        assert!(!out.is_empty(), "{args:?}");
    }
}

#[test]
fn too_little_memory_is_no_clean_run() {
    let folder = Folder::new(&[("a.ptx", PTX)]);
    let run = |limit: &str| {
        let launch = ["--grid", "64", "--block", "256", "--arg", "out:u32[256]=0", "--arg", "value:u32=1"];
        let args = [&["run", "a.ptx", "--backend", "emu", "--memory-limit", limit], &launch[..]].concat();
        folder.ptxrace(&args)
    };
    let (code, out, _) = run("16K");
    assert_eq!(code, 3, "{out}");
    assert!(out.contains("records were not checked: the memory for the analysis was used up"), "{out}");
    assert!(out.contains("--memory-limit"), "{out}");
    // All blocks store the same.
    for limit in ["none", "1G", "64 MiB"] {
        let (code, out, err) = run(limit);
        assert_eq!(code, 0, "{limit}: {out}{err}");
        assert!(out.contains("R010"), "{limit}: {out}");
    }
}

#[test]
fn missing_files_are_named() {
    let folder = Folder::new(&[("a.ptx", PTX)]);
    assert!(folder.refused(&["run", "none.ptx"]).contains("cannot read `none.ptx`"));
    assert!(folder.refused(&["run", "a.ptx", "--launch", "none.toml"]).contains("cannot read `none.toml`"));
    assert!(folder.refused(&["instrument", "none.ptx"]).contains("cannot read `none.ptx`"));
}

#[test]
fn what_is_no_ptx_is_refused() {
    let folder = Folder::new(&[("empty.ptx", ""), ("half.ptx", ".version 8.0\n"), ("text.ptx", "hello\n")]);
    assert!(folder.refused(&["run", "empty.ptx"]).contains("`empty.ptx` is empty"));
    assert!(folder.refused(&["run", "half.ptx"]).contains("`half.ptx` has no `.target` directive"));
    assert!(folder.refused(&["run", "text.ptx"]).contains("text.ptx:1:1"));
    std::fs::write(folder.path().join("binary.ptx"), b"\x7fELF\xff\xfe").unwrap();
    assert!(folder.refused(&["run", "binary.ptx"]).contains("`binary.ptx` is no PTX, but an ELF file"));
    std::fs::write(folder.path().join("bytes.ptx"), [PTX.as_bytes(), b"// \xe9\n"].concat()).unwrap();
    assert!(folder.refused(&["run", "bytes.ptx"]).contains("`bytes.ptx` is not text: byte"));
    let wide = |c: u16| c.to_le_bytes();
    let utf16: Vec<u8> = std::iter::once(0xfeff).chain(PTX.encode_utf16()).flat_map(wide).collect();
    for (name, bytes) in [("bom.ptx", &utf16[..]), ("wide.ptx", &utf16[2..])] {
        std::fs::write(folder.path().join(name), bytes).unwrap();
        assert!(folder.refused(&["run", name]).contains("is no PTX, but UTF-16 text"), "{name}");
    }
}

#[test]
fn all_syntax_errors_are_reported() {
    let broken = PTX
        .replace("[out];", "[out;")
        .replace("mov.u32 %r2, %tid.x", "mov.u32 %r2, , %tid.x")
        .replace("[%rd3], %r1", "[%rd3] %r1");
    let folder = Folder::new(&[("broken.ptx", &broken)]);
    let err = folder.refused(&["run", "broken.ptx"]);
    for place in ["broken.ptx:11:25", "broken.ptx:14:15", "broken.ptx:16:23"] {
        assert!(err.contains(place), "{place} in\n{err}");
    }
    assert_eq!(err.matches("error: syntax error").count(), 3, "{err}");
}

/// A line as long as the file is not shown whole.
#[test]
fn long_lines_are_cut() {
    let line = PTX.replace('\n', " ");
    let broken = format!("{}{}", line.repeat(1000).replace(".version 8.0", ""), "add.u32 %r1, ;");
    let folder =
        Folder::new(&[("long.ptx", &format!(".version 8.0 {broken}")), ("name.ptx", &"x".repeat(1 << 20))]);
    let err = folder.refused(&["run", "long.ptx"]);
    assert!(err.contains("--> long.ptx:1:") && err.len() < 100_000, "{} bytes", err.len());
    let err = folder.refused(&["run", "name.ptx"]);
    assert!(err.contains("--> name.ptx:1:1") && err.len() < 2_000, "{err}");
}

/// What is past the last error that is kept is counted.
#[test]
fn errors_without_end_are_counted() {
    let folder = Folder::new(&[("many.ptx", &PTX.replace("ret;", &"mov.u32 %r1 %r2;\n".repeat(1000)))]);
    let err = folder.refused(&["run", "many.ptx"]);
    assert_eq!(err.matches("error: syntax error").count(), 100);
    assert!(err.contains("900 more syntax errors in `many.ptx`"), "{err}");
}

#[test]
fn zero_bytes_behind_the_text_are_fine() {
    let folder = Folder::new(&[("a.ptx", &format!("{PTX}\0\0\0"))]);
    let (code, out, _) = folder.ptxrace(&["instrument", "a.ptx", "--sites"]);
    assert_eq!(code, 0);
    assert!(out.contains("\"schema\": \"ptxrace-sites/1\"") && out.contains("\"st.global.u32\""), "{out}");
}

#[test]
fn bad_descriptions_are_pointed_into() {
    let bad = "[[launch]]\ngrid = [1,\nblock = 32\n";
    let folder = Folder::new(&[("a.ptx", PTX), ("a.toml", bad)]);
    assert!(folder.refused(&["run", "a.ptx"]).contains("--> a.toml:3:7"));
}

#[test]
fn wrong_arguments_name_kernel_and_parameters() {
    let toml = "[[launch]]\ngrid = 1\nblock = 32\nargs = [\"out:u32[32]=0\"]\n";
    let folder = Folder::new(&[("a.ptx", PTX), ("a.toml", toml)]);
    let expected = "\
error: `fill` has 2 parameters, but the launch gives 1 argument
 --> a.toml:4:8
  |
4 | args = [\"out:u32[32]=0\"]
  |        ^^^^^^^^^^^^^^^^^ 1 argument
  |
 ::: a.ptx:4:17
  |
4 | .visible .entry fill(
  |                 ---- the kernel
  |
  = note: its parameters are `out` (`.u64`), `value` (`.u32`)
  = help: give one argument for each parameter, in order
";
    assert_eq!(folder.refused(&["run", "a.ptx"]), expected);
}

/// Every thread writes its number to the same word: R001 between warps, and a warning, R002, between lanes.
fn racy() -> String {
    PTX.replace("[%rd3], %r1", "[%rd2], %r2")
}

const LAUNCH: &str = "[[launch]]\ngrid = 1\nblock = 64\nargs = [\"out:u32[1]=0\", \"value:u32=1\"]\n";

/// Verdict, findings that count, suppressed ones and means, of a JSON report.
fn verdict(json: &str) -> (String, usize, Vec<String>) {
    let report: serde_json::Value = serde_json::from_str(json).unwrap();
    let means = |one: &serde_json::Value| one["by"]["means"].as_str().unwrap().to_owned();
    let suppressed = report["suppressed"].as_array().unwrap().iter().map(means).collect();
    let findings = report["findings"].as_array().unwrap().len();
    (report["verdict"].as_str().unwrap().to_owned(), findings, suppressed)
}

#[test]
fn what_is_suppressed_does_not_count_and_is_told() {
    let suppressions = "# known\nR001:out  # only a hint\nR002:nothing*\n";
    let folder = Folder::new(&[("a.ptx", &racy()), ("a.toml", LAUNCH), ("s.txt", suppressions)]);
    let json = |more: &[&str]| {
        let (code, out, err) = folder.ptxrace(&[&["run", "a.ptx", "--format", "json"], more].concat());
        (code, verdict(&out), err)
    };
    let (code, told, err) = json(&[]);
    assert_eq!((code, told), (1, ("race".into(), 2, vec![])));
    assert!(!err.contains("suppression"), "{err}");
    let (code, told, err) = json(&["--suppressions", "s.txt"]);
    assert_eq!((code, told), (0, ("clean".into(), 1, vec!["suppressions".into()])));
    assert!(err.contains("the suppression `R002:nothing*` fits no finding\n --> s.txt:3:1"), "{err}");
    let (code, told, _) = json(&["--suppressions", "s.txt", "--deny", "warnings"]);
    assert_eq!((code, told.0.as_str()), (1, "race"));
    let (code, told, _) = json(&["--allow", "R001", "--deny", "warnings", "--allow", "r001"]);
    assert_eq!((code, told), (1, ("race".into(), 1, vec!["allow".into()])));

    let (_, out, _) = folder.ptxrace(&["run", "a.ptx", "--suppressions", "s.txt"]);
    let end = "suppressed: 1 finding by `R001:out` (s.txt:2): only a hint\n\n\
               0 races, 1 warning, 1 suppressed, 0 inconclusive, 32 records, 0 dropped\n";
    assert!(out.ends_with(end), "{out}");
}

#[test]
fn comments_in_the_source_suppress() {
    let allow =
        |rules: &str| racy().replace("%r2;\n\tret", &format!("%r2; // ptxrace: allow({rules})\n\tret"));
    let folder =
        Folder::new(&[("a.ptx", &allow("R001, R002")), ("a.toml", LAUNCH), ("b.ptx", &allow("R002"))]);
    let (code, out, _) = folder.ptxrace(&["run", "a.ptx"]);
    assert_eq!(code, 0);
    assert!(out.starts_with("suppressed: 1 finding by `ptxrace: allow(R001)` (a.ptx:16)\n"), "{out}");
    let (code, out, _) = folder.ptxrace(&["run", "b.ptx", "--launch", "a.toml", "--format", "json"]);
    assert_eq!((code, verdict(&out)), (1, ("race".into(), 1, vec!["inline".into()])));
}

/// In the text that the compiler saw, found beside the PTX.
#[test]
fn comments_in_source_files_suppress() {
    let lined = racy().replace("\tst.global", "\t.loc 1 2 0\n\tst.global") + ".file 1 \"k.cu\"\n";
    let source = "// a kernel\n*out = threadIdx.x; /* ptxrace: allow(R001) - the last one wins */\n";
    let folder = Folder::new(&[("k.cu", source), ("a.ptx", &lined), ("a.toml", LAUNCH)]);
    let (code, out, _) = folder.ptxrace(&["run", "a.ptx"]);
    assert_eq!(code, 0, "{out}");
    assert!(out.contains("by `ptxrace: allow(R001)` (k.cu:2): the last one wins\n"), "{out}");
    std::fs::remove_file(folder.path().join("k.cu")).unwrap();
    assert_eq!(folder.ptxrace(&["run", "a.ptx"]).0, 1);
}

#[test]
fn bad_suppressions_are_pointed_into() {
    let folder = Folder::new(&[("a.ptx", PTX), ("s.txt", "R001:ok\nR01:x\n\nR001\n"), ("t.txt", "R001:[\n")]);
    let err = folder.refused(&["run", "a.ptx", "--suppressions", "s.txt", "--suppressions", "t.txt"]);
    for place in ["s.txt:2:1", "s.txt:4:1", "t.txt:1:1"] {
        assert!(err.contains(place), "{place} in\n{err}");
    }
}

#[test]
fn only_what_is_not_in_the_baseline_counts() {
    let folder = Folder::new(&[("a.ptx", &racy()), ("a.toml", LAUNCH), ("other.json", "{}")]);
    let run = |more: &[&str]| {
        let (code, out, _) = folder.ptxrace(&[&["run", "a.ptx", "--format", "json"], more].concat());
        (code, verdict(&out))
    };
    let update = |report: &str| folder.ptxrace(&["baseline", "update", "known.json", report]).1;
    folder.ptxrace(&["run", "a.ptx", "--allow", "R001", "--format", "json", "--output", "one.json"]);
    folder.ptxrace(&["run", "a.ptx", "--format", "json", "--output", "all.json"]);
    assert_eq!(update("one.json"), "known.json: 1 finding, 1 new, 0 gone\n");
    assert_eq!(run(&["--baseline", "known.json"]), (1, ("race".into(), 1, vec!["baseline".into()])));
    assert_eq!(update("all.json"), "known.json: 2 findings, 1 new, 0 gone\n");
    let both = vec!["baseline".into(), "baseline".into()];
    assert_eq!(run(&["--baseline", "known.json", "--deny", "warnings"]), (0, ("clean".into(), 0, both)));
    // A report made with the baseline still has all that is known.
    folder.ptxrace(&[
        "run",
        "a.ptx",
        "--baseline",
        "known.json",
        "--format",
        "json",
        "--output",
        "quiet.json",
    ]);
    assert_eq!(update("quiet.json"), "known.json: 2 findings, 0 new, 0 gone\n");
    assert!(folder.refused(&["baseline", "update", "other.json", "all.json"]).contains("no baseline"));
    assert_eq!(std::fs::read_to_string(folder.path().join("other.json")).unwrap(), "{}");
}

#[test]
fn reports_are_merged_into_every_format() {
    let folder = Folder::new(&[("a.ptx", &racy()), ("a.toml", LAUNCH), ("b.ptx", PTX)]);
    folder.ptxrace(&["run", "a.ptx", "--format", "json", "--output", "a.json"]);
    folder.ptxrace(&["run", "b.ptx", "--format", "json", "--output", "b.json"]);
    let merge = ["merge", "a.json", "b.json", "a.json"];
    let formats = [
        "--format", "github", "--format", "junit", "--output", "m.xml", "--format", "sarif", "-o", "m.sarif",
    ];
    let (code, out, err) = folder.ptxrace(&[&merge[..], &formats].concat());
    assert_eq!((code, err.as_str()), (1, ""));
    assert!(out.starts_with("::error file=a.ptx,line=16,col=2,title=R001%3A"), "{out}");
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    assert!(read("m.xml").contains("<testsuite name=\"fill, launch #2\""), "{}", read("m.xml"));
    assert!(read("m.sarif").contains("\"occurrenceCount\": 64"), "{}", read("m.sarif"));
    assert!(read("step-summary.md").contains("| R001 | error |"));
    // A later step adds to the summary.
    assert_eq!(folder.ptxrace(&["merge", "b.json", "--format", "github"]).0, 0);
    assert_eq!(read("step-summary.md").matches("### ptxrace: ").count(), 2);
    let (code, out, _) = folder.ptxrace(&["merge", "a.json", "--allow", "R001", "--format", "json"]);
    assert_eq!((code, verdict(&out)), (0, ("clean".into(), 1, vec!["allow".into()])));
}

/// A module that was compiled elsewhere: its sources are found by flags, when it is run and when reports are merged.
#[test]
fn sources_are_found_where_they_are_now() {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("ptx-samples/race/reduce-missing-sync");
    let text = |ending| std::fs::read_to_string(sample.with_extension(ending)).unwrap();
    let built = text("ptx").replace("\"reduce-missing-sync.cu\"", "\"/ci/build/kernels/reduce.cu\"");
    assert!(built.contains("/ci/build/"));
    let folder = Folder::new(&[("a.ptx", &built), ("a.toml", &text("toml"))]);
    std::fs::create_dir_all(folder.path().join("src/kernels")).unwrap();
    std::fs::write(folder.path().join("src/kernels/reduce.cu"), text("cu")).unwrap();
    let run = ["run", "a.ptx", "--backend", "emu", "--format", "text", "--format", "json", "-o", "a.json"];

    let (code, out, _) = folder.ptxrace(&run);
    assert!(
        code == 1
            && out.contains("sources were not found where their modules say: `/ci/build/kernels/reduce.cu`")
    );
    assert!(out.contains("--source-path DIR") && !out.contains("tile[tid] = in[gid]"), "{out}");
    let merged = ["merge", "a.json", "--source-path", "src"];
    let (_, out, _) = folder.ptxrace(&merged);
    assert!(out.contains("src/kernels/reduce.cu:12:9") && out.contains("tile[tid] = in[gid]"), "{out}");

    for flag in
        [["--source-path", "src"], ["--source-map", "/ci/build=src"], ["--source-path", "src/kernels"]]
    {
        let (code, out, _) = folder.ptxrace(&[&run[..], &flag].concat());
        assert!(code == 1 && out.contains("--> src/kernels/reduce.cu:12:9"), "{flag:?}\n{out}");
        assert!(out.contains("tile[tid] = in[gid]") && !out.contains("not found"), "{flag:?}\n{out}");
    }
    let err = folder.refused(&["run", "a.ptx", "--source-map", "src"]);
    assert!(err.contains("FROM=TO"), "{err}");
}

/// Without line information a report says how to get it.
#[test]
fn modules_without_lines_are_told() {
    let lines = racy();
    let folder = Folder::new(&[("a.ptx", &lines)]);
    let (_, out, _) = folder.ptxrace(&["run", "a.ptx", "--backend", "emu"]);
    assert!(out.contains("no source lines are known for accesses of `a.ptx`"), "{out}");
    assert!(out.contains("`nvcc -lineinfo`"), "{out}");
    let allow = ["R001", "R002", "R003"].map(|rule| ["--allow", rule]).concat();
    let (_, out, _) = folder.ptxrace(&[&["run", "a.ptx", "--backend", "emu"], &allow[..]].concat());
    assert!(!out.contains("lineinfo"), "{out}");
}

/// Commands that README and guide show are commands. What they name is not there, so that none does anything.
#[test]
fn documented_commands_are_commands() {
    let own = Path::new(env!("CARGO_BIN_EXE_ptxrace")).parent().unwrap().to_owned();
    let path = std::env::split_paths(&std::env::var_os("PATH").unwrap()).collect::<Vec<_>>();
    let path = std::env::join_paths(std::iter::once(own).chain(path)).unwrap();
    let mut seen = 0;
    for file in ["README.md", "GUIDE.md"] {
        let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
        let blocks = text.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
        for line in blocks.flat_map(str::lines).filter(|line| line.starts_with("ptxrace ")) {
            let folder = Folder::new(&[]);
            let mut shell = Command::new("sh");
            shell.args(["-c", line]).current_dir(folder.path()).env("PATH", &path);
            let Output { status, stderr, .. } = shell.output().unwrap();
            let err = String::from_utf8(stderr).unwrap();
            assert!(
                !err.contains("Usage: ") && !err.contains("error: unrecognized"),
                "{file}: {line}\n{err}"
            );
            assert!(status.code().is_some_and(|code| code <= 3 || code == 66), "{file}: {line}\n{err}");
            seen += 1;
        }
    }
    assert!(seen > 25, "only {seen} commands");
}

#[test]
fn shells_get_completions() {
    let folder = Folder::new(&[]);
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let (code, out, err) = folder.ptxrace(&["completions", shell]);
        assert_eq!((code, err.as_str()), (0, ""));
        assert!(out.contains("suppressions"), "{shell}");
    }
    let (_, page, _) = folder.ptxrace(&["man"]);
    assert!(page.contains(".TH ptxrace 1") && page.contains("ptxrace\\-merge"), "{page}");
}

/// A program of two fatbins: PTX for two architectures beside machine code, and machine code alone.
fn program() -> Vec<u8> {
    use fatbin::{EXACT, Entry, Stored, container, image};
    let ptx = PTX.replace("sm_80", "sm_90a");
    let own = Entry { name: "fill.cu", ..Entry::default() };
    let code = image(&Entry { kind: 2, bytes: b"\x7fELF", sm: 80, ..own });
    let first = container(&[
        code.clone(),
        image(&Entry { sm: 80, bytes: PTX.as_bytes(), stored: Stored::Lz4, ..own }),
        image(&Entry { flags: EXACT, bytes: ptx.as_bytes(), stored: Stored::Zstd, ..own }),
    ]);
    elf::elf(&[(".nv_fatbin", &[first, container(&[code])].concat())])
}

#[test]
fn embedded_ptx_is_extracted() {
    let folder = Folder::new(&[]);
    std::fs::write(folder.path().join("app.so"), program()).unwrap();
    let (code, out, err) = folder.ptxrace(&["extract", "app.so", "-o", "a/b"]);
    assert_eq!((code, out.as_str(), err.as_str()), (0, "a/b/app.2.sm_80.ptx\na/b/app.3.sm_90a.ptx\n", ""));
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!(read("a/b/app.2.sm_80.ptx"), PTX);
    assert_eq!(read("a/b/app.3.sm_90a.ptx"), PTX.replace("sm_80", "sm_90a"));
    let (code, _, err) = folder.ptxrace(&["run", "a/b/app.2.sm_80.ptx"]);
    assert_eq!((code, err.as_str()), (0, ""));

    let (code, out, _) = folder.ptxrace(&["extract", "app.so", "--arch", "sm_86"]);
    assert_eq!((code, out.as_str()), (0, "app.2.sm_80.ptx\n"));
    let (code, out, _) = folder.ptxrace(&["extract", "app.so", "--arch", "sm_90"]);
    assert_eq!((code, out.as_str()), (0, "app.3.sm_90a.ptx\n"));
}

#[test]
fn embedded_images_are_listed() {
    let folder = Folder::new(&[]);
    std::fs::write(folder.path().join("app.so"), program()).unwrap();
    let (code, out, err) = folder.ptxrace(&["extract", "app.so", "--list"]);
    let expected = "\
image fatbin kind   arch     PTX stored     bytes source, options
    1      1 cubin  sm_80        raw            8 fill.cu
    2      1 PTX    sm_80    8.0 LZ4          323 fill.cu
    3      1 PTX    sm_90a   8.0 zstd         324 fill.cu
    4      2 cubin  sm_80        raw            8 fill.cu
";
    assert_eq!((code, out.as_str(), err.as_str()), (0, expected, ""));
    let (_, out, _) = folder.ptxrace(&["extract", "app.so", "--list", "--arch", "sm_89"]);
    assert_eq!(out.lines().count(), 3, "{out}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is written");
}

#[test]
fn what_has_no_ptx_is_refused() {
    use fatbin::{Entry, Stored, container, image};
    let folder = Folder::new(&[("a.ptx", PTX)]);
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    let code = |sm| image(&Entry { kind: 2, sm, ..Entry::default() });
    write("app.so", &program());
    write("code.so", &container(&[code(90), code(80)]));
    write("plain.so", &elf::elf(&[(".text", b"code")]));
    assert!(folder.refused(&["extract", "none.so"]).contains("cannot read `none.so`"));
    assert!(folder.refused(&["extract", "a.ptx"]).contains("`a.ptx` has no CUDA code embedded"));
    assert!(
        folder.refused(&["extract", "plain.so", "--list"]).contains("`plain.so` has no CUDA code embedded")
    );
    let only = folder.refused(&["extract", "code.so"]);
    assert!(only.contains("`code.so` has no PTX, only machine code for `sm_80`, `sm_90`"), "{only}");
    let older = folder.refused(&["extract", "app.so", "--arch", "sm_75"]);
    assert!(older.contains("no PTX that suits `sm_75`, only for `sm_80`, `sm_90a`"), "{older}");
    for command in ["run", "instrument"] {
        assert!(folder.refused(&[command, "app.so"]).contains("`ptxrace extract FILE`"), "{command}");
    }

    // What is whole is still written.
    let good = image(&Entry { bytes: PTX.as_bytes(), ..Entry::default() });
    let mut bad = image(&Entry { bytes: PTX.as_bytes(), stored: Stored::Zstd, ..Entry::default() });
    bad[64] ^= 0xff;
    let whole = container(&[bad, good]);
    write("bad.fatbin", &[&whole[..], &whole[..whole.len() - 8]].concat());
    let (code, out, err) = folder.ptxrace(&["extract", "bad.fatbin"]);
    assert_eq!((code, out.as_str()), (2, "bad.2.sm_90.ptx\n"), "{err}");
    assert_eq!(err.matches("error:").count(), 3, "{err}");
    assert!(err.contains("image 1 of `bad.fatbin` is damaged at byte 0x50: zstd data"), "{err}");
}
