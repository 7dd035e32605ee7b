//! Changes of scales: a change of the object's replicas through another form.

use axum::body::Body;
use http::Response;
use http::header::CONTENT_TYPE;

use crate::request::Call;
use crate::request::options::WriteOptions;
use crate::status::{ApiError, Outcome};
use crate::strategy::{self, PatchKind};
use crate::write::body::{patch as read_patch, untyped};
use crate::write::create::Written;
use crate::write::pipeline::{self, Chain};
use crate::write::update::ATTEMPTS;

/// How a scale is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scaling {
    /// By a patch of the scale.
    Patch,
    /// By a whole scale.
    Put,
}

/// Answers a change of the scale of an object.
pub(crate) fn scale(call: &Call, name: &str, how: Scaling) -> Outcome<Response<Body>> {
    let resource = &call.resource;
    let content_type = call.header(CONTENT_TYPE).split(';').next().unwrap_or_default().trim().to_owned();
    let (options, patch) = match how {
        Scaling::Put => (WriteOptions::of(&call.query, &call.headers, "UpdateOptions")?, None),
        Scaling::Patch => {
            let kind = crate::write::patch::patch_kind(&content_type, false)?;
            (WriteOptions::of(&call.query, &call.headers, "PatchOptions")?, Some(kind))
        }
    };
    let body = match patch {
        Some(PatchKind::Apply) => crate::yaml::read(&call.body)?.into(),
        Some(PatchKind::Json | PatchKind::Merge | PatchKind::Strategic) => read_patch(&call.body)?.value,
        None => untyped(&call.body, &content_type, ("autoscaling/v1", "Scale"))?,
    };
    let mut warnings = Vec::new();
    for _ in 0..ATTEMPTS {
        let old = call
            .cluster
            .get(&resource.table, call.namespace.as_deref(), name)
            .ok_or_else(|| ApiError::not_found(&resource.kind, name))?;
        let old_value = pipeline::kept(&old, resource);
        let wanted = match patch {
            Some(PatchKind::Json) => strategy::patched(
                resource,
                PatchKind::Json,
                &crate::subresources::scale::of(call, &old_value)?,
                &body,
            )?,
            Some(PatchKind::Merge | PatchKind::Strategic | PatchKind::Apply) => strategy::patched(
                resource,
                PatchKind::Merge,
                &crate::subresources::scale::of(call, &old_value)?,
                &body,
            )?,
            None => body.clone(),
        };
        // Merge patches of all kinds are one here, and are told in the same words.
        let patch_kind = patch.map(|kind| if kind == PatchKind::Json { kind } else { PatchKind::Merge });
        let misfit = patch_kind.filter(|_| patch != Some(PatchKind::Apply));
        if let Some(error) = misfit
            .and_then(|kind| strategy::misfit_of(&crate::subresources::scale::SHAPE, kind, &body, &wanted))
        {
            return Err(error);
        }
        let mut new = old_value.clone();
        crate::subresources::scale::set(call, &mut new, &old, &wanted)?;
        let mut chain = Chain { call, options: &options, warnings: &mut warnings };
        // Replicas that nobody owned stay unowned.
        let changed = if crate::subresources::scale::is_owned(call, &old_value) {
            chain.change(&old, &old_value, new)?
        } else {
            chain.change_unowned(&old, &old_value, new)?
        };
        match changed {
            Some(Written::Kept(object)) => return crate::subresources::scale::show(call, &object.value()),
            Some(Written::Tried(object)) => return crate::subresources::scale::show(call, &object),
            None => {}
        }
    }
    Err(ApiError::modified(&resource.kind, name))
}
