//! The page at `/`, for people: what the operator does. It has no script, changes nothing and shows no values.

mod html;
mod layout;
mod options;
mod tables;

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use engine::{Failure, ModuleName};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

pub(super) use options::PageOptions;

use super::mask::Mask;
use super::response::starting;
use crate::driver::Questions;

/// How long to wait for the engine. It does not answer before the API server is available.
const ENGINE_TIMEOUT: Duration = Duration::from_secs(2);

/// The pages that were rendered last, one for each set of options.
///
/// A page answers all requests that came before its rendering began: a thousand readers at a time cost as much as two.
#[derive(Clone, Debug, Default)]
pub(super) struct PageCache(Arc<Mutex<Vec<CachedPage>>>);

#[derive(Debug)]
struct CachedPage {
    options: PageOptions,
    started_at: Instant,
    page: Bytes,
}

impl PageCache {
    /// Returns the page with these options. One page is rendered at a time.
    pub(super) async fn page(&self, questions: &Questions, options: PageOptions) -> Response {
        let requested_at = Instant::now();
        let mut cached = self.0.lock().await;
        cached.retain(|cached| cached.started_at >= requested_at);
        if let Some(known) = cached.iter().find(|cached| cached.options == options) {
            return answer(StatusCode::OK, options, known.page.clone());
        }
        let started_at = Instant::now();
        if let Some(doing) = questions.start() {
            let page = layout::without_engine(options, starting(&doing).trim_end());
            return answer(StatusCode::OK, options, Bytes::from(page));
        }
        let (status, page) = match timeout(ENGINE_TIMEOUT, Mask::of(questions)).await {
            Ok(Some((view, mask))) => {
                let show = |failure: &Failure, module: Option<&ModuleName>| mask.show(failure, module);
                (StatusCode::OK, layout::page(&view, options, &show))
            }
            Ok(None) => {
                (StatusCode::SERVICE_UNAVAILABLE, layout::without_engine(options, "The operator is ending."))
            }
            Err(_) => (
                StatusCode::OK,
                layout::without_engine(
                    options,
                    "The operator is busy and does not answer; its log says more.",
                ),
            ),
        };
        let page = Bytes::from(page);
        cached.push(CachedPage { options, started_at, page: page.clone() });
        answer(status, options, page)
    }
}

fn answer(status: StatusCode, options: PageOptions, page: Bytes) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
        (header::CONTENT_SECURITY_POLICY, layout::policy()),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
    ];
    let mut response = (status, headers, page).into_response();
    if let Some(seconds) = options.refresh {
        // A header instead of an element: assistive technology can ignore it, and a saved page does not reload.
        response.headers_mut().insert(HeaderName::from_static("refresh"), HeaderValue::from(seconds));
    }
    response
}

#[cfg(test)]
mod tests;
