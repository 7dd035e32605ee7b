//! What expressions that select devices are given, and how large it may be.

use std::collections::BTreeMap;

use crate::declared::Declared;
use crate::environment::Environment;
use crate::types::Type;

/// How many attributes, or capacities, a device may have.
const MOST_ENTRIES: u64 = 32;
/// How long the name of a driver or a domain may be, in bytes.
const LONGEST_DOMAIN: u64 = 63;
/// How long the name of an attribute may be, in bytes.
const LONGEST_NAME: u64 = 32;
/// How long the value of an attribute may be, in bytes.
const LONGEST_VALUE: u64 = 64;

/// Returns what such expressions are given, `device`, and the limits of its parts.
pub fn devices() -> (Environment, Declared) {
    let value = sized(Type::Dyn, LONGEST_VALUE);
    let amount = sized(Type::Opaque("kubernetes.Quantity"), 0);
    let fields = BTreeMap::from([
        ("driver".to_owned(), sized(Type::String, LONGEST_DOMAIN)),
        ("attributes".to_owned(), by_domain(entries(LONGEST_NAME, value.clone(), Some(value)))),
        ("capacity".to_owned(), by_domain(entries(LONGEST_NAME, amount, None))),
    ]);
    let of = fields.iter().map(|(name, declared)| (name.clone(), declared.of.clone()));
    let device = Type::object("kubernetes.DRADevice", of);
    let declared = Declared { fields, ..Declared::scalar(device.clone(), 0) };
    (Environment::default().with("device", device).binding(), declared)
}

fn sized(of: Type, max_elements: u64) -> Declared {
    Declared { max_elements, ..Declared::scalar(of, 0) }
}

fn by_domain(entries: Declared) -> Declared {
    self::entries(LONGEST_DOMAIN, entries, None)
}

/// Returns a map; `named` is what is known of entries that are selected by their name.
fn entries(longest: u64, value: Declared, named: Option<Declared>) -> Declared {
    let of = Type::map(Type::String, value.of.clone());
    Declared {
        fields: named.into_iter().map(|named| (Declared::ANY.to_owned(), named)).collect(),
        key: Some(Box::new(sized(Type::String, longest))),
        element: Some(Box::new(value)),
        ..sized(of, MOST_ENTRIES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Program;

    #[test]
    fn attributes_have_limits_and_any_type() {
        let (environment, declared) = devices();
        let cost = |text: &str| {
            Program::compile(text, &environment).map(|program| program.most_cost(Some(&declared)))
        };
        assert!(cost("device.attributes['a.b'].x").is_ok_and(|cost| cost < 100));
        assert!(cost("device.attributes['a.b'].x.contains('y')").is_ok_and(|cost| cost < 100));
        assert!(cost("cel.bind(a, device.attributes['a.b'], a.x && a.y)").is_ok_and(|cost| cost < 100));
        assert!(cost("device.driver == 1").is_err() && cost("device.none").is_err());
        let all = |inner: &str| format!("device.attributes.all(d, {inner})");
        let dear = all(&all(&all(&all("device.attributes[d].all(e, e.contains(device.driver))"))));
        assert!(cost(&dear).is_ok_and(|cost| cost > 1_000_000));
    }
}
