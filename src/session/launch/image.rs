//! Arrays, textures and surfaces of a launch description: the tables `[[array]]`, `[[texture]]` and `[[surface]]`.

use std::path::Path;

use serde::Deserialize;
use toml::Spanned;

use super::SpecText;
use super::bind::Binder;
use super::file::spec_text;
use super::spec::{self, SpecKind};
use super::values::{TYPE_NAMES, type_name};
use crate::backend::image::{ArrayShape, Channel, Edge, Sampling, Texel};
use crate::backend::{ElementType, PlanArray, PlanImage, PlanStorage};
use crate::diag::{Diagnostic, nearest};
use crate::span::{SourceFile, Span};

/// Texels along an axis at most.
const MOST_TEXELS: u32 = 1 << 17;
/// What the bytes from row to row are a multiple of.
const PITCH_ALIGNMENT: u64 = 32;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ArrayEntry {
    name: Spanned<String>,
    contents: Spanned<String>,
    #[serde(rename = "type")]
    ty: Spanned<String>,
    channels: Option<Spanned<u8>>,
    size: Spanned<Vec<u32>>,
    #[serde(default)]
    layered: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TextureEntry {
    name: Spanned<String>,
    of: Spanned<String>,
    #[serde(rename = "type")]
    ty: Option<Spanned<String>>,
    channels: Option<Spanned<u8>>,
    size: Option<Spanned<Vec<u32>>>,
    pitch: Option<Spanned<u64>>,
    filter: Option<Spanned<String>>,
    address: Option<Spanned<Addresses>>,
    read: Option<Spanned<String>>,
    coordinates: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SurfaceEntry {
    name: Spanned<String>,
    of: Spanned<String>,
}

/// One mode for all axes, or one for each.
#[derive(Deserialize)]
#[serde(untagged)]
enum Addresses {
    All(String),
    Each(Vec<String>),
}

/// All of them as described, in order, with the texts of their buffers.
#[derive(Default)]
pub(super) struct Described {
    pub(super) arrays: Vec<(ArrayEntry, SpecText)>,
    pub(super) textures: Vec<(TextureEntry, SpecText)>,
    pub(super) surfaces: Vec<(SurfaceEntry, SpecText)>,
    file: Option<SourceFile>,
}

impl Described {
    pub(super) fn new(
        file: &SourceFile,
        folder: &Path,
        arrays: Vec<ArrayEntry>,
        textures: Vec<TextureEntry>,
        surfaces: Vec<SurfaceEntry>,
    ) -> Self {
        let text = |of: &Spanned<String>| spec_text(file, of.clone(), folder);
        Self {
            arrays: arrays.into_iter().map(|entry| (text(&entry.contents), entry)).map(swap).collect(),
            textures: textures.into_iter().map(|entry| (text(&entry.of), entry)).map(swap).collect(),
            surfaces: surfaces.into_iter().map(|entry| (text(&entry.of), entry)).map(swap).collect(),
            file: Some(file.clone()),
        }
    }

    /// The texts that may define buffers. Those that cannot be read are reported where they are used.
    pub(super) fn specs(&self) -> Vec<SpecText> {
        let arrays = self.arrays.iter().map(|(_, text)| text);
        let texts = arrays.chain(self.textures.iter().map(|(_, text)| text));
        texts.filter(|text| spec::parse(&text.text.value).is_ok()).cloned().collect()
    }
}

fn swap<A, B>((a, b): (A, B)) -> (B, A) {
    (b, a)
}

/// What is wrong, where, and what to do.
type Wrong = Box<Diagnostic>;

struct Maker<'m> {
    binder: &'m mut Binder,
    file: &'m SourceFile,
}

impl Binder {
    /// Makes arrays, textures and surfaces; their buffers are there.
    pub(super) fn make_images(&mut self, described: &Described) {
        let Some(file) = &described.file else { return };
        let mut maker = Maker { binder: self, file };
        let mut errors = Vec::new();
        for (entry, text) in &described.arrays {
            errors.extend(maker.array(entry, text).err());
        }
        for (entry, text) in &described.textures {
            errors.extend(maker.texture(entry, text).err());
        }
        for (entry, text) in &described.surfaces {
            errors.extend(maker.surface(entry, text).err());
        }
        self.errors.extend(errors.into_iter().map(|error| *error));
    }
}

impl Maker<'_> {
    fn wrong<T>(&self, at: &Spanned<T>, message: String, help: impl Into<String>) -> Wrong {
        let span = at.span();
        let error = Diagnostic::error(message).at(self.file, Span::new(span.start, span.end), "here");
        Box::new(error.help(help))
    }

    /// The name, if it is a new one.
    fn name(&self, name: &Spanned<String>) -> Result<String, Wrong> {
        let own = name.get_ref();
        let Binder { names, images, plan, .. } = &*self.binder;
        let is_array = plan.arrays.iter().any(|array| array.name == *own);
        if names.contains_key(own) || images.contains_key(own) || is_array {
            let help = "buffers, arrays, textures and surfaces have names of their own";
            return Err(self.wrong(name, format!("`{own}` is defined twice"), help));
        }
        Ok(own.clone())
    }

    /// The buffer or the array that a text names or defines.
    fn named(&self, text: &SpecText) -> Result<Named, Wrong> {
        let refuse = |message: String, help: String| Box::new(text.text.error(message, "here").help(help));
        let spec = spec::parse(&text.text.value).map_err(|error| Box::new(text.error(&error)))?;
        if matches!(spec.kind, SpecKind::Value { .. }) {
            let help = "write `@name`, or a buffer such as `a:f32[64]=iota`";
            return Err(refuse(format!("`{}` is a value, where a buffer belongs", spec.name), help.into()));
        }
        if let Some(index) = self.binder.plan.arrays.iter().position(|array| array.name == spec.name) {
            return Ok(Named::Array(index));
        }
        match self.binder.names.get(&spec.name) {
            Some(index) => Ok(Named::Buffer(*index)),
            None => Err(refuse(
                format!("there is no buffer or array `{}`", spec.name),
                "define it, as in `a:f32[64]=iota`, or by an `[[array]]`".into(),
            )),
        }
    }

    fn bytes(&self, buffer: usize) -> u64 {
        self.binder.plan.buffers.get(buffer).map_or(0, |buffer| buffer.contents.len() as u64)
    }

    fn texel(&self, ty: &Spanned<String>, channels: Option<&Spanned<u8>>) -> Result<Texel, Wrong> {
        const TYPES: &str = "the types of texels are i8 u8 i16 u16 i32 u32 f16 f32";
        let named = TYPE_NAMES.iter().find(|(name, _)| name == ty.get_ref());
        let channel = named.and_then(|(_, ty)| channel(*ty));
        let Some(channel) = channel else {
            return Err(self.wrong(ty, format!("`{}` is no type of a texel", ty.get_ref()), TYPES));
        };
        let Some(channels) = channels else { return Ok(Texel { channel, channels: 1 }) };
        match *channels.get_ref() {
            channels @ (1 | 2 | 4) => Ok(Texel { channel, channels }),
            count => {
                let help = "there are texels of 1, 2 and 4";
                Err(self.wrong(channels, format!("a texel of {count} channels"), help))
            }
        }
    }

    fn sizes(&self, size: &Spanned<Vec<u32>>, most: usize) -> Result<Vec<u32>, Wrong> {
        let given = size.get_ref();
        let fits = given.iter().all(|n| (1..=MOST_TEXELS).contains(n));
        if given.is_empty() || given.len() > most || !fits {
            let help = format!("give up to {most} sizes from 1 to {MOST_TEXELS}, as in `size = [16, 8]`");
            return Err(self.wrong(size, "this is no size of an image".into(), help));
        }
        Ok(given.clone())
    }

    fn array(&mut self, entry: &ArrayEntry, text: &SpecText) -> Result<(), Wrong> {
        let name = self.name(&entry.name)?;
        let texel = self.texel(&entry.ty, entry.channels.as_ref())?;
        let size = self.sizes(&entry.size, 3)?;
        let extent = match (&size[..], entry.layered) {
            ([width], false) => [*width, 0, 0],
            ([width, height], false) => [*width, *height, 0],
            ([width, layers], true) => [*width, 0, *layers],
            ([width, height, last], _) => [*width, *height, *last],
            _ => {
                let help = "the last of its sizes counts layers, as in `size = [16, 8, 3]`";
                return Err(self.wrong(&entry.size, "a layered array needs layers".into(), help));
            }
        };
        let shape = ArrayShape { base: self.binder.plan.next_array(), extent, layered: entry.layered, texel };
        let Named::Buffer(contents) = self.named(text)? else {
            let help = "an array is copied from a buffer, and to it at the end";
            return Err(self.wrong(&entry.contents, "its contents are no buffer".into(), help));
        };
        let (has, needs) = (self.bytes(contents), shape.bytes());
        if Some(has) != needs {
            let message = match needs {
                Some(needs) => format!("the array `{name}` has {needs} bytes, but its contents have {has}"),
                None => format!("the array `{name}` is too large"),
            };
            return Err(self.wrong(&entry.size, message, "give as many bytes as the array has texels"));
        }
        self.binder.plan.arrays.push(PlanArray { name, shape, contents });
        Ok(())
    }

    fn texture(&mut self, entry: &TextureEntry, text: &SpecText) -> Result<(), Wrong> {
        let name = self.name(&entry.name)?;
        let (storage, texel, axes) = match self.named(text)? {
            Named::Array(array) => self.of_array(entry, array)?,
            Named::Buffer(buffer) => self.of_buffer(entry, buffer)?,
        };
        let sampling = self.sampling(entry, texel, storage, axes)?;
        self.add(name, PlanImage { surface: false, storage, texel, sampling });
        Ok(())
    }

    fn of_array(&self, entry: &TextureEntry, array: usize) -> Result<(PlanStorage, Texel, usize), Wrong> {
        let help = "the array says it";
        let refuse =
            |what| format!("the texture `{}` of an array has no {what} of its own", entry.name.get_ref());
        if let Some(at) = &entry.ty {
            return Err(self.wrong(at, refuse("type"), help));
        }
        if let Some(at) = &entry.channels {
            return Err(self.wrong(at, refuse("channels"), help));
        }
        if let Some(at) = &entry.size {
            return Err(self.wrong(at, refuse("size"), help));
        }
        if let Some(at) = &entry.pitch {
            return Err(self.wrong(at, refuse("pitch"), help));
        }
        let shape = self.binder.plan.arrays[array].shape;
        Ok((PlanStorage::Array(array), shape.texel, shape.axes()))
    }

    fn of_buffer(&self, entry: &TextureEntry, buffer: usize) -> Result<(PlanStorage, Texel, usize), Wrong> {
        let Some(ty) = &entry.ty else {
            let own = self.binder.plan.buffers.get(buffer).map_or("f32", |buffer| type_name(buffer.ty));
            let message = format!("the texture `{}` of a buffer needs a type", entry.name.get_ref());
            return Err(self.wrong(&entry.name, message, format!("add `type = \"{own}\"`")));
        };
        let texel = self.texel(ty, entry.channels.as_ref())?;
        let Some(size) = &entry.size else {
            if let Some(pitch) = &entry.pitch {
                let help = "add `size = [WIDTH, HEIGHT]`";
                return Err(self.wrong(pitch, "a pitch without a size".into(), help));
            }
            return Ok((PlanStorage::Buffer(buffer), texel, 1));
        };
        let &[width, height] = &self.sizes(size, 2)?[..] else {
            let help = "a buffer of one axis needs no size";
            return Err(self.wrong(size, "a texture of a buffer has two sizes or none".into(), help));
        };
        let row = u64::from(width) * u64::from(texel.bytes());
        let pitch = entry.pitch.as_ref().map_or(row, |pitch| *pitch.get_ref());
        let at = entry.pitch.as_ref().map_or_else(|| size.span(), Spanned::span);
        let at = Spanned::new(at, ());
        if pitch < row || !pitch.is_multiple_of(PITCH_ALIGNMENT) {
            let message = format!("{pitch} bytes from row to row, where a row has {row}");
            let help = format!("give a `pitch` of at least that which is a multiple of {PITCH_ALIGNMENT}");
            return Err(self.wrong(&at, message, help));
        }
        let (has, needs) = (self.bytes(buffer), pitch.saturating_mul(u64::from(height) - 1) + row);
        if has < needs {
            let message = format!("the buffer has {has} bytes, but {height} rows need {needs}");
            return Err(self.wrong(&at, message, "give the buffer more elements"));
        }
        Ok((PlanStorage::Rows { buffer, extent: [width, height], pitch }, texel, 2))
    }

    fn sampling(
        &self,
        entry: &TextureEntry,
        texel: Texel,
        storage: PlanStorage,
        axes: usize,
    ) -> Result<Sampling, Wrong> {
        let linear = self.choose(entry.filter.as_ref(), &[("point", false), ("linear", true)])?;
        let floats = self.choose(entry.read.as_ref(), &[("element", false), ("normalized", true)])?;
        let normalized =
            self.choose(entry.coordinates.as_ref(), &[("element", false), ("normalized", true)])?;
        let edges = self.edges(entry, axes)?;
        let small = texel.channel.bytes() < 4 && !texel.channel.is_float();
        if let Some(at) = entry.read.as_ref().filter(|_| floats && !small) {
            let help = "only integers of 8 and 16 bits are";
            return Err(self.wrong(at, "such texels are not read as normalized floats".into(), help));
        }
        if let Some(at) = entry.filter.as_ref().filter(|_| linear && !floats && !texel.channel.is_float()) {
            let help = "add `read = \"normalized\"`, or leave the filter out";
            return Err(self.wrong(at, "integers cannot be filtered".into(), help));
        }
        let plain = !linear && !normalized && entry.address.is_none();
        if matches!(storage, PlanStorage::Buffer(_)) && !plain {
            let help = "give the buffer a `size` of two axes, or make an `[[array]]` of it";
            let message = "a texture of linear memory has neither filter nor addressing".to_owned();
            return Err(self.wrong(&entry.name, message, help));
        }
        let folds = edges.iter().any(|edge| matches!(edge, Edge::Wrap | Edge::Mirror));
        if let Some(at) = entry.address.as_ref().filter(|_| folds && !normalized) {
            let help = "add `coordinates = \"normalized\"`";
            return Err(self.wrong(at, "`wrap` and `mirror` need normalized coordinates".into(), help));
        }
        Ok(Sampling { edges, linear, normalized, floats })
    }

    fn choose(&self, given: Option<&Spanned<String>>, of: &[(&str, bool)]) -> Result<bool, Wrong> {
        let Some(given) = given else { return Ok(false) };
        match of.iter().find(|(name, _)| name == given.get_ref()) {
            Some((_, chosen)) => Ok(*chosen),
            None => Err(self.unknown(given, given.get_ref(), of.iter().map(|(name, _)| *name).collect())),
        }
    }

    fn unknown<T>(&self, at: &Spanned<T>, given: &str, names: Vec<&str>) -> Wrong {
        let help = match nearest(given, names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("write one of `{}`", names.join("`, `")),
        };
        self.wrong(at, format!("`{given}` is not known here"), help)
    }

    fn edges(&self, entry: &TextureEntry, axes: usize) -> Result<[Edge; 3], Wrong> {
        const NAMES: [(&str, Edge); 4] = [
            ("clamp", Edge::Clamp),
            ("border", Edge::Border),
            ("wrap", Edge::Wrap),
            ("mirror", Edge::Mirror),
        ];
        let Some(given) = &entry.address else { return Ok([Edge::Clamp; 3]) };
        let of = |name: &String| match NAMES.iter().find(|(known, _)| known == name) {
            Some((_, edge)) => Ok(*edge),
            None => Err(self.unknown(given, name, NAMES.iter().map(|(name, _)| *name).collect())),
        };
        match given.get_ref() {
            Addresses::All(name) => Ok([of(name)?; 3]),
            Addresses::Each(names) if names.len() == axes => {
                let mut edges = [Edge::Clamp; 3];
                for (edge, name) in edges.iter_mut().zip(names) {
                    *edge = of(name)?;
                }
                Ok(edges)
            }
            Addresses::Each(names) => {
                let message = format!("{} modes for {axes} axes", names.len());
                Err(self.wrong(given, message, "give one for all axes, or one for each"))
            }
        }
    }

    fn surface(&mut self, entry: &SurfaceEntry, text: &SpecText) -> Result<(), Wrong> {
        let name = self.name(&entry.name)?;
        let Named::Array(array) = self.named(text)? else {
            let help = "make an `[[array]]` of it";
            return Err(self.wrong(&entry.of, "a surface needs an array".into(), help));
        };
        let texel = self.binder.plan.arrays[array].shape.texel;
        let (storage, sampling) = (PlanStorage::Array(array), Sampling::default());
        self.add(name, PlanImage { surface: true, storage, texel, sampling });
        Ok(())
    }

    fn add(&mut self, name: String, image: PlanImage) {
        let Binder { plan, images, .. } = &mut *self.binder;
        images.insert(name, plan.images.len());
        plan.images.push(image);
    }
}

/// What a text names.
enum Named {
    Buffer(usize),
    Array(usize),
}

fn channel(ty: ElementType) -> Option<Channel> {
    Some(match ty {
        ElementType::I8 => Channel::S8,
        ElementType::U8 => Channel::U8,
        ElementType::I16 => Channel::S16,
        ElementType::U16 => Channel::U16,
        ElementType::I32 => Channel::S32,
        ElementType::U32 => Channel::U32,
        ElementType::F16 => Channel::F16,
        ElementType::F32 => Channel::F32,
        ElementType::I64 | ElementType::U64 | ElementType::Bf16 | ElementType::F64 => return None,
    })
}
