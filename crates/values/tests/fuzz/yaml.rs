//! What must hold for every text that the YAML reader gets.

use values::yaml;

/// Reads `bytes`; whatever was read must survive being written and read again.
pub(crate) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let _ = yaml::parse_all(text);
    let _ = yaml::parse_strict(text);
    let _ = yaml::locate(text, "/a/0/b");
    let Ok(value) = yaml::parse(text) else {
        return;
    };
    for written in [yaml::emit(&value), yaml::emit_v3(&value)] {
        match yaml::parse(&written) {
            Ok(again) => assert_eq!(again, value, "{written:?}"),
            Err(error) => panic!("{error}: {written:?}"),
        }
    }
}
