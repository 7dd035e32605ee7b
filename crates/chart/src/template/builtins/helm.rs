//! `include`, `tpl`, `required`, `fail` and `lookup`.

use crate::value::{CallError, Context, Function, MapType, Text, Type, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("include", &[Type::String, Type::Any], Type::String, include),
    Function::new("tpl", &[Type::String, Type::Any], Type::String, tpl),
    Function::new("required", &[Type::String, Type::Any], Type::Any, required),
    Function::new("fail", &[Type::String], Type::String, fail),
    Function::new("lookup", &[Type::String; 4], Type::Map(&MapType::ANY), lookup),
];

fn include(context: &mut dyn Context, args: &[Value]) -> Result<Value, CallError> {
    let [Value::Text(name), data] = args else {
        return Ok(Value::Nil);
    };
    context.execute_template(&name.lossy(), data).map(Value::Text)
}

fn tpl(context: &mut dyn Context, args: &[Value]) -> Result<Value, CallError> {
    let [Value::Text(text), data] = args else {
        return Ok(Value::Nil);
    };
    context.parse_and_execute(text, data).map(Value::Text)
}

fn required(_: &mut dyn Context, args: &[Value]) -> Result<Value, CallError> {
    let [Value::Text(message), value] = args else {
        return Ok(Value::Nil);
    };
    let missing = value.is_nil() || value.as_text().is_some_and(|text| text.is_empty());
    if missing { Err(refused(message)) } else { Ok(value.clone()) }
}

fn fail(_: &mut dyn Context, args: &[Value]) -> Result<Value, CallError> {
    match args {
        [Value::Text(message)] => Err(refused(message)),
        _ => Ok(Value::Nil),
    }
}

/// Asks the cluster; an object that is not there is an empty one.
fn lookup(context: &mut dyn Context, args: &[Value]) -> Result<Value, CallError> {
    let [Value::Text(version), Value::Text(kind), Value::Text(namespace), Value::Text(name)] = args else {
        return Ok(Value::Nil);
    };
    let found = context
        .environment()
        .lookup(&version.lossy(), &kind.lossy(), &namespace.lossy(), &name.lossy())
        .map_err(|error| CallError::new(error.to_string()))?;
    context.charge(found.to_string().len())?;
    // Numbers of the cluster keep their kind: whole ones are int64.
    let found = Value::from_typed_json(&found);
    Ok(Value::Map(found.as_map().cloned().unwrap_or_default()))
}

fn refused(message: &Text) -> CallError {
    let message = message.lossy().into_owned();
    CallError::Refused { text: message.clone(), message }
}

#[cfg(test)]
mod tests {
    use crate::environment::{
        Certificate, CertificateRequest, Environment, EnvironmentError, FixedEnvironment, KeyKind,
    };
    use crate::template::{Limits, Renderer, TemplateSet};
    use crate::value::{Context as _, Value};

    /// A cluster with one ConfigMap, which refuses to show Secrets.
    struct Cluster(FixedEnvironment);

    impl Environment for Cluster {
        fn now(&mut self) -> jiff::Zoned {
            self.0.now()
        }

        fn random(&mut self, bytes: &mut [u8]) {
            self.0.random(bytes);
        }

        fn private_key(&mut self, kind: KeyKind) -> Result<String, EnvironmentError> {
            self.0.private_key(kind)
        }

        fn certificate(&mut self, request: &CertificateRequest) -> Result<Certificate, EnvironmentError> {
            self.0.certificate(request)
        }

        fn resolve(&mut self, host: &str) -> Result<String, EnvironmentError> {
            self.0.resolve(host)
        }

        fn lookup(
            &mut self,
            api_version: &str,
            kind: &str,
            namespace: &str,
            name: &str,
        ) -> Result<serde_json::Value, EnvironmentError> {
            match (api_version, kind, namespace, name) {
                ("v1", "ConfigMap", "ns", "a") => {
                    Ok(serde_json::json!({"data": {"k": "v"}, "n": 3, "f": 1.5}))
                }
                (_, "Secret", ..) => Err(EnvironmentError("secrets is forbidden".to_owned())),
                _ => self.0.lookup(api_version, kind, namespace, name),
            }
        }
    }

    fn run(text: &str) -> Result<String, String> {
        let mut environment = Cluster(FixedEnvironment::default());
        let limits = Limits { stack: 1 << 20, ..Limits::default() };
        let mut context = Renderer::new(&mut environment, TemplateSet::new(), limits);
        match context.parse_and_execute(text.as_bytes(), &Value::Nil) {
            Ok(text) => Ok(text.lossy().into_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn lookup_asks_the_environment_and_fails_with_it() {
        let found =
            r#"{{ $x := lookup "v1" "ConfigMap" "ns" "a" }}{{ $x.data.k }} {{ printf "%T %T" $x.n $x.f }}"#;
        assert_eq!(run(found).unwrap(), "v int64 float64");
        assert_eq!(run(r#"{{ lookup "v1" "Pod" "" "" }}"#).unwrap(), "map[]");
        let error = run(r#"{{ lookup "v1" "Secret" "ns" "a" }}"#).unwrap_err();
        assert!(error.ends_with("error calling lookup: secrets is forbidden"), "{error}");
    }

    #[test]
    fn a_refusal_is_told_with_the_place_that_began_it() {
        let error = run(r#"{{ tpl "{{ fail \"no\" }}" . }}"#).unwrap_err();
        assert!(error.ends_with("at <fail \"no\">: error calling fail: no"), "{error}");
    }
}
