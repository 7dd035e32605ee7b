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
mod format;
mod json_yaml;
mod kinds;
mod lists;
mod math;
mod merge;
mod name_case;
mod paths;
mod random;
mod regex;
mod string_lists;
mod strings;
mod time_object;
mod toml;
mod url;
mod versions;
mod wrap;

use crate::value::Function;

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
    json_yaml::FUNCTIONS,
    kinds::FUNCTIONS,
    lists::FUNCTIONS,
    math::FUNCTIONS,
    paths::FUNCTIONS,
    random::FUNCTIONS,
    regex::FUNCTIONS,
    string_lists::FUNCTIONS,
    strings::FUNCTIONS,
    toml::FUNCTIONS,
    url::FUNCTIONS,
    versions::FUNCTIONS,
    wrap::FUNCTIONS,
];

/// Returns all functions.
pub(crate) fn all() -> impl Iterator<Item = &'static Function> {
    GROUPS.iter().copied().flatten()
}
