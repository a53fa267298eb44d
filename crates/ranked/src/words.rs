//! The words of files, ranked by BM25.

mod block;
mod build;
mod classes;
mod counts;
mod line;
mod postings;
mod query;
mod rank;
mod section;
mod term;
mod tokens;

pub use build::WordsBuilder;
pub use line::{BestLine, best_line};
pub use rank::{Ranked, WordsPart, rank, term_weights};
pub use section::Words;
