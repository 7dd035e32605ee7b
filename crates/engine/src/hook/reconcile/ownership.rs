//! How children say whose they are.

use serde_json::Value;

/// The label of everything that a controller makes: only such objects are watched.
pub(crate) const CHILD_LABEL: &str = "addon-operator.io/child";
/// The annotation of a child whose parent can't be its owner, as that is in another namespace.
pub(crate) const OWNED_BY: &str = "addon-operator.io/owned-by";

/// The annotation of a child that says which binding makes it: the kind of its parent may have several.
pub(crate) const MADE_BY: &str = "addon-operator.io/made-by";

/// What a person can do if an object is there already in the place of a child, and is none.
pub const ANOTHER_NAME: &str =
    "give the child another name, or delete what is there; the object is tried again by itself";

/// Returns whether an object that is there is already the child that `wanted` is to be: it names the same parent, and
/// no other binding that makes it.
pub fn is_child_of_same(living: &Value, wanted: &Value) -> bool {
    let owners = |object: &Value| -> Vec<String> {
        let all = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
        let uids = all.into_iter().flatten().filter_map(|owner| owner.get("uid")?.as_str());
        uids.map(str::to_owned).collect()
    };
    let annotation = |object: &Value, name: &str| {
        Some(object.get("metadata")?.get("annotations")?.get(name)?.as_str()?.to_owned())
    };
    let named = |object: &Value| annotation(object, OWNED_BY);
    let maker = annotation(living, MADE_BY);
    if maker.is_some() && maker != annotation(wanted, MADE_BY) {
        return false;
    }
    let living_owners = owners(living);
    owners(wanted).iter().any(|uid| living_owners.contains(uid))
        || named(wanted).is_some_and(|parent| named(living) == Some(parent))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_belongs_to_whom_it_names_as_owner_or_in_the_annotation() {
        let owned = |uid: &str| json!({"metadata": {"ownerReferences": [{"uid": "0"}, {"uid": uid}]}});
        let named = |parent: &str| json!({"metadata": {"annotations": {OWNED_BY: parent}}});
        let wanted = |uid: &str| json!({"metadata": {"ownerReferences": [{"uid": uid}]}});
        assert!(is_child_of_same(&owned("1"), &wanted("1")));
        assert!(!is_child_of_same(&owned("1"), &wanted("2")));
        assert!(is_child_of_same(&named("Site.example.com/ns/a"), &named("Site.example.com/ns/a")));
        assert!(!is_child_of_same(&named("Site.example.com/ns/a"), &named("Site.example.com/ns/b")));
        let labelled = json!({"metadata": {"labels": {CHILD_LABEL: "true"}}});
        for nobody in
            [json!({}), labelled, json!({"metadata": {"annotations": null, "ownerReferences": null}})]
        {
            assert!(!is_child_of_same(&nobody, &wanted("1")) && !is_child_of_same(&nobody, &named("a/b/c")));
        }
    }

    #[test]
    fn what_another_binding_made_of_the_same_parent_is_no_child_of_this_one() {
        let made =
            |by: &str| json!({"metadata": {"ownerReferences": [{"uid": "1"}], "annotations": {MADE_BY: by}}});
        let before = json!({"metadata": {"ownerReferences": [{"uid": "1"}]}});
        assert!(is_child_of_same(&made("a"), &made("a")) && is_child_of_same(&before, &made("a")));
        assert!(!is_child_of_same(&made("b"), &made("a")));
    }
}
