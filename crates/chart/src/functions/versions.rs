//! Versions.

use std::cmp::Ordering;

use super::args::{Answer, BOOL, STRING, any, string};
use crate::semver::{Constraint, Version};
use crate::value::{CallError, Function, Method, Object, Type, UintType, Value};

const VERSION: Type = Type::Named(POINTER);
const POINTER: &str = "*semver.Version";
const UINT64: Type = Type::Uint64;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("semver", &[STRING], VERSION, |_, args| {
        let version = Version::parse(&string(args, 0)).map_err(|error| error.to_string())?;
        Ok(Value::object(VersionObject { version, is_pointer: true }))
    }),
    Function::new("semverCompare", &[STRING, STRING], BOOL, |_, args| {
        let constraint = Constraint::parse(&string(args, 0)).map_err(|error| error.to_string())?;
        let version = Version::parse(&string(args, 1)).map_err(|error| error.to_string())?;
        Ok(constraint.matches(&version).into())
    }),
];

/// A version as templates see it; what its methods return is not a pointer.
struct VersionObject {
    version: Version,
    is_pointer: bool,
}

impl Object for VersionObject {
    fn type_name(&self) -> &str {
        if self.is_pointer { POINTER } else { "semver.Version" }
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        let version = &self.version;
        let number = |number| Value::Uint(UintType::Uint64, number);
        vec![
            ("major", number(version.major())),
            ("minor", number(version.minor())),
            ("patch", number(version.patch())),
            ("pre", version.prerelease().into()),
            ("metadata", version.metadata().into()),
            ("original", version.original().into()),
        ]
    }

    /// Templates reach none of the fields, which are only printed.
    fn field(&self, _name: &str) -> Option<Value> {
        None
    }

    fn methods(&self) -> &'static [Method] {
        METHODS
    }

    fn method(&self, name: &str) -> Option<&'static Method> {
        let of_pointer = if self.is_pointer { POINTER_METHODS } else { &[] };
        METHODS.iter().chain(of_pointer).find(|method| method.name == name)
    }

    fn display(&self) -> Option<String> {
        Some(self.version.to_string())
    }

    fn json(&self) -> Option<serde_json::Value> {
        Some(self.version.to_string().into())
    }
}

/// What only a pointer to a version answers.
const POINTER_METHODS: &[Method] = &[
    Method::new("Compare", &[VERSION], Type::Int, |_, this, args| {
        Ok(Value::Int(match order(this, args)? {
            Ordering::Less => -1,
            Ordering::Equal => 0,
            Ordering::Greater => 1,
        }))
    }),
    Method::new("Equal", &[VERSION], BOOL, |_, this, args| Ok(order(this, args)?.is_eq().into())),
    Method::new("GreaterThan", &[VERSION], BOOL, |_, this, args| Ok(order(this, args)?.is_gt().into())),
    Method::new("GreaterThanEqual", &[VERSION], BOOL, |_, this, args| Ok(order(this, args)?.is_ge().into())),
    Method::new("LessThan", &[VERSION], BOOL, |_, this, args| Ok(order(this, args)?.is_lt().into())),
    Method::new("LessThanEqual", &[VERSION], BOOL, |_, this, args| Ok(order(this, args)?.is_le().into())),
    Method::new("Original", &[], STRING, |_, this, _| text(this, Version::original)),
];

/// What a version and a pointer to one answer.
const METHODS: &[Method] = &[
    Method::new("IncMajor", &[], PLAIN, |_, this, _| next(this, Version::next_major)),
    Method::new("IncMinor", &[], PLAIN, |_, this, _| next(this, Version::next_minor)),
    Method::new("IncPatch", &[], PLAIN, |_, this, _| next(this, Version::next_patch)),
    Method::new("Major", &[], UINT64, |_, this, _| number(this, Version::major)),
    Method::new("Metadata", &[], STRING, |_, this, _| text(this, Version::metadata)),
    Method::new("Minor", &[], UINT64, |_, this, _| number(this, Version::minor)),
    Method::new("Patch", &[], UINT64, |_, this, _| number(this, Version::patch)),
    Method::new("Prerelease", &[], STRING, |_, this, _| text(this, Version::prerelease)),
    Method::new("SetMetadata", &[STRING], PLAIN, |_, this, args| {
        let changed = version(this)?.with_metadata(&string(args, 0));
        changed.map(plain).map_err(|error| error.to_string().into())
    }),
    Method::new("SetPrerelease", &[STRING], PLAIN, |_, this, args| {
        let changed = version(this)?.with_prerelease(&string(args, 0));
        changed.map(plain).map_err(|error| error.to_string().into())
    }),
    Method::new("String", &[], STRING, |_, this, _| Ok(version(this)?.to_string().into())),
];

const PLAIN: Type = Type::Named("semver.Version");

fn plain(version: Version) -> Value {
    Value::object(VersionObject { version, is_pointer: false })
}

fn version(value: &Value) -> Result<&Version, CallError> {
    let object: Option<&VersionObject> = value.as_object();
    object.map(|object| &object.version).ok_or_else(super::args::nil_dereference)
}

fn order(this: &Value, args: &[Value]) -> Result<Ordering, CallError> {
    Ok(version(this)?.precedence(version(any(args, 0))?))
}

fn next(this: &Value, next: fn(&Version) -> Version) -> Answer {
    Ok(plain(next(version(this)?)))
}

fn number(this: &Value, part: fn(&Version) -> u64) -> Answer {
    Ok(Value::Uint(UintType::Uint64, part(version(this)?)))
}

fn text(this: &Value, part: fn(&Version) -> &str) -> Answer {
    Ok(part(version(this)?).into())
}
