//! Reads arbitrary bytes as objects of every kind, completes and validates them.

use apiserver::{defaults, kind, validation};
use objects::{decode, types};

/// Takes the bytes through all that a create does with them.
pub(crate) fn run(bytes: &[u8]) {
    let Ok(node) = decode::parse(bytes) else {
        return;
    };
    for kind in kind::builtin() {
        let Some(name) = types::name_of_kind(&kind.group, &kind.version, &kind.kind) else {
            continue;
        };
        let shape = types::Shape::Named(name);
        if let Ok(mut decoded) = decode::typed(node.clone(), &shape) {
            defaults::apply(&mut decoded.value, &shape);
            let report = validation::create(kind, &decoded.value);
            let _ = (report, validation::update(kind, &decoded.value, &decoded.value));
        }
    }
}
