//! Get and list.

use std::sync::Arc;

use axum::body::Body;
use bytes::{BufMut, Bytes, BytesMut};
use http::Response;
use objects::selector::{FieldSelector, LabelSelector, Selection};
use serde_json::{Map, Value, json};

use super::encoder::{ObjectEncoder, respond};
use super::token::Token;
use crate::object_meta;
use crate::request::options::{invalid_options, not_supported};
use crate::request::{RequestContext, Shape};
use crate::status::{ApiError, Cause, Outcome};
use crate::store::{Page, Range, Stored};

pub(crate) fn get(request: &RequestContext, name: &str) -> Outcome<Response<Body>> {
    if request.query.flag("export") {
        let message = "the export parameter, deprecated since v1.14, is no longer supported";
        return Err(ApiError::bad_request(message));
    }
    // Here a revision that is no number is a failure of the server.
    let asked = revision(request).map_err(unread_revision)?;
    let store = request.cluster.storage.read();
    if let Some(asked) = asked
        && asked > store.revision()
    {
        return Err(ApiError::revision_too_large(asked, store.revision()));
    }
    drop(store);
    let object = request.find(name).ok_or_else(|| request.absent(name))?;
    ObjectEncoder::of(request).answer(200, &object)
}

/// Checks what of the options of a list can be checked without the list.
pub(crate) fn check_list(request: &RequestContext) -> Outcome<()> {
    check_numbers(request)?;
    selection(request)?;
    check_match(request, request.query.text("resourceVersionMatch"))
}

/// Checks the numbers in the options of lists and watches, whether they are asked for or not.
pub(super) fn check_numbers(request: &RequestContext) -> Outcome<()> {
    for name in ["timeoutSeconds", "limit"] {
        request.query.number(name)?;
    }
    Ok(())
}

/// Returns the refusal of a revision as requests for one object and watches tell it.
pub(super) fn unread_revision(error: ApiError) -> ApiError {
    let text = error.to_string();
    match text.strip_prefix("invalid resource version: ") {
        Some(text) => ApiError::new(500, "", text),
        None => error,
    }
}

/// The objects that a request lists, and the metadata of their list.
pub(crate) type Listed = (Vec<Arc<Stored>>, Map<String, Value>);

/// Returns the part of the list that a request asks for by selectors, revision, limit and token.
pub(crate) fn listed(request: &RequestContext) -> Outcome<Listed> {
    check_numbers(request)?;
    let plan = Plan::of(request)?;
    let selection = selection(request)?;
    let selects = |object: &Stored| selection.selects(object);
    let store = request.cluster.storage.read();
    let current = store.revision();
    if let Some(asked) = plan.at_least
        && asked > current
    {
        return Err(ApiError::revision_too_large(asked, current));
    }
    let page = store
        .list(&request.resource.table, &plan.range, plan.at.filter(|&at| at < current), &selects)
        .map_err(|_| plan.expired())?;
    drop(store);
    let revision = plan.at.unwrap_or(current);
    let shows_empty = request.resource.custom.is_some() && request.representation.shape == Shape::Whole;
    let metadata = list_metadata(&page, revision, &selection, &plan, shows_empty);
    Ok((page.items, metadata))
}

pub(crate) fn list(request: &RequestContext) -> Outcome<Response<Body>> {
    let (items, metadata) = listed(request)?;
    let encoder = ObjectEncoder::of(request);
    let items = encoder.converted(items)?;
    if encoder.is_identity() && items.iter().all(|item| encoder.passes(&item.body)) {
        return respond(200, "application/json", stream(&encoder, items, &metadata));
    }
    let list = encoder.list(&items, &metadata);
    encoder.answer_value(200, &list)
}

fn list_metadata(
    page: &Page,
    revision: u64,
    selection: &Selection,
    plan: &Plan,
    shows_empty: bool,
) -> Map<String, Value> {
    let mut metadata = Map::new();
    metadata.insert("resourceVersion".into(), json!(revision.to_string()));
    match &page.next {
        Some(last) => {
            let start = match &plan.range.namespace {
                Some(namespace) => last.strip_prefix(&format!("{namespace}/")).unwrap_or(last),
                None => last,
            };
            metadata.insert("continue".into(), json!(Token::new(Some(revision), start).encode()));
            if selection.is_all() {
                metadata.insert("remainingItemCount".into(), json!(page.remaining));
            }
        }
        None if shows_empty => {
            metadata.insert("continue".into(), json!(""));
        }
        None => {}
    }
    metadata
}

/// Which version of which part of the list is asked for.
struct Plan {
    range: Range,
    /// The list as it was at this revision.
    at: Option<u64>,
    /// The list as it is now, which must be no older than this.
    at_least: Option<u64>,
    continued: bool,
}

impl Plan {
    fn of(request: &RequestContext) -> Outcome<Plan> {
        let query = &request.query;
        let limit = query.number("limit")?.and_then(|limit| usize::try_from(limit).ok()).filter(|&l| l > 0);
        let mut range = Range { namespace: request.namespace.clone(), after: None, limit };
        let asked = revision(request)?;
        let matching = query.text("resourceVersionMatch");
        check_match(request, matching)?;
        if let Some(token) = query.text("continue") {
            let token = Token::decode(token)?;
            if query.text("resourceVersion").is_some_and(|revision| revision != "0") {
                let message = "specifying resource version is not allowed when using continue";
                return Err(ApiError::bad_request(message));
            }
            range.after = Some(match &range.namespace {
                Some(namespace) => format!("{namespace}/{}", token.last()),
                None => token.last().to_owned(),
            });
            return Ok(Plan { range, at: token.revision(), at_least: token.revision(), continued: true });
        }
        // Who wants any list gets all of it. A page of one at a revision is that of this revision, if nothing else is asked for.
        if query.text("resourceVersion") == Some("0") {
            range.limit = None;
        }
        let is_exact = matching == Some("Exact") || (matching.is_none() && limit.is_some());
        let at = asked.filter(|_| is_exact);
        Ok(Plan { range, at, at_least: asked, continued: false })
    }

    fn expired(&self) -> ApiError {
        if !self.continued {
            return ApiError::expired("The resourceVersion for the provided list is too old.");
        }
        ApiError::expired(
            "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.",
        )
        .with_continue(Token::new(None, self.start()).encode())
    }

    fn start(&self) -> &str {
        let after = self.range.after.as_deref().unwrap_or_default();
        match &self.range.namespace {
            Some(namespace) => after.strip_prefix(&format!("{namespace}/")).unwrap_or(after),
            None => after,
        }
    }
}

/// Returns the revision that is asked for; none means "any" or "the latest".
pub(crate) fn revision(request: &RequestContext) -> Outcome<Option<u64>> {
    let Some(text) = request.query.text("resourceVersion") else {
        return Ok(None);
    };
    object_meta::revision(text).map(|revision| Some(revision).filter(|revision| *revision > 0)).map_err(
        |why| {
            let shown = golang::strconv::quote(text.as_bytes());
            let message = format!("invalid resource version: resourceVersion: Invalid value: {shown}: {why}");
            ApiError::bad_request(message)
        },
    )
}

fn check_match(request: &RequestContext, matching: Option<&str>) -> Outcome<()> {
    let revision = request.query.text("resourceVersion");
    let mut causes = Vec::new();
    let mut forbid = |field: &str, why: &str| {
        causes.push(Cause {
            reason: "FieldValueForbidden".into(),
            message: format!("Forbidden: {why}"),
            field: field.into(),
        });
    };
    if matching.is_some() {
        if revision.is_none() {
            let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            forbid("resourceVersionMatch", why);
        }
        if request.query.text("continue").is_some() {
            forbid("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided");
        }
        if matching == Some("Exact") && revision == Some("0") {
            let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            forbid("resourceVersionMatch", why);
        }
    }
    if request.query.get("sendInitialEvents").is_some() {
        forbid("sendInitialEvents", "sendInitialEvents is forbidden for list");
    }
    if let Some(other) = matching.filter(|matching| !["Exact", "NotOlderThan"].contains(matching)) {
        let supported = ["Exact", "NotOlderThan", ""];
        causes.push(not_supported("resourceVersionMatch", &format!("{other:?}"), &supported));
    }
    if causes.is_empty() { Ok(()) } else { Err(invalid_options("ListOptions", causes)) }
}

pub(crate) fn selection(request: &RequestContext) -> Outcome<Selection> {
    let refuse = |error: objects::selector::SelectorError| ApiError::bad_request(error.to_string());
    let labels = request.query.text("labelSelector").unwrap_or_default();
    let fields = request.query.text("fieldSelector").unwrap_or_default();
    Ok(Selection {
        labels: LabelSelector::parse(labels).map_err(refuse)?,
        fields: FieldSelector::parse(fields, &request.resource.fields, request.resource.custom.is_some())
            .map_err(refuse)?,
    })
}

/// How many bytes of a list are put together before they are sent.
const CHUNK: usize = 64 * 1024;

/// Returns the list as a body that is written while it is sent, so that a large list is never in memory twice.
fn stream(encoder: &ObjectEncoder, items: Vec<Arc<Stored>>, metadata: &Map<String, Value>) -> Body {
    let resource = &encoder.resource;
    let typed = resource.custom.is_some();
    let mut head = format!(
        "{{\"kind\":{},\"apiVersion\":{},\"metadata\":{},\"items\":[",
        json!(resource.kind.list_kind),
        json!(resource.api_version),
        Value::Object(metadata.clone()),
    )
    .into_bytes();
    let size: usize = items.iter().map(|item| item.body.len()).sum();
    if size < CHUNK {
        head.reserve(size + items.len() + 2);
        for (index, item) in items.iter().enumerate() {
            write_item(&mut head, item, typed, index == 0);
        }
        head.extend_from_slice(b"]}");
        return Body::from(head);
    }
    let mut rest = items.into_iter().enumerate();
    let mut chunk = BytesMut::with_capacity(CHUNK + 8 * 1024);
    chunk.extend_from_slice(&head);
    let mut ended = false;
    let chunks = std::iter::from_fn(move || {
        if ended {
            return None;
        }
        while chunk.len() < CHUNK {
            let Some((index, item)) = rest.next() else {
                chunk.extend_from_slice(b"]}");
                ended = true;
                break;
            };
            write_item(&mut chunk, &item, typed, index == 0);
        }
        let full: Bytes = std::mem::take(&mut chunk).freeze();
        chunk.reserve(CHUNK + 8 * 1024);
        Some(Ok::<_, std::convert::Infallible>(full))
    });
    Body::from_stream(futures::stream::iter(chunks))
}

fn write_item(chunk: &mut impl BufMut, item: &Stored, typed: bool, first: bool) {
    if !first {
        chunk.put_slice(b",");
    }
    if typed {
        chunk.put_slice(&item.body);
    } else {
        chunk.put_slice(b"{");
        chunk.put_slice(&item.without_type());
    }
}
