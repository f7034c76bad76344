//! The argument notation: `name:type[count]=init`, `name:type=value`, `@name`, and tensor maps (`tensor`).

use std::ops::Range;

use super::tensor::{self, TensorSpec};
use super::values::{TYPE_NAMES, constant, parse_integer};
use crate::backend::{ElementType, Owner};
use crate::diag::nearest;

/// An argument as written.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// The name before the colon, or behind `@`.
    pub name: String,
    /// What it is.
    pub kind: SpecKind,
}

/// The forms.
#[derive(Clone, Debug, PartialEq)]
pub enum SpecKind {
    /// `@name`: a buffer defined elsewhere.
    Again,
    /// `name:type=value`
    Value {
        /// Type.
        ty: ElementType,
        /// Its bytes.
        bytes: Vec<u8>,
    },
    /// `name:type[count]=init`
    Buffer {
        /// Element type.
        ty: ElementType,
        /// Elements.
        count: u64,
        /// Whose memory it lies in.
        owner: Owner,
        /// Contents.
        init: Init,
    },
    /// `name:tensor=@buffer ..`
    Tensor(Box<TensorSpec>),
}

/// How a buffer begins.
#[derive(Clone, Debug, PartialEq)]
pub enum Init {
    /// Every element has these bytes.
    Constant(Vec<u8>),
    /// 0, 1, 2 and so on.
    Iota,
    /// SplitMix64 with this seed.
    Random(u64),
    /// The bytes of a file.
    File(String),
    /// Zeros that count as not written.
    Uninit,
    /// The allocation of another buffer, under another type.
    Alias(String),
}

/// What is wrong with an argument, and which bytes of it are.
#[derive(Clone, Debug, PartialEq)]
pub struct SpecError {
    /// Bytes of the argument's text.
    pub at: Range<usize>,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: String,
}

const FORMS: &str = "write `name:type[count]=init`, `name:type=value` or `@name`";

pub(super) fn fail<T>(
    at: Range<usize>,
    message: impl Into<String>,
    help: impl Into<String>,
) -> Result<T, SpecError> {
    Err(SpecError { at, message: message.into(), help: help.into() })
}

/// Whether a text can name a buffer: PTX identifiers, with dots.
pub(super) fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c.is_alphabetic() || "_$%".contains(c))
        && chars.all(|c| c.is_alphanumeric() || "_$.".contains(c))
}

/// Where `part` stands in `whole`, of which it is a slice.
pub(super) fn place(whole: &str, part: &str) -> Range<usize> {
    let start = (part.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize).min(whole.len());
    start..start + part.len()
}

/// Reads one argument.
pub fn parse(text: &str) -> Result<Spec, SpecError> {
    let whole = 0..text.len();
    if let Some(name) = text.trim().strip_prefix('@') {
        let name = name.trim();
        if !is_name(name) {
            return fail(whole, format!("`{name}` is not a buffer's name"), FORMS);
        }
        return Ok(Spec { name: name.into(), kind: SpecKind::Again });
    }
    let Some((name, rest)) = text.split_once(':') else {
        return fail(whole, "an argument needs a name and a type", FORMS);
    };
    let name = name.trim();
    if !is_name(name) {
        return fail(0..text.find(':').unwrap_or(0), format!("`{name}` is not a name"), FORMS);
    }
    let Some((shape, init)) = rest.split_once('=') else {
        let at = place(text, rest);
        return fail(at, "the initial value is missing", format!("add one, such as `{}=0`", text.trim()));
    };
    if shape.trim() == "tensor" {
        let spec = tensor::parse(text, name, init.trim())?;
        return Ok(Spec { name: name.into(), kind: SpecKind::Tensor(Box::new(spec)) });
    }
    let (ty, count) = self::shape(text, shape)?;
    let init = init.trim();
    let at = place(text, init);
    let kind = match count {
        Some(count) => {
            let (owner, init) = owner(init);
            SpecKind::Buffer { ty, count, owner, init: self::init(init, place(text, init), ty, owner)? }
        }
        None => match constant(init, ty) {
            Ok(bytes) => SpecKind::Value { ty, bytes },
            Err(message) => {
                let help = if ["iota", "random", "file", "uninit", "host", "managed", "@"]
                    .iter()
                    .any(|w| init.starts_with(w))
                {
                    "only buffers can begin so; give a count behind the type, as in `a:i32[64]=iota`"
                } else {
                    "a value is a number of the argument's type"
                };
                return fail(at, message, help);
            }
        },
    };
    Ok(Spec { name: name.into(), kind })
}

/// `type` or `type[count]`.
fn shape(text: &str, shape: &str) -> Result<(ElementType, Option<u64>), SpecError> {
    let (ty, count) = match shape.split_once('[') {
        Some((ty, rest)) => match rest.trim_end().strip_suffix(']') {
            Some(count) => (ty.trim(), Some(count.trim())),
            None => return fail(place(text, rest), "the `[` has no `]`", FORMS),
        },
        None => (shape.trim(), None),
    };
    let Some((_, element)) = TYPE_NAMES.iter().find(|(name, _)| *name == ty) else {
        let names: Vec<_> = TYPE_NAMES.iter().map(|(name, _)| *name).collect();
        let help = match nearest(ty, names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`? The types are {}", names.join(" ")),
            None => format!("the types are {}", names.join(" ")),
        };
        return fail(place(text, ty), format!("`{ty}` is not a type"), help);
    };
    let Some(count) = count else { return Ok((*element, None)) };
    match parse_integer(count).map(|(n, _)| u64::try_from(n)) {
        Some(Ok(n)) if n > 0 => Ok((*element, Some(n))),
        _ => {
            let message = format!("`{count}` is not a number of elements");
            fail(place(text, count), message, "a buffer has one element or more, as in `a:i32[64]=0`")
        }
    }
}

/// Whose memory a buffer lies in, and the rest of its initial value.
fn owner(init: &str) -> (Owner, &str) {
    for (word, owner) in [("host:", Owner::Host), ("managed:", Owner::Managed)] {
        if let Some(rest) = init.strip_prefix(word) {
            return (owner, rest.trim_start());
        }
    }
    (Owner::Device, init)
}

pub(super) fn init(text: &str, at: Range<usize>, ty: ElementType, owner: Owner) -> Result<Init, SpecError> {
    const FORMS: &str = "write a number, `iota`, `random:SEED`, `file:PATH`, `uninit` or `@name`, behind `host:` or `managed:` for memory that the host reads while kernels run";
    match text {
        "iota" => return Ok(Init::Iota),
        "uninit" => return Ok(Init::Uninit),
        _ => {}
    }
    if let Some(seed) = text.strip_prefix("random") {
        let seed = seed.strip_prefix(':').and_then(|s| parse_integer(s.trim()));
        return match seed.map(|(n, _)| u64::try_from(n)) {
            Some(Ok(seed)) => Ok(Init::Random(seed)),
            _ => fail(at, "`random` needs a seed", "write `random:1`; equal seeds give equal contents"),
        };
    }
    if let Some(path) = text.strip_prefix("file:") {
        if path.is_empty() {
            return fail(at, "`file:` needs a path", FORMS);
        }
        return Ok(Init::File(path.into()));
    }
    if let Some(name) = text.strip_prefix('@') {
        if !is_name(name) {
            return fail(at, format!("`{name}` is not a buffer's name"), FORMS);
        }
        if owner != Owner::Device {
            let help = format!("say so where `{name}` is defined");
            return fail(at, "an alias lies where its buffer does", help);
        }
        return Ok(Init::Alias(name.into()));
    }
    match constant(text, ty) {
        Ok(bytes) => Ok(Init::Constant(bytes)),
        Err(message) => fail(at, message, FORMS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer(text: &str) -> (ElementType, u64, Init) {
        match parse(text).unwrap().kind {
            SpecKind::Buffer { ty, count, init, owner: Owner::Device } => (ty, count, init),
            other => panic!("{other:?}"),
        }
    }

    fn error(text: &str) -> (&str, String) {
        let e = parse(text).unwrap_err();
        (&text[e.at], e.message)
    }

    #[test]
    fn every_form_is_read() {
        assert_eq!(parse("@in").unwrap(), Spec { name: "in".into(), kind: SpecKind::Again });
        let value = SpecKind::Value { ty: ElementType::I32, bytes: vec![0xfb, 0xff, 0xff, 0xff] };
        assert_eq!(parse("n : i32 = -5").unwrap(), Spec { name: "n".into(), kind: value });
        assert_eq!(buffer("a:u8[4]=1"), (ElementType::U8, 4, Init::Constant(vec![1])));
        assert_eq!(buffer("a:f64[0x10]=iota"), (ElementType::F64, 16, Init::Iota));
        assert_eq!(buffer("a:bf16[4]=random:9"), (ElementType::Bf16, 4, Init::Random(9)));
        assert_eq!(buffer("a:u32[8]=uninit"), (ElementType::U32, 8, Init::Uninit));
        assert_eq!(buffer("a:i8[4]=file:x=y.bin"), (ElementType::I8, 4, Init::File("x=y.bin".into())));
        assert_eq!(buffer("b:f32[2]=@a"), (ElementType::F32, 2, Init::Alias("a".into())));
    }

    #[test]
    fn buffers_may_lie_in_memory_of_the_host() {
        let owned = |text: &str| match parse(text).unwrap().kind {
            SpecKind::Buffer { owner, init, .. } => (owner, init),
            other => panic!("{other:?}"),
        };
        assert_eq!(owned("f:u32[1]=host:0"), (Owner::Host, Init::Constant(vec![0; 4])));
        assert_eq!(owned("f:u32[4]=managed: iota"), (Owner::Managed, Init::Iota));
        assert_eq!(owned("f:u32[4]=host:file:host:x"), (Owner::Host, Init::File("host:x".into())));
        assert_eq!(owned("f:u32[4]=iota"), (Owner::Device, Init::Iota));
    }

    #[test]
    fn errors_point_at_the_bad_part() {
        let cases = [
            ("data", "data", "an argument needs a name and a type"),
            ("7:i32=1", "7", "`7` is not a name"),
            ("n:i32", "i32", "the initial value is missing"),
            ("n:int=1", "int", "`int` is not a type"),
            ("n:u32=many", "many", "`many` is not an integer"),
            ("a:i32[0]=1", "0", "`0` is not a number of elements"),
            ("a:i32[4=1", "4", "the `[` has no `]`"),
            ("a:i32[4]=random", "random", "`random` needs a seed"),
            ("a:i32[4]=file:", "file:", "`file:` needs a path"),
            ("a:i32[4]=@", "@", "`` is not a buffer's name"),
            ("a:i32[4]=host:", "", "`` is not an integer"),
            ("a:i32[4]=host:@b", "@b", "an alias lies where its buffer does"),
            ("n:i32=iota", "iota", "`iota` is not an integer"),
        ];
        for (text, at, message) in cases {
            assert_eq!(error(text), (at, message.to_owned()));
        }
        assert!(parse("a:int32[4]=0").unwrap_err().help.starts_with("did you mean `"));
    }
}
