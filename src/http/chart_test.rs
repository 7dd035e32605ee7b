//! Runs the tests of a module's chart, and answers with what came of them, when they have ended.

use std::time::Duration;

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use engine::{Command, ModuleName, TestRequest};
use serde_json::Value;

use super::debug_state::DebugState;
use super::response::{ended, json, unknown, with_advice};
use super::secret_values::SecretValues;
use crate::config::parse_duration;

/// How many names of tests can be given.
const MOST_NAMES: usize = 100;

/// How long one test may take at most.
const LONGEST: Duration = Duration::from_hours(24);

/// Answers a [`engine::TestReport`] as JSON. The query has `only` and `without` as often as there are names, `timeout`, `logs`
/// and `showSecrets`.
pub(super) async fn run(
    State(debug): State<DebugState>,
    Path(name): Path<String>,
    Query(query): Query<Vec<(String, String)>>,
) -> Response {
    let request = match test_request(&query) {
        Ok(request) => request,
        Err(problem) => return (StatusCode::BAD_REQUEST, problem + "\n").into_response(),
    };
    let Some(inspection) = debug.questions.inspect().await else { return ended() };
    if !inspection.modules.contains_key(name.as_str()) {
        return unknown(&inspection, &name);
    }
    let query = query.into_iter().collect();
    let secret = SecretValues::of(inspection.secrets, debug.may_show(&query));
    match debug.questions.command(Command::TestModule(ModuleName::from(name), request)).await {
        Some(Ok(report)) => match shown(&report, &secret) {
            Ok(report) => json(&report),
            Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
        },
        Some(Err(failure)) => {
            let failure = secret.hide_failure(&failure);
            (StatusCode::CONFLICT, format!("{}\n", with_advice(&failure))).into_response()
        }
        None => ended(),
    }
}

/// Returns a report without the values that come from the Secret: Pods may print them.
fn shown(report: &str, secret: &SecretValues) -> serde_json::Result<Value> {
    Ok(secret.hide_in(serde_json::from_str(report)?))
}

/// Returns what is asked for, or what is wrong with it.
fn test_request(query: &[(String, String)]) -> Result<TestRequest, String> {
    let all = |key: &str| -> Vec<String> {
        query.iter().filter(|(name, _)| name == key).map(|(_, value)| value.clone()).collect()
    };
    let (only, without) = (all("only"), all("without"));
    if only.len() + without.len() > MOST_NAMES {
        return Err(format!("no more than {MOST_NAMES} tests can be named"));
    }
    let timeout = match all("timeout").pop() {
        None => None,
        Some(text) => {
            let timeout = parse_duration(&text).filter(|timeout| !timeout.is_zero() && *timeout <= LONGEST);
            Some(
                timeout
                    .ok_or_else(|| format!("timeout {text:?} is no duration between 1ms and 24h, like 5m"))?,
            )
        }
    };
    let logs = all("logs").pop().is_none_or(|text| text != "false");
    Ok(TestRequest { only, without, timeout, logs })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn what_pods_print_of_the_secret_is_shown_to_who_asks_for_it_only() {
        let text = "login as hunter22\npassword: aHVudGVyMjI=\nhost: h\n".to_owned();
        let log = engine::PodLog { text, ..engine::PodLog::default() };
        let report = engine::TestReport {
            failure: Some("test hook Pod a failed: hunter22 is refused".to_owned()),
            logs: [("a/main".to_owned(), log)].into(),
            ..engine::TestReport::default()
        };
        let report = serde_json::to_string(&report).unwrap();
        let told = |is_shown: bool| {
            let values: &'static Value =
                Box::leak(Box::new(serde_json::json!({"db": {"password": "hunter22"}})));
            let secret = SecretValues::of(Arc::new(engine::view::Secrets::of(&[values])), is_shown);
            shown(&report, &secret).unwrap()
        };
        let masked = told(false);
        assert_eq!(masked["logs"]["a/main"]["text"], "login as ******\npassword: ******\nhost: h\n");
        assert_eq!(masked["failure"], "test hook Pod a failed: ****** is refused");
        assert_eq!(told(true).to_string().matches("hunter22").count(), 2);
        assert!(shown("no report", &SecretValues::of(Arc::default(), false)).is_err());
    }

    #[test]
    fn a_query_says_which_tests_and_how() {
        let query = |pairs: &[(&str, &str)]| {
            let pairs: Vec<_> =
                pairs.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
            test_request(&pairs)
        };
        let wanted = TestRequest {
            only: vec!["a".to_owned(), "b".to_owned()],
            without: vec!["c".to_owned()],
            timeout: Some(Duration::from_secs(90)),
            logs: false,
        };
        let given = [("only", "a"), ("timeout", "1m30s"), ("only", "b"), ("without", "c"), ("logs", "false")];
        assert_eq!(query(&given), Ok(wanted));
        assert_eq!(query(&[]), Ok(TestRequest { logs: true, ..TestRequest::default() }));
        for timeout in ["0s", "soon", "25h"] {
            assert!(query(&[("timeout", timeout)]).unwrap_err().contains("between 1ms and 24h"));
        }
        assert!(query(&[("only", "a"); 101]).unwrap_err().contains("no more than 100"));
    }
}
