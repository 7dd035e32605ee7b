//! The Lease of the operators of a namespace: reads it, and writes it if nobody else did meanwhile.
//!
//! It decides nothing. Times of day are written for people and for other programs; no time is read.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use engine::{ElectionConfig, Failure, FailureKind, LeaseRecord};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{ApiResource, DynamicObject, ObjectMeta, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::cluster::{failure, is_conflict, is_not_found};
use crate::fence::Fence;
use crate::process::since_boot;

/// The Lease of the operators of a namespace.
pub struct LeaseObject {
    api: Api<DynamicObject>,
    name: String,
    title: String,
    /// How long one request may take: an answer that comes later is of no use.
    patience: Duration,
    fence: Fence,
    /// The object as it was seen last. Who writes it leaves what others wrote in its metadata.
    known: Mutex<Option<DynamicObject>>,
}

impl LeaseObject {
    /// Returns the Lease of an election in `namespace`, which need not exist. `fence` follows what is written.
    pub fn new(client: Client, namespace: &str, election: &ElectionConfig, fence: Fence) -> Self {
        Self {
            api: Api::namespaced_with(client, namespace, &ApiResource::erase::<Lease>(&())),
            name: election.lease.clone(),
            title: format!("Lease {namespace}/{}", election.lease),
            patience: election.retry_period,
            fence,
            known: Mutex::default(),
        }
    }

    /// Returns its record; `None` if there is none.
    ///
    /// # Errors
    ///
    /// When the API server refuses that, or does not answer in time.
    pub async fn read(&self) -> Result<Option<LeaseRecord>, Failure> {
        let found = self.within(self.api.get_opt(&self.name)).await;
        let found = found?.map_err(|error| self.failed("read", &error))?;
        Ok(found.map(|found| self.keep(found)))
    }

    /// Writes it, if it `exists` in the version of the record, or if it does not exist and is not to. Returns the record as it is
    /// now; `None` if somebody else wrote it in between.
    ///
    /// The operator may act for `acts_for` from the beginning of the request on.
    ///
    /// # Errors
    ///
    /// When the API server refuses that or does not answer in time. When nobody would end the operator after its time.
    pub async fn write(
        &self,
        record: &LeaseRecord,
        exists: bool,
        acts_for: Option<Duration>,
    ) -> Result<Option<LeaseRecord>, Failure> {
        let begun = since_boot();
        let written = match self.within(self.send(record, exists)).await? {
            Ok(Some(written)) => written,
            Ok(None) => return Ok(None),
            // A namespace that is not there is no other writer.
            Err(error) if is_conflict(&error) || (exists && is_not_found(&error)) => return Ok(None),
            Err(error) => return Err(self.failed("written", &error)),
        };
        let written = self.keep(written);
        if let Some(time) = acts_for {
            let refused = |error| {
                let what =
                    format!("{} is held, but nobody would end this operator in time: {error}", self.title);
                Failure::new(FailureKind::Bug, what)
            };
            self.fence.allow(begun, time).map_err(refused)?;
        }
        Ok(Some(written))
    }

    async fn send(&self, record: &LeaseRecord, exists: bool) -> Result<Option<DynamicObject>, kube::Error> {
        let now = now();
        let spec = json!({
            "holderIdentity": record.holder.as_deref(),
            "leaseDurationSeconds": record.duration.map(|time| time.as_secs()),
            "acquireTime": record.acquired.as_ref().unwrap_or(&now),
            "renewTime": now,
            "leaseTransitions": record.transitions,
        });
        let params = PostParams::default();
        if !exists {
            let metadata = ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() };
            let object = DynamicObject { types: None, metadata, data: json!({"spec": spec}) };
            return self.api.create(&params, &object).await.map(Some);
        }
        let is_meant = |object: &DynamicObject| {
            object.metadata.resource_version.as_deref() == Some(record.version.as_str())
        };
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let known = match known.filter(|known| is_meant(known)) {
            Some(known) => known,
            None => match self.api.get_opt(&self.name).await? {
                Some(found) if is_meant(&found) => found,
                Some(_) | None => return Ok(None),
            },
        };
        let mut object = known;
        let fields = object.data.get_mut("spec").and_then(Value::as_object_mut);
        match (fields, spec) {
            // Fields of newer versions stay as they are.
            (Some(fields), Value::Object(ours)) => fields.extend(ours),
            (_, spec) => object.data = json!({"spec": spec}),
        }
        self.api.replace(&self.name, &params, &object).await.map(Some)
    }

    fn keep(&self, object: DynamicObject) -> LeaseRecord {
        let record = LeaseRecord::of(&serde_json::to_value(&object).unwrap_or_default());
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some(object);
        record
    }

    async fn within<T>(&self, answer: impl Future<Output = T>) -> Result<T, Failure> {
        let late = |_| {
            let message =
                format!("the API server did not answer about {} in {:?}", self.title, self.patience);
            Failure::new(FailureKind::Cluster, message)
        };
        tokio::time::timeout(self.patience, answer).await.map_err(late)
    }

    fn failed(&self, done: &str, error: &kube::Error) -> Failure {
        let mut failure = failure(&format!("{} can't be {done}", self.title), error);
        if matches!(error, kube::Error::Api(status) if status.code == 403) {
            failure.kind = FailureKind::Forbidden;
            failure = failure.advise(
                "allow the operator's ServiceAccount get, list, watch, create and update of leases in its namespace",
            );
        }
        failure
    }
}

/// Returns the time of day as a Lease has it: with microseconds.
fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}
