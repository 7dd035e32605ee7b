//! What a failed pod means for its job, as the job's `podFailurePolicy` says.

use serde_json::{Value, json};

use super::status::text;

/// What a failed pod means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// It counts against the limit of failures.
    Counts,
    /// It does not, and another one takes its place.
    IsIgnored,
    /// The job has failed, with this message.
    FailsJob(String),
}

/// Returns what a failed pod means: the first rule that fits says so.
pub(super) fn meaning(job: &Value, pod: &Value) -> Meaning {
    let rules = job.pointer("/spec/podFailurePolicy/rules").and_then(Value::as_array);
    for (index, rule) in rules.into_iter().flatten().enumerate() {
        let action = text(rule, "/action");
        let found = match rule.get("onExitCodes").filter(|asked| !asked.is_null()) {
            Some(asked) => ended_container(pod, asked).map(|(name, code)| {
                format!("Container {name} for pod {} failed with exit code {code}", key(pod))
            }),
            None => condition(pod, rule).map(|kind| format!("Pod {} has condition {kind}", key(pod))),
        };
        let Some(found) = found else {
            continue;
        };
        return match action {
            "FailJob" => Meaning::FailsJob(format!("{found} matching {action} rule at index {index}")),
            "Ignore" => Meaning::IsIgnored,
            _ => Meaning::Counts,
        };
    }
    Meaning::Counts
}

fn key(pod: &Value) -> String {
    format!("{}/{}", text(pod, "/metadata/namespace"), text(pod, "/metadata/name"))
}

/// Returns name and exit code of a container that failed with one of the codes that a rule asks for.
fn ended_container<'a>(pod: &'a Value, asked: &Value) -> Option<(&'a str, i64)> {
    let codes = asked.get("values").and_then(Value::as_array);
    let listed = |code: i64| codes.into_iter().flatten().any(|value| value.as_i64() == Some(code));
    let wanted = text(asked, "/containerName");
    let is_in = text(asked, "/operator") == "In";
    ["/status/containerStatuses", "/status/initContainerStatuses"]
        .iter()
        .filter_map(|path| pod.pointer(path).and_then(Value::as_array))
        .flatten()
        .filter(|status| wanted.is_empty() || text(status, "/name") == wanted)
        .filter_map(|status| {
            let code = status.pointer("/state/terminated/exitCode").and_then(Value::as_i64)?;
            Some((text(status, "/name"), code))
        })
        .find(|&(_, code)| code != 0 && listed(code) == is_in)
}

/// Returns a condition of a pod that a rule asks for.
fn condition<'a>(pod: &Value, rule: &'a Value) -> Option<&'a str> {
    let asked = rule.get("onPodConditions").and_then(Value::as_array);
    let known = pod.pointer("/status/conditions").and_then(Value::as_array);
    let fits = |asked: &Value| {
        let status = asked.get("status").cloned().unwrap_or_else(|| json!("True"));
        known
            .into_iter()
            .flatten()
            .any(|known| text(known, "/type") == text(asked, "/type") && known.get("status") == Some(&status))
    };
    asked.into_iter().flatten().find(|asked| fits(asked)).map(|asked| text(asked, "/type"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod() -> Value {
        let ended =
            |name: &str, code: i64| json!({"name": name, "state": {"terminated": {"exitCode": code}}});
        json!({
            "metadata": {"name": "p", "namespace": "n"},
            "status": {
                "containerStatuses": [ended("fine", 0), ended("main", 3), {"name": "runs", "state": {"running": {}}}],
                "initContainerStatuses": [ended("first", 7)],
                "conditions": [{"type": "DisruptionTarget", "status": "True"}, {"type": "Other", "status": "False"}],
            },
        })
    }

    fn meaning_of(rules: &Value) -> Meaning {
        meaning(&json!({"spec": {"podFailurePolicy": {"rules": rules}}}), &pod())
    }

    #[test]
    fn the_first_rule_that_fits_says_what_a_failure_means() {
        let codes = |action: &str, operator: &str, values: &[i64], container: Value| json!({"action": action, "onExitCodes": {"operator": operator, "values": values, "containerName": container}});
        let condition = |action: &str, kind: &str, status: &str| json!({"action": action, "onPodConditions": [{"type": kind, "status": status}]});
        let failed = |text: &str| Meaning::FailsJob(text.to_owned());
        let by_code =
            failed("Container main for pod n/p failed with exit code 3 matching FailJob rule at index 0");
        let anything = Value::Null;
        for (rule, expected) in [
            (codes("FailJob", "In", &[1, 3], anything.clone()), by_code.clone()),
            (codes("FailJob", "In", &[1], anything.clone()), Meaning::Counts),
            // No container fails with 0.
            (codes("FailJob", "NotIn", &[3, 7], anything.clone()), Meaning::Counts),
            (codes("FailJob", "NotIn", &[1], anything.clone()), by_code),
            (codes("FailJob", "In", &[3], json!("first")), Meaning::Counts),
            (
                codes("FailJob", "In", &[7], json!("first")),
                failed(
                    "Container first for pod n/p failed with exit code 7 matching FailJob rule at index 0",
                ),
            ),
            (codes("Ignore", "In", &[3], anything.clone()), Meaning::IsIgnored),
            (codes("Count", "In", &[3], anything.clone()), Meaning::Counts),
            (condition("Ignore", "DisruptionTarget", "True"), Meaning::IsIgnored),
            (condition("Ignore", "DisruptionTarget", "False"), Meaning::Counts),
            (
                condition("FailJob", "Other", "False"),
                failed("Pod n/p has condition Other matching FailJob rule at index 0"),
            ),
            (condition("Ignore", "Missing", "True"), Meaning::Counts),
        ] {
            assert_eq!(meaning_of(&json!([rule])), expected, "{rule}");
        }
        let counts = codes("Count", "In", &[3], anything);
        let ignores = condition("Ignore", "DisruptionTarget", "True");
        assert_eq!(meaning_of(&json!([counts, ignores])), Meaning::Counts);
        assert_eq!(meaning_of(&json!([ignores, counts])), Meaning::IsIgnored);
        assert_eq!(meaning(&json!({}), &pod()), Meaning::Counts);
    }
}
