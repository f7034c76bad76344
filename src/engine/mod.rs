//! engine
mod clock;
