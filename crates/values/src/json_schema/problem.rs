//! Why a schema can't be used.

/// What is wrong with a schema, in Helm's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SchemaProblem {
    /// A name within a schema that nothing has.
    #[error("anchor in {} not found in schema {}", quote(.reference), quote(.url))]
    AnchorNotFound { reference: String, url: String },
    /// Two schemas of one name.
    #[error("duplicate anchor {} in {} at {} and {}", quote(.anchor), quote(.url), quote(.first), quote(.second))]
    DuplicateAnchor { anchor: String, url: String, first: String, second: String },
    /// Two schemas of one address.
    #[error("duplicate id {} in {} at {} and {}", quote(.id), quote(.url), quote(.first), quote(.second))]
    DuplicateId { id: String, url: String, first: String, second: String },
    /// A document that is not at hand.
    #[error("failing loading {}: {why}", quote(.url))]
    Load { url: String, why: String },
    /// A schema that is none.
    #[error("{} is not valid against metaschema: {findings}", quote(.url))]
    Metaschema { url: String, findings: String },
    /// A fragment that is no address within a document.
    #[error("error in parsing anchor at {}", quote(.0))]
    ParseAnchor(String),
    /// An address that is none.
    #[error("error in parsing id at {}", quote(.0))]
    ParseId(String),
    /// A reference that is no address.
    #[error("error in parsing {}: {why}", quote(.url))]
    ParseUrl { url: String, why: String },
    /// An address within a document that breaks the rules.
    #[error("invalid json-pointer {}", quote(.0))]
    Pointer(String),
    /// An address within a document where nothing is.
    #[error("json-pointer in {} not found", quote(.0))]
    PointerNotFound(String),
    /// A regular expression that is none.
    #[error("invalid regex {} at {}: {why}", quote(.regex), quote(.url))]
    Regex { regex: String, url: String, why: String },
    /// A schema that is its own schema of schemas.
    #[error("draft {} is not supported", quote(.0))]
    Unsupported(String),
}

fn quote(text: &str) -> String {
    golang::strconv::quote(text.as_bytes())
}
