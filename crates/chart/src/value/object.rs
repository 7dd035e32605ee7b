//! Values with a type of their own.

use std::any::Any;

use super::Method;
use super::{Kind, Value};

/// A value with fields or methods: a struct, or a named type such as `time.Duration`.
pub trait Object: Any {
    /// Returns Go's name of the type: `time.Time`, `*semver.Version`.
    fn type_name(&self) -> &str;

    /// Returns Go's kind of the type: by default a struct, or a pointer to one if the name says so.
    fn kind(&self) -> Kind {
        if self.type_name().starts_with('*') { Kind::Ptr } else { Kind::Struct }
    }

    /// Returns the exported fields of a struct in the order of their declaration.
    fn fields(&self) -> Vec<(&'static str, Value)> {
        Vec::new()
    }

    /// Returns the names of the fields that are embedded structs.
    fn embedded(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns one exported field, also one of an embedded struct.
    fn field(&self, name: &str) -> Option<Value> {
        self.fields().into_iter().find(|(field, _)| *field == name).map(|(_, value)| value)
    }

    /// Reports whether the value of the field `name` is declared as `interface {}`.
    fn field_is_interface(&self, _name: &str) -> bool {
        false
    }

    /// Returns the methods that templates may call.
    fn methods(&self) -> &'static [Method] {
        &[]
    }

    /// Returns the method `name`, if templates may call one.
    fn method(&self, name: &str) -> Option<&'static Method> {
        self.methods().iter().find(|method| method.name == name)
    }

    /// Returns what the type is made of if it is not a struct.
    fn underlying(&self) -> Option<Value> {
        None
    }

    /// Returns what its `String` or `Error` method answers, if it has one.
    fn display(&self) -> Option<String> {
        None
    }

    /// Returns what a `String` method of the pointer to it answers: an action of a template
    /// finds that method, `printf` does not.
    fn display_of_pointer(&self) -> Option<String> {
        None
    }

    /// Returns what JSON writes for it; without an answer the fields are written.
    fn json(&self) -> Option<serde_json::Value> {
        None
    }

    /// Returns what JSON writes for a struct whose fields have names or an order of
    /// their own there; it goes before [`Object::json`].
    fn json_members(&self) -> Option<Vec<(&'static str, Value)>> {
        None
    }
}
