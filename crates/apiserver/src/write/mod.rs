//! Requests that change something. Every write passes one chain of steps: decode, name, default, prune, validate,
//! admit, own (managed fields), store.

mod addresses;
mod admit;
mod create;
mod decode;
mod delete;
mod metadata;
mod options;
mod patch;
mod scale;
mod services;
mod steps;
mod update;

pub(crate) use addresses::Addresses;
pub(crate) use admit::SYSTEM_NAMESPACES;
pub(crate) use create::{create, create_object};
pub(crate) use decode::untyped;
pub(crate) use delete::{DeleteOptions, Propagation, delete, delete_collection, delete_object};
pub(crate) use metadata::{finalizers, seconds};
pub(crate) use options::WriteOptions;
pub(crate) use patch::patch;
pub(crate) use scale::{Scaling, scale};
pub(crate) use update::{Edit, Hand, modify, update};
