//! Textures and surfaces by object handle: `tex`, `tld4`, `suld`, `sust`, `sured`.
//!
//! Not covered, and said so by name: cube maps and multisampled textures, explicit gradients, offsets and comparisons.

use super::classify::{Classified, at, certain, is_address, is_eviction_hint};
use super::{AtomOp, Effect};
use crate::ptx::ast::{Instruction, Operand};
use crate::ptx::type_bytes;

/// What is done with an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ImageOp {
    /// `tex`
    Fetch,
    /// `tld4`: one channel of the four texels that a filter would take.
    Gather,
    /// `suld`
    Load,
    /// `sust`
    Store,
    /// `sured`
    Reduce(AtomOp),
}

/// The coordinates of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ImageShape {
    /// `.1d`
    Line,
    /// `.2d`
    Plane,
    /// `.3d`
    Volume,
    /// `.a1d`
    Lines,
    /// `.a2d`
    Planes,
}

impl ImageShape {
    fn of(word: &str) -> Option<Self> {
        Some(match word {
            "1d" => Self::Line,
            "2d" => Self::Plane,
            "3d" => Self::Volume,
            "a1d" => Self::Lines,
            "a2d" => Self::Planes,
            _ => return None,
        })
    }

    /// Coordinates that are given, the layer included.
    pub fn coordinates(self) -> usize {
        match self {
            Self::Line => 1,
            Self::Plane | Self::Lines => 2,
            Self::Volume | Self::Planes => 3,
        }
    }

    /// Whether the first coordinate is a layer.
    pub fn is_layered(self) -> bool {
        matches!(self, Self::Lines | Self::Planes)
    }

    /// Axes besides the layer.
    pub fn axes(self) -> usize {
        self.coordinates() - usize::from(self.is_layered())
    }
}

/// What becomes of surface accesses beyond the edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outside {
    /// They fault.
    Trap,
    /// They go to the edge.
    Clamp,
    /// Loads give zero, stores are dropped.
    Zero,
}

/// An access to a texture or a surface: what is static about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ImageAccess {
    /// What it does.
    pub op: ImageOp,
    /// How many coordinates there are.
    pub shape: ImageShape,
    /// They are floats, else signed integers.
    pub floats: bool,
    /// Of surfaces: bytes of the access, whose first coordinate counts bytes. `None`: one texel, counted in texels.
    pub bytes: Option<u8>,
    /// Of surfaces.
    pub outside: Outside,
    /// Operand with handle and coordinates.
    pub address: u8,
}

impl ImageAccess {
    /// Whether it goes to a surface, else to a texture.
    pub fn is_surface(&self) -> bool {
        !matches!(self.op, ImageOp::Fetch | ImageOp::Gather)
    }

    /// Whether it can write.
    pub fn writes(&self) -> bool {
        matches!(self.op, ImageOp::Store | ImageOp::Reduce(_))
    }
}

fn refused<'a>(what: &'static str) -> Classified<'a> {
    certain(Effect::NotCovered { what, orders: false })
}

/// The vector of coordinates, if handle and coordinates are all that the brackets hold.
pub fn coordinates<'i, 'a>(operand: &'i Operand<'a>) -> Option<&'i [Operand<'a>]> {
    let Operand::Address(address) = operand else { return None };
    match &address.extra[..] {
        [Operand::Vector(items)] => Some(&items[..]),
        [one @ Operand::Name(..)] => Some(std::slice::from_ref(one)),
        _ => None,
    }
}

/// `tex`, `tld4`
pub(super) fn texture<'a>(instruction: &Instruction<'a>) -> Classified<'a> {
    let gathers = instruction.opcode.text == "tld4";
    let has = |word| instruction.has(word);
    let what = if has("grad") {
        Some("a texture fetch with gradients")
    } else if ["cube", "acube"].into_iter().any(has) {
        Some("a fetch of a cube map")
    } else if ["2dms", "a2dms"].into_iter().any(has) {
        Some("a fetch of a multisampled texture")
    } else {
        None
    };
    if let Some(what) = what {
        return refused(what);
    }
    let Some(address) = instruction.operands.iter().position(is_address) else {
        return certain(Effect::Unknown);
    };
    let behind = instruction.operands.len() - address - 1;
    if behind > usize::from(has("level")) {
        return refused("a texture fetch with offsets or a comparison");
    }
    let (mut shape, mut unknown) = (None, None);
    let mut floats = None;
    for word in instruction.modifiers() {
        let text = word.text;
        if let Some(found) = ImageShape::of(text) {
            shape = Some(found);
        } else if type_bytes(text).is_some() || text == "f16x2" {
            // The last type is that of the coordinates.
            floats = Some(text == "f32");
        } else if !matches!(text, "level" | "base" | "v2" | "v4" | "r" | "g" | "b" | "a") {
            unknown = unknown.or(Some(word));
        }
    }
    let (Some(shape), Some(floats)) = (shape, floats) else {
        return refused("a texture fetch of unknown shape");
    };
    let op = if gathers { ImageOp::Gather } else { ImageOp::Fetch };
    let access =
        ImageAccess { op, shape, floats, bytes: None, outside: Outside::Clamp, address: at(address) };
    finish(instruction, access, unknown)
}

/// `suld`, `sust`, `sured`
pub(super) fn surface<'a>(instruction: &Instruction<'a>) -> Classified<'a> {
    let Some(address) = instruction.operands.iter().position(is_address) else {
        return certain(Effect::Unknown);
    };
    let (mut shape, mut unknown, mut outside) = (None, None, Outside::Trap);
    let (mut element, mut count, mut formatted, mut reduction) = (None, 1, false, None);
    for word in instruction.modifiers() {
        let text = word.text;
        if let Some(found) = ImageShape::of(text) {
            shape = Some(found);
        } else if let Some(bytes) = type_bytes(text) {
            element = Some(bytes);
        } else if let Some(found) = super::classify::op_of(text) {
            reduction = Some(found);
        } else {
            match text {
                "b" => {}
                "p" => formatted = true,
                "v2" => count = 2,
                "v4" => count = 4,
                "trap" => outside = Outside::Trap,
                "clamp" => outside = Outside::Clamp,
                "zero" => outside = Outside::Zero,
                "ca" | "cg" | "cs" | "cv" | "wb" | "wt" => {}
                _ if is_eviction_hint(text) => {}
                _ => unknown = unknown.or(Some(word)),
            }
        }
    }
    let op = match (instruction.opcode.text, reduction) {
        ("suld", None) => ImageOp::Load,
        ("sust", None) => ImageOp::Store,
        ("sured", Some(op)) => ImageOp::Reduce(op),
        _ => return refused("a surface access of unknown kind"),
    };
    let bytes = element.map(|element| element * count).and_then(|bytes| u8::try_from(bytes).ok());
    let (Some(shape), Some(bytes)) = (shape, bytes) else {
        return refused("a surface access of unknown shape");
    };
    let bytes = (!formatted).then_some(bytes);
    let access = ImageAccess { op, shape, floats: false, bytes, outside, address: at(address) };
    finish(instruction, access, unknown)
}

fn finish<'a>(
    instruction: &Instruction<'a>,
    access: ImageAccess,
    unknown: Option<crate::ptx::ast::Word<'a>>,
) -> Classified<'a> {
    let operand = instruction.operands.get(usize::from(access.address));
    match operand.and_then(coordinates) {
        Some(given) if given.len() >= access.shape.coordinates() => {
            Classified { effect: Effect::Image(access), unknown }
        }
        Some(_) => refused("an access to an image with too few coordinates"),
        None => refused("a texture fetch with a sampler of its own"),
    }
}
