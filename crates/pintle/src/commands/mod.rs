//! One file a command.

pub mod call;
pub mod serve;
pub mod tools;
pub mod validate;
