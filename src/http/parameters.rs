//! Routes of the socket that list and set the parameters of docs/operating.md#parameters-of-a-running-operator.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::response::{formatted, not_found, split};
use crate::config::{Parameter, Parameters};

/// Lists all parameters.
pub(super) async fn list(State(parameters): State<Parameters>, Path(file): Path<String>) -> Response {
    let all = parameters.list();
    match split(&file) {
        ("list", "text") => table(&all).into_response(),
        ("list", format) => formatted(format, &all.iter().map(data).collect()),
        _ => not_found(),
    }
}

/// Returns the parameters in the columns of the reference operator.
fn table(all: &[Parameter]) -> String {
    let mut text = String::new();
    let mut row = |name: &str, value: &str, expires: &str, description: &str| {
        let _ = writeln!(text, "{name:<30} {value:<20} {expires:<20} {description:<40}");
    };
    row("NAME", "VALUE", "EXPIRE AT", "DESCRIPTION");
    for parameter in all {
        row(parameter.name, &parameter.value, &expires(parameter), parameter.description);
    }
    text
}

fn expires(parameter: &Parameter) -> String {
    parameter.expires.map(|at| format!("{at:.0}")).unwrap_or_default()
}

fn data(parameter: &Parameter) -> Value {
    let mut data = json!({
        "name": parameter.name,
        "description": parameter.description,
        "default": parameter.default,
        "value": parameter.value,
    });
    if let (Value::Object(fields), Some(_)) = (&mut data, parameter.expires) {
        fields.insert("expireAt".to_owned(), expires(parameter).into());
    }
    data
}

/// Sets one parameter; the body is a form with name, value and duration.
pub(super) async fn set(
    State(parameters): State<Parameters>,
    Path(file): Path<String>,
    body: String,
) -> Response {
    if file != "set" {
        return not_found();
    }
    let bad = |text: String| (StatusCode::BAD_REQUEST, format!("{text}\n")).into_response();
    // A form has the syntax of a query string.
    let form = Uri::builder().path_and_query(format!("/?{body}")).build();
    let form = form.ok().and_then(|uri| Query::<BTreeMap<String, String>>::try_from_uri(&uri).ok());
    let Some(Query(form)) = form else {
        return bad("the body is no form with name, value and duration".to_owned());
    };
    let field = |name: &str| form.get(name).map(String::as_str).unwrap_or_default();
    if field("name").is_empty() {
        return bad("'name' parameter is required".to_owned());
    }
    match parameters.set(field("name"), field("value"), field("duration")) {
        Ok(()) => {
            tracing::info!("parameter {} is {} now", field("name"), field("value"));
            StatusCode::OK.into_response()
        }
        Err(error) => bad(error.to_string()),
    }
}
