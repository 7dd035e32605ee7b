//! Keeping the operations of many runs short.

use super::{Operation, Path};

/// Returns `stored` and then `new` as one short list, sorted by path.
///
/// A later operation takes the place of an earlier one on the same path and of
/// all below it. Tests are not kept: they were judged when they arrived. The
/// order puts parents before children.
pub fn compact(stored: &[Operation], new: &[Operation]) -> Vec<Operation> {
    let mut kept: Vec<Operation> = stored.to_vec();
    for operation in new {
        if matches!(operation, Operation::Test { .. }) {
            continue;
        }
        let path: &Path = operation.path();
        kept.retain(|earlier| earlier.path() != path && !path.is_above(earlier.path()));
        kept.push(operation.clone());
    }
    kept.sort_by(|left, right| left.path().cmp(right.path()));
    kept
}

#[cfg(test)]
mod tests {
    use super::super::{Patch, Root, Target};
    use super::*;

    fn operations(text: &str) -> Vec<Operation> {
        let root = Root::Module("m".to_owned());
        Patch::read(text.as_bytes(), Target::Values, &root).unwrap().operations().to_vec()
    }

    #[test]
    fn later_operations_take_the_place_of_earlier_ones_at_and_below_their_path() {
        for (stored, new, expected) in [
            (
                r#"[{"op":"add","path":"/m/obj","value":{}},{"op":"add","path":"/m/obj/a/b","value":1}]"#,
                r#"{"op":"add","path":"/m/obj","value":{}}"#,
                "[add /m/obj]",
            ),
            (r#"{"op":"add","path":"/m/a","value":1}"#, r#"{"op":"remove","path":"/m/a"}"#, "[remove /m/a]"),
            (
                r#"{"op":"add","path":"/m/b","value":1}"#,
                r#"[{"op":"add","path":"/m/a","value":1},{"op":"test","path":"/m/a","value":1}]"#,
                "[add /m/a, add /m/b]",
            ),
            (
                r#"{"op":"add","path":"/m/ab","value":1}"#,
                r#"{"op":"remove","path":"/m/a"}"#,
                "[remove /m/a, add /m/ab]",
            ),
            (
                "",
                r#"[{"op":"add","path":"/m/a/b","value":1},{"op":"add","path":"/m/a","value":{}},{"op":"add","path":"/m/a-b","value":1},{"op":"add","path":"/m/a/c","value":1}]"#,
                "[add /m/a, add /m/a-b, add /m/a/c]",
            ),
            (
                r#"{"op":"add","path":"/m/l/-","value":1}"#,
                r#"{"op":"add","path":"/m/l/-","value":2}"#,
                "[add /m/l/-]",
            ),
            (r#"{"op":"add","path":"/m/a","value":1}"#, r#"{"op":"add","path":"/m","value":{}}"#, "[add /m]"),
        ] {
            let compacted = compact(&operations(stored), &operations(new));
            assert_eq!(format!("{compacted:?}"), expected, "{stored} + {new}");
        }
    }
}
