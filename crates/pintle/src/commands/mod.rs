//! One file a command.

pub mod call;
pub mod index;
pub mod search;
pub mod serve;
pub mod tool;
pub mod tools;
pub mod validate;
