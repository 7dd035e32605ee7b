//! Values under the verbs of Go's formats.

use golang::fmt::{Operand, Shape};
use golang::reflect::Kind;

use super::Value;

impl Operand for Value {
    fn shape(&self) -> Shape<'_> {
        match self {
            Self::Nil => Shape::Nil,
            Self::Bool(truth) => Shape::Bool(*truth),
            Self::Int(n) | Self::Int64(n) | Self::Small(_, n) => Shape::Int(*n),
            Self::Uint(_, n) => Shape::Uint(*n),
            Self::Float(n) => Shape::Float(*n),
            Self::Complex(re, im) => Shape::Complex(*re, *im),
            Self::Text(text) => Shape::Text(text),
            Self::Bytes(bytes) => Shape::Bytes(bytes),
            Self::List(list) => Shape::Slice { nil: list.is_nil() },
            Self::Map(map) => Shape::Map { nil: map.is_nil() },
            Self::Object(_) => Shape::Object,
        }
    }

    fn kind(&self) -> Kind {
        self.kind()
    }

    fn type_name(&self) -> &str {
        self.type_name()
    }

    fn each_item<E>(&self, visit: &mut dyn FnMut(&Self) -> Result<(), E>) -> Result<(), E> {
        self.as_list().map_or(Ok(()), |list| list.items().iter().try_for_each(visit))
    }

    fn each_entry<E>(&self, visit: &mut dyn FnMut(&str, &Self) -> Result<(), E>) -> Result<(), E> {
        self.as_map()
            .map_or(Ok(()), |map| map.entries().iter().try_for_each(|(key, value)| visit(key, value)))
    }

    fn fields(&self) -> Vec<(&'static str, Self)> {
        if let Self::Object(object) = self { object.fields() } else { Vec::new() }
    }

    fn underlying(&self) -> Option<Self> {
        if let Self::Object(object) = self { object.underlying() } else { None }
    }

    fn display(&self) -> Option<String> {
        if let Self::Object(object) = self { object.display() } else { None }
    }

    fn display_of_pointer(&self) -> Option<String> {
        if let Self::Object(object) = self { object.display_of_pointer() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use golang::fmt::{print_dereferenced, sprint, sprint_dereferenced};

    use crate::value::{Object, Value};

    /// A pointer to a struct, with or without a `String` method.
    struct Pointer(Option<&'static str>);

    impl Object for Pointer {
        fn type_name(&self) -> &'static str {
            "*a.B"
        }

        fn fields(&self) -> Vec<(&'static str, Value)> {
            vec![("X", Value::Int(1)), ("Y", Value::Nil)]
        }

        fn display(&self) -> Option<String> {
            self.0.map(str::to_owned)
        }
    }

    #[test]
    fn actions_look_behind_pointers_and_functions_do_not() {
        for (pointer, of_action, of_function) in
            [(Pointer(None), "{1 <nil>}", "&{1 <nil>}"), (Pointer(Some("b")), "b", "b")]
        {
            let value = Value::object(pointer);
            let mut out = b"> ".to_vec();
            print_dereferenced(&mut out, &value).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), format!("> {of_action}"));
            assert_eq!(sprint_dereferenced(std::slice::from_ref(&value)).unwrap(), of_action.as_bytes());
            assert_eq!(sprint(std::slice::from_ref(&value)).unwrap(), of_function.as_bytes());
        }
    }
}
