//! Names and ids: one type for each, so that none can be taken for another.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

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
    /// The name of a queue: `main` or what a binding asked for.
    QueueName
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

/// How the names of the queues begin that modules of one order number run in.
const PARALLEL: &str = "parallel_queue_";

/// How the names of the queues begin that modules of configurations of one namespace run in.
const NAMESPACE: &str = "namespace_queue_";

/// How the names of the queues begin that modules have which gave way in `main`.
const OWN_OF_MAIN: &str = "main_queue_";

impl QueueName {
    /// Returns the name of the queue that converges run in.
    pub fn main() -> Self {
        Self::from("main")
    }

    /// Returns the name under which work on module sources is shown. Its tasks do not wait for each other.
    pub fn addons() -> Self {
        Self::from("addons")
    }

    /// Returns one of the names under which work on chart repositories is shown. Its tasks do not wait for each other.
    pub(crate) fn chart(number: usize) -> Self {
        Self::from(format!("chart-{number}"))
    }

    /// Returns whether this is the queue that converges run in.
    pub fn is_main(&self) -> bool {
        self.as_str() == "main"
    }

    /// Returns the name of one of the queues that modules of one order number run in at a time.
    pub(crate) fn parallel(number: usize) -> Self {
        Self::from(format!("{PARALLEL}{number}"))
    }

    /// Returns whether this is a queue that modules of one order number run in at a time.
    pub fn is_parallel(&self) -> bool {
        self.as_str().starts_with(PARALLEL)
    }

    /// Returns the name of the queue that the modules run in which configurations of a namespace brought.
    pub(crate) fn of_namespace(namespace: &str) -> Self {
        Self::from(format!("{NAMESPACE}{namespace}"))
    }

    /// Returns whether this is a queue that modules run in which configurations of one namespace brought.
    pub fn is_of_namespace(&self) -> bool {
        self.as_str().starts_with(NAMESPACE)
    }

    /// Returns the name of the queue that a module goes on in when it gives way to the others of this one.
    pub(crate) fn own(&self, module: &ModuleName) -> Self {
        // The name of a namespace has no slash.
        if self.is_main() {
            Self::from(format!("{OWN_OF_MAIN}{module}"))
        } else {
            Self::from(format!("{self}/{module}"))
        }
    }

    /// Returns the queue to whose others the module of this one gave way; `None` if it is no such queue.
    pub(crate) fn home(&self) -> Option<Self> {
        if self.as_str().starts_with(OWN_OF_MAIN) {
            return Some(Self::main());
        }
        let (home, _) = self.as_str().split_once('/').filter(|_| self.is_of_namespace())?;
        Some(Self::from(home))
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
        self.is_main() || self.is_of_namespace() || self.home().is_some()
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
