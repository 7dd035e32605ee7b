//! Label selectors: `a=b,c!=d,e in (x, y),f notin (z),g,!h,i>1`.

use serde_json::Value;

use super::{Selectable, SelectorError};
use crate::names;

/// A list of requirements that must all hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector(pub Vec<Requirement>);

/// What one label must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// The name of the label.
    pub key: String,
    /// How the label is compared.
    pub operator: Operator,
    /// With what.
    pub values: Vec<String>,
}

/// How a label is compared with values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// The label is absent.
    Absent,
    /// The label is present.
    Exists,
    /// The label is a greater number.
    Greater,
    /// The label is one of the values.
    In,
    /// The label is a smaller number.
    Less,
    /// The label is absent or none of the values.
    NotIn,
}

impl LabelSelector {
    /// Returns whether every object is selected.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether `object` is selected.
    pub fn selects(&self, object: &impl Selectable) -> bool {
        self.0.iter().all(|requirement| requirement.holds(object.label(&requirement.key)))
    }

    /// Reads a selector as objects carry it: `matchLabels` and `matchExpressions`.
    ///
    /// What cannot be read selects nothing.
    pub fn of(selector: &Value) -> LabelSelector {
        let labels = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
        let expressions = selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten();
        let equal = labels.map(|(key, value)| Requirement::of(key, "In", [value]));
        let other = expressions.map(|expression| {
            let text = |name: &str| expression.get(name).and_then(Value::as_str).unwrap_or_default();
            let values = expression.get("values").and_then(Value::as_array).into_iter().flatten();
            Requirement::of(text("key"), text("operator"), values)
        });
        LabelSelector(equal.chain(other).collect())
    }

    /// Reads a selector as requests carry it.
    pub fn parse(text: &str) -> Result<LabelSelector, SelectorError> {
        // Go's reader of selectors ends at this character.
        let text = text.split('\0').next().unwrap_or_default();
        let mut parser = Parser { rest: text };
        parser.selector().map(LabelSelector)
    }
}

impl Requirement {
    fn of<'a>(key: &str, operator: &str, values: impl IntoIterator<Item = &'a Value>) -> Requirement {
        let values = values.into_iter().filter_map(Value::as_str).map(str::to_owned).collect();
        let (operator, values) = match operator {
            "In" => (Operator::In, values),
            "NotIn" => (Operator::NotIn, values),
            "Exists" => (Operator::Exists, Vec::new()),
            "DoesNotExist" => (Operator::Absent, Vec::new()),
            // No label is one of no values.
            _ => (Operator::In, Vec::new()),
        };
        Requirement { key: key.to_owned(), operator, values }
    }

    /// Returns whether a label with this value satisfies the requirement.
    pub fn holds(&self, label: Option<&str>) -> bool {
        let is_listed = |label: &str| self.values.iter().any(|value| value == label);
        match self.operator {
            Operator::Absent => label.is_none(),
            Operator::Exists => label.is_some(),
            Operator::In => label.is_some_and(is_listed),
            Operator::NotIn => !label.is_some_and(is_listed),
            Operator::Greater => self.compare(label).is_some_and(std::cmp::Ordering::is_gt),
            Operator::Less => self.compare(label).is_some_and(std::cmp::Ordering::is_lt),
        }
    }

    fn compare(&self, label: Option<&str>) -> Option<std::cmp::Ordering> {
        let label: i64 = label?.parse().ok()?;
        let value: i64 = self.values.first()?.parse().ok()?;
        Some(label.cmp(&value))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    Sign(&'a str),
    End,
}

impl Token<'_> {
    fn text(&self) -> &str {
        match self {
            Token::Word(text) | Token::Sign(text) => text,
            Token::End => "",
        }
    }
}

struct Parser<'a> {
    rest: &'a str,
}

const SIGNS: [&str; 9] = ["==", "!=", "=", "!", "(", ")", ",", ">", "<"];

fn is_special(c: char) -> bool {
    matches!(c, '=' | '!' | '(' | ')' | ',' | '>' | '<') || c.is_whitespace()
}

impl<'a> Parser<'a> {
    fn next(&mut self) -> Token<'a> {
        let (token, rest) = self.scan();
        self.rest = rest;
        token
    }

    fn peek(&self) -> Token<'a> {
        self.scan().0
    }

    fn scan(&self) -> (Token<'a>, &'a str) {
        let rest = self.rest.trim_start();
        if rest.is_empty() {
            return (Token::End, rest);
        }
        for sign in SIGNS {
            if let (Some(found), Some(tail)) = (rest.get(..sign.len()), rest.strip_prefix(sign)) {
                return (Token::Sign(found), tail);
            }
        }
        let (word, tail) = rest.split_at(rest.find(is_special).unwrap_or(rest.len()));
        (Token::Word(word), tail)
    }

    fn selector(&mut self) -> Result<Vec<Requirement>, SelectorError> {
        let mut requirements = Vec::new();
        if self.peek() == Token::End {
            return Ok(requirements);
        }
        if !matches!(self.peek(), Token::Word(_) | Token::Sign("!")) {
            return Err(expected(self.peek(), "!, identifier, or 'end of string'"));
        }
        loop {
            requirements.push(self.requirement()?);
            match self.next() {
                Token::End => break,
                Token::Sign(",") => match self.peek() {
                    Token::Word(_) | Token::Sign("!") => {}
                    token @ (Token::Sign(_) | Token::End) => {
                        return Err(expected(token, "identifier after ','"));
                    }
                },
                token @ (Token::Word(_) | Token::Sign(_)) => {
                    return Err(expected(token, "',' or 'end of string'"));
                }
            }
        }
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(requirements)
    }

    fn requirement(&mut self) -> Result<Requirement, SelectorError> {
        let absent = self.peek() == Token::Sign("!");
        if absent {
            self.next();
        }
        let key = match self.next() {
            Token::Word(key) => key.to_owned(),
            token @ (Token::Sign(_) | Token::End) => {
                return Err(unparsable(&format!("found '{}', expected: identifier", token.text())));
            }
        };
        check_key(&key)?;
        if absent {
            return Ok(Requirement { key, operator: Operator::Absent, values: Vec::new() });
        }
        if matches!(self.peek(), Token::End | Token::Sign(",")) {
            return Ok(Requirement { key, operator: Operator::Exists, values: Vec::new() });
        }
        let (operator, values) = match self.next() {
            Token::Sign("=" | "==") => (Operator::In, vec![self.value()?]),
            Token::Sign("!=") => (Operator::NotIn, vec![self.value()?]),
            Token::Sign(">") => (Operator::Greater, vec![self.value()?]),
            Token::Sign("<") => (Operator::Less, vec![self.value()?]),
            Token::Word("in") => (Operator::In, self.values()?),
            Token::Word("notin") => (Operator::NotIn, self.values()?),
            token @ (Token::Word(_) | Token::Sign(_) | Token::End) => {
                let operators = "in, notin, =, ==, !=, gt, lt";
                return Err(unparsable(&format!("found '{}', expected: {operators}", token.text())));
            }
        };
        check_values(&key, operator, &values)?;
        Ok(Requirement { key, operator, values })
    }

    /// An absent value is an empty one.
    fn value(&mut self) -> Result<String, SelectorError> {
        match self.peek() {
            Token::Word(value) => {
                self.next();
                Ok(value.to_owned())
            }
            Token::Sign(",") | Token::End => Ok(String::new()),
            token @ Token::Sign(_) => {
                Err(unparsable(&format!("found '{}', expected: identifier", token.text())))
            }
        }
    }

    fn values(&mut self) -> Result<Vec<String>, SelectorError> {
        match self.next() {
            Token::Sign("(") => {}
            token @ (Token::Word(_) | Token::Sign(_) | Token::End) => {
                return Err(unparsable(&format!("found '{}' expected: '('", token.text())));
            }
        }
        let mut values = match self.peek() {
            Token::Word(_) | Token::Sign(",") => self.list()?,
            Token::Sign(")") => vec![String::new()],
            token @ (Token::Sign(_) | Token::End) => {
                return Err(unparsable(&format!(
                    "found '{}', expected: ',', ')' or identifier",
                    token.text()
                )));
            }
        };
        self.next();
        values.sort();
        values.dedup();
        Ok(values)
    }

    /// Reads values up to the bracket that ends them. Between commas there may be nothing.
    fn list(&mut self) -> Result<Vec<String>, SelectorError> {
        let mut values = Vec::new();
        while self.peek() != Token::Sign(")") {
            match self.next() {
                Token::Word(value) => values.push(value.to_owned()),
                // What follows a comma is a value, another comma, or the end.
                Token::Sign(",") => {
                    let is_empty = values.is_empty() || matches!(self.peek(), Token::Sign("," | ")"));
                    values.extend(is_empty.then(String::new));
                    continue;
                }
                token @ (Token::Sign(_) | Token::End) => {
                    return Err(unparsable(&format!(
                        "found '{}', expected: ',', or identifier",
                        token.text()
                    )));
                }
            }
            let next = self.peek();
            if !matches!(next, Token::Sign("," | ")")) {
                return Err(unparsable(&format!("found '{}', expected: ',' or ')'", next.text())));
            }
        }
        Ok(values)
    }
}

fn expected(token: Token<'_>, what: &str) -> SelectorError {
    SelectorError(format!("found '{}', expected: {what}", token.text()))
}

fn unparsable(why: &str) -> SelectorError {
    SelectorError(format!("unable to parse requirement: {why}"))
}

fn check_key(key: &str) -> Result<(), SelectorError> {
    let wrong = names::qualified(key);
    if wrong.is_empty() {
        return Ok(());
    }
    Err(unparsable(&format!("<nil>: Invalid value: {}: {}", quoted(key), wrong.join("; "))))
}

fn check_values(key: &str, operator: Operator, values: &[String]) -> Result<(), SelectorError> {
    match operator {
        Operator::Greater | Operator::Less => {
            let value = values.first().map(String::as_str).unwrap_or_default();
            if value.parse::<i64>().is_err() {
                return Err(unparsable(&format!(
                    "values[0]: Invalid value: {}: for 'Gt', 'Lt' operators, the value must be an integer",
                    quoted(value)
                )));
            }
        }
        Operator::Absent | Operator::Exists | Operator::In | Operator::NotIn => {}
    }
    for (index, value) in values.iter().enumerate() {
        let wrong = names::label_value(value);
        if !wrong.is_empty() {
            let why =
                format!("values[{index}][{key}]: Invalid value: {}: {}", quoted(value), wrong.join("; "));
            return Err(unparsable(&why));
        }
    }
    Ok(())
}

fn quoted(text: &str) -> String {
    format!("{text:?}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    struct Labels(&'static [(&'static str, &'static str)]);

    impl Selectable for Labels {
        fn label(&self, name: &str) -> Option<&str> {
            self.0.iter().find(|(n, _)| *n == name).map(|(_, value)| *value)
        }
        fn field(&self, _: usize) -> &'static str {
            ""
        }
        fn name(&self) -> &'static str {
            ""
        }
        fn namespace(&self) -> &'static str {
            ""
        }
    }

    #[test]
    fn requirements_are_read_and_compared() {
        let object = Labels(&[("app", "web"), ("tier", "front"), ("size", "7"), ("x.io/y", "")]);
        for (selector, selected) in [
            ("", true),
            ("app", true),
            ("app=web", true),
            ("app==web,tier=front", true),
            ("app=db", false),
            ("app!=db", true),
            ("other!=db", true),
            ("!other", true),
            ("!app", false),
            ("app in (web, db)", true),
            ("app in (db)", false),
            ("app notin (db),size>6", true),
            ("size<7", false),
            ("size > 10", false),
            ("x.io/y=", true),
            ("x.io/y", true),
            ("app in (web),tier notin (back)", true),
            ("missing notin (a)", true),
            ("in in (in)", false),
            ("app in (web,)", true),
            ("x.io/y in (,a)", true),
            ("x.io/y in ()", true),
            ("app in (db,,web)", true),
        ] {
            assert_eq!(LabelSelector::parse(selector).unwrap().selects(&object), selected, "{selector}");
        }
    }

    #[test]
    fn selectors_of_objects_are_read_and_compared() {
        let object = Labels(&[("app", "web"), ("tier", "front")]);
        let expression = |key: &str, operator: &str, values: &[&str]| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
        for (selector, selected) in [
            (json!({}), true),
            (json!({"matchLabels": {"app": "web", "tier": "front"}}), true),
            (json!({"matchLabels": {"app": "web", "other": "x"}}), false),
            (expression("app", "In", &["db", "web"]), true),
            (expression("app", "NotIn", &["db", "web"]), false),
            (expression("other", "NotIn", &["db"]), true),
            (expression("app", "Exists", &[]), true),
            (expression("app", "DoesNotExist", &[]), false),
            (expression("app", "Whatever", &["web"]), false),
        ] {
            assert_eq!(LabelSelector::of(&selector).selects(&object), selected, "{selector}");
        }
    }

    #[test]
    fn bad_selectors_are_refused_with_a_reason() {
        let check = |text: &str| LabelSelector::parse(text).unwrap_err().0;
        insta::assert_snapshot!(check("a b"), @"unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt");
        insta::assert_snapshot!(check("a=b c"), @"found 'c', expected: ',' or 'end of string'");
        insta::assert_snapshot!(check("a in b"), @"unable to parse requirement: found 'b' expected: '('");
        insta::assert_snapshot!(check("a=b,"), @"found '', expected: identifier after ','");
        insta::assert_snapshot!(check("=b"), @"found '=', expected: !, identifier, or 'end of string'");
        insta::assert_snapshot!(check("a>x"), @r#"unable to parse requirement: values[0]: Invalid value: "x": for 'Gt', 'Lt' operators, the value must be an integer"#);
        insta::assert_snapshot!(check("a===b"), @"unable to parse requirement: found '=', expected: identifier");
        insta::assert_snapshot!(check("a=!b"), @"unable to parse requirement: found '!', expected: identifier");
        insta::assert_snapshot!(check("a>>b"), @"unable to parse requirement: found '>', expected: identifier");
        insta::assert_snapshot!(check("a in (b,!c)"), @"unable to parse requirement: found '!', expected: ',', or identifier");
        insta::assert_snapshot!(check("a in (=)"), @"unable to parse requirement: found '=', expected: ',', ')' or identifier");
        insta::assert_snapshot!(check("a in (b c)"), @"unable to parse requirement: found 'c', expected: ',' or ')'");
        insta::assert_snapshot!(check("a in (b"), @"unable to parse requirement: found '', expected: ',' or ')'");
        insta::assert_snapshot!(check("a in ("), @"unable to parse requirement: found '', expected: ',', ')' or identifier");
        assert!(check("A.b/c=d").contains("prefix part a lowercase RFC 1123 subdomain"));
        assert!(check("a/=b").contains("name part must be non-empty; name part must consist of"));
        let long = check(&"b".repeat(64));
        assert!(long.ends_with("name part must be no more than 63 characters"), "{long}");
        assert!(check("-a=b").contains("name part must consist of"));
        assert!(check("a=-").contains("a valid label must be"));
    }
}
