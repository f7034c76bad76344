//! Textures: from the bytes of texels to what a fetch gives.
//!
//! As a device does it: fractions of coordinates have 8 bits (`backend::image`), and texels are weighed with them.

use super::ops::half_to_float;
use crate::backend::image::{Axis, Channel, ImageObject, Texel};

/// The four values of a fetch, as bits.
pub(super) type Values = [u32; 4];

/// One channel of a texel, widened.
fn channel(channel: Channel, bytes: &[u8]) -> u32 {
    let mut word = [0; 4];
    for (to, from) in word.iter_mut().zip(bytes) {
        *to = *from;
    }
    let bits = u32::from_le_bytes(word);
    match channel {
        Channel::U8 | Channel::U16 | Channel::U32 | Channel::S32 | Channel::F32 => bits,
        Channel::S8 => i32::from(bits as u8 as i8).cast_unsigned(),
        Channel::S16 => i32::from(bits as u16 as i16).cast_unsigned(),
        Channel::F16 => half_to_float(bits as u16).to_bits(),
    }
}

/// An integer as a float from 0 or -1 to 1.
fn normalized(channel: Channel, bits: u32) -> f32 {
    let signed = bits.cast_signed() as f32;
    match channel {
        Channel::U8 => bits as f32 / 255.0,
        Channel::U16 => bits as f32 / 65535.0,
        Channel::S8 => (signed / 127.0).max(-1.0),
        Channel::S16 => (signed / 32767.0).max(-1.0),
        Channel::U32 | Channel::S32 | Channel::F16 | Channel::F32 => f32::from_bits(bits),
    }
}

/// What the texels of a texture are read as.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader {
    texel: Texel,
    /// Fetches give floats, integers among them.
    floats: bool,
}

impl Reader {
    pub(super) fn of(image: &ImageObject) -> Self {
        Self { texel: image.texel, floats: image.gives_floats() }
    }

    /// The values of one texel; zeros where there is none, and in channels that it lacks, as on an H200.
    pub(super) fn texel(self, bytes: Option<&[u8]>) -> Values {
        let size = self.texel.channel.bytes() as usize;
        let mut values = [0; 4];
        for (at, value) in values.iter_mut().enumerate().take(self.texel.channels.into()) {
            let own = bytes.and_then(|bytes| bytes.get(at * size..(at + 1) * size));
            let bits = own.map_or(0, |own| channel(self.texel.channel, own));
            *value = if self.floats { normalized(self.texel.channel, bits).to_bits() } else { bits };
        }
        values
    }

    /// The values of all texels of a linear filter, weighed. `texel` gives those at a corner.
    pub(super) fn filtered<E>(
        self,
        [x, y, z]: [Axis; 3],
        mut texel: impl FnMut([Option<u32>; 3]) -> Result<Values, E>,
    ) -> Result<Values, E> {
        let mut sums = [0f64; 4];
        for (k, of_z) in weights(z) {
            for (j, of_y) in weights(y) {
                for (i, of_x) in weights(x) {
                    let weight = of_x * of_y * of_z;
                    let values = texel([i, j, k])?;
                    for (sum, value) in sums.iter_mut().zip(values) {
                        *sum += weight * f64::from(f32::from_bits(value));
                    }
                }
            }
        }
        let mut values = [0; 4];
        for (value, sum) in values.iter_mut().zip(sums).take(self.texel.channels.into()) {
            *value = (sum as f32).to_bits();
        }
        Ok(values)
    }
}

/// The places of an axis that count, with their weights.
fn weights(axis: Axis) -> impl Iterator<Item = (Option<u32>, f64)> {
    let second = f64::from(axis.fraction) / 256.0;
    let [a, b] = axis.at;
    [(a, 1.0 - second), (b, second)].into_iter().filter(|(_, weight)| *weight > 0.0)
}
