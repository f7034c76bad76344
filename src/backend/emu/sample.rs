//! Textures: from the bytes of texels to what a fetch gives.
//!
//! Linear filters are those of an H200, whose documentation leaves open how they round: `benches/results/2026-11-30-textures.md` says
//! what was compared.

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

    /// The values of all texels of a linear filter, weighed. `bytes` gives those at a corner.
    pub(super) fn filtered<E>(
        self,
        axes: [Axis; 3],
        mut bytes: impl FnMut([Option<u32>; 3]) -> Result<Option<Bytes>, E>,
    ) -> Result<Values, E> {
        let size = self.texel.channel.bytes() as usize;
        let [x, y, z] = axes.map(|axis| axis.at);
        let mut sums = [0f64; 4];
        for (corner, weight) in weights(axes.map(|axis| axis.fraction)).into_iter().enumerate() {
            if weight == 0 {
                continue;
            }
            let Some(bytes) = bytes([x[corner & 1], y[corner >> 1 & 1], z[corner >> 2]])? else { continue };
            for (sum, own) in sums.iter_mut().zip(bytes.chunks_exact(size)) {
                *sum += f64::from(weight) * widened(self.texel.channel, own);
            }
        }
        let mut values = [0; 4];
        for (value, sum) in values.iter_mut().zip(sums).take(self.texel.channels.into()) {
            *value = rounded(self.texel.channel, sum / 256.0).to_bits();
        }
        Ok(values)
    }
}

/// The bytes of a texel, and what is behind them.
pub(super) type Bytes = [u8; 16];

/// What a filter weighs: of small integers 16 bits, of signed bytes some more.
fn widened(of: Channel, bytes: &[u8]) -> f64 {
    let bits = channel(of, bytes);
    let signed = f64::from(bits.cast_signed());
    match of {
        Channel::U8 => f64::from(bits) * 257.0,
        Channel::U16 => f64::from(bits),
        Channel::S8 => (signed.max(-127.0) * (16.0 * 32767.0 / 127.0)).floor() / 16.0,
        Channel::S16 => signed.max(-32767.0),
        Channel::U32 | Channel::S32 | Channel::F16 | Channel::F32 => f32::from_bits(bits).into(),
    }
}

/// What a filter makes of the weighed sum: as many bits as it weighs.
fn rounded(channel: Channel, sum: f64) -> f32 {
    let rounded = match channel {
        Channel::U8 | Channel::U16 => (sum + 0.5).floor() / 65535.0,
        Channel::S8 | Channel::S16 => (sum + 0.5).floor() / 32767.0,
        Channel::F16 if sum.is_finite() => {
            let exponent = (sum.abs().log2().floor() as i32).max(-14);
            let last_place = f64::exp2(f64::from(exponent - 10));
            (sum / last_place).round() * last_place
        }
        Channel::U32 | Channel::S32 | Channel::F16 | Channel::F32 => sum,
    };
    rounded as f32
}

/// The weights of the eight corners, of 256 in all, where the second places count so much of 256: first x and z are shared out,
/// then what came out by y.
fn weights([x, y, z]: [u32; 3]) -> [u32; 8] {
    let near = 256 - z;
    // Halves go up where x is the second, and down where it is the first.
    let second = (x * near + 128) >> 8;
    let by_x_and_z = [[near - second, second], [z + second - x, x - second]];
    let mut weights = [0; 8];
    for (k, both) in by_x_and_z.into_iter().enumerate() {
        for (i, weight) in both.into_iter().enumerate() {
            let second = (weight * y + 127 + i as u32) >> 8;
            weights[4 * k + i] = weight - second;
            weights[4 * k + 2 + i] = second;
        }
    }
    weights
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_256_in_all() {
        for x in (0..256).step_by(3) {
            for y in (0..256).step_by(5) {
                for z in (0..256).step_by(7) {
                    assert_eq!(weights([x, y, z]).iter().sum::<u32>(), 256);
                }
            }
        }
    }

    /// What an H200 must have weighed with.
    #[test]
    fn weights_are_those_of_a_device() {
        assert_eq!(weights([233, 89, 2]), [15, 151, 8, 80, 0, 1, 0, 1]);
        assert_eq!(weights([129, 128, 0]), [64, 64, 63, 65, 0, 0, 0, 0]);
        assert_eq!(weights([89, 181, 60]), [38, 20, 90, 48, 11, 6, 28, 15]);
    }
}
