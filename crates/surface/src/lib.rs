//! The tool surface of an MCP server: what its clients rely on, and whether a change of it breaks them.
//!
//! A **surface** is a server's tool definitions with what belongs to them: schemas, versions, annotations, error codes.
//! A **lock** is a surface in a file. A **finding** is one difference between two surfaces, with a **verdict**
//! (`compatible`, `breaks`, `unknown`) and, for `breaks`, a **witness**: a value that shows it. A **bump** is a higher
//! `schemaVersion`, by which a server declares a change. A **lint finding** is what one **client** would refuse, cut or
//! rewrite in a surface. Nothing here does I/O.

mod changes;
mod client;
mod clients;
mod compare;
mod decide;
mod dialect;
mod document;
mod instances;
mod judge;
mod lint;
mod lint_schema;
mod members;
mod minimize;
mod read;
mod rules;
mod sarif;
mod subschemas;
mod surface;

pub use client::{Check, Client, ClientRule, Severity, UnknownClient, client_named};
pub use clients::CLIENTS;
pub use compare::{Comparison, Finding, Outcome, compare};
pub use decide::{Decision, Side, Verdict, decide};
pub use document::{DocumentError, MOST_LEVELS, read_deep, read_document};
pub use judge::{SchemaFinding, SchemaPair, judge, judge_by_structure};
pub use lint::{LintFinding, lint};
pub use read::SurfaceError;
pub use rules::{RULES, Rule, Subject};
pub use sarif::{lint_sarif, sarif};
pub use surface::{LOCK_VERSION, Surface, SurfaceTool};
