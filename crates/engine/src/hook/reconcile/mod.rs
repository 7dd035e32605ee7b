//! What a `reconcile` binding is, what its hook is shown, and what it answers. See docs/hooks.md#writing-a-controller.

mod binding;
mod context;
mod result;

pub use self::binding::{
    ChildKind, MAX_CONCURRENCY, MAX_KINDS, ObjectKind, ParentReference, ReconcileBinding, RelatedKind, Update,
};
pub use self::context::{Reconciliation, ShownKind};
pub use self::result::{
    Condition, MAX_BYTES, MAX_CHILDREN, MAX_CONDITIONS, ReconcileResult, ResultError, parse,
};
