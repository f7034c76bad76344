//! How a symbol was called.

/// Which of the symbols that stand for one call.
#[derive(Clone, Copy)]
pub(crate) struct Cx {
    /// The call without what tells its versions apart.
    pub(crate) call: &'static str,
    /// By a variant for which the default stream is the thread's own.
    pub(crate) per_thread: bool,
}
