//! Rules in CEL at levels of a schema: `x-deckhouse-validations`. See docs/modules.md#rules-in-cel.

use std::collections::BTreeMap;

use expressions::{Failure, FailureKind, Key, PER_CALL_LIMIT, Program, Value as Cel};
use serde_json::{Map, Value};

/// The keyword of rules.
const RULES: &str = "x-deckhouse-validations";

/// How long an expression may be, in bytes.
const MAX_BYTES: usize = 4_096;

/// How many rules one level may have.
const MAX_RULES: usize = 64;

/// How many levels of a schema are looked at.
const MAX_DEPTH: usize = 64;

/// The rules of one level of a schema, and of the levels below it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Rules {
    own: Vec<Rule>,
    below: Vec<(String, Rules)>,
    /// Whether there are rules so far below that nobody looks at them.
    has_deeper: bool,
}

#[derive(Clone, Debug, PartialEq)]
struct Rule {
    expression: Result<Compiled, String>,
    message: String,
}

/// An expression that can be evaluated.
#[derive(Clone, Debug, PartialEq)]
struct Compiled {
    program: Program,
    mentions_old: bool,
}

impl Rules {
    /// Reads the rules of a schema: those at levels that `properties` lead to.
    pub(super) fn of(schema: &Map<String, Value>) -> Self {
        Self::at(schema, MAX_DEPTH)
    }

    fn at(schema: &Map<String, Value>, depth: usize) -> Self {
        let Some(depth) = depth.checked_sub(1) else {
            return Self { has_deeper: has_rules(schema), ..Self::default() };
        };
        let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        let below = properties.filter_map(|(name, schema)| {
            let rules = Self::at(schema.as_object()?, depth);
            (!rules.is_empty()).then(|| (name.clone(), rules))
        });
        let own = schema.get(RULES).map(read).unwrap_or_default();
        Self { own, below: below.collect(), has_deeper: false }
    }

    fn is_empty(&self) -> bool {
        self.own.is_empty() && self.below.is_empty() && !self.has_deeper
    }

    /// Returns what is wrong with rules that can't be evaluated, and where.
    pub(super) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        self.add_problems("", &mut problems);
        problems
    }

    fn add_problems(&self, pointer: &str, problems: &mut Vec<String>) {
        if self.has_deeper {
            problems.push(format!(
                "at {pointer:?}: rules below {MAX_DEPTH} levels of properties are left out: move them to a level above"
            ));
        }
        for (name, rules) in &self.below {
            rules.add_problems(&format!("{pointer}/properties/{name}"), problems);
        }
        let broken = self.own.iter().filter_map(|rule| rule.expression.as_ref().err());
        problems.extend(broken.map(|problem| format!("at \"{pointer}/{RULES}\": {problem}")));
    }

    /// Returns the messages of the rules that `value` breaks. Rules about the value before are left out where there is none.
    pub(super) fn check(&self, key: &str, value: &Value, old: Option<&Value>) -> Vec<String> {
        let mut messages = Vec::new();
        if !self.is_empty() {
            let old = old.map(with_doubles);
            self.add_messages(key, &with_doubles(value), old.as_ref(), &mut messages);
        }
        messages
    }

    fn add_messages(&self, path: &str, value: &Cel, old: Option<&Cel>, messages: &mut Vec<String>) {
        for (name, rules) in &self.below {
            if let Some(value) = field(value, name) {
                let old = old.and_then(|old| field(old, name));
                rules.add_messages(&format!("{path}.{name}"), value, old, messages);
            }
        }
        if self.own.is_empty() {
            return;
        }
        let given = [("self", Some(value)), ("oldSelf", old)];
        let given: BTreeMap<&str, Cel> =
            given.into_iter().filter_map(|(name, value)| Some((name, value?.clone()))).collect();
        for rule in &self.own {
            messages.extend(rule.check(&given).err().map(|problem| match problem {
                Broken::Rule => format!("{path}: {}", rule.message),
                Broken::Evaluation(problem) => format!("{path}: {RULES}: {problem}"),
            }));
        }
    }
}

/// Returns whether there are rules at a level, or at one below it.
fn has_rules(schema: &Map<String, Value>) -> bool {
    let mut levels = vec![schema];
    while let Some(schema) = levels.pop() {
        if schema.contains_key(RULES) {
            return true;
        }
        let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        levels.extend(properties.filter_map(|(_, schema)| schema.as_object()));
    }
    false
}

/// Returns a field of a value.
fn field<'v>(value: &'v Cel, name: &str) -> Option<&'v Cel> {
    if let Cel::Map(fields) = value { fields.get(&Key::text(name)) } else { None }
}

/// How a rule is broken.
enum Broken {
    /// The value is not as the rule asks for.
    Rule,
    /// The rule can't be evaluated.
    Evaluation(String),
}

/// Reads a list of rules. One that can't be read fails whenever the level is there, as in the reference operator.
fn read(list: &Value) -> Vec<Rule> {
    let broken = |problem: String| Rule { expression: Err(problem), message: String::new() };
    let Some(items) = list.as_array() else {
        return vec![broken("should be a list of {expression, message}".to_owned())];
    };
    if items.len() > MAX_RULES {
        return vec![broken(format!("has {} rules, the maximum is {MAX_RULES}", items.len()))];
    }
    let text = |item: &Value, field: &str| {
        let text = item.get(field).and_then(Value::as_str).unwrap_or_default();
        (!text.is_empty()).then(|| text.to_owned())
    };
    let one = |(place, item): (usize, &Value)| match (text(item, "expression"), text(item, "message")) {
        (Some(expression), Some(message)) => Rule {
            expression: Compiled::new(&expression).map_err(|problem| format!("rule {place}: {problem}")),
            message,
        },
        (None, _) => broken(format!("rule {place}: expression should be a text that is not empty")),
        (_, None) => broken(format!("rule {place}: message should be a text that is not empty")),
    };
    items.iter().enumerate().map(one).collect()
}

impl Compiled {
    fn new(text: &str) -> Result<Self, String> {
        if text.len() > MAX_BYTES {
            return Err(format!("the expression has {} bytes, the maximum is {MAX_BYTES}", text.len()));
        }
        let program = Program::parse(text).map_err(|problems| {
            let problems: Vec<&str> =
                problems.lines().filter_map(|line| line.strip_prefix("ERROR: <input>:")).collect();
            format!("{text:?} does not compile: {}", problems.join("; "))
        })?;
        let mentions_old = program.mentions("oldSelf");
        Ok(Self { program, mentions_old })
    }
}

impl Rule {
    fn check(&self, given: &BTreeMap<&str, Cel>) -> Result<(), Broken> {
        let rule = self.expression.as_ref().map_err(|problem| Broken::Evaluation(problem.clone()))?;
        if rule.mentions_old && !given.contains_key("oldSelf") {
            return Ok(());
        }
        let wrong = |problem: &str| Broken::Evaluation(format!("{:?} {problem}", rule.program.text()));
        match rule.program.run(given, PER_CALL_LIMIT).value {
            Ok(Cel::Bool(true)) => Ok(()),
            Ok(Cel::Bool(false)) => Err(Broken::Rule),
            Ok(_) => Err(wrong("should be true or false")),
            Err(failure) => match failure.kind {
                // What is not there is not asked about.
                FailureKind::NoSuchKey => Ok(()),
                FailureKind::Cost => {
                    Err(wrong("costs too much for values of this length; write fewer loops into each other"))
                }
                FailureKind::NoSuchOverload(..)
                | FailureKind::Undeclared(_)
                | FailureKind::DivisionByZero
                | FailureKind::Other => Err(wrong(&format!("can't be evaluated: {}", shown(&failure)))),
            },
        }
    }
}

/// Returns what went wrong, without the values that were looked at.
fn shown(failure: &Failure) -> String {
    match &failure.kind {
        FailureKind::NoSuchOverload(function, types) => {
            let types: Vec<&str> = types.iter().map(String::as_str).collect();
            format!("{function} can't be applied to {}{}", types.join(" and "), advice(&types))
        }
        FailureKind::Undeclared(name) => format!("there is no {name}"),
        FailureKind::DivisionByZero => "division by zero".to_owned(),
        // The others may quote what they were given.
        FailureKind::NoSuchKey | FailureKind::Cost | FailureKind::Other => {
            "an operator or function can't use a value that it was given".to_owned()
        }
    }
}

/// Returns what to do where a number of the values meets one that is written without a dot.
fn advice(types: &[&str]) -> &'static str {
    if types.contains(&"double") && types.contains(&"int") {
        "; numbers of values are doubles: write 1.0 for 1"
    } else {
        ""
    }
}

/// Returns a value whose numbers are doubles: all numbers of values are, as in the reference operator.
fn with_doubles(value: &Value) -> Cel {
    match value {
        Value::Number(number) => number.as_f64().map_or(Cel::Null, Cel::Double),
        Value::Array(items) => Cel::list(items.iter().map(with_doubles).collect()),
        Value::Object(map) => Cel::map(map.iter().map(|(key, value)| (Key::text(key), with_doubles(value)))),
        Value::Null | Value::Bool(_) | Value::String(_) => Cel::of(value),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rules(schema: &Value) -> Rules {
        Rules::of(schema.as_object().unwrap())
    }

    fn one(expression: &str) -> Rules {
        rules(&json!({"x-deckhouse-validations": [{"expression": expression, "message": "no"}]}))
    }

    #[test]
    fn a_rule_holds_or_its_message_says_how_it_does_not() {
        for (expression, value, holds) in [
            ("self.min <= self.max", json!({"min": 1, "max": 2}), true),
            ("self.min <= self.max", json!({"min": 3, "max": 2}), false),
            ("self.replicas > 1", json!({"replicas": 1.5}), true),
            ("self.replicas > 1", json!({"replicas": 1}), false),
            ("size(self.hosts) > 1", json!({"hosts": ["a"]}), false),
            ("self.hosts.all(h, h.startsWith('a'))", json!({"hosts": ["a", "ab"]}), true),
            ("self.hosts.exists(h, h == 'b')", json!({"hosts": ["a"]}), false),
            ("self.name.matches('^[a-z]+$')", json!({"name": "web"}), true),
            ("has(self.tls) ? self.tls.host != '' : true", json!({}), true),
            ("'a' in self", json!({"a": null}), true),
            ("self == 2.0", json!(2), true),
            // What is not there is not asked about.
            ("self.missing > 1", json!({}), true),
        ] {
            let expected = if holds { Vec::new() } else { vec!["m: no".to_owned()] };
            assert_eq!(one(expression).check("m", &value, None), expected, "{expression} {value}");
        }
    }

    #[test]
    fn levels_are_asked_from_below_and_only_where_there_is_a_value() {
        let rule = |expression: &str, message: &str| json!([{"expression": expression, "message": message}]);
        let rules = rules(&json!({
            "x-deckhouse-validations": rule("false", "root"),
            "properties": {"a": {
                "x-deckhouse-validations": rule("false", "a"),
                "properties": {"b": {"x-deckhouse-validations": rule("self == 1.0", "b")}},
            }},
            "items": {"x-deckhouse-validations": rule("false", "items")},
        }));
        assert_eq!(rules.check("m", &json!({"a": {"b": 2}}), None), ["m.a.b: b", "m.a: a", "m: root"]);
        assert_eq!(rules.check("m", &json!({"a": {}}), None), ["m.a: a", "m: root"]);
        assert_eq!(rules.check("m", &json!({}), None), ["m: root"]);
    }

    #[test]
    fn rules_about_the_value_before_are_left_out_where_there_is_none() {
        let rules = rules(&json!({"properties": {"size": {"x-deckhouse-validations": [
            {"expression": "self >= oldSelf", "message": "it may not shrink"},
        ]}}}));
        let (small, large) = (json!({"size": 1}), json!({"size": 2}));
        assert_eq!(rules.check("m", &small, Some(&large)), ["m.size: it may not shrink"]);
        for old in [None, Some(&small), Some(&json!({}))] {
            assert_eq!(rules.check("m", &small, old), Vec::<String>::new());
        }
    }

    #[test]
    fn a_rule_that_cannot_be_evaluated_is_told_without_values() {
        let value = json!({"secret": "hunter2", "min": 1, "list": ["hunter2"]});
        for (expression, problem) in [
            ("self.min + 1 > 1", "numbers of values are doubles: write 1.0 for 1"),
            ("self.secret + 1.0 == ''", "can't be evaluated"),
            ("self.secret", "should be true or false"),
            ("self.secret.nothing() == 1", "can't be evaluated"),
            ("int(self.secret) > 1", "can't be evaluated"),
            ("nothing == 1", "can't be evaluated: there is no nothing"),
            ("self.list[self.secret] == 1", "can't be evaluated"),
            ("self.min / 0.0 > self.secret", "can't be evaluated"),
            ("self.", "does not compile"),
            ("(((", "does not compile"),
        ] {
            let found = one(expression).check("m", &value, None).join("\n");
            assert!(found.contains(problem), "{expression}: {found}");
            assert!(found.starts_with("m: x-deckhouse-validations: "), "{found}");
            assert!(!found.contains("hunter2"), "{found}");
        }
    }

    #[test]
    fn lists_that_are_none_are_told_with_their_place() {
        for (list, problem) in [
            (json!("self"), "should be a list of {expression, message}"),
            (json!(["self"]), "rule 0: expression should be a text"),
            (json!([{"expression": "true"}]), "rule 0: message should be a text"),
            (json!([{"expression": "", "message": "m"}]), "rule 0: expression should be a text"),
            (json!([{"expression": "self.", "message": "m"}]), "does not compile"),
            (
                json!(vec![json!({"expression": "true", "message": "m"}); 65]),
                "has 65 rules, the maximum is 64",
            ),
            (json!([{"expression": "1".repeat(4_097), "message": "m"}]), "has 4097 bytes"),
        ] {
            let rules = rules(&json!({"properties": {"a": {"x-deckhouse-validations": list}}}));
            let problems = rules.problems().join("\n");
            assert!(problems.starts_with("at \"/properties/a/x-deckhouse-validations\": "), "{problems}");
            assert!(problems.contains(problem), "{problems}");
            assert_eq!(rules.check("m", &json!({}), None), Vec::<String>::new());
            assert!(rules.check("m", &json!({"a": 1}), None).join("").contains(problem));
        }
    }

    #[test]
    fn what_takes_too_long_is_ended() {
        let loops = "self.all(a, self.all(b, self.all(c, a + b + c >= 0.0)))";
        let short = Value::from(vec![1; 20]);
        let long = Value::from(vec![1; 2_000]);
        assert_eq!(one(loops).check("m", &short, None), Vec::<String>::new());
        let told = one(loops).check("m", &long, None).join("");
        assert!(told.contains("costs too much"), "{told}");
        assert_eq!(one("self.all(a, a == 1.0)").check("m", &long, None), Vec::<String>::new());
        // Nesting has an end that is told.
        for deep in ["(".repeat(2_000), "!".repeat(4_000), "[".repeat(4_000), "-".repeat(4_000)] {
            assert!(!one(&deep).check("m", &short, None).is_empty());
        }
        let chain = format!("{}true", "self == 1.0 ? false : ".repeat(150));
        assert!(one(&chain).check("m", &json!(2), None).len() <= 1);
    }

    #[test]
    fn what_grows_without_end_is_ended_before_it_is_large() {
        let doubled = format!("size([self]{}) > 1", ".map(x, x + x)".repeat(40));
        let replaced = format!("size(self{}) > 1", ".replace('', self)".repeat(40));
        let formatted = "size('%s%s%s'.format([self,self,self])) > 1";
        for (expression, value) in [
            (doubled, json!([1, 2])),
            (replaced, json!("xyz")),
            (
                "size([self].map(x, x.replace('', x)).map(x, x.replace('', x)).map(x, x.replace('', x))) > 0"
                    .to_owned(),
                json!("x".repeat(3_000)),
            ),
        ] {
            let told = one(&expression).check("m", &value, None).join("");
            assert!(told.contains("costs too much"), "{expression}: {told}");
        }
        assert_eq!(one(formatted).check("m", &json!("ab"), None), Vec::<String>::new());
    }

    #[test]
    fn rules_that_are_too_deep_are_named() {
        let mut schema = json!({"x-deckhouse-validations": [{"expression": "true", "message": "m"}]});
        for _ in 0..70 {
            schema = json!({"properties": {"a": schema}});
        }
        let problems = rules(&schema).problems();
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].contains("rules below 64 levels of properties are left out"), "{problems:?}");
        assert_eq!(rules(&schema).check("m", &json!({"a": {"a": 1}}), None), Vec::<String>::new());
    }
}
