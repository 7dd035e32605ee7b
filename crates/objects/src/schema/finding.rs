//! What is wrong with a value, as data: the users of a schema put it into their words.

use serde_json::Value;

use super::node::Limit;

/// A step from a value to a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// A property of an object.
    Property(&'a str),
    /// An item of a list.
    Item(usize),
    /// An item of a list whose items have schemas of their own.
    Position(usize),
}

/// How a value breaks its schema.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding<'a> {
    /// It has none of these types, which are separated by commas.
    Type(String),
    /// It is none of these.
    Enum(&'a [Value]),
    /// It breaks all schemas of `anyOf`.
    AnyOf,
    /// It fits so many schemas of `oneOf`, and not one.
    OneOf(usize),
    /// It breaks schemas of `allOf`: all of them, or some.
    AllOf {
        /// Whether it fits none.
        none_fits: bool,
    },
    /// It fits the schema of `not`.
    Not,
    /// The string has fewer characters.
    MinLength(u64),
    /// The string has more characters.
    MaxLength(u64),
    /// The string does not match this regular expression.
    Pattern(&'a str),
    /// The string does not have this format.
    Format(&'a str),
    /// The number is no multiple of this one.
    MultipleOf(f64),
    /// The number is too small.
    Minimum(Limit),
    /// The number is too large.
    Maximum(Limit),
    /// The list has fewer items.
    MinItems(u64),
    /// The list has more items.
    MaxItems(u64),
    /// The list has an item twice.
    UniqueItems,
    /// The list has more items than schemas of items.
    AdditionalItems,
    /// The object has fewer properties.
    MinProperties(u64),
    /// The object has more properties.
    MaxProperties(u64),
    /// The property is missing.
    Required,
    /// The property may not be there.
    Forbidden,
    /// The object lacks the property that another one requires.
    Dependency(&'a str),
    /// The list has an item twice whose items must differ; this is what they must differ in.
    Duplicate(Value),
    /// The value is nested too deeply to be looked at.
    TooDeep,
    /// The schema has too many alternatives to be tried.
    TooManySteps,
}

/// How findings become messages.
pub trait Words {
    /// What a finding becomes.
    type Message;

    /// How many messages there can be; what is found beyond is not put into words.
    const MOST: usize = usize::MAX;

    /// Adds what `finding` says of `value`, which is at `path`, to the messages.
    fn report(
        &self,
        messages: &mut Vec<Self::Message>,
        path: &[Step<'_>],
        value: &Value,
        finding: &Finding<'_>,
    );
}
