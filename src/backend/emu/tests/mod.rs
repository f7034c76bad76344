//! Tests of the emulator: small programs with known results.
