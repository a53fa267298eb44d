//! What must hold of the configuration whatever its file holds: the property that the fuzz target asserts.

use crate::config::fuzzing;

/// Reads a configuration file. An error has a position in the file.
pub fn configuration(bytes: &[u8]) {
    fuzzing::configuration(bytes);
}

#[cfg(test)]
#[path = "../../../fuzz/seeds.rs"]
mod seeds;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_properties_hold_for_the_seeds() {
        seeds::each_seed("configuration", configuration);
    }
}
