//! The functions that templates may call, beyond those of the language.

mod args;
mod case;
mod certificates;
mod convert;
mod crypto;
mod dates;
mod decimal;
mod defaults;
mod dicts;
mod encodings;
mod jsons;
mod kinds;
mod lists;
mod math;
mod merge;
mod names;
mod paths;
mod random;
mod regexes;
mod shown;
mod strings;
mod text;
mod times;
mod toml_number;
mod toml_problem;
mod toml_writer;
mod tomls;
mod urls;
mod versions;
mod wrap;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::call::Function;

/// The functions by group; a name occurs once.
const GROUPS: &[&[Function]] = &[
    case::FUNCTIONS,
    certificates::FUNCTIONS,
    convert::FUNCTIONS,
    crypto::FUNCTIONS,
    dates::FUNCTIONS,
    defaults::FUNCTIONS,
    dicts::FUNCTIONS,
    encodings::FUNCTIONS,
    jsons::FUNCTIONS,
    kinds::FUNCTIONS,
    lists::FUNCTIONS,
    math::FUNCTIONS,
    paths::FUNCTIONS,
    random::FUNCTIONS,
    regexes::FUNCTIONS,
    strings::FUNCTIONS,
    text::FUNCTIONS,
    tomls::FUNCTIONS,
    urls::FUNCTIONS,
    versions::FUNCTIONS,
    wrap::FUNCTIONS,
];

static BY_NAME: LazyLock<BTreeMap<&str, &Function>> = LazyLock::new(|| {
    GROUPS.iter().flat_map(|group| group.iter()).map(|function| (function.name, function)).collect()
});

/// Returns the function `name`.
pub fn lookup(name: &str) -> Option<&'static Function> {
    BY_NAME.get(name).copied()
}
