//! How the program is built: what makes an error in its C code hard to exploit.

use std::{path::Path, process::Command};

#[cfg(target_os = "linux")]
#[test]
fn the_program_is_position_independent_with_full_relro_and_a_stack_protector() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/check-binary");
    let output = Command::new(script).arg(env!("CARGO_BIN_EXE_pintle")).output().expect("the script runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
