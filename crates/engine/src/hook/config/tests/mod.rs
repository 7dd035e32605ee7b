//! Tests of configurations of hooks.

mod corpus;
mod dialects;
mod meaning;
mod random;
mod reconcile;
mod sections;
mod shapes;

use super::*;

fn module(text: &str) -> Result<HookSpec, ConfigError> {
    parse("hooks/test.sh".into(), HookKind::Module, text)
}

fn valid(text: &str) -> HookSpec {
    module(text).unwrap_or_else(|error| panic!("{text}\n{error}"))
}

/// Returns the bullets of the list of errors, or the whole message.
fn errors(text: &str) -> Vec<String> {
    let message = module(text).map(|spec| format!("{spec:?}")).unwrap_err().to_string();
    let bullets: Vec<String> =
        message.lines().filter_map(|l| l.strip_prefix("\t* ")).map(Into::into).collect();
    if bullets.is_empty() { vec![message] } else { bullets }
}
