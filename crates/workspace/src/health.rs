//! Health: the capabilities of the server, and whether each works now.
//!
//! The published output schema of `check_status` describes its lists, not their elements. The empty `description`s keep
//! the documentation of these types out of that schema.

use schemars::JsonSchema;
use serde::Serialize;

/// The health of some part of the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Its capabilities.
    pub capabilities: Vec<Capability>,
    /// Problems that an operator should fix.
    pub warnings: Vec<Warning>,
}

/// One capability of the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields, description = "")]
pub struct Capability {
    /// Its name.
    pub name: &'static str,
    /// Whether it works.
    pub state: CapabilityState,
}

/// The state of a capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CapabilityState {
    /// It works.
    Works,
    /// It is not configured.
    Off,
    /// It is configured and does not work.
    Broken,
}

/// A problem that an operator should fix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields, description = "")]
pub struct Warning {
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub remedy: String,
}

impl Health {
    pub(crate) fn add(&mut self, name: &'static str, state: CapabilityState) {
        self.capabilities.push(Capability { name, state });
    }

    pub(crate) fn warn(&mut self, message: impl Into<String>, remedy: impl Into<String>) {
        self.warnings.push(Warning { message: message.into(), remedy: remedy.into() });
    }

    pub(crate) fn append(&mut self, other: Self) {
        self.capabilities.extend(other.capabilities);
        self.warnings.extend(other.warnings);
    }

    /// Whether nothing is broken.
    pub(crate) fn is_good(&self) -> bool {
        self.capabilities.iter().all(|capability| capability.state != CapabilityState::Broken)
    }
}
