//! Operand types, as the dot words name them.

/// A type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ty {
    /// Untyped bits.
    B(u32),
    /// Unsigned.
    U(u32),
    /// Signed.
    S(u32),
    F16,
    F16x2,
    Bf16,
    Bf16x2,
    /// 8-bit floats, of matrices.
    E4m3,
    E5m2,
    /// Two of them, which only `cvt` knows.
    E4m3x2,
    E5m2x2,
    F32,
    F32x2,
    F64,
    /// `.tf32`, a 32-bit register.
    Tf32,
    U16x2,
    S16x2,
    Pred,
}

impl Ty {
    /// The type of this dot word.
    pub(super) fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "b1" => Self::B(1),
            "b8" => Self::B(8),
            "b16" => Self::B(16),
            "b32" => Self::B(32),
            "b64" => Self::B(64),
            "b128" => Self::B(128),
            "u4" => Self::U(4),
            "u8" => Self::U(8),
            "u16" => Self::U(16),
            "u32" => Self::U(32),
            "u64" => Self::U(64),
            "s4" => Self::S(4),
            "s8" => Self::S(8),
            "s16" => Self::S(16),
            "s32" => Self::S(32),
            "s64" => Self::S(64),
            "f16" => Self::F16,
            "f16x2" => Self::F16x2,
            "bf16" => Self::Bf16,
            "bf16x2" => Self::Bf16x2,
            "e4m3" => Self::E4m3,
            "e5m2" => Self::E5m2,
            "e4m3x2" => Self::E4m3x2,
            "e5m2x2" => Self::E5m2x2,
            "f32" => Self::F32,
            "f32x2" => Self::F32x2,
            "f64" => Self::F64,
            "tf32" => Self::Tf32,
            "u16x2" => Self::U16x2,
            "s16x2" => Self::S16x2,
            "pred" => Self::Pred,
            _ => return None,
        })
    }

    /// Bits of a value.
    pub(super) fn bits(self) -> u32 {
        match self {
            Self::B(bits) | Self::U(bits) | Self::S(bits) => bits,
            Self::E4m3 | Self::E5m2 => 8,
            Self::F16 | Self::Bf16 | Self::E4m3x2 | Self::E5m2x2 => 16,
            Self::F16x2 | Self::Bf16x2 | Self::F32 | Self::Tf32 | Self::U16x2 | Self::S16x2 => 32,
            Self::F64 | Self::F32x2 => 64,
            Self::Pred => 1,
        }
    }

    /// Bytes of a value.
    pub(super) fn bytes(self) -> u32 {
        self.bits() / 8
    }

    /// Whether it is a signed integer.
    pub(super) fn is_signed(self) -> bool {
        matches!(self, Self::S(_))
    }

    /// Whether it is an integer or untyped.
    pub(super) fn is_int(self) -> bool {
        matches!(self, Self::B(_) | Self::U(_) | Self::S(_))
    }
}

/// The low bits of a value.
pub(super) fn low(value: u64, bits: u32) -> u64 {
    if bits >= 64 { value } else { value & ((1 << bits) - 1) }
}

/// The low bits, with their sign above.
pub(super) fn extend(value: u64, bits: u32) -> u64 {
    let shift = 64 - bits.clamp(1, 64);
    ((value << shift).cast_signed() >> shift).cast_unsigned()
}
