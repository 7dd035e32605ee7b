//! What was secret in values of before, which the Secret over the ConfigMap does not say any more.

use serde_json::Value;

use super::{Secrets, is_named};

impl Secrets<'_> {
    /// Returns what was secret in the values `before`, as far as that can be told from the values `now`: what stood where these
    /// secrets are now, and what was below a key whose name tells of a secret.
    ///
    /// What is at a place that is no more may have been a secret as well, where there are any.
    pub fn in_earlier<'b>(&self, before: &'b Value, now: &Value) -> Secrets<'b> {
        let mut found = Vec::new();
        self.collect_earlier(before, Some(now), &mut found);
        Secrets::all_of(&found)
    }

    fn collect_earlier<'b>(&self, before: &'b Value, now: Option<&Value>, found: &mut Vec<&'b Value>) {
        match (before, now) {
            (before, Some(now)) if before == now => {}
            (Value::Object(before), Some(Value::Object(now))) => {
                for (key, item) in before {
                    let now = now.get(key);
                    if is_named(key) && now != Some(item) {
                        found.push(item);
                    } else {
                        self.collect_earlier(item, now, found);
                    }
                }
            }
            (Value::Array(before), Some(Value::Array(now))) => {
                for (index, item) in before.iter().enumerate() {
                    self.collect_earlier(item, now.get(index), found);
                }
            }
            (before, Some(now)) => found.extend(self.hides(now).then_some(before)),
            (before, None) if !self.is_empty() => found.push(before),
            (Value::Object(before), None) => {
                found.extend(before.iter().filter(|(key, _)| is_named(key)).map(|(_, item)| item));
            }
            (_, None) => {}
        }
    }

    /// Reports whether something in a value is masked.
    fn hides(&self, value: &Value) -> bool {
        let mut hidden = value.clone();
        self.hide_in_value(&mut hidden);
        hidden != *value
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_stood_where_a_secret_is_now_was_one() {
        let secret = json!({"login": "second-Passw0rd-B", "pin": 23_456, "list": ["second-of-list"]});
        let now = json!({
            "login": "second-Passw0rd-B", "pin": 23_456, "list": ["second-of-list"], "image": "nginx:1.29.1",
            "url": "postgres://u:second-Passw0rd-B@h", "apiToken": "x", "same": "as before",
        });
        let before = json!({
            "login": "first-Passw0rd-A", "pin": 12_345, "list": ["first-of-list", "one more"], "image": "nginx:1.28.0",
            "url": "postgres://u:first-Passw0rd-A@h", "apiToken": "first-token", "same": "as before", "gone": "first-gone",
        });
        let secrets = Secrets::all_of(&[&secret]);
        let earlier = secrets.in_earlier(&before, &now);
        for (text, shown) in [
            ("login first-Passw0rd-A", "login ******"),
            ("pin 12345", "pin ******"),
            ("first-of-list, one more", "******, ******"),
            ("image nginx:1.28.0", "image nginx:1.28.0"),
            ("postgres://u:first-Passw0rd-A@h", "******"),
            ("first-token", "******"),
            ("as before", "as before"),
            ("first-gone", "******"),
        ] {
            assert_eq!(earlier.hide(text), shown, "{text}");
        }
        // Without a Secret only names tell.
        let before = json!({"a": {"password": "first-Passw0rd", "plain": "first-plain"}, "b": {"token": "first-token"}, "image": "nginx:1.28.0"});
        let earlier = Secrets::default().in_earlier(&before, &json!({"a": {"password": "second"}}));
        let text = "first-Passw0rd first-token first-plain nginx:1.28.0";
        assert_eq!(earlier.hide(text), "****** ****** first-plain nginx:1.28.0");
    }
}
