//! Fields of an object that are left as others wrote them. No I/O.

use serde_json::Value;

/// Makes the field at a JSON pointer in `wanted` what it is in `current`, so that writing `wanted` does not change it.
///
/// A field that was not rendered, nor anything it is in, is left alone anyway.
///
/// # Errors
///
/// The pointer leads into a list that has other items than were rendered, so that nobody knows which field is meant.
pub(super) fn leave(wanted: &mut Value, current: &Value, pointer: &str) -> Result<(), String> {
    let Some(path) = pointer.strip_prefix('/') else { return Ok(()) };
    let steps: Vec<String> = path.split('/').map(|step| step.replace("~1", "/").replace("~0", "~")).collect();
    leave_below(wanted, Some(current), &steps).map_err(|()| {
        format!("{pointer} can't be left to others: the list has other items than were rendered")
    })
}

fn leave_below(wanted: &mut Value, current: Option<&Value>, steps: &[String]) -> Result<(), ()> {
    let Some((step, rest)) = steps.split_first() else { return Ok(()) };
    match wanted {
        Value::Object(fields) => {
            let current = current.and_then(|current| current.get(step));
            if !rest.is_empty() {
                let Some(inner) = fields.get_mut(step) else { return Ok(()) };
                return leave_below(inner, current, rest);
            }
            match current {
                Some(current) if fields.contains_key(step) => {
                    fields.insert(step.clone(), current.clone());
                }
                Some(_) => {}
                None => drop(fields.remove(step)),
            }
            Ok(())
        }
        Value::Array(items) => {
            let others = current.and_then(Value::as_array).ok_or(())?;
            let index = step.parse::<usize>().map_err(|_| ())?;
            let (Some(item), Some(other)) = (items.get(index), others.get(index)) else { return Err(()) };
            if items.len() != others.len() || item.get("name") != other.get("name") {
                return Err(());
            }
            let Some(item) = items.get_mut(index) else { return Err(()) };
            if rest.is_empty() {
                item.clone_from(other);
                return Ok(());
            }
            leave_below(item, Some(other), rest)
        }
        // It was rendered as something that has no fields.
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_that_is_left_to_others_is_taken_over_or_taken_out() {
        let current = json!({"spec": {"replicas": 5, "list": [{"name": "a", "image": "x"}]}, "metadata": {"annotations": {"a/b": "c"}}});
        for (pointer, wanted, expected) in [
            ("/spec/replicas", json!({"spec": {"replicas": 2}}), json!({"spec": {"replicas": 5}})),
            ("/spec/replicas", json!({"spec": {}}), json!({"spec": {}})),
            ("/spec/replicas", json!({}), json!({})),
            ("/spec/paused", json!({"spec": {"paused": true}}), json!({"spec": {}})),
            (
                "/metadata/annotations/a~1b",
                json!({"metadata": {"annotations": {"a/b": "x", "d": "e"}}}),
                json!({"metadata": {"annotations": {"a/b": "c", "d": "e"}}}),
            ),
            (
                "/spec/list/0/image",
                json!({"spec": {"list": [{"name": "a", "image": "y"}]}}),
                json!({"spec": {"list": [{"name": "a", "image": "x"}]}}),
            ),
            ("/spec/replicas/x", json!({"spec": {"replicas": 2}}), json!({"spec": {"replicas": 2}})),
            ("", json!({"spec": {}}), json!({"spec": {}})),
        ] {
            let mut left = wanted.clone();
            leave(&mut left, &current, pointer).unwrap();
            assert_eq!(left, expected, "{pointer} of {wanted}");
        }
    }

    #[test]
    fn a_list_with_other_items_is_not_guessed_at() {
        let current = json!({"list": [{"name": "b"}, {"name": "a", "image": "x"}]});
        for wanted in
            [json!({"list": [{"name": "a", "image": "y"}]}), json!({"list": [{"name": "a"}, {"name": "b"}]})]
        {
            let error = leave(&mut wanted.clone(), &current, "/list/0/image").unwrap_err();
            assert!(error.contains("/list/0/image can't be left to others"), "{error}");
        }
    }
}
