//! Tensor maps as arguments: `name:tensor=type[sizes] box[sizes]`, innermost first, with more words behind. The tensor is a buffer
//! of that name, or one that `@buffer` before the type names.

use std::ops::Range;

use super::spec::{self, Init, SpecError, fail, is_name, place};
use super::values::parse_integer;
use crate::backend::{ElementType, Owner};
use crate::tensor::{DataType, MOST_RANK, Swizzle, TensorMap};

/// A tensor map of a buffer.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorSpec {
    /// The buffer.
    pub buffer: String,
    /// How it begins, if it is the tensor's own.
    pub init: Option<Init>,
    /// The map; its address counts from where the buffer begins.
    pub map: TensorMap,
}

const FORMS: &str = "write `name:tensor=f32[64,32] box[16,8] init:iota` or `name:tensor=@buffer f32[64,32] box[16,8]`, and behind \
    that what is needed of `strides[BYTES,..]`, `steps[1,2]`, `swizzle:32|64|128`, `fill:nan`, `offset:BYTES`";

/// Reads what stands behind the `=`, for the argument of this name.
pub(super) fn parse(text: &str, own: &str, value: &str) -> Result<TensorSpec, SpecError> {
    let mut words = value.split_whitespace().peekable();
    let at = place(text, value);
    let other = words.next_if(|word| word.starts_with('@'));
    let (buffer, mut init) = match other.and_then(|word| word.strip_prefix('@')) {
        Some(name) if !is_name(name) => {
            return fail(place(text, name), format!("`{name}` is not a buffer's name"), FORMS);
        }
        Some(name) => (name, None),
        None => (own, Some(Init::Constant(vec![0; 8]))),
    };
    let Some(word) = words.next() else { return fail(at, "the tensor's type and sizes are missing", FORMS) };
    let (name, sizes) = list(text, word)?;
    let Some((_, ty)) = DataType::ALL.iter().find(|(known, _)| *known == name) else {
        let names: Vec<_> = DataType::ALL.iter().map(|(name, _)| *name).collect();
        let message = format!("`{name}` is not a type of a tensor");
        return fail(place(text, name), message, format!("the types are {}", names.join(" ")));
    };
    let mut map = TensorMap::new(*ty, sizes.len(), 0);
    map.sizes[..sizes.len()].copy_from_slice(&sizes);
    for dimension in 1..sizes.len() {
        map.strides[dimension] = map.strides[dimension - 1].saturating_mul(map.sizes[dimension - 1]);
    }
    let mut has_box = false;
    let element = element(*ty);
    for word in words {
        has_box |= word.starts_with("box");
        match word.strip_prefix("init:") {
            Some(begins) if init.is_some() => {
                init = Some(spec::init(begins, place(text, begins), element, Owner::Device)?);
            }
            _ => property(text, word, &mut map)?,
        }
    }
    if let Some(Init::Constant(bytes)) = &mut init {
        bytes.truncate(element.bytes());
    }
    if !has_box {
        return fail(at, "the box is missing", FORMS);
    }
    match map.check() {
        Ok(()) => Ok(TensorSpec { buffer: buffer.into(), init, map }),
        Err(message) => fail(at, message, "the driver would refuse this tensor map"),
    }
}

/// The elements of a buffer that is such a tensor.
pub(super) fn element(ty: DataType) -> ElementType {
    match ty {
        DataType::U8 => ElementType::U8,
        DataType::U16 => ElementType::U16,
        DataType::U32 => ElementType::U32,
        DataType::I32 => ElementType::I32,
        DataType::U64 => ElementType::U64,
        DataType::I64 => ElementType::I64,
        DataType::F16 => ElementType::F16,
        DataType::Bf16 => ElementType::Bf16,
        DataType::F32 | DataType::F32Ftz | DataType::Tf32 | DataType::Tf32Ftz => ElementType::F32,
        DataType::F64 => ElementType::F64,
    }
}

/// One of the words behind the sizes.
fn property(text: &str, word: &str, map: &mut TensorMap) -> Result<(), SpecError> {
    let rank = usize::from(map.rank);
    let at = place(text, word);
    if let Some((name, value)) = word.split_once(':') {
        let number = parse_integer(value).and_then(|(number, _)| u64::try_from(number).ok());
        match (name, value, number) {
            ("swizzle", "32", _) => map.swizzle = Swizzle::B32,
            ("swizzle", "64", _) => map.swizzle = Swizzle::B64,
            ("swizzle", "128", _) => map.swizzle = Swizzle::B128,
            ("fill", "nan", _) => map.nan = true,
            ("offset", _, Some(offset)) => map.address = offset,
            _ => return fail(at, format!("`{word}` says nothing of a tensor"), FORMS),
        }
        return Ok(());
    }
    let (name, values) = list(text, word)?;
    let wanted = if name == "strides" { rank - 1 } else { rank };
    if values.len() != wanted {
        return fail(at, format!("`{name}` needs {wanted} numbers here"), FORMS);
    }
    let short = |value: &u64| u32::try_from(*value).unwrap_or(u32::MAX);
    match name {
        "box" => map.extent.iter_mut().zip(&values).for_each(|(to, value)| *to = short(value)),
        "steps" => map.steps.iter_mut().zip(&values).for_each(|(to, value)| *to = short(value)),
        "strides" => map.strides[1..rank].copy_from_slice(&values),
        _ => return fail(at, format!("`{name}` says nothing of a tensor"), FORMS),
    }
    Ok(())
}

/// `name[1,2,3]`, with at most as many numbers as a tensor has dimensions.
fn list<'t>(text: &'t str, word: &'t str) -> Result<(&'t str, Vec<u64>), SpecError> {
    let at: Range<usize> = place(text, word);
    let inner = word.split_once('[').and_then(|(name, rest)| Some((name, rest.strip_suffix(']')?)));
    let Some((name, inner)) = inner else {
        return fail(at, format!("`{word}` has no numbers in brackets"), FORMS);
    };
    let number = |item: &str| parse_integer(item.trim()).and_then(|(number, _)| u64::try_from(number).ok());
    let numbers: Option<Vec<_>> =
        if inner.is_empty() { Some(Vec::new()) } else { inner.split(',').map(number).collect() };
    match numbers {
        Some(numbers) if numbers.len() <= MOST_RANK => Ok((name, numbers)),
        Some(_) => fail(at, "a tensor has 1 to 5 dimensions", FORMS),
        None => fail(place(text, inner), format!("`{inner}` is no list of numbers"), FORMS),
    }
}

/// Bytes of the buffer up to the end of the tensor.
pub(super) fn needs(map: &TensorMap) -> u64 {
    let dimensions = map.sizes.iter().zip(map.strides).take(map.rank.into());
    let last = dimensions.fold(map.address, |at, (size, stride)| {
        at.saturating_add(size.saturating_sub(1).saturating_mul(stride))
    });
    last.saturating_add(map.ty.bytes().into())
}

#[cfg(test)]
mod tests {
    use super::super::spec::{SpecKind, parse};
    use super::*;

    fn error(text: &str) -> (&str, String) {
        let error = parse(text).unwrap_err();
        (&text[error.at], error.message)
    }

    #[test]
    fn maps_are_read() {
        let SpecKind::Tensor(spec) = parse("m:tensor=@in f16[64,32] box[16,8]").unwrap().kind else {
            panic!()
        };
        assert_eq!(spec.buffer, "in");
        assert_eq!((spec.map.rank, spec.map.sizes, spec.map.strides[1]), (2, [64, 32, 1, 1, 1], 128));
        assert_eq!(needs(&spec.map), 64 * 32 * 2);
        assert_eq!(spec.init, None);
        let SpecKind::Tensor(spec) = parse("m:tensor=u8[64] box[16] init:3").unwrap().kind else { panic!() };
        assert_eq!((&*spec.buffer, spec.init), ("m", Some(Init::Constant(vec![3]))));
        let all =
            "m:tensor=@in f32[6,4,2] box[4,2,1] strides[32,256] steps[1,2,1] swizzle:32 fill:nan offset:0x40";
        let SpecKind::Tensor(spec) = parse(all).unwrap().kind else { panic!() };
        let map = &spec.map;
        assert_eq!((map.address, map.swizzle, map.nan), (64, Swizzle::B32, true));
        assert_eq!(
            (map.strides, map.extent, map.steps),
            ([4, 32, 256, 0, 0], [4, 2, 1, 1, 1], [1, 2, 1, 1, 1])
        );
        assert_eq!(needs(map), 64 + 5 * 4 + 3 * 32 + 256 + 4);
    }

    #[test]
    fn errors_point_at_the_bad_part() {
        let cases = [
            ("m:tensor=@7 f32[4] box[4]", "7", "`7` is not a buffer's name"),
            ("m:tensor=in f32[4] box[4]", "in", "`in` has no numbers in brackets"),
            ("m:tensor=f32[4] box[4] init:x", "x", "`x` is not a number"),
            ("m:tensor=@in f32[4] box[4] init:iota", "init:iota", "`init:iota` says nothing of a tensor"),
            ("m:tensor=@in", "@in", "the tensor's type and sizes are missing"),
            ("m:tensor=@in i8[16] box[16]", "i8", "`i8` is not a type of a tensor"),
            ("m:tensor=@in f32[x] box[4]", "x", "`x` is no list of numbers"),
            ("m:tensor=@in f32[4] box[4,4]", "box[4,4]", "`box` needs 1 numbers here"),
            ("m:tensor=@in f32[4] box[4] swizzle:3", "swizzle:3", "`swizzle:3` says nothing of a tensor"),
            ("m:tensor=@in f32[4,4]", "@in f32[4,4]", "the box is missing"),
            (
                "m:tensor=@in f32[4,4] box[3,4]",
                "@in f32[4,4] box[3,4]",
                "a row of the box has 12 bytes, which is no multiple of 16",
            ),
        ];
        for (text, at, message) in cases {
            assert_eq!(error(text), (at, message.to_owned()));
        }
    }
}
