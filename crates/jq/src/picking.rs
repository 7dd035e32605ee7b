//! Filters that only pick: `.data`, `{name: .metadata.name}`. Most filters of bindings are like that.
//!
//! They neither repeat nor call anything, so they need no more time than their text and their input have bytes, and no thread
//! of their own.

use jaq_core::load::lex::StrPart;
use jaq_core::load::parse::{BinaryOp, Term};
use jaq_core::path::Part;

/// How many bytes the text of such a filter may have: each part may give the whole input.
const LONGEST: usize = 256;

/// Returns whether the filter with this text and syntax tree only picks.
pub(super) fn only_picks(text: &str, term: &Term<&str>) -> bool {
    text.len() <= LONGEST && picks(term)
}

fn picks(term: &Term<&str>) -> bool {
    match term {
        Term::Id | Term::Num(_) => true,
        Term::Str(format, parts) => {
            format.is_none() && parts.iter().all(|part| !matches!(part, StrPart::Term(_)))
        }
        Term::Arr(items) => items.as_deref().is_none_or(picks),
        Term::Obj(fields) => fields.iter().all(|(key, value)| picks(key) && value.as_ref().is_none_or(picks)),
        Term::BinOp(left, BinaryOp::Pipe(None), right) => picks(left) && picks(right),
        Term::Path(from, path) => {
            picks(from) && path.0.iter().all(|(part, _)| matches!(part, Part::Index(index) if picks(index)))
        }
        Term::Recurse
        | Term::Neg(_)
        | Term::BinOp(..)
        | Term::Label(..)
        | Term::Break(_)
        | Term::Fold(..)
        | Term::TryCatch(..)
        | Term::IfThenElse(..)
        | Term::Def(..)
        | Term::Call(..)
        | Term::Var(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::Filter;

    #[test]
    fn a_filter_that_repeats_or_calls_anything_does_more_than_pick() {
        let picks = |text: &str| Filter::compile(text).unwrap().only_picks();
        for text in [
            ".",
            ".data",
            ".metadata.labels",
            ".metadata.labels[\"app\"]?",
            "{a: .metadata.name, b: .status.phase, \"c\": 1, d: [.spec]}",
            ".spec | .nodeName",
            ".spec.containers[0].image",
        ] {
            assert!(picks(text), "{text}");
        }
        let long = format!("{{{}}}", vec!["a: ."; 100].join(","));
        for text in [
            "..",
            ".[]",
            ".a[1:]",
            ".a, .b",
            "{a: (.a, .b)}",
            ".spec.containers | map(.image)",
            "range(1000000000)",
            "def f: f; f",
            "\"\\(.a)\"",
            "@base64 \"a\"",
            ".a // .b",
            ".a * .b",
            ". as $x | $x",
            "$ENV",
            "reduce .[] as $x (0; . + $x)",
            &long,
        ] {
            assert!(!picks(text), "{text}");
        }
    }
}
