//! Names and ids: one type for each, so that none can be taken for another.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};

macro_rules! name {
    ($(#[$doc:meta])* $type:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
        #[serde(transparent)]
        pub struct $type(Arc<str>);

        impl $type {
            /// Returns the name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $type {
            fn from(name: &str) -> Self {
                Self(name.into())
            }
        }

        impl From<String> for $type {
            fn from(name: String) -> Self {
                Self(name.into())
            }
        }

        impl AsRef<str> for $type {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl std::borrow::Borrow<str> for $type {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }
    };
}

macro_rules! id {
    ($(#[$doc:meta])* $type:ident, $sign:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
        pub struct $type(u64);

        impl $type {
            /// Returns the id with this number.
            pub fn new(number: u64) -> Self {
                Self(number)
            }

            /// Returns the number of this id.
            pub fn number(self) -> u64 {
                self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($sign, "{}"), self.0)
            }
        }
    };
}

name! {
    /// The name of a module in kebab-case, without the order number: `cert-manager`.
    ModuleName
}
name! {
    /// The name of a hook inside its scope: `hooks/10-prepare.sh`.
    HookName
}
name! {
    /// The name of a Helm release.
    ReleaseName
}
name! {
    /// A crontab line as hooks write it, with seconds or without.
    CronLine
}

id! {
    /// One attempt to carry out one effect.
    ///
    /// A completion that carries a `RunId` the engine no longer waits for is
    /// stale (its task was dropped or restarted) and is ignored.
    RunId, "#"
}
id! {
    /// A task, from the moment it is put in a queue until it is done or dropped.
    TaskId, "t"
}
id! {
    /// A watch with a filter. Bindings that select and filter alike share one.
    MonitorId, "m"
}
id! {
    /// A command of a person or program that waits for an answer.
    CommandId, "c"
}
id! {
    /// A call of a platform at the broker that waits for an answer.
    BrokerCallId, "b"
}
id! {
    /// A question of the API server (admission, conversion) that waits for an answer.
    ReviewId, "r"
}

/// The name of a queue, with what it is for.
///
/// A hook may give its queue any name. One that looks like that of a queue of the operator is a queue of hooks all the same,
/// and another one than that.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct QueueName {
    text: Arc<str>,
    kind: QueueKind,
}

/// What a queue is for.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
enum QueueKind {
    /// Converges, modules, and hooks that ask for no other queue.
    Main,
    /// Hooks that ask for it. Keyed work is shown under such a name, too.
    Named,
    /// Modules that configurations of one namespace brought.
    OfNamespace,
    /// One module that gave way to the others of this queue.
    Own(Arc<QueueName>),
    /// Modules of one order number.
    Parallel,
}

/// The text of the queue that converges run in.
const MAIN: &str = "main";

impl From<&str> for QueueName {
    /// Returns the name of the queue that a binding asks for.
    fn from(name: &str) -> Self {
        let kind = if name == MAIN { QueueKind::Main } else { QueueKind::Named };
        Self { text: name.into(), kind }
    }
}

impl From<String> for QueueName {
    fn from(name: String) -> Self {
        Self::from(name.as_str())
    }
}

impl fmt::Display for QueueName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl Serialize for QueueName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl QueueName {
    /// Returns the name of the queue that converges run in.
    pub fn main() -> Self {
        Self { text: MAIN.into(), kind: QueueKind::Main }
    }

    /// Returns the name under which work on module sources is shown. Its tasks do not wait for each other.
    pub fn addons() -> Self {
        Self::from("addons")
    }

    /// Returns one of the names under which work on chart repositories is shown. Its tasks do not wait for each other.
    pub(crate) fn chart(number: usize) -> Self {
        Self::from(format!("chart-{number}"))
    }

    /// Returns the name of one of the queues that modules of one order number run in at a time.
    pub(crate) fn parallel(number: usize) -> Self {
        Self { text: format!("parallel_queue_{number}").into(), kind: QueueKind::Parallel }
    }

    /// Returns the name of the queue that the modules run in which configurations of a namespace brought.
    pub fn of_namespace(namespace: &str) -> Self {
        Self { text: format!("namespace_queue_{namespace}").into(), kind: QueueKind::OfNamespace }
    }

    /// Returns the name of the queue that a module goes on in when it gives way to the others of this one.
    pub(crate) fn own(&self, module: &ModuleName) -> Self {
        // The name of a namespace has no slash.
        let between = if self.is_main() { "_queue_" } else { "/" };
        Self { text: format!("{self}{between}{module}").into(), kind: QueueKind::Own(Arc::new(self.clone())) }
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns whether this is the queue that converges run in.
    pub fn is_main(&self) -> bool {
        self.kind == QueueKind::Main
    }

    /// Returns whether this is a queue that modules of one order number run in at a time.
    pub fn is_parallel(&self) -> bool {
        self.kind == QueueKind::Parallel
    }

    /// Returns whether this is a queue that modules run in which configurations of one namespace brought.
    pub fn is_of_namespace(&self) -> bool {
        self.home().unwrap_or(self).kind == QueueKind::OfNamespace
    }

    /// Returns the queue to whose others the module of this one gave way; `None` if it is no such queue.
    pub(crate) fn home(&self) -> Option<&Self> {
        if let QueueKind::Own(home) = &self.kind { Some(home) } else { None }
    }

    /// Returns whether the queue is there only while something is in it.
    pub fn is_temporary(&self) -> bool {
        self.is_of_namespace() || self.home().is_some()
    }

    /// Returns whether modules run in this queue.
    pub(crate) fn runs_modules(&self) -> bool {
        self.is_parallel() || self.removes_modules()
    }

    /// Returns whether modules are removed in this queue, and run there if they run alone.
    pub(crate) fn removes_modules(&self) -> bool {
        self.is_main() || self.is_temporary()
    }
}

/// Whose hooks and values are meant.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Scope {
    /// Global hooks and the `global` section.
    Global,
    /// One module.
    Module(ModuleName),
}

impl Scope {
    /// Returns the module, if this is the scope of one.
    pub fn module(&self) -> Option<&ModuleName> {
        match self {
            Self::Global => None,
            Self::Module(name) => Some(name),
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Global => f.pad("global"),
            Self::Module(name) => name.fmt(f),
        }
    }
}

/// A hook, named so that two modules may have hooks of one name.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct HookId {
    /// Whose hook it is.
    pub scope: Scope,
    /// Its name inside the scope.
    pub name: HookName,
}

impl fmt::Display for HookId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.scope, self.name)
    }
}

/// A binding of a hook. Sorted as events are delivered: global hooks first, then modules in order.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct BindingKey {
    /// The place of its scope: `None` for global hooks.
    order: Option<(u32, ModuleName)>,
    /// Its hook.
    pub(crate) hook: HookId,
    /// Its index in the hook's configuration.
    pub(crate) index: usize,
}

impl BindingKey {
    /// Returns the key of a binding of `hook`, whose module has the number `order`.
    pub(crate) fn new(hook: &HookId, order: u32, index: usize) -> Self {
        let order = hook.scope.module().map(|name| (order, name.clone()));
        Self { order, hook: hook.clone(), index }
    }
}
