//! What must hold for every filter of a binding, and for every object that it is run on.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use jq::{Filter, Input, JqError, Threads};
use tokio::runtime::{Builder, Runtime};

/// The line between a filter and its object.
const BETWEEN: &str = "\n===\n";

/// A value of the object that is used where there is none; no error may quote it.
const SECRET: &str = "hunter22-hunter22";

const OBJECT: &str = r#"{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "namespace": "default",
"labels": {"app": "web", "tier": "1"}, "creationTimestamp": "2026-01-02T03:04:05Z", "generation": 12345678901234567890},
"data": {"password": "hunter22-hunter22", "none": null}, "list": [3, 1.5, -0.0, "é😀", [], {}, true, 1e300]}"#;

/// How long a filter may work. It is far less than in production, so that there are many in a second.
const TIME: Duration = Duration::from_millis(100);

static IDENTITY: LazyLock<Arc<Filter>> = LazyLock::new(|| Arc::new(Filter::compile(".").unwrap()));
static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_current_thread().enable_time().build().unwrap());
static THREADS: LazyLock<Threads> = LazyLock::new(Threads::default);

/// Compiles the filter in `bytes` and runs it as bindings do.
pub(crate) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (program, object) = text.split_once(BETWEEN).unwrap_or((text, OBJECT));
    let filter = match Filter::compile(program) {
        Ok(filter) => Arc::new(filter),
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let Ok(input) = Input::parse(object.as_bytes()) else { return };
    match result(&filter, &input) {
        Ok(printed) => {
            let read = Input::parse(&printed).unwrap();
            match result(&IDENTITY, &read) {
                Ok(again) => assert!(again == printed, "what is printed is read as it was"),
                // On a machine that is busy even this may take too long.
                Err(error) => assert!(matches!(error, JqError::Limit(_)), "{error}"),
            }
            let is_timeless = !program.contains("now") && !program.contains("time");
            if is_timeless && let Ok(again) = result(&filter, &input) {
                assert!(again == printed, "a filter gives the same result for the same object");
            }
        }
        Err(error) => {
            let text = error.to_string();
            let is_quoted = SECRET.as_bytes().windows(8).any(|part| {
                let part = String::from_utf8_lossy(part);
                text.contains(&*part) && !program.contains(&*part)
            });
            assert!(!is_quoted || object != OBJECT, "an error quotes the object: {text}");
        }
    }
}

fn result(filter: &Arc<Filter>, input: &Input) -> Result<Vec<u8>, JqError> {
    let (filter, input) = (Arc::clone(filter), input.clone());
    let work = move |_: &_| {
        let result = filter.result_within(&input, TIME);
        let is_limit = matches!(result, Err(JqError::Limit(_)));
        (result, is_limit)
    };
    RUNTIME.block_on(THREADS.run(work)).unwrap()
}
