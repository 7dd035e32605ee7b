//! The shell framework, tested by the script that lies beside it.

use std::process::Command;

#[test]
fn the_shell_framework_passes_its_own_tests() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/src/hook/shell/test.sh");
    let output = Command::new("bash").arg(script).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains(" 0 failed "), "{text}");
}
