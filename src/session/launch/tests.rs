//! Descriptions, flags and inference against a module.

use super::*;
use crate::backend::{Arg, ElementType};
use crate::report::{Style, write_diagnostic};

const PTX: &str = ".version 8.0
.target sm_80
.address_size 64
.visible .entry scale(
	.param .u64 scale_param_0,
	.param .u32 scale_param_1,
	.param .f32 scale_param_2,
	.param .u64 scale_param_3
)
.maxntid 256, 1, 1
{
	.reg .b32 %r<4>;
	.reg .f32 %f<4>;
	.reg .b64 %rd<8>;
	ld.param.u64 %rd1, [scale_param_0];
	ld.param.u32 %r1, [scale_param_1];
	ld.param.f32 %f1, [scale_param_2];
	ld.param.u64 %rd2, [scale_param_3];
	cvta.to.global.u64 %rd3, %rd1;
	mov.u32 %r2, %tid.x;
	mul.wide.u32 %rd4, %r2, 16;
	add.s64 %rd5, %rd3, %rd4;
	shl.b64 %rd6, %rd2, 2;
	add.s64 %rd7, %rd5, %rd6;
	ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%rd7];
	ret;
}
";

fn resolve_in(toml: Option<&str>, ptx: &str, request: LaunchRequest) -> Result<Resolved, String> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("data.bin"), [1u8, 2, 3, 4]).unwrap();
    if let Some(toml) = toml {
        std::fs::write(folder.path().join("m.toml"), toml).unwrap();
    }
    let source = SourceFile::new(folder.path().join("m.ptx"), ptx).unwrap();
    let parsed = crate::ptx::parse(source.text());
    assert!(parsed.errors.is_empty(), "{:?}", parsed.errors);
    resolve(&source, &parsed.module, &request).map_err(|errors| {
        let mut text = Vec::new();
        errors.iter().for_each(|e| write_diagnostic(e, Style::default(), &mut text).unwrap());
        let folder = format!("{}/", folder.path().display());
        String::from_utf8(text).unwrap().replace(&folder, "")
    })
}

fn with_toml(toml: &str) -> Result<Resolved, String> {
    resolve_in(Some(toml), PTX, LaunchRequest::default())
}

fn with_args(args: &str) -> Result<Resolved, String> {
    with_toml(&format!("[[launch]]\nkernel = \"scale\"\ngrid = 1\nblock = 32\nargs = [{args}]\n"))
}

/// The first line of an error.
fn headline(result: Result<Resolved, String>) -> String {
    result.unwrap_err().lines().next().unwrap_or("").to_owned()
}

#[test]
fn a_description_becomes_a_plan() {
    let toml = r#"
[[launch]]
kernel = "scale"
grid = [4,2]
block = 64
shared = 16
stream = 1
args = ["a:f32[4]=iota", "n:i32=4", "f:f32=0.5", "k:u64=0"]

[[launch]]
grid = 1
block = [8,4,2]
after = [0]
args = ["b:i32[2]=@a", "n:u32=0xffffffff", 'f:f32=-inf', "@a"]

[expect]
verdict = "clean"
anything = { goes = [1, "two"] }
"#;
    let Resolved { plan, aliases, notes } = with_toml(toml).unwrap();
    assert!(notes.is_empty());
    assert_eq!(aliases, [("b".to_owned(), 0)]);
    assert_eq!(plan.buffers.len(), 1);
    assert_eq!(plan.buffers[0].contents.len(), 16);
    let [first, second] = plan.launches.as_slice() else { panic!("{plan:?}") };
    assert_eq!((first.grid, first.block, first.shared, first.stream), ([4, 2, 1], [64, 1, 1], 16, 1));
    let value = |bytes: &[u8]| Arg::Value(bytes.to_vec());
    let args = [Arg::Buffer(0), value(&[4, 0, 0, 0]), value(&0.5f32.to_le_bytes()), value(&[0; 8])];
    assert_eq!(first.args, args);
    assert_eq!((second.block, second.after.as_slice()), ([8, 4, 2], [0].as_slice()));
    assert_eq!((&second.args[0], &second.args[3]), (&Arg::Buffer(0), &Arg::Buffer(0)));
}

#[test]
fn files_are_read_beside_the_description() {
    let plan = with_args(r#""a:u8[4]=file:data.bin", "n:i32=4", "f:f32=1", "k:u64=0""#).unwrap().plan;
    assert_eq!(plan.buffers[0].contents, [1, 2, 3, 4]);
    let error = headline(with_args(r#""a:i32[4]=file:data.bin", "n:i32=4", "f:f32=1", "k:u64=0""#));
    assert!(error.ends_with("`data.bin` has 4 bytes, but the buffer has 16"), "{error}");
}

#[test]
fn the_header_is_toml_too() {
    let header = "//@ [[launch]]\n// a comment\n//@ block = 64\n//@\n//@ grid = [3]\n";
    let ptx = format!("{header}{PTX}");
    let plan = resolve_in(None, &ptx, LaunchRequest::default()).unwrap().plan;
    assert_eq!((plan.launches[0].grid, plan.launches[0].block), ([3, 1, 1], [64, 1, 1]));
    let text = resolve_in(None, &ptx.replace("grid", "gird"), LaunchRequest::default()).unwrap_err();
    let expected = "\
error: the launch description `m.ptx` cannot be read: unknown field `gird`, expected one of `kernel`, `grid`, `block`, `cluster`, `shared`, `device`, `stream`, `after`, `args`
 --> m.ptx:5:5
  |
5 | //@ grid = [3]
  |     ^^^^ here
  |
  = help: did you mean `grid`?
"
    .replace("//@ grid", "//@ gird");
    assert_eq!(text, expected);
}

#[test]
fn flags_win_and_the_description_beside_comes_before_the_header() {
    let ptx = format!("//@ [[launch]]\n//@ grid = 9\n{PTX}");
    let request = LaunchRequest { block: Some([96, 1, 1]), ..LaunchRequest::default() };
    let plan = resolve_in(Some("[[launch]]\ngrid = 5\nblock = 32\n"), &ptx, request).unwrap().plan;
    assert_eq!((plan.launches[0].grid, plan.launches[0].block), ([5, 1, 1], [96, 1, 1]));
}

#[test]
fn nothing_given_is_inferred_and_said() {
    let Resolved { plan, notes, .. } = resolve_in(None, PTX, LaunchRequest::default()).unwrap();
    let launch = &plan.launches[0];
    assert_eq!((launch.grid, launch.block), ([2, 1, 1], [128, 1, 1]));
    // 1024 elements of the widest access, four floats; the other 64-bit parameter only offsets the pointer.
    assert_eq!(plan.buffers.len(), 1);
    assert_eq!((plan.buffers[0].ty, plan.buffers[0].contents.len()), (ElementType::F32, 1024 * 16));
    let value = |bytes: &[u8]| Arg::Value(bytes.to_vec());
    let count = 1024u64.to_le_bytes();
    assert_eq!(launch.args, [Arg::Buffer(0), value(&count[..4]), value(&1f32.to_le_bytes()), value(&count)]);
    let notes: Vec<_> = notes.iter().map(|note| note.message.as_str()).collect();
    let expected = [
        "`scale`: grid (2,1,1) assumed",
        "`scale`: block (128,1,1) assumed",
        "`scale`: argument `param_0:f32[4096]=0` assumed",
        "`scale`: argument `param_1:u32=1024` assumed",
        "`scale`: argument `param_2:f32=1` assumed",
        "`scale`: argument `param_3:u64=1024` assumed",
    ];
    assert_eq!(notes, expected);
}

#[test]
fn launch_bounds_are_kept() {
    let required = PTX.replace(".maxntid 256, 1, 1", ".reqntid 48, 2");
    let plan = resolve_in(None, &required, LaunchRequest::default()).unwrap().plan;
    assert_eq!(plan.launches[0].block, [48, 2, 1]);
    let request = |block| LaunchRequest { block: Some(block), ..LaunchRequest::default() };
    let text = resolve_in(None, &required, request([96, 1, 1])).unwrap_err();
    let expected = "\
error: `scale` must be launched with blocks of (48,2,1)
  --> --block:1:1
   |
 1 | 96,1,1
   | ^^^^^^ this is (96,1,1)
   |
  ::: m.ptx:10:1
   |
10 | .reqntid 48, 2
   | -------------- required here
   |
   = help: write `block = [48,2,1]`
";
    assert_eq!(text, expected);
    let error = headline(resolve_in(None, PTX, request([257, 1, 1])));
    assert_eq!(error, "error: `scale` takes at most 256 threads in a block");
}

#[test]
fn mistakes_are_named() {
    let launch = |lines: &str| headline(with_toml(&format!("[[launch]]\n{lines}\n")));
    let full = |a: &str| format!(r#""{a}", "n:i32=4", "f:f32=1", "k:u64=0""#);
    let cases = [
        (launch("block = 2048"), "a block cannot have 2048 in x"),
        (launch("block = [64,64]"), "a block of 4096 threads is too large"),
        (launch("grid = 0"), "a grid cannot have 0 in x"),
        (
            launch("grid = -1"),
            "the launch description `m.toml` cannot be read: -1 is not a size of a grid, block or cluster",
        ),
        (launch("grid = [1,2,3,4]"), "the launch description `m.toml` cannot be read: more than three sizes"),
        (launch("grid = [3,1]\ncluster = 2"), "clusters of (2,1,1) do not divide the grid (3,1,1)"),
        (launch("shared = 300000"), "a block cannot have 300000 bytes of shared memory"),
        (launch("after = [0]"), "launch 0 cannot wait for launch 0"),
        (launch("kernel = \"scael\""), "`m.ptx` has no kernel `scael`"),
        (headline(with_args("")), "`scale` has 4 parameters, but the launch gives 0 arguments"),
        (
            headline(with_args(&full("a:u32=1"))),
            "`a` is `u32`, 4 bytes, which does not fit parameter 0, `scale_param_0` (`.u64`, 8 bytes)",
        ),
        (headline(with_args(&full("@b"))), "there is no buffer `b`"),
        (
            headline(with_args(r#""a:i32[1]=0", "a:i32[2]=0", "f:f32=1", "@a""#)),
            "the argument `a:i32[2]=0` cannot be read: the buffer `a` is defined twice",
        ),
        (
            headline(with_args(r#""a:i32[1]=0", "@a", "f:f32=1", "@a""#)),
            "the buffer `a` cannot be parameter 1, `scale_param_1` (`.u32`, 4 bytes): an address has 8 bytes",
        ),
        (
            headline(with_args(r#""a:i32[1]=0", "n:u32=1", "f:f32=1", "b:i32[2]=@a""#)),
            "the argument `b:i32[2]=@a` cannot be read: `a` has 4 bytes, but 8 are asked for",
        ),
        (
            headline(with_args(&full("a:f64[999999999999]=0"))),
            "the argument `a:f64[999999999999]=0` cannot be read: a buffer of 7999999999992 bytes is too large",
        ),
    ];
    for (error, expected) in cases {
        assert_eq!(error, format!("error: {expected}"));
    }
}

#[test]
fn a_bad_argument_is_underlined_inside_its_string() {
    let text = with_args(r#""a:i32[1]=0", "n:u32=many", "f:f32=1", "@a""#).unwrap_err();
    let expected = "\
error: the argument `n:u32=many` cannot be read: `many` is not an integer
 --> m.toml:5:30
  |
5 | args = [\"a:i32[1]=0\", \"n:u32=many\", \"f:f32=1\", \"@a\"]
  |                              ^^^^ `many` is not an integer
  |
  = help: a value is a number of the argument's type
";
    assert_eq!(text, expected);
}

#[test]
fn one_kernel_of_several_can_be_picked() {
    let second = PTX.split_once(".visible").map_or("", |(_, rest)| rest);
    let ptx = format!("{PTX}.visible{}", second.replace("scale", "_Z5shiftPf"));
    let request = |kernel: &str, args: &[&str]| LaunchRequest {
        kernel: Some(kernel.into()),
        args: args.iter().map(|a| (*a).to_owned()).collect(),
        ..LaunchRequest::default()
    };
    let Resolved { plan, notes, .. } = resolve_in(None, &ptx, LaunchRequest::default()).unwrap();
    assert_eq!(plan.launches.len(), 2);
    assert_eq!(notes[0].message, "no launch description: every kernel is launched once, 2 in all");
    assert_eq!(plan.buffers[1].name, "shift.param_0");
    for name in ["_Z5shiftPf", "shift", "shift(float*)"] {
        let plan = resolve_in(None, &ptx, request(name, &[])).unwrap().plan;
        assert_eq!(plan.launches[0].kernel, "_Z5shiftPf");
    }
    // The picked launch may use a buffer that another defines.
    let toml = "[[launch]]\nkernel = \"scale\"\nargs = [\"a:f32[4]=0\", \"n:u32=4\", \"f:f32=1\", \"k:u64=0\"]\n\
                [[launch]]\nkernel = \"_Z5shiftPf\"\nargs = [\"@a\", \"n:u32=4\", \"f:f32=1\", \"k:u64=0\"]\n";
    let plan = resolve_in(Some(toml), &ptx, request("shift", &[])).unwrap().plan;
    assert_eq!((plan.launches.len(), &plan.launches[0].args[0]), (1, &Arg::Buffer(0)));
    let args = LaunchRequest { args: vec!["@a".into()], ..LaunchRequest::default() };
    let error = headline(resolve_in(Some(toml), &ptx, args));
    assert_eq!(error, "error: `--arg` gives the arguments of one launch, but there are 2");
}

#[test]
fn structures_are_given_as_bytes() {
    let ptx = PTX.replace(".param .u32 scale_param_1", ".param .align 4 .b8 scale_param_1[12]");
    let toml =
        |arg: &str| format!("[[launch]]\nargs = [\"a:f32[4]=0\", \"{arg}\", \"f:f32=1\", \"k:u64=0\"]\n");
    let plan = resolve_in(Some(&toml("p:i32[3]=7")), &ptx, LaunchRequest::default()).unwrap().plan;
    assert_eq!(plan.launches[0].args[1], Arg::Value([7, 0, 0, 0].repeat(3)));
    assert_eq!(plan.buffers.len(), 1);
    let error = headline(resolve_in(Some(&toml("p:i32=7")), &ptx, LaunchRequest::default()));
    let expected =
        "error: `p` is `i32`, 4 bytes, which does not fit parameter 1, `scale_param_1` (`.b8[12]`, 12 bytes)";
    assert_eq!(error, expected);
}

#[test]
fn dynamic_shared_memory_is_assumed_only_without_a_description() {
    let ptx = PTX.replace(".visible", ".extern .shared .align 16 .b8 buf[];\n.visible");
    let shared = |toml| resolve_in(toml, &ptx, LaunchRequest::default()).unwrap().plan.launches[0].shared;
    assert_eq!(shared(None), 16 << 10);
    assert_eq!(shared(Some("[[launch]]\ngrid = 1\n")), 0);
}

const IMAGES: &str = r#"
[[array]]
name = "image"
contents = "pixels:f32[128]=iota"
type = "f32"
size = [16, 8]

[[texture]]
name = "smooth"
of = "@image"
filter = "linear"
address = ["wrap", "clamp"]
coordinates = "normalized"

[[texture]]
name = "rows"
of = "@a"
type = "u8"
channels = 4
size = [8, 2]
pitch = 32

[[surface]]
name = "canvas"
of = "@image"

[[launch]]
kernel = "scale"
grid = 1
block = 32
args = ["a:f32[64]=iota", "n:i32=4", "f:f32=1", "@smooth"]
"#;

#[test]
fn arrays_textures_and_surfaces_are_described() {
    use crate::backend::PlanStorage;
    use crate::backend::image::{Channel, Edge};
    let plan = with_toml(IMAGES).unwrap().plan;
    assert_eq!(plan.launches[0].args[3], Arg::Image(0));
    let [array] = &plan.arrays[..] else { panic!("{plan:?}") };
    assert_eq!((array.shape.extent, array.shape.layered), ([16, 8, 0], false));
    assert_eq!(plan.buffers[array.contents].name, "pixels");
    let [smooth, rows, canvas] = &plan.images[..] else { panic!("{plan:?}") };
    assert!(smooth.sampling.linear && smooth.sampling.normalized && canvas.surface);
    assert_eq!(smooth.sampling.edges[..2], [Edge::Wrap, Edge::Clamp]);
    assert_eq!((rows.texel.channel, rows.texel.channels), (Channel::U8, 4));
    assert!(matches!(rows.storage, PlanStorage::Rows { extent: [8, 2], pitch: 32, .. }));
}

#[test]
fn what_is_wrong_with_images_is_said() {
    for (from, to, said) in [
        ("f32[128]", "f32[100]", "the array `image` has 512 bytes, but its contents have 400"),
        ("size = [16, 8]", "size = [16, 8, 2, 1]", "this is no size of an image"),
        ("channels = 4", "channels = 3", "a texel of 3 channels"),
        ("type = \"u8\"", "type = \"f64\"", "`f64` is no type of a texel"),
        ("pitch = 32", "pitch = 40", "40 bytes from row to row, where a row has 32"),
        ("size = [8, 2]", "size = [8, 20]", "the buffer has 256 bytes, but 20 rows need 640"),
        ("\"wrap\"", "\"warp\"", "`warp` is not known here"),
        ("coordinates = \"normalized\"", "", "`wrap` and `mirror` need normalized coordinates"),
        ("pitch = 32", "pitch = 32\nfilter = \"linear\"", "integers cannot be filtered"),
        ("name = \"rows\"", "name = \"smooth\"", "`smooth` is defined twice"),
        ("name = \"canvas\"\nof = \"@image\"", "name = \"canvas\"\nof = \"@a\"", "a surface needs an array"),
        ("of = \"@a\"", "of = \"@b\"", "there is no buffer or array `b`"),
        ("filter = \"linear\"", "fitler = \"linear\"", "unknown field `fitler`"),
    ] {
        assert!(IMAGES.contains(from), "{from}");
        let error = headline(with_toml(&IMAGES.replacen(from, to, 1)));
        assert!(error.contains(said), "{to}: {error}");
    }
}
