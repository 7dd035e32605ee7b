//! An expression that can be run.

use std::fmt;
use std::sync::Arc;

use crate::activation::Activation;
use crate::check::{self, Checked};
use crate::cost::estimate;
use crate::declared::Declared;
use crate::environment::Environment;
use crate::evaluate::Run;
use crate::failure::Failure;
use crate::syntax;
use crate::tree::{Kind, Node, Tree};
use crate::types::Type;
use crate::value::Value;

/// An expression that can be run.
#[derive(Clone)]
pub struct Program {
    tree: Arc<Tree>,
    checked: Option<Arc<Checked>>,
}

/// What a run of an expression returns.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The value, or why there is none.
    pub value: Result<Value, Failure>,
    /// What the run cost.
    pub cost: u64,
}

impl Program {
    /// Reads an expression and checks its types. An error has the place of each problem, in the words of the real server.
    pub fn compile(text: &str, environment: &Environment) -> Result<Self, String> {
        let read = if environment.binds() { syntax::parse_binding } else { syntax::parse };
        let tree = read(text)?;
        let checked = check::check(&tree, environment)?;
        Ok(Self { tree: Arc::new(tree), checked: Some(Arc::new(checked)) })
    }

    /// Compiles an expression whose value has one of these types; `dyn` is any. An error is in the words of the real server.
    pub fn compile_to(text: &str, environment: &Environment, outputs: &[Type]) -> Result<Self, String> {
        let program =
            Self::compile(text, environment).map_err(|problems| format!("compilation failed: {problems}"))?;
        let output = program.output();
        if outputs.contains(&output) || outputs.contains(&Type::Dyn) {
            return match program.unusable() {
                Some(problem) => Err(format!("program instantiation failed: {problem}")),
                None => Ok(program),
            };
        }
        let names: Vec<String> = outputs.iter().map(named).collect();
        match names.as_slice() {
            [one] => Err(format!("must evaluate to {one} but got {}", named(&output))),
            many => Err(format!("must evaluate to one of [{}] but got {}", many.join(" "), named(&output))),
        }
    }

    /// Reads an expression whose types are not known before it runs.
    pub fn parse(text: &str) -> Result<Self, String> {
        Ok(Self { tree: Arc::new(syntax::parse(text)?), checked: None })
    }

    /// Returns the text.
    pub fn text(&self) -> &str {
        &self.tree.text
    }

    /// Returns the type of the value; `dyn` if types were not checked.
    pub fn output(&self) -> Type {
        self.checked.as_ref().map_or(Type::Dyn, |checked| checked.output.clone())
    }

    /// Returns why the expression can never be run, though its types fit: it converts a text that has another form.
    pub fn unusable(&self) -> Option<String> {
        check::unusable(&self.tree.root)
    }

    /// Returns whether the expression mentions a variable.
    pub fn mentions(&self, name: &str) -> bool {
        mentions(&self.tree.root, name)
    }

    /// Returns the most that a run may cost, with the limits of the schema of `self`.
    pub fn most_cost(&self, root: Option<&Declared>) -> u64 {
        self.checked.as_ref().map_or(u64::MAX, |checked| estimate::most(&self.tree, checked, root))
    }

    /// Runs the expression. It ends when it costs more than `limit`.
    pub fn run(&self, activation: &dyn Activation, limit: u64) -> Outcome {
        let mut run = Run::new(activation, limit);
        let value = run.node(&self.tree.root);
        Outcome { value, cost: run.cost }
    }
}

fn mentions(node: &Node, name: &str) -> bool {
    if let Kind::Ident(ident) = &node.kind {
        return &**ident == name;
    }
    check::parts(node).into_iter().any(|part| mentions(part, name))
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tree.text.fmt(f)
    }
}

/// What a program does follows from its text.
impl PartialEq for Program {
    fn eq(&self, other: &Self) -> bool {
        self.tree.text == other.tree.text
    }
}

fn named(of: &Type) -> String {
    if *of == Type::Null { "null_type".to_owned() } else { of.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::FailureKind;
    use std::collections::BTreeMap;

    fn evaluated(text: &str) -> Outcome {
        let program = Program::parse(text).unwrap();
        program.run(&BTreeMap::<&str, Value>::new(), crate::PER_CALL_LIMIT)
    }

    #[test]
    fn a_run_ends_when_it_costs_too_much() {
        let ten = "[1,2,3,4,5,6,7,8,9,10]";
        let loops = |count: usize| {
            let (open, close) = (format!("{ten}.all(x, ").repeat(count), ")".repeat(count));
            evaluated(&format!("{open}true{close}"))
        };
        let cheap = loops(2);
        assert!(matches!(cheap.value, Ok(Value::Bool(true))) && cheap.cost < 10_000, "{cheap:?}");
        let dear = loops(7);
        assert_eq!(dear.value.unwrap_err().kind, FailureKind::Cost);
        assert!(dear.cost > crate::PER_CALL_LIMIT && dear.cost < crate::PER_CALL_LIMIT + 1_000);
        // An answer elsewhere does not hide it.
        let hidden = format!("{}true{} || true", format!("{ten}.all(x, ").repeat(7), ")".repeat(7));
        assert_eq!(evaluated(&hidden).value.unwrap_err().kind, FailureKind::Cost);
    }

    #[test]
    fn texts_that_are_too_long_or_too_deep_are_not_read() {
        for (text, problem) in [
            (format!("'{}'", "x".repeat(16 << 10)), "expression code point size exceeds limit"),
            (format!("1{}", "+1".repeat(2_000)), "more than 1000 operators"),
            (format!("1{}", "+1".repeat(300)), "expression recursion limit exceeded: 250"),
            (format!("{}1{}", "(".repeat(900), ")".repeat(900)), ""),
        ] {
            let found = Program::parse(&text).err();
            assert!(found.as_ref().is_some_and(|found| found.contains(problem)), "{problem}: {found:?}");
        }
        for text in [format!("1{}", "+1".repeat(200)), format!("{}1{}", "(".repeat(90), ")".repeat(90))] {
            assert!(Program::parse(&text).is_ok(), "{text}");
        }
    }

    #[test]
    fn values_of_libraries_and_lists_of_a_schema_are_compared_with_their_like() {
        let schema = serde_json::json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
            "list": {"type": "array", "items": {"type": "integer"}},
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "integer"}},
            "map": {"type": "object", "additionalProperties": {"type": "integer"}},
        }});
        let json = serde_json::json!({"list": [1], "set": [1], "map": {"a": 1}});
        let given = BTreeMap::from([("self", crate::schema::value(&json, &schema, false))]);
        let run = |text: &str| Program::parse(text).unwrap().run(&given, crate::PER_CALL_LIMIT).value;
        for text in [
            "ip('10.0.0.1') == dyn('zz')",
            "cidr('10.0.0.0/8') == dyn(1)",
            "self.set == dyn('zz')",
            "self.set + [2] == dyn('zz')",
            "self.list + [2] == dyn('zz')",
            "self.map == dyn('zz')",
            "self == dyn('zz')",
        ] {
            assert_eq!(run(text).unwrap_err().text, "no such overload", "{text}");
        }
        for (text, expected) in [
            ("dyn('zz') == ip('10.0.0.1')", false),
            ("ip('10.0.0.1') != dyn('zz')", true),
            ("dyn(ip('10.0.0.1')) == null", false),
            ("ip('10.0.0.1') == ip('10.0.0.1')", true),
            ("ip('10.0.0.1') in ['zz', dyn(ip('10.0.0.1'))]", true),
            ("self.set == [1]", true),
            ("self.list + [2] == [1, 2]", true),
            ("self.map == {'a': 1}", true),
            ("self.set != dyn('zz')", true),
            ("dyn('zz') == self.map", false),
            ("self.list.map(x, x) == dyn('zz')", false),
            ("{'a': 1} == dyn('zz')", false),
        ] {
            assert!(matches!(run(text), Ok(Value::Bool(found)) if found == expected), "{text}");
        }
    }

    #[test]
    fn infinity_has_a_sign_as_a_text() {
        for (text, expected) in [
            ("'%s'.format([1.0/0.0])", "+Inf"),
            ("'%s'.format([-1.0/0.0])", "-Inf"),
            ("'%s'.format([[1.0/0.0]])", "[\"+Inf\"]"),
            ("'%f'.format([-1.0/0.0])", "-∞"),
            ("'%e'.format([1.0/0.0])", "∞"),
        ] {
            assert!(
                matches!(evaluated(text).value, Ok(Value::String(found)) if &*found == expected),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_made_has_a_limit() {
        for text in [
            "'x'.replace('', 'y').replace('', '%s%s%s%s'.format(['a','b','c','d']))".to_owned(),
            format!("size([[1,2]].map(x, x + x){}) > 0", ".map(x, x + x)".repeat(3)),
        ] {
            assert!(evaluated(&text).value.is_ok(), "{text}");
        }
        let grown = format!("'abcdefgh'{} == ''", ".replace('', 'abcdefghabcdefgh')".repeat(30));
        assert_eq!(evaluated(&grown).value.unwrap_err().kind, FailureKind::Cost);
    }
}
