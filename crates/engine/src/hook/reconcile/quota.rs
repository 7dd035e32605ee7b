//! What the API server says of a quota that has no room for a new object.

use objects::quantity::Quantity;

/// Returns whether a refusal names a quota that the new object exceeds alone, whatever else is there: no object makes room for it by
/// going.
///
/// `message` has the form `…exceeded quota: NAME, requested: a=1,b=2, used: …, limited: …`. Any other one is no such refusal.
pub fn exceeds_quota_alone(message: &str) -> bool {
    let Some((_, refusal)) = message.split_once("exceeded quota: ") else { return false };
    let amounts = |part: &str| {
        let (_, list) = refusal.split_once(part)?;
        Some(list.split(", ").next().unwrap_or_default().split(',').filter_map(amount).collect::<Vec<_>>())
    };
    let (Some(requested), Some(limited)) = (amounts(", requested: "), amounts(", limited: ")) else {
        return false;
    };
    requested.iter().any(|(resource, wanted)| {
        limited.iter().any(|(name, most)| name == resource && wanted.compare(*most).is_gt())
    })
}

/// Reads `RESOURCE=AMOUNT`.
fn amount(text: &str) -> Option<(&str, Quantity)> {
    let (resource, amount) = text.split_once('=')?;
    Some((resource, amount.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_exceeds_a_quota_alone_is_told_from_what_has_no_room_beside_others() {
        let refused = |text: &str| {
            exceeds_quota_alone(&format!(r#"pods "a" is forbidden: exceeded quota: q, requested: {text}"#))
        };
        assert!(refused("requests.storage=2Gi, used: requests.storage=1Gi, limited: requests.storage=1Gi"));
        assert!(refused("requests.cpu=1500m, used: requests.cpu=800m, limited: requests.cpu=1"));
        assert!(refused("pods=1,cpu=2, used: pods=0,cpu=1, limited: pods=1,cpu=1500m"));
        for text in [
            "requests.storage=1Gi, used: requests.storage=1Gi, limited: requests.storage=1Gi",
            "pods=1,cpu=1, used: pods=1,cpu=1, limited: pods=1,cpu=1500m",
            "cpu=2, used: cpu=1, limited: memory=1",
            "cpu=x, used: cpu=1, limited: cpu=1",
            "cpu=2",
            "",
        ] {
            assert!(!refused(text), "{text}");
        }
        assert!(!exceeds_quota_alone("requested: a=2, limited: a=1"));
    }
}
