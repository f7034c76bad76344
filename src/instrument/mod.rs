//! From a module to its instrumented text: the sites, the edits and the device runtime.

mod site;

pub use site::{Site, SiteId, SiteKind, SiteTable, Unlogged};
