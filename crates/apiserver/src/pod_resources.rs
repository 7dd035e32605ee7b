//! What a pod asks for: the sum of its containers, and how well its needs are known.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use objects::quantity::Quantity;
use serde_json::Value;

use crate::fields::{get, list, map, text};

/// Amounts by the names of resources.
pub(crate) type Amounts = BTreeMap<String, Quantity>;

/// What the names of resources begin with that are pages of memory.
const PAGES: &str = "hugepages-";

/// Returns whether a resource is pages of memory.
pub(crate) fn is_pages(name: &str) -> bool {
    name.starts_with(PAGES)
}

/// Returns whether a pod as a whole can ask for a resource.
pub(crate) fn is_of_pods(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || is_pages(name)
}

/// Returns whether more of a resource may be promised than there is, so that a request may be below its limit.
pub(crate) fn is_overcommitted(name: &str) -> bool {
    let is_native = !name.contains('/') || name.contains("kubernetes.io/");
    is_native && !is_pages(name)
}

/// Returns the amounts in the map at `path`. What is no amount is left out.
pub(crate) fn amounts(object: &Value, path: &str) -> Amounts {
    let amount = |(name, amount): (&String, &Value)| Some((name.clone(), amount.as_str()?.parse().ok()?));
    map(object, path).iter().filter_map(amount).collect()
}

/// Returns what the containers of a pod ask for together, of the `requests` or the `limits`.
///
/// Containers of the start run one after the other, those that stay run on beside all that come later.
pub(crate) fn of_containers(spec: &Value, part: &str) -> Amounts {
    let of = |container: &Value| amounts(get(container, "resources"), part);
    let mut all = Amounts::new();
    for container in list(spec, "containers") {
        add(&mut all, of(container));
    }
    let (mut staying, mut most) = (Amounts::new(), Amounts::new());
    for container in list(spec, "initContainers") {
        if text(container, "restartPolicy") == "Always" {
            add(&mut all, of(container));
            add(&mut staying, of(container));
            raise(&mut most, staying.clone());
        } else {
            let mut needed = of(container);
            add(&mut needed, staying.clone());
            raise(&mut most, needed);
        }
    }
    raise(&mut all, most);
    all
}

fn add(amounts: &mut Amounts, more: Amounts) {
    for (name, amount) in more {
        amounts.entry(name).and_modify(|known| *known = *known + amount).or_insert(amount);
    }
}

/// Makes each amount at least as large as the other.
fn raise(amounts: &mut Amounts, least: Amounts) {
    for (name, least) in least {
        let amount = amounts.entry(name).or_insert(least);
        if amount.compare(least) == Ordering::Less {
            *amount = least;
        }
    }
}

/// Returns how well the needs of a pod are known: those of the pod as a whole, if it has any, or of its containers.
pub(crate) fn quality(spec: &Value) -> &'static str {
    let counted = |object: &Value, part: &str| -> Amounts {
        let zero = |amount: &Quantity| amount.nanos() > 0;
        let amounts = amounts(get(object, "resources"), part).into_iter();
        amounts.filter(|(name, amount)| matches!(&**name, "cpu" | "memory") && zero(amount)).collect()
    };
    let containers = ["containers", "initContainers"].into_iter().flat_map(|name| list(spec, name));
    let asking: Vec<&Value> =
        if get(spec, "resources").is_null() { containers.collect() } else { vec![spec] };
    let (mut requests, mut limits, mut is_limited) = (Amounts::new(), Amounts::new(), true);
    for object in asking {
        let limited = counted(object, "limits");
        is_limited &= limited.len() == 2;
        add(&mut limits, limited);
        add(&mut requests, counted(object, "requests"));
    }
    if requests.is_empty() && limits.is_empty() {
        return "BestEffort";
    }
    let is_same = requests.len() == limits.len()
        && requests.iter().all(|(name, amount)| {
            limits.get(name).is_some_and(|limit| limit.compare(*amount) == Ordering::Equal)
        });
    if is_limited && is_same { "Guaranteed" } else { "Burstable" }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn container(requests: &Value, limits: &Value) -> Value {
        json!({"resources": {"requests": requests, "limits": limits}})
    }

    #[test]
    fn the_quality_of_a_pod_goes_by_the_pod_as_a_whole_where_it_asks_for_something() {
        let both = json!({"cpu": "1", "memory": "1Gi"});
        let full = container(&both, &both);
        assert_eq!(quality(&json!({"containers": [full]})), "Guaranteed");
        let of_pod = json!({"containers": [{}], "resources": {"requests": both, "limits": both}});
        assert_eq!(quality(&of_pod), "Guaranteed");
        let less = json!({"containers": [full], "resources": {"requests": {"cpu": "1"}}});
        assert_eq!(quality(&less), "Burstable");
        assert_eq!(quality(&json!({"containers": [full], "resources": {}})), "BestEffort");
        // The same amount in another form is the same.
        let other = container(&json!({"cpu": "1000m", "memory": "1024Mi"}), &both);
        assert_eq!(quality(&json!({"containers": [other]})), "Guaranteed");
        let zero = container(&json!({"cpu": "0m"}), &json!({}));
        assert_eq!(quality(&json!({"containers": [zero]})), "BestEffort");
    }

    #[test]
    fn containers_of_the_start_need_no_more_than_the_largest_of_them_beside_those_that_stay() {
        let of = |cpu: &str| container(&json!({"cpu": cpu}), &json!({}));
        let mut stays = of("100m");
        stays["restartPolicy"] = json!("Always");
        let spec =
            json!({"containers": [of("200m"), of("300m")], "initContainers": [of("1"), stays, of("800m")]});
        let all = of_containers(&spec, "requests");
        assert_eq!(all.get("cpu").unwrap().to_string(), "1");
        let spec = json!({"containers": [of("200m")], "initContainers": [stays, of("950m")]});
        assert_eq!(of_containers(&spec, "requests").get("cpu").unwrap().to_string(), "1050m");
    }
}
