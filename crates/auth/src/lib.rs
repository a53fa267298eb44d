//! Who may do what.
//!
//! A **scope** is one permission: `read:/notes/`, `write:/src/*`, `assets:publish`. An **access** is
//! what a call is about to do. A caller's **scopes** cover an access or they do not; what no scope covers
//! is denied.

mod scope;

pub use scope::{Access, Need, Scopes, Verb};
