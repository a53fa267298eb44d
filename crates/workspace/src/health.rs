//! Health: what the server can do, and whether it can do it now.
//!
//! The published output schema of `check_status` describes its lists, not their elements. The empty `description`s keep
//! the documentation of these types out of that schema.

use schemars::JsonSchema;
use serde::Serialize;

/// The health of some part of the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// What the part can do.
    pub capabilities: Vec<Capability>,
    /// What a person should see to.
    pub warnings: Vec<Warning>,
}

/// One thing that the server can do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields, description = "")]
pub struct Capability {
    /// What it is.
    pub name: &'static str,
    /// Whether it works.
    pub state: CapabilityState,
}

/// Whether something works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CapabilityState {
    /// It works.
    Works,
    /// It was not set up.
    Off,
    /// It is set up and does not work.
    Broken,
}

/// Something that a person should see to.
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
