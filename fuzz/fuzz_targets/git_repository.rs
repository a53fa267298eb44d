//! All files of a git repository together, with references, trees and rules of what is ignored.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| pintle_git::fuzzing::git_repository(bytes));
