//! The page at `/`: what the operator does, for people. It needs no script, changes nothing and knows no value.

mod html;
mod layout;
mod tables;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use engine::view::View;
use engine::{Failure, ModuleName};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use super::mask::Mask;
use crate::driver::Questions;

/// How long the engine is waited for. It does not answer before the API server is there.
const PATIENCE: Duration = Duration::from_secs(2);

/// How often the page loads itself again if the reader does not say, in seconds.
const REFRESH: u16 = 5;

/// The choices of how often it does, in seconds.
const CHOICES: &[u16] = &[REFRESH, 15, 60];

/// How many ends of tasks are shown unless all are asked for.
const JOURNAL: usize = 50;

/// How many modules are drawn unless the drawing is asked for.
const DRAWN: usize = 60;

/// How a failure is shown: without the values of the module that it is about, or of all modules.
type Show<'a> = &'a dyn Fn(&Failure, Option<&ModuleName>) -> String;

/// What the reader asked for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Wish {
    /// Seconds until the page loads itself again; `None` for never.
    refresh: Option<u16>,
    /// Whether the whole journal is shown.
    whole_journal: bool,
    /// Whether the modules are drawn even if there are many.
    drawing: bool,
}

impl Wish {
    /// Reads `?refresh=off&journal=all&graph=all`. What is not understood means the default.
    pub(super) fn of(query: &BTreeMap<String, String>) -> Self {
        let text = |key: &str| query.get(key).map(String::as_str);
        let refresh = match text("refresh") {
            Some("off") => None,
            Some(seconds) => {
                seconds.parse().ok().filter(|seconds| CHOICES.contains(seconds)).or(Some(REFRESH))
            }
            None => Some(REFRESH),
        };
        let whole_journal = text("journal") == Some("all");
        Self { refresh, whole_journal, drawing: text("graph") == Some("all") }
    }

    /// Returns the query that asks for this.
    fn query(self) -> String {
        let mut query = match self.refresh {
            None => "?refresh=off".to_owned(),
            Some(REFRESH) => "?".to_owned(),
            Some(seconds) => format!("?refresh={seconds}"),
        };
        for (on, text) in [(self.whole_journal, "journal=all"), (self.drawing, "graph=all")] {
            if on {
                query.push_str(if query.len() > 1 { "&" } else { "" });
                query.push_str(text);
            }
        }
        if query.len() > 1 { query } else { "/".to_owned() }
    }
}

/// The pages that were made last, one for each wish.
///
/// A page is good for all who asked before it was begun: a thousand readers at a time cost as much as two.
#[derive(Clone, Debug, Default)]
pub(super) struct Pages(Arc<Mutex<Vec<Made>>>);

#[derive(Debug)]
struct Made {
    wish: Wish,
    begun: Instant,
    page: Bytes,
}

impl Pages {
    /// Returns the page as `wish` wants it. Only one is made at a time.
    pub(super) async fn page(&self, questions: &Questions, wish: Wish) -> Response {
        let asked = Instant::now();
        let mut made = self.0.lock().await;
        made.retain(|made| made.begun >= asked);
        if let Some(known) = made.iter().find(|made| made.wish == wish) {
            return answer(StatusCode::OK, wish, known.page.clone());
        }
        let begun = Instant::now();
        let (status, page) = match timeout(PATIENCE, ask(questions)).await {
            Ok(Some((view, mask))) => {
                let show = |failure: &Failure, module: Option<&ModuleName>| mask.show(failure, module);
                (StatusCode::OK, layout::page(&view, wish, &show))
            }
            Ok(None) => {
                (StatusCode::SERVICE_UNAVAILABLE, layout::without_engine(wish, "The operator is ending."))
            }
            Err(_) => (
                StatusCode::OK,
                layout::without_engine(
                    wish,
                    "The operator is starting and waits for the API server; its log says more.",
                ),
            ),
        };
        let page = Bytes::from(page);
        made.push(Made { wish, begun, page: page.clone() });
        answer(status, wish, page)
    }
}

async fn ask(questions: &Questions) -> Option<(View, Mask)> {
    let view = questions.view().await?;
    let mask = Mask::new(questions, &view).await?;
    Some((view, mask))
}

fn answer(status: StatusCode, wish: Wish, page: Bytes) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
        (header::CONTENT_SECURITY_POLICY, layout::policy()),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
    ];
    let mut response = (status, headers, page).into_response();
    if let Some(seconds) = wish.refresh {
        // A header instead of an element: it leaves the reader's technology a choice, and a page that is saved is at rest.
        response.headers_mut().insert(HeaderName::from_static("refresh"), HeaderValue::from(seconds));
    }
    response
}

#[cfg(test)]
mod tests;
