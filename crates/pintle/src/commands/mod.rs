//! One file a command.

pub mod audit;
pub mod call;
pub mod contract;
pub mod index;
pub mod pack;
pub mod search;
pub mod serve;
pub mod token;
pub mod tool;
pub mod tools;
pub mod validate;
