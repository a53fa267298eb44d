//! What Pintle promises, seen from outside: every test starts the real binary and speaks to it.

mod support;

mod assets;
mod backend;
mod bindings;
mod cancel;
mod command_line;
mod conversations;
mod crash;
mod escape;
mod failures;
mod framing;
mod http;
mod idempotency;
mod lifecycle;
mod listing;
mod load;
mod log;
mod mcp;
mod parity;
mod paths;
mod progress;
mod race;
mod readme;
mod revisions;
mod schema_suite;
mod scopes;
mod search_build;
mod search_clock;
mod search_command;
mod search_differential;
mod search_fresh;
mod search_scopes;
mod search_tools;
mod transcripts;
mod validate_command;
