//! What a `reconcile` binding is, what its hook is shown, and what it answers. See docs/hooks.md#writing-a-controller.

mod binding;
mod context;
mod dropped;
mod ownership;
mod quota;
mod result;

pub use self::binding::{
    ChildKind, FieldPath, MAX_CONCURRENCY, MAX_FIELDS, MAX_KINDS, MAX_NAMED, MAX_PATH_PARTS, ObjectKind,
    ParentReference, ReconcileBinding, RelatedKind, Update,
};
pub use self::context::{Reconciliation, ShownKind};
pub use self::dropped::dropped_fields;
pub use self::ownership::{ANOTHER_NAME, is_child_of_same};
pub(crate) use self::ownership::{CHILD_LABEL, MADE_BY, OWNED_BY};
pub use self::quota::exceeds_quota_alone;
pub use self::result::{
    Condition, MAX_BYTES, MAX_CHILDREN, MAX_CONDITIONS, ReconcileResult, ResultError, parse,
};
