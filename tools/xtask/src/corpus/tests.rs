use std::fs;
use std::os::unix::fs::PermissionsExt;

use clap::Parser;
use tempfile::TempDir;

use super::*;

const GOOD: &str = ".version 8.0\n.target sm_70\n.address_size 64\n\
    .visible .entry k(.param .u64 p) {\n\t.reg .b64 %rd<2>;\n\tld.param.u64 %rd1, [p];\n\
    again: // twice\n\tst.global.u32 [%rd1], 1;\n\tret;\n}\n\0";
const OLD: &str = ".version 6.0\n.target sm_60\n.address_size 64\n";

/// A corpus of two sources and a file of no source.
fn corpus() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &[u8]| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("one/good.ptx", GOOD.as_bytes());
    write("one/deeper/same.ptx", GOOD.as_bytes());
    write("one/note.txt", b"not looked at");
    write("two/old.ptx", OLD.as_bytes());
    write("two/bad.ptx", format!("{GOOD}\n.entry {{").as_bytes());
    write("loose.ptx", b"\xff");
    folder
}

/// A ptxas that takes no text with the word `refused`, and none that is instrumented unless by the ABI.
fn fake_ptxas(folder: &TempDir, refused: &str) -> PathBuf {
    let path = folder.path().join("ptxas");
    let script = format!(
        "#!/bin/sh\ncase $1 in\n--version) echo 'a release'; exit;;\n\
        --help) echo \"'sm_75','sm_90','sm_90a','compute_80'\"; exit;;\nesac\n\
        if grep -q '{refused}' $2; then echo \"ptxas $2, line 1; error : no $1\"; exit 1; fi\n\
        if grep -q __ptxrace_log $2 && ! grep -q '__ptxrace_.*\\[.*\\] = {{' $2; then echo 'error C7600'; exit 1; fi\n"
    );
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn run_with(more: &[&str], folder: &TempDir) -> (serde_json::Value, String) {
    let (json, markdown) = (folder.path().join("out.json"), folder.path().join("out.md"));
    let mut args: Vec<PathBuf> = vec!["corpus".into(), folder.path().into()];
    args.extend(["--json".into(), json.clone(), "--markdown".into(), markdown.clone()]);
    args.extend(more.iter().map(PathBuf::from));
    run(&Args::try_parse_from(args).unwrap()).unwrap();
    (serde_json::from_slice(&fs::read(json).unwrap()).unwrap(), fs::read_to_string(markdown).unwrap())
}

#[test]
fn files_are_counted_by_source() {
    let folder = corpus();
    let own = folder.path().file_name().unwrap().to_str().unwrap();
    let (json, markdown) = run_with(&[], &folder);
    let sources = &json["sources"];
    for (source, files, parsed, instrumented) in
        [("one", 1, 1, 1), ("two", 2, 1, 0), (own, 1, 0, 0), ("all", 4, 2, 1)]
    {
        let sum = &sources[source];
        assert_eq!((&sum["files"], &sum["parsed"]), (&files.into(), &parsed.into()), "{source}");
        assert_eq!(
            (&sum["round_tripped"], &sum["instrumented"]),
            (&parsed.into(), &instrumented.into()),
            "{source}"
        );
    }
    assert_eq!(sources["one"]["sites"], 2, "the store and the end");
    assert!(sources["one"]["growth_median"].as_f64().unwrap() > 1.0);
    assert!(markdown.contains("ptxas was not asked") && markdown.contains("1 files have the same content"));

    let failures: Vec<String> =
        json["files"].as_array().unwrap().iter().map(|file| file["failures"].to_string()).collect();
    assert!(failures[0].contains("byte 0 is no text"), "{failures:?}");
    assert_eq!(failures[1], "[]", "deeper/same.ptx");
    assert!(failures[2].contains(r#""line":12,"#) && failures[2].contains("parse"), "{failures:?}");
    assert!(failures[3].contains("PTX 6.0 is too old"), "{failures:?}");
}

#[test]
fn ptxas_is_asked_about_both_texts() {
    let folder = corpus();
    let ptxas = fake_ptxas(&folder, "sm_60");
    let more = ["--ptxas", "--ptxas-bin", ptxas.to_str().unwrap(), "--jobs", "3"];
    let (json, markdown) = run_with(&more, &folder);
    assert!(markdown.contains("a release, 3 at once, asked about 3 files"));
    let file = |at: usize| &json["files"][at]["ptxas"];
    assert!(file(0).is_null(), "no text");
    assert_eq!(file(1)["flags"], serde_json::json!(["-arch=sm_75"]));
    assert_eq!(
        (&file(1)["original"], &file(1)["instrumented"], &file(1)["by_abi"]),
        (&true.into(), &true.into(), &true.into())
    );
    assert_eq!(
        (&file(2)["original"], &file(2)["instrumented"]),
        (&true.into(), &serde_json::Value::Null),
        "a syntax error"
    );
    assert_eq!(
        (&file(3)["original"], &file(3)["message"]),
        (&false.into(), &"ptxas line 1; error : no -arch=sm_75".into())
    );

    let (json, _) = run_with(&[&more[..], &["--ptxas-budget", "0"]].concat(), &folder);
    assert_eq!(json["sources"]["all"]["ptxas_asked"], 0);

    let ptxas = fake_ptxas(&folder, "__ptxrace");
    let (json, _) = run_with(&["--ptxas", "--ptxas-bin", ptxas.to_str().unwrap()], &folder);
    assert_eq!(json["files"][1]["ptxas"]["instrumented"], false);
    let all = &json["sources"]["all"];
    assert_eq!((&all["ptxas_comparable"], &all["ptxas_instrumented"]), (&1.into(), &0.into()));
}

/// An nvcc that makes the text of a module out of any source that does not hold `refused`.
fn fake_nvcc(folder: &TempDir) -> PathBuf {
    let path = folder.path().join("nvcc");
    // `-ptx -arch=... -lineinfo -w -o TARGET SOURCE`
    let script = "#!/bin/sh\ntest \"$1 $5\" = '-ptx -o' || exit 2\nif grep -q refused \"$7\"; then exit 1; fi\n\
        cp \"$(dirname \"$0\")/one/good.ptx\" \"$6\"\necho \"// $7\" >> \"$6\"\n";
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn sources_are_compiled_first() {
    let folder = corpus();
    for (name, text) in [("kernel", "good"), ("other", "good, too"), ("broken", "refused")] {
        fs::write(folder.path().join(format!("two/{name}.cu")), text).unwrap();
    }
    let nvcc = fake_nvcc(&folder);
    let (json, markdown) = run_with(&["--nvcc", nvcc.to_str().unwrap(), "--jobs", "2"], &folder);
    assert!(markdown.contains("2 of 3 .cu files compiled by nvcc"), "{markdown}");
    let two = &json["sources"]["two"];
    assert_eq!((&two["files"], &two["parsed"], &two["instrumented"]), (&4.into(), &3.into(), &2.into()));
    let files = json["files"].as_array().unwrap();
    let kernel = files.iter().find(|file| file["path"].as_str().unwrap().ends_with("two/kernel.cu")).unwrap();
    assert_eq!((&kernel["round_tripped"], &kernel["sites"]), (&true.into(), &2.into()));

    let (json, markdown) = run_with(&["--nvcc", "/no/such/nvcc"], &folder);
    assert!(markdown.contains("3 .cu files are left out: no nvcc at /no/such/nvcc"), "{markdown}");
    assert_eq!(json["sources"]["two"]["files"], 2);
}

#[test]
fn text_that_the_tree_lost_is_found() {
    let print = |text: &str| {
        let mut parsed = ptxrace::ptx::parse(text);
        assert_eq!(parsed.errors, []);
        let whole = super::cover::print(text, &parsed.module);
        let last = parsed.module.items.pop();
        assert!(last.is_some());
        (whole, super::cover::print(text, &parsed.module))
    };
    let (whole, cut) = print(GOOD);
    assert_eq!(whole.as_deref(), Ok(GOOD));
    assert_eq!(cut, Err(GOOD.find(".visible").unwrap()));
}

#[test]
fn the_nearest_newer_target_is_taken() {
    let folder = corpus();
    let ptxas = Ptxas::new(fake_ptxas(&folder, "nothing"), Duration::from_secs(9), u64::MAX).unwrap();
    for (target, arch) in [("sm_35", "sm_75"), ("sm_75", "sm_75"), ("sm_80", "sm_90"), ("sm_90a", "sm_90a")] {
        assert_eq!(ptxas.arch(target), arch, "{target}");
    }
}
