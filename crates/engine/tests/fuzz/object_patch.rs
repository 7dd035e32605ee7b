//! What must hold for everything that a hook writes into `KUBERNETES_PATCH_PATH`.

use engine::object_patch::{self, Existing, Operation};

/// Reads `bytes`; operations that pass must have an address.
pub(crate) fn run(bytes: &[u8]) {
    let patches = match object_patch::parse(bytes) {
        Ok(patches) => patches,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    for patch in patches {
        assert!(!patch.target.kind.is_empty(), "{patch}");
        let may_be_nameless = matches!(
            patch.operation,
            Operation::Create { existing: Existing::Fail | Existing::Keep | Existing::Update, .. }
        );
        assert!(may_be_nameless || !patch.target.name.is_empty(), "{patch}");
    }
}
