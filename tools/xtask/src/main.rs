//! Chores of the workspace: `cargo xtask NAME`.

fn main() {}
