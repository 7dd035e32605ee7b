//! What the fields of objects are: the shapes of built-in types, read lazily from `data/types.txt`, and of custom ones.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, LazyLock, OnceLock};

use serde_json::Value;

/// A name that is static for built-in types and owned for custom ones.
pub type Name = Cow<'static, str>;

/// What a value is.
#[derive(Clone, Debug)]
pub enum Shape {
    /// Anything: kept as it is.
    Any,
    /// A string.
    String,
    /// Bytes, written in base64.
    Bytes,
    /// `true` or `false`.
    Boolean,
    /// An integer of 32 bits.
    Int32,
    /// An integer of 64 bits.
    Int64,
    /// A floating point number.
    Number,
    /// An amount, for example `100Mi`.
    Quantity,
    /// An instant in seconds.
    Time,
    /// An instant in microseconds.
    MicroTime,
    /// A span, for example `15s`.
    Duration,
    /// An integer or a string.
    IntOrString,
    /// A set of fields of managed fields.
    Fields,
    /// A built-in object.
    Named(TypeName),
    /// A custom object.
    Object(Arc<Object>),
    /// A list.
    List(Arc<Shape>, ListType),
    /// A map from any key; the flag says that it is replaced as a whole.
    Map(Arc<Shape>, bool),
}

/// How the items of a list belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListType {
    /// The list has one owner and is replaced as a whole.
    Atomic,
    /// Items are objects with these fields as their key.
    Map(Vec<Name>),
    /// Items are scalars that are there once.
    Set,
}

/// A built-in type by the number of its package and its name, for example `3.PodSpec`.
#[derive(Clone, Copy)]
pub struct TypeName {
    name: &'static str,
    /// Where it is described: found once, as objects of the type are met all the time.
    entry: Option<&'static Entry>,
}

impl PartialEq for TypeName {
    fn eq(&self, other: &TypeName) -> bool {
        self.name == other.name
    }
}

impl Eq for TypeName {}

impl fmt::Debug for TypeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TypeName").field(&self.name).finish()
    }
}

/// An object with known fields.
#[derive(Debug, Default)]
pub struct Object {
    /// The name of the type; empty for custom objects.
    pub name: Name,
    /// The package of the type, for example `io.k8s.api.core.v1`; empty for custom objects.
    pub package: Name,
    /// Name and package without what all packages begin with, for example `core.v1.PodSpec`.
    pub short: Name,
    /// The fields, sorted by name.
    pub fields: Vec<Field>,
    /// What values of other keys are; without it there are none.
    pub additional: Option<Shape>,
    /// Whether other keys are kept as they are.
    pub preserves_unknown: bool,
    /// Whether the object is replaced as a whole.
    pub atomic: bool,
    /// Group, version and kind of top-level objects.
    pub kinds: Vec<(Name, Name, Name)>,
}

/// A field of an object.
#[expect(clippy::struct_excessive_bools, reason = "they are independent facts")]
#[derive(Clone, Debug)]
pub struct Field {
    /// The key in JSON.
    pub name: Name,
    /// What the value is.
    pub shape: Shape,
    /// What objects in it are, where documentation says nothing of the value.
    pub inner: Option<Shape>,
    /// Whether documentation calls it required.
    pub required: bool,
    /// Whether an empty value differs from no value.
    pub pointer: bool,
    /// Whether an empty value is left out when the object is written.
    pub omit_empty: bool,
    /// Whether the value is replaced as a whole although its shape says otherwise.
    pub atomic: bool,
    /// How strategic merge patches treat it.
    pub patch: PatchRule,
    /// What the published schema gives as default.
    pub default: Option<Arc<Value>>,
    /// The allowed values, where documentation lists them.
    pub values: Vec<Name>,
    /// The Go type of strings that have one of their own; empty otherwise.
    pub go_type: Name,
    /// Where the field is written among those of the object: from 1 on, 0 for custom objects.
    pub position: u16,
}

/// How strategic merge patches treat a field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatchRule {
    /// Whether lists are merged: by this key, or as a set when the key is empty.
    pub merge_key: Option<Name>,
    /// Whether the value is replaced as a whole.
    pub replace: bool,
    /// Whether `$retainKeys` is in force.
    pub retain_keys: bool,
}

impl Object {
    /// Returns the field called `name`.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.binary_search_by(|f| (*f.name).cmp(name)).ok().and_then(|at| self.fields.get(at))
    }
}

impl Shape {
    /// Returns the object behind the shape.
    pub fn object(&self) -> Option<&Object> {
        if let Shape::Object(object) = self {
            return Some(object);
        }
        if let Shape::Named(name) = self { name.object() } else { None }
    }

    /// Returns what the value of `key` is inside of an object or a map.
    pub fn child(&self, key: &str) -> Option<&Shape> {
        if let Shape::Map(item, _) = self {
            return Some(item);
        }
        let object = self.object()?;
        object.field(key).map(|f| &f.shape).or(object.additional.as_ref())
    }

    /// Returns what the items of a list are.
    pub fn item(&self) -> Option<&Shape> {
        if let Shape::List(item, _) = self { Some(item) } else { None }
    }
}

impl TypeName {
    /// Returns the type.
    pub fn object(self) -> Option<&'static Object> {
        self.entry.map(|entry| entry.parsed.get_or_init(|| parse_object(self.name, entry.text)))
    }

    fn of(name: &'static str) -> TypeName {
        TypeName { name, entry: TYPES.entries.get(name) }
    }

    /// Returns the name with its package, for example `io.k8s.api.core.v1.PodSpec`.
    pub fn full(self) -> String {
        match self.name.split_once('.') {
            Some((package, name)) => format!("{}.{name}", package_of(package)),
            None => self.name.to_owned(),
        }
    }
}

/// Returns the type of a built-in kind.
pub fn of_kind(group: &str, version: &str, kind: &str) -> Option<&'static Object> {
    name_of_kind(group, version, kind).and_then(TypeName::object)
}

/// Returns the name of the type of a built-in kind.
pub fn name_of_kind(group: &str, version: &str, kind: &str) -> Option<TypeName> {
    TYPES.kinds.get(&(group, version, kind)).map(|name| TypeName::of(name))
}

/// Returns group, version and kind of all built-in types that have them.
pub fn kinds() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    TYPES.kinds.keys().copied()
}

/// Returns a type by its full name, for example `io.k8s.api.core.v1.PodSpec`.
pub fn named(full: &str) -> Option<&'static Object> {
    name_of(full).and_then(TypeName::object)
}

/// Returns the name of a type by its full name.
pub fn name_of(full: &str) -> Option<TypeName> {
    let (package, name) = full.rsplit_once('.')?;
    let number = TYPES.packages.iter().find(|(_, p)| **p == package)?.0;
    let (key, _) = TYPES.entries.get_key_value(format!("{number}.{name}").as_str())?;
    Some(TypeName::of(key))
}

/// All types, parsed when they are first needed.
struct Types {
    packages: BTreeMap<&'static str, &'static str>,
    entries: BTreeMap<&'static str, Entry>,
    kinds: BTreeMap<(&'static str, &'static str, &'static str), &'static str>,
}

struct Entry {
    text: &'static str,
    parsed: OnceLock<Object>,
}

static TYPES: LazyLock<Types> = LazyLock::new(|| read(include_str!("../data/types.txt")));

fn read(text: &'static str) -> Types {
    let mut types = Types { packages: BTreeMap::new(), entries: BTreeMap::new(), kinds: BTreeMap::new() };
    let mut parts = text.split("\n=");
    for line in parts.next().unwrap_or_default().lines() {
        if let Some((number, package)) = line.strip_prefix('P').and_then(|l| l.split_once('\t')) {
            types.packages.insert(number, package);
        }
    }
    for body in parts {
        let head = body.lines().next().unwrap_or_default();
        let mut fields = head.split('\t');
        let name = fields.next().unwrap_or_default();
        for gvk in fields.nth(1).unwrap_or_default().split_whitespace() {
            if let Some(gvk) = split_gvk(gvk) {
                types.kinds.insert(gvk, name);
            }
        }
        let entry = Entry { text: body, parsed: OnceLock::new() };
        types.entries.insert(name, entry);
    }
    types
}

fn split_gvk(text: &'static str) -> Option<(&'static str, &'static str, &'static str)> {
    let mut parts = text.split('/');
    Some((parts.next()?, parts.next()?, parts.next()?))
}

/// What the packages of kinds begin with.
const PACKAGES: [&str; 3] =
    ["io.k8s.api.", "io.k8s.apiextensions-apiserver.pkg.apis.", "io.k8s.kube-aggregator.pkg.apis."];

fn package_of(number: &str) -> &'static str {
    TYPES.packages.get(number).copied().unwrap_or_default()
}

fn parse_object(name: &'static str, body: &'static str) -> Object {
    let mut lines = body.lines();
    let mut head = lines.next().unwrap_or_default().split('\t').skip(1);
    let flags = head.next().unwrap_or_default();
    let gvks = head.next().unwrap_or_default().split_whitespace();
    let (package, name) = name.split_once('.').unwrap_or_default();
    let package = package_of(package);
    let short = PACKAGES.iter().find_map(|prefix| package.strip_prefix(prefix)).unwrap_or_default();
    Object {
        name: name.into(),
        package: package.into(),
        short: format!("{short}.{name}").into(),
        fields: lines.filter_map(parse_field).collect(),
        additional: None,
        preserves_unknown: false,
        atomic: flags.contains('A'),
        kinds: gvks.filter_map(split_gvk).map(|(g, v, k)| (g.into(), v.into(), k.into())).collect(),
    }
}

fn parse_field(line: &'static str) -> Option<Field> {
    let mut parts = line.split('\t');
    let (name, flags, shape) = (parts.next()?, parts.next()?, parts.next()?);
    let mut field = Field {
        name: name.into(),
        shape: Shape::Any,
        inner: None,
        required: flags.contains('r'),
        pointer: flags.contains('p'),
        omit_empty: flags.contains('o'),
        atomic: false,
        patch: PatchRule::default(),
        default: None,
        values: Vec::new(),
        go_type: "".into(),
        position: 0,
    };
    let mut list_type = ListType::Atomic;
    for extra in parts {
        match extra.split_once('=').unwrap_or((extra, "")) {
            ("L", keys) => list_type = ListType::Map(keys.split(',').map(Into::into).collect()),
            ("S", _) => list_type = ListType::Set,
            ("A", _) => field.atomic = true,
            ("M", key) => field.patch.merge_key = Some(key.into()),
            ("R", _) => field.patch.replace = true,
            ("K", _) => field.patch.retain_keys = true,
            ("d", json) => field.default = serde_json::from_str(json).ok().map(Arc::new),
            ("e", values) => field.values = values.split('|').map(Into::into).collect(),
            ("g", go) => field.go_type = go.into(),
            ("i", inner) => field.inner = Some(parse_shape(inner, ListType::Atomic, false)),
            ("n", position) => field.position = position.parse().unwrap_or_default(),
            _ => {}
        }
    }
    field.shape = parse_shape(shape, list_type, field.atomic);
    Some(field)
}

fn parse_shape(text: &'static str, list_type: ListType, atomic: bool) -> Shape {
    match text.split_at_checked(1).unwrap_or_default() {
        ("s", _) => Shape::String,
        ("y", _) => Shape::Bytes,
        ("b", _) => Shape::Boolean,
        ("i", _) => Shape::Int32,
        ("l", _) => Shape::Int64,
        ("n", _) => Shape::Number,
        ("q", _) => Shape::Quantity,
        ("t", _) => Shape::Time,
        ("u", _) => Shape::MicroTime,
        ("D", _) => Shape::Duration,
        ("I", _) => Shape::IntOrString,
        ("F", _) => Shape::Fields,
        ("#", name) => Shape::Named(TypeName::of(name)),
        ("[", item) => Shape::List(Arc::new(parse_shape(item, ListType::Atomic, false)), list_type),
        ("{", item) => {
            let item = parse_shape(item, ListType::Atomic, false);
            Shape::Map(Arc::new(item), atomic)
        }
        _ => Shape::Any,
    }
}

/// Returns the published types of one group and version, for documents of schemas: those of its kinds and all they lead to.
pub fn reachable(group: &str, version: &str) -> BTreeMap<String, &'static Object> {
    let mut found = BTreeMap::new();
    let mut waiting: Vec<&'static str> = TYPES
        .kinds
        .iter()
        .filter(|((g, v, _), _)| *g == group && *v == version)
        .map(|(_, name)| *name)
        .collect();
    while let Some(name) = waiting.pop() {
        let name = TypeName::of(name);
        let Some(object) = name.object() else {
            continue;
        };
        if found.insert(name.full(), object).is_none() {
            waiting.extend(object.fields.iter().filter_map(|f| leads_to(&f.shape)));
        }
    }
    found
}

fn leads_to(shape: &Shape) -> Option<&'static str> {
    if let Shape::List(item, _) | Shape::Map(item, _) = shape {
        return leads_to(item);
    }
    if let Shape::Named(name) = shape { Some(name.name) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_that_is_led_to_exists() {
        for name in TYPES.entries.keys() {
            let object = TypeName::of(name).object().unwrap();
            assert!(object.fields.is_sorted_by(|a, b| a.name < b.name), "{name}");
            for next in object.fields.iter().filter_map(|f| leads_to(&f.shape)) {
                assert!(TypeName::of(next).object().is_some(), "{name} leads to {next}");
            }
        }
    }

    #[test]
    fn fields_carry_their_rules() {
        let container = named("io.k8s.api.core.v1.Container").unwrap();
        let ports = container.field("ports").unwrap();
        assert_eq!(ports.patch.merge_key.as_deref(), Some("containerPort"));
        let Shape::List(item, list_type) = &ports.shape else { panic!() };
        assert_eq!(*list_type, ListType::Map(vec!["containerPort".into(), "protocol".into()]));
        let protocol = item.object().unwrap().field("protocol").unwrap();
        assert_eq!(protocol.default.as_deref(), Some(&Value::from("TCP")));
        assert_eq!(protocol.go_type, "v1.Protocol");
        let deployment = of_kind("apps", "v1", "Deployment").unwrap();
        let spec = deployment.field("spec").unwrap().shape.object().unwrap();
        assert!(spec.field("replicas").unwrap().pointer);
        assert!(spec.field("strategy").unwrap().patch.retain_keys);
    }
}
