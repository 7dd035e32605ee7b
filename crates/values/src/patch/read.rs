//! From the bytes of a patch file to operations.

use golang::json::normalize;
use objects::patch::location::decode_element;
use serde_json::{Map, Value};
use thiserror::Error;

use super::operation::{Operation, Patch, Path, Root, Target};
use crate::document::kind;

/// How many elements a path may have.
const MAX_ELEMENTS: usize = 128;

/// What every flag's key ends with.
const ENABLED: &str = "Enabled";

/// Why a patch file is refused.
///
/// Operations are counted from one, through all documents of the file. Values
/// are not part of the messages, they may be secrets.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadPatchError {
    /// The file is not a stream of JSON documents.
    #[error("got bad json patch for {target}: document {document}, line {line}, column {column}: {problem}")]
    Json {
        /// Which file.
        target: Target,
        /// Which document of it, counted from one.
        document: usize,
        /// The line.
        line: usize,
        /// The column.
        column: usize,
        /// What is wrong there.
        problem: String,
    },
    /// Something does not have the shape of an operation.
    #[error("got bad json patch for {target}: operation {index}: {problem}")]
    Shape {
        /// Which file.
        target: Target,
        /// Which operation.
        index: usize,
        /// What is wrong with it.
        problem: ShapeProblem,
    },
    /// An operation is not allowed.
    #[error("{target} patch, operation {index}: {problem}")]
    Operation {
        /// Which file.
        target: Target,
        /// Which operation.
        index: usize,
        /// What is wrong with it.
        problem: OperationProblem,
    },
}

/// Why something is not an operation.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ShapeProblem {
    /// It is of another kind than an object.
    #[error("expected an object with \"op\" and \"path\", found {0}")]
    NotAnObject(&'static str),
    /// A field is missing or not a text.
    #[error("\"{0}\" is missing or not a string")]
    Field(&'static str),
}

/// Why an operation is not allowed.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum OperationProblem {
    /// JSON Patch has such an operation, values patches have not.
    #[error("unsupported patch operation '{op}' for path '{path}': {instead}")]
    Unsupported {
        /// Its name.
        op: String,
        /// Its path.
        path: String,
        /// What to write instead.
        instead: &'static str,
    },
    /// There is no operation of this name.
    #[error("unexpected kind: {0}; write add, remove or test")]
    Unknown(String),
    /// The path leads to values that are not the hook's.
    #[error("unacceptable patch operation for path '{first}' ({accepted})")]
    Foreign {
        /// The first element of the path.
        first: String,
        /// What would be accepted.
        accepted: String,
    },
    /// The path is not a JSON pointer, or too long.
    #[error("path \"{path}\" {problem}")]
    Path {
        /// The path.
        path: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// An operation on a flag that is not `add` of a boolean or `remove`.
    #[error("flag '{path}': {problem}")]
    Flag {
        /// The path.
        path: String,
        /// What is wrong with the operation.
        problem: &'static str,
    },
}

impl Patch {
    /// Reads the patch file `bytes` of a hook that may change `root`.
    ///
    /// An empty file is an empty patch.
    pub fn read(bytes: &[u8], target: Target, root: &Root) -> Result<Self, ReadPatchError> {
        read(bytes, target, root)
    }
}

fn read(bytes: &[u8], target: Target, root: &Root) -> Result<Patch, ReadPatchError> {
    // Bytes that are not UTF-8 become replacement characters.
    let text = String::from_utf8_lossy(bytes);
    let mut reader = Reader { target, root, index: 0, patch: Patch::default() };
    let documents = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
    for (index, document) in documents.enumerate() {
        let document = document.map_err(|error| ReadPatchError::Json {
            target,
            document: index + 1,
            line: error.line(),
            column: error.column(),
            problem: without_position(&error),
        })?;
        match document {
            Value::Object(operation) => reader.operation(operation)?,
            Value::Array(operations) => {
                for operation in operations {
                    reader.item(operation)?;
                }
            }
            // The reference operator skips them, and hooks rely on it: a jq
            // filter that finds nothing prints null.
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    Ok(reader.patch)
}

/// Returns the error's message; the place is reported beside it.
fn without_position(error: &serde_json::Error) -> String {
    let message = error.to_string();
    match message.rsplit_once(" at line ") {
        Some((problem, _)) => problem.to_owned(),
        None => message,
    }
}

struct Reader<'r> {
    target: Target,
    root: &'r Root,
    /// How many operations were begun.
    index: usize,
    patch: Patch,
}

impl Reader<'_> {
    fn item(&mut self, operation: Value) -> Result<(), ReadPatchError> {
        let Value::Object(operation) = operation else {
            let found = kind(&operation);
            self.index += 1;
            return Err(self.misshapen(ShapeProblem::NotAnObject(found)));
        };
        self.operation(operation)
    }

    fn operation(&mut self, mut fields: Map<String, Value>) -> Result<(), ReadPatchError> {
        self.index += 1;
        let op = self.text(&mut fields, "op")?;
        let path = self.text(&mut fields, "path")?;
        // A missing value means null.
        let mut value = fields.remove("value").unwrap_or(Value::Null);
        normalize(&mut value);
        self.judge_name(&op, &path)?;
        if self.judge_path(&path)? {
            return self.flag(&op, &path, &value);
        }
        let path = Path(path);
        self.patch.operations.push(match op.as_str() {
            "add" => Operation::Add { path, value },
            "test" => Operation::Test { path, value },
            _ => Operation::Remove { path },
        });
        Ok(())
    }

    fn text(&self, fields: &mut Map<String, Value>, field: &'static str) -> Result<String, ReadPatchError> {
        match fields.remove(field) {
            Some(Value::String(text)) => Ok(text),
            _ => Err(self.misshapen(ShapeProblem::Field(field))),
        }
    }

    fn misshapen(&self, problem: ShapeProblem) -> ReadPatchError {
        ReadPatchError::Shape { target: self.target, index: self.index, problem }
    }

    fn refusal(&self, problem: OperationProblem) -> ReadPatchError {
        ReadPatchError::Operation { target: self.target, index: self.index, problem }
    }

    /// Refuses every operation but `add`, `remove` and `test`.
    fn judge_name(&self, op: &str, path: &str) -> Result<(), ReadPatchError> {
        let instead = match op {
            "add" | "remove" | "test" => return Ok(()),
            "replace" => "write 'add', it replaces a value that is there",
            "move" => "write 'remove' for the old path and 'add' with the value for the new one",
            "copy" => "write 'add' with the value for the new path",
            _ => return Err(self.refusal(OperationProblem::Unknown(op.to_owned()))),
        };
        let (op, path) = (op.to_owned(), path.to_owned());
        Err(self.refusal(OperationProblem::Unsupported { op, path, instead }))
    }

    /// Refuses paths that lead elsewhere; returns whether it is that of a flag.
    fn judge_path(&self, path: &str) -> Result<bool, ReadPatchError> {
        let refuse = |problem| Err(self.refusal(OperationProblem::Path { path: path.to_owned(), problem }));
        let Some(rest) = path.strip_prefix('/') else {
            return refuse("must begin with \"/\" and the key of the section");
        };
        if rest.split('/').count() > MAX_ELEMENTS {
            return refuse("has too many elements");
        }
        let first = decode_element(rest.split('/').next().unwrap_or_default());
        let accepted = match self.root {
            Root::Global if first == self.root.key() => return Ok(false),
            Root::Global if first.ends_with(ENABLED) => return Ok(true),
            Root::Module(key) if first == *key => return Ok(false),
            Root::Global => "only 'global' and '*Enabled' are permitted".to_owned(),
            Root::Module(key) => format!("only '{key}' accepted"),
        };
        Err(self.refusal(OperationProblem::Foreign { first, accepted }))
    }

    /// Takes in an operation on the flag of a module.
    fn flag(&mut self, op: &str, path: &str, value: &Value) -> Result<(), ReadPatchError> {
        let refuse = |problem| Err(self.refusal(OperationProblem::Flag { path: path.to_owned(), problem }));
        let flag = decode_element(path.strip_prefix('/').unwrap_or_default());
        let Some(module) = flag.strip_suffix(ENABLED) else {
            return refuse("nothing lies below a flag, end the path with 'Enabled'");
        };
        if module.is_empty() {
            return refuse("put the module's key before 'Enabled'");
        }
        let enabled = match (op, value) {
            ("remove", _) => None,
            ("add", Value::Bool(enabled)) => Some(*enabled),
            ("add", Value::String(text)) if text.eq_ignore_ascii_case("true") => Some(true),
            ("add", Value::String(text)) if text.eq_ignore_ascii_case("false") => Some(false),
            ("add", _) => return refuse("the value must be true or false"),
            _ => return refuse("write 'add' with true or false, or 'remove'"),
        };
        self.patch.enabled.insert(module.to_owned(), enabled);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn global(text: &str) -> Result<Patch, ReadPatchError> {
        Patch::read(text.as_bytes(), Target::Values, &Root::Global)
    }

    fn module(text: &str) -> Result<Patch, ReadPatchError> {
        Patch::read(text.as_bytes(), Target::Values, &Root::Module("webApp".to_owned()))
    }

    fn debug(patch: &Patch) -> String {
        format!("{:?} {:?}", patch.operations, patch.enabled)
    }

    #[test]
    fn objects_and_lists_of_them_mix_with_or_without_space_between() {
        for (text, expected) in [
            ("", "[] {}"),
            ("  \n ", "[] {}"),
            (r#"{"op":"add","path":"/webApp/a","value":1}"#, "[add /webApp/a] {}"),
            (
                r#"{"op":"add","path":"/webApp/a"}{"op":"remove","path":"/webApp/b"}"#,
                "[add /webApp/a, remove /webApp/b] {}",
            ),
            (
                "[{\"op\":\"add\",\"path\":\"/webApp/a\",\"value\":1},{\"op\":\"test\",\"path\":\"/webApp/a\",\"value\":1}]\n{\"op\":\"remove\",\"path\":\"/webApp/b\",\"from\":\"/x\"}[]",
                "[add /webApp/a, test /webApp/a, remove /webApp/b] {}",
            ),
            ("null \"text\" 5 true", "[] {}"),
        ] {
            assert_eq!(debug(&module(text).unwrap()), expected, "{text}");
        }
    }

    #[test]
    fn a_missing_value_is_null_and_whole_numbers_are_integers() {
        let patch = module(
            r#"{"op":"add","path":"/webApp/a"} {"op":"add","path":"/webApp/b","value":[1.0,2.5,12345678901234567]}"#,
        )
        .unwrap();
        let values: Vec<&Value> = patch
            .operations
            .iter()
            .map(|operation| match operation {
                Operation::Add { value, .. } | Operation::Test { value, .. } => value,
                Operation::Remove { .. } => panic!("no value"),
            })
            .collect();
        assert_eq!(values, [&json!(null), &json!([1, 2.5, 12_345_678_901_234_567_u64])]);
    }

    #[test]
    fn bad_patches_are_refused_with_the_place_and_what_to_write() {
        for (text, expected) in [
            (
                "{\"op\":\"add\",\"path\":\"/webApp/a\"}\n{",
                "got bad json patch for values: document 2, line 2, column 1: EOF while parsing an object",
            ),
            ("nonsense", "got bad json patch for values: document 1, line 1, column 2: expected ident"),
            (
                r#"[{"op":"add","path":"/webApp/a"}, 7]"#,
                "got bad json patch for values: operation 2: expected an object with \"op\" and \"path\", found a number",
            ),
            (
                r#"{"path":"/webApp/a"}"#,
                "got bad json patch for values: operation 1: \"op\" is missing or not a string",
            ),
            (
                r#"{"op":"add","value":"secret"}"#,
                "got bad json patch for values: operation 1: \"path\" is missing or not a string",
            ),
            (
                r#"{"op":"replace","path":"/webApp/a","value":"secret"}"#,
                "values patch, operation 1: unsupported patch operation 'replace' for path '/webApp/a': write 'add', it replaces a value that is there",
            ),
            (
                r#"{"op":"copy","path":"/webApp/a","from":"/webApp/b"}"#,
                "values patch, operation 1: unsupported patch operation 'copy' for path '/webApp/a': write 'add' with the value for the new path",
            ),
            (
                r#"{"op":"frob","path":"/webApp/a"}"#,
                "values patch, operation 1: unexpected kind: frob; write add, remove or test",
            ),
            (
                r#"{"op":"add","path":"/other/a","value":"secret"}"#,
                "values patch, operation 1: unacceptable patch operation for path 'other' (only 'webApp' accepted)",
            ),
            (
                r#"{"op":"add","path":"/webAppEnabled","value":true}"#,
                "values patch, operation 1: unacceptable patch operation for path 'webAppEnabled' (only 'webApp' accepted)",
            ),
            (
                r#"{"op":"add","path":"webApp","value":1}"#,
                "values patch, operation 1: path \"webApp\" must begin with \"/\" and the key of the section",
            ),
        ] {
            let error = module(text).unwrap_err().to_string();
            assert_eq!(error, expected, "{text}");
            assert!(!error.contains("secret"));
        }
    }

    #[test]
    fn global_hooks_may_touch_global_and_flags_only() {
        let patch = global(r#"[{"op":"add","path":"/global/a","value":1},{"op":"add","path":"/webAppEnabled","value":true}]"#).unwrap();
        assert_eq!(debug(&patch), r#"[add /global/a] {"webApp": Some(true)}"#);
        assert_eq!(
            global(r#"{"op":"add","path":"/webApp/a","value":1}"#).unwrap_err().to_string(),
            "values patch, operation 1: unacceptable patch operation for path 'webApp' (only 'global' and '*Enabled' are permitted)"
        );
    }

    #[test]
    fn flags_are_booleans_or_words_and_remove_forgets_them() {
        for (operation, expected) in [
            (r#"{"op":"add","path":"/xEnabled","value":true}"#, Ok(Some(true))),
            (r#"{"op":"add","path":"/xEnabled","value":"FALSE"}"#, Ok(Some(false))),
            (r#"{"op":"add","path":"/xEnabled","value":"True"}"#, Ok(Some(true))),
            (r#"{"op":"remove","path":"/xEnabled"}"#, Ok(None)),
            (r#"{"op":"add","path":"/xEnabled","value":"yes"}"#, Err("the value must be true or false")),
            (r#"{"op":"add","path":"/xEnabled","value":1}"#, Err("the value must be true or false")),
            (
                r#"{"op":"test","path":"/xEnabled","value":true}"#,
                Err("write 'add' with true or false, or 'remove'"),
            ),
            (r#"{"op":"add","path":"/Enabled","value":true}"#, Err("put the module's key before 'Enabled'")),
            (
                r#"{"op":"add","path":"/xEnabled/y","value":true}"#,
                Err("nothing lies below a flag, end the path with 'Enabled'"),
            ),
        ] {
            let result = global(operation);
            match expected {
                Ok(flag) => assert_eq!(result.unwrap().enabled["x"], flag, "{operation}"),
                Err(problem) => assert!(result.unwrap_err().to_string().ends_with(problem), "{operation}"),
            }
        }
        let last_wins =
            r#"[{"op":"add","path":"/xEnabled","value":true},{"op":"add","path":"/xEnabled","value":false}]"#;
        assert_eq!(global(last_wins).unwrap().enabled["x"], Some(false));
    }

    #[test]
    fn nesting_without_end_is_an_error() {
        let deep = format!(r#"{{"op":"add","path":"/webApp/a","value":{}"#, "[".repeat(100_000));
        assert!(matches!(module(&deep), Err(ReadPatchError::Json { .. })));
        let long = format!(r#"{{"op":"add","path":"/webApp{}"}}"#, "/a".repeat(1_000));
        let Err(ReadPatchError::Operation { problem, .. }) = module(&long) else { panic!("not refused") };
        assert!(matches!(problem, OperationProblem::Path { .. }));
    }
}
