//! A cluster: the parts that own its state, and what follows in one part from a change in another.

use std::sync::Arc;

use jiff::Timestamp;
use objects::time::format_seconds;
use serde_json::Value;

use crate::authentication::Authenticator;
use crate::config::Config;
use crate::definitions::naming;
use crate::discovery::Discovery;
use crate::fault_injection::Faults;
use crate::object_meta;
use crate::openapi::OpenApi;
use crate::random::Random;
use crate::registry::{DEFINITIONS, Definition, Registry, Resource};
use crate::services::ServiceAllocator;
use crate::status::{ApiError, Outcome};
use crate::storage::StateError;
use crate::storage::Storage;
use crate::storage::state_file::StateFile;
use crate::store::{Change, Committed, Encoded, ObjectRef, Refusal, Stored, Write, split_key};
use crate::strategy::{self, FieldOwner, conversion};
use crate::work_queue::{Work, WorkQueue};

/// How often a change that met another one is computed again.
pub(crate) const ATTEMPTS: usize = 16;

/// The largest object that is stored, in bytes.
const OBJECT_LIMIT: usize = 1_572_864;

/// Whose the status of custom resource definitions is.
const DEFINITION_STATUS: FieldOwner<'_> = FieldOwner { manager: "kube-apiserver", subresource: "status" };

/// What the requests of all clients share. Each part owns its state; a commit is passed on from here.
pub(crate) struct Cluster {
    pub(crate) config: Config,
    pub(crate) storage: Arc<Storage>,
    pub(crate) registry: Registry,
    /// The names of custom kinds.
    names: naming::Names,
    pub(crate) work_queue: WorkQueue,
    pub(crate) authenticator: Authenticator,
    pub(crate) service_allocator: ServiceAllocator,
    pub(crate) discovery: Discovery,
    pub(crate) openapi: OpenApi,
    pub(crate) faults: Faults,
    pub(crate) random: Random,
    pub(crate) state_file: Option<Arc<StateFile>>,
}

/// What is to be done with an object that [`Cluster::modify`] showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edit {
    /// It stays as it was.
    Keep,
    /// The changed version is stored.
    Write,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let revision = self.storage.read().revision();
        f.debug_struct("Cluster").field("revision", &revision).finish_non_exhaustive()
    }
}

impl Cluster {
    /// Returns an empty cluster, whose administrator shows `token`.
    pub(crate) fn new(config: Config, token: String) -> Cluster {
        let storage = Arc::new(Storage::new(config.history));
        Cluster {
            registry: Registry::new(),
            names: naming::Names::default(),
            work_queue: WorkQueue::new(config.simulate.is_some()),
            authenticator: Authenticator::new(token),
            service_allocator: ServiceAllocator::default(),
            discovery: Discovery::default(),
            openapi: OpenApi::default(),
            faults: Faults::new(&storage),
            random: Random::new(config.seed),
            state_file: config.state.clone().map(|path| Arc::new(StateFile::new(path))),
            storage,
            config,
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.config.clock.now()
    }

    /// Commits a change and passes it on: to the state file, the work queue and, for definitions, the registry.
    pub(crate) fn commit(&self, object: &ObjectRef, write: Write) -> Result<Committed, Refusal> {
        let committed = self.storage.commit(object, write, self.now()).inspect_err(|refusal| {
            if let (Refusal::NotKept(_), Some(file)) = (refusal, &self.state_file) {
                file.want_snapshot();
            }
        })?;
        if let Committed::Changed(event) = &committed {
            if let Some(file) = &self.state_file {
                file.mark(event.revision);
            }
            self.work_queue.observe(&self.storage.read(), object, event);
        }
        if &*object.table == DEFINITIONS {
            match &committed {
                Committed::Changed(event) if event.change == Change::Deleted => self.withdraw(&object.key),
                Committed::Changed(_) | Committed::Same(_) => self.establish(object, committed.object()),
            }
        }
        Ok(committed)
    }

    /// Commits a new version of an object; one that waited only for its finalizers is deleted.
    ///
    /// Returns nothing if the object has another version by now.
    pub(crate) fn commit_change(
        &self,
        resource: &Resource,
        object: &ObjectRef,
        old: &Stored,
        new: &Value,
    ) -> Outcome<Option<Arc<Stored>>> {
        let encoded = Encoded::new(new, &resource.fields);
        check_size(&encoded)?;
        let expected = old.revision;
        let gone = object_meta::is_deleting(new) && !strategy::holds_back(resource, new);
        let write =
            if gone { Write::Delete { expected } } else { Write::Update { expected, object: encoded } };
        match self.commit(object, write) {
            Ok(committed) => Ok(Some(Arc::clone(committed.object()))),
            Err(Refusal::Missing) => Err(ApiError::not_found(&resource.kind, old.name())),
            Err(Refusal::Changed | Refusal::Exists) => Ok(None),
            Err(Refusal::NotKept(why)) => Err(ApiError::internal(why)),
        }
    }

    /// Changes an object on behalf of the server itself, past admission and validation.
    ///
    /// Without an owner nobody owns the fields that change. Returns the stored version; nothing if the object is gone. `edit` is called again when another change came first.
    pub(crate) fn modify(
        &self,
        resource: &Resource,
        object: &ObjectRef,
        owner: impl Into<Option<FieldOwner<'static>>>,
        mut edit: impl FnMut(&mut Value) -> Edit,
    ) -> Outcome<Option<Arc<Stored>>> {
        let owner = owner.into();
        for _ in 0..ATTEMPTS {
            let Some(old) = self.storage.get(object) else {
                return Ok(None);
            };
            let mut new = conversion::from_stored(old.value(), resource);
            let before = new.clone();
            if edit(&mut new) == Edit::Keep {
                return Ok(Some(old));
            }
            if let Some(owner) = owner {
                strategy::own(resource, Some(&before), &mut new, owner, self.now());
            }
            conversion::to_stored(&mut new, resource);
            if let Some(stored) = self.commit_change(resource, object, &old, &new)? {
                return Ok(Some(stored));
            }
        }
        Err(ApiError::modified(&resource.kind, split_key(&object.key).1))
    }

    /// Serves a definition whose names are free, and writes the verdict into its status. What becomes free by that goes to those that
    /// wait for it.
    fn establish(&self, object: &ObjectRef, stored: &Stored) {
        let Some(resource) = self.registry.of_table(&object.table) else {
            return;
        };
        let (verdict, waiting) = self.names.give(&stored.value());
        let now = format_seconds(self.now());
        let updated = self.modify(&resource, object, DEFINITION_STATUS, |definition| {
            if naming::write_status(definition, &verdict, &now) { Edit::Write } else { Edit::Keep }
        });
        if let Ok(Some(stored)) = updated {
            self.define(&object.key, &stored.value());
        }
        self.establish_all(waiting);
    }

    /// Looks at definitions again that wait for their names.
    fn establish_all(&self, names: Vec<String>) {
        for key in names {
            let object = ObjectRef { table: DEFINITIONS.into(), key: key.into() };
            if let Some(stored) = self.storage.get(&object) {
                self.establish(&object, &stored);
            }
        }
    }

    fn define(&self, name: &str, definition: &Value) {
        if !naming::is_established(definition) {
            return;
        }
        match Definition::read(definition) {
            // Watches encode objects as they were served when these began.
            Ok(definition) => {
                if let Some(table) = self.registry.define(name, definition) {
                    self.storage.close(&table);
                }
            }
            Err(error) => tracing::warn!(definition = name, %error, "a definition cannot be served"),
        }
    }

    fn withdraw(&self, name: &str) {
        if let Some(table) = self.registry.withdraw(name) {
            self.storage.close(&table);
        }
        self.establish_all(self.names.take(name));
    }

    /// Puts back what the state file holds, if there is one.
    pub(crate) fn load_state(&self) -> Result<(), StateError> {
        let Some(file) = &self.state_file else {
            return Ok(());
        };
        let now = self.now();
        file.open(&self.storage, |key, object, revision| {
            let resource = self.registry.of_table(&key.table);
            let fields = resource.map(|resource| resource.fields.clone()).unwrap_or_default();
            self.storage.restore(&key, Encoded::new(object, &fields), revision, now);
            if &*key.table == DEFINITIONS {
                self.names.keep(object);
                self.define(&key.key, object);
            }
            // What the end of the server interrupted continues with the first request.
            if object.pointer("/metadata/ownerReferences").is_some() {
                self.work_queue.add(Work::Owned(key.clone()));
            }
            if object.pointer("/metadata/deletionTimestamp").is_some() {
                self.work_queue.add(Work::Deleting(key));
            }
        })?;
        // The end of the server may have come between a definition and the verdict about it.
        for definition in self.storage.all(DEFINITIONS, None) {
            if !naming::is_established(&definition.value()) {
                let object = ObjectRef { table: DEFINITIONS.into(), key: definition.key.clone() };
                self.establish(&object, &definition);
            }
        }
        Ok(())
    }

    /// Writes the state file for the last time, if there is one, and ends its thread.
    pub(crate) fn save_state(&self) -> Result<(), StateError> {
        if let Some(file) = &self.state_file {
            file.end(&self.storage)?;
        }
        Ok(())
    }

    /// Returns whether nothing is left to do and every watch has sent all there is.
    pub(crate) fn is_still(&self) -> bool {
        !self.work_queue.has_delayed() && self.work_queue.is_idle() && self.storage.watches_are_done()
    }
}

/// Refuses an object that is larger than etcd accepts.
pub(crate) fn check_size(encoded: &Encoded) -> Outcome<()> {
    if encoded.len() > OBJECT_LIMIT {
        return Err(ApiError::new(413, "RequestEntityTooLarge", "etcdserver: request is too large"));
    }
    Ok(())
}
