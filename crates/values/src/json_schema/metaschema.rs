//! The schemas of schemas.

use std::sync::{Arc, LazyLock};

use golang::url::Url;
use serde_json::Value;

use super::compile::{Compiled, compile_metaschema};
use super::draft::Draft;
use super::problem::SchemaProblem;

/// The documents as json-schema.org publishes them, the first three in the editions that Helm
/// carries; their addresses are below that site.
const DOCUMENTS: &[(&str, &str)] = &[
    ("draft/2019-09/meta/applicator", include_str!("metaschemas/2019-09-applicator.json")),
    ("draft/2019-09/meta/content", include_str!("metaschemas/2019-09-content.json")),
    ("draft/2019-09/meta/core", include_str!("metaschemas/2019-09-core.json")),
    ("draft/2019-09/meta/format", include_str!("metaschemas/2019-09-format.json")),
    ("draft/2019-09/meta/meta-data", include_str!("metaschemas/2019-09-meta-data.json")),
    ("draft/2019-09/schema", include_str!("metaschemas/2019-09-schema.json")),
    ("draft/2019-09/meta/validation", include_str!("metaschemas/2019-09-validation.json")),
    ("draft/2020-12/meta/applicator", include_str!("metaschemas/2020-12-applicator.json")),
    ("draft/2020-12/meta/content", include_str!("metaschemas/2020-12-content.json")),
    ("draft/2020-12/meta/core", include_str!("metaschemas/2020-12-core.json")),
    ("draft/2020-12/meta/format-annotation", include_str!("metaschemas/2020-12-format-annotation.json")),
    ("draft/2020-12/meta/format-assertion", include_str!("metaschemas/2020-12-format-assertion.json")),
    ("draft/2020-12/meta/meta-data", include_str!("metaschemas/2020-12-meta-data.json")),
    ("draft/2020-12/schema", include_str!("metaschemas/2020-12-schema.json")),
    ("draft/2020-12/meta/unevaluated", include_str!("metaschemas/2020-12-unevaluated.json")),
    ("draft/2020-12/meta/validation", include_str!("metaschemas/2020-12-validation.json")),
    ("draft-04/schema", include_str!("metaschemas/draft-04.json")),
    ("draft-06/schema", include_str!("metaschemas/draft-06.json")),
    ("draft-07/schema", include_str!("metaschemas/draft-07.json")),
];

static FOUR: LazyLock<Option<Compiled>> = LazyLock::new(|| compile_metaschema(Draft::Four).ok());
static SIX: LazyLock<Option<Compiled>> = LazyLock::new(|| compile_metaschema(Draft::Six).ok());
static SEVEN: LazyLock<Option<Compiled>> = LazyLock::new(|| compile_metaschema(Draft::Seven).ok());
static NINETEEN: LazyLock<Option<Compiled>> = LazyLock::new(|| compile_metaschema(Draft::Nineteen).ok());
static TWENTY: LazyLock<Option<Compiled>> = LazyLock::new(|| compile_metaschema(Draft::Twenty).ok());

/// Returns the schema that schemas of a draft have to fit.
pub(super) fn of(draft: Draft) -> Option<&'static Compiled> {
    match draft {
        Draft::Four => FOUR.as_ref(),
        Draft::Six => SIX.as_ref(),
        Draft::Seven => SEVEN.as_ref(),
        Draft::Nineteen => NINETEEN.as_ref(),
        Draft::Twenty => TWENTY.as_ref(),
    }
}

/// Returns the document at `url`: those of the drafts are at hand, no others.
pub(super) fn load(url: &str) -> Result<Arc<Value>, SchemaProblem> {
    let not_there = |why: String| SchemaProblem::Load { url: url.to_owned(), why };
    let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
    let name = url.strip_prefix("http://json-schema.org/").or(url.strip_prefix("https://json-schema.org/"));
    let wanted = name.map(|name| if name == "schema" { "draft/2020-12/schema" } else { name });
    if let Some((_, text)) = DOCUMENTS.iter().find(|(name, _)| Some(*name) == wanted)
        && let Ok(document) = serde_json::from_str(text)
    {
        return Ok(Arc::new(document));
    }
    Err(match scheme {
        "file" => {
            let path = Url::parse(url).unwrap_or_default().path;
            not_there(format!("open {path}: no such file or directory"))
        }
        "http" | "https" => {
            not_there(format!("HTTP request failed for {url}: schemas are not fetched from the network"))
        }
        _ => not_there(format!("no URLLoader registered for {}", golang::strconv::quote(url.as_bytes()))),
    })
}
